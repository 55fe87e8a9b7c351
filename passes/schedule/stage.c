/* New buffers: a value named, a window of a tensor copied in and out, a tensor
 * seen through a window or tensor map. */
#include "passes/schedule/ops.h"
#include "passes/schedule/pattern.h"

#include "ir/lib_entry.h"

/* ---- making statements ------------------------------------------------- */

/* A detached allocation. mem NULL: DRAM on the host, registers on a GPU. */
static Op *new_alloc(Sched *s, Op *near, const char *name, ScalarType elem,
                     unsigned rank, const Affine *const *shape,
                     const MemRef *mem)
{
    if (!mem)
        mem = memref_get(s->ctx,
                         op_enclosing(near, OP_par_device) ? "CudaRmemLinear"
                                                           : "DRAM",
                         0, NULL);
    Op *op = op_new(s->m, OP_mem_alloc, s->loc, 0, 1, 0);
    Value *v = op_set_result(
        s->m, op, 0, type_tensor(s->ctx, TK_tensor, elem, rank, mem), name);
    for (unsigned i = 0; i < rank; i++)
        v->shape[i] = shape[i];
    return op;
}

static const MemRef *mem_given(Sched *s, const SchedArg *a, bool *ok)
{
    const MemRef *mem = a->given ? sched_mem(s, a->loc, a->s) : NULL;
    *ok = !a->given || mem;
    return mem;
}

static Value *load_of(Sched *s, Block *b, Access *a)
{
    Op *op = op_new(s->m, OP_mem_load, s->loc, 1, 1, 0);
    op->operands[0] = opnd_access(a);
    block_append(b, op);
    return op_set_result(s->m, op, 0, type_scalar(s->ctx, a->base->type->elem),
                         NULL);
}

static Access *points(Sched *s, Value *base, const Affine *const *at)
{
    Access *a = access_new(s->m, base);
    for (unsigned i = 0; i < a->rank; i++)
        a->dims[i] = (AccessDim){ .kind = DIM_point, .lo = at[i] };
    return a;
}

/* ---- bind_expr --------------------------------------------------------- */

typedef VEC(Op *) OpList;

static bool in_list(const OpList *l, const Op *op)
{
    for (size_t i = 0; i < l->len; i++)
        if (l->data[i] == op)
            return true;
    return false;
}

static void needed_for(Sched *s, Value *v, OpList *out)
{
    if (!v->def || in_list(out, v->def))
        return;
    VEC_PUSH(s->arena, out, v->def);
    for (unsigned i = 0; i < v->def->n_operands; i++)
        if (v->def->operands[i].kind == OPND_value)
            needed_for(s, v->def->operands[i].u.value, out);
}

/* x = f(e): the ops that make e go before `keep`, which takes e; then comes
 * `read`, whose result the statement uses in e's place, then the rest. Both are
 * detached. */
static void name_value(Sched *s, Op *stmt, Value *v, Op *keep, Op *read)
{
    OpList needed = { 0 };
    Value *now = read->results[0];
    needed_for(s, v, &needed);
    Op *first = stmt_first(stmt);
    op_insert_before(first, keep);
    for (Op *op = first, *next; op != stmt; op = next) {
        next = op->next;
        if (!in_list(&needed, op))
            continue;
        op_detach(op);
        op_insert_before(keep, op);
    }
    op_insert_after(keep, read);
    for (Op *op = read->next;; op = op->next) {
        for (unsigned i = 0; i < op->n_operands; i++)
            if (op->operands[i].kind == OPND_value &&
                op->operands[i].u.value == v)
                op->operands[i].u.value = now;
        if (op == stmt)
            break;
    }
    Edit e = { EDIT_insert, keep->sid, stmt->sid };
    VEC_PUSH(s->log->arena, &s->log->edits, e);
    edit_replace(s->log, stmt);
}

