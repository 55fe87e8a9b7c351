/* The rules of single ops beyond their rows: types, ranks, blocks, callees. */
#include "ir/cache_hint.h"
#include "ir/eir_types.h"
#include "ir/task_order.h"
#include "ir/wellformed_internal.h"

#include <string.h>

/* ---- types by op --------------------------------------------------------- */

static const Type *operand_type(const Op *op, unsigned i)
{
    return op->operands[i].u.value->type;
}

static bool want_type(Wellformed *w, const char *what, const Type *have,
                      const Type *want)
{
    return have == want ||
           wf_fault(w, "%s is to be %s, found %s", what, wf_type_label(w, want),
                    wf_type_label(w, have));
}

static bool want_kind(Wellformed *w, const char *what, const Type *have,
                      TypeKind kind, const char *kind_text)
{
    return have->kind == kind || wf_fault(w, "%s is to be %s, found %s", what,
                                          kind_text, wf_type_label(w, have));
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
               wf_fault(w, "attribute 'value' is to be a number");
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
        return wf_fault(w, "touches %s, which is a %s, not a tensor or window",
                        wf_value_label(w, a->base), wf_type_label(w, t));
    for (unsigned i = 0; i < a->rank; i++)
        if (a->dims[i].kind == DIM_interval)
            return wf_fault(
                w, "index %u of %s is to be a point, found an interval", i + 1,
                wf_value_label(w, a->base));
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
        return wf_fault(w, "views %s, which is a %s",
                        wf_value_label(w, a->base), wf_type_label(w, base));
    for (unsigned i = 0; i < a->rank; i++)
        n += a->dims[i].kind == DIM_interval;
    if (r->type->kind != TK_window && r->type->kind != TK_map)
        return wf_fault(w, "result is to be a window or map, found %s",
                        wf_type_label(w, r->type));
    if (r->type->rank != n)
        return wf_fault(w,
                        "result has rank %u, but the access has %u intervals",
                        r->type->rank, n);
    return r->type->elem == base->elem ||
           wf_fault(w, "result has elements %s, those of %s are %s",
                    scalar_type_name(r->type->elem), wf_value_label(w, a->base),
                    scalar_type_name(base->elem));
}

static bool alloc_ok(Wellformed *w)
{
    const Type *t = w->op->results[0]->type;
    return t->kind == TK_tensor || t->kind == TK_barrier ||
           wf_fault(w, "result is to be a tensor or barrier, found %s",
                    wf_type_label(w, t));
}

/* The last op of a block that has to yield, or NULL and a report. */
static const Op *block_yield(Wellformed *w, const Block *b)
{
    if (b->last && b->last->code == OP_ctl_yield)
        return b->last;
    wf_fault(w, "has results, so each block is to end in ctl.yield");
    return NULL;
}

bool wf_yields_ok(Wellformed *w, const Block *b)
{
    const Op *op = w->op;
    bool ends = b->last && b->last->code == OP_ctl_yield;
    if (op->n_results == 0 && !ends)
        return true;
    const Op *y = block_yield(w, b);
    if (!y)
        return false;
    if (y->n_operands != op->n_results)
        return wf_fault(w, "has %u results, but a block yields %u values",
                        op->n_results, y->n_operands);
    for (unsigned i = 0; i < y->n_operands; i++)
        if (y->operands[i].kind == OPND_value && y->operands[i].u.value &&
            !want_type(w, "yielded value", y->operands[i].u.value->type,
                       op->results[i]->type))
            return false;
    return true;
}

/* The arguments of a loop's block: n_vars variables, then what is carried. */
static bool loop_ok(Wellformed *w)
{
    const Op *op = w->op;
    const Block *b = op->blocks[0];
    unsigned first = eir_first_carried(op), n_vars = eir_loop_vars(op);
    if (op->n_operands < first || op->n_operands - first != op->n_results)
        return wf_fault(w, "carries %u values in and %u out",
                        op->n_operands < first ? 0 : op->n_operands - first,
                        op->n_results);
    if (b->n_args != n_vars + op->n_results)
        return wf_fault(w, "has %u block arguments, expected %u", b->n_args,
                        n_vars + op->n_results);
    for (unsigned i = 0; i < b->n_args; i++) {
        if ((i < n_vars) != (b->args[i].value == NULL))
            return wf_fault(w, "block argument %u is to be a %s", i + 1,
                            i < n_vars ? "variable" : "value");
        if (i >= n_vars &&
            (op->operands[first + i - n_vars].kind != OPND_value ||
             !want_type(w, "initial value",
                        operand_type(op, first + i - n_vars),
                        b->args[i].value->type) ||
             !want_type(w, "result", op->results[i - n_vars]->type,
                        b->args[i].value->type)))
            return false;
    }
    return true;
}

