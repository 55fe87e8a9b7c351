/* One walk over the module with the set of values and variables that are
 * visible; each op is held against its row, then against the rules of its own
 * in one switch. */
#include "ir/wellformed.h"

#include "ir/eir.h"
#include "ir/eir_types.h"
#include "ir/name_map.h"

#include <string.h>

typedef struct Wellformed {
    const Module *m;
    const char *pass;
    Arena *scratch;
    NameMap *symbols;    /* -> Op */
    bool *values, *vars; /* visible now, by id */
    unsigned n_values, n_vars;
    VEC(const Value *) value_scope;
    VEC(VarId) var_scope;
    const Op *op; /* being checked */
    bool ok;
} Wellformed;

/* ---- reports --------------------------------------------------------------------- */

EXO_PRINTF(2, 3) static bool fault(Wellformed *w, const char *fmt, ...)
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

static const char *value_label(Wellformed *w, const Value *v)
{
    return v->name ? arena_printf(w->scratch, "'%%%s'", v->name)
                   : arena_printf(w->scratch, "value %u", v->id);
}

static const char *type_label(Wellformed *w, const Type *t)
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

/* ---- what is visible --------------------------------------------------------------- */

static bool see_value(Wellformed *w, const Value *v)
{
    if (!v || !v->type || v->id == 0 || v->id >= w->n_values)
        return fault(w, "has a result or argument that is no value");
    if (w->values[v->id])
        return fault(w, "defines %s twice", value_label(w, v));
    w->values[v->id] = true;
    VEC_PUSH(w->scratch, &w->value_scope, v);
    return true;
}

static bool see_var(Wellformed *w, VarId v)
{
    if (v == 0 || v >= w->n_vars)
        return fault(w, "has an argument that is no variable");
    if (w->vars[v])
        return fault(w, "defines variable '%%%s' twice",
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
        return fault(w, "has an operand without a value");
    if (v->id == 0 || v->id >= w->n_values || !w->values[v->id])
        return fault(w, "uses %s, which is not defined before it",
                     value_label(w, v));
    return true;
}

/* ---- expressions --------------------------------------------------------------------- */

static bool index_ok(Wellformed *w, const Affine *e, const char *what);

static bool atom_ok(Wellformed *w, const Atom *a, const char *what)
{
    if (a->kind == ATOM_var) {
        if (a->var < w->n_vars && w->vars[a->var])
            return true;
        return fault(w, "%s uses variable '%%%s', which is not defined here",
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
            return fault(w, "%s asks for stride %u of %s, which is a %s", what,
                         a->dim, value_label(w, v), type_label(w, v->type));
    }
    return true;
}

static bool index_ok(Wellformed *w, const Affine *e, const char *what)
{
    if (!e)
        return fault(w, "%s is missing", what);
    for (uint32_t i = 0; i < e->n_terms; i++)
        if (!atom_ok(w, e->terms[i].atom, what))
            return false;
    return true;
}

static bool cond_ok(Wellformed *w, const Cond *c)
{
    if (!c)
        return fault(w, "condition is missing");
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
               fault(w, "takes %s for a ring, but it is a %s",
                     value_label(w, d->ring), type_label(w, d->ring->type));
    }
    return index_ok(w, d->lo, "index") &&
           (d->kind == DIM_point || index_ok(w, d->len, "interval length"));
}

static bool access_ok(Wellformed *w, const Access *a)
{
    if (!a)
        return fault(w, "has an access operand that is missing");
    if (!value_visible(w, a->base))
        return false;
    if (!has_dims(a->base->type))
        return fault(w, "indexes %s, which is a %s", value_label(w, a->base),
                     type_label(w, a->base->type));
    if (a->rank != a->base->type->rank)
        return fault(w, "indexes %s with %u indices, but its rank is %u",
                     value_label(w, a->base), a->rank, a->base->type->rank);
    for (unsigned i = 0; i < a->rank; i++)
        if (!dim_ok(w, &a->dims[i]))
            return false;
    return true;
}

static bool extents_ok(Wellformed *w, const Value *v)
{
    for (unsigned d = 0; d < v->type->rank; d++)
        if (!index_ok(w, v->shape ? v->shape[d] : NULL, "extent"))
            return false;
    if (v->ring_dim >= (int)v->type->rank)
        return fault(w, "has a ring at dimension %d of %s, which is a %s",
                     v->ring_dim, value_label(w, v), type_label(w, v->type));
    if (v->ring_dim >= 0 && v->ring_depth < 1)
        return fault(w, "has a ring of depth %lld, which must be positive",
                     (long long)v->ring_depth);
    if (!v->ring_guard)
        return true;
    return value_visible(w, v->ring_guard) &&
           (v->ring_guard->type->kind == TK_barrier ||
            fault(w, "is guarded by %s, which is a %s, not a barrier",
                  value_label(w, v->ring_guard),
                  type_label(w, v->ring_guard->type)));
}

/* ---- against the row ------------------------------------------------------------------- */

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
                return fault(w, "has %u operands, operand %u is to be %s",
                             op->n_operands, i + 1, letter_text(*at));
            return fault(w, "operand %u is to be %s, found %s", i + 1,
                         letter_text(*at), letter_text(have));
        } while (star);
        at += star || optional;
    }
    if (i < op->n_operands)
        return fault(w, "takes %u operands, found %u", i, op->n_operands);
    return true;
}

