/* Differences, applied to the first text, give the second. */
#include "tools/text_diff.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Copies n lines of *p to out and moves on. */
static void copy_lines(const char **p, unsigned n, StrBuf *out)
{
    while (n--) {
        size_t k = strcspn(*p, "\n") + 1;
        strbuf_addn(out, *p, k);
        *p += k;
    }
}

/* Applies hunks to text a; false when one does not fit. */
static bool apply(const char *a, const char *diff, StrBuf *out)
{
    unsigned done = 0;
    while (*diff) {
        unsigned from, n, to, m;
        if (sscanf(diff, "@@ -%u,%u +%u,%u @@", &from, &n, &to, &m) != 4)
            return false;
        unsigned start = n ? from - 1 : from;
        copy_lines(&a, start - done, out);
        done = start + n;
        diff += strcspn(diff, "\n") + 1;
        while (*diff && *diff != '@') {
            size_t k = strcspn(diff, "\n");
            if (*diff != '+' && strncmp(a, diff + 1, k))
                return false;
            if (*diff != '-')
                strbuf_addn(out, diff + 1, k);
            if (*diff != '+')
                a += k;
            diff += k + 1;
        }
    }
    strbuf_add(out, a);
    return true;
}

static void expect_applies(const char *a, const char *b)
{
    StrBuf diff = { 0 }, got = { 0 };
    text_diff(a, b, &diff);
    cr_expect(apply(a, strbuf_text(&diff), &got), "%s", strbuf_text(&diff));
    cr_expect_str_eq(strbuf_text(&got), b, "%s", strbuf_text(&diff));
    strbuf_free(&diff);
    strbuf_free(&got);
}

Test(text_diff, equal_texts_have_none)
{
    StrBuf out = { 0 };
    text_diff("a\nb\n", "a\nb\n", &out);
    text_diff("", "", &out);
    cr_expect_eq(out.len, 0);
    strbuf_free(&out);
}

Test(text_diff, a_line_changed_among_others)
{
    StrBuf out = { 0 };
    text_diff("1\n2\n3\n4\n5\n6\n7\n8\n9\n", "1\n2\n3\n4\nx\n6\n7\n8\n9\n",
              &out);
    cr_expect_str_eq(strbuf_text(&out),
                     "@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+x\n 6\n 7\n 8\n");
    strbuf_free(&out);
}

Test(text_diff, far_changes_are_hunks_of_their_own)
{
    StrBuf out = { 0 };
    text_diff("a\n1\n2\n3\n4\n5\n6\n7\nb\n", "c\n1\n2\n3\n4\n5\n6\n7\nd\n",
              &out);
    const char *second = strstr(strbuf_text(&out) + 1, "@@ -6,4");
    cr_expect(second, "%s", strbuf_text(&out));
    strbuf_free(&out);
}

Test(text_diff, random_texts)
{
    unsigned state = 1;
    for (int round = 0; round < 300; round++) {
        char a[128] = "", b[128] = "";
        char *const texts[] = { a, b };
        for (int t = 0; t < 2; t++) {
            state = state * 1103515245u + 12345u;
            unsigned n = (state >> 16) % 24;
            for (unsigned i = 0; i < n; i++) {
                state = state * 1103515245u + 12345u;
                sprintf(texts[t] + 2 * i, "%c\n", 'a' + (state >> 16) % 4);
            }
        }
        expect_applies(a, b);
    }
}
