/* Element-wise instructions on register tiles.
 *
 * The body is a nest over all elements of tiles of one shape, whose innermost
 * block touches element (r, c) of each. Where the tiles' maps agree, a thread
 * has all operands of the elements it has: the block is repeated for each slot,
 * loads reading the tile's register and the store writing it. */
#include "passes/lower/tile_map.h"

#include "passes/analysis/par_text.h"

#include <string.h>

/* The tile that a parameter of the body stands for. */
typedef struct TileArg {
    const Value *param;
    Frag *frag;
    const Mem *mem;
} TileArg;

typedef struct TileMap {
    Lower *L;
    Op *op;
    const Instr *in;
    const Block *inner;
    VarId row, col;
    unsigned n;
    TileArg *args;
    Value **values; /* of the block's ops, by Value.id */
} TileMap;

/* The innermost block of the nest of two loops; false when it is none. */
static bool find_nest(TileMap *t)
{
    const Block *b = t->in->body->blocks[0];
    VarId vars[2];
    for (unsigned i = 0; i < 2; i++) {
        const Op *loop = b->first;
        while (loop && loop->code == OP_ctl_assert)
            loop = loop->next;
        if (!loop || loop->code != OP_ctl_for || loop->next ||
            loop->blocks[0]->n_args != 1)
            return false;
        vars[i] = loop->blocks[0]->args[0].var;
        b = loop->blocks[0];
    }
    t->inner = b;
    t->row = vars[0];
    t->col = vars[1];
    return true;
}

static TileArg *arg_of(TileMap *t, const Access *a)
{
    VarId r, c;
    if (a->rank != 2 || !affine_is_var(a->dims[0].lo, &r) ||
        !affine_is_var(a->dims[1].lo, &c) || r != t->row || c != t->col)
        return NULL;
    for (unsigned i = 0; i < t->n; i++)
        if (t->args[i].param == a->base)
            return &t->args[i];
    return NULL;
}

static bool take_args(TileMap *t)
{
    Lower *L = t->L;
    const Block *body = t->in->body->blocks[0];
    t->n = t->in->n_params;
    t->args = ARENA_ARRAY(L->scratch, TileArg, t->n);
    for (unsigned i = 0; i < t->n; i++) {
        const Operand *o = &t->op->operands[i];
        const Access *a = o->kind == OPND_access ? o->u.access : NULL;
        int64_t slot;
        if (a && lower_in_registers(L, a->base))
            t->args[i].mem = lower_mem(L, a->base);
        if (!t->args[i].mem || !t->args[i].mem->map_slot) {
            lower_error(L, t->op->loc, "instruction",
                        "'%s' of '%s' is no register tile",
                        t->in->params[i].name, t->in->name);
            return false;
        }
        t->args[i].param = body->args[i].value;
        t->args[i].frag = frag_get(L, a, t->op->loc, &slot);
        if (!t->args[i].frag || !frag_ready(L, t->args[i].frag, t->op->loc))
            return false;
    }
    return true;
}

static bool index_value(const Env *env, const Atom *atom, int64_t *out)
{
    const int64_t *index = env->user;
    if (atom->kind != ATOM_var || atom->var < 1 || atom->var > 2)
        return false;
    *out = index[atom->var - 1];
    return true;
}

/* Lane and slot of element (row, col) by the memory's map. */
static bool find_place(const Mem *mem, int64_t row, int64_t col, int64_t out[2])
{
    int64_t index[2] = { row, col };
    Env env = { .value = index_value, .user = index };
    return affine_eval(mem->map_thread, &env, &out[0]) &&
           affine_eval(mem->map_slot, &env, &out[1]);
}

