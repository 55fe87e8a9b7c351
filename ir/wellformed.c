/* One walk over the module with the set of values and variables that are
 * visible; each op is held against its row, then against the rules of its own
 * (ir/wellformed_op.c). */
#include "ir/wellformed.h"

#include "ir/eir.h"
#include "ir/eir_types.h"
#include "ir/wellformed_internal.h"

#include <string.h>

/* ---- reports ------------------------------------------------------------- */

bool wf_fault(Wellformed *w, const char *fmt, ...)
{
    StrBuf s = { 0 };
    va_list ap;
    if (w->pass)
        strbuf_addf(&s, "after pass '%s': ", w->pass);
    strbuf_add(&s, "'");
    eir_op_name(w->op->code, &s);
    strbuf_add(&s, "' op ");
    va_start(ap, fmt);
    strbuf_vaddf(&s, fmt, ap);
    va_end(ap);
    diag_error(w->m->ctx, w->op->loc, w->pass ? "internal" : "wellformed", "%s",
               s.data);
    strbuf_free(&s);
    w->ok = false;
    return false;
}

const char *wf_value_label(Wellformed *w, const Value *v)
{
    return v->name ? arena_printf(w->scratch, "'%%%s'", v->name)
                   : arena_printf(w->scratch, "value %u", v->id);
}

const char *wf_type_label(Wellformed *w, const Type *t)
{
    static const char *const kinds[] = {
        [TK_scalar] = "scalar", [TK_tensor] = "tensor",
        [TK_window] = "window", [TK_barrier] = "barrier",
        [TK_map] = "map",       [TK_mbarrier] = "mbarrier",
        [TK_ring] = "ring",     [TK_frag] = "frag"
    };
    if (t->kind == TK_scalar)
        return scalar_type_name(t->elem);
    if (t->kind == TK_frag)
        return arena_printf(w->scratch, "frag<%s, %lld>",
                            scalar_type_name(t->elem), (long long)t->n);
    if (t->kind == TK_ring)
        return arena_printf(w->scratch, "ring<%lld>", (long long)t->n);
    if (t->kind == TK_barrier || t->kind == TK_mbarrier)
        return arena_printf(w->scratch, "%s of rank %u", kinds[t->kind],
                            t->rank);
    return arena_printf(w->scratch, "%s<%s> of rank %u", kinds[t->kind],
                        scalar_type_name(t->elem), t->rank);
}

/* ---- what is visible ----------------------------------------------------- */

static bool see_value(Wellformed *w, const Value *v)
{
    if (!v || !v->type || v->id == 0 || v->id >= w->n_values)
        return wf_fault(w, "has a result or argument that is no value");
    if (w->values[v->id])
        return wf_fault(w, "defines %s twice", wf_value_label(w, v));
    w->values[v->id] = true;
    VEC_PUSH(w->scratch, &w->value_scope, v);
    return true;
}

static bool see_var(Wellformed *w, VarId v)
{
    if (v == 0 || v >= w->n_vars)
        return wf_fault(w, "has an argument that is no variable");
    if (w->vars[v])
        return wf_fault(w, "defines variable '%%%s' twice",
                        var_get(w->m->exprs, v)->name);
    w->vars[v] = true;
    VEC_PUSH(w->scratch, &w->var_scope, v);
    return true;
}

static void close_scope(Wellformed *w, size_t n_values, size_t n_vars)
{
    while (w->value_scope.len > n_values)
        w->values[w->value_scope.data[--w->value_scope.len]->id] = false;
    while (w->var_scope.len > n_vars)
        w->vars[w->var_scope.data[--w->var_scope.len]] = false;
}

static bool value_visible(Wellformed *w, const Value *v)
{
    if (!v)
        return wf_fault(w, "has an operand without a value");
    if (v->id == 0 || v->id >= w->n_values || !w->values[v->id])
        return wf_fault(w, "uses %s, which is not defined before it",
                        wf_value_label(w, v));
    return true;
}

/* ---- expressions --------------------------------------------------------- */

static bool index_ok(Wellformed *w, const Affine *e, const char *what);

