/* Arguments of instructions and calls: the actual memory stands for the formal
 * one, packed dimensions are passed whole, trailing barriers are there when the
 * instruction takes one. */
#include "verify/check_par_internal.h"

static void check_memory(ParCheck *c, const Op *op, const char *callee,
                         const char *param, const MemRef *want, const Access *a)
{
    const MemRef *found = value_root(a->base)->type->mem;
    if (!want || !found || !c->m->lib || mem_is_a(c->m->lib, found, want))
        return;
    Diag *d = pc_error(c, op, "argument",
                       "argument %s of %s: expected memory "
                       "%s, found %s of %s",
                       param, callee, par_text_mem(c->m, want),
                       par_text_mem(c->m, found), par_text_value(a->base));
    diag_fix(c->ctx, d, "allocate %s in %s", par_text_value(a->base),
             par_text_mem(c->m, want));
}

static bool is_whole(const Access *a, unsigned i)
{
    int64_t lo;
    return a->dims[i].kind == DIM_interval &&
           affine_is_const(a->dims[i].lo, &lo) && lo == 0 &&
           a->dims[i].len == a->base->shape[i];
}

/* Of a tile: points, then as many intervals as the parameter has dimensions
 * before the tile, then the tile itself. */
static void check_packed(ParCheck *c, const Op *op, const Instr *in,
                         const InstrParam *p, const Access *access)
{
    const Access *a = access_compose(c->m, access);
    const Mem *mem = pc_mem(c, a->base);
    if (!mem || !mem->packed || a->rank < mem->packed)
        return;
    unsigned first = a->rank - mem->packed, spread = 0;
    unsigned intervals = p->rank > mem->packed ? p->rank - mem->packed : 0;
    for (unsigned i = 0; i < first; i++) {
        if (a->dims[i].kind == DIM_point || spread++ < intervals)
            continue;
        pc_error(c, op, "argument",
                 "argument %s of %s: expected a point "
                 "expression for idx[%u] of %s, before the packed dimensions "
                 "of %s",
                 p->name, in->name, i, par_text_access(c->m, a),
                 par_text_mem(c->m, mem->ref));
        return;
    }
    for (unsigned i = first; i < a->rank; i++) {
        if (is_whole(a, i))
            continue;
        pc_error(c, op, "argument",
                 "argument %s of %s: packed dimension "
                 "idx[%u] of %s must be the interval 0:%s; a tile is passed "
                 "whole",
                 p->name, in->name, i, par_text_access(c->m, a),
                 par_text_affine(c->m, a->base->shape[i]));
        return;
    }
}

/* ---- trailing barriers -------------------------------------------------- */

static void check_trailing(ParCheck *c, const Op *op, const Instr *in)
{
    bool given = op_attr_int(op, "trailing", 0) && op->n_operands;
    if (given && !in->trailing_mechanism) {
        pc_error(c, op, "barrier",
                 "%s does not take trailing barrier "
                 "expression",
                 in->name);
        return;
    }
    if (!given) {
        if (!in->trailing_mechanism)
            return;
        Diag *d =
            pc_error(c, op, "barrier",
                     "%s requires trailing barrier "
                     "expression of %s",
                     in->name, par_text_mem(c->m, in->trailing_mechanism));
        diag_fix(c->ctx, d, "write `>> barrier[..]` after the call");
        return;
    }
    const Operand *o = &op->operands[op->n_operands - 1];
    if (o->kind != OPND_access || o->u.access->base->type->kind != TK_barrier) {
        pc_error(c, op, "barrier",
                 "the trailing barrier expression of %s "
                 "requires barrier type",
                 in->name);
        return;
    }
    const MemRef *found = o->u.access->base->type->mem;
    if (c->m->lib && !mem_is_a(c->m->lib, found, in->trailing_mechanism))
        pc_error(c, op, "barrier",
                 "%s requires trailing barrier expression "
                 "of %s, found %s of %s",
                 in->name, par_text_mem(c->m, in->trailing_mechanism),
                 par_text_mem(c->m, found), par_text_value(o->u.access->base));
}

/* ---- timelines ----------------------------------------------------------- */

/* An instruction on a timeline by which its memory cannot be accessed. */
static void check_timeline(ParCheck *c, const Op *op, const Instr *in,
                           const InstrParam *p, const Access *a)
{
    const Mem *mem = pc_mem(c, a->base);
    uint32_t initial, extended;
    if (!mem || !mem->qual_family ||
        qual_family_lookup(mem->qual_family, in->timeline, &initial, &extended))
        return;
    pc_error(c, op, "permission",
             "argument %s of %s: no qual-tl for %s of %s given instr-tl %s",
             p->name, in->name, par_text_mem(c->m, mem->ref),
             par_text_value(a->base), in->timeline);
}

/* ---- the walk ----------------------------------------------------------- */

static void check_instr(ParCheck *c, const Op *op)
{
    const Instr *in = op_instr(c->m, op);
    if (!in)
        return;
    unsigned n = op->n_operands < in->n_params ? op->n_operands : in->n_params;
    for (unsigned i = 0; i < n; i++) {
        if (op->operands[i].kind != OPND_access)
            continue;
        const InstrParam *p = &in->params[i];
        check_memory(c, op, in->name, p->name, p->mem,
                     op->operands[i].u.access);
        check_packed(c, op, in, p, op->operands[i].u.access);
        check_timeline(c, op, in, p, op->operands[i].u.access);
    }
    check_trailing(c, op, in);
}

static void check_call(ParCheck *c, const Op *op)
{
    const char *name = op_attr_str(op, "callee", "");
    const Op *callee = module_symbol(c->m, name);
    if (!callee || callee->code != OP_ctl_proc)
        return;
    const Block *params = callee->blocks[0];
    for (unsigned i = 0; i < op->n_operands && i < params->n_args; i++) {
        const Value *v = params->args[i].value;
        if (v && op->operands[i].kind == OPND_access)
            check_memory(c, op, name, par_text_value(v), v->type->mem,
                         op->operands[i].u.access);
    }
}

static bool check_op(Op *op, void *user)
{
    if (op->code == OP_par_instr)
        check_instr(user, op);
    else if (op->code == OP_ctl_call)
        check_call(user, op);
    return true;
}

/* A register tile has no address to hand over. */
static void check_window_params(ParCheck *c)
{
    const Block *params = c->proc->blocks[0];
    for (unsigned i = 0; i < params->n_args; i++) {
        Value *v = params->args[i].value;
        const Mem *mem = v && v->type->kind == TK_window ? pc_mem(c, v) : NULL;
        if (mem && mem->packed && mem->family == MEMF_register)
            pc_error(c, c->proc, "memory",
                     "parameter %s: %s has no "
                     "WindowEncoder, so that it cannot be a window parameter",
                     par_text_value(v), par_text_mem(c->m, mem->ref));
    }
}

void check_par_args(ParCheck *c)
{
    check_window_params(c);
    op_walk(c->proc, check_op, c);
}
