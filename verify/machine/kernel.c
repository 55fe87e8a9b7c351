/* Prepares a kernel: which variables differ between lanes, what each tensor
 * value is (shared object, global tensor, map, mbarriers), and accesses through
 * windows seen on their root. */
#include "verify/machine/kernel.h"

#include "ir/values.h"

#include <string.h>

/* ---- composed accesses --------------------------------------------------- */

struct AccessMap {
    size_t n, cap; /* cap: a power of two */
    const Access **from, **to;
};

static size_t access_slot(const struct AccessMap *map, const Access *a)
{
    size_t i =
        (size_t)hash_word(HASH_SEED, (uint64_t)(uintptr_t)a) & (map->cap - 1);
    while (map->from[i] && map->from[i] != a)
        i = (i + 1) & (map->cap - 1);
    return i;
}

static void access_put(Arena *arena, struct AccessMap *map, const Access *from,
                       const Access *to)
{
    if (2 * map->n >= map->cap) {
        struct AccessMap old = *map;
        map->cap = old.cap ? 2 * old.cap : 64;
        map->from = ARENA_ARRAY(arena, const Access *, map->cap);
        map->to = ARENA_ARRAY(arena, const Access *, map->cap);
        for (size_t i = 0; i < old.cap; i++)
            if (old.from[i]) {
                size_t at = access_slot(map, old.from[i]);
                map->from[at] = old.from[i];
                map->to[at] = old.to[i];
            }
    }
    size_t at = access_slot(map, from);
    map->from[at] = from;
    map->to[at] = to;
    map->n++;
}

static bool is_inner_window(const Value *v)
{
    return value_root((Value *)v) != v;
}

const Access *kernel_access(const Kernel *k, const Access *a)
{
    if (!is_inner_window(a->base))
        return a;
    size_t at = access_slot(k->composed, a);
    if (!k->composed->from[at])
        panic("kernel_access: an access that was not prepared");
    return k->composed->to[at];
}

/* Elements of an object, and registers of a fragment, that are certainly more
 * than any GPU has. */
enum { OBJECT_LIMIT = 1 << 24, FRAGMENT_LIMIT = 4096 };

/* ---- the walk ------------------------------------------------------------ */

typedef struct Prepare {
    Kernel *k;
    Arena *arena;
    bool ok;
} Prepare;

static bool prepare_fail(Prepare *p, const Op *op, const char *what)
{
    StrBuf name = { 0 };
    print_op_name(&name, op);
    diag_error(p->k->m->ctx, op->loc, "machine", "'%s': %s", strbuf_text(&name),
               what);
    strbuf_free(&name);
    p->ok = false;
    return false;
}

typedef struct VaryWalk {
    const Kernel *k;
    bool found;
} VaryWalk;

static void vary_visit(VarId v, void *user)
{
    VaryWalk *w = user;
    w->found = w->found || w->k->varying[v];
}

bool kernel_varies(const Kernel *k, const Affine *e)
{
    if (!e->n_terms)
        return false;
    VaryWalk w = { k, false };
    affine_walk_vars(e, vary_visit, &w);
    return w.found;
}

bool cond_varies(const Kernel *k, const Cond *c)
{
    VaryWalk w = { k, false };
    cond_walk_vars(c, vary_visit, &w);
    return w.found;
}

bool access_varies(const Kernel *k, const Access *a)
{
    for (unsigned d = 0; d < a->rank; d++)
        if (a->dims[d].kind != DIM_ring && kernel_varies(k, a->dims[d].lo))
            return true;
    return false;
}

bool kernel_ends(const Kernel *k, const Op *op, const Value *v)
{
    const LastUse *x = &k->uses[v->id];
    return x->op == op && x->n == 1 && v->def && v->def->parent == op->parent;
}

static bool const_extents(Prepare *p, const Op *op, const Value *v, MemObj *o)
{
    if (v->type->rank > TENSOR_MAX_RANK)
        return prepare_fail(p, op, "too many dimensions for the machine");
    o->rank = v->type->rank;
    int64_t stride = 1;
    for (unsigned d = o->rank; d-- > 0;) {
        if (!affine_is_const(v->shape[d], &o->extent[d]) || o->extent[d] < 0)
            return prepare_fail(p, op,
                                "an object in a kernel needs constant "
                                "extents");
        o->stride[d] = stride;
        if (__builtin_mul_overflow(stride, o->extent[d], &stride) ||
            stride > OBJECT_LIMIT)
            return prepare_fail(p, op,
                                "the object is too large for the "
                                "machine");
    }
    return true;
}

