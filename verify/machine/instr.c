/* async.instr: an instruction does what its library body says.
 *
 * Operands are gathered into small tensors (memory element by element,
 * registers by the memory's map or one lane's slots), the interpreter runs the
 * body, and what the body wrote is scattered back. An instruction of a thread
 * runs for each lane; one of a warp once. cp.async is an effect: its source is
 * read in one step, its destination written in a later one. */
#include "verify/machine/machine_internal.h"

#include "ir/values.h"

#include <stdlib.h>
#include <string.h>

/* One operand of one call. */
typedef struct CallArg {
    const InstrParam *param;
    const Op *op;
    unsigned operand;
    int64_t value;     /* control */
    const MemObj *obj; /* memory */
    int64_t index[TENSOR_MAX_RANK];
    unsigned n_dims;
    int dim[TENSOR_MAX_RANK];
    int64_t len[TENSOR_MAX_RANK];
    const Value *reg; /* register */
    Tensor *temp;
} CallArg;

/* The threads of one execution: lanes from `lane` on, `pitch` apart. */
typedef struct LaneGroup {
    unsigned lane, threads, pitch;
} LaneGroup;

struct LaneCall {
    const Instr *instr;
    unsigned n;
    LaneGroup group;
    CallArg *args;
};

static bool instr_fail(Warp *w, const Op *op, const char *what)
{
    return machine_fail(w->machine, w, 0, op, "instr", "%s", what);
}

/* ---- binding ------------------------------------------------------------- */

static bool bind_access(Warp *w, const Op *op, const Access *a, unsigned lane,
                        CallArg *out)
{
    a = kernel_access(w->machine->k, a);
    out->obj = warp_access(w, op, a, lane, out->index, NULL);
    if (!out->obj)
        return false;
    for (unsigned d = 0; d < a->rank; d++) {
        if (a->dims[d].kind != DIM_interval)
            continue;
        if (!warp_index(w, op, a->dims[d].len, lane, &out->len[out->n_dims]))
            return false;
        out->dim[out->n_dims++] = (int)d;
    }
    out->temp =
        tensor_new(out->param->name, out->obj->elem, out->n_dims, out->len);
    return out->temp || instr_fail(w, op, "an operand is too large");
}

static bool bind_register(Warp *w, const Op *op, const Value *v, CallArg *out)
{
    const InstrParam *p = out->param;
    out->reg = v;
    if (v->type->kind != TK_scalar && v->type->kind != TK_frag)
        return instr_fail(w, op, "an operand is neither memory nor registers");
    out->n_dims = p->rank;
    for (unsigned d = 0; d < p->rank && d < TENSOR_MAX_RANK; d++)
        out->len[d] = p->shape[d];
    out->temp = tensor_new(p->name, v->type->elem, p->rank, out->len);
    return out->temp || instr_fail(w, op,
                                   "a register operand needs a constant "
                                   "shape");
}

static bool bind_operand(Warp *w, const Op *op, unsigned i, unsigned lane,
                         CallArg *out)
{
    const Operand *o = &op->operands[i];
    bool b = false;
    out->op = op;
    out->operand = i;
    switch (o->kind) {
    case OPND_index:
        return warp_index(w, op, o->u.index, lane, &out->value);
    case OPND_cond:
        if (!warp_cond(w, op, o->u.cond, lane, &b))
            return false;
        out->value = b;
        return true;
    case OPND_access:
        return bind_access(w, op, o->u.access, lane, out);
    case OPND_value:
        return bind_register(w, op, o->u.value, out);
    }
    return false;
}

static bool bind_call(Warp *w, const Op *op, const Instr *in, LaneGroup group,
                      struct LaneCall *c)
{
    *c = (struct LaneCall){ .instr = in, .n = in->n_params, .group = group };
    if (op->n_operands != in->n_params)
        return instr_fail(w, op,
                          "the call does not give each parameter of "
                          "the instruction");
    c->args = calloc(c->n + 1, sizeof *c->args);
    if (!c->args)
        panic("bind_call: out of memory");
    for (unsigned i = 0; i < c->n; i++) {
        c->args[i].param = &in->params[i];
        if (!bind_operand(w, op, i, group.lane, &c->args[i]))
            return false;
    }
    return true;
}

static void free_call(struct LaneCall *c)
{
    for (unsigned i = 0; c->args && i < c->n; i++)
        tensor_free(c->args[i].temp);
    free(c->args);
    c->args = NULL;
}

void lane_calls_free(Effect *e)
{
    for (unsigned l = 0; e->calls && l < WARP_LANES; l++)
        free_call(&e->calls[l]);
    free(e->calls);
}

/* ---- registers ----------------------------------------------------------- */

