/* make_instr: the procedure becomes an instruction whose body it is.
 *
 * The entry is written as text and read like any other of a program, so it is
 * checked like any other, prints with the program, and replace finds it. What
 * its PTX does is the author's word, as in every entry. */
#include "passes/schedule/ops.h"

#include "ir/lib_entry.h"

/* The procedure's text from its `def`, without comments before it. */
static const char *proc_text(Sched *s)
{
    const ExoListing *l = sched_listing(s);
    const char *p = l ? l->text : NULL;
    while (p && *p == '#')
        p = strchr(p, '\n') ? strchr(p, '\n') + 1 : NULL;
    return p;
}

static void add_accesses(Sched *s, const char *words, StrBuf *out)
{
    const Block *b = s->proc->blocks[0];
    for (unsigned i = 0; i < b->n_args; i++)
        if (b->args[i].value)
            strbuf_addf(out, "    access %s: %s\n", b->args[i].value->name,
                        words);
}

/* The lines below the header, a level deeper. */
static void add_body(const char *lines, StrBuf *out)
{
    strbuf_add(out, "    body:\n");
    while (*lines) {
        size_t n = strcspn(lines, "\n");
        strbuf_add(out, n ? "    " : "");
        strbuf_addn(out, lines, n);
        strbuf_addc(out, '\n');
        lines += n + (lines[n] != 0);
    }
}

static void write_entry(Sched *s, const SchedArg *a, const char *access,
                        const char *text, StrBuf *out)
{
    const char *params = text + strcspn(text, "(");
    const char *body = strchr(params, '\n');
    strbuf_addf(out, "instr %s%.*s\n", a[0].s, (int)(body - params), params);
    strbuf_addf(out, "    unit %s\n    timeline %s\n", a[1].s, a[2].s);
    add_accesses(s, access, out);
    add_body(body + 1, out);
    strbuf_addf(out, "    ptx %s: \"%s\"\n", a[4].s, a[3].s);
}

/* Does the text stay in its place in the entry? */
static bool is_plain(Sched *s, const SchedArg *a)
{
    return !strpbrk(a->s, "\"\n\\:") ||
           sched_fail(s, a->loc, "'%s' holds a quote, colon or backslash",
                      a->s);
}

static bool ptx_is_plain(Sched *s, const SchedArg *a)
{
    return !strpbrk(a->s, "\"\n\\") ||
           sched_fail(s, a->loc, "the PTX holds a quote or backslash");
}

bool sched_make_instr(Sched *s, const SchedArg *a)
{
    const char *text = proc_text(s);
    const char *access = a[5].given                   ? a[5].s
                         : strstr(a[2].s, "in_order") ? "in_order"
                                                      : "out_of_order";
    if (!text || !is_plain(s, &a[1]) || !is_plain(s, &a[2]) ||
        !ptx_is_plain(s, &a[3]) || !is_plain(s, &a[4]) ||
        (a[5].given && !is_plain(s, &a[5])))
        return false;
    const Op *named = module_symbol(s->m, a[0].s);
    if (lib_find(s->m->lib, AST_proc, a[0].s) || (named && named != s->proc))
        return sched_fail(s, a[0].loc, "there is a '%s' already", a[0].s);
    if (!sched_not_called(s, a[0].loc))
        return false;
    StrBuf entry = { 0 };
    write_entry(s, a, access, text, &entry);
    Lib *lib = lib_child(s->m->lib, s->ctx);
    uint32_t file =
        ctx_add_source(s->ctx, arena_printf(s->arena, "make_instr %s", a[0].s),
                       strbuf_text(&entry), entry.len);
    strbuf_free(&entry);
    s->m->lib = lib;
    kin_note(s->kin, KIN_breaks,
             ctx_intern(s->ctx, op_attr_str(s->proc, "name", "")), NULL);
    op_detach(s->proc);
    s->proc = NULL;
    const Instr *in = lib_load_text(lib, file, false) && lib_check_entries(lib)
                          ? instr_instance(lib, a[0].loc, a[0].s, 0, NULL)
                          : NULL;
    return in && lib_unit(lib, a[1].loc, in->unit);
}