/* The first value of a statement that a pattern matches. */
static Value *find_value(Sched *s, const SchedArg *stmt, const SchedArg *value)
{
    ValueVec found = { 0 };
    if (!pattern_values(s, stmt->at.first, value->loc, value->s, &found))
        return NULL;
    if (found.len)
        return found.data[0];
    sched_fail(s, value->loc, "no value of '%s' is `%s`",
               sched_stmt_text(s, stmt->at.first), value->s);
    return NULL;
}

bool sched_bind_expr(Sched *s, const SchedArg *a)
{
    Op *stmt = a[0].at.first;
    bool ok;
    const MemRef *mem = mem_given(s, &a[3], &ok);
    Value *v = ok ? find_value(s, &a[0], &a[1]) : NULL;
    if (!v)
        return false;
    Op *alloc = new_alloc(s, stmt, a[2].s, v->type->elem, 0, NULL, mem);
    Op *store = op_new(s->m, OP_mem_store, s->loc, 2, 0, 0);
    store->operands[0] = opnd_access(points(s, alloc->results[0], NULL));
    store->operands[1] = opnd_value(v);
    Block tmp = { 0 };
    Op *load = load_of(s, &tmp, points(s, alloc->results[0], NULL))->def;
    op_detach(load);
    edit_insert_before(s->log, stmt, alloc);
    name_value(s, stmt, v, store, load);
    s->result = alloc->sid;
    return true;
}

/* The same through configuration state that nothing reads otherwise. */
bool sched_bind_config(Sched *s, const SchedArg *a)
{
    Value *v = find_value(s, &a[0], &a[1]);
    const char *dot = strchr(a[2].s, '.');
    if (!v || !sched_config_unread(s, a[2].s, a[2].loc))
        return false;
    ScalarType t = dot ? lib_config_field(s->m->lib,
                                          ctx_intern_n(s->ctx, a[2].s,
                                                       (size_t)(dot - a[2].s)),
                                          ctx_intern(s->ctx, dot + 1))
                       : TY_none;
    if (t != v->type->elem)
        return sched_fail(s, a[2].loc,
                          "'%s' is no field of a configuration of type %s",
                          a[2].s, scalar_type_name(v->type->elem));
    Op *write = op_new(s->m, OP_cfg_write, s->loc, 1, 0, 0);
    Op *read = op_new(s->m, OP_cfg_read, s->loc, 0, 1, 0);
    write->operands[0] = opnd_value(v);
    op_set_str(s->m, write, "field", a[2].s);
    op_set_str(s->m, read, "field", a[2].s);
    op_set_result(s->m, read, 0, v->type, NULL);
    name_value(s, a[0].at.first, v, write, read);
    sched_config_differs(s, a[2].s);
    return true;
}

/* ---- set_precision ----------------------------------------------------- */

/* A cast of v before op, unless v has the type. */
static Value *cast_before(Sched *s, Op *op, Value *v, ScalarType t)
{
    if (v->type->elem == t)
        return v;
    if (v->def && v->def->code == OP_arith_cast &&
        v->def->operands[0].u.value->type->elem == t)
        return v->def->operands[0].u.value;
    Op *cast = op_new(s->m, OP_arith_cast, op->loc, 1, 1, 0);
    cast->operands[0] = opnd_value(v);
    op_insert_before(op, cast);
    return op_set_result(s->m, cast, 0, type_scalar(s->ctx, t), NULL);
}

typedef struct Precision {
    Sched *s;
    Value *v;
    ScalarType to;
    Op *other; /* a use that has no elements to cast */
} Precision;