static uint32_t swizzle_mask(int64_t span)
{
    return span == 128 ? 0x70 : span == 64 ? 0x30 : span == 32 ? 0x10 : 0;
}

static int64_t mem_swizzle(const Kernel *k, const MemRef *ref)
{
    const Mem *mem = k->m->lib ? lib_mem_find(k->m->lib, ref) : NULL;
    if (mem)
        return mem->swizzle;
    bool named = ref && !strcmp(ref->name, "Sm90_SmemSwizzled");
    return named && ref->n_params ? ref->params[0].i : 0;
}

static MemObj *new_obj(Prepare *p, const Value *v, Space space)
{
    MemObj *o = ARENA_NEW(p->arena, MemObj);
    o->space = space;
    o->value = v;
    o->elem = v->type->elem;
    o->elem_bytes = (unsigned)scalar_type_bytes(o->elem);
    p->k->objs[v->id] = o;
    return o;
}

static int64_t obj_bytes(const MemObj *o)
{
    int64_t n = o->elem_bytes;
    for (unsigned d = 0; d < o->rank; d++)
        n *= o->extent[d];
    return n;
}

/* Is the object within the kernel's shared memory? */
static bool obj_fits(const Prepare *p, const MemObj *o)
{
    return o->offset >= 0 && o->offset <= p->k->smem_bytes &&
           obj_bytes(o) <= p->k->smem_bytes - o->offset;
}

static void prepare_alloc(Prepare *p, const Op *op)
{
    const Value *v = op->results[0];
    bool shared = op_attr(op, "offset") != NULL;
    int64_t offset = op_attr_int(op, "offset", -1);
    MemObj *o = new_obj(p, v, shared ? SPACE_shared : SPACE_local);
    if (!const_extents(p, op, v, o) || o->space == SPACE_local)
        return;
    o->offset = offset;
    o->swizzle = swizzle_mask(mem_swizzle(p->k, v->type->mem));
    if (!obj_fits(p, o))
        prepare_fail(p, op, "the object leaves the kernel's shared memory");
}

static void prepare_mbarriers(Prepare *p, const Op *op)
{
    const Value *v = op->results[0];
    MemObj *o = new_obj(p, v, SPACE_mbarrier);
    o->elem_bytes = 8;
    o->offset = op_attr_int(op, "offset", -1);
    o->count = op_attr_int(op, "count", 0);
    if (!const_extents(p, op, v, o))
        return;
    if (o->offset % 8 || o->count < 1 || !obj_fits(p, o))
        prepare_fail(p, op,
                     "an mbarrier array needs an offset that is a "
                     "multiple of 8, room in shared memory, and a "
                     "count of at least 1");
}

static void prepare_operands(Prepare *p, const Op *op)
{
    for (unsigned i = 0; i < op->n_operands; i++) {
        const Access *a = op->operands[i].u.access;
        if (op->operands[i].kind == OPND_value) {
            LastUse *x = &p->k->uses[op->operands[i].u.value->id];
            *x = (LastUse){ op, x->op == op ? x->n + 1 : 1 };
        }
        if (op->operands[i].kind != OPND_access)
            continue;
        if (is_inner_window(a->base))
            access_put(p->arena, p->k->composed, a, access_compose(p->k->m, a));
    }
}

static bool visit(Op *op, void *user)
{
    Prepare *p = user;
    if (op->code == OP_mem_alloc)
        prepare_alloc(p, op);
    else if (op->code == OP_async_mbarrier_alloc)
        prepare_mbarriers(p, op);
    else if (op->code == OP_ctl_for)
        p->k->varying[op->blocks[0]->args[0].var] =
            kernel_varies(p->k, op->operands[0].u.index) ||
            kernel_varies(p->k, op->operands[1].u.index);
    for (unsigned i = 0; i < op->n_results; i++)
        if (op->results[i]->type->kind == TK_frag &&
            (op->results[i]->type->n < 1 ||
             op->results[i]->type->n > FRAGMENT_LIMIT))
            prepare_fail(p, op, "a fragment has from 1 to 4096 registers");
    prepare_operands(p, op);
    return p->ok;
}