/* Lane and slot of element e of a register operand. */
static bool register_of(Warp *w, const struct LaneCall *c, const CallArg *a,
                        int64_t e, unsigned *lane, int64_t *slot)
{
    const MemRef *ref = a->reg->type->mem ? a->reg->type->mem : a->param->mem;
    const Mem *mem = w->machine->m->lib && ref
                         ? lib_mem_find(w->machine->m->lib, ref)
                         : NULL;
    *lane = c->group.lane;
    *slot = e;
    if (mem && mem->map_thread) {
        const TileMap *map = tile_map(w->machine, w, a->op, ref);
        if (!map)
            return false;
        if (e >= map->n)
            return instr_fail(w, a->op,
                              "a register tile is smaller than the "
                              "instruction's operand");
        *lane = map->lane[e];
        *slot = map->slot[e];
        return true;
    }
    if (c->group.threads == 1)
        return true;
    int64_t rest = 1;
    for (unsigned d = a->param->n_distributed; d < a->n_dims; d++)
        rest *= a->len[d];
    *lane += (unsigned)(e / rest) * c->group.pitch;
    *slot = e % rest;
    return e / rest < c->group.threads ||
           instr_fail(w, a->op,
                      "an operand is spread over more threads than "
                      "the instruction's unit has");
}

static bool gather_register(Warp *w, const struct LaneCall *c, CallArg *a)
{
    const WarpVal *v = &w->vals[a->reg->id];
    if (v->flight)
        return instr_fail(w, a->op,
                          "reads an accumulator that wgmma may still "
                          "be writing");
    frag_settle(v->frag);
    for (int64_t e = 0; e < a->temp->count; e++) {
        unsigned lane;
        int64_t slot;
        if (!register_of(w, c, a, e, &lane, &slot))
            return false;
        if (a->reg->type->kind == TK_scalar) {
            tensor_set(a->temp, e, warp_lanes(w, a->reg)[lane]);
            continue;
        }
        if (v->frag && slot >= v->frag->n)
            return instr_fail(w, a->op,
                              "a fragment has fewer registers than "
                              "the instruction's operand");
        if (v->frag && (v->frag->live[slot] >> lane & 1))
            tensor_set(a->temp, e, v->frag->x[slot * WARP_LANES + lane]);
    }
    return true;
}

static uint32_t group_mask(LaneGroup g)
{
    uint32_t mask = 0;
    for (unsigned i = 0; i < g.threads; i++)
        mask |= 1u << (g.lane + i * g.pitch);
    return mask;
}

/* ---- memory -------------------------------------------------------------- */

static bool element_place(Warp *w, const struct LaneCall *c, const CallArg *a,
                          int64_t e, Place *p)
{
    int64_t index[TENSOR_MAX_RANK];
    memcpy(index, a->index, sizeof index);
    for (unsigned d = a->n_dims; d-- > 0;) {
        index[a->dim[d]] += e % a->len[d];
        e /= a->len[d];
    }
    return place_at(w, a->op, a->obj, index, c->group.lane, p);
}

static bool gather_memory(Warp *w, const struct LaneCall *c, CallArg *a)
{
    for (int64_t e = 0; e < a->temp->count; e++) {
        Place p;
        double x;
        if (!element_place(w, c, a, e, &p))
            return false;
        if (!place_written(&p))
            continue;
        if (!place_read(w, a->op, &p, c->group.lane, &x))
            return false;
        tensor_set(a->temp, e, x);
        place_event(w, a->op, &p, group_mask(c->group), false);
    }
    return true;
}

/* What an instruction moves in one piece begins at a multiple of its bytes. */
static bool check_aligned(Warp *w, const Op *op, const Place *p, unsigned lane,
                          int64_t bytes)
{
    int64_t at = p->tensor ? p->at * p->obj->elem_bytes : p->at;
    if (bytes < 1 || p->outside || at % bytes == 0)
        return true;
    return machine_fail(w->machine, w, 1u << lane, op, "align",
                        "moves %lld bytes at once, but begins at byte %lld of "
                        "%s, which is no multiple of them",
                        (long long)bytes, (long long)at,
                        p->tensor ? "a tensor" : "shared memory");
}

/* ldmatrix: lane 8 q + r gives the address of row r of matrix q, 16 bytes that
 * lie together; operand 'A' takes the matrices column by column. */
