#!/usr/bin/env python3
"""The catalogue of static cases, each run by itself.

A row names a case, by class: a procedure of a lit file, and what its refusal
must say ("" for a case that is accepted). The procedure's part of the file is
read and checked alone, without the comments that expect errors: accepted means
exit status 0, refused means 1 and the text among the errors. So a case that is
lost, or is refused for another reason, is seen here. The counts by class go
before the last line, `N passed, N failed, N skipped`."""

import os
import re
import subprocess
import sys
import tempfile

ROWS = {
    "barrier usage": ("check-par/barrier_usage.exo", [
        ("agree", ""), ("arrive_n_not_one", "N=1"),
        ("arrive_incompatible_sync_tl", "incompatible sync-tl"),
        ("await_incompatible_sync_tl", "incompatible sync-tl"),
        ("mbarrier_await_n", "requires N = 0"), ("group_await_0", ""),
        ("group_await_3", ""), ("group_await_negative", "N >= 0"),
        ("group_await_mixed", ""), ("missing_arrive", "missing Arrive"),
        ("missing_await", "missing Await"), ("missing_both", "missing Arrive"),
        ("multicast_row_and_column", ""),
        ("arrive_incompatible_multicasts", "incompatible multicasts"),
        ("await_multicast", "interval"),
        ("group_multicast", "Unsupported multicast"),
        ("different_barriers", "different barrier"),
        ("mismatched_points", "mismatch"),
        ("no_point", "a point, not an interval"),
        ("compound_index", "Expected single variable name"),
        ("multicast_inside_cta", "Cannot multicast"),
        ("multicast_in_uniform_if", ""),
        ("multicast_in_other_if", "fails convergence requirement"),
        ("multicast_in_seq_loop", "fails convergence requirement"),
        ("inconsistent_count", "inconsistent thread count")]),
    "units": ("check-par/units.exo", [
        ("scaled_quadpair", "cannot be scaled"),
        ("scale_of_zero", "positive int"), ("fence_by_warps_0_to_4", ""),
        ("fence_by_warps_1_to_5", "alignment"), ("threads_32_of_32", ""),
        ("threads_64_of_32", "not enough threads available"),
        ("four_of_three_warps", "max_tile_count=3"), ("three_warps", ""),
        ("quadpairs_of_a_warpgroup", "ambiguous dimension"),
        ("write_by_threads", ""),
        ("write_by_warps", "must be executed by standalone_thread"),
        ("loop_from_137", "evil"), ("loop_to_n", "literal int value"),
        ("threads_on_cpu", "unexpected loop mode cuda_threads"),
        ("warps_on_cpu", "CudaWarps"), ("aligned_names", ""),
        ("names_not_aligned", "xyz"), ("nine_warps", "evil_iter"),
        ("two_by_64", "box=(2, 64)"), ("fraction_of_128", ""),
        ("fraction_of_96", "blockDim / 64"),
        ("domain_of_23", "Domain completion")]),
    "warps": ("check-par/warps.exo", [
        ("names", ""), ("wrong_name", "valid warp name"),
        ("missing_name", "None"), ("change_name", "cannot change warp name"),
        ("missing_lo", " lo "), ("missing_hi", " hi "),
        ("hi_out_of_range", "17"), ("lo_out_of_range", "5"),
        ("in_loop", "subdivided"), ("trivial", ""),
        ("not_trivial", "trivial tiling"),
        ("less_than_a_warp", "max_tile_count=0")]),
    "units and memory in use": ("check-par/uses.exo", [
        ("own_units", ""), ("half_of_each_warpgroup", ""),
        ("ten_groups_of_23", ""), ("warps_2_to_4_of_each_warpgroup", ""),
        ("one_count", ""), ("another_count", "must be 64"),
        ("fragment_of_one_warp", ""),
        ("fragment_of_two_warps", "Distributed memory deduction"),
        ("shared_of_each_cta", ""),
        ("shared_of_another_count_of_ctas", "must be 4"),
        ("cluster_sync_of_a_warp", "cuda_cluster")]),
    "distributed memory": ("check-par/distribution.exo", [
        ("chain", ""),
        ("sequential_in_front", "Expected cuda_threads-loop iterator, not s"),
        ("order_of_indices_is_free", ""),
        ("broken_chain", "Expected cuda_threads-loop iterator, not s"),
        ("repeat_behind_the_last", ""), ("repeated_index", "repeated"),
        ("constant_index", "Expected single variable name"),
        ("sum_as_index", "single variable name"),
        ("extent_of_another_size", "12"), ("missing_iterator", "Missing"),
        ("extent_not_constant", "must be constant"),
        ("names_do_not_matter", ""), ("pitches_differ", "failed"),
        ("other_warps", "failed"),
        ("too_coarse", "Missing subdivision"), ("tile_per_cta", ""),
        ("shared_in_cta", ""), ("shared_in_warp", "Missing threads"),
        ("shared_in_the_one_warp", ""),
        ("cta_index_reversed", "Expected single variable name"),
        ("overshot", "not an expected distributed iterator"),
        ("uniform", ""), ("uniform_by_thread", "64 * cuda_thread"),
        ("gmem_by_64", "CudaGmemLinear")]),
    "synchronisation": ("check-par/sync.exo", [
        ("wgmma_fence", ""), ("wgmma_fence_of_warps", "128"),
        ("wgmma_fence_of_threads", "warpgroup"),
        ("wgmma_fence_second", "wgmma_fence_2"), ("fences", ""),
        ("fence_first_tma", "we allow Sm80_generic"),
        ("fence_first_wgmma", "we allow Sm80_generic"),
        ("fence_first_empty", "empty"),
        ("fence_second_cpu", "at most cuda_generic_and_async_proxy"),
        ("fence_second_cp_async", "second sync-tl"),
        ("fence_of_parts", "collective unit matched no known case"),
        ("cluster_sync", ""), ("two_cluster_syncs", "CudaClusterSync"),
        ("cluster_fence_while_live", "Fence"), ("cta_fence_while_live", ""),
        ("cluster_sync_of_a_cta", "Missing threads to match cuda_cluster"),
        ("cluster_sync_n", "N = 0"),
        ("two_wgmma_groups", "Sm90_WgmmaCommitGroup"),
        ("groups_of_two_kinds", ""), ("cp_async_second", "Await"),
        ("cp_async_first", "Arrive"),
        ("cp_async_group_of_warps", "Missing subdivision"),
        ("mbarrier_0", ""), ("mbarrier_1", ""), ("mbarrier_2", ""),
        ("mbarrier_second_wgmma", "consider cuda_generic_and_async_proxy"),
        ("mbarrier_second_cpu", "not supported"),
        ("mbarrier_first_cpu", "cpu_in_order not supported"),
        ("mbarrier_first_tma", "use cuda_temporal"),
        ("cp_async_multicast", "within 1 CTA"),
        ("shared_by_two_ctas", "Missing subdivision")]),
    "statements of synchronisation": ("exo/sync_statements.exo", [
        ("right", ""), ("shift", ">>"), ("bare_product", ">>"),
        ("fence_with_barrier", ">>"), ("await_with_barrier", ">>"),
        ("two_barriers_on_a_call", "cannot have more than 1"),
        ("instruction_timeline", "Sm80_cp_async?"),
        ("timeline_in_quotes", "cuda_in_order"), ("keyword", "L2"),
        ("fence_of_one", "expects 2 arguments"),
        ("arrive_of_three", "arguments"),
        ("await_of_two", "expects 3 arguments"),
        ("await_fraction", "0.75"),
        ("arrive_on_data", "requires barrier type"),
        ("too_few_indices", "expected 2 indices"),
        ("no_barrier", "missing >>"),
        ("special_window_as_argument", "Can only create SpecialWindow"),
        ("unknown_loop_mode", "cuda_blocks"),
        ("unknown_loop_keyword", "unroll"),
        ("two_with_items", "1 withitem"), ("power_of_warps", "positive int"),
        ("half_unit", "2.5"), ("barrier_parameter", "mechanism"),
        ("barrier_without_mechanism", "BarrierMechanism")]),
    "device functions": ("check-par/device.exo", [
        ("tasks", ""), ("no_tasks", "Invalid cuda_tasks"),
        ("before_outer", "Invalid cuda_tasks"),
        ("after_outer", "Invalid cuda_tasks"),
        ("before_inner", "cuda_tasks"),
        ("after_inner", "Invalid cuda_tasks"), ("twice_the_name", "twice"),
        ("triangle", "for xyzzy"), ("tasks_in_threads", "cuda_tasks"),
        ("par_in_cuda", "unexpected loop mode par"), ("par_on_cpu", ""),
        ("nested_device", "requires cpu_basic_device"), ("block_64", ""),
        ("block_negative", "multiple of 32"), ("block_0", "multiple of 32"),
        ("block_half", "0.5"), ("block_1", "multiple of 32"),
        ("cluster_0", "power of two"), ("cluster_negative", "power of two"),
        ("cluster_3", "power of two"), ("registers", ""),
        ("duplicate_warps", "duplicate"), ("warp_name", "identifier"),
        ("registers_of_320_threads", "320"),
        ("registers_not_uniform", "warpgroup"), ("registers_16", "16"),
        ("registers_100", "100"), ("registers_320", "320"),
        ("dec_and_inc", "both dec and inc")]),
    "memory": ("check-par/memory.exo", [
        ("read_grid_constant", ""),
        ("runtime_grid_constant", "requires constant shape"),
        ("write_grid_constant", "does not allow mutable access"),
        ("grid_constant_window", "cannot be a window"),
        ("grid_constant_window_statement", "cannot be a window"),
        ("gmem_on_cpu", "any access"), ("gmem_read_on_cpu", "reads"),
        ("gmem_alloc_in_cuda", "cannot be allocated"),
        ("gmem_alloc_on_cpu", ""), ("gmem_scalar", "access"),
        ("smem_constant", ""), ("smem_runtime", "[not_a_constant, 256]"),
        ("rmem_runtime", "requires constant shape"), ("packed_i8", "type"),
        ("tile", ""), ("tile_0d", "must be at least"),
        ("tile_1d", "must be at least"),
        ("tile_runtime", "Required constant packed tensor shape"),
        ("tile_137", "packed tensor shape not supported"),
        ("tile_reordered", "point expression"),
        ("tile_window", "WindowEncoder"), ("cp_async", ""),
        ("cp_async_by_warp", "wrong collective unit"),
        ("cp_async_barrier", "does not take trailing barrier expression"),
        ("copy_on_cpu", ""), ("copy_in_cuda", "not allowed in scope")]),
    "rings and tensor maps": ("check-par/rings.exo", [
        ("ring", ""), ("ring_without_guard", "ring_guarded_by"),
        ("pre_arrive_exceeds", "ring_depth"), ("no_ring", "@ ring_buffer_by"),
        ("depth_0", "Expected ring_buffer_by.depth > 0"),
        ("interval_on_ring", "managed ring buffer dimension"),
        ("map", ""), ("map_dram", "CudaGmemLinear"),
        ("map_in_cuda", "cannot be constructed"), ("tma", ""),
        ("tma_without_barrier", "requires trailing"),
        ("tma_with_group", "requires trailing")]),
}
EXPECTED = re.compile(r"\s*# expected-.*")