static bool atom_ok(Wellformed *w, const Atom *a, const char *what)
{
    if (a->kind == ATOM_var) {
        if (a->var < w->n_vars && w->vars[a->var])
            return true;
        return wf_fault(w, "%s uses variable '%%%s', which is not defined here",
                        what, var_get(w->m->exprs, a->var)->name);
    }
    if (a->kind != ATOM_opaque)
        return index_ok(w, a->arg, what);
    if (a->opaque == OPAQUE_product)
        return index_ok(w, a->lhs, what) && index_ok(w, a->rhs, what);
    if (a->opaque == OPAQUE_stride) {
        const Value *v = a->ref;
        if (!value_visible(w, v))
            return false;
        if (a->dim >= v->type->rank)
            return wf_fault(w, "%s asks for stride %u of %s, which is a %s",
                            what, a->dim, wf_value_label(w, v),
                            wf_type_label(w, v->type));
    }
    return true;
}

static bool index_ok(Wellformed *w, const Affine *e, const char *what)
{
    if (!e)
        return wf_fault(w, "%s is missing", what);
    for (uint32_t i = 0; i < e->n_terms; i++)
        if (!atom_ok(w, e->terms[i].atom, what))
            return false;
    return true;
}

static bool cond_ok(Wellformed *w, const Cond *c)
{
    if (!c)
        return wf_fault(w, "condition is missing");
    switch (c->kind) {
    case COND_ge0:
    case COND_eq0:
        return index_ok(w, c->expr, "condition");
    case COND_and:
    case COND_or:
        return cond_ok(w, c->lhs) && cond_ok(w, c->rhs);
    case COND_not:
        return cond_ok(w, c->lhs);
    default:
        return true;
    }
}

static bool has_dims(const Type *t)
{
    return t->kind == TK_tensor || t->kind == TK_window || t->kind == TK_map ||
           t->kind == TK_barrier || t->kind == TK_mbarrier;
}

static bool dim_ok(Wellformed *w, const AccessDim *d)
{
    if (d->kind == DIM_ring) {
        if (!value_visible(w, d->ring))
            return false;
        return d->ring->type->kind == TK_ring ||
               wf_fault(w, "takes %s for a ring, but it is a %s",
                        wf_value_label(w, d->ring),
                        wf_type_label(w, d->ring->type));
    }
    return index_ok(w, d->lo, "index") &&
           (d->kind == DIM_point || index_ok(w, d->len, "interval length"));
}

static bool access_ok(Wellformed *w, const Access *a)
{
    if (!a)
        return wf_fault(w, "has an access operand that is missing");
    if (!value_visible(w, a->base))
        return false;
    if (!has_dims(a->base->type))
        return wf_fault(w, "indexes %s, which is a %s",
                        wf_value_label(w, a->base),
                        wf_type_label(w, a->base->type));
    if (a->rank != a->base->type->rank)
        return wf_fault(w, "indexes %s with %u indices, but its rank is %u",
                        wf_value_label(w, a->base), a->rank,
                        a->base->type->rank);
    for (unsigned i = 0; i < a->rank; i++)
        if (!dim_ok(w, &a->dims[i]))
            return false;
    return true;
}

/* Numbers in the type itself. */
static bool type_ok(Wellformed *w, const Value *v)
{
    const Type *t = v->type;
    if (t->kind == TK_ring && t->n < 1)
        return wf_fault(w, "has a ring of depth %lld, which must be positive",
                        (long long)t->n);
    if (t->kind == TK_frag && (t->n < 1 || t->n > EIR_MAX_FRAG))
        return wf_fault(w, "has a fragment of %lld registers, expected 1 to %d",
                        (long long)t->n, EIR_MAX_FRAG);
    return true;
}

static bool extents_ok(Wellformed *w, const Value *v)
{
    if (!type_ok(w, v))
        return false;
    for (unsigned d = 0; d < v->type->rank; d++)
        if (!index_ok(w, v->shape ? v->shape[d] : NULL, "extent"))
            return false;
    if (v->ring_dim >= (int)v->type->rank)
        return wf_fault(w, "has a ring at dimension %d of %s, which is a %s",
                        v->ring_dim, wf_value_label(w, v),
                        wf_type_label(w, v->type));
    if (v->ring_dim >= 0 && v->ring_depth < 1)
        return wf_fault(w, "has a ring of depth %lld, which must be positive",
                        (long long)v->ring_depth);
    if (!v->ring_guard)
        return true;
    return value_visible(w, v->ring_guard) &&
           (v->ring_guard->type->kind == TK_barrier ||
            wf_fault(w, "is guarded by %s, which is a %s, not a barrier",
                     wf_value_label(w, v->ring_guard),
                     wf_type_label(w, v->ring_guard->type)));
}

/* ---- against the row ----------------------------------------------------- */

static bool operand_ok(Wellformed *w, const Operand *o)
{
    switch (o->kind) {
    case OPND_value:
        return value_visible(w, o->u.value);
    case OPND_access:
        return access_ok(w, o->u.access);
    case OPND_index:
        return index_ok(w, o->u.index, "operand");
    default:
        return cond_ok(w, o->u.cond);
    }
}

