/* The .eir printer: ops, blocks, modules, in one fixed layout.
 *
 * Names are given as definitions are met: the value's own where it is free in
 * the open scopes, with a suffix otherwise, numbers for values without one.
 * What the parser can infer (ir/eir_types.h) is left out. */
#include "ir/eir.h"

#include "ir/eir_printer.h"
#include "ir/eir_types.h"
#include "ir/lib_entry.h"

#include <string.h>

static void print_op(EirPrinter *pr, const Op *op);

void eir_op_name(OpCode code, StrBuf *out)
{
    const OpInfo *row = op_info(code);
    if (code == OP_ctl_proc)
        strbuf_add(out, "proc");
    else
        strbuf_addf(out, "%s.%s", row->dialect,
                    row->text ? row->text : row->name);
}

static void start_line(EirPrinter *pr)
{
    for (unsigned i = 0; i < pr->indent; i++)
        strbuf_add(pr->out, "  ");
}

/* ---- what an op's own syntax says already -------------------------------- */

static const Param *targs_of(const Op *op)
{
    const Param *p = op_attr_param(op, "targs");
    return p && p->kind == PARAM_tuple ? p : NULL;
}

/* The callee where the op can be written as a call, or NULL. */
static const char *call_callee(const Op *op)
{
    const char *key = eir_callee_key(op->code);
    const char *callee = key ? op_attr_str(op, key, NULL) : NULL;
    static const char word[] = "abcdefghijklmnopqrstuvwxyz0123456789_"
                               "ABCDEFGHIJKLMNOPQRSTUVWXYZ";
    return callee && *callee && !callee[strspn(callee, word)] ? callee : NULL;
}

static bool has_trailing(const Op *op)
{
    return call_callee(op) && op->n_operands > 0 &&
           op_attr_int(op, "trailing", 0) == 1;
}

/* The unit where the mode is written as threads(unit), or NULL. */
static const UnitRef *mode_unit(const Op *op)
{
    const Attr *unit = op_attr(op, "unit");
    return unit && unit->kind == ATTR_unit && op_attr_str(op, "mode", NULL)
               ? unit->unit
               : NULL;
}

/* Is this attribute written elsewhere than in braces? */
static bool attr_is_syntax(const Op *op, const char *key)
{
    if (op_has(op, OPT_SYMBOL))
        return !strcmp(key, "name");
    if (call_callee(op))
        return !strcmp(key, eir_callee_key(op->code)) ||
               (!strcmp(key, "targs") && targs_of(op)) ||
               (!strcmp(key, "trailing") && has_trailing(op));
    if (op->code == OP_ctl_for)
        return (!strcmp(key, "mode") && op_attr_str(op, "mode", NULL)) ||
               (!strcmp(key, "unit") && mode_unit(op));
    return op->code == OP_async_tasks &&
           (!strcmp(key, "rank") || !strcmp(key, "rounds"));
}

/* ---- pieces of a line ---------------------------------------------------- */

static void print_attr(EirPrinter *pr, const Op *op, const Attr *a, bool *any)
{
    if (attr_is_syntax(op, a->key) ||
        (attr_is_derived(a->key) && !pr->options.derived))
        return;
    strbuf_add(pr->out, *any ? ", " : " {");
    *any = true;
    strbuf_addf(pr->out, "%s = ", a->key);
    eir_print_attr_value(pr, a);
}

/* In the row's order, then the others in theirs. */
static void print_attrs(EirPrinter *pr, const Op *op)
{
    bool any = false;
    const char *keys = op_info(op->code)->attrs;
    for (const char *at = keys; at && *at;) {
        size_t len = strcspn(at, " !");
        for (unsigned i = 0; i < op->n_attrs; i++)
            if (strlen(op->attrs[i].key) == len &&
                !strncmp(op->attrs[i].key, at, len))
                print_attr(pr, op, &op->attrs[i], &any);
        at += len;
        at += strspn(at, " !");
    }
    for (unsigned i = 0; i < op->n_attrs; i++)
        if (!attr_in_row(keys, op->attrs[i].key))
            print_attr(pr, op, &op->attrs[i], &any);
    if (any)
        strbuf_addc(pr->out, '}');
}

