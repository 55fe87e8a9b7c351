/* The bodies of instructions on register tiles.
 *
 * A body is a nest over elements. Its innermost block is emitted with loads and
 * stores of tiles replaced by values: the hook gives what a load is, the store
 * sets the destination's current value. Scalars are read once, before; index
 * parameters are put in; an if becomes an if that carries that value. */
#include "passes/lower/tile.h"

#include <string.h>

bool tile_body_refuse(TileBody *t)
{
    lower_error(t->L, t->op->loc, "instruction", "the body of '%s' is not %s",
                t->in->name, t->purpose);
    return false;
}

/* ---- opening ------------------------------------------------------------- */

/* The loop that a block consists of, behind its assertions. */
static const Op *only_loop(const Block *b)
{
    const Op *op = b->first;
    while (op && op->code == OP_ctl_assert)
        op = op->next;
    bool is =
        op && op->code == OP_ctl_for && !op->next && op->blocks[0]->n_args == 1;
    return is ? op : NULL;
}

static bool find_nest(TileBody *t)
{
    t->inner = t->in->body->blocks[0];
    for (const Op *loop; t->depth < 2 && (loop = only_loop(t->inner));) {
        t->inner = loop->blocks[0];
        t->loops[t->depth++] = t->inner->args[0].var;
    }
    return t->depth > 0 || tile_body_refuse(t);
}

static bool not_a_tile(TileBody *t, unsigned i)
{
    lower_error(t->L, t->op->loc, "instruction",
                "'%s' of '%s' is no register tile", t->in->params[i].name,
                t->in->name);
    return false;
}

/* The value of a tensor without dimensions. */
static Value *load_scalar(Lower *L, const Access *a, Loc loc)
{
    FragPart part;
    if (lower_in_registers(L, a->base))
        return frag_part(L, a, loc, &part) && frag_ready(L, part.frag, loc)
                   ? frag_part_slot(L, &part)
                   : NULL;
    Op *load = lower_emit(L, OP_mem_load, 1, 1, 0);
    load->operands[0] = opnd_access(lower_access(L, a));
    return op_set_result(L->m, load, 0,
                         type_scalar(L->ctx, a->base->type->elem), NULL);
}

static bool take_tile(TileBody *t, unsigned i, const Access *a)
{
    Lower *L = t->L;
    TileArg *arg = &t->args[i];
    int64_t slot;
    if (!lower_in_registers(L, a->base) ||
        !spread_of(L, lower_mem(L, a->base), &arg->spread) ||
        arg->spread.rank != t->in->params[i].rank)
        return not_a_tile(t, i);
    arg->frag = frag_get(L, a, t->op->loc, &slot);
    return arg->frag && frag_ready(L, arg->frag, t->op->loc);
}

static bool take_arg(TileBody *t, unsigned i, const BlockArg *param)
{
    const Operand *o = &t->op->operands[i];
    if (!param->value) {
        if (o->kind != OPND_index)
            return not_a_tile(t, i);
        clone_map_index(t->map, param->var, lower_index(t->L, o->u.index));
        return true;
    }
    t->args[i].param = param->value;
    if (o->kind != OPND_access)
        return not_a_tile(t, i);
    if (t->in->params[i].rank > 0)
        return take_tile(t, i, o->u.access);
    t->args[i].scalar = load_scalar(t->L, o->u.access, t->op->loc);
    return t->args[i].scalar != NULL;
}

/* v + c with v the variable of a loop of the nest. */
static bool take_index(const TileBody *t, const Affine *a, unsigned d,
                       TileIndex *index)
{
    ExprCtx *x = t->in->module->exprs;
    for (unsigned l = 0; l < t->depth; l++)
        if (affine_is_const(affine_sub(x, a, affine_var(x, t->loops[l])),
                            &index->offset[d])) {
            index->loop[d] = l;
            return true;
        }
    return false;
}

TileArg *tile_body_arg(TileBody *t, const Access *a, TileIndex *index)
{
    *index = (TileIndex){ { 0 }, { 0 } };
    for (unsigned d = 0; d < a->rank; d++)
        if (d > 1 || !take_index(t, a->dims[d].lo, d, index))
            return NULL;
    for (unsigned i = 0; i < t->n; i++)
        if (t->args[i].param == a->base)
            return &t->args[i];
    return NULL;
}

static bool index_equal(const TileIndex *a, const TileIndex *b)
{
    return !memcmp(a->loop, b->loop, sizeof a->loop) &&
           !memcmp(a->offset, b->offset, sizeof a->offset);
}

static bool is_store(const Op *op)
{
    return op->code == OP_mem_store || op->code == OP_mem_reduce;
}

/* The one tile that the stores of a block write, always at the same place. */
static bool find_dst(TileBody *t, const Block *b)
{
    for (const Op *op = b->first; op; op = op->next) {
        for (unsigned i = 0; i < op->n_blocks; i++)
            if (!find_dst(t, op->blocks[i]))
                return false;
        TileIndex index;
        if (!is_store(op))
            continue;
        TileArg *arg = tile_body_arg(t, op->operands[0].u.access, &index);
        if (!arg || !arg->frag || index.offset[0] || index.offset[1] ||
            (t->dst && (arg != t->dst || !index_equal(&index, &t->dst_index))))
            return false;
        t->dst = arg;
        t->dst_index = index;
    }
    return true;
}

