/* What each lowering hook takes for granted of the instruction that names it.
 *
 * A library entry is a user's text and may name any hook. Before a hook reads
 * an instance, hook_fits() holds the instance against the hook's row: the
 * tensor parameters it looks up, with how many dimensions and whether in
 * registers, and the integer template arguments. Extents must be constant. */
#include "passes/lower/lower.h"

#include <string.h>

typedef enum Place {
    ANYWHERE,
    IN_MEMORY,
    IN_REGISTERS,
    IN_OPEN_REGISTERS /* whose extents may be left open with _ */
} Place;

typedef struct TensorNeed {
    const char *name;
    unsigned min_rank, max_rank;
    Place place;
} TensorNeed;

enum { MAX_NEEDS = 3 };

typedef struct HookNeeds {
    const char *hook;
    TensorNeed tensors[MAX_NEEDS];
    const char *ints[MAX_NEEDS];
} HookNeeds;

#define BULK_COPY                   \
    {                               \
        { "dst", 1, 8, IN_MEMORY }, \
        {                           \
            "src", 1, 8, IN_MEMORY  \
        }                           \
    }

static const HookNeeds hook_needs[] = {
    { .hook = "tma_load", .tensors = BULK_COPY },
    { .hook = "tma_load_multicast",
      .tensors = BULK_COPY,
      .ints = { "ncta", "cta_stride" } },
    { .hook = "tma_scatter",
      .tensors = { { "dst", 4, 4, IN_MEMORY }, { "src", 3, 3, IN_MEMORY } },
      .ints = { "ncta", "cta_stride", "rows" } },
    { .hook = "tma_store", .tensors = BULK_COPY },
    { .hook = "tma_reduce_add", .tensors = BULK_COPY },
    { .hook = "wgmma",
      .tensors = { { "D", 2, 3, IN_REGISTERS },
                   { "A", 2, 3, ANYWHERE },
                   { "B", 2, 3, IN_MEMORY } },
      .ints = { "K" } },
    { .hook = "wgmma_zero", .tensors = { { "D", 1, 8, IN_REGISTERS } } },
    { .hook = "tile_store",
      .tensors = { { "dst", 2, 3, IN_MEMORY },
                   { "src", 2, 8, IN_OPEN_REGISTERS } } },
    { .hook = "tile_store_cols_transposed",
      .tensors = { { "dst", 2, 2, IN_MEMORY },
                   { "src", 2, 8, IN_OPEN_REGISTERS } } },
    { .hook = "tile_store_elements",
      .tensors = { { "dst", 1, 3, IN_MEMORY },
                   { "src", 1, 2, IN_REGISTERS } } },
    { .hook = "tile_store_transposed",
      .tensors = { { "dst", 2, 2, IN_MEMORY },
                   { "src", 2, 2, IN_REGISTERS } } },
    { .hook = "tile_load",
      .tensors = { { "dst", 1, 2, IN_REGISTERS },
                   { "src", 1, 3, IN_MEMORY } } },
    { .hook = "warp_copy",
      .tensors = { { "dst", 2, 2, IN_MEMORY }, { "src", 2, 2, IN_MEMORY } } },
    { .hook = "cluster_reduce",
      .tensors = { { "dst", 3, 3, IN_MEMORY }, { "src", 3, 3, IN_MEMORY } },
      .ints = { "ncta", "cta_stride", "pitch" } },
    { .hook = "ldmatrix",
      .tensors = { { "dst", 1, 8, IN_REGISTERS }, { "src", 2, 2, IN_MEMORY } },
      .ints = { "nmat0", "nmat1" } },
};

static bool refuse(Lower *L, const Op *op, const Instr *in, const char *what,
                   const char *name)
{
    lower_error(L, op->loc, "instruction",
                "instruction '%s' names the lowering hook '%s', which needs %s "
                "'%s'",
                in->name, in->hook, what, name);
    return false;
}

static unsigned n_intervals(const Access *a)
{
    unsigned n = 0;
    for (unsigned i = 0; i < a->rank; i++)
        n += a->dims[i].kind == DIM_interval;
    return n;
}

static bool has_constant_shape(const InstrParam *p)
{
    for (unsigned i = 0; i < p->rank; i++)
        if (p->shape[i] < 1)
            return false;
    return scalar_type_bytes(p->elem) > 0;
}

static bool tensor_fits(Lower *L, const Op *op, const Instr *in,
                        const TensorNeed *need)
{
    unsigned i = 0;
    while (i < in->n_params && strcmp(in->params[i].name, need->name))
        i++;
    if (i == in->n_params || op->operands[i].kind != OPND_access)
        return refuse(L, op, in, "a tensor parameter", need->name);
    const InstrParam *p = &in->params[i];
    const Access *a = op->operands[i].u.access;
    if (p->rank < need->min_rank || p->rank > need->max_rank ||
        n_intervals(a) != p->rank)
        return refuse(L, op, in, "another number of dimensions of", need->name);
    if (need->place != IN_OPEN_REGISTERS && !has_constant_shape(p))
        return refuse(L, op, in, "constant extents of", need->name);
    if (need->place == ANYWHERE)
        return true;
    bool in_registers = lower_in_registers(L, a->base);
    if (in_registers != (need->place != IN_MEMORY))
        return refuse(L, op, in,
                      in_registers ? "memory, not registers, for"
                                   : "registers for",
                      need->name);
    return true;
}

static bool int_fits(Lower *L, const Op *op, const Instr *in, const char *name)
{
    const Param *p = param_find(in->n_targs, in->targs, name);
    if (p && p->kind == PARAM_int && p->i >= 1)
        return true;
    return refuse(L, op, in, "a positive integer template parameter", name);
}

bool hook_fits(Lower *L, const Op *op, const Instr *in)
{
    for (size_t i = 0; i < sizeof hook_needs / sizeof *hook_needs; i++) {
        const HookNeeds *needs = &hook_needs[i];
        if (strcmp(needs->hook, in->hook))
            continue;
        for (unsigned k = 0; k < MAX_NEEDS; k++)
            if (needs->tensors[k].name &&
                !tensor_fits(L, op, in, &needs->tensors[k]))
                return false;
        for (unsigned k = 0; k < MAX_NEEDS; k++)
            if (needs->ints[k] && !int_fits(L, op, in, needs->ints[k]))
                return false;
    }
    return true;
}