static bool attrs_match(Wellformed *w)
{
    const char *keys = op_info(w->op->code)->attrs;
    for (const char *at = keys; at && *at;) {
        size_t n = strcspn(at, " !");
        const char *key = arena_strndup(w->scratch, at, n);
        at += n;
        if (*at == '!' && !op_attr(w->op, key))
            return fault(w, "lacks the attribute '%s'", key);
        at += strspn(at, " !");
    }
    return true;
}

static bool attr_exprs_ok(Wellformed *w)
{
    for (unsigned i = 0; i < w->op->n_attrs; i++) {
        const Attr *a = &w->op->attrs[i];
        if (a->kind == ATTR_index && !index_ok(w, a->index, a->key))
            return false;
        for (unsigned k = 0; a->kind == ATTR_indices && k < a->n; k++)
            if (!index_ok(w, a->indices[k], a->key))
                return false;
    }
    for (unsigned k = 0; k < w->op->origin.n; k++)
        if (!index_ok(w, w->op->origin.iters[k], "origin"))
            return false;
    return true;
}

static bool row_ok(Wellformed *w)
{
    const Op *op = w->op;
    const OpInfo *row = op_info(op->code);
    if (row->n_results >= 0 && op->n_results != (unsigned)row->n_results)
        return fault(w, "has %d results, found %u", row->n_results,
                     op->n_results);
    if (row->n_blocks >= 0 ? op->n_blocks != (unsigned)row->n_blocks
                           : op->n_blocks < 1 || op->n_blocks > 2)
        return fault(w, "has %u blocks, expected %s", op->n_blocks,
                     row->n_blocks < 0 ? "1 or 2"
                     : row->n_blocks   ? "1"
                                       : "none");
    if (!operands_match(w) || !attrs_match(w) || !attr_exprs_ok(w))
        return false;
    for (unsigned i = 0; i < op->n_operands; i++)
        if (!operand_ok(w, &op->operands[i]))
            return false;
    return true;
}

/* ---- types by op --------------------------------------------------------------------------- */

static const Type *operand_type(const Op *op, unsigned i)
{
    return op->operands[i].u.value->type;
}

static bool want_type(Wellformed *w, const char *what, const Type *have,
                      const Type *want)
{
    return have == want || fault(w, "%s is to be %s, found %s", what,
                                 type_label(w, want), type_label(w, have));
}

static bool want_kind(Wellformed *w, const char *what, const Type *have,
                      TypeKind kind, const char *kind_text)
{
    return have->kind == kind || fault(w, "%s is to be %s, found %s", what,
                                       kind_text, type_label(w, have));
}