bool tile_body_open(TileBody *t, Lower *L, Op *op, const Instr *in)
{
    t->L = L;
    t->op = op;
    t->in = in;
    t->n = in->n_params;
    t->args = ARENA_ARRAY(L->scratch, TileArg, t->n);
    t->map = clone_map_new(L->m, in->module);
    if (!find_nest(t))
        return false;
    for (unsigned i = 0; i < t->n; i++)
        if (!take_arg(t, i, &in->body->blocks[0]->args[i]))
            return false;
    return (find_dst(t, t->inner) && t->dst) || tile_body_refuse(t);
}

Value *tile_read_slot(Lower *L, int64_t slot, void *frag)
{
    return frag_part_slot(L, &(FragPart){ frag, slot, 1 });
}

/* ---- emitting ------------------------------------------------------------ */

static bool emit_block(TileBody *t, const Block *b);

static Value *value_of(TileBody *t, const Operand *o)
{
    return clone_map_get(t->map, o->u.value);
}

/* What the destination's element is by now. */
static Value *current(TileBody *t)
{
    if (!t->current)
        t->current =
            frag_part_slot(t->L, &(FragPart){ t->dst->frag, t->slot, 1 });
    return t->current;
}

static bool emit_load(TileBody *t, const Op *op)
{
    TileIndex index;
    TileArg *arg = tile_body_arg(t, op->operands[0].u.access, &index);
    if (!arg)
        return tile_body_refuse(t);
    Value *v;
    if (!arg->frag)
        v = arg->scalar;
    else if (arg == t->dst && index_equal(&index, &t->dst_index))
        v = current(t);
    else
        v = t->load(t, arg, &index);
    if (v)
        clone_map_value(t->map, op->results[0], v);
    return v != NULL;
}

/* old + v, or fma(v, w, old). */
static void emit_sum(TileBody *t, const Op *op)
{
    Lower *L = t->L;
    bool fused = op->n_operands == 3;
    Value *old = current(t);
    Op *sum =
        lower_emit(L, fused ? OP_arith_fma : OP_arith_add, fused ? 3 : 2, 1, 0);
    sum->operands[0] = opnd_value(value_of(t, &op->operands[1]));
    if (fused)
        sum->operands[1] = opnd_value(value_of(t, &op->operands[2]));
    sum->operands[fused ? 2 : 1] = opnd_value(old);
    t->current = op_set_result(L->m, sum, 0, old->type, NULL);
}

static void emit_arith(TileBody *t, const Op *op)
{
    Lower *L = t->L;
    Op *copy = lower_emit(L, op->code, op->n_operands, 1, 0);
    for (unsigned i = 0; i < op->n_operands; i++)
        copy->operands[i] = opnd_value(value_of(t, &op->operands[i]));
    for (unsigned i = 0; i < op->n_attrs; i++)
        op_set_attr(L->m, copy, op->attrs[i]);
    clone_map_value(t->map, op->results[0],
                    op_set_result(L->m, copy, 0, op->results[0]->type, NULL));
}

static bool emit_if(TileBody *t, const Op *op)
{
    Lower *L = t->L;
    const Cond *c = clone_cond(t->map, op->operands[0].u.cond);
    Value *before = current(t);
    if (!c)
        return tile_body_refuse(t);
    Block *outer = L->out;
    Op *choice = lower_emit(L, OP_ctl_if, 1, 1, 2);
    choice->operands[0] = opnd_cond(c);
    bool ok = true;
    for (unsigned i = 0; ok && i < 2; i++) {
        L->out = choice->blocks[i];
        t->current = before;
        ok = i >= op->n_blocks || emit_block(t, op->blocks[i]);
        lower_emit(L, OP_ctl_yield, 1, 0, 0)->operands[0] =
            opnd_value(t->current);
    }
    L->out = outer;
    t->current = op_set_result(L->m, choice, 0, before->type, NULL);
    return ok;
}

static bool emit_op(TileBody *t, const Op *op)
{
    switch (op->code) {
    case OP_mem_load:
        return emit_load(t, op);
    case OP_mem_store:
        t->current = value_of(t, &op->operands[1]);
        return true;
    case OP_mem_reduce:
        emit_sum(t, op);
        return true;
    case OP_ctl_if:
        return op->n_results == 0 ? emit_if(t, op) : tile_body_refuse(t);
    case OP_ctl_pass:
        return true;
    default:
        break;
    }
    if (op->n_results != 1 || strcmp(op_info(op->code)->dialect, "arith") != 0)
        return tile_body_refuse(t);
    emit_arith(t, op);
    return true;
}

static bool emit_block(TileBody *t, const Block *b)
{
    for (const Op *op = b->first; op; op = op->next)
        if (!emit_op(t, op))
            return false;
    return true;
}

bool tile_body_emit(TileBody *t)
{
    return emit_block(t, t->inner);
}
