/* Sets of threads of a cluster, interned: equal sets have equal numbers, so
 * that records which hold them compare by number. Everything lives in the
 * arena of the pool. */
#ifndef EXO_VERIFY_SYNC_THREADS_H
#define EXO_VERIFY_SYNC_THREADS_H

#include "ir/support.h"

typedef struct ThreadPool ThreadPool;
typedef uint32_t ThreadsId; /* 0: the empty set */

/* Sets of threads 0 .. n - 1. */
ThreadPool *thread_pool_new(Arena *arena, unsigned n);
unsigned thread_pool_size(const ThreadPool *p);
/* One bit a thread, in (n + 63) / 64 words. */
ThreadsId threads_intern(ThreadPool *p, const uint64_t *words);
const uint64_t *threads_words(const ThreadPool *p, ThreadsId id);
ThreadsId threads_all(const ThreadPool *p);

ThreadsId threads_and(ThreadPool *p, ThreadsId a, ThreadsId b);
ThreadsId threads_or(ThreadPool *p, ThreadsId a, ThreadsId b);
ThreadsId threads_minus(ThreadPool *p, ThreadsId a, ThreadsId b);
unsigned threads_count(const ThreadPool *p, ThreadsId a);
bool threads_has(const ThreadPool *p, ThreadsId a, unsigned thread);

static inline bool threads_subset(ThreadPool *p, ThreadsId a, ThreadsId b)
{
    return threads_minus(p, a, b) == 0;
}

/* `thread 5 of CTA 0`, `warpgroup 1 of CTA 0`, `warps 4 to 11 of each CTA`. */
void threads_print(StrBuf *out, const ThreadPool *p, ThreadsId a,
                   int64_t block_dim);

#endif
