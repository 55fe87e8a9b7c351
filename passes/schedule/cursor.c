/* Cursors and arguments of steps. */
#include "passes/schedule/cursor.h"

#include "passes/schedule/pattern.h"

#include <stdlib.h>
#include <string.h>

/* ---- statements -------------------------------------------------------- */

typedef struct SidWalk {
    uint32_t sid;
    Op *found;
} SidWalk;

static bool match_sid(Op *op, void *user)
{
    SidWalk *w = user;
    if (op->sid == w->sid && op_has(op, OPT_STMT))
        w->found = op;
    return !w->found;
}

Op *sched_by_sid(Sched *s, uint32_t sid)
{
    SidWalk w = { .sid = sid };
    if (sid)
        block_walk(s->proc->blocks[0], match_sid, &w);
    return w.found;
}

const char *sched_unquote(Sched *s, const char *text)
{
    size_t n = strlen(text);
    if (n >= 2 && text[0] == '`' && text[n - 1] == '`')
        return arena_strndup(s->arena, text + 1, n - 2);
    return text;
}

/* Adds the statements that a report is to show. */
static void show(Sched *s, Diag *d, const OpVec *found)
{
    enum { SHOWN = 8 };
    for (size_t i = 0; i < found->len && i < SHOWN; i++)
        diag_note(s->ctx, d, (Loc){ 0 }, "#%zu: %s", i,
                  sched_stmt_text(s, found->data[i]));
    if (found->len > SHOWN)
        diag_note(s->ctx, d, (Loc){ 0 }, "and %zu more", found->len - SHOWN);
}

typedef struct Statements {
    Sched *s;
    OpVec *out;
    const Op *top;
} Statements;

static bool note_stmt(Op *op, void *user)
{
    Statements *w = user;
    if (op_has(op, OPT_STMT) && op != w->top)
        VEC_PUSH(w->s->arena, w->out, op);
    return true;
}

static bool no_match(Sched *s, Loc loc, const char *pattern, Op *under)
{
    OpVec all = { 0 };
    Statements w = { s, &all, under };
    op_walk(under ? under : s->proc, note_stmt, &w);
    Diag *d = diag_error(s->ctx, loc, "schedule",
                         "nothing matches `%s`; what is there:", pattern);
    show(s, d, &all);
    return false;
}

static bool pick(Sched *s, Loc loc, const char *pattern, Op *under, int64_t k,
                 Op **out)
{
    OpVec found = { 0 };
    if (!pattern_find(s, under, loc, pattern, &found))
        return false;
    if (found.len == 0)
        return no_match(s, loc, pattern, under);
    if (k < 0 && found.len > 1) {
        Diag *d = diag_error(s->ctx, loc, "schedule",
                             "`%s` matches %zu statements", pattern, found.len);
        show(s, d, &found);
        diag_fix(s->ctx, d, "choose one by #k, or look below another by /");
        return false;
    }
    if (k >= (int64_t)found.len) {
        Diag *d = diag_error(s->ctx, loc, "schedule", "`%s` has no match #%lld",
                             pattern, (long long)k);
        show(s, d, &found);
        return false;
    }
    *out = found.data[k < 0 ? 0 : k];
    return true;
}

/* ---- cursors ----------------------------------------------------------- */

typedef struct CursorText {
    Sched *s;
    const SchedNameVec *names;
    Loc loc;
    const char *at;
} CursorText;

static const SchedName *name_find(const SchedNameVec *names, const char *name)
{
    for (size_t i = names->len; i-- > 0;)
        if (names->data[i].name == name)
            return &names->data[i];
    return NULL;
}

static Op *statement_of(Sched *s, const SchedName *k)
{
    return sched_by_sid(s, edit_forward(s->log, k->from, k->sid));
}

Op *cursor_named(Sched *s, const SchedNameVec *names, const char *name)
{
    const SchedName *k = name_find(names, ctx_intern(s->ctx, name));
    return k ? statement_of(s, k) : NULL;
}

static bool named_part(CursorText *t, size_t n, Op **out)
{
    const char *name = ctx_intern_n(t->s->ctx, t->at, n);
    const SchedName *k = name_find(t->names, name);
    t->at += n;
    if (!k)
        return sched_fail(t->s, t->loc,
                          "no step was named '%s'; patterns stand in "
                          "back-quotes",
                          name);
    *out = statement_of(t->s, k);
    return *out || sched_fail(t->s, t->loc,
                              "the statement named '%s' was erased", name);
}

