/* Visibility records and the states of cells, interned.
 *
 * A record stands for a family of the abstract machine's records
 * (docs/semantics.md, "sync-check"): one for each thread t of `own`, which
 * hold the same but for their own signatures (t, own_qual, own_flags); or,
 * with `own` empty, a single one. A cell's state is a set of records that
 * read, a set of those that wrote, and the barrier that frees it. Both are
 * immutable values: equal contents have equal numbers. Synchronisation maps a
 * record to at most two: the part of the family that it reaches, and the
 * rest. */
#ifndef EXO_VERIFY_SYNC_RECORDS_H
#define EXO_VERIFY_SYNC_RECORDS_H

#include "ir/lib.h"
#include "verify/sync/threads.h"

typedef uint32_t RecordId; /* from 1; 0: none */
typedef uint32_t StateId;  /* 0: untouched, unrestricted */
typedef uint32_t BarId;    /* an element of a live barrier, from 1; 0: none */
/* As what frees: an element that nobody will name again. */
#define BAR_NEVER ((BarId)UINT32_MAX)

/* Flags of a signature (thread, qualitative timeline, flag). */
typedef enum VisFlag {
    VIS_atomic,
    VIS_temporal,
    VIS_full,
    VIS_issue,
    VIS_flags
} VisFlag;

/* The threads that have one timeline and flag. */
typedef struct Vis {
    uint32_t slot; /* VIS_flags * timeline + flag */
    ThreadsId threads;
} Vis;

typedef struct Pend {
    BarId bar;
    uint32_t count;
} Pend;

/* REC_READ: of a read. It is over for whoever sees it in time, so that is
 * enough for an Arrive or a Fence to pass on. */
enum { REC_BEFORE_ALLOC = 1, REC_FREED = 2, REC_READ = 4 };

typedef struct Record {
    const Vis *vis;   /* ascending slots, sets not empty */
    const Pend *pend; /* ascending barriers */
    uint32_t n_vis, n_pend;
    ThreadsId own;
    uint32_t own_qual, own_flags; /* flags as bits 1 << VisFlag */
    BarId free_bar;
    uint32_t flags;
    uint32_t origin; /* node that made it; 0: the allocation */
    uint32_t mask;   /* timelines it may hold */
    /* Derived: timelines with a signature that may be witnessed. */
    uint32_t witness;
} Record;

typedef struct State {
    BarId free_bar;
    uint32_t n_reads, n_mutates;
    const RecordId *records; /* reads, then mutates; each ascending */
    /* Derived, of all records: timelines that may be witnessed, and barriers
     * waited for, as bits 1 << BarId % 64. Without both nothing but
     * the end of a barrier changes them. */
    uint32_t witness;
    uint64_t pends;
} State;

/* Lives in an arena of its own, a child of the one given. */
typedef struct RecordTable RecordTable;
RecordTable *record_table_new(Arena *parent, ThreadPool *pool);
void record_table_free(TAKES RecordTable *t);
size_t record_table_bytes(const RecordTable *t);
const Record *record_get(const RecordTable *t, RecordId id);
/* Interns what r says, in its normal form: `own` is dropped where all of the
 * family have its signatures. r's arrays are copied. */
RecordId record_intern(RecordTable *t, const Record *r);
const State *state_get(const RecordTable *t, StateId id);
/* Interns lists that may hold repetitions and members of one family. */
StateId state_intern(RecordTable *t, BarId free_bar, unsigned n_reads,
                     const RecordId *reads, unsigned n_mutates,
                     const RecordId *mutates);

/* Is what was written there released? Then nothing may touch it any more. */
bool state_is_freed(const RecordTable *t, StateId id);

/* The threads that have any of these timelines with this flag, but for own
 * signatures. */
ThreadsId record_visible(const RecordTable *t, const Record *r, uint32_t quals,
                         VisFlag flag);
/* May threads c, by timelines quals, pass what the record demands? */
bool record_permits(const RecordTable *t, const Record *r, ThreadsId c,
                    uint32_t quals, VisFlag flag, bool convergent);

/* ---- synchronisation ---------------------------------------------------- */

/* What becomes of a record: itself (n == 1 and id[0] the same), or others. */
typedef struct RecordImage {
    unsigned n;
    RecordId id[2];
} RecordImage;

RecordImage record_fence(RecordTable *t, RecordId id, ThreadsId c,
                         const SyncTimeline *l1, const SyncTimeline *l2);
/* targets ascending; count: arrivals on the home barrier before. */
RecordImage record_arrive(RecordTable *t, RecordId id, ThreadsId c,
                          const SyncTimeline *l1, unsigned n,
                          const BarId *targets, uint32_t count);
/* Arrivals up to number `limit` are complete; reads_only: as far as they are
 * of reads. */
RecordImage record_await(RecordTable *t, RecordId id, ThreadsId c,
                         const SyncTimeline *l2, BarId bar, int64_t limit,
                         bool reads_only);

/* What becomes of an element of a barrier. */
typedef struct BarFate {
    bool buried;   /* nobody will name it: what waits for it does in vain */
    bool ends;     /* it is no more */
    uint32_t less; /* arrivals that are counted no longer */
} BarFate;

/* fates by BarId. */
RecordImage record_settle(RecordTable *t, RecordId id, const BarFate *fates);
/* What frees, as the fates make it. */
BarId bar_settle(BarId free_bar, const BarFate *fates);
/* Which part of the family does an Arrive or Fence of c with l1 reach? Sets
 * *all where it is all of it; otherwise the threads of `own`. */
ThreadsId record_witnessed(const RecordTable *t, const Record *r, ThreadsId c,
                           const SyncTimeline *l1, bool *all);

#endif
