"""Kinds of mutants of the source. Each row: the name, the bases, the edit, the
codes of verify/hazards.def of which one is expected, and where a mutant is
wrong: at all sizes unless a rule says from which trip count on. At the other
sizes it means the same as its base, and refusing it there is over-strict."""
from bases import BY_NAME, COOP, RINGS
from edits import drop, move, replace, swap_lines, swap_words, under


def always(base, trips, tasks):
    return True


def never(base, trips, tasks):
    return False


def from_two(base, trips, tasks):
    return trips >= 2


def only_one(base, trips, tasks):
    return trips == 1


class Kind:
    def __init__(self, name, bases, edit, codes, wrong=always):
        self.name = name
        self.bases = [BY_NAME[base] for base in bases]
        self.edit = edit
        self.codes = set(codes.split())
        self.wrong = wrong


DATA = "D-RAW D-WAR D-WAW D-ALLOC"
WG_RELEASE = r"Arrive.* >> empty.*k \+"

KINDS = [
    # ---- awaits of the data -------------------------------------------------
    Kind("await of the data dropped", RINGS, drop(r"Await\((full|c_ready)"),
         "barrier"),
    Kind("await of the data skipped in the first step", RINGS,
         under(r"Await\(full", "if k < 1:"), DATA + " B-COUNT", from_two),
    Kind("await of the data after the MMA", RINGS,
         move(r"Await\(full", r"_mma_", True), DATA),
    Kind("barriers of A and B swapped", ["separate"],
         swap_words(r"tma_load", "full_a", "full_b"), "", never),
    Kind("barriers of A and B swapped, A needed first", ["register_a"],
         swap_words(r"tma_load", "full_a", "full_b"), DATA),
    Kind("await of another ring index", RINGS,
         replace(r"Await\((full|empty)", r"\bk\]", "0]"),
         DATA + " B-COUNT", from_two),
    Kind("await of an index outside the ring", RINGS,
         replace(r"Await\((full|empty)", r"\bk\]", "k - 1]"),
         DATA + " bounds B-CYCLE B-COUNT"),
    Kind("another slot than the awaited", [b for b in RINGS if
                                           b != "register_a"],
         replace(r"_mma_", r"(b_s\[[^\]]*)\bk,", r"\g<1>0,"),
         DATA + " D-FREED D-RELEASE", from_two),
    Kind("another slot than the awaited, each wgmma waited for",
         ["register_a"],
         replace(r"_mma_", r"(b_s\[[^\]]*)\bk,", r"\g<1>0,"),
         DATA + " D-FREED D-RELEASE", lambda base, trips, tasks: trips >= 3),
    # ---- waits of wgmma and the release of slots ----------------------------
    Kind("wait of wgmma dropped in the loop", COOP + ["ping_pong", "split_k",
         "staged", "cluster_staged", "separate"],
         drop(r"Await\(group.*, 1\)"), "D-RELEASE D-FREED", from_two),
    Kind("one more group pending in the loop", COOP + ["ping_pong", "split_k",
         "staged", "cluster_staged", "separate"],
         replace(r"Await\(group.*, 1\)", r"1\)", "2)"),
         "D-RELEASE D-FREED", from_two),
    Kind("one more group pending at the end", COOP + ["ping_pong", "split_k",
         "staged", "cluster_staged", "separate"],
         replace(r"Await\(group.*, 0\)", r"0\)", "1)"),
         DATA + " D-RELEASE D-FREED"),
    Kind("registers of A reused before the wait", ["register_a"],
         lambda base: replace(r"Await\(group.*, 0\)", r"0\)",
                              "1)")(base)[:1], DATA + " D-RELEASE", from_two),
    Kind("release by each warpgroup", COOP + ["split_k", "staged", "separate",
                                              "cluster_staged"],
         move(r" >> empty.*/ 16 \+ 2|>> empty.*\+ 3 - 1\]|>> empty.*4 \+ 2",
              r"Await\(group.*, 0\)", False), "barrier B-COUNT D-RELEASE"),
    Kind("release before the last read", COOP + ["split_k", "separate",
                                                 "cluster_staged"],
         move(WG_RELEASE, r"for g in cuda_threads", False, True),
         "D-RELEASE D-FREED", from_two),
    Kind("release of another slot", RINGS,
         replace(WG_RELEASE, r"k \+ (2|3 - 1)\]", "k + 1]"),
         "B-COUNT B-CYCLE D-RELEASE D-FREED", from_two),
    Kind("release dropped", RINGS, drop(r" >> empty.*(/ \d+ \+ |4 \+ 2)"),
         "B-COUNT D-RELEASE"),
    # ---- protocol -----------------------------------------------------------
    Kind("producer skips its await", RINGS,
         under(r"Await\(empty", "if k >= 1:"), "B-COUNT D-ALLOC"),
    Kind("producer skips its arrive", RINGS,
         under(r">> full.*\bk\]$", "if k >= 1:"),
         "B-COUNT B-CYCLE scope barrier D-RAW D-ALLOC"),
    Kind("consumer skips a release", RINGS,
         under(WG_RELEASE, "if k >= 2:"), DATA + " B-COUNT D-RELEASE B-CYCLE",
         from_two),
    Kind("one role skips tiles", COOP + ["staged", "separate"],
         under(r"Await\(c_ready|Arrive.*>> c_ready|Await\(full",
               "if tn >= 1:"), "B-COUNT B-CYCLE D-RAW D-ALLOC"),
    Kind("one pre-arrival more", RINGS,
         replace(r"PreArrive\((\d)", r"PreArrive\((\d)",
                 lambda m: f"PreArrive({int(m.group(1)) + 1}"),
         "ring barrier B-COUNT B-TX D-RAW D-ALLOC"),
    Kind("one pre-arrival less", RINGS,
         replace(r"PreArrive\([1-9]", r"PreArrive\((\d)",
                 lambda m: f"PreArrive({int(m.group(1)) - 1}"),
         "B-COUNT B-CYCLE D-ALLOC"),
    # ---- proxies ------------------------------------------------------------
    Kind("proxy crossing weakened before ordinary reads", ["register_a"],
         replace(r"full_a.*cuda_generic_and_async_proxy",
                 "cuda_generic_and_async_proxy", "cuda_in_order"), "", never),
    Kind("proxy crossing weakened", [b for b in RINGS if b != "register_a"],
         replace(r"cuda_generic_and_async_proxy",
                 "cuda_generic_and_async_proxy", "cuda_in_order"), DATA),
    Kind("proxy crossing weakened after the registers", ["register_a"],
         replace(r"^(?!.*full_a).*cuda_generic_and_async_proxy",
                 "cuda_generic_and_async_proxy", "cuda_in_order"), DATA),
    Kind("proxy crossing only temporal", RINGS,
         replace(r"cuda_generic_and_async_proxy",
                 "cuda_generic_and_async_proxy", "cuda_temporal"), DATA),
    Kind("crossing fence in a loop that may not run",
         ["staged", "ping_pong"],
         under(r"Fence\(cuda_in_order, cuda_gen", "for z in seq(0, K / 128):"),
         DATA, only_one),
    Kind("crossing fence in a loop that may not run, cluster",
         ["cluster_staged"],
         under(r"Fence\(cuda_in_order, cuda_gen", "for z in seq(0, K / 32):"),
         DATA, only_one),
    # ---- commits and waits --------------------------------------------------
    Kind("commit of wgmma after the wait", COOP + ["separate", "split_k"],
         swap_lines(r">> group", r"Await\(group"), "D-RELEASE D-FREED",
         from_two),
    Kind("commit of the store after the wait", RINGS,
         swap_lines(r">> (stored|done)", r"Await\((stored|done)"),
         "D-RELEASE D-LIFE"),
    Kind("commit of cp.async after the wait", ["cp_async"],
         move(r">> cg", r"Await\(cg.*1\)", True), DATA),
    Kind("commit of cp.async after the wait, per task", ["exchange"],
         swap_lines(r">> cg", r"Await\(cg"), DATA),
    Kind("one more cp.async group pending", ["cp_async"],
         replace(r"Await\(cg.*, 1\)", r"1\)", "2)"), DATA),
    Kind("last wait leaves an empty group", ["cp_async"],
         replace(r"Await\(cg.*, 0\)", r"0\)", "1)"), "", never),
    Kind("one more cp.async group pending, per task", ["exchange"],
         replace(r"Await\(cg.*, 0\)", r"0\)", "1)"), DATA),
    Kind("wait after the barrier", ["exchange"],
         move(r"Fence", r"for t in", False), DATA + " D-LIFE"),
    Kind("drain of the stores dropped", RINGS,
         drop(r"Await\((stored|done)"), "barrier"),
    Kind("drain of the stores leaves one", RINGS,
         replace(r"Await\((stored|done)", r"0\)", "1)"), "D-RELEASE D-LIFE"),
    Kind("drain of the stores is temporal", RINGS,
         replace(r"Await\((stored|done)", "cuda_in_order", "cuda_temporal"),
         "D-RELEASE D-LIFE"),
    # ---- fences and units ---------------------------------------------------
    Kind("fence removed", ["staged", "cluster_staged", "exchange", "cp_async"],
         drop(r"Fence\(cuda_in_order"), DATA + " D-LIFE D-RELEASE"),
    Kind("fence removed, proxies", ["ping_pong"],
         drop(r"Fence\(cuda_in_order, cuda_gen"), DATA),
    Kind("fence removed whose threads all arrive", ["ping_pong"],
         drop(r"Fence\(cuda_in_order, cuda_in"), "", never),
    Kind("fence by one role", ["staged"],
         under(r"Fence\(cuda_in_order", "with CudaWarps(name='math'):"),
         DATA + " D-LIFE"),
    Kind("fence by each warp", ["exchange"],
         under(r"Fence\(cuda_in_order",
               "for u in cuda_threads(0, 2, unit=cuda_warp):"),
         DATA + " D-LIFE"),
    Kind("fence by each warp, proxies", ["ping_pong"],
         under(r"Fence\(cuda_in_order, cuda_gen",
               "for u in cuda_threads(0, 4, unit=cuda_warp):"), DATA),
    Kind("fence by each CTA", ["cluster_staged"],
         under(r"Fence\(cuda_in_order, cuda_in",
               "for u in cuda_threads(0, 2, unit=cuda_cta_in_cluster):"),
         "D-LIFE"),
    Kind("fence by each CTA, of what a CTA has alone", ["cluster_staged"],
         under(r"Fence\(cuda_in_order, cuda_gen",
               "for u in cuda_threads(0, 2, unit=cuda_cta_in_cluster):"),
         "", never),
    Kind("partial warps", ["exchange", "staged"],
         under(r"Fence\(cuda_in_order",
               "for u in cuda_threads(0, 1, unit=48 * cuda_thread):"),
         "fence unit threads"),
    Kind("multicast a CTA too wide", ["coop_2x1", "coop_1x2", "coop_2x2",
                                      "split_k", "cluster_staged"],
         replace(r"(Arrive|multicast).*0:2", "0:2", "0:3"),
         "bounds shape barrier unit"),
    Kind("multicast to all CTAs", ["coop_2x2"],
         replace(r"Arrive.*>> (full|empty)", r"\[c[mn], 0:2", "[0:2, 0:2"),
         "barrier"),
    Kind("multicast along one side alone", ["coop_2x2"],
         replace(r"Arrive.*>> (full|empty)", r" >> \w+\[c[mn], 0:2, [^\]]*\]",
                 ""), "barrier B-COUNT B-TX D-RAW D-ALLOC"),
    Kind("leading dimension not asserted", RINGS,
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