static bool result_is_implied(EirPrinter *pr, const Op *op, unsigned i)
{
    const Value *v = op->results[i];
    if (eir_implied_type(pr->m->ctx, op, i) != v->type || v->ring_dim >= 0 ||
        v->ring_guard)
        return false;
    for (unsigned d = 0; d < v->type->rank; d++)
        if (v->shape[d] != eir_implied_extent(op, i, d))
            return false;
    return true;
}

static void print_types(EirPrinter *pr, const Op *op, const char *lead)
{
    bool implied = true;
    for (unsigned i = 0; i < op->n_results; i++)
        implied &= op->results[i] && result_is_implied(pr, op, i);
    for (unsigned i = 0; i < op->n_results && !implied; i++) {
        strbuf_add(pr->out, i ? ", " : lead);
        if (op->results[i])
            eir_print_type_of(pr, op->results[i]);
    }
}

static void print_origin(EirPrinter *pr, const Op *op)
{
    if (!op->origin.sid)
        return;
    strbuf_addf(pr->out, " origin(#%u", op->origin.sid);
    if (op->origin.n) {
        strbuf_add(pr->out, ", ");
        eir_print_index_list(pr, op->origin.n, op->origin.iters);
    }
    strbuf_addc(pr->out, ')');
}

static void print_quoted(StrBuf *out, const char *s)
{
    strbuf_addc(out, '"');
    for (; *s; s++) {
        unsigned char c = (unsigned char)*s;
        if (c == '"' || c == '\\')
            strbuf_addf(out, "\\%c", c);
        else if (c < 32 || c == 127)
            strbuf_addf(out, "\\x%02x", c);
        else
            strbuf_addc(out, (char)c);
    }
    strbuf_addc(out, '"');
}

static void print_loc(EirPrinter *pr, Loc loc)
{
    if (!pr->options.locs || !loc.file)
        return;
    strbuf_add(pr->out, " loc(");
    if (loc.file != pr->loc_file) {
        print_quoted(pr->out, ctx_source_name(pr->m->ctx, loc.file));
        strbuf_addc(pr->out, ':');
    }
    strbuf_addf(pr->out, "%u:%u)", loc.line, loc.col);
}

static void print_tail(EirPrinter *pr, const Op *op)
{
    print_attrs(pr, op);
    if (op->code != OP_ctl_if)
        print_types(pr, op, " : ");
    print_origin(pr, op);
    print_loc(pr, op->loc);
}

static void print_operand(EirPrinter *pr, const Operand *o)
{
    switch (o->kind) {
    case OPND_value:
        eir_print_value(pr, o->u.value);
        return;
    case OPND_access:
        eir_print_access(pr, o->u.access);
        return;
    case OPND_index:
        eir_print_index(pr, o->u.index);
        return;
    case OPND_cond:
        eir_print_cond(pr, o->u.cond);
    }
}

static void print_operands(EirPrinter *pr, const Op *op, unsigned n,
                           const char *lead)
{
    for (unsigned i = 0; i < n; i++) {
        strbuf_add(pr->out, i ? ", " : lead);
        print_operand(pr, &op->operands[i]);
    }
}

/* ---- blocks -------------------------------------------------------------- */

static void print_ops(EirPrinter *pr, const Block *b)
{
    pr->indent++;
    for (const Op *op = b->first; op; op = op->next)
        print_op(pr, op);
    pr->indent--;
}

/* ` {`, the ops, `}`, without the end of the line. */
static void print_braced(EirPrinter *pr, const Block *b, size_t mark)
{
    strbuf_add(pr->out, " {\n");
    print_ops(pr, b);
    eir_print_scope_end(pr, mark);
    start_line(pr);
    strbuf_addc(pr->out, '}');
}

static const char *var_kind_name(VarKind kind)
{
    static const char *const names[] = {
        [VAR_size] = "size", [VAR_index] = "index", [VAR_int] = "int",
        [VAR_bool] = "bool", [VAR_iter] = "iter",   [VAR_coord] = "coord"
    };
    return names[kind];
}

static void print_parameters(EirPrinter *pr, const Block *b)
{
    strbuf_addc(pr->out, '(');
    for (unsigned i = 0; i < b->n_args; i++) {
        const BlockArg *a = &b->args[i];
        if (i)
            strbuf_add(pr->out, ", ");
        if (a->value) {
            eir_print_def_value(pr, a->value);
            strbuf_add(pr->out, ": ");
            eir_print_type_of(pr, a->value);
        } else {
            eir_print_def_var(pr, a->var);
            VarKind kind = var_get(pr->m->exprs, a->var)->kind;
            strbuf_addf(pr->out, ": %s", var_kind_name(kind));
        }
    }
    strbuf_addc(pr->out, ')');
}

