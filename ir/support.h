/* Arenas, vectors, string builders and panics: what every folder stands on.
 *
 * An Arena owns everything allocated from it and is freed as a whole; nothing
 * in it is freed singly. Memory comes zeroed. Out of memory is a panic.
 * A StrBuf is the one growable string; it lives on the heap and belongs to
 * whoever made it. */
#ifndef EXO_IR_SUPPORT_H
#define EXO_IR_SUPPORT_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define EXO_PRINTF(f, a) __attribute__((format(printf, f, a)))
#define EXO_NORETURN __attribute__((noreturn))
#else
#define EXO_PRINTF(f, a)
#define EXO_NORETURN
#endif

/* Ownership words, for the reader: the callee takes, the caller is given. */
#define TAKES
#define GIVES

/* A broken invariant of ours, or no memory: prints and aborts. Never for a
 * fault of the input. */
EXO_NORETURN void panic(const char *fmt, ...) EXO_PRINTF(1, 2);

typedef struct Arena Arena;

GIVES Arena *arena_new(void);
/* Freed with its parent, or before it. */
Arena *arena_child(Arena *parent);
void arena_free(TAKES Arena *a);
/* n zeroed bytes, aligned for any type; n = 0 gives a unique pointer. */
void *arena_alloc(Arena *a, size_t n);
char *arena_strdup(Arena *a, const char *s);
char *arena_strndup(Arena *a, const char *s, size_t n);
char *arena_printf(Arena *a, const char *fmt, ...) EXO_PRINTF(2, 3);
char *arena_vprintf(Arena *a, const char *fmt, va_list ap);
void *arena_memdup(Arena *a, const void *p, size_t n);
/* Bytes that it holds, and its children do. */
size_t arena_bytes(const Arena *a);

#define ARENA_NEW(a, T) ((T *)arena_alloc((a), sizeof(T)))
#define ARENA_ARRAY(a, T, n) ((T *)arena_alloc((a), (size_t)(n) * sizeof(T)))

/* A vector in an arena: growing leaves the old storage to the arena. */
#define VEC(T)           \
    struct {             \
        T *data;         \
        size_t len, cap; \
    }
#define VEC_PUSH(a, v, x)                                             \
    do {                                                              \
        if ((v)->len == (v)->cap)                                     \
            (v)->data = vec_grow((a), (v)->data, &(v)->cap, (v)->len, \
                                 sizeof *(v)->data);                  \
        (v)->data[(v)->len++] = (x);                                  \
    } while (0)
void *vec_grow(Arena *a, void *data, size_t *cap, size_t len, size_t elem);

typedef struct StrBuf {
    char *data; /* always terminated once anything was added, else NULL */
    size_t len, cap;
} StrBuf;

void strbuf_free(StrBuf *b);
void strbuf_add(StrBuf *b, const char *s);
void strbuf_addn(StrBuf *b, const char *s, size_t n);
void strbuf_addc(StrBuf *b, char c);
void strbuf_addf(StrBuf *b, const char *fmt, ...) EXO_PRINTF(2, 3);
void strbuf_vaddf(StrBuf *b, const char *fmt, va_list ap);
/* The text, "" when nothing was added; valid until the next change. */
const char *strbuf_text(const StrBuf *b);

/* FNV-1a over n bytes, chained through h (start with HASH_SEED). */
#define HASH_SEED UINT64_C(1469598103934665603)
uint64_t hash_bytes(uint64_t h, const void *p, size_t n);
uint64_t hash_u64(uint64_t h, uint64_t x);
/* .. for tables in memory: a step a word, of which the high bits come down to
 * the low ones that tables take. */
static inline uint64_t hash_word(uint64_t h, uint64_t x)
{
    h = (h ^ x) * UINT64_C(0xd6e8feb86659fd93);
    return h ^ h >> 32;
}

#endif
