"""Kinds of mutants of the lowered text. Rows: the fault of faults.py, the name,
the edit, the expected codes, where it is wrong. A kind is applied to each base
in whose text it finds a place; where bases are left out, the mutant means the
same there, which a row with `never` says."""
import re
import sys

import value_kinds
from edits import (all_of, drop, move, mutant, replace, twice, unchanged,
                   where)
from kinds import (Kind, always, behind_first, from_one, late, late_from_two,
                   late_off_period, late_off_round, never, number, off_period,
                   past_depth, ragged)


def inside(pattern, head):
    """Each line found goes inside an op of its own."""

    def edit(base):
        made = []
        for i in base.find(pattern):
            line = base.lines[i]
            space = line[: len(line) - len(line.lstrip())]
            made += mutant(base, i, f"{head} {line.strip()[:50]}",
                           base.lines[:i]
                           + [space + head + " {", "  " + line, space + "}"]
                           + base.lines[i + 1:])
        return made

    return edit


def drop_pair(first, second, last):
    """The first, or the last, place where two lines follow each other."""

    def edit(base):
        found = [i for i in base.find(first)
                 if re.search(second, base.lines[i + 1])]
        if not found:
            return []
        i = found[-1 if last else 0]
        return mutant(base, i, "both lines dropped",
                      base.lines[:i] + base.lines[i + 2:])

    return edit


def both_roles(pattern, old, new):
    """All lines found are changed at once."""

    def edit(base):
        found = base.find(pattern)
        lines = [re.sub(old, new, line) if i in found else line
                 for i, line in enumerate(base.lines)]
        return mutant(base, found[0], "in both roles", lines) if found else []

    return edit


def drop_one_of(pattern, several):
    """Each line found is taken away, of those that stand there several times,
    or of the others."""

    def edit(base):
        return [(place, text) for place, text in drop(pattern)(base)
                if (base.lines.count(base.lines[number_of(place)]) > 1)
                == several]

    return edit


def number_of(place):
    """The index of the line that a place names."""
    return int(re.match(r"line (\d+)", place).group(1)) - 1


def other_bands(everywhere):
    """Loops over two dimensions of tasks or more take them in bands twice as
    high, all of them or one of a kernel's."""

    def edit(base):
        lines, made = list(base.lines), []
        heads = base.find(r"^async\.kernel") + [len(lines)]
        for first, end in zip(heads, heads[1:]):
            found = [i for i in base.find(r"async\.tasks .*\), %")
                     if first < i < end]
            for i in found:
                lines[i] = re.sub(
                    r"(?: \{(?:group = (\d+))?(?:, )?(once = True)?\})? \{$",
                    lambda m: f" {{group = {2 * int(m.group(1) or 1)}"
                              f"{', ' + m.group(2) if m.group(2) else ''}}} {{",
                    base.lines[i])
                if len(found) > 1 and not everywhere:
                    made += mutant(base, i, "bands of one role",
                                   base.lines[:i] + [lines[i]]
                                   + base.lines[i + 1:])
        return mutant(base, 0, "bands of all", lines) if everywhere else made

    return edit


def next_slot(single):
    """Arrivals go to the next slot, on rings of one slot or on others."""

    def edit(base):
        made = []
        for i in base.find(r"mbarrier\.arrive %"):
            name = re.search(r"arrive (%\w+)", base.lines[i]).group(1)
            alone = base.find(rf"{name} = async\.mbarrier\.alloc.* ring 1\]")
            line = re.sub(r"ring\((%ring_\d+)\)", r"ring(\1, 1)",
                          base.lines[i])
            if bool(alone) == single:
                made += mutant(base, i, line.strip()[:60],
                               base.lines[:i] + [line] + base.lines[i + 1:])
        return made

    return edit


def flipped(depth):
    """Rings of that depth begin one turn further."""
    return replace(rf"ring\.init .*ring<{depth}>",
                   r"position = 0(.*ring<(\d)>)", r"position = \2\1")


def short_tasks(base, trips, tasks):
    """Perhaps wrong where no wait for a free slot orders two tasks: arrivals of
    cp.async release nothing that their threads read."""
    return None if tasks >= 2 and trips <= base.depth else False


def less(n):
    return n - 1


def more(n):
    return n + 1


