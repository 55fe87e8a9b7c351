/* Equal lines at both ends are set aside; between them a longest common
 * subsequence is found by a table, and where that would be too large all of it
 * counts as changed. */
#include "tools/text_diff.h"

#include <string.h>

enum { AROUND = 3, MAX_CELLS = 16000000 };

typedef struct Line {
    const char *at;
    size_t n;
} Line;

typedef struct Lines {
    size_t len;
    Line *data;
} Lines;

/* One line of the result: ' ' in both, '-' only in a, '+' only in b. */
typedef struct Mark {
    char sign;
    Line line;
} Mark;

typedef struct Diff {
    Arena *arena;
    VEC(Mark) marks;
} Diff;

static Lines split(Arena *arena, const char *text)
{
    Lines l = { 0 };
    size_t n = 1;
    for (const char *p = text; *p; p++)
        n += *p == '\n';
    l.data = ARENA_ARRAY(arena, Line, n);
    while (*text) {
        size_t k = strcspn(text, "\n");
        l.data[l.len++] = (Line){ text, k };
        text += k + (text[k] != 0);
    }
    return l;
}

static bool same(const Line *a, const Line *b)
{
    return a->n == b->n && !memcmp(a->at, b->at, a->n);
}

static void mark(Diff *d, char sign, Line line)
{
    Mark m = { sign, line };
    VEC_PUSH(d->arena, &d->marks, m);
}

/* best[i][j]: how many lines a[i..] and b[j..] have in common, in order. */
static void compare(Diff *d, const Line *a, size_t n, const Line *b, size_t m)
{
    size_t i = 0, j = 0, row = m + 1;
    uint32_t *best = NULL;
    if (n && m && (n + 1) * row <= MAX_CELLS) {
        best = ARENA_ARRAY(d->arena, uint32_t, (n + 1) * row);
        for (size_t p = n; p-- > 0;)
            for (size_t q = m; q-- > 0;) {
                uint32_t down = best[(p + 1) * row + q];
                uint32_t right = best[p * row + q + 1];
                best[p * row + q] = same(&a[p], &b[q])
                                        ? best[(p + 1) * row + q + 1] + 1
                                    : down > right ? down
                                                   : right;
            }
    }
    while (best && i < n && j < m) {
        if (same(&a[i], &b[j])) {
            mark(d, ' ', a[i++]);
            j++;
        } else if (best[(i + 1) * row + j] >= best[i * row + j + 1]) {
            mark(d, '-', a[i++]);
        } else {
            mark(d, '+', b[j++]);
        }
    }
    while (i < n)
        mark(d, '-', a[i++]);
    while (j < m)
        mark(d, '+', b[j++]);
}

static void compare_all(Diff *d, const Lines *a, const Lines *b)
{
    size_t head = 0, tail = 0, less = a->len < b->len ? a->len : b->len;
    while (head < less && same(&a->data[head], &b->data[head]))
        mark(d, ' ', a->data[head++]);
    while (tail < less - head &&
           same(&a->data[a->len - 1 - tail], &b->data[b->len - 1 - tail]))
        tail++;
    compare(d, a->data + head, a->len - head - tail, b->data + head,
            b->len - head - tail);
    for (size_t i = a->len - tail; i < a->len; i++)
        mark(d, ' ', a->data[i]);
}

/* ---- hunks -------------------------------------------------------------- */

/* The end of the hunk that begins with the change at `from`: behind the lines
 * around its last change. */
static size_t hunk_end(const Diff *d, size_t from)
{
    size_t last = from;
    for (size_t i = from; i < d->marks.len && i <= last + 2 * AROUND + 1; i++)
        if (d->marks.data[i].sign != ' ')
            last = i;
    size_t end = last + AROUND + 1;
    return end < d->marks.len ? end : d->marks.len;
}

static void print_hunk(const Diff *d, size_t from, size_t to, size_t a,
                       size_t b, StrBuf *out)
{
    size_t n = 0, m = 0;
    for (size_t i = from; i < to; i++) {
        n += d->marks.data[i].sign != '+';
        m += d->marks.data[i].sign != '-';
    }
    strbuf_addf(out, "@@ -%zu,%zu +%zu,%zu @@\n", n ? a + 1 : a, n,
                m ? b + 1 : b, m);
    for (size_t i = from; i < to; i++) {
        strbuf_addc(out, d->marks.data[i].sign);
        strbuf_addn(out, d->marks.data[i].line.at, d->marks.data[i].line.n);
        strbuf_addc(out, '\n');
    }
}

static void print_hunks(const Diff *d, StrBuf *out)
{
    size_t a = 0, b = 0, at = 0; /* lines of a and b before mark `at` */
    for (size_t i = 0; i < d->marks.len;) {
        if (d->marks.data[i].sign == ' ') {
            i++;
            continue;
        }
        size_t from = i > at + AROUND ? i - AROUND : at, to = hunk_end(d, i);
        for (; at < from; at++, a++, b++)
            ;
        print_hunk(d, from, to, a, b, out);
        for (; at < to; at++) {
            a += d->marks.data[at].sign != '+';
            b += d->marks.data[at].sign != '-';
        }
        i = to;
    }
}

void text_diff(const char *a, const char *b, StrBuf *out)
{
    Diff d = { .arena = arena_new() };
    Lines l = split(d.arena, a), m = split(d.arena, b);
    compare_all(&d, &l, &m);
    print_hunks(&d, out);
    arena_free(d.arena);
}
