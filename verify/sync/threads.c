/* Interned sets of threads. Operations are remembered in a table indexed by
 * the two numbers, which answers nearly all of them. */
#include "verify/sync/threads.h"

#include <string.h>

enum { OP_and, OP_or, OP_minus, MEMO = 1 << 14 };

typedef struct Memo {
    uint32_t op, a, b, result;
} Memo;

struct ThreadPool {
    Arena *arena;
    unsigned n, n_words;
    VEC(const uint64_t *) sets;
    VEC(unsigned) counts;
    uint32_t *slots; /* set number by hash of its words; 0: free */
    size_t n_slots;
    Memo *memo;
    ThreadsId all;
};

static uint32_t *slot_of(ThreadPool *p, const uint64_t *words)
{
    size_t i = hash_bytes(HASH_SEED, words, p->n_words * sizeof *words);
    for (;; i++) {
        uint32_t *s = &p->slots[i & (p->n_slots - 1)];
        if (!*s || !memcmp(p->sets.data[*s], words, p->n_words * sizeof *words))
            return s;
    }
}

static void grow_slots(ThreadPool *p)
{
    p->n_slots *= 2;
    p->slots = ARENA_ARRAY(p->arena, uint32_t, p->n_slots);
    for (size_t i = 1; i < p->sets.len; i++)
        *slot_of(p, p->sets.data[i]) = (uint32_t)i;
}

ThreadsId threads_intern(ThreadPool *p, const uint64_t *words)
{
    unsigned count = 0;
    for (unsigned i = 0; i < p->n_words; i++)
        count += (unsigned)__builtin_popcountll(words[i]);
    if (!count)
        return 0;
    uint32_t *slot = slot_of(p, words);
    if (*slot)
        return *slot;
    uint32_t id = (uint32_t)p->sets.len;
    *slot = id;
    VEC_PUSH(p->arena, &p->sets,
             (const uint64_t *)arena_memdup(p->arena, words,
                                            p->n_words * sizeof *words));
    VEC_PUSH(p->arena, &p->counts, count);
    if (2 * p->sets.len > p->n_slots)
        grow_slots(p);
    return id;
}

ThreadPool *thread_pool_new(Arena *arena, unsigned n)
{
    ThreadPool *p = ARENA_NEW(arena, ThreadPool);
    p->arena = arena;
    p->n = n;
    p->n_words = (n + 63) / 64;
    p->n_slots = 256;
    p->slots = ARENA_ARRAY(arena, uint32_t, p->n_slots);
    p->memo = ARENA_ARRAY(arena, Memo, MEMO);
    uint64_t *words = ARENA_ARRAY(arena, uint64_t, p->n_words + 1);
    VEC_PUSH(arena, &p->sets, (const uint64_t *)words);
    VEC_PUSH(arena, &p->counts, 0);
    uint64_t *all = ARENA_ARRAY(arena, uint64_t, p->n_words + 1);
    for (unsigned i = 0; i < n; i++)
        all[i / 64] |= UINT64_C(1) << (i % 64);
    p->all = threads_intern(p, all);
    return p;
}

unsigned thread_pool_size(const ThreadPool *p)
{
    return p->n;
}

const uint64_t *threads_words(const ThreadPool *p, ThreadsId id)
{
    return p->sets.data[id];
}

ThreadsId threads_all(const ThreadPool *p)
{
    return p->all;
}

static uint64_t combine(unsigned op, uint64_t a, uint64_t b)
{
    return op == OP_and ? a & b : op == OP_or ? a | b : a & ~b;
}

static ThreadsId apply(ThreadPool *p, unsigned op, ThreadsId a, ThreadsId b)
{
    Memo *m = &p->memo[(a * 2654435761u ^ b * 40503u ^ op) & (MEMO - 1)];
    if (m->op == op && m->a == a && m->b == b && (a | b))
        return m->result;
    uint64_t few[64], *words = few;
    if (p->n_words > 64)
        words = ARENA_ARRAY(p->arena, uint64_t, p->n_words);
    const uint64_t *x = p->sets.data[a], *y = p->sets.data[b];
    for (unsigned i = 0; i < p->n_words; i++)
        words[i] = combine(op, x[i], y[i]);
    *m = (Memo){ op, a, b, threads_intern(p, words) };
    return m->result;
}

ThreadsId threads_and(ThreadPool *p, ThreadsId a, ThreadsId b)
{
    return a == b ? a : !a || !b ? 0 : apply(p, OP_and, a, b);
}

ThreadsId threads_or(ThreadPool *p, ThreadsId a, ThreadsId b)
{
    return a == b || !b ? a : !a ? b : apply(p, OP_or, a, b);
}

ThreadsId threads_minus(ThreadPool *p, ThreadsId a, ThreadsId b)
{
    return a == b ? 0 : !a || !b ? a : apply(p, OP_minus, a, b);
}

unsigned threads_count(const ThreadPool *p, ThreadsId a)
{
    return p->counts.data[a];
}

bool threads_has(const ThreadPool *p, ThreadsId a, unsigned thread)
{
    return p->sets.data[a][thread / 64] >> (thread % 64) & 1;
}

/* ---- in words ----------------------------------------------------------- */

static void print_range(StrBuf *out, int64_t lo, int64_t hi, int64_t block_dim)
{
    if (lo == 0 && hi == block_dim)
        strbuf_add(out, "all threads");
    else if (hi - lo == 1)
        strbuf_addf(out, "thread %lld", (long long)lo);
    else if (hi - lo == 128 && lo % 128 == 0)
        strbuf_addf(out, "warpgroup %lld", (long long)(lo / 128));
    else if (hi - lo == 32 && lo % 32 == 0)
        strbuf_addf(out, "warp %lld", (long long)(lo / 32));
    else if (lo % 32 == 0 && hi % 32 == 0)
        strbuf_addf(out, "warps %lld to %lld", (long long)(lo / 32),
                    (long long)(hi / 32 - 1));
    else
        strbuf_addf(out, "threads %lld to %lld", (long long)lo,
                    (long long)(hi - 1));
}

void threads_print(StrBuf *out, const ThreadPool *p, ThreadsId a,
                   int64_t block_dim)
{
    enum { MOST = 6 };
    unsigned ranges = 0;
    for (int64_t t = 0; t < (int64_t)p->n; t++) {
        if (!threads_has(p, a, (unsigned)t))
            continue;
        int64_t cta = t / block_dim, end = t;
        while (end < (cta + 1) * block_dim && threads_has(p, a, (unsigned)end))
            end++;
        if (++ranges > MOST) {
            strbuf_add(out, ", ..");
            return;
        }
        strbuf_add(out, ranges > 1 ? ", " : "");
        print_range(out, t - cta * block_dim, end - cta * block_dim, block_dim);
        if ((int64_t)p->n > block_dim)
            strbuf_addf(out, " of CTA %lld", (long long)cta);
        t = end - 1;
    }
    if (!ranges)
        strbuf_add(out, "no thread");
}