static void retype_load(Precision *p, Op *op)
{
    Sched *s = p->s;
    Value *old = op->results[0];
    Value *now = op_set_result(s->m, op, 0, type_scalar(s->ctx, p->to), NULL);
    Op *cast = op_new(s->m, OP_arith_cast, op->loc, 1, 1, 0);
    cast->operands[0] = opnd_value(now);
    op_insert_after(op, cast);
    Value *back = op_set_result(s->m, cast, 0, old->type, NULL);
    for (Op *u = cast->next; u; u = u->next)
        for (unsigned i = 0; i < u->n_operands; i++) {
            if (u->operands[i].kind != OPND_value ||
                u->operands[i].u.value != old)
                continue;
            bool same =
                u->code == OP_arith_cast && u->results[0]->type == now->type;
            u->operands[i].u.value = same ? now : back;
        }
}

/* Casts that became casts of a type to itself, and casts nobody uses. */
static bool drop_casts(Op *op, void *user)
{
    Precision *p = user;
    if (op->code != OP_arith_cast)
        return true;
    Value *in = op->operands[0].u.value, *out = op->results[0];
    if (in->type == out->type)
        block_replace_value(op->parent, out, in);
    if (in->type == out->type || !sched_uses(p->s, out, NULL))
        op_detach(op);
    return true;
}

static bool retype(Op *op, void *user)
{
    Precision *p = user;
    bool uses = false;
    for (unsigned i = 0; i < op->n_operands; i++)
        uses |= op->operands[i].kind == OPND_access &&
                op->operands[i].u.access->base == p->v;
    if (!uses)
        return true;
    if (op->code == OP_mem_load)
        retype_load(p, op);
    else if (op->code == OP_mem_store || op->code == OP_mem_reduce)
        for (unsigned i = 1; i < op->n_operands; i++)
            op->operands[i].u.value =
                cast_before(p->s, op, op->operands[i].u.value, p->to);
    else
        p->other = op;
    return true;
}

bool sched_set_precision(Sched *s, const SchedArg *a)
{
    Op *alloc = a[0].at.first;
    Value *v = alloc->results[0];
    ScalarType t = scalar_type_from_name(a[1].s, strlen(a[1].s));
    if (t == TY_none || !scalar_type_is_data(t) || v->type->kind != TK_tensor)
        return sched_fail(s, a[1].loc, "'%s' is no type of data", a[1].s);
    if (!scalar_type_is_float(t) || !scalar_type_is_float(v->type->elem))
        return sched_fail(s, a[1].loc,
                          "from %s to %s other numbers are held: only "
                          "floating types are exchanged",
                          scalar_type_name(v->type->elem), a[1].s);
    Precision p = { s, v, t, NULL };
    op_walk(s->proc, retype, &p);
    if (p.other)
        return sched_fail(s, a[0].loc, "'%s' takes it as a whole",
                          sched_stmt_text(s, p.other));
    s->rounds |= t != v->type->elem;
    v->type = type_tensor(s->ctx, TK_tensor, t, v->type->rank, v->type->mem);
    op_walk(s->proc, drop_casts, &p);
    edit_replace(s->log, alloc);
    return true;
}

/* ---- stage_window ------------------------------------------------------ */

static bool through_window(Sched *s, Op *op, Access *a, const Op *window,
                           Loc loc)
{
    ExprCtx *x = s->m->exprs;
    const Access *w = window->operands[0].u.access;
    AccessDim *d = ARENA_ARRAY(s->m->arena, AccessDim, a->rank);
    Facts *f = prove_facts_at(s->arena, s->m, op);
    unsigned k = 0;
    for (unsigned i = 0; i < a->rank; i++) {
        const Affine *lo = affine_sub(x, a->dims[i].lo, w->dims[i].lo);
        const Affine *one = affine_const(x, 1);
        bool point = w->dims[i].kind == DIM_point;
        const Affine *len = a->dims[i].kind == DIM_point ? one : a->dims[i].len;
        const Affine *room = point ? one : w->dims[i].len;
        const Cond *in =
            cond_and(x, cond_cmp(x, CMP_ge, lo, affine_const(x, 0)),
                     cond_cmp(x, CMP_le, affine_add(x, lo, len), room));
        if (!sched_prove(s, f, in, loc,
                         "'%s' may leave the window in dimension %u",
                         sched_stmt_text(s, op), i))
            return false;
        if (point && a->dims[i].kind == DIM_interval)
            return sched_fail(s, loc,
                              "'%s' takes an interval of dimension %u, "
                              "of which the window has a point",
                              sched_stmt_text(s, op), i);
        if (point)
            continue;
        d[k] = a->dims[i];
        d[k++].lo = lo;
    }
    a->base = window->results[0];
    a->rank = k;
    a->dims = d;
    edit_replace(s->log, op);
    return true;
}