/* ---- ops with a syntax of their own -------------------------------------- */

static void print_symbol(EirPrinter *pr, const Op *op)
{
    size_t mark = eir_print_scope(pr);
    pr->next_number = 0;
    strbuf_addf(pr->out, " @%s", op_attr_str(op, "name", ""));
    print_parameters(pr, op->blocks[0]);
    print_tail(pr, op);
    print_braced(pr, op->blocks[0], mark);
}

static void print_mode(EirPrinter *pr, const Op *op)
{
    const char *mode = op_attr_str(op, "mode", NULL);
    if (op->code != OP_ctl_for || !mode)
        return;
    strbuf_addf(pr->out, " mode = %s", mode);
    const UnitRef *unit = mode_unit(op);
    if (unit) {
        strbuf_addc(pr->out, '(');
        unitref_print(pr->out, unit);
        strbuf_addc(pr->out, ')');
    }
}

static void print_carried(EirPrinter *pr, const Op *op, unsigned n_vars)
{
    const Block *b = op->blocks[0];
    unsigned first = eir_first_carried(op);
    for (unsigned i = n_vars; i < b->n_args; i++) {
        strbuf_add(pr->out, i == n_vars ? " iter(" : ", ");
        eir_print_def_value(pr, b->args[i].value);
        strbuf_add(pr->out, " = ");
        if (first + i - n_vars < op->n_operands)
            print_operand(pr, &op->operands[first + i - n_vars]);
    }
    if (b->n_args > n_vars)
        strbuf_addc(pr->out, ')');
}

/* The initial values and the bounds are outside the scope of the variables:
 * names are given in the order of the text all the same. */
static void print_loop(EirPrinter *pr, const Op *op)
{
    size_t mark = eir_print_scope(pr);
    const Block *b = op->blocks[0];
    unsigned n_vars = eir_first_carried(op) / 2;
    for (unsigned i = 0; i < n_vars && i < b->n_args; i++) {
        strbuf_add(pr->out, i ? ", " : " ");
        eir_print_def_var(pr, b->args[i].var);
        strbuf_add(pr->out, " in [");
        print_operand(pr, &op->operands[2 * i]);
        strbuf_add(pr->out, ", ");
        print_operand(pr, &op->operands[2 * i + 1]);
        strbuf_addc(pr->out, ')');
    }
    if (n_vars < eir_loop_vars(op) && n_vars < b->n_args) {
        strbuf_add(pr->out, " round ");
        eir_print_def_var(pr, b->args[n_vars++].var);
    }
    print_mode(pr, op);
    print_carried(pr, op, n_vars);
    print_tail(pr, op);
    print_braced(pr, b, mark);
}

static void print_if(EirPrinter *pr, const Op *op)
{
    print_operands(pr, op, op->n_operands, " ");
    print_types(pr, op, " -> ");
    print_tail(pr, op);
    for (unsigned i = 0; i < op->n_blocks; i++) {
        if (i)
            strbuf_add(pr->out, " else");
        print_braced(pr, op->blocks[i], eir_print_scope(pr));
    }
}

static void print_call(EirPrinter *pr, const Op *op, const char *callee)
{
    const Param *targs = targs_of(op);
    unsigned n = op->n_operands - has_trailing(op);
    strbuf_addf(pr->out, " @%s", callee);
    for (unsigned i = 0; targs && i < targs->n; i++) {
        strbuf_add(pr->out, i ? ", " : "<");
        param_print(pr->out, &targs->items[i]);
    }
    if (targs)
        strbuf_add(pr->out, targs->n ? ">" : "<>");
    strbuf_addc(pr->out, '(');
    print_operands(pr, op, n, "");
    strbuf_addc(pr->out, ')');
    if (has_trailing(op)) {
        strbuf_add(pr->out, " >> ");
        print_operand(pr, &op->operands[n]);
    }
    print_tail(pr, op);
}

static void print_generic(EirPrinter *pr, const Op *op)
{
    print_operands(pr, op, op->n_operands, " ");
    print_tail(pr, op);
    for (unsigned i = 0; i < op->n_blocks; i++)
        print_braced(pr, op->blocks[i], eir_print_scope(pr));
}