/* `group`: absent, or how many of a task loop's iterations come together. */
static bool group_ok(Wellformed *w, bool allowed)
{
    const Op *op = w->op;
    if (!op_attr(op, "group"))
        return true;
    int64_t g = op_attr_int(op, "group", 0);
    if (!allowed)
        return wf_fault(w, "has a group, which only a task loop around "
                           "another may have");
    return (g >= 1 && g <= INT32_MAX) ||
           wf_fault(w, "has group %lld, expected 1 to 2147483647",
                    (long long)g);
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
        return wf_fault(w, "has mode '%s', expected seq, par, tasks or threads",
                        mode);
    if (!strcmp(mode, "threads") != (unit && unit->kind == ATTR_unit))
        return wf_fault(w, unit ? "has a unit, but its mode is not threads"
                                : "has mode threads, so it is to have a unit");
    return group_ok(w, !strcmp(mode, "tasks")) && loop_ok(w);
}

static bool tasks_ok(Wellformed *w)
{
    const Op *op = w->op;
    int64_t rank = op_attr_int(op, "rank", 0);
    if (rank < 1 || rank > MAX_TASK_LOOPS || rank > (int64_t)op->n_operands / 2)
        return wf_fault(w, "has rank %lld and %u operands", (long long)rank,
                        op->n_operands);
    for (unsigned i = 0; i < 2 * (unsigned)rank; i++)
        if (op->operands[i].kind != OPND_index)
            return wf_fault(w, "bound %u is to be an index expression", i + 1);
    return group_ok(w, rank >= 2) && loop_ok(w);
}

static bool assert_ok(Wellformed *w)
{
    const Op *parent = op_parent(w->op);
    return (parent &&
            (parent->code == OP_ctl_proc || parent->code == OP_host_proc ||
             parent->code == OP_async_kernel)) ||
           wf_fault(w, "stands at the top of a procedure only");
}

static bool argument_ok(Wellformed *w, unsigned i, const BlockArg *param)
{
    const Operand *o = &w->op->operands[i];
    if (!param->value)
        return o->kind == OPND_index || o->kind == OPND_cond ||
               wf_fault(w, "argument %u is to be an index expression", i + 1);
    if (o->kind != OPND_access && o->kind != OPND_value)
        return wf_fault(w, "argument %u is to be a tensor or window", i + 1);
    const Type *want = param->value->type;
    if (o->kind == OPND_value) {
        const Type *have = o->u.value->type;
        return (have->kind == want->kind && have->rank == want->rank &&
                have->elem == want->elem) ||
               wf_fault(w, "argument %u is to be a %s, found %s", i + 1,
                        wf_type_label(w, want), wf_type_label(w, have));
    }
    unsigned n = 0;
    for (unsigned d = 0; d < o->u.access->rank; d++)
        n += o->u.access->dims[d].kind == DIM_interval;
    return n == want->rank ||
           wf_fault(w, "argument %u has rank %u, but the parameter's is %u",
                    i + 1, n, want->rank);
}