static bool read_part(CursorText *t, Op *under, Op **out)
{
    if (*t->at != '`') {
        size_t n = strspn(t->at, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRS"
                                 "TUVWXYZ_0123456789");
        return n ? named_part(t, n, out)
                 : sched_fail(t->s, t->loc, "expected a cursor, found '%s'",
                              t->at);
    }
    const char *from = t->at + 1, *end = strchr(from, '`');
    if (!end)
        return sched_fail(t->s, t->loc, "a back-quote is not closed");
    const char *pattern =
        arena_strndup(t->s->arena, from, (size_t)(end - from));
    int64_t k = -1;
    t->at = end + 1;
    if (*t->at == '#') {
        char *after;
        k = strtoll(t->at + 1, &after, 10);
        if (t->at[1] < '0' || t->at[1] > '9')
            return sched_fail(t->s, t->loc, "expected a number after '#'");
        t->at = after;
    }
    return pick(t->s, t->loc, pattern, under, k, out);
}

static bool whole_block(CursorText *t, Cursor *c, Op *of)
{
    Block *b = of->n_blocks ? of->blocks[0] : NULL;
    c->first = b ? block_first_stmt(b) : NULL;
    c->last = b ? block_last_stmt(b) : NULL;
    return c->first || sched_fail(t->s, t->loc, "'%s' has no body",
                                  sched_stmt_text(t->s, of));
}

static bool move_cursor(CursorText *t, const char *move, Cursor *c)
{
    Op *to = NULL;
    if (!strcmp(move, "before") || !strcmp(move, "after")) {
        c->after = *move == 'a';
        return true;
    }
    if (!strcmp(move, "body"))
        return whole_block(t, c, c->first);
    if (!strcmp(move, "begin") || !strcmp(move, "end")) {
        c->after = *move == 'e';
        return whole_block(t, c, c->first);
    }
    if (!strcmp(move, "parent"))
        to = op_parent(c->first);
    else if (!strcmp(move, "next"))
        to = stmt_next(c->last);
    else if (!strcmp(move, "prev"))
        to = stmt_prev(c->first);
    else if (!strcmp(move, "first") || !strcmp(move, "last"))
        to = !c->first->n_blocks ? NULL
             : *move == 'f'      ? block_first_stmt(c->first->blocks[0])
                                 : block_last_stmt(c->first->blocks[0]);
    else
        return sched_fail(t->s, t->loc,
                          "unknown move '.%s': expected parent, next, prev, "
                          "first, last, body, before, after, begin or end",
                          move);
    if (!to || to == t->s->proc)
        return sched_fail(t->s, t->loc, "'%s' has no .%s",
                          sched_stmt_text(t->s, c->first), move);
    c->first = c->last = to;
    return true;
}

static bool read_range(CursorText *t, Cursor *c)
{
    Op *to;
    t->at += 2;
    if (!read_part(
            t, op_parent(c->first) == t->s->proc ? NULL : op_parent(c->first),
            &to))
        return false;
    while (*t->at == '/') {
        t->at++;
        if (!read_part(t, to, &to))
            return false;
    }
    for (Op *op = c->first; op; op = stmt_next(op))
        if (op == to) {
            c->last = to;
            return true;
        }
    return sched_fail(
        t->s, t->loc, "'%s' does not stand behind '%s' in its block",
        sched_stmt_text(t->s, to), sched_stmt_text(t->s, c->first));
}

bool cursor_read(Sched *s, const SchedNameVec *names, Loc loc, const char *text,
                 Cursor *out)
{
    CursorText t = { s, names, loc, text };
    *out = (Cursor){ 0 };
    if (!sched_listing(s) || !read_part(&t, s->under, &out->first))
        return false;
    while (*t.at == '/') {
        t.at++;
        if (!read_part(&t, out->first, &out->first))
            return false;
    }
    out->last = out->first;
    while (*t.at == '.') {
        if (t.at[1] == '.') {
            if (!read_range(&t, out))
                return false;
            continue;
        }
        size_t n = strcspn(t.at + 1, "./");
        const char *move = arena_strndup(s->arena, t.at + 1, n);
        t.at += n + 1;
        if (!move_cursor(&t, move, out))
            return false;
    }
    return !*t.at || sched_fail(s, loc,
                                "expected the end of the cursor, "
                                "found '%s'",
                                t.at);
}

/* ---- arguments --------------------------------------------------------- */

typedef struct Slot {
    const char *kind, *label, *otherwise;
} Slot;

static unsigned read_signature(Sched *s, const char *sig, Slot *slots)
{
    unsigned n = 0;
    for (sig += strspn(sig, " "); *sig && n < SCHED_MAX_ARGS; n++) {
        size_t kind = strcspn(sig, ":");
        slots[n].kind = ctx_intern_n(s->ctx, sig, kind);
        sig += kind + 1;
        size_t label = strcspn(sig, " =");
        slots[n].label = ctx_intern_n(s->ctx, sig, label);
        sig += label;
        slots[n].otherwise = NULL;
        if (*sig == '=') {
            size_t len = strcspn(sig + 1, " ");
            slots[n].otherwise = ctx_intern_n(s->ctx, sig + 1, len);
            sig += len + 1;
        }
        sig += strspn(sig, " ");
    }
    return n;
}

