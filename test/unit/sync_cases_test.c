/* The synchronisation cases of test/conformance/sync: each .case file names a
 * program, edits of it, and what sync-check says of the result. Every one is
 * also run on the fast and on the plain machine, at small sizes; those of large
 * clusters where EXO_LONG is set. */
#include "sync_compare.h"
#include "verify/sync_check.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FOLDER EXO_SOURCE_DIR "/test/conformance/sync/"

typedef struct Case {
    Arena *arena;
    const char *name;
    VEC(char *) lines; /* of the program */
    char *sizes, *small, *expect, *at;
} Case;

/* ---- edits -------------------------------------------------------------- */

static char *indent_of(Case *c, const char *line)
{
    return arena_strndup(c->arena, line, strspn(line, " "));
}

/* Replaces every occurrence of what in the line. */
static char *replaced(Case *c, const char *line, const char *what,
                      const char *by)
{
    const char *at = strstr(line, what);
    if (!at)
        return arena_strdup(c->arena, line);
    char *rest = replaced(c, at + strlen(what), what, by);
    return arena_printf(c->arena, "%.*s%s%s", (int)(at - line), line, by, rest);
}

static void move_line(Case *c, const char *what, const char *behind)
{
    size_t from = 0, to = 0;
    for (size_t i = 0; i < c->lines.len; i++) {
        from = strstr(c->lines.data[i], what) ? i : from;
        to = strstr(c->lines.data[i], behind) ? i : to;
    }
    cr_assert(from && to, "%s: move %s => %s", c->name, what, behind);
    char *text = c->lines.data[from] + strspn(c->lines.data[from], " ");
    char *moved =
        arena_printf(c->arena, "%s%s", indent_of(c, c->lines.data[to]), text);
    int step = from < to ? 1 : -1;
    size_t end = from < to ? to : to + 1;
    for (size_t i = from; i != end; i += (size_t)step)
        c->lines.data[i] = c->lines.data[i + (size_t)step];
    c->lines.data[end] = moved;
}

static char *edited(Case *c, const char *how, char *line, const char *what,
                    const char *by)
{
    char *indent = indent_of(c, line);
    const char *text = line + strlen(indent);
    if (!strcmp(how, "put"))
        return replaced(c, line, what, by);
    if (!strcmp(how, "drop"))
        return arena_printf(c->arena, "%spass", indent);
    return arena_printf(c->arena, "%s%s%s:\n%s    %s", indent,
                        strcmp(how, "guard") ? "" : "if ", by, indent, text);
}

static void edit(Case *c, const char *how, char *rest)
{
    static const char *const hows[] = { "put", "drop", "guard", "loop" };
    char *arrow = strstr(rest, " => ");
    bool known = false, any = false;
    if (arrow)
        *arrow = '\0';
    const char *by = arrow ? arrow + strlen(" => ") : "";
    if (!strcmp(how, "move")) {
        move_line(c, rest, by);
        return;
    }
    if (!strcmp(how, "last")) {
        for (size_t i = c->lines.len; i-- > 0 && !any;)
            if (strstr(c->lines.data[i], rest)) {
                c->lines.data[i] = edited(c, "drop", c->lines.data[i], "", "");
                any = true;
            }
        cr_assert(any, "%s: last %s", c->name, rest);
        return;
    }
    for (size_t i = 0; i < sizeof hows / sizeof *hows; i++)
        known = known || !strcmp(how, hows[i]);
    cr_assert(known, "%s: %s", c->name, how);
    for (size_t i = 0; i < c->lines.len; i++)
        if (strstr(c->lines.data[i], rest)) {
            c->lines.data[i] = edited(c, how, c->lines.data[i], rest, by);
            any = true;
        }
    cr_assert(any, "%s: %s %s is not in the program", c->name, how, rest);
}

/* ---- reading ------------------------------------------------------------ */

static void read_lines(Case *c, const char *path, bool program)
{
    char line[1024];
    FILE *f = fopen(path, "r");
    cr_assert(f, "%s", path);
    while (fgets(line, sizeof line, f)) {
        line[strcspn(line, "\n")] = '\0';
        char *copy = arena_strdup(c->arena, line), *rest = strchr(copy, ' ');
        if (program) {
            VEC_PUSH(c->arena, &c->lines, copy);
            continue;
        }
        cr_assert(rest, "%s: %s", path, line);
        *rest++ = '\0';
        if (!strcmp(copy, "base"))
            read_lines(c, arena_printf(c->arena, EXO_SOURCE_DIR "/%s", rest),
                       true);
        else if (!strcmp(copy, "sizes"))
            c->sizes = rest;
        else if (!strcmp(copy, "small"))
            c->small = rest;
        else if (!strcmp(copy, "expect"))
            c->expect = rest;
        else if (!strcmp(copy, "at"))
            c->at = rest;
        else if (strcmp(copy, "#") != 0)
            edit(c, copy, rest);
    }
    fclose(f);
}