/* Operands and result are scalars of one type. */
static bool arith_ok(Wellformed *w)
{
    const Op *op = w->op;
    const Type *r = op->results[0]->type;
    if (!want_kind(w, "result", r, TK_scalar, "a scalar"))
        return false;
    if (op->code == OP_arith_const) {
        const Param *p = op_attr_param(op, "value");
        return (p && (p->kind == PARAM_int || p->kind == PARAM_float ||
                      p->kind == PARAM_bool)) ||
               fault(w, "attribute 'value' is to be a number");
    }
    for (unsigned i = 0; i < op->n_operands; i++) {
        const Type *t = operand_type(op, i);
        if (op->code == OP_arith_cast
                ? !want_kind(w, "operand", t, TK_scalar, "a scalar")
                : !want_type(w, "operand", t, r))
            return false;
    }
    return true;
}

/* Every dimension a point, the base a tensor or a window of one: a tensor-map
 * window too, which bodies of copies and programs without their annotations
 * read and write, with its meaning outside the tensor. */
static bool element_ok(Wellformed *w, const Access *a)
{
    const Type *t = a->base->type;
    if (t->kind != TK_tensor && t->kind != TK_window && t->kind != TK_map)
        return fault(w, "touches %s, which is a %s, not a tensor or window",
                     value_label(w, a->base), type_label(w, t));
    for (unsigned i = 0; i < a->rank; i++)
        if (a->dims[i].kind == DIM_interval)
            return fault(w,
                         "index %u of %s is to be a point, found an interval",
                         i + 1, value_label(w, a->base));
    return true;
}

static bool memory_ok(Wellformed *w)
{
    const Op *op = w->op;
    const Access *a = op->operands[0].u.access;
    if (!element_ok(w, a))
        return false;
    const Type *elem = type_scalar(w->m->ctx, a->base->type->elem);
    if (op->code == OP_mem_load)
        return want_type(w, "result", op->results[0]->type, elem);
    for (unsigned i = 1; i < op->n_operands; i++)
        if (!want_type(w, "value", operand_type(op, i), elem))
            return false;
    return true;
}

/* The dimensions of a view are the intervals of its access. */
static bool window_ok(Wellformed *w)
{
    const Op *op = w->op;
    const Access *a = op->operands[0].u.access;
    const Value *r = op->results[0];
    const Type *base = a->base->type;
    unsigned n = 0;
    if (base->kind != TK_tensor && base->kind != TK_window &&
        base->kind != TK_map)
        return fault(w, "views %s, which is a %s", value_label(w, a->base),
                     type_label(w, base));
    for (unsigned i = 0; i < a->rank; i++)
        n += a->dims[i].kind == DIM_interval;
    if (r->type->kind != TK_window && r->type->kind != TK_map)
        return fault(w, "result is to be a window or map, found %s",
                     type_label(w, r->type));
    if (r->type->rank != n)
        return fault(w, "result has rank %u, but the access has %u intervals",
                     r->type->rank, n);
    return r->type->elem == base->elem ||
           fault(w, "result has elements %s, those of %s are %s",
                 scalar_type_name(r->type->elem), value_label(w, a->base),
                 scalar_type_name(base->elem));
}

static bool alloc_ok(Wellformed *w)
{
    const Type *t = w->op->results[0]->type;
    return t->kind == TK_tensor || t->kind == TK_barrier ||
           fault(w, "result is to be a tensor or barrier, found %s",
                 type_label(w, t));
}

/* The last op of a block that has to yield, or NULL and a report. */
static const Op *block_yield(Wellformed *w, const Block *b)
{
    if (b->last && b->last->code == OP_ctl_yield)
        return b->last;
    fault(w, "has results, so each block is to end in ctl.yield");
    return NULL;
}