static bool read_int(Sched *s, SchedArg *a, const char *label)
{
    Build b;
    Param p;
    const char *text = sched_unquote(s, a->text);
    AstExpr *e = exo_syntax_expr(s->ctx, s->arena, a->loc, text, strlen(text));
    if (!e)
        return false;
    build_init(&b, s->m, s->m->lib, s->arena);
    b.in_entry = true;
    if (!build_const(&b, e, &p))
        return false;
    a->i = p.i;
    return p.kind == PARAM_int ||
           sched_fail(s, a->loc, "'%s' expects an integer, found '%s'", label,
                      text);
}

static bool is_name(const char *s)
{
    size_t n = strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_"
                         "0123456789");
    return n && !s[n] && !(*s >= '0' && *s <= '9');
}

static bool one_stmt(Sched *s, SchedArg *a, const char *label)
{
    return a->at.first == a->at.last ||
           sched_fail(s, a->loc, "'%s' expects one statement", label);
}

static bool of_code(Sched *s, SchedArg *a, OpCode code, const char *what)
{
    return a->at.first->code == code ||
           sched_fail(s, a->loc, "expected %s, found '%s'", what,
                      sched_stmt_text(s, a->at.first));
}

/* Assertions stay at the top of their procedure: no step takes one, or puts
 * something before it. */
static bool below_asserts(Sched *s, const SchedArg *a, bool gap)
{
    const Cursor *c = &a->at;
    Op *op = gap && c->after ? stmt_next(c->last) : c->first;
    return !op || op->code != OP_ctl_assert ||
           sched_fail(s, a->loc, "'%s' stays at the top of the procedure",
                      sched_stmt_text(s, op));
}

static bool read_value(Sched *s, const SchedNameVec *names, const Slot *slot,
                       SchedArg *a)
{
    const char *kind = slot->kind;
    a->s = sched_unquote(s, a->text);
    if (!strcmp(kind, "text"))
        return true;
    if (!strcmp(kind, "int"))
        return read_int(s, a, slot->label);
    if (!strcmp(kind, "bool")) {
        a->i = !strcmp(a->text, "true");
        return a->i || !strcmp(a->text, "false") ||
               sched_fail(s, a->loc, "'%s' is true or false, found '%s'",
                          slot->label, a->text);
    }
    if (!strcmp(kind, "name")) {
        a->s = ctx_intern(s->ctx, a->s);
        return is_name(a->s) ||
               sched_fail(s, a->loc, "'%s' expects a name, found '%s'",
                          slot->label, a->s);
    }
    if (!cursor_read(s, names, a->loc, a->text, &a->at))
        return false;
    bool gap = !strcmp(kind, "gap");
    if (!below_asserts(s, a, gap))
        return false;
    if (gap || !strcmp(kind, "block"))
        return true;
    if (!one_stmt(s, a, slot->label))
        return false;
    if (!strcmp(kind, "loop"))
        return of_code(s, a, OP_ctl_for, "a loop");
    if (!strcmp(kind, "if"))
        return of_code(s, a, OP_ctl_if, "an if");
    if (!strcmp(kind, "alloc"))
        return of_code(s, a, OP_mem_alloc, "an allocation");
    return true;
}

static bool put(Sched *s, const SchedOp *op, const Slot *slots, unsigned n,
                const SchedText *t, unsigned *next, SchedArg *out)
{
    unsigned i = *next;
    if (t->key) {
        for (i = 0; i < n && strcmp(slots[i].label, t->key); i++)
            ;
        if (i == n)
            return sched_fail(s, t->loc, "%s has no argument '%s': it takes %s",
                              op->name, t->key, op->signature);
    } else {
        ++*next;
    }
    if (i >= n)
        return sched_fail(s, t->loc, "%s takes %u arguments: %s", op->name, n,
                          op->signature);
    if (out[i].given)
        return sched_fail(s, t->loc, "'%s' is given twice", slots[i].label);
    out[i].given = true;
    out[i].text = t->text;
    out[i].loc = t->loc;
    return true;
}

bool sched_args_read(Sched *s, const SchedNameVec *names, const SchedOp *op,
                     unsigned n, const SchedText *given, SchedArg *out)
{
    Slot slots[SCHED_MAX_ARGS];
    unsigned n_slots = read_signature(s, op->signature, slots), next = 0;
    memset(out, 0, SCHED_MAX_ARGS * sizeof *out);
    for (unsigned i = 0; i < n; i++)
        if (!put(s, op, slots, n_slots, &given[i], &next, out))
            return false;
    for (unsigned i = 0; i < n_slots; i++) {
        if (!out[i].given && !slots[i].otherwise)
            return sched_fail(s, s->loc, "%s lacks '%s': it takes %s", op->name,
                              slots[i].label, op->signature);
        if (!out[i].given) {
            out[i].text = slots[i].otherwise;
            out[i].loc = s->loc;
            if (!*out[i].text) {
                out[i].s = "";
                continue;
            }
        }
        if (!read_value(s, names, &slots[i], &out[i]))
            return false;
    }
    return true;
}