static int64_t value_of(const Case *c, const char *sizes, const char *name)
{
    char *key = arena_printf(c->arena, " %s=", name);
    const char *at = strstr(arena_printf(c->arena, " %s", sizes), key);
    cr_assert(at, "%s: no %s", c->name, name);
    return atoll(at + strlen(key));
}

/* ---- checking ----------------------------------------------------------- */

static Lib *all_of_lib(Ctx *ctx)
{
    Lib *lib = lib_new(ctx);
    cr_assert(lib_load_dir(lib, EXO_SOURCE_DIR "/lib"));
    return lib;
}

static SizeSet set_of(Case *c, const Loaded *l, const char *text)
{
    SizeSet s = sizes_of(c->arena, l->p->proc);
    int64_t *values = ARENA_ARRAY(c->arena, int64_t, s.n + 1);
    for (unsigned i = 0; i < s.n; i++)
        values[i] = value_of(c, text, var_get(l->m->exprs, s.vars[i])->name);
    s.values = values;
    return s;
}

static bool said(const Ctx *ctx, const char *text)
{
    for (const Diag *d = ctx_diags(ctx); d; d = d->next)
        if (strstr(d->message, text))
            return true;
    return false;
}

static const char *first_message(const Ctx *ctx)
{
    return ctx_diags(ctx) ? ctx_diags(ctx)->message : "nothing was said";
}

/* Records of the plain machine are as large as a cluster. */
enum { FEW_THREADS = 512 };

static bool is_small(const Loaded *l)
{
    const ParDevice *d = l->p->devices[0].par;
    return d->block_dim * d->cluster_dim <= FEW_THREADS || getenv("EXO_LONG");
}

static void check_verdict(Case *c, const Loaded *l)
{
    SizeSet s = set_of(c, l, c->sizes);
    SyncSize sizes[16];
    for (unsigned i = 0; i < s.n; i++)
        sizes[i] =
            (SyncSize){ var_get(l->m->exprs, s.vars[i])->name, s.values[i] };
    CheckResult r =
        sync_check(l->ctx, l->m, l->p->proc,
                   &(SyncAsk){ .n_sizes = s.n, .sizes = sizes }, NULL);
    bool proved = !strcmp(c->expect, "proved");
    cr_expect_eq(r.verdict, proved ? VERDICT_proved : VERDICT_refuted,
                 "%s: verdict %d, %s", c->name, r.verdict,
                 r.reason ? r.reason : "");
    cr_expect(proved || said(l->ctx, c->expect), "%s: %s", c->name,
              first_message(l->ctx));
    cr_expect(!c->at || (r.witness && strstr(r.witness, c->at)), "%s: at %s",
              c->name, r.witness ? r.witness : "nothing");
}

static void run_case(const char *name, Counts *counts)
{
    Case c = { .arena = arena_new(), .name = name };
    read_lines(&c, arena_printf(c.arena, FOLDER "%s", name), false);
    cr_assert(c.sizes && c.small && c.expect, "%s", name);
    StrBuf text = { 0 };
    for (size_t i = 0; i < c.lines.len; i++)
        strbuf_addf(&text, "%s\n", c.lines.data[i]);
    Ctx *ctx = ctx_new();
    Loaded l = load(ctx, all_of_lib(ctx),
                    ctx_add_source(ctx, "p.exo", text.data, text.len));
    cr_assert(l.p && !l.p->unknown, "%s: %s\n%s", name, first_message(ctx),
              text.data);
    check_verdict(&c, &l);
    SizeSet small = set_of(&c, &l, c.small);
    if (is_small(&l))
        compare(&l, &small, HOW_coarse, counts, name);
    unload(&l);
    ctx_free(ctx);
    strbuf_free(&text);
    arena_free(c.arena);
}

Test(sync_cases, all)
{
    Counts counts = { 0 };
    unsigned n = 0;
    DIR *d = opendir(FOLDER);
    cr_assert(d);
    for (struct dirent *e = readdir(d); e; e = readdir(d)) {
        size_t len = strlen(e->d_name);
        if (len < 5 || strcmp(e->d_name + len - 5, ".case") != 0)
            continue;
        run_case(e->d_name, &counts);
        n++;
    }
    closedir(d);
    printf("%u cases: both machines accept %u tasks and refuse %u\n", n,
           counts.accepted, counts.refused);
    cr_assert_geq(n, 20);
    cr_assert_geq(counts.refused, n / 4);
    cr_assert_geq(counts.accepted, 4);
}