static bool gather_rows(Warp *w, const struct LaneCall *c, CallArg *a)
{
    const Instr *in = c->instr;
    const Param *operand = param_find(in->n_targs, in->targs, "operand");
    int64_t n0 = instr_targ_int(in, "nmat0"), n1 = instr_targ_int(in, "nmat1");
    int64_t width = a->len[1] / n1, index[TENSOR_MAX_RANK];
    bool by_column = operand && operand->s && !strcmp(operand->s, "A");
    unsigned lane = 0;
    for (int64_t e = 0; e < a->temp->count; e++) {
        int64_t row = e / a->len[1], col = e % a->len[1];
        int64_t i = row / 8, j = col / width;
        Place p;
        double x;
        if (col % width == 0) {
            lane =
                (unsigned)(8 * (by_column ? j * n0 + i : i * n1 + j) + row % 8);
            if (!warp_access(w, a->op, a->op->operands[a->operand].u.access,
                             lane, index, NULL))
                return false;
        }
        if (!place_at(w, a->op, a->obj, index, lane, &p) ||
            (col % width == 0 && !check_aligned(w, a->op, &p, lane, 16)))
            return false;
        index[a->dim[1]]++;
        if (!place_written(&p))
            continue;
        if (!place_read(w, a->op, &p, lane, &x))
            return false;
        tensor_set(a->temp, e, x);
        place_event(w, a->op, &p, group_mask(c->group), false);
    }
    return true;
}

static bool gathers_rows(const struct LaneCall *c, const CallArg *a)
{
    return c->instr->hook && !strcmp(c->instr->hook, "ldmatrix") &&
           a->n_dims == 2 && a->obj->space == SPACE_shared;
}

static bool scatter_memory(Warp *w, const struct LaneCall *c, const CallArg *a)
{
    for (int64_t e = 0; e < a->temp->count; e++) {
        Place p;
        if (!a->temp->written[e])
            continue;
        if (!element_place(w, c, a, e, &p))
            return false;
        place_write(w, &p, tensor_get(a->temp, e));
        place_event(w, a->op, &p, group_mask(c->group), true);
    }
    return true;
}

static bool is_written(const CallArg *a)
{
    return (a->param->flags & (ACC_WRITE | ACC_REDUCE)) != 0;
}

static bool is_read(const CallArg *a)
{
    return (a->param->flags & (ACC_READ | ACC_REDUCE)) != 0 &&
           !a->param->write_only;
}

/* ---- calling ------------------------------------------------------------- */

static bool gather_call(Warp *w, struct LaneCall *c)
{
    for (unsigned i = 0; c->args && i < c->n; i++) {
        CallArg *a = &c->args[i];
        if (!is_read(a) && is_written(a))
            continue;
        if (a->obj
                ? !(gathers_rows(c, a) ? gather_rows : gather_memory)(w, c, a)
                : a->reg && !gather_register(w, c, a))
            return false;
    }
    return true;
}

static bool run_call(Warp *w, const Op *op, const Instr *in, struct LaneCall *c)
{
    ProcArg *args = calloc(c->n + 1, sizeof *args);
    if (!args)
        panic("run_call: out of memory");
    for (unsigned i = 0; c->args && i < c->n; i++)
        args[i] =
            (ProcArg){ .value = c->args[i].value, .tensor = c->args[i].temp };
    bool ok = interp_run_instr(w->machine->interp, in, args, c->n, op);
    free(args);
    if (!ok)
        w->machine->failed = true;
    return ok;
}

/* The fragment that result r of op is; made from the operand's registers. */
static Frag *result_frag(Warp *w, const CallArg *a, const Value *r)
{
    WarpVal *v = &w->vals[r->id];
    Frag *old = w->vals[a->reg->id].frag;
    frag_settle(old);
    Frag *f = frag_new(w->machine, r->type->n);
    if (old && old->n == f->n) {
        memcpy(f->live, old->live, (size_t)f->n * sizeof *f->live);
        memcpy(f->x, old->x, (size_t)f->n * WARP_LANES * sizeof *f->x);
    }
    warp_set_frag(w, r, f);
    v->unfenced = true;
    return f;
}

static bool scatter_register(Warp *w, const struct LaneCall *c,
                             const CallArg *a, const Value *r, bool first)
{
    Frag *f = NULL;
    if (r->type->kind == TK_frag)
        f = first ? result_frag(w, a, r) : w->vals[r->id].frag;
    for (int64_t e = 0; e < a->temp->count; e++) {
        unsigned lane;
        int64_t slot;
        if (!a->temp->written[e])
            continue;
        if (!register_of(w, c, a, e, &lane, &slot))
            return false;
        if (!f) {
            warp_lanes(w, r)[lane] = tensor_get(a->temp, e);
            continue;
        }
        if (slot >= f->n)
            return instr_fail(w, a->op,
                              "a result has fewer registers than "
                              "the instruction writes");
        f->live[slot] |= 1u << lane;
        f->x[slot * WARP_LANES + lane] = tensor_get(a->temp, e);
    }
    return true;
}