static bool yields_ok(Wellformed *w, const Block *b)
{
    const Op *op = w->op;
    bool ends = b->last && b->last->code == OP_ctl_yield;
    if (op->n_results == 0 && !ends)
        return true;
    const Op *y = block_yield(w, b);
    if (!y)
        return false;
    if (y->n_operands != op->n_results)
        return fault(w, "has %u results, but a block yields %u values",
                     op->n_results, y->n_operands);
    for (unsigned i = 0; i < y->n_operands; i++)
        if (y->operands[i].kind == OPND_value && y->operands[i].u.value &&
            !want_type(w, "yielded value", y->operands[i].u.value->type,
                       op->results[i]->type))
            return false;
    return true;
}

/* The arguments of a loop's block: n_vars variables, then what is carried. */
static bool loop_ok(Wellformed *w, unsigned n_vars)
{
    const Op *op = w->op;
    const Block *b = op->blocks[0];
    if (op->n_operands < 2 * n_vars ||
        op->n_operands - 2 * n_vars != op->n_results)
        return fault(w, "carries %u values in and %u out",
                     op->n_operands < 2 * n_vars ? 0
                                                 : op->n_operands - 2 * n_vars,
                     op->n_results);
    if (b->n_args != n_vars + op->n_results)
        return fault(w, "has %u block arguments, expected %u", b->n_args,
                     n_vars + op->n_results);
    for (unsigned i = 0; i < b->n_args; i++) {
        if ((i < n_vars) != (b->args[i].value == NULL))
            return fault(w, "block argument %u is to be a %s", i + 1,
                         i < n_vars ? "variable" : "value");
        if (i >= n_vars &&
            (op->operands[n_vars + i].kind != OPND_value ||
             !want_type(w, "initial value", operand_type(op, n_vars + i),
                        b->args[i].value->type) ||
             !want_type(w, "result", op->results[i - n_vars]->type,
                        b->args[i].value->type)))
            return false;
    }
    return true;
}

static bool for_ok(Wellformed *w)
{
    static const char *const modes[] = { "seq", "par", "tasks", "threads" };
    const Op *op = w->op;
    const char *mode = op_attr_str(op, "mode", "seq");
    const Attr *unit = op_attr(op, "unit");
    bool known = false;
    for (int i = 0; i < 4; i++)
        known |= !strcmp(mode, modes[i]);
    if (!known)
        return fault(w, "has mode '%s', expected seq, par, tasks or threads",
                     mode);
    if (!strcmp(mode, "threads") != (unit && unit->kind == ATTR_unit))
        return fault(w, unit ? "has a unit, but its mode is not threads"
                             : "has mode threads, so it is to have a unit");
    return loop_ok(w, 1);
}

static bool tasks_ok(Wellformed *w)
{
    const Op *op = w->op;
    int64_t rank = op_attr_int(op, "rank", 0);
    if (rank < 1 || rank > (int64_t)op->n_operands / 2)
        return fault(w, "has rank %lld and %u operands", (long long)rank,
                     op->n_operands);
    for (unsigned i = 0; i < 2 * (unsigned)rank; i++)
        if (op->operands[i].kind != OPND_index)
            return fault(w, "bound %u is to be an index expression", i + 1);
    return loop_ok(w, (unsigned)rank);
}

static bool assert_ok(Wellformed *w)
{
    const Op *parent = op_parent(w->op);
    return (parent &&
            (parent->code == OP_ctl_proc || parent->code == OP_host_proc ||
             parent->code == OP_async_kernel)) ||
           fault(w, "stands at the top of a procedure only");
}

static bool argument_ok(Wellformed *w, unsigned i, const BlockArg *param)
{
    const Operand *o = &w->op->operands[i];
    if (!param->value)
        return o->kind == OPND_index || o->kind == OPND_cond ||
               fault(w, "argument %u is to be an index expression", i + 1);
    if (o->kind != OPND_access && o->kind != OPND_value)
        return fault(w, "argument %u is to be a tensor or window", i + 1);
    const Type *want = param->value->type;
    if (o->kind == OPND_value) {
        const Type *have = o->u.value->type;
        return (have->kind == want->kind && have->rank == want->rank &&
                have->elem == want->elem) ||
               fault(w, "argument %u is to be a %s, found %s", i + 1,
                     type_label(w, want), type_label(w, have));
    }
    unsigned n = 0;
    for (unsigned d = 0; d < o->u.access->rank; d++)
        n += o->u.access->dims[d].kind == DIM_interval;
    return n == want->rank ||
           fault(w, "argument %u has rank %u, but the parameter's is %u", i + 1,
                 n, want->rank);
}

