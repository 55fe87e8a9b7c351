"""The faults that kernels have had, of which every kind of mutant is one, and
the bases that have what the fault is about. `mutants.py LEVEL --places` shows
that each has a mutant there. A kernel that ships has those of the base that it
is like. Kinds of mutants without a fault of this table are further ones.
"""
from bases import COOP, ONE_RING, RINGS

GROUPS = COOP + ["ping_pong", "split_k", "staged", "cluster_staged",
                 "separate"]
CLUSTERS = ["coop_2x1", "coop_1x2", "coop_2x2", "split_k", "cluster_staged"]
STAGED = ["staged", "cluster_staged", "ping_pong"]
ROLES = RINGS + ["sm80_ring"]
AMPERE = ["sm80", "sm80_ring", "cp_async", "exchange"]

# name: (what it is, the bases that can have it)
PAR = {
    "await-dropped": ("the wait for A's or B's data is left out",
                      ROLES + ["sm80"]),
    "await-late": ("the wait for the data comes after the MMA",
                   ROLES + ["sm80"]),
    "barriers-swapped": ("A's barrier for B and B's for A",
                         ["separate", "register_a"]),
    "group-wait-dropped": ("no wait for wgmma before the release", GROUPS),
    "group-pending": ("a wait leaves a group more pending",
                      GROUPS + ["cp_async", "exchange"]),
    "release-unit": ("a slot is released by each part of those who read it",
                     COOP + ["split_k", "staged", "separate",
                             "cluster_staged", "sm80_ring"]),
    "release-early": ("a slot is released before its last read", ROLES),
    "one-role": ("one role leaves out the protocol, or has a guard of its own",
                 ROLES),
    "pre-arrival": ("one pre-arrival more or less", ROLES),
    "proxy": ("a crossing of proxies is missing or weaker", ROLES + ["sm80"]),
    "fence-loop": ("the crossing fence is in a loop that need not run",
                   STAGED + ["sm80"]),
    "commit-late": ("the commit comes after the wait",
                    RINGS + ["cp_async", "exchange"]),
    "wait-behind": ("the wait comes after the barrier that hands on",
                    COOP + ["split_k", "separate", "register_a", "exchange"]),
    "await-index": ("the wait is for another slot than the data's", ROLES),
    "fence-unit": ("a fence by fewer threads",
                   STAGED + ["exchange", "sm80", "sm80_ring"]),
    "partial-warps": ("a unit of warps that are not whole",
                      ["staged", "exchange", "sm80", "sm80_ring"]),
    "multicast": ("a multicast to a CTA too many or too few", CLUSTERS),
    "cluster-fence": ("no fence of the cluster before memory is used again",
                      ["cluster_staged"]),
    "registers-reused": ("A's registers are written before the wait",
                         ["register_a"]),
    "drain": ("the stores are not waited for at the end", RINGS),
    "leading-dimension": ("rows that are no multiple of 16 bytes", ONE_RING),
}

ASYNC = {
    "reset-per-task": ("a ring's counter begins again with each task", ROLES),
    "inner-index": ("slot and parity from the index of the inner loop",
                    [b for b in ROLES if b != "split_k"]),
    "initial-parity": ("the first parity is the other one", ROLES),
    "count": ("a barrier's count is off by one", ROLES),
    "bytes": ("a tile more or less is announced", RINGS),
    "slot-constant": ("always the same slot", ROLES),
    "bulk-read": ("a store's source was read, and its result is published",
                  ONE_RING + ["publish"]),
    "mask": ("a multicast outside the cluster", CLUSTERS),
    "entry": ("no barrier before others are signalled", ROLES),
    "exit": ("a CTA leaves while others signal it",
             ["coop_2x1", "coop_1x2", "coop_2x2", "split_k",
              "cluster_staged"]),
    "named-barrier": ("one number for two sets of threads",
                      ["ping_pong", "two_sets"]),
    "swizzle-base": ("a tile begins 128 bytes further", RINGS),
    "descriptor": ("a field of a matrix descriptor is one unit off", RINGS),
    "announced-late": ("bytes are announced after they may have come", RINGS),
    "grid-wait": ("no wait for the grids before, or not by all or not ahead",
                  ["dependent"]),
    "value": ("another element, operand, map or constant",
              RINGS + ["sm80", "sm80_ring", "cp_async", "publish",
                       "two_sets"]),
    "collective": ("a collective is there twice, or under a condition",
                   RINGS + AMPERE),
}
LEVELS = {"par": PAR, "async": ASYNC}
