/* A walk over the tree lists every expression that depends on the task's
 * coordinates, cut into the part of the coordinates and the rest; a task is
 * then evaluated on that list by interval arithmetic. */
#include "verify/sync/signature.h"

#include "verify/sync/ranges.h"

#include <string.h>

typedef enum ItemKind {
    ITEM_range, /* a loop: its variable's range */
    ITEM_value, /* the coordinates' part itself */
    ITEM_ge0,
    ITEM_eq0,
    ITEM_inside /* lo .. lo + len within the tensor */
} ItemKind;

typedef struct Item {
    ItemKind kind;
    const Affine *task, *rest; /* their sum is the expression */
    VarId var;
    const Affine *hi; /* range: bounds are task and hi */
    int64_t len, least, most;
} Item;

/* The coordinates' part of a global tensor's dimension: of its first access.
 * */
typedef struct Shift {
    const Affine *task;
} Shift;

struct Signatures {
    Arena *arena;
    const SyncRun *run;
    ExprCtx *exprs;
    bool mixed, moving; /* moving: a loop's range depends on the task */
    VEC(Item) items;
    unsigned length;
    Range *ranges;  /* by VarId */
    Shift **shifts; /* by tensor, dimension */
    bool ranged;
};

/* ---- cutting expressions ------------------------------------------------ */

static bool is_task(const Signatures *s, VarId v)
{
    for (unsigned i = 0; i < s->run->device->n_tasks; i++)
        if (s->run->device->task_vars[i] == v)
            return true;
    return false;
}

typedef struct Uses {
    const Signatures *s;
    bool task, other;
} Uses;

static void note_use(VarId v, void *user)
{
    Uses *u = user;
    if (is_task(u->s, v))
        u->task = true;
    else if (!u->s->ranges[v].known)
        u->other = true;
}

static Uses uses_of(const Signatures *s, const Affine *e)
{
    Uses u = { s, false, false };
    affine_walk_vars(e, note_use, &u);
    return u;
}

/* Cuts e; true where it depends on the task. */
static bool cut(Signatures *s, const Affine *e, const Affine **task,
                const Affine **rest)
{
    Affine *t = ARENA_NEW(s->arena, Affine), *r = ARENA_NEW(s->arena, Affine);
    Term *tt = ARENA_ARRAY(s->arena, Term, e->n_terms);
    Term *rt = ARENA_ARRAY(s->arena, Term, e->n_terms);
    r->constant = e->constant;
    t->terms = tt;
    r->terms = rt;
    for (uint32_t i = 0; i < e->n_terms; i++) {
        Affine one = { .n_terms = 1, .terms = &e->terms[i] };
        Uses u = uses_of(s, &one);
        s->mixed = s->mixed || (u.task && u.other);
        if (u.task)
            tt[t->n_terms++] = e->terms[i];
        else
            rt[r->n_terms++] = e->terms[i];
    }
    *task = t;
    *rest = r;
    return t->n_terms > 0;
}

/* ---- the list ----------------------------------------------------------- */

static void add_item(Signatures *s, Item item)
{
    VEC_PUSH(s->arena, &s->items, item);
    s->length += item.kind == ITEM_range ? 0 : 2;
}

static void add_value(Signatures *s, const Affine *e)
{
    Item item = { .kind = ITEM_value };
    if (e && cut(s, e, &item.task, &item.rest))
        add_item(s, item);
}

static void add_cond(Signatures *s, const Cond *c)
{
    if (!c)
        return;
    if (c->kind == COND_ge0 || c->kind == COND_eq0) {
        Item item = { .kind = c->kind == COND_ge0 ? ITEM_ge0 : ITEM_eq0 };
        if (cut(s, c->expr, &item.task, &item.rest))
            add_item(s, item);
        return;
    }
    add_cond(s, c->lhs);
    add_cond(s, c->rhs);
}

static void add_loop(Signatures *s, const SyncNode *n)
{
    Item item = {
        .kind = ITEM_range, .var = n->var, .task = n->lo, .hi = n->hi
    };
    if (n->kind == SYNC_loop) {
        s->moving =
            s->moving || uses_of(s, n->lo).task || uses_of(s, n->hi).task;
        add_value(s, n->lo);
        add_value(s, n->hi);
    }
    if (n->var)
        add_item(s, item);
}

/* Translation is the same for all accesses: else the difference tells tasks
 * apart. */
static void add_shift(Signatures *s, unsigned tensor, unsigned dim,
                      const Affine *task)
{
    Shift *shift = &s->shifts[tensor][dim];
    if (!shift->task)
        shift->task = task;
    bool same = shift->task->n_terms == task->n_terms;
    for (uint32_t i = 0; same && i < task->n_terms; i++)
        same = shift->task->terms[i].atom == task->terms[i].atom &&
               shift->task->terms[i].coef == task->terms[i].coef;
    if (same)
        return;
    add_item(s, (Item){ .kind = ITEM_value, .task = task });
    add_item(s, (Item){ .kind = ITEM_value, .task = shift->task });
}

