/* cse: of pure ops that are equal, the first is kept.
 *
 *     %a = arith.mul %x, %y
 *     %b = arith.mul %y, %x      uses of %b become uses of %a
 *
 * A hash table holds the ops of the blocks open now; leaving a block takes its
 * ops out again, since they are not visible after it. */
#include "passes/pass.h"
#include "passes/rewrite.h"

#include <string.h>

typedef struct Known {
    Op *op;
    uint64_t hash;
    unsigned next; /* in its bucket, 1 + index; 0: none */
} Known;

enum { N_BUCKETS = 4096 };

typedef struct Cse {
    PassCtx *pc;
    Module *m;
    CloneMap *map;
    VEC(Known) known;
    unsigned *bucket; /* 1 + index of the newest */
    bool overflow;
} Cse;

static uint64_t operand_key(const Operand *o)
{
    const void *p = o->kind == OPND_value   ? (const void *)o->u.value
                    : o->kind == OPND_index ? (const void *)o->u.index
                                            : (const void *)o->u.cond;
    return (uint64_t)(uintptr_t)p;
}

static bool commutes(const Op *op)
{
    return op_has(op, OPT_COMMUTES) && op->n_operands == 2;
}

static uint64_t op_hash(const Op *op)
{
    uint64_t h = hash_word(HASH_SEED, (uint64_t)op->code);
    uint64_t sum = 0;
    for (unsigned i = 0; i < op->n_operands; i++) {
        if (commutes(op))
            sum += hash_word(HASH_SEED, operand_key(&op->operands[i]));
        else
            h = hash_word(h, operand_key(&op->operands[i]));
    }
    return hash_word(h, sum);
}

static bool operand_same(const Operand *a, const Operand *b)
{
    return a->kind == b->kind && a->kind != OPND_access &&
           operand_key(a) == operand_key(b);
}

static bool operands_same(const Op *a, const Op *b)
{
    bool same = true;
    for (unsigned i = 0; i < a->n_operands; i++)
        same &= operand_same(&a->operands[i], &b->operands[i]);
    return same ||
           (commutes(a) && operand_same(&a->operands[0], &b->operands[1]) &&
            operand_same(&a->operands[1], &b->operands[0]));
}

static bool attr_same(const Attr *a, const Attr *b)
{
    if (a->key != b->key || a->kind != b->kind)
        return false;
    switch (a->kind) {
    case ATTR_param:
        return a->param == b->param;
    case ATTR_mem:
        return a->mem == b->mem;
    case ATTR_unit:
        return a->unit == b->unit;
    case ATTR_index:
        return a->index == b->index;
    default:
        return a->n == b->n && (!a->n || !memcmp(a->indices, b->indices,
                                                 a->n * sizeof *a->indices));
    }
}

static bool op_same(const Op *a, const Op *b)
{
    if (a->code != b->code || a->n_operands != b->n_operands ||
        a->n_results != b->n_results || a->n_attrs != b->n_attrs)
        return false;
    for (unsigned i = 0; i < a->n_results; i++)
        if (a->results[i]->type != b->results[i]->type)
            return false;
    for (unsigned i = 0; i < a->n_attrs; i++)
        if (!attr_same(&a->attrs[i], &b->attrs[i]))
            return false;
    return operands_same(a, b);
}

static Op *find(const Cse *c, const Op *op, uint64_t hash)
{
    const Known *known = c->known.data;
    for (unsigned k = c->bucket[hash % N_BUCKETS]; k && known;
         k = known[k - 1].next)
        if (known[k - 1].hash == hash && op_same(known[k - 1].op, op))
            return known[k - 1].op;
    return NULL;
}

static void cse_pure(Cse *c, Op *op)
{
    uint64_t hash = op_hash(op);
    Op *first = find(c, op, hash);
    if (!first) {
        Known k = { op, hash, c->bucket[hash % N_BUCKETS] };
        VEC_PUSH(c->pc->scratch, &c->known, k);
        c->bucket[hash % N_BUCKETS] = (unsigned)c->known.len;
        return;
    }
    for (unsigned i = 0; i < op->n_results; i++)
        clone_map_value(c->map, op->results[i], first->results[i]);
    op_detach(op);
    pass_count(c->pc, "ops shared", 1);
}

static void forget(Cse *c, size_t mark)
{
    while (c->known.len > mark) {
        const Known *k = &c->known.data[--c->known.len];
        c->bucket[k->hash % N_BUCKETS] = k->next;
    }
}

static void cse_block(Cse *c, Block *b)
{
    size_t mark = c->known.len;
    for (Op *op = b->first, *next; op; op = next) {
        next = op->next;
        c->overflow |= !op_substitute(c->map, c->m, op);
        for (unsigned i = 0; i < op->n_blocks; i++)
            cse_block(c, op->blocks[i]);
        if (op_has(op, OPT_PURE) && !op->n_blocks)
            cse_pure(c, op);
    }
    forget(c, mark);
}

bool pass_cse(PassCtx *pc, Module *m)
{
    Cse c = { .pc = pc, .m = m, .map = clone_map_new(m, m) };
    c.bucket = ARENA_ARRAY(pc->scratch, unsigned, N_BUCKETS);
    cse_block(&c, m->body);
    if (c.overflow)
        diag_error(pc->ctx, (Loc){ 0 }, "overflow",
                   "cse: an index expression passes 64 bits");
    return !c.overflow;
}