typedef struct Redirect {
    Sched *s;
    const Value *from;
    const Op *window;
    Loc loc;
    bool ok;
} Redirect;

static bool redirect(Op *op, void *user)
{
    Redirect *r = user;
    for (unsigned i = 0; i < op->n_operands && r->ok; i++)
        if (op->operands[i].kind == OPND_access && op != r->window &&
            op->operands[i].u.access->base == r->from)
            r->ok = through_window(r->s, op, op->operands[i].u.access,
                                   r->window, r->loc);
    return r->ok;
}

/* The block's accesses to a tensor go through a window made before it. */
bool sched_stage_window(Sched *s, const SchedArg *a)
{
    Op *first = a[0].at.first, *last = a[0].at.last;
    Op *w = sched_stmt(s, first, a[1].loc,
                       arena_printf(s->arena, "%s = %s", a[2].s, a[1].s));
    if (!w)
        return false;
    if (w->code != OP_mem_window)
        return sched_fail(s, a[1].loc, "'%s' is no window", a[1].s);
    const Access *part = w->operands[0].u.access;
    if (part->base->type->kind != TK_map &&
        !sched_access_fits(s, prove_facts_at(s->arena, s->m, first), part,
                           a[1].loc))
        return false;
    Redirect r = { s, part->base, w, a[1].loc, true };
    for (Op *op = stmt_first(first); op && r.ok;
         op = op == last ? NULL : op->next)
        op_walk(op, redirect, &r);
    if (r.ok)
        edit_insert_before(s->log, first, w);
    s->result = w->sid;
    return r.ok;
}

/* ---- stage_mem --------------------------------------------------------- */

typedef struct Stage {
    Sched *s;
    const Access *window; /* on the tensor */
    OpCode through;       /* of each element; OP_none: the element itself */
    Op *alloc;
    Loc loc;
    unsigned n_reads, n_writes, n_sums;
    Op *odd; /* a use by another name */
    OpList targets;
} Stage;

static bool note_stage_use(Op *op, void *user)
{
    Stage *st = user;
    OpAccessVec v = { 0 };
    op_accesses(st->s->m, op, st->s->arena, &v);
    const Value *root = effect_root(st->window->base);
    for (size_t i = 0; i < v.len; i++) {
        const Access *at = v.data[i].access;
        if (effect_root(at->base) != root || (v.data[i].flags & ACC_SYNC))
            continue;
        bool sum = (v.data[i].flags & ACC_REDUCE) != 0;
        if (at->base != st->window->base)
            st->odd = op;
        st->n_sums += sum;
        st->n_reads += !sum && (v.data[i].flags & ACC_READ);
        st->n_writes += !sum && (v.data[i].flags & ACC_WRITE);
    }
    if (op->code == OP_mem_window &&
        op->operands[0].u.access->base == st->window->base)
        st->odd = op;
    return true;
}

typedef struct Taken {
    Arena *arena;
    const Value *read;
    OpCode through;
    OpList applied; /* what takes it of the value */
    Op *odd;        /* .. and what takes the value itself */
} Taken;

static bool note_taken(Op *op, void *user)
{
    Taken *t = user;
    bool uses = false;
    for (unsigned i = 0; i < op->n_operands; i++)
        uses |= op->operands[i].kind == OPND_value &&
                op->operands[i].u.value == t->read;
    if (uses && op->code != t->through)
        t->odd = t->odd ? t->odd : op;
    else if (uses)
        VEC_PUSH(t->arena, &t->applied, op);
    return true;
}