/* Callee and argument kinds; coordinates of a kernel are no parameters. */
static bool symbol_call_ok(Wellformed *w, const char *key, OpCode code)
{
    const Op *op = w->op;
    const char *name = op_attr_str(op, key, NULL);
    if (!name)
        return fault(w, "attribute '%s' is to be a string", key);
    const Op *callee = name_map_get(w->symbols, ctx_intern(w->m->ctx, name));
    if (!callee || callee->code != code)
        return fault(w, "calls '@%s', but there is no such %s", name,
                     code == OP_ctl_proc ? "procedure" : "kernel");
    const Block *b = callee->blocks[0];
    unsigned n = b->n_args;
    while (n > 0 && !b->args[n - 1].value &&
           var_get(w->m->exprs, b->args[n - 1].var)->kind == VAR_coord)
        n--;
    if (op->n_operands != n)
        return fault(w, "passes %u arguments to '@%s', which takes %u",
                     op->n_operands, name, n);
    for (unsigned i = 0; i < n; i++)
        if (!argument_ok(w, i, &b->args[i]))
            return false;
    return true;
}

static bool instr_ok(Wellformed *w)
{
    const Op *op = w->op;
    const Param *targs = op_attr_param(op, "targs");
    if (!op_attr_str(op, "callee", NULL))
        return fault(w, "attribute 'callee' is to be a string");
    if (op_attr(op, "targs") && (!targs || targs->kind != PARAM_tuple))
        return fault(w, "attribute 'targs' is to be a tuple");
    for (unsigned i = 0; targs && i < targs->n; i++)
        if (!targs->items[i].name)
            return fault(w, "template argument %u has no name", i + 1);
    return true;
}

/* What is passed through keeps its type. */
static bool pass_through_ok(Wellformed *w)
{
    const Op *op = w->op;
    if (op->n_results != op->n_operands)
        return fault(w, "passes %u fragments through and has %u results",
                     op->n_operands, op->n_results);
    for (unsigned i = 0; i < op->n_results; i++)
        if (!want_kind(w, "operand", operand_type(op, i), TK_frag,
                       "a fragment") ||
            !want_type(w, "result", op->results[i]->type, operand_type(op, i)))
            return false;
    return true;
}

static bool slot_ok(Wellformed *w, const Type *frag, const Type *scalar)
{
    int64_t slot = op_attr_int(w->op, "slot", -1);
    if (!want_kind(w, "operand", frag, TK_frag, "a fragment"))
        return false;
    if (slot < 0 || slot >= frag->n)
        return fault(w, "has slot %lld of a fragment with %lld",
                     (long long)slot, (long long)frag->n);
    return want_type(w, "scalar", scalar, type_scalar(w->m->ctx, frag->elem));
}

static bool mbarrier_access_ok(Wellformed *w, unsigned i)
{
    const Access *a = w->op->operands[i].u.access;
    return want_kind(w, "barrier operand", a->base->type, TK_mbarrier,
                     "an mbarrier array");
}

static bool frag_ok(Wellformed *w)
{
    const Op *op = w->op;
    const Type *r = op->results[0]->type;
    switch (op->code) {
    case OP_async_frag_extract:
        return slot_ok(w, operand_type(op, 0), r);
    case OP_async_frag_insert:
        return slot_ok(w, operand_type(op, 0), operand_type(op, 1)) &&
               want_type(w, "result", r, operand_type(op, 0));
    case OP_async_wgmma_mma_async:
        return want_kind(w, "operand", operand_type(op, 0), TK_frag,
                         "a fragment") &&
               want_type(w, "result", r, operand_type(op, 0));
    default:
        return want_kind(w, "result", r, TK_frag, "a fragment");
    }
}