/* Callee and argument kinds; coordinates of a kernel are no parameters. */
static bool symbol_call_ok(Wellformed *w, const char *key, OpCode code)
{
    const Op *op = w->op;
    const char *name = op_attr_str(op, key, NULL);
    if (!name)
        return wf_fault(w, "attribute '%s' is to be a string", key);
    const Op *callee = name_map_get(w->symbols, ctx_intern(w->m->ctx, name));
    if (!callee || callee->code != code)
        return wf_fault(w, "calls '@%s', but there is no such %s", name,
                        code == OP_ctl_proc ? "procedure" : "kernel");
    const Block *b = callee->blocks[0];
    unsigned n = b->n_args;
    while (n > 0 && !b->args[n - 1].value &&
           var_get(w->m->exprs, b->args[n - 1].var)->kind == VAR_coord)
        n--;
    if (op->n_operands != n)
        return wf_fault(w, "passes %u arguments to '@%s', which takes %u",
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
        return wf_fault(w, "attribute 'callee' is to be a string");
    if (op_attr(op, "targs") && (!targs || targs->kind != PARAM_tuple))
        return wf_fault(w, "attribute 'targs' is to be a tuple");
    for (unsigned i = 0; targs && i < targs->n; i++)
        if (!targs->items[i].name)
            return wf_fault(w, "template argument %u has no name", i + 1);
    return true;
}

/* What is passed through keeps its type. */
static bool pass_through_ok(Wellformed *w)
{
    const Op *op = w->op;
    if (op->n_results != op->n_operands)
        return wf_fault(w, "passes %u fragments through and has %u results",
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
        return wf_fault(w, "has slot %lld of a fragment with %lld",
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

/* A kernel's last parameters are its coordinates. */
static bool kernel_ok(Wellformed *w)
{
    const Block *b = w->op->blocks[0];
    for (unsigned i = 1; i <= 3; i++)
        if (b->n_args < i || b->args[b->n_args - i].value ||
            var_get(w->m->exprs, b->args[b->n_args - i].var)->kind != VAR_coord)
            return wf_fault(w,
                            "lacks coordinates: its last three parameters are "
                            "to be of kind coord");
    return true;
}

static bool cta_list_ok(Wellformed *w)
{
    const Param *p = op_attr_param(w->op, "cta_xor");
    for (unsigned i = 0; p && i < p->n; i++)
        if (p->items[i].kind != PARAM_int || p->items[i].i < 0 ||
            p->items[i].i > 15)
            return wf_fault(w, "attribute 'cta_xor' is to hold integers from 0 "
                               "to 15");
    return true;
}

/* As many scalars of 32 bits as the access's last interval is long. */
static bool cluster_load_ok(Wellformed *w)
{
    const Op *op = w->op;
    const Access *a = op->operands[0].u.access;
    const AccessDim *last = a->rank ? &a->dims[a->rank - 1] : NULL;
    int64_t n;
    if (!last || last->kind != DIM_interval ||
        !affine_is_const(last->len, &n) || n != op->n_results ||
        (n != 1 && n != 2 && n != 4) ||
        scalar_type_bytes(a->base->type->elem) != 4)
        return wf_fault(w, "is to load 1, 2 or 4 neighbours of 32 bits, the "
                           "last interval of its access, a result each");
    for (unsigned i = 0; i < op->n_results; i++)
        if (!want_kind(w, "result", op->results[i]->type, TK_scalar,
                       "a scalar") ||
            op->results[i]->type->elem != a->base->type->elem)
            return wf_fault(w, "is to have results of the tensor's type");
    return true;
}

static bool cache_hint_ok(Wellformed *w)
{
    int64_t policy;
    const char *hint = op_attr_str(w->op, "cache_hint", NULL);
    if (!hint || cache_hint_policy(hint, &policy))
        return true;
    return wf_fault(w,
                    "attribute 'cache_hint' is '%s', which is no eviction "
                    "priority of PTX such as 'evict_first'",
                    hint);
}

static bool async_ok(Wellformed *w)
{
    const Op *op = w->op;
    switch (op->code) {
    case OP_async_kernel:
        return kernel_ok(w);
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
    case OP_async_mbarrier_arrive:
        return cta_list_ok(w) && mbarrier_access_ok(w, 0);
    case OP_async_mbarrier_wait:
    case OP_async_mbarrier_expect_tx:
    case OP_async_cp_async_mbarrier_arrive:
        return mbarrier_access_ok(w, 0);
    case OP_async_cluster_load:
        return cluster_load_ok(w);
    case OP_async_bulk_tensor_load:
        return cta_list_ok(w) && cache_hint_ok(w) && mbarrier_access_ok(w, 2);
    case OP_async_bulk_copy:
        return mbarrier_access_ok(w, 2);
    case OP_async_bulk_tensor_store:
    case OP_async_bulk_tensor_reduce:
        return cache_hint_ok(w);
    case OP_async_prefetch_tensormap:
        return want_kind(w, "operand", operand_type(op, 0), TK_map,
                         "a tensor map");
    case OP_async_frag_undef:
    case OP_async_frag_zero:
    case OP_async_frag_extract:
    case OP_async_frag_insert:
    case OP_async_wgmma_mma_async:
        return frag_ok(w);
    case OP_async_shfl_sync:
        return want_kind(w, "operand", operand_type(w->op, 0), TK_scalar,
                         "a scalar") &&
               want_type(w, "result", w->op->results[0]->type,
                         operand_type(w->op, 0));
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

bool wf_op_rules_ok(Wellformed *w)
{
    switch (w->op->code) {
    case OP_ctl_assert:
        return assert_ok(w);
    case OP_ctl_for:
        return for_ok(w);
    case OP_ctl_if:
        return w->op->n_results == 0 || w->op->n_blocks == 2 ||
               wf_fault(w, "has results, so it is to have an else");
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
    return strcmp(dialect, "async") != 0 || async_ok(w);
}