/* The loaded value in the place of what is computed of it, in its statement and
 * in others, which is in the buffer already. */
static bool without_through(Stage *st, Op *load)
{
    Taken t = { st->s->arena, load->results[0], st->through, { 0 }, NULL };
    if (load->code != OP_mem_load)
        return sched_fail(st->s, st->loc, "'%s' takes elements as they are",
                          sched_stmt_text(st->s, sched_stmt_of(load)));
    block_walk(load->parent, note_taken, &t);
    if (t.odd)
        return sched_fail(st->s, st->loc,
                          "'%s' has an element of the window that %s is not "
                          "taken of",
                          sched_stmt_text(st->s, sched_stmt_of(t.odd)),
                          op_info(st->through)->name);
    for (size_t k = 0; k < t.applied.len; k++) {
        Op *gone = t.applied.data[k];
        block_replace_value(gone->parent, gone->results[0], load->results[0]);
        op_detach(gone);
    }
    return true;
}

/* Collects the ops that name the tensor, before any of them is changed. */
static bool note_target(Op *op, void *user)
{
    Stage *st = user;
    for (unsigned i = 0; i < op->n_operands; i++)
        if (op->operands[i].kind == OPND_access &&
            op->operands[i].u.access->base == st->window->base) {
            VEC_PUSH(st->s->arena, &st->targets, op);
            break;
        }
    return true;
}

static bool to_staged(Stage *st, Op *op)
{
    Op view = { .operands = NULL };
    Operand window = opnd_access((Access *)st->window);
    Value *buffer = st->alloc->results[0];
    view.operands = &window;
    view.results = &buffer;
    if (st->through && !without_through(st, op))
        return false;
    for (unsigned i = 0; i < op->n_operands; i++)
        if (op->operands[i].kind == OPND_access &&
            op->operands[i].u.access->base == st->window->base &&
            !through_window(st->s, op, op->operands[i].u.access, &view,
                            st->loc))
            return false;
    return true;
}

/* The innermost block of a nest over the buffer's extents; at[] gets the
 * iterators. */
static Op *nest(Sched *s, const Value *buffer, const Affine **at, Block **body)
{
    ExprCtx *x = s->m->exprs;
    Op *top = NULL;
    Block *b = NULL;
    for (unsigned i = 0; i < buffer->type->rank; i++) {
        VarId v;
        Op *loop = sched_loop(s, NULL, arena_printf(s->arena, "i%u", i),
                              affine_const(x, 0), buffer->shape[i], &v);
        if (b)
            block_append(b, loop);
        else
            top = loop;
        b = loop->blocks[0];
        at[i] = affine_var(x, v);
    }
    *body = b;
    return top;
}

/* The tensor's element that the buffer's element at[] stands for. */
static Access *original(Sched *s, const Access *w, const Affine *const *at)
{
    Access *a = access_new(s->m, w->base);
    for (unsigned i = 0, k = 0; i < w->rank; i++) {
        a->dims[i] = (AccessDim){ .kind = DIM_point, .lo = w->dims[i].lo };
        if (w->dims[i].kind == DIM_interval)
            a->dims[i].lo = affine_add(s->m->exprs, w->dims[i].lo, at[k++]);
    }
    return a;
}

const Cond *sched_bounds_left(Sched *s, const Facts *f, const Access *a)
{
    ExprCtx *x = s->m->exprs;
    const Cond *in = cond_bool(x, true);
    for (unsigned i = 0; i < a->rank; i++) {
        const Cond *low =
            cond_cmp(x, CMP_ge, a->dims[i].lo, affine_const(x, 0));
        const Cond *high =
            cond_cmp(x, CMP_lt, a->dims[i].lo, a->base->shape[i]);
        if (!sched_implied(s, f, low))
            in = cond_and(x, in, low);
        if (!sched_implied(s, f, high))
            in = cond_and(x, in, high);
    }
    return in;
}