static void add_dim(Signatures *s, const SyncExpr *x, unsigned i)
{
    Item item = { .kind = ITEM_inside, .len = 1 };
    item.most = s->run->extents[x->tensor][i];
    cut(s, x->lo[i], &item.task, &item.rest);
    add_shift(s, x->tensor, i, item.task);
    add_value(s, x->len[i]);
    int64_t lo, len;
    if (x->len[i] && !sync_run_eval(s->run, x->len[i], &item.len))
        item.len = INT32_MAX;
    if (x->clip_lo) {
        add_value(s, x->clip_lo[i]);
        add_value(s, x->clip_len[i]);
        if (!sync_run_eval(s->run, x->clip_lo[i], &lo) ||
            !sync_run_eval(s->run, x->clip_len[i], &len))
            lo = len = 0;
        item.least = lo > 0 ? lo : 0;
        item.most = lo + len < item.most ? lo + len : item.most;
    }
    if (item.task->n_terms)
        add_item(s, item);
}

static void add_exprs(Signatures *s, unsigned n, const SyncExpr *x)
{
    for (unsigned k = 0; k < n; k++)
        for (unsigned i = 0; i < x[k].rank; i++) {
            if (s->run->program->tensors[x[k].tensor].space == SYNC_global) {
                add_dim(s, &x[k], i);
                continue;
            }
            add_value(s, x[k].lo[i]);
            add_value(s, x[k].len[i]);
        }
}

static void add_nodes(Signatures *s, const SyncNode *n)
{
    for (; n; n = n->next) {
        if (n->kind == SYNC_loop || n->kind == SYNC_threads)
            add_loop(s, n);
        if (n->kind == SYNC_if)
            add_cond(s, n->cond);
        if (n->kind == SYNC_alloc) {
            const Value *v = s->run->program->tensors[n->tensor].value;
            for (unsigned i = 0; i < v->type->rank; i++)
                add_value(s, v->shape[i]);
        }
        add_exprs(s, n->n_exprs, n->exprs);
        add_exprs(s, n->n_trailing, n->trailing);
        add_nodes(s, n->body);
        add_nodes(s, n->orelse);
    }
}

Signatures *signatures_new(Arena *arena, const SyncRun *run)
{
    const SyncProgram *p = run->program;
    Signatures *s = ARENA_NEW(arena, Signatures);
    unsigned n_vars = var_count(p->m->exprs);
    *s = (Signatures){ .arena = arena, .run = run, .exprs = p->m->exprs };
    s->ranges = ARENA_ARRAY(arena, Range, n_vars + 1);
    for (unsigned v = 1; v <= n_vars; v++)
        if (run->known[v] && !is_task(s, v))
            s->ranges[v] = (Range){ true, run->vars[v], run->vars[v] };
    s->shifts = ARENA_ARRAY(arena, Shift *, p->n_tensors);
    for (unsigned i = 0; i < p->n_tensors; i++)
        s->shifts[i] =
            ARENA_ARRAY(arena, Shift, p->tensors[i].value->type->rank);
    add_nodes(s, run->device->body);
    return s;
}

bool signatures_mixed(const Signatures *s)
{
    return s->mixed;
}

unsigned signatures_length(const Signatures *s)
{
    return s->length;
}

/* ---- tasks -------------------------------------------------------------- */

static bool set_range(Signatures *s, const Item *item)
{
    return range_of_loop(s->ranges, item->task, item->hi,
                         &s->ranges[item->var]);
}

static void set_task(const Signatures *s, const int64_t *task)
{
    for (unsigned i = 0; i < s->run->device->n_tasks; i++)
        s->ranges[s->run->device->task_vars[i]] =
            (Range){ true, task[i], task[i] };
}

/* Two numbers: the outcome, and the task's part where that is not settled. */
static bool evaluate(const Signatures *s, const Item *item, int64_t *out)
{
    Range task, rest = { true, 0, 0 };
    if (!range_of(s->ranges, item->task, &task) ||
        (item->kind != ITEM_value && !range_of(s->ranges, item->rest, &rest)))
        return false;
    int64_t lo, hi;
    if (__builtin_add_overflow(task.lo, rest.lo, &lo) ||
        __builtin_add_overflow(task.lo, rest.hi, &hi))
        return false;
    out[0] = 0;
    out[1] = 0;
    if (item->kind == ITEM_ge0)
        out[0] = lo >= 0 ? 1 : hi < 0 ? 2 : 0;
    else if (item->kind == ITEM_eq0)
        out[0] = lo > 0 || hi < 0 ? 2 : lo == hi ? 1 : 0;
    else if (item->kind == ITEM_inside)
        out[0] = lo >= item->least && hi <= item->most - item->len;
    if (!out[0])
        out[1] = task.lo;
    return true;
}

bool signatures_of(Signatures *s, const int64_t *task, int64_t *out)
{
    set_task(s, task);
    bool ranges = !s->ranged || s->moving;
    for (size_t i = 0; i < s->items.len; i++) {
        const Item *item = &s->items.data[i];
        if (item->kind == ITEM_range) {
            if (ranges && !set_range(s, item))
                return false;
            continue;
        }
        if (!evaluate(s, item, out))
            return false;
        out += 2;
    }
    s->ranged = true;
    return true;
}

int64_t signatures_shift(const Signatures *s, const int64_t *task,
                         unsigned tensor, unsigned dim)
{
    const Affine *e = s->shifts[tensor][dim].task;
    Range r;
    if (!e)
        return 0;
    set_task(s, task);
    return range_of(s->ranges, e, &r) ? r.lo : 0;
}