static char operand_letter(OperandKind k)
{
    return "vaic"[k];
}

static const char *letter_text(char c)
{
    switch (c) {
    case 'v':
        return "a value";
    case 'a':
        return "an access";
    case 'i':
        return "an index expression";
    default:
        return "a condition";
    }
}

/* How many operands the row has before the first that repeats, and the letter
 * of that one. */
static bool operands_match(Wellformed *w)
{
    const Op *op = w->op;
    const char *row = op_info(op->code)->operands;
    unsigned i = 0;
    if (eir_callee_key(op->code) || op->code == OP_async_tasks)
        return true;
    for (const char *at = row; *at; at++) {
        bool star = at[1] == '*', optional = at[1] == '?';
        do {
            char have =
                i < op->n_operands ? operand_letter(op->operands[i].kind) : 0;
            if (have == *at || (have && *at == '.')) {
                i++;
                continue;
            }
            if (star || optional)
                break;
            if (!have)
                return wf_fault(w, "has %u operands, operand %u is to be %s",
                                op->n_operands, i + 1, letter_text(*at));
            return wf_fault(w, "operand %u is to be %s, found %s", i + 1,
                            letter_text(*at), letter_text(have));
        } while (star);
        at += star || optional;
    }
    if (i < op->n_operands)
        return wf_fault(w, "takes %u operands, found %u", i, op->n_operands);
    return true;
}

/* The keys of a row as a message lists them. */
static const char *row_text(Wellformed *w, const char *keys)
{
    if (!keys || !*keys)
        return "it has none";
    StrBuf s = { 0 };
    for (const char *at = keys; *at; at++)
        if (*at == ' ')
            strbuf_add(&s, ", ");
        else if (*at != '!')
            strbuf_addc(&s, *at);
    const char *text = arena_printf(w->scratch, "it has %s", strbuf_text(&s));
    strbuf_free(&s);
    return text;
}

static bool attrs_match(Wellformed *w)
{
    const char *keys = op_info(w->op->code)->attrs;
    for (const char *at = keys; at && *at;) {
        size_t n = strcspn(at, " !");
        const char *key = arena_strndup(w->scratch, at, n);
        at += n;
        if (*at == '!' && !op_attr(w->op, key))
            return wf_fault(w, "lacks the attribute '%s'", key);
        at += strspn(at, " !");
    }
    for (unsigned i = 0; i < w->op->n_attrs; i++)
        if (!attr_is_derived(w->op->attrs[i].key) &&
            !attr_in_row(keys, w->op->attrs[i].key))
            return wf_fault(w, "has no attribute '%s'; %s", w->op->attrs[i].key,
                            row_text(w, keys));
    return true;
}

/* What the attributes of the rows are, where it is more than a literal; the
 * least value of an integer, the words that a string may be (NULL: any). */
static const struct {
    const char *key;
    ParamKind kind;
    int64_t least;
    const char *words;
} attr_rules[] = {
    { "offset", PARAM_int, 0, NULL },
    { "count", PARAM_int, 1, NULL },
    { "bytes", PARAM_int, 0, NULL },
    { "n", PARAM_int, INT64_MIN, NULL },
    { "k", PARAM_int, 1, NULL },
    { "slot", PARAM_int, 0, NULL },
    { "a_slot", PARAM_int, 0, NULL },
    { "rows", PARAM_int, 1, NULL },
    { "cols", PARAM_int, 1, NULL },
    { "col0", PARAM_int, 0, NULL },
    { "id", PARAM_int, 0, NULL },
    { "threads", PARAM_int, 1, NULL },
    { "blockDim", PARAM_int, 1, NULL },
    { "clusterDim", PARAM_int, 1, NULL },
    { "blocks_per_sm", PARAM_int, 1, NULL },
    { "smem_bytes", PARAM_int, 0, NULL },
    { "lo", PARAM_int, 0, NULL },
    { "hi", PARAM_int, 0, NULL },
    { "rank", PARAM_int, 1, NULL },
    { "trailing", PARAM_int, 0, NULL },
    { "position", PARAM_int, INT64_MIN, NULL },
    { "name", PARAM_str, 0, NULL },
    { "callee", PARAM_str, 0, NULL },
    { "kernel", PARAM_str, 0, NULL },
    { "message", PARAM_str, 0, NULL },
    { "argument", PARAM_str, 0, NULL },
    { "field", PARAM_str, 0, NULL },
    { "mode", PARAM_str, 0, NULL },
    { "first", PARAM_str, 0, NULL },
    { "second", PARAM_str, 0, NULL },
    { "action", PARAM_str, 0, "inc dec" },
    { "op", PARAM_str, 0, "add" },
    { "direction", PARAM_str, 0, "htod dtoh dtod" },
    { "arch", PARAM_str, 0, NULL },
    { "cache_hint", PARAM_str, 0, NULL },
    { "proc", PARAM_str, 0, NULL },
    { "read", PARAM_bool, 0, NULL },
    { "atomic", PARAM_bool, 0, NULL },
    { "transposed", PARAM_bool, 0, NULL },
    { "programmatic_dependent_launch", PARAM_bool, 0, NULL },
    { "once", PARAM_bool, 0, NULL },
    { "rounds", PARAM_bool, 0, NULL },
    { "targs", PARAM_tuple, 0, NULL },
    { "cta_xor", PARAM_tuple, 0, NULL },
    { "scope", PARAM_str, 0, "cta cluster" },
    { "space", PARAM_str, 0, "shared" },
};