static void map_box(Prepare *p, MemObj *o)
{
    const MemRef *ref = o->value->type->mem;
    if (!ref || ref->n_params < 2 || ref->n_params > 1 + BOX_RANK ||
        ref->n_params - 1 != o->rank) {
        prepare_fail(p, p->k->op,
                     "a tensor map needs a swizzle and a box of "
                     "the window's rank");
        return;
    }
    const Mem *mem = p->k->m->lib ? lib_mem_find(p->k->m->lib, ref) : NULL;
    if (mem && !mem_holds(mem, o->elem)) {
        prepare_fail(p, p->k->op,
                     "a tensor map's memory does not hold its elements' type");
        return;
    }
    o->rounds_tf32 = lib_rounds_tf32(p->k->m->lib, ref);
    o->box_swizzle = swizzle_mask(ref->params[0].i);
    o->box_rank = ref->n_params - 1;
    for (unsigned d = 0; d < o->box_rank; d++)
        o->box[d] = ref->params[1 + d].i;
}

static void prepare_param(Prepare *p, const Value *v, const HostArg *arg,
                          const HostGiven *given)
{
    Env env = { .value = host_given_value, .user = (void *)given };
    if (!arg->view.tensor) {
        prepare_fail(p, p->k->op,
                     "the launch gives no tensor for a parameter that is one");
        return;
    }
    MemObj *o =
        new_obj(p, v, v->type->kind == TK_map ? SPACE_map : SPACE_global);
    o->view = arg->view;
    o->rank = arg->view.rank;
    if (o->rank != v->type->rank || arg->view.tensor->elem != o->elem) {
        prepare_fail(p, p->k->op,
                     "an argument of the launch has another "
                     "element type or rank than the parameter");
        return;
    }
    for (unsigned d = 0; d < o->rank; d++) {
        int64_t says;
        if (affine_eval(v->shape[d], &env, &says) &&
            says != arg->view.extent[d]) {
            prepare_fail(p, p->k->op,
                         "an argument of the launch has another extent than "
                         "the parameter");
            return;
        }
        o->extent[d] = arg->view.extent[d];
        o->stride[d] = arg->view.stride[d];
    }
    if (o->space == SPACE_map) {
        o->view.is_map_root = true;
        map_box(p, o);
    }
}

static bool read_attrs(Prepare *p, const Op *op)
{
    Kernel *k = p->k;
    k->block_dim = op_attr_int(op, "blockDim", 0);
    k->cluster_dim = op_attr_int(op, "clusterDim", 0);
    k->smem_bytes = op_attr_int(op, "smem_bytes", -1);
    if (k->block_dim < 32 || k->block_dim > 1024 || k->block_dim % 32)
        return prepare_fail(p, op,
                            "blockDim must be a multiple of 32 from 32 "
                            "to 1024");
    if (k->cluster_dim < 1 || k->cluster_dim > 16)
        return prepare_fail(p, op, "clusterDim must be from 1 to 16");
    if (k->smem_bytes < 0 || k->smem_bytes > SHARED_MEMORY_LIMIT)
        return prepare_fail(p, op, "smem_bytes must be from 0 to 232448");
    k->n_warps = (unsigned)k->block_dim / WARP_LANES;
    return true;
}

Kernel *kernel_prepare(Module *m, Arena *arena, const Op *op,
                       const HostArg *args, unsigned n_args)
{
    Kernel *k = ARENA_NEW(arena, Kernel);
    Prepare p = { .k = k, .arena = arena, .ok = true };
    k->m = m;
    k->op = op;
    k->block = op->blocks[0];
    if (!read_attrs(&p, op))
        return NULL;
    const Block *b = k->block;
    if (b->n_args < 3 || b->n_args - 3 != n_args || b->args[n_args].value ||
        b->args[n_args + 1].value || b->args[n_args + 2].value) {
        prepare_fail(&p, op,
                     "the launch must give each parameter before the "
                     "coordinates cta, warp and lane");
        return NULL;
    }
    k->cta = b->args[n_args].var;
    k->warp = b->args[n_args + 1].var;
    k->lane = b->args[n_args + 2].var;
    k->n_vars = var_count(m->exprs) + 1;
    k->n_values = m->next_value;
    k->varying = ARENA_ARRAY(arena, bool, k->n_vars);
    k->varying[k->lane] = true;
    k->uses = ARENA_ARRAY(arena, LastUse, k->n_values);
    k->objs = ARENA_ARRAY(arena, MemObj *, k->n_values);
    k->composed = ARENA_NEW(arena, struct AccessMap);
    HostGiven given = { b, args, n_args };
    for (unsigned i = 0; i < n_args && p.ok; i++)
        if (b->args[i].value)
            prepare_param(&p, b->args[i].value, &args[i], &given);
    if (p.ok)
        block_walk(op->blocks[0], visit, &p);
    return p.ok ? k : NULL;
}