def read_procedures(path):
    """{name: the part of a lit file that it stands in, bare}"""
    procedures = {}
    with open(path, encoding="utf-8") as file:
        for part in file.read().split("// -----"):
            for name in re.findall(r"^def (\w+)", part, re.M):
                procedures[name] = EXPECTED.sub("", part)
    return procedures


def fault_of(folder, path, source, text):
    """What is wrong with a row, or None."""
    if source is None:
        return "has no program"
    with open(path, "w", encoding="utf-8") as file:
        file.write(source)
    done = subprocess.run(
        [os.path.join(folder, "exo-opt"), path, "--pass-pipeline=check-par",
         "-o", path + ".eir"], stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, timeout=60,
        check=False)
    output = done.stdout.decode(errors="replace")
    errors = [line for line in output.splitlines() if " error: " in line]
    if done.returncode != (1 if text else 0):
        return f"has exit status {done.returncode}\n{output}"
    if text and not any(text in line for line in errors):
        return f"is refused without '{text}'\n{output}"
    return None


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    lit = os.path.join(os.path.dirname(here), "lit")
    folder = os.environ.get("EXO_BIN", "build/bin")
    passed = failed = 0
    with tempfile.TemporaryDirectory() as scratch:
        program = os.path.join(scratch, "case.exo")
        for kind, (path, rows) in ROWS.items():
            procedures = read_procedures(os.path.join(lit, path))
            faults = 0
            for name, text in rows:
                fault = fault_of(folder, program, procedures.get(name), text)
                if fault:
                    print(f"FAIL: {kind}: {name} {fault}")
                    faults += 1
            accepted = sum(1 for _, text in rows if not text)
            print(f"{kind}: {accepted} accepted, "
                  f"{len(rows) - accepted} refused")
            passed += len(rows) - faults
            failed += faults
    print(f"{passed} passed, {failed} failed, 0 skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