static const char *param_kind_text(ParamKind k)
{
    switch (k) {
    case PARAM_int:
        return "an integer";
    case PARAM_bool:
        return "True or False";
    case PARAM_str:
        return "a string";
    default:
        return "a tuple";
    }
}

static bool is_one_of(const char *words, const char *word)
{
    size_t n = strlen(word);
    for (const char *at = words; *at; at += strspn(at, " ")) {
        size_t length = strcspn(at, " ");
        if (length == n && !strncmp(at, word, n))
            return true;
        at += length;
    }
    return false;
}

/* check-par says of a device function what its attributes must be. */
static bool attr_kind_ok(Wellformed *w, const Attr *a)
{
    if (w->op->code == OP_par_device)
        return true;
    for (size_t i = 0; i < sizeof attr_rules / sizeof *attr_rules; i++) {
        if (strcmp(attr_rules[i].key, a->key) != 0)
            continue;
        ParamKind kind = attr_rules[i].kind;
        if (a->kind != ATTR_param || a->param->kind != kind)
            return wf_fault(w, "attribute '%s' is to be %s", a->key,
                            param_kind_text(kind));
        if (kind == PARAM_int && a->param->i < attr_rules[i].least)
            return wf_fault(
                w, "attribute '%s' is %lld, it must be at least %lld", a->key,
                (long long)a->param->i, (long long)attr_rules[i].least);
        if (attr_rules[i].words && !is_one_of(attr_rules[i].words, a->param->s))
            return wf_fault(w, "attribute '%s' is '%s', expected one of: %s",
                            a->key, a->param->s, attr_rules[i].words);
        return true;
    }
    return true;
}

static bool attr_exprs_ok(Wellformed *w, const Attr *a)
{
    if (a->kind == ATTR_index && !index_ok(w, a->index, a->key))
        return false;
    for (unsigned k = 0; a->kind == ATTR_indices && k < a->n; k++)
        if (!index_ok(w, a->indices[k], a->key))
            return false;
    return true;
}

/* The attributes that the op has, and its origin. */
static bool attrs_ok(Wellformed *w)
{
    for (unsigned i = 0; i < w->op->n_attrs; i++)
        for (unsigned k = 0; k < i; k++)
            if (!strcmp(w->op->attrs[i].key, w->op->attrs[k].key))
                return wf_fault(w, "has the attribute '%s' twice",
                                w->op->attrs[i].key);
    for (unsigned i = 0; i < w->op->n_attrs; i++)
        if (!attr_kind_ok(w, &w->op->attrs[i]) ||
            !attr_exprs_ok(w, &w->op->attrs[i]))
            return false;
    for (unsigned k = 0; k < w->op->origin.n; k++)
        if (!index_ok(w, w->op->origin.iters[k], "origin"))
            return false;
    return true;
}

/* Ops of the async level belong to kernels, those of par to procedures. */
static bool level_ok(Wellformed *w)
{
    Op *op = (Op *)w->op;
    const char *dialect = op_info(op->code)->dialect;
    bool in_kernel = op_enclosing(op, OP_async_kernel) != NULL;
    if (!strcmp(dialect, "async") && !in_kernel)
        return wf_fault(w, "stands outside of an async.kernel");
    if (!strcmp(dialect, "par") && in_kernel)
        return wf_fault(w, "stands in an async.kernel");
    return true;
}