static bool is_loop(const Op *op)
{
    return (op->code == OP_ctl_for || op->code == OP_async_tasks) &&
           op->n_blocks == 1 && op->n_operands >= 2 &&
           op->blocks[0]->n_args > 0;
}

static void print_body(EirPrinter *pr, const Op *op)
{
    const char *callee = call_callee(op);
    if (op_has(op, OPT_SYMBOL) && op->n_blocks == 1)
        print_symbol(pr, op);
    else if (is_loop(op))
        print_loop(pr, op);
    else if (op->code == OP_ctl_if)
        print_if(pr, op);
    else if (callee)
        print_call(pr, op, callee);
    else
        print_generic(pr, op);
}

static void print_comment(EirPrinter *pr, const char *comment)
{
    for (const char *at = comment; at;) {
        size_t n = strcspn(at, "\n");
        start_line(pr);
        strbuf_add(pr->out, n ? "//# " : "//#");
        strbuf_addn(pr->out, at, n);
        strbuf_addc(pr->out, '\n');
        at = at[n] ? at + n + 1 : NULL;
    }
}

static void print_op(EirPrinter *pr, const Op *op)
{
    size_t from = pr->out->len;
    print_comment(pr, op->comment);
    start_line(pr);
    for (unsigned i = 0; i < op->n_results; i++) {
        strbuf_add(pr->out, i ? ", " : "");
        eir_print_def_value(pr, op->results[i]);
    }
    if (op->n_results)
        strbuf_add(pr->out, " = ");
    eir_op_name(op->code, pr->out);
    print_body(pr, op);
    strbuf_addc(pr->out, '\n');
    if (op == pr->target) {
        pr->target_from = from;
        pr->target_to = pr->out->len;
    }
}

/* ---- modules ------------------------------------------------------------- */

/* The file that most locations are in: the first op's. */
static uint32_t main_file(const Module *m)
{
    for (const Op *op = m->body->first; op; op = op->next)
        if (op->loc.file)
            return op->loc.file;
    return 0;
}

/* The entries that the file has of its own, behind bars. */
static void print_library(EirPrinter *pr)
{
    const Lib *lib = pr->m->lib;
    if (!lib || !lib->parent)
        return;
    StrBuf text = { 0 };
    lib_own_text(lib, &text);
    const char *at = strbuf_text(&text);
    if (*at)
        strbuf_add(pr->out, "library\n");
    while (*at) {
        size_t n = strcspn(at, "\n");
        strbuf_add(pr->out, n ? "| " : "|");
        strbuf_addn(pr->out, at, n);
        strbuf_addc(pr->out, '\n');
        at += n + (at[n] == '\n');
    }
    strbuf_free(&text);
}

static void print_head(EirPrinter *pr)
{
    const Module *m = pr->m;
    size_t from = pr->out->len;
    if (pr->options.locs) {
        pr->loc_file = main_file(m);
        strbuf_add(pr->out, "source ");
        print_quoted(pr->out, ctx_source_name(m->ctx, pr->loc_file));
        strbuf_addc(pr->out, '\n');
    }
    for (unsigned i = 0; i < m->n_imports; i++) {
        strbuf_add(pr->out, "import ");
        print_quoted(pr->out, m->imports[i]);
        strbuf_addc(pr->out, '\n');
    }
    print_library(pr);
    if (pr->out->len > from && m->body->first)
        strbuf_addc(pr->out, '\n');
}

static void print_module(EirPrinter *pr)
{
    print_head(pr);
    for (const Op *op = pr->m->body->first; op; op = op->next) {
        if (op->prev)
            strbuf_addc(pr->out, '\n');
        print_op(pr, op);
    }
}

void eir_print(const Module *m, const EirPrintOptions *options, StrBuf *out)
{
    EirPrinter pr;
    eir_printer_init(&pr, m, options, out);
    print_module(&pr);
    eir_printer_done(&pr);
}

void eir_print_op(const Module *m, const Op *op, StrBuf *out)
{
    StrBuf all = { 0 };
    EirPrinter pr;
    eir_printer_init(&pr, m, NULL, &all);
    pr.target = op;
    print_module(&pr);
    eir_printer_done(&pr);
    if (all.data)
        strbuf_addn(out, all.data + pr.target_from,
                    pr.target_to - pr.target_from);
    strbuf_free(&all);
}