/* Under the condition that the element is in the tensor, unless it is one of a
 * map (which reads zero there) or always is. */
static Block *guarded(Sched *s, const Facts *f, const Access *a, Block *b)
{
    if (a->base->type->kind == TK_map)
        return b;
    const Cond *in = sched_bounds_left(s, f, a);
    if (!in || in->kind == COND_true)
        return b;
    Op *guard = op_new(s->m, OP_ctl_if, s->loc, 1, 0, 1);
    guard->operands[0] = opnd_cond(in);
    block_append(b, guard);
    return guard->blocks[0];
}

enum CopyKind { COPY_in, COPY_out, COPY_add, COPY_zero };

static Op *copy_nest(Sched *s, const Stage *st, const Facts *f,
                     enum CopyKind kind)
{
    Value *buffer = st->alloc->results[0];
    unsigned rank = buffer->type->rank;
    const Affine **at = ARENA_ARRAY(s->arena, const Affine *, rank + 1);
    Block *body, *tmp = block_new(s->m, NULL);
    Op *top = nest(s, buffer, at, &body);
    if (!top)
        body = tmp;
    Access *there = original(s, st->window, at);
    Access *here = points(s, buffer, at);
    if (kind != COPY_zero)
        body = guarded(s, f, there, body);
    Value *v;
    if (kind == COPY_zero) {
        Op *zero = sched_zero(s, buffer->type->elem);
        block_append(body, zero);
        v = zero->results[0];
    } else {
        v = load_of(s, body, kind == COPY_in ? there : here);
    }
    if (kind == COPY_in && st->through) {
        Op *f = op_new(s->m, st->through, s->loc, 1, 1, 0);
        f->operands[0] = opnd_value(v);
        block_append(body, f);
        v = op_set_result(s->m, f, 0, v->type, NULL);
    }
    Op *op = op_new(s->m, kind == COPY_add ? OP_mem_reduce : OP_mem_store,
                    s->loc, 2, 0, 0);
    op->operands[0] =
        opnd_access(kind == COPY_in || kind == COPY_zero ? here : there);
    op->operands[1] = opnd_value(v);
    block_append(body, op);
    return top ? top : block_first_stmt(tmp);
}

/* ---- is every element of the window written? --------------------------- */

typedef struct Digit {
    int64_t coef, extent;
} Digit;

/* Do the terms of e count 0 .. len - 1, each loop with its own digit? Loops are
 * marked used: one must not serve two dimensions. */
static bool counts_up(const Affine *e, const Affine *len, Op *from,
                      const Op *until, VarId *used, unsigned *n_used)
{
    int64_t want, at = 1;
    if (!affine_is_const(len, &want) || e->constant != 0 || e->n_terms > 16)
        return false;
    Digit digits[16];
    for (uint32_t i = 0; i < e->n_terms; i++) {
        const Atom *a = e->terms[i].atom;
        Op *loop = op_parent(from);
        if (a->kind != ATOM_var)
            return false;
        while (loop && loop != until &&
               !(loop->code == OP_ctl_for && sched_loop_var(loop) == a->var))
            loop = op_parent(loop);
        int64_t lo;
        if (!loop || loop == until || *n_used == 16 ||
            !affine_is_const(loop->operands[0].u.index, &lo) || lo ||
            !affine_is_const(loop->operands[1].u.index, &digits[i].extent))
            return false;
        for (unsigned k = 0; k < *n_used; k++)
            if (used[k] == a->var)
                return false;
        used[(*n_used)++] = a->var;
        digits[i].coef = e->terms[i].coef;
    }
    for (uint32_t n = 0; n < e->n_terms; n++) {
        uint32_t i = 0;
        while (i < e->n_terms && digits[i].coef != at)
            i++;
        if (i == e->n_terms)
            return false;
        at *= digits[i].extent;
        digits[i].coef = 0;
    }
    return at == want;
}