/* Do two memories' maps put the elements of the shape in the same places? */
static bool same_map(const Mem *a, const Mem *b)
{
    if (a == b)
        return true;
    if (!a->map_slot || !b->map_slot || !a->packed_shape || !b->packed_shape ||
        a->n_slots != b->n_slots)
        return false;
    for (int64_t r = 0; r < a->packed_shape[0]; r++)
        for (int64_t c = 0; c < a->packed_shape[1]; c++) {
            int64_t p[2], q[2];
            if (!find_place(a, r, c, p) || !find_place(b, r, c, q) ||
                p[0] != q[0] || p[1] != q[1])
                return false;
        }
    return true;
}

static Value *value_of(TileMap *t, const Operand *o)
{
    return t->values[o->u.value->id];
}

static Value *emit_arith(TileMap *t, const Op *op)
{
    Lower *L = t->L;
    Op *copy = lower_emit(L, op->code, op->n_operands, 1, 0);
    for (unsigned i = 0; i < op->n_operands; i++)
        copy->operands[i] = opnd_value(value_of(t, &op->operands[i]));
    for (unsigned i = 0; i < op->n_attrs; i++)
        op_set_attr(L->m, copy, op->attrs[i]);
    return op_set_result(L->m, copy, 0, op->results[0]->type, NULL);
}

/* old + v, or fma(v, w, old). */
static Value *emit_sum(TileMap *t, const Op *op, Value *old)
{
    Lower *L = t->L;
    bool fused = op->n_operands == 3;
    Op *sum =
        lower_emit(L, fused ? OP_arith_fma : OP_arith_add, fused ? 3 : 2, 1, 0);
    sum->operands[0] = opnd_value(value_of(t, &op->operands[1]));
    if (fused)
        sum->operands[1] = opnd_value(value_of(t, &op->operands[2]));
    sum->operands[fused ? 2 : 1] = opnd_value(old);
    return op_set_result(L->m, sum, 0, old->type, NULL);
}

/* One op of the block for one slot; false when it is of no known form. */
static bool emit_op(TileMap *t, const Op *op, int64_t slot)
{
    bool store = op->code == OP_mem_store || op->code == OP_mem_reduce;
    if (!store && op->code != OP_mem_load) {
        if (op->n_results != 1 ||
            strcmp(op_info(op->code)->dialect, "arith") != 0)
            return false;
        t->values[op->results[0]->id] = emit_arith(t, op);
        return true;
    }
    TileArg *arg = arg_of(t, op->operands[0].u.access);
    if (!arg)
        return false;
    FragPart part = { arg->frag, slot, 1 };
    if (op->code == OP_mem_load)
        t->values[op->results[0]->id] = frag_part_slot(t->L, &part);
    else if (op->code == OP_mem_store)
        frag_part_put(t->L, &part, value_of(t, &op->operands[1]));
    else
        frag_part_put(t->L, &part,
                      emit_sum(t, op, frag_part_slot(t->L, &part)));
    return true;
}

void lower_tile_map(Lower *L, Op *op, const Instr *in)
{
    TileMap t = { .L = L, .op = op, .in = in };
    if (!find_nest(&t)) {
        lower_error(L, op->loc, "instruction",
                    "the body of '%s' is no nest over the elements of tiles",
                    in->name);
        return;
    }
    if (!take_args(&t))
        return;
    for (unsigned i = 1; i < t.n; i++)
        if (!same_map(t.args[0].mem, t.args[i].mem)) {
            lower_error(L, op->loc, "instruction",
                        "the tiles of '%s' are spread over the threads in "
                        "different ways: %s and %s",
                        in->name, par_text_mem(L->m, t.args[0].mem->ref),
                        par_text_mem(L->m, t.args[i].mem->ref));
            return;
        }
    t.values = ARENA_ARRAY(L->scratch, Value *, in->module->next_value);
    for (int64_t slot = 0; slot < t.args[0].mem->n_slots; slot++)
        for (const Op *o = t.inner->first; o; o = o->next)
            if (!emit_op(&t, o, slot)) {
                lower_error(L, op->loc, "instruction",
                            "the body of '%s' is not element-wise", in->name);
                return;
            }
}
