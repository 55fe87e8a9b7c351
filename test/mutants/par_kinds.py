"""Kinds of mutants of the source. Each row: the fault of faults.py that it is
of, the name, the bases, the edit, the codes of verify/hazards.def of which one
is expected, and where a mutant is wrong: at all sizes unless a rule says from
which trip count on. At the other sizes it means the same as its base, and
refusing it there is over-strict."""
from bases import ALL, COOP, ONE_RING, RINGS
from faults import GROUPS
from edits import (drop, move, replace, swap_lines, swap_words, unchanged,
                   under)
from kinds import always, from_one, from_two, never, only_one


class Kind:
    def __init__(self, fault, name, bases, edit, codes, wrong=always):
        self.fault = fault
        self.name = name
        self.bases = bases
        self.edit = edit
        self.codes = set(codes.split())
        self.wrong = wrong

    def concerns(self, base):
        return base.like in self.bases


DATA = "D-RAW D-WAR D-WAW D-ALLOC"
WG_RELEASE = r"Arrive.* >> empty.*k \+"
CP_RELEASE = r"Arrive.* >> (empty|free)\["

KINDS = [
    Kind("", "no fault", ALL, unchanged, "", never),
    # ---- awaits of the data -------------------------------------------------
    Kind("await-dropped", "await of the data dropped", RINGS,
         drop(r"Await\((full|c_ready)"), "barrier " + DATA),
    Kind("await-dropped", "await of the data skipped in the first step", RINGS,
         under(r"Await\(full", "if k < 1:"), DATA + " B-COUNT", from_two),
    Kind("await-late", "await of the data after the MMA", RINGS,
         move(r"Await\(full", r"_mma_", True), DATA),
    Kind("barriers-swapped", "barriers of A and B swapped", ["separate"],
         swap_words(r"tma_load", "full_a", "full_b"), "", never),
    Kind("barriers-swapped", "barriers of A and B swapped, A needed first",
         ["register_a"], swap_words(r"tma_load", "full_a", "full_b"), DATA),
    Kind("await-index", "await of another ring index", RINGS,
         replace(r"Await\((full|empty)", r"\bk\]", "0]"), DATA + " B-COUNT",
         from_two),
    Kind("await-index", "await of an index outside the ring", RINGS,
         replace(r"Await\((full|empty)", r"\bk\]", "k - 1]"),
         DATA + " bounds B-CYCLE B-COUNT"),
    Kind("await-index", "another slot than the awaited",
         [b for b in RINGS if b != "register_a"],
         replace(r"_mma_", r"(b_s\[[^\]]*)\bk,", r"\g<1>0,"),
         DATA + " D-FREED D-RELEASE", from_two),
    Kind("await-index", "another slot than the awaited, each wgmma waited for",
         ["register_a"], replace(r"_mma_", r"(b_s\[[^\]]*)\bk,", r"\g<1>0,"),
         DATA + " D-FREED D-RELEASE", lambda base, trips, tasks: trips >= 3),
    # ---- awaits of copies by cp.async ---------------------------------------
    Kind("await-dropped", "await of the copies dropped", ["sm80"],
         drop(r"Fence\(Sm80_generic"), DATA, from_one),
    Kind("await-dropped", "await of the copies' barrier dropped",
         ["sm80_ring"], drop(r"Await\(full"), "barrier"),
    Kind("await-dropped", "await of the copies skipped in the first step",
         ["sm80_ring"], under(r"Await\(full", "if k >= 4:"),
         DATA + " B-COUNT"),
    Kind("await-late", "await of the copies after the MMA",
         ["sm80", "sm80_ring"],
         move(r"Await\(full|Fence\(Sm80_generic", r"_mma_m16n8\(", True),
         DATA + " unit", from_one),
    Kind("await-index", "await of another slot of copies", ["sm80_ring"],
         replace(r"Await\(full", r"k - \d\]", "0]"), DATA + " B-COUNT",
         from_two),
    Kind("await-index", "await of another free slot", ["sm80_ring"],
         replace(r"Await\((empty|free)", r"\bk\]", "0]"), DATA + " B-COUNT",
         from_two),
    # ---- waits of wgmma and the release of slots ----------------------------
    Kind("group-wait-dropped", "wait of wgmma dropped in the loop", GROUPS,
         drop(r"Await\(group.*, 1\)"), "D-RELEASE D-FREED", from_two),
    Kind("group-pending", "one more group pending in the loop", GROUPS,
         replace(r"Await\(group.*, 1\)", r"1\)", "2)"), "D-RELEASE D-FREED",
         from_two),
    Kind("group-pending", "one more group pending at the end", GROUPS,
         replace(r"Await\(group.*, 0\)", r"0\)", "1)"),
         DATA + " D-RELEASE D-FREED"),
    Kind("registers-reused", "registers of A reused before the wait",
         ["register_a"],
         lambda base: replace(r"Await\(group.*, 0\)", r"0\)", "1)")(base)[:1],
         DATA + " D-RELEASE", from_two),
    Kind("release-unit", "release by each warpgroup",
         COOP + ["split_k", "staged", "separate", "cluster_staged"],
         move(r" >> empty.*(/ \d+ \+ |\d \+ \d\]$|, \d+\]$)",
             r"Await\(group.*, 0\)", False), "barrier B-COUNT D-RELEASE"),
    Kind("release-early", "release before the last read",
         COOP + ["split_k", "separate", "cluster_staged"],
         move(WG_RELEASE, r"for g in cuda_threads", False, True),
         "D-RELEASE D-FREED", from_two),
    Kind("release-early", "release of another slot", RINGS,
         replace(WG_RELEASE, r"k \+ (\d|3 - 1)\]", "k + 1]"),
         "B-COUNT B-CYCLE D-RELEASE D-FREED", from_two),
    Kind("", "release dropped", ONE_RING,
         drop(r" >> empty.*(/ \d+ \+ |\d \+ \d\]|, \d+\]$)"),
         "B-COUNT D-RELEASE"),
    Kind("", "release dropped before the next tile", ["turns"],
         drop(r" >> empty.*/ \d+ \+ \d\]"), "D-ALLOC"),
    Kind("", "turn dropped", ["turns"], drop(r"Await\(turn"), "D-RAW"),
    Kind("", "turn not given", ["turns"], drop(r" >> turn"),
         "D-RAW D-RELEASE"),
    Kind("release-unit", "release by each warp", ["sm80_ring"],
         under(CP_RELEASE, "for u in cuda_threads(0, 2, unit=cuda_warp):"),
         "B-COUNT D-RELEASE D-ALLOC B-CYCLE"),
    Kind("release-early", "release before the last read of copies",
         ["sm80_ring"], move(CP_RELEASE, r"for w[m]? in cuda_threads", False),
         "D-RELEASE D-FREED"),
    Kind("release-early", "release of another slot of copies", ["sm80_ring"],
         replace(CP_RELEASE, r"k \+ 1\]", "k]"),
         "B-COUNT B-CYCLE D-RELEASE D-FREED"),
    Kind("", "release of copies dropped", ["sm80_ring"], drop(CP_RELEASE),
         "barrier"),
    # ---- protocol -----------------------------------------------------------
    Kind("one-role", "producer skips its await", RINGS,
         under(r"Await\(empty", "if k >= 1:"), "B-COUNT D-ALLOC"),
    Kind("one-role", "producer skips its arrive", RINGS,
         under(r">> full.*\bk\]$", "if k >= 1:"),
         "B-COUNT B-CYCLE scope barrier D-RAW D-ALLOC"),
    Kind("one-role", "consumer skips a release", RINGS,
         under(WG_RELEASE, "if k >= 2:"), DATA + " B-COUNT D-RELEASE B-CYCLE",
         from_two),
    Kind("one-role", "copies skip their await", ["sm80_ring"],
         under(r"Await\((empty|free)", "if k >= 1:"), "B-COUNT D-ALLOC"),
    Kind("one-role", "copies skip their arrive", ["sm80_ring"],
         under(r">> full", "if k >= 1:"), DATA + " B-COUNT B-CYCLE"),
    Kind("one-role", "a release of copies is skipped", ["sm80_ring"],
         under(CP_RELEASE, "if k >= 4:"), "D-RELEASE D-ALLOC B-COUNT"),
    Kind("one-role", "one role skips tiles", COOP + ["staged", "separate"],
         under(r"Await\(c_ready|Arrive.*>> c_ready|Await\(full",
             "if tn >= 1:"), "B-COUNT B-CYCLE D-RAW D-ALLOC"),
    Kind("pre-arrival", "one pre-arrival more", RINGS + ["sm80_ring"],
         replace(r"PreArrive\((\d)", r"PreArrive\((\d)",
             lambda m: f"PreArrive({int(m.group(1)) + 1}"),
         "ring barrier B-COUNT B-TX D-RAW D-ALLOC"),
    Kind("pre-arrival", "one pre-arrival less", RINGS + ["sm80_ring"],
         replace(r"^(?! *turn).*PreArrive\([1-9]", r"PreArrive\((\d)",
             lambda m: f"PreArrive({int(m.group(1)) - 1}"),
         "B-COUNT B-CYCLE D-ALLOC"),
    Kind("pre-arrival", "the first turn not given", ["turns"],
         replace(r"turn: .*PreArrive\(1", r"PreArrive\(1", "PreArrive(0"),
         "D-RAW"),
    # ---- proxies ------------------------------------------------------------
    Kind("proxy", "proxy crossing weakened before ordinary reads",
         ["register_a"],
         replace(r"full_a.*cuda_generic_and_async_proxy",
             "cuda_generic_and_async_proxy", "cuda_in_order"), "", never),
    Kind("proxy", "proxy crossing weakened",
         [b for b in RINGS if b != "register_a"],
         replace(r"cuda_generic_and_async_proxy",
             "cuda_generic_and_async_proxy", "cuda_in_order"),
         DATA + " barrier"),
    Kind("proxy", "proxy crossing weakened after the registers",
         ["register_a"],
         replace(r"^(?!.*full_a).*cuda_generic_and_async_proxy",
             "cuda_generic_and_async_proxy", "cuda_in_order"), DATA),
    Kind("proxy", "proxy crossing only temporal", RINGS,
         replace(r"cuda_generic_and_async_proxy",
             "cuda_generic_and_async_proxy", "cuda_temporal"),
         DATA + " barrier"),
    Kind("proxy", "copies are not waited for", ["sm80"],
         replace(r"Fence\(Sm80_generic", "Sm80_generic", "cuda_in_order"),
         DATA, from_one),
    Kind("proxy", "arrival without the copies", ["sm80_ring"],
         replace(r"Arrive\(Sm80_cp_async", "Sm80_cp_async", "cuda_in_order"),
         DATA),
    Kind("proxy", "copies are awaited in time only", ["sm80_ring"],
         replace(r"Await\(full", "cuda_in_order", "cuda_temporal"), DATA),
    Kind("proxy", "a free slot, with padding, is awaited in time only",
         ["sm80_ring"],
         replace(r"Await\((empty|free)", "cuda_in_order", "cuda_temporal"),
         "", never),
    Kind("fence-loop", "fence of the copies in a loop that may not run",
         ["sm80"], under(r"Fence\(Sm80_generic", "for z in seq(0, K / 32):"),
         DATA, only_one),
    Kind("fence-loop", "crossing fence in a loop that may not run",
         ["staged", "ping_pong"],
         under(r"Fence\(cuda_in_order, cuda_gen", "for z in seq(0, K / 128):"),
         DATA, only_one),
    Kind("fence-loop", "crossing fence in a loop that may not run, cluster",
         ["cluster_staged"],
         under(r"Fence\(cuda_in_order, cuda_gen", "for z in seq(0, K / 32):"),
         DATA, only_one),
    # ---- commits and waits --------------------------------------------------
    Kind("commit-late", "commit of wgmma after the wait",
         COOP + ["separate", "split_k"],
         swap_lines(r">> group", r"Await\(group"), "D-RELEASE D-FREED",
         from_two),
    Kind("commit-late", "commit of the store after the wait", RINGS,
         swap_lines(r">> (stored|done)", r"Await\((stored|done)"),
         "D-RELEASE D-LIFE"),
    Kind("commit-late", "commit of cp.async after the wait", ["cp_async"],
         move(r">> cg", r"Await\(cg.*1\)", True), DATA),
    Kind("commit-late", "commit of cp.async after the wait, per task",
         ["exchange"], swap_lines(r">> cg", r"Await\(cg"), DATA),
    Kind("group-pending", "one more cp.async group pending", ["cp_async"],
         replace(r"Await\(cg.*, 1\)", r"1\)", "2)"), DATA),
    Kind("group-pending", "last wait leaves an empty group", ["cp_async"],
         replace(r"Await\(cg.*, 0\)", r"0\)", "1)"), "", never),
    Kind("group-pending", "one more cp.async group pending, per task",
         ["exchange"], replace(r"Await\(cg.*, 0\)", r"0\)", "1)"), DATA),
    Kind("wait-behind", "wait after the barrier", ["exchange"],
         move(r"Fence", r"for t in", False), DATA + " D-LIFE"),
    Kind("wait-behind", "wait for the store after its slot is free",
         COOP + ["split_k", "separate", "register_a"],
         move(r"Await\(stored", r">> c_free", True), "D-RELEASE D-LIFE"),
    Kind("drain", "drain of the stores dropped", RINGS,
         drop(r"Await\((stored|done)"), "barrier"),
    Kind("drain", "drain of the stores leaves one", RINGS,
         replace(r"Await\((stored|done)", r"0\)", "1)"), "D-RELEASE D-LIFE"),
    Kind("drain", "drain of the stores is temporal", RINGS,
         replace(r"Await\((stored|done)", "cuda_in_order", "cuda_temporal"),
         "", never),
    # ---- fences and units ---------------------------------------------------
    Kind("", "fence removed",
         ["staged", "cluster_staged", "exchange", "cp_async", "sm80",
             "sm80_ring", "two_sets", "simt", "transpose"],
         drop(r"Fence\(cuda_in_order"), DATA + " D-LIFE D-RELEASE"),
    Kind("", "fence removed, proxies", ["ping_pong"],
         drop(r"Fence\(cuda_in_order, cuda_gen"), DATA),
    Kind("", "fence removed whose threads all arrive", ["ping_pong"],
         drop(r"Fence\(cuda_in_order, cuda_in"), "", never),
    Kind("fence-unit", "fence by one role", ["staged"],
         under(r"Fence\(cuda_in_order", "with CudaWarps(name='math'):"),
         DATA + " D-LIFE"),
    Kind("cluster-fence", "fence of the cluster removed", ["cluster_staged"],
         drop(r"Fence\(cuda_in_order, cuda_in"), "D-LIFE"),
    Kind("fence-unit", "fence by each warp", ["exchange", "sm80", "sm80_ring"],
         under(r"Fence\(cuda_in_order",
             "for u in cuda_threads(0, 2, unit=cuda_warp):"),
         DATA + " D-LIFE"),
    Kind("fence-unit", "fence by each warp, proxies", ["ping_pong"],
         under(r"Fence\(cuda_in_order, cuda_gen",
             "for u in cuda_threads(0, 4, unit=cuda_warp):"), DATA),
    Kind("fence-unit", "fence by each CTA", ["cluster_staged"],
         under(r"Fence\(cuda_in_order, cuda_in",
             "for u in cuda_threads(0, 2, unit=cuda_cta_in_cluster):"),
         "D-LIFE"),
    Kind("fence-unit", "fence by each CTA, of what a CTA has alone",
         ["cluster_staged"],
         under(r"Fence\(cuda_in_order, cuda_gen",
             "for u in cuda_threads(0, 2, unit=cuda_cta_in_cluster):"), "",
         never),
    Kind("partial-warps", "partial warps",
         ["exchange", "staged", "sm80", "sm80_ring"],
         under(r"Fence\(cuda_in_order",
             "for u in cuda_threads(0, 1, unit=48 * cuda_thread):"),
         "fence unit threads"),
    Kind("multicast", "multicast a CTA too wide",
         ["coop_2x1", "coop_1x2", "coop_2x2", "split_k", "cluster_staged"],
         replace(r"(Arrive|multicast).*0:2", "0:2", "0:3"),
         "bounds shape barrier unit"),
    Kind("multicast", "multicast to all CTAs", ["coop_2x2"],
         replace(r"Arrive.*>> (full|empty)", r"\[c[mn], 0:2", "[0:2, 0:2"),
         "barrier"),
    Kind("multicast", "multicast along one side alone", ["coop_2x2"],
         replace(r"Arrive.*>> (full|empty)", r" >> \w+\[c[mn], 0:2, [^\]]*\]",
             ""), "barrier B-COUNT B-TX D-RAW D-ALLOC"),
    Kind("leading-dimension", "leading dimension not asserted", ONE_RING,
         drop(r"assert [NK] % 8 == 0"), "", never),
]


class Level:
    """How mutants of the source are made and checked."""

    ending = "exo"
    kinds = KINDS
    static = {"barrier", "bounds", "fence", "ring", "scope", "shape", "unit"}

    def __init__(self, tools):
        pass

    @staticmethod
    def mutants(kind, base):
        return kind.edit(base)

    @staticmethod
    def arguments(base, path):
        return [path]