typedef struct Cover {
    Sched *s;
    const Stage *st;
    const Op *until; /* around the block */
    OpCode code;     /* mem.store or mem.load, which comes before any store */
    bool all;
} Cover;

static bool has_trip(Sched *s, Op *loop)
{
    const Affine *lo = loop->operands[0].u.index;
    const Affine *hi = loop->operands[1].u.index;
    return sched_implied(s, prove_facts_at(s->arena, s->m, loop),
                         cond_cmp(s->m->exprs, CMP_lt, lo, hi));
}

/* Does each element that the block stores have been loaded by then? So when
 * the only store is the statement that loads it. */
static bool loads_first(const Cover *c, Op *load)
{
    const Op *stmt = sched_stmt_of(load);
    const Access *r = load->operands[0].u.access;
    bool same = c->st->n_writes == 1 && stmt->code == OP_mem_store &&
                stmt->operands[0].u.access->base == r->base;
    for (unsigned i = 0; same && i < r->rank; i++)
        same = stmt->operands[0].u.access->dims[i].lo == r->dims[i].lo;
    return same || c->st->n_writes == 0;
}

/* Does this op, under loops alone, count through the window? */
static bool note_cover(Op *op, void *user)
{
    Cover *c = user;
    const Access *window = c->st->window;
    VarId used[16];
    unsigned n_used = 0;
    if (op->code != c->code || op->operands[0].u.access->base != window->base)
        return true;
    if (op->code == OP_mem_load && !loads_first(c, op))
        return true;
    for (Op *o = op_parent(op); o && o != c->until; o = op_parent(o))
        if (o->code == OP_ctl_if ||
            (o->code == OP_ctl_for && !has_trip(c->s, o)))
            return true;
    const Access *a = op->operands[0].u.access;
    for (unsigned i = 0; i < a->rank; i++) {
        const AccessDim *w = &window->dims[i];
        const Affine *e = affine_sub(c->s->m->exprs, a->dims[i].lo, w->lo);
        const Affine *len =
            w->kind == DIM_interval ? w->len : affine_const(c->s->m->exprs, 1);
        if (!e || !counts_up(e, len, op, c->until, used, &n_used))
            return true;
    }
    c->all = true;
    return true;
}

/* Is every element of the window stored (or loaded) by one op of the block,
 * whose indices count through it? For stores, nothing may load: the block is
 * then asked only when it has no reads. */
static bool covers(Sched *s, const Stage *st, Op *first, Op *last, OpCode code)
{
    Cover c = { s, st, op_parent(first), code, false };
    for (Op *op = stmt_first(first); op; op = op == last ? NULL : op->next)
        op_walk(op, note_cover, &c);
    return c.all;
}

/* ---- the operator ------------------------------------------------------ */

static bool stage_alloc(Stage *st, Op *first, const SchedArg *name,
                        const SchedArg *memory)
{
    Sched *s = st->s;
    bool ok;
    const MemRef *mem = mem_given(s, memory, &ok);
    const Access *w = st->window;
    const Affine **shape = ARENA_ARRAY(s->arena, const Affine *, w->rank + 1);
    unsigned rank = 0;
    ExprCtx *x = s->m->exprs;
    Facts *f = prove_facts_at(s->arena, s->m, first);
    for (unsigned i = 0; ok && i < w->rank; i++) {
        if (w->dims[i].kind != DIM_interval)
            continue;
        shape[rank++] = w->dims[i].len;
        ok = sched_prove(
            s, f, cond_cmp(x, CMP_gt, w->dims[i].len, affine_const(x, 0)),
            st->loc, "the window may be empty in dimension %u", i);
    }
    if (ok)
        st->alloc =
            new_alloc(s, first, name->s, w->base->type->elem, rank, shape, mem);
    return ok;
}