static bool scatter_call(Warp *w, const Op *op, struct LaneCall *c, bool first)
{
    unsigned r = 0;
    for (unsigned i = 0; c->args && i < c->n; i++) {
        const CallArg *a = &c->args[i];
        if (!is_written(a))
            continue;
        if (a->obj) {
            if (!scatter_memory(w, c, a))
                return false;
        } else if (a->reg) {
            if (r >= op->n_results)
                return instr_fail(w, op,
                                  "no result for a register operand "
                                  "that the instruction writes");
            if (!scatter_register(w, c, a, op->results[r++], first))
                return false;
        }
    }
    return true;
}

/* Operands that a thread moves at once. */
static bool call_aligned(Warp *w, const Op *op, const struct LaneCall *c)
{
    for (unsigned i = 0; i < c->n; i++) {
        const CallArg *a = &c->args[i];
        int64_t bytes = instr_piece(w->machine->m->lib, c->instr, i);
        Place p;
        if (a->obj && bytes &&
            (!place_at(w, op, a->obj, a->index, c->group.lane, &p) ||
             !check_aligned(w, op, &p, c->group.lane, bytes)))
            return false;
    }
    return true;
}

static bool call_now(Warp *w, const Op *op, const Instr *in, LaneGroup group,
                     bool first)
{
    struct LaneCall c;
    bool ok = bind_call(w, op, in, group, &c) && call_aligned(w, op, &c) &&
              gather_call(w, &c) && run_call(w, op, in, &c) &&
              scatter_call(w, op, &c, first);
    free_call(&c);
    return ok;
}

static bool start_cp_async(Warp *w, const Op *op, const Instr *in,
                           uint32_t mask)
{
    Effect *e = effect_new(w->machine, EFFECT_cp_async, w, op, mask);
    e->instr = in;
    e->calls = calloc(WARP_LANES, sizeof *e->calls);
    if (!e->calls)
        panic("start_cp_async: out of memory");
    FOR_LANES(l, mask)
    {
        e->group[l] = w->cp.open[l];
        if (!bind_call(w, op, in, (LaneGroup){ l, 1, 1 }, &e->calls[l]) ||
            !call_aligned(w, op, &e->calls[l]))
            return false;
    }
    return true;
}

bool cp_async_step(Machine *mc, Effect *e)
{
    FOR_LANES(l, e->lanes)
    {
        struct LaneCall *c = &e->calls[l];
        if (!e->source_read ? !gather_call(e->warp, c)
                            : !run_call(e->warp, e->op, e->instr, c) ||
                                  !scatter_call(e->warp, e->op, c, false))
            return false;
    }
    if (e->source_read)
        effect_finish(mc, e);
    else
        e->source_read = true;
    return true;
}

/* The lanes that execute an instruction together: one, `threads` side by side,
 * or some a pitch apart. False for other units. */
static bool unit_lanes(const Instr *in, LaneGroup *out)
{
    const UnitRef *u = in->unit;
    *out = (LaneGroup){ 0, 1, 1 };
    if (!u)
        return true;
    int64_t n = u->scale;
    if (!strcmp(u->name, "cuda_warp"))
        n *= WARP_LANES;
    else if (!strcmp(u->name, "cuda_threads_strided") && u->n_params == 2 &&
             u->params[0].i == 1)
        out->pitch = (unsigned)u->params[1].i;
    else if (strcmp(u->name, "cuda_thread") != 0)
        return false;
    out->threads = (unsigned)n;
    return n >= 1 && n <= WARP_LANES && WARP_LANES % n == 0 &&
           out->pitch >= 1 && WARP_LANES % (n * out->pitch) == 0;
}

/* Runs the instruction for each group of lanes of the mask. */
static bool call_groups(Warp *w, const Op *op, const Instr *in, LaneGroup g,
                        uint32_t mask)
{
    bool first = true;
    for (g.lane = 0; g.lane < WARP_LANES; g.lane++) {
        bool leads = g.lane / g.pitch % g.threads == 0;
        uint32_t lanes = leads ? group_mask(g) : 0;
        if (!(lanes & mask))
            continue;
        if ((lanes & mask) != lanes)
            return instr_fail(w, op,
                              "some threads of the instruction's unit "
                              "do not come here");
        if (!call_now(w, op, in, g, first))
            return false;
        first = false;
    }
    return true;
}

Step exec_instr(Warp *w, const Op *op, uint32_t mask)
{
    const Instr *in = op_instr(w->machine->m, op);
    LaneGroup g;
    if (!in) {
        w->machine->failed = true;
        return STEP_failed;
    }
    if (!unit_lanes(in, &g)) {
        instr_fail(w, op,
                   "the machine runs instructions of one warp's "
                   "threads; this one has another unit");
        return STEP_failed;
    }
    if (in->timeline && !strcmp(in->timeline, "Sm80_cp_async_instr"))
        return start_cp_async(w, op, in, mask) ? STEP_next : STEP_failed;
    return call_groups(w, op, in, g, mask) ? STEP_next : STEP_failed;
}
