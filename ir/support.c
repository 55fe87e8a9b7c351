/* Arenas as lists of blocks, the first of them small and each next one twice as
 * large up to a limit, since most arenas hold little and every block is
 * cleared; vectors that grow by doubling, string builders. */
#include "ir/support.h"

#include <stdalign.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Of the first block of an arena, and of the largest that many share. */
#define ARENA_LEAST ((size_t)1 << 10)
#define ARENA_BLOCK ((size_t)64 << 10)

typedef struct ArenaBlock {
    struct ArenaBlock *next;
    size_t used, size;
    alignas(max_align_t) unsigned char data[];
} ArenaBlock;

struct Arena {
    ArenaBlock *top;
    size_t bytes; /* of its blocks and those of its children */
    size_t next;  /* size of the next block; 0: none yet */
    Arena *parent, *children, *before, *after; /* siblings */
};

void panic(const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    fputs("internal error: ", stderr);
    vfprintf(stderr, fmt, ap);
    fputc('\n', stderr);
    va_end(ap);
    abort();
}

static void *checked(void *p)
{
    if (!p)
        panic("out of memory");
    return p;
}

Arena *arena_new(void)
{
    return checked(calloc(1, sizeof(Arena)));
}

Arena *arena_child(Arena *parent)
{
    Arena *a = arena_new();
    a->parent = parent;
    a->after = parent->children;
    if (a->after)
        a->after->before = a;
    parent->children = a;
    return a;
}

static void leave_parent(const Arena *a)
{
    if (a->after)
        a->after->before = a->before;
    if (a->before)
        a->before->after = a->after;
    else if (a->parent)
        a->parent->children = a->after;
}

void arena_free(Arena *a)
{
    if (!a)
        return;
    while (a->children)
        arena_free(a->children);
    for (Arena *up = a->parent; up; up = up->parent)
        up->bytes -= a->bytes;
    leave_parent(a);
    for (ArenaBlock *b = a->top, *next; b; b = next) {
        next = b->next;
        free(b);
    }
    free(a);
}

static ArenaBlock *block_new(Arena *a, size_t size)
{
    ArenaBlock *b = checked(calloc(1, sizeof *b + size));
    b->size = size;
    for (Arena *up = a; up; up = up->parent)
        up->bytes += size;
    return b;
}

/* A block with room for n bytes at its beginning: on top, to be filled by what
 * comes, or for these alone and behind the one that is being filled. */
static ArenaBlock *block_for(Arena *a, size_t n)
{
    size_t size = a->next ? a->next : ARENA_LEAST;
    bool alone = n > size / 4;
    ArenaBlock *b = block_new(a, alone ? n : size);
    a->next = size < ARENA_BLOCK ? 2 * size : size;
    if (alone && a->top) {
        b->next = a->top->next;
        a->top->next = b;
    } else {
        b->next = a->top;
        a->top = b;
    }
    return b;
}

void *arena_alloc(Arena *a, size_t n)
{
    const size_t unit = alignof(max_align_t);
    if (n > SIZE_MAX / 2)
        panic("out of memory");
    n = (n + unit - 1) / unit * unit;
    if (n == 0)
        n = unit;
    ArenaBlock *b = a->top;
    if (!b || b->size - b->used < n)
        b = block_for(a, n);
    void *p = b->data + b->used;
    b->used += n;
    return p;
}

void *arena_memdup(Arena *a, const void *p, size_t n)
{
    void *copy = arena_alloc(a, n);
    if (n)
        memcpy(copy, p, n);
    return copy;
}

char *arena_strndup(Arena *a, const char *s, size_t n)
{
    char *copy = arena_alloc(a, n + 1);
    memcpy(copy, s, n);
    return copy;
}

char *arena_strdup(Arena *a, const char *s)
{
    return arena_strndup(a, s, strlen(s));
}

char *arena_vprintf(Arena *a, const char *fmt, va_list ap)
{
    va_list again;
    va_copy(again, ap);
    int n = vsnprintf(NULL, 0, fmt, again);
    va_end(again);
    if (n < 0)
        panic("arena_printf: bad format '%s'", fmt);
    char *s = arena_alloc(a, (size_t)n + 1);
    vsnprintf(s, (size_t)n + 1, fmt, ap);
    return s;
}

char *arena_printf(Arena *a, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    char *s = arena_vprintf(a, fmt, ap);
    va_end(ap);
    return s;
}

size_t arena_bytes(const Arena *a)
{
    return a->bytes;
}

void *vec_grow(Arena *a, void *data, size_t *cap, size_t len, size_t elem)
{
    size_t wanted = *cap ? *cap * 2 : 4;
    void *grown = arena_alloc(a, wanted * elem);
    if (len)
        memcpy(grown, data, len * elem);
    *cap = wanted;
    return grown;
}

void strbuf_free(StrBuf *b)
{
    free(b->data);
    *b = (StrBuf){ 0 };
}

static void strbuf_room(StrBuf *b, size_t more)
{
    if (b->len + more + 1 <= b->cap)
        return;
    size_t cap = b->cap ? b->cap : 64;
    while (cap < b->len + more + 1)
        cap *= 2;
    b->data = checked(realloc(b->data, cap));
    b->cap = cap;
}

void strbuf_addn(StrBuf *b, const char *s, size_t n)
{
    strbuf_room(b, n);
    if (n)
        memcpy(b->data + b->len, s, n);
    b->len += n;
    b->data[b->len] = '\0';
}

void strbuf_add(StrBuf *b, const char *s)
{
    strbuf_addn(b, s, strlen(s));
}

void strbuf_addc(StrBuf *b, char c)
{
    strbuf_addn(b, &c, 1);
}

void strbuf_vaddf(StrBuf *b, const char *fmt, va_list ap)
{
    va_list again;
    va_copy(again, ap);
    int n = vsnprintf(NULL, 0, fmt, again);
    va_end(again);
    if (n < 0)
        panic("strbuf_addf: bad format '%s'", fmt);
    strbuf_room(b, (size_t)n);
    vsnprintf(b->data + b->len, (size_t)n + 1, fmt, ap);
    b->len += (size_t)n;
}

void strbuf_addf(StrBuf *b, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    strbuf_vaddf(b, fmt, ap);
    va_end(ap);
}

const char *strbuf_text(const StrBuf *b)
{
    return b->data ? b->data : "";
}

uint64_t hash_bytes(uint64_t h, const void *p, size_t n)
{
    const unsigned char *c = p;
    for (size_t i = 0; i < n; i++)
        h = (h ^ c[i]) * UINT64_C(1099511628211);
    return h;
}

uint64_t hash_u64(uint64_t h, uint64_t x)
{
    return hash_bytes(h, &x, sizeof x);
}