static bool async_ok(Wellformed *w)
{
    const Op *op = w->op;
    switch (op->code) {
    case OP_async_tasks:
        return tasks_ok(w);
    case OP_async_instr:
        return instr_ok(w);
    case OP_async_ring_init:
        return want_kind(w, "result", op->results[0]->type, TK_ring, "a ring");
    case OP_async_ring_advance:
        return want_kind(w, "operand", operand_type(op, 0), TK_ring,
                         "a ring") &&
               want_type(w, "result", op->results[0]->type,
                         operand_type(op, 0));
    case OP_async_mbarrier_alloc:
        return want_kind(w, "result", op->results[0]->type, TK_mbarrier,
                         "an mbarrier array");
    case OP_async_mbarrier_init:
        return want_kind(w, "operand", operand_type(op, 0), TK_mbarrier,
                         "an mbarrier array");
    case OP_async_mbarrier_wait:
    case OP_async_mbarrier_arrive:
    case OP_async_mbarrier_expect_tx:
    case OP_async_cp_async_mbarrier_arrive:
        return mbarrier_access_ok(w, 0);
    case OP_async_bulk_tensor_load:
        return mbarrier_access_ok(w, 2);
    case OP_async_frag_undef:
    case OP_async_frag_zero:
    case OP_async_frag_extract:
    case OP_async_frag_insert:
    case OP_async_wgmma_mma_async:
        return frag_ok(w);
    case OP_async_wgmma_fence:
    case OP_async_wgmma_wait_group:
        return pass_through_ok(w);
    default:
        return true;
    }
}

static bool sync_ok(Wellformed *w)
{
    for (unsigned i = 0; i < w->op->n_operands; i++) {
        const Value *b = w->op->operands[i].u.access->base;
        if (!want_kind(w, "operand", b->type, TK_barrier, "a barrier"))
            return false;
    }
    return true;
}

static bool op_rules_ok(Wellformed *w)
{
    switch (w->op->code) {
    case OP_ctl_assert:
        return assert_ok(w);
    case OP_ctl_for:
        return for_ok(w);
    case OP_ctl_if:
        return w->op->n_results == 0 || w->op->n_blocks == 2 ||
               fault(w, "has results, so it is to have an else");
    case OP_ctl_call:
        return symbol_call_ok(w, "callee", OP_ctl_proc);
    case OP_host_launch:
        return symbol_call_ok(w, "kernel", OP_async_kernel);
    case OP_par_instr:
        return instr_ok(w);
    case OP_par_arrive:
    case OP_par_await:
        return sync_ok(w);
    case OP_mem_load:
    case OP_mem_store:
    case OP_mem_reduce:
        return memory_ok(w);
    case OP_mem_window:
    case OP_host_tensor_map:
        return window_ok(w);
    case OP_mem_alloc:
    case OP_host_alloc:
        return alloc_ok(w);
    default:
        break;
    }
    const char *dialect = op_info(w->op->code)->dialect;
    if (!strcmp(dialect, "arith"))
        return arith_ok(w);
    return strcmp(dialect, "async") || async_ok(w);
}

/* ---- the walk ------------------------------------------------------------------------------ */

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
            fault(w, "has a result without a type");
            return;
        }
    bool ok = row_ok(w) && op_rules_ok(w);
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
            ok = yields_ok(w, op->blocks[i]);
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
            fault(w, "is to be the last of its block");
        if (op_has(op, OPT_SYMBOL) && b->parent)
            fault(w, "stands at the top level only");
    }
}

static void collect_symbols(Wellformed *w)
{
    for (const Op *op = w->m->body->first; op; op = op->next) {
        w->op = op;
        if (!op_has(op, OPT_SYMBOL)) {
            fault(w, "is to stand in a procedure or kernel");
            continue;
        }
        const char *name = op_attr_str(op, "name", NULL);
        if (!name || !*name) {
            fault(w, "has no name");
            continue;
        }
        name = ctx_intern(w->m->ctx, name);
        if (name_map_get(w->symbols, name))
            fault(w, "has the name '@%s', which is taken", name);
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