PROTOCOL = "B-PHASE B-LAP B-COUNT B-CYCLE B-TX CL-EXIT deadlock machine"
DATA = "D-RAW D-WAR D-WAW X-COVER X-VALUE poison"
ANY = PROTOCOL + " " + DATA
FREE = r"mbarrier\.wait %(\w_)?(empty|free).* origin"
LAST = r"mbarrier\.wait %(\w_)?empty[^()]*\([^()]*\)\]$"
CTA_SYNC = r"^    +async\.barrier\.cta\.sync"
GRID_WAIT = r"async\.griddepcontrol\.wait"
INIT = r"mbarrier\.init"
INIT_PROXY = r"^ +async\.fence\.proxy(?!.*origin)"
LOOP = r"ctl\.for %k .*iter"

KINDS = [
    Kind("", "no fault", unchanged, "", never),
    # ---- positions of rings -------------------------------------------------
    Kind("reset-per-task", "ring counter reset per task",
         lambda base: replace(r"ring\.advance (?!.*origin)", r"(%\w+), .*$",
             r"\1, 0")(base)[:1], ANY, off_period),
    Kind("reset-per-task", "ring counter reset per task, consumers",
         replace(r"ring\.advance %ring_\d+, (?!1 |%warp).*origin",
             r"(%ring_\d+), .* origin", r"\1, 0 origin"), ANY,
         late_off_period),
    Kind("inner-index", "position from the inner index, one role",
         replace(LOOP, r"(%ring_\d+ = )%ring_\d+", r"\1%ring"), ANY,
         off_period, but=["split_k"]),
    Kind("inner-index", "position from the inner index, both roles",
         both_roles(LOOP, r"(%ring_\d+ = )%ring_\d+", r"\1%ring"), ANY,
         off_period, but=["split_k"]),
    Kind("initial-parity", "initial parity flipped", flipped(r"[2-9]"), ANY,
         late, but=["ping_pong"]),
    Kind("initial-parity", "initial parity flipped, of tiles", flipped(r"3"),
         ANY, late, only=["ping_pong"]),
    Kind("initial-parity", "the other begins to take turns", flipped(r"2"), "",
         never, only=["ping_pong"]),
    Kind("", "initial slot shifted",
         replace(r"ring\.init .*ring<[2-9]>", "position = 0", "position = 1"),
         ANY, late),
    Kind("", "ring does not advance",
         replace(r"ring\.advance %ring_\d+, 1 origin", ", 1 origin",
             ", 0 origin"), ANY, late),
    Kind("", "ring advances by two",
         replace(r"ring\.advance %ring_\d+, 1 origin", ", 1 origin",
             ", 2 origin"), ANY, late),
    Kind("", "parity of the wait for a free slot",
         replace(FREE, r", -[234]\)", ")"), ANY, late, but=["ping_pong"]),
    Kind("", "parity of the wait for a free slot, of tiles",
         replace(r"mbarrier\.wait %empty", r", -[234]\)", ")"), ANY, late,
         only=["ping_pong"]),
    Kind("", "the other takes turns first",
         replace(r"mbarrier\.wait %c_free", r", -[234]\)", ")"), "", never,
         only=["ping_pong"]),
    Kind("", "wait for another slot",
         replace(r"mbarrier\.wait %", r"ring\((%ring_\d+)\)", r"ring(\1, -1)"),
         ANY, late),
    Kind("", "arrival on another slot",
         replace(r"mbarrier\.arrive %", r", -(\d)\)",
             lambda m: f", -{int(m.group(1)) + 1})"), ANY, late_off_round),
    Kind("", "arrival on the next slot", next_slot(False), ANY,
         late_off_round),
    Kind("", "arrival on the next slot of one", next_slot(True), "", never),
    Kind("slot-constant", "copies always into one slot",
         replace(r"tensor\.load %(?!q_s)|cp_async_1d",
             r"ring\((%ring)[^)]*\), (?=.* \+:)", r"ring(\1, 5), "), ANY,
         late),
    Kind("", "copies always into the one slot",
         replace(r"tensor\.load %q_s", r"ring\((%ring)[^)]*\), (?=.* \+:)",
             r"ring(\1, 5), "), "", never),
    Kind("slot-constant", "operands always from one slot",
         replace(r"mma_async|ldmatrix", r"ring\((%ring)[^)]*\)", r"ring(\1)"),
         ANY, late),
    # ---- mbarriers ----------------------------------------------------------
    Kind("count", "count off by one",
         number(r"mbarrier\.alloc", "count", more), ANY, late),
    Kind("count", "count one less",
         number(r"mbarrier\.alloc.*count = ([2-9]|\d\d)", "count", less), ANY,
         late),
    Kind("bytes", "bytes announced off",
         number(r"expect_tx", "bytes", lambda n: 2 * n, lambda n: n - 16),
         "B-TX B-CYCLE", behind_first(always)),
    Kind("bytes", "announcement dropped", drop(r"expect_tx"), "B-TX",
         behind_first(always)),
    Kind("announced-late", "announcement after the arrival",
         all_of(move(r"expect_tx %full\[", r"mbarrier\.arrive %full\[", True),
             move(r"expect_tx %full_a", r"mbarrier\.arrive %full_a", True),
             move(r"expect_tx %full_b", r"mbarrier\.arrive %full_b", True)),
         "B-TX", behind_first(always)),
    Kind("", "initialisation dropped", drop(r"mbarrier\.init"), "B-LIFE"),
    Kind("", "one of the two fences of the initialisation",
         where("relaxed = True",
               drop(r"fence\.mbarrier_init|" + INIT_PROXY), False),
         "", never),
    Kind("", "the proxy fence of the initialisation",
         where("relaxed = True", drop(INIT_PROXY)), "", never),
    Kind("", "the fence that relaxed arrivals show",
         where("relaxed = True", drop(r"fence\.mbarrier_init")),
         "B-LIFE CL-ENTRY"),
    Kind("", "initialised behind the fence that relaxed arrivals show",
         where("relaxed = True", move(INIT, r"fence\.mbarrier_init", True)),
         "B-LIFE CL-ENTRY"),
    Kind("", "the fence that relaxed arrivals show is before the last",
         where("relaxed = True", move(r"fence\.mbarrier_init", INIT, False)),
         "B-LIFE CL-ENTRY"),
    Kind("", "initialised between the fences, behind a barrier of threads",
         where("relaxed = True", move(INIT, r"fence\.mbarrier_init", True),
               False), "", never),
    Kind("", "what copies signal is initialised behind the fences",
         where("relaxed = True", move(INIT + r" %(\w_)?full", INIT_PROXY, True),
               False), "B-LIFE", but=["sm80_ring"]),
    Kind("", "what threads alone signal is initialised behind the fences",
         where("relaxed = True",
               move(INIT + r" %(?!(\w_)?full)", INIT_PROXY, True), False), "",
         never),
    Kind("", "a fence of the cluster is arrived at relaxed by the writers",
         lambda base: replace(r"barrier\.cluster\.arrive origin", "arrive",
             "arrive {relaxed = True}")(base)[-2:-1], DATA + " D-PROXY"),
    Kind("", "fences of the initialisation dropped",
         drop_pair(r"fence\.mbarrier_init", r"fence\.proxy", False),
         "B-LIFE CL-ENTRY", but=["sm80_ring"]),
    Kind("", "fences of the initialisation dropped, of barriers of threads",
         drop_pair(r"fence\.mbarrier_init", r"fence\.proxy", False), "",
         never, only=["sm80_ring"]),
    Kind("", "mbarriers share bytes",
         both_roles(r"%full = async\.mbarrier\.alloc", r"offset = \d+",
             "offset = 0"), "B-LIFE"),
    Kind("", "arrival dropped", drop(r"mbarrier\.arrive"), ANY, late),
    Kind("", "arrival twice", twice(r"mbarrier\.arrive"), ANY, late),
    Kind("", "wait for the data dropped",
         drop(r"mbarrier\.wait %(\w_)?(full|ready)"),
         DATA + " B-LAP B-PHASE B-TX B-CYCLE"),
    Kind("", "wait for a free slot dropped", drop(FREE), DATA + " B-LAP B-TX",
         late),
    Kind("", "wait for wgmma dropped", drop(r"^ +async\.wgmma\.wait_group"),
         DATA, late),
    Kind("", "one more group pending",
         number(r"^ +async\.wgmma\.wait_group", "n", more), DATA,
         late_from_two, but=["register_a", "staged", "cluster_staged"]),
    Kind("", "one more group pending, all meet between tasks",
         number(r"^ +async\.wgmma\.wait_group", "n", more), DATA, past_depth,
         only=["staged", "cluster_staged"]),
    Kind("", "one group may be pending where none is",
         number(r"^ +async\.wgmma\.wait_group", "n", more), "", never,
         only=["register_a"]),
    Kind("", "one more group pending at the end",
         number(r"= async\.wgmma\.wait_group", "n", more), "W-REG D-WAR"),
    Kind("", "commit of wgmma dropped", drop(r"wgmma\.commit"), "W-REG D-WAR"),
    Kind("", "fence of wgmma dropped", drop(r"^ +async\.wgmma\.fence"),
         "W-REG"),
    # ---- proxies and warps --------------------------------------------------
    Kind("", "proxy fence of the writers dropped",
         lambda base: drop(r"fence\.proxy \{space")(base)[-1:], "D-PROXY",
         only=["coop_1x1", "coop_2x1", "coop_1x2", "coop_2x2", "split_k"]),
    Kind("", "warp does not meet before its arrival",
         lambda base: drop(r"warp\.sync")(base)[-1:], DATA + " D-PROXY",
         only=["coop_1x1", "coop_2x1", "coop_1x2", "coop_2x2", "split_k"]),
    Kind("", "two lanes arrive",
         lambda base: [m for i in base.find(r"mbarrier\.arrive")
             if "elect" in base.lines[i - 1] for m in mutant( base, i - 1,
             "not elected", base.lines[:i - 1] + [re.sub(r"async\.elect",
             "ctl.if %lane < 2", base.lines[i - 1])] + base.lines[i:])], ANY,
         late),
    # ---- groups of stores and cp.async --------------------------------------
    Kind("", "wait for the store dropped", drop(r"bulk\.wait_group"), DATA),
    Kind("", "wait for the store leaves one",
         number(r"bulk\.wait_group", "n", more), DATA, late),
    Kind("bulk-read", "store awaited until its source was read",
         replace(r"bulk\.wait_group", r"n = 0\}", "n = 0, read = True}"), "",
         never, but=["publish"]),
    Kind("bulk-read", "store awaited until its source was read, published",
         replace(r"bulk\.wait_group", r"n = 0\}", "n = 0, read = True}"),
         "D-TEMPORAL D-RAW", only=["publish"]),
    Kind("", "commit of the store dropped", drop(r"bulk\.commit"), DATA),
    Kind("", "wait for cp.async dropped",
         drop(r"cp\.async\.wait_group \{n = [01]\}"), DATA, only=["exchange"]),
    Kind("", "one more group of cp.async pending",
         number(r"cp\.async\.wait_group \{n = 1", "n", more), DATA),
    Kind("", "commit of cp.async dropped", drop(r"cp\.async\.commit"), DATA),
    Kind("", "wait for cp.async after the barrier",
         move(r"cp\.async\.wait_group", r"barrier\.cta\.sync", True), DATA,
         only=["exchange"]),
    # ---- barriers of threads ------------------------------------------------
    Kind("entry", "cluster entry removed",
         drop_pair(r"cluster\.arrive", r"cluster\.wait", False),
         "CL-ENTRY B-LIFE", but=["reduced"]),
    Kind("entry", "CTA entry removed",
         lambda base: drop(r"^  async\.barrier\.cta\.sync")(base)[:1],
         "B-LIFE"),
    Kind("exit", "a wait at the end removed", drop(LAST), "CL-EXIT", late,
         but=["cluster_staged"]),
    Kind("exit", "a wait at the end removed behind a fence of the cluster",
         drop(LAST), "", never, only=["cluster_staged"]),
    Kind("exit", "a wait at the end one turn early",
         lambda base: replace(LAST, r"-(\d)\)\]$", lambda m:
             f"-{int(m[1]) + base.depth})]")(base),
         "CL-EXIT B-CYCLE B-LAP B-PHASE", late, but=["cluster_staged"]),
    Kind("", "a wait at the end twice", lambda base: twice(LAST)(base)[:1],
         "", never),
    Kind("grid-wait", "wait for the grids before dropped", drop(GRID_WAIT),
         "G-WAIT"),
    Kind("grid-wait", "wait for the grids before behind a read",
         move(GRID_WAIT, r"mem\.load %x", True), "G-WAIT"),
    Kind("grid-wait", "one warp waits for the grids before",
         inside("^  " + GRID_WAIT, "ctl.if %warp < 1"), "G-WAIT"),
    Kind("", "each task waits for the grids before",
         move(GRID_WAIT, r"async\.tasks", True), "", never),
    Kind("", "barrier of a CTA removed", drop(CTA_SYNC),
         DATA + " D-PROXY B-CYCLE deadlock",
         but=["ping_pong", "sm80", "sm80_ring", "exchange", "two_sets"]),
    Kind("", "barrier of each step removed",
         lambda base: drop(CTA_SYNC)(base)[:1], DATA, from_one, only=["sm80"]),
    Kind("", "barrier before the last of a task removed",
         lambda base: drop(CTA_SYNC)(base)[-2:-1], DATA,
         only=["sm80", "sm80_ring", "exchange", "two_sets"]),
    Kind("", "last barrier of a task removed",
         lambda base: drop(CTA_SYNC)(base)[-1:], DATA, lambda base, trips,
         tasks: tasks >= 2, only=["exchange", "two_sets"]),
    Kind("", "last barrier of a task removed, the next has its own",
         lambda base: drop(CTA_SYNC)(base)[-1:], "", never, only=["sm80"]),
    Kind("", "last barrier of a task removed, a ring gives the order",
         lambda base: drop(CTA_SYNC)(base)[-1:], "D-WAR", short_tasks,
         only=["sm80_ring"]),
    Kind("", "barrier of a CTA twice in one role",
         twice(r"^      async\.barrier\.cta\.sync"), "B-CYCLE C-ID deadlock",
         only=["staged"]),
    Kind("named-barrier", "named barrier used by two sets",
         both_roles(r"barrier\.cta\.sync %warp", r"sync %warp floordiv 2 ",
             "sync "), "C-ID", only=["two_sets"]),
    Kind("named-barrier", "named barrier handed from one set to another",
         both_roles(r"barrier\.cta\.sync %warp", r"sync %warp floordiv 4 - 1 ",
             "sync "), "", never, only=["ping_pong"]),
    Kind("", "named barrier 16",
         number(r"barrier\.cta\.sync", "id", lambda n: 16), "C-ID"),
    Kind("", "threads of a barrier",
         number(r"barrier\.cta\.sync", "threads", lambda n: n + 32,
             lambda n: n - 32), "C-ID B-CYCLE deadlock", but=["two_sets"]),
    Kind("", "threads of a barrier, more than meet",
         number(r"barrier\.cta\.sync", "threads", lambda n: n + 32),
         "C-ID B-CYCLE deadlock", only=["two_sets"]),
    Kind("", "threads of a barrier, of two warps each by itself",
         number(r"barrier\.cta\.sync", "threads", lambda n: n - 32),
         "C-ID B-CYCLE deadlock " + DATA, only=["two_sets"]),
    Kind("collective", "collective by half a warp",
         inside(r"^ +async\.(wgmma\.fence|barrier\.cta\.sync|warp\.sync"
             r"|wgmma\.commit)", "ctl.if %lane < 16"), "C-CONV"),
    Kind("collective", "collective by one warp of four",
         inside(r"^ +async\.(wgmma\.fence|wgmma\.commit|setmaxnreg)",
             "ctl.if %warp mod 4 == 0"), "C-CONV"),
    # ---- masks, memory, registers -------------------------------------------
    Kind("mask", "mask leaves the cluster",
         replace(r"cta_xor", r"cta_xor = \(0, ", "cta_xor = (4, "), "CL-MASK"),
    Kind("", "mask names a CTA twice",
         replace(r"cta_xor", r"cta_xor = \(0, ", "cta_xor = (0, 0, "),
         "CL-MASK"),
    Kind("", "mask reaches one CTA less",
         replace(r"cta_xor", r"cta_xor = \(0, \d", "cta_xor = (0"), ANY, late),
    Kind("", "both halves of a multicast to one place",
         replace(r"tensor\.load.*cta_xor",
             r"(%b_s\[.*?), [^,]*%cta[^,]* \+: 8", r"\1, 0 +: 8"), DATA),
    Kind("", "buffers share bytes",
         both_roles(r"%b_s = mem\.alloc", r"offset = \d+", "offset = 0"),
         "M-LIVE " + DATA, from_one),
    Kind("", "shared memory one buffer short",
         number(r"^async\.kernel", "smem_bytes", lambda n: n - 16),
         "M-BASE wellformed"),
    Kind("", "more registers than there are",
         number(r"setmaxnreg.*inc", "count", lambda n: n + 8), "R-POOL",
         but=["reduced"]),
    Kind("", "more registers than asked for, which there are",
         number(r"setmaxnreg.*inc", "count", lambda n: n + 8), "", never,
         only=["reduced"]),
    Kind("swizzle-base", "tile 128 bytes further",
         number(r"mem\.alloc.*Swizzled", "offset", lambda n: n + 128),
         "M-LIVE M-BASE M-SWZ B-LIFE " + DATA, late),
    Kind("descriptor", "operand 16 bytes further",
         replace(r"mma_async", r"(%b_s\[.*), (\d+) \+: (\d+)\]",
             lambda m: f"{m.group(1)}, {int(m.group(2)) + 8} +: "
             f"{m.group(3)}]"), "W-REG bounds X-VALUE"),
    Kind("collective", "setmaxnreg twice", twice(r"setmaxnreg"), "R-POOL"),
    Kind("collective", "collective twice, to no effect",
         twice(r"^ +async\.(wgmma\.fence|wgmma\.commit|warp\.sync)"), "",
         never),
    Kind("", "odd number of registers",
         number(r"setmaxnreg", "count", lambda n: n + 4), "R-POOL"),
    Kind("", "accumulator not there at the first step",
         replace(r"mma_async", r"%k >= 1", "true"), "W-REG D-RAW"),
    Kind("", "an address is not checked",
         drop_one_of(r"host\.align_check", False), "H-CHECK"),
    Kind("", "an address that is checked again is not checked",
         lambda base: drop_one_of(r"host\.align_check", True)(base)[2:], "",
         never),
    Kind("", "a size is not checked", drop(r"host\.check %\w+ >= 1"), "H-CHECK"),
    Kind("", "an address is asked too much of",
         number(r"host\.align_check", "bytes", lambda n: 2 * n), "H-CHECK"),
    # Of bands as high as there are rows no run shows that they differ.
    Kind("", "one role takes its tasks in other bands", other_bands(False),
         "unknown " + ANY, ragged),
    Kind("", "all roles take their tasks in other bands", other_bands(True),
         "", never),
    Kind("", "no meeting where K is ragged",
         replace(r"ctl\.if .* or %K \+ \d+ <= ", r" or %K \+ \d+ <= [^o]* o",
                 " o"), "D-RAW", ragged),
    # A task of split-K has 32 steps, of parts of K 16.
    Kind("", "nothing from step 40 on",
         replace(r"ctl\.if %k >= 1 origin", "%k >= 1", "%k >= 1 and %k < 40"),
         ANY, ragged, but=("split_k", "parts")),
]


class Level:
    """How mutants of the lowered text are made and checked."""

    ending = "eir"
    kinds = KINDS + value_kinds.KINDS
    static = {"C-CONV", "R-POOL", "CL-MASK", "M-BASE", "H-CHECK", "wellformed",
              "syntax"}

    def __init__(self, tools):
        self.tools = tools

    def mutants(self, kind, base):
        if base.lowered is None:
            done = self.tools.run("exo-opt", base.path,
                                  "--pass-pipeline=lower-par-to-async")
            if done.returncode:
                sys.exit(f"{base.path} is not lowered: {done.stderr}")
            base.lowered = Lowered(base, done.stdout)
        return kind.edit(base.lowered)

    @staticmethod
    def arguments(base, path):
        """The program is the base's, whose checks are not run again."""
        return [base.path, "--lowered=" + path, "--level=async"]


class Lowered:
    """The printed text of a lowered base, for the edits."""

    def __init__(self, base, text):
        self.name = base.name
        self.depth = base.depth
        self.lines = text.split("\n")

    def find(self, pattern):
        return [i for i, line in enumerate(self.lines)
                if re.search(pattern, line) and not line.startswith("//")]