static bool row_ok(Wellformed *w)
{
    const Op *op = w->op;
    const OpInfo *row = op_info(op->code);
    if (row->n_results >= 0 && op->n_results != (unsigned)row->n_results)
        return wf_fault(w, "has %d results, found %u", row->n_results,
                        op->n_results);
    if (row->n_blocks >= 0 ? op->n_blocks != (unsigned)row->n_blocks
                           : op->n_blocks < 1 || op->n_blocks > 2)
        return wf_fault(w, "has %u blocks, expected %s", op->n_blocks,
                        row->n_blocks < 0 ? "1 or 2"
                        : row->n_blocks   ? "1"
                                          : "none");
    if (!level_ok(w) || !operands_match(w) || !attrs_match(w) || !attrs_ok(w))
        return false;
    for (unsigned i = 0; i < op->n_operands; i++)
        if (!operand_ok(w, &op->operands[i]))
            return false;
    return true;
}

/* ---- the walk ------------------------------------------------------------ */

static void block_check(Wellformed *w, const Block *b);

static bool args_ok(Wellformed *w, const Block *b)
{
    for (unsigned i = 0; i < b->n_args; i++)
        if (b->args[i].value ? !see_value(w, b->args[i].value)
                             : !see_var(w, b->args[i].var))
            return false;
    for (unsigned i = 0; i < b->n_args; i++)
        if (b->args[i].value && !extents_ok(w, b->args[i].value))
            return false;
    return true;
}

/* An op with a fault does not have its blocks looked at: they would only
 * repeat it. */
static void op_check(Wellformed *w, const Op *op)
{
    w->op = op;
    for (unsigned i = 0; i < op->n_results; i++)
        if (!op->results[i] || !op->results[i]->type) {
            wf_fault(w, "has a result without a type");
            return;
        }
    bool ok = row_ok(w) && wf_op_rules_ok(w);
    for (unsigned i = 0; ok && i < op->n_blocks; i++) {
        size_t n_values = w->value_scope.len, n_vars = w->var_scope.len;
        w->op = op;
        if (args_ok(w, op->blocks[i]))
            block_check(w, op->blocks[i]);
        close_scope(w, n_values, n_vars);
    }
    w->op = op;
    if (op->code == OP_ctl_for || op->code == OP_ctl_if ||
        op->code == OP_async_tasks)
        for (unsigned i = 0; ok && i < op->n_blocks; i++)
            ok = wf_yields_ok(w, op->blocks[i]);
    for (unsigned i = 0; i < op->n_results; i++)
        if (see_value(w, op->results[i]))
            extents_ok(w, op->results[i]);
}

static void block_check(Wellformed *w, const Block *b)
{
    for (const Op *op = b->first; op; op = op->next) {
        op_check(w, op);
        w->op = op;
        if (op_has(op, OPT_TERMINATOR) && op->next)
            wf_fault(w, "is to be the last of its block");
        if (op_has(op, OPT_SYMBOL) && b->parent)
            wf_fault(w, "stands at the top level only");
    }
}

static void collect_symbols(Wellformed *w)
{
    for (const Op *op = w->m->body->first; op; op = op->next) {
        w->op = op;
        if (!op_has(op, OPT_SYMBOL)) {
            wf_fault(w, "is to stand in a procedure or kernel");
            continue;
        }
        const char *name = op_attr_str(op, "name", NULL);
        if (!name || !*name) {
            wf_fault(w, "has no name");
            continue;
        }
        name = ctx_intern(w->m->ctx, name);
        if (name_map_get(w->symbols, name))
            wf_fault(w, "has the name '@%s', which is taken", name);
        else
            name_map_set(w->symbols, name, (void *)(uintptr_t)op);
    }
}

bool module_wellformed(const Module *m, const char *pass)
{
    Wellformed w = { .m = m, .pass = pass, .scratch = arena_new(), .ok = true };
    w.n_values = m->next_value;
    w.n_vars = var_count(m->exprs) + 1;
    w.values = ARENA_ARRAY(w.scratch, bool, w.n_values);
    w.vars = ARENA_ARRAY(w.scratch, bool, w.n_vars);
    w.symbols = name_map_new(w.scratch);
    collect_symbols(&w);
    for (const Op *op = m->body->first; op; op = op->next)
        if (op_has(op, OPT_SYMBOL)) {
            size_t n_values = w.value_scope.len, n_vars = w.var_scope.len;
            op_check(&w, op);
            close_scope(&w, n_values, n_vars);
        }
    bool ok = w.ok;
    arena_free(w.scratch);
    return ok;
}