/* The copy has strides of its own. */
static bool strides_are_free(Sched *s, const Value *v, Op *first, Op *last,
                             Loc loc)
{
    for (Op *op = first; op; op = op == last ? NULL : stmt_next(op)) {
        const Op *reader = sched_stride_reader(s, op, v, v->type->rank);
        if (reader)
            return sched_fail(s, loc, "'%s' reads a stride of %s",
                              sched_stmt_text(s, reader),
                              sched_value_name(s, v));
    }
    return true;
}

/* The function of one value that is named, or OP_none and a report. */
static OpCode function_named(Sched *s, const SchedArg *a)
{
    OpCode code = op_code_from_name(arena_printf(s->arena, "arith.%s", a->s));
    if (code == OP_none || code == OP_arith_cast || code == OP_arith_const ||
        strcmp(op_info(code)->operands, "v") != 0) {
        sched_fail(s, a->loc,
                   "'%s' is no function of one value, such as tf32_rn", a->s);
        return OP_none;
    }
    return code;
}

/* A window that something in the block changes is not one window. */
bool sched_stage_mem(Sched *s, const SchedArg *a)
{
    Op *first = a[0].at.first, *last = a[0].at.last;
    bool accum = a[3].i;
    Stage st = { .s = s, .loc = a[1].loc };
    st.window = sched_access(s, first, a[1].loc, a[1].s);
    if (!st.window)
        return false;
    for (Op *op = stmt_first(first); op; op = op == last ? NULL : op->next)
        op_walk(op, note_stage_use, &st);
    if (st.odd)
        return sched_fail(s, a[0].loc,
                          "'%s' reaches the tensor by another "
                          "name or as a window",
                          sched_stmt_text(s, st.odd));
    if (!strides_are_free(s, st.window->base, first, last, a[0].loc))
        return false;
    if (!(st.n_reads + st.n_writes + st.n_sums))
        return sched_fail(s, a[1].loc, "the block does not touch %s",
                          sched_value_name(s, st.window->base));
    if (accum && (st.n_reads || st.n_writes))
        return sched_fail(s, a[3].loc, "accum is for blocks that only add");
    if (a[5].given && (st.n_writes || st.n_sums))
        return sched_fail(s, a[5].loc, "through is for blocks that only read");
    if (a[5].given && !(st.through = function_named(s, &a[5])))
        return false;
    if (sched_escapes(s, first, last))
        return sched_fail(s, a[0].loc,
                          "what the block defines is used behind "
                          "it");
    bool all =
        !st.n_reads && !st.n_sums && covers(s, &st, first, last, OP_mem_store);
    const Op *def = st.window->base->def;
    if (!all && !accum && def && def->code == OP_mem_alloc &&
        !covers(s, &st, first, last, OP_mem_load))
        return sched_fail(s, a[1].loc,
                          "elements of %s that were never written might be "
                          "copied: the block neither writes all of the window "
                          "nor reads all of it first",
                          sched_value_name(s, st.window->base));
    if (!stage_alloc(&st, first, &a[2], &a[4]))
        return false;
    Facts *f = prove_facts_at(s->arena, s->m, first);
    for (Op *op = stmt_first(first); op; op = op == last ? NULL : op->next)
        op_walk(op, note_target, &st);
    for (size_t i = 0; i < st.targets.len; i++)
        if (!to_staged(&st, st.targets.data[i]))
            return false;
    edit_insert_before(s->log, first, st.alloc);
    if (accum || !all)
        edit_insert_before(s->log, first,
                           copy_nest(s, &st, f, accum ? COPY_zero : COPY_in));
    if (st.n_writes + st.n_sums)
        edit_insert_after(s->log, last,
                          copy_nest(s, &st, f, accum ? COPY_add : COPY_out));
    s->reassociates |= accum;
    s->result = st.alloc->sid;
    return true;
}
