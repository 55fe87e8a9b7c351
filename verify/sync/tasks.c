/* Classes of tasks, and conflicts between tasks in global memory: boxes of
 * what each task touches are swept along the dimension that tells most of them
 * apart, and the cells of those that meet are compared. */
#include "verify/sync/tasks.h"

#include "verify/sync/deadlock.h"
#include "verify/sync/signature.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_TASKS = 1 << 22, MAX_PAIRS = 1 << 26 };

/* Tasks that do the same, up to translation. */
typedef struct Class {
    const int64_t *signature;
    const int64_t *task; /* the representative */
    uint64_t n;
    /* By tensor, then coordinates; of several tasks. */
    VEC(SyncTouch) touched;
    /* The representative's box on the tensor that is looked at, in cells. */
    bool any;
    int64_t lo[SYNC_MAX_RANK], hi[SYNC_MAX_RANK];
} Class;

/* Where one task's box begins on one tensor, in elements. */
typedef struct Placed {
    uint64_t task;
    const Class *class;
    const int64_t *lo;
    int64_t key; /* along the dimension in which the sweep goes */
} Placed;

typedef struct Tasks {
    Arena *arena;
    SyncRun *run;
    SyncOutcome *out;
    int64_t **grains;
    Signatures *signatures;
    unsigned n_dims;
    int64_t lo[SYNC_MAX_RANK], n[SYNC_MAX_RANK];
    uint64_t total;
    VEC(Class *) classes;
    Class **class_of; /* by task */
    Class **slots;    /* hash table of classes */
    size_t n_slots;
    unsigned sort_dim;
} Tasks;

static bool undecided(Tasks *t, const char *why)
{
    if (!t->out->unknown)
        t->out->unknown = why;
    return false;
}

/* ---- enumerating -------------------------------------------------------- */

static bool find_box(Tasks *t)
{
    const SyncDevice *d = t->run->device;
    t->n_dims = d->n_tasks;
    t->total = 1;
    if (d->n_tasks > SYNC_MAX_RANK)
        return undecided(t, "more than 16 task loops");
    for (unsigned i = 0; i < d->n_tasks; i++) {
        int64_t hi;
        if (!sync_run_eval(t->run, d->task_lo[i], &t->lo[i]) ||
            !sync_run_eval(t->run, d->task_hi[i], &hi))
            return undecided(t, "the bounds of a task loop are not known, "
                                "or overflow");
        t->n[i] = hi > t->lo[i] ? hi - t->lo[i] : 0;
        if (t->n[i] && t->total > MAX_TASKS / (uint64_t)t->n[i])
            return undecided(t, "too many tasks at these sizes");
        t->total *= (uint64_t)t->n[i];
    }
    return true;
}

static void task_at(const Tasks *t, uint64_t index, int64_t *task)
{
    for (unsigned i = t->n_dims; i-- > 0;) {
        task[i] = t->lo[i] + (int64_t)(index % (uint64_t)t->n[i]);
        index /= (uint64_t)t->n[i];
    }
}

/* ---- classes ------------------------------------------------------------ */

static Class *new_class(Tasks *t, const int64_t *signature, unsigned n,
                        uint64_t index)
{
    int64_t task[SYNC_MAX_RANK] = { 0 };
    task_at(t, index, task);
    Class *c = ARENA_NEW(t->arena, Class);
    c->signature = arena_memdup(t->arena, signature, n * sizeof *signature);
    c->task = arena_memdup(t->arena, task, sizeof task);
    VEC_PUSH(t->arena, &t->classes, c);
    return c;
}

static void grow_slots(Tasks *t, unsigned n)
{
    if (2 * t->classes.len < t->n_slots)
        return;
    t->n_slots = t->n_slots ? 2 * t->n_slots : 64;
    t->slots = ARENA_ARRAY(t->arena, Class *, t->n_slots);
    for (size_t i = 0; i < t->classes.len; i++) {
        Class *c = t->classes.data[i];
        size_t k = hash_bytes(HASH_SEED, c->signature, n * sizeof(int64_t));
        while (t->slots[k & (t->n_slots - 1)])
            k++;
        t->slots[k & (t->n_slots - 1)] = c;
    }
}

static Class *class_for(Tasks *t, const int64_t *signature, unsigned n,
                        uint64_t index)
{
    if (signatures_mixed(t->signatures))
        return new_class(t, signature, n, index);
    grow_slots(t, n);
    size_t k = hash_bytes(HASH_SEED, signature, n * sizeof *signature);
    for (;; k++) {
        Class **slot = &t->slots[k & (t->n_slots - 1)];
        if (!*slot)
            *slot = new_class(t, signature, n, index);
        else if (n && memcmp((*slot)->signature, signature,
                             n * sizeof *signature) != 0)
            continue;
        return *slot;
    }
}

static bool find_classes(Tasks *t)
{
    unsigned n = signatures_length(t->signatures);
    int64_t *signature = ARENA_ARRAY(t->arena, int64_t, n);
    t->class_of = ARENA_ARRAY(t->arena, Class *, t->total);
    for (uint64_t i = 0; i < t->total; i++) {
        int64_t task[SYNC_MAX_RANK];
        task_at(t, i, task);
        if (!signatures_of(t->signatures, task, signature))
            return undecided(t, "control depends on a value that is not known "
                                "here");
        Class *c = class_for(t, signature, n, i);
        c->n++;
        t->class_of[i] = c;
    }
    return true;
}

/* ---- running one task --------------------------------------------------- */

static int compare_touched(const void *a, const void *b)
{
    const SyncTouch *x = a, *y = b;
    if (x->tensor != y->tensor)
        return x->tensor < y->tensor ? -1 : 1;
    for (unsigned i = 0; i < SYNC_MAX_RANK; i++)
        if (x->at[i] != y->at[i])
            return x->at[i] < y->at[i] ? -1 : 1;
    return 0;
}

typedef struct Collect {
    Tasks *t;
    Class *c;
} Collect;

static bool has_room(Tasks *t, uint64_t bytes)
{
    uint64_t most = t->run->most_bytes;
    return sync_has_room(most, arena_bytes(t->arena), bytes) ||
           undecided(t, sync_no_room(t->arena, most));
}

static void collect(const SyncTouch *touch, void *user)
{
    Collect *c = user;
    if (c->t->out->unknown ||
        (c->c->touched.len == c->c->touched.cap &&
         !has_room(c->t, 2 * c->c->touched.cap * sizeof *touch)))
        return;
    VEC_PUSH(c->t->arena, &c->c->touched, *touch);
}

static void set_task(Tasks *t, const int64_t *task)
{
    for (unsigned i = 0; i < t->n_dims; i++) {
        VarId v = t->run->device->task_vars[i];
        t->run->vars[v] = task[i];
        t->run->known[v] = true;
    }
}

/* Where no Await is before its Arrives, program order is an execution. */
static void find_deadlock(Tasks *t, Arena *arena)
{
    Deadlock *d = deadlock_new(arena, t->run);
    if (deadlock_free(d, &t->out->fault))
        return;
    StrBuf s = { 0 };
    deadlock_print(d, &s);
    t->out->cycle = arena_strdup(t->arena, strbuf_text(&s));
    strbuf_free(&s);
}

/* A loop is as steady as in the task where it is least. */
static void note_loops(Tasks *t, const SyncMachine *m)
{
    for (size_t i = 0; i < m->loops.len; i++) {
        const SyncLoop *l = &m->loops.data[i];
        SyncLoop *have = NULL;
        for (size_t k = 0; k < t->out->loops.len; k++)
            if (t->out->loops.data[k].node == l->node)
                have = &t->out->loops.data[k];
        if (!have) {
            VEC_PUSH(t->arena, &t->out->loops, *l);
            continue;
        }
        have->every = have->every || l->every;
        if (l->from > have->from || !have->period)
            *have = (SyncLoop){ l->node, l->trips, l->from, l->period,
                                have->every };
    }
}

static bool run_class(Tasks *t, Class *c)
{
    Arena *arena = arena_new();
    SyncOutcome *out = t->out;
    set_task(t, c->task);
    SyncMachine *machine = sync_machine_new(arena, t->run, t->grains);
    bool ran = sync_run_task(t->run, &machine->sink);
    out->fault = machine->fault;
    out->n_syncs += machine->n_syncs;
    note_loops(t, machine);
    if (ran && !t->run->failed && machine->early)
        find_deadlock(t, arena);
    memcpy(out->task, c->task, sizeof out->task);
    Collect col = { t, c };
    if (out->fault.kind == FAULT_none && t->total > 1)
        sync_machine_touched(machine, collect, &col);
    if (c->touched.len)
        qsort(c->touched.data, c->touched.len, sizeof *c->touched.data,
              compare_touched);
    if (out->fault.kind == FAULT_none)
        arena_free(arena);
    else
        out->kept = arena; /* the fault's record is in it */
    if (t->run->failed)
        return undecided(t, t->run->failed);
    return out->fault.kind == FAULT_none && !out->unknown;
}

/* ---- conflicts between tasks -------------------------------------------- */

static int64_t shift_of(const Tasks *t, const Placed *p, unsigned tensor,
                        unsigned dim)
{
    int64_t task[SYNC_MAX_RANK];
    task_at(t, p->task, task);
    return signatures_shift(t->signatures, task, tensor, dim) -
           signatures_shift(t->signatures, p->class->task, tensor, dim);
}

/* The class's box on the tensor, in cells; false: it touches none of it. */
static bool class_box(const Class *c, unsigned tensor, unsigned rank,
                      int64_t *lo, int64_t *hi, unsigned *how)
{
    bool any = false;
    *how = 0;
    for (size_t i = 0; i < c->touched.len; i++) {
        const SyncTouch *x = &c->touched.data[i];
        if (x->tensor != tensor)
            continue;
        for (unsigned k = 0; k < rank; k++) {
            lo[k] = any && lo[k] < x->at[k] ? lo[k] : x->at[k];
            hi[k] = any && hi[k] > x->at[k] + 1 ? hi[k] : x->at[k] + 1;
        }
        *how |= x->how;
        any = true;
    }
    return any;
}

static const SyncTouch *touched_at(const Class *c, unsigned tensor,
                                   const int64_t *at)
{
    SyncTouch key = { .tensor = tensor };
    memcpy(key.at, at, sizeof key.at);
    return c->touched.len ? bsearch(&key, c->touched.data, c->touched.len,
                                    sizeof key, compare_touched)
                          : NULL;
}

static SyncFaultKind conflict(const SyncTouch *a, const SyncTouch *b)
{
    unsigned mutate = TOUCH_write | TOUCH_atomic;
    if ((a->how & mutate) && (b->how & mutate) &&
        ((a->how | b->how) & TOUCH_write))
        return FAULT_tasks_waw;
    if ((a->how & mutate) && (b->how & TOUCH_read))
        return FAULT_tasks_raw;
    if ((a->how & TOUCH_read) && (b->how & mutate))
        return FAULT_tasks_war;
    return FAULT_none;
}

static bool report_conflict(Tasks *t, unsigned tensor, const Placed *a,
                            const Placed *b, const SyncTouch *x,
                            const SyncTouch *y, const int64_t *cell)
{
    SyncFault *f = &t->out->fault;
    *f = (SyncFault){ .kind = conflict(x, y), .tensor = tensor };
    bool reads = f->kind == FAULT_tasks_raw;
    f->node = reads ? y->reader : y->writer;
    t->out->other_node = f->kind == FAULT_tasks_war ? x->reader : x->writer;
    f->rank = t->run->program->tensors[tensor].value->type->rank;
    for (unsigned i = 0; i < f->rank; i++)
        f->element[i] = cell[i] * t->grains[tensor][i];
    task_at(t, b->task, t->out->task);
    task_at(t, a->task, t->out->other);
    return false;
}

/* Two tasks whose boxes meet, a before b. */
static bool compare_cells(Tasks *t, unsigned tensor, const Placed *a,
                          const Placed *b)
{
    unsigned rank = t->run->program->tensors[tensor].value->type->rank;
    int64_t move[SYNC_MAX_RANK], own[SYNC_MAX_RANK];
    for (unsigned i = 0; i < rank; i++) {
        int64_t g = t->grains[tensor][i];
        own[i] = shift_of(t, a, tensor, i) / g;
        move[i] = own[i] - shift_of(t, b, tensor, i) / g;
    }
    for (size_t i = 0; i < a->class->touched.len; i++) {
        const SyncTouch *x = &a->class->touched.data[i];
        int64_t at[SYNC_MAX_RANK] = { 0 }, cell[SYNC_MAX_RANK] = { 0 };
        if (x->tensor != tensor)
            continue;
        for (unsigned k = 0; k < rank; k++) {
            at[k] = x->at[k] + move[k];
            cell[k] = x->at[k] + own[k];
        }
        const SyncTouch *y = touched_at(b->class, tensor, at);
        if (y && conflict(x, y) != FAULT_none)
            return report_conflict(t, tensor, a, b, x, y, cell);
    }
    return true;
}

static int compare_int64(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return x < y ? -1 : x > y;
}

/* The dimension with the most different beginnings. */
static unsigned best_dim(Tasks *t, const Placed *p, uint64_t n, unsigned rank)
{
    Arena *arena = arena_child(t->arena);
    int64_t *at = ARENA_ARRAY(arena, int64_t, n);
    unsigned best = 0;
    uint64_t most = 0;
    for (unsigned d = 0; d < rank; d++) {
        uint64_t different = n > 0;
        for (uint64_t i = 0; i < n; i++)
            at[i] = p[i].lo[d];
        qsort(at, n, sizeof *at, compare_int64);
        for (uint64_t i = 1; i < n; i++)
            different += at[i] != at[i - 1];
        if (different > most) {
            most = different;
            best = d;
        }
    }
    arena_free(arena);
    return best;
}

static int compare_placed(const void *a, const void *b)
{
    const Placed *x = a, *y = b;
    if (x->key != y->key)
        return x->key < y->key ? -1 : 1;
    return x->task < y->task ? -1 : x->task > y->task;
}

/* Where the box ends; one element wide where there are no dimensions. */
static int64_t end_of(const Tasks *t, unsigned tensor, const Placed *p,
                      unsigned dim)
{
    unsigned rank = t->run->program->tensors[tensor].value->type->rank;
    int64_t cells = p->class->hi[dim] - p->class->lo[dim];
    return rank ? p->lo[dim] + cells * t->grains[tensor][dim] : 1;
}

static bool boxes_meet(const Tasks *t, unsigned tensor, const Placed *a,
                       const Placed *b, unsigned rank)
{
    for (unsigned i = 0; i < rank; i++)
        if (end_of(t, tensor, a, i) <= b->lo[i] ||
            end_of(t, tensor, b, i) <= a->lo[i])
            return false;
    return true;
}

static bool sweep(Tasks *t, unsigned tensor, Placed *p, uint64_t n,
                  unsigned rank)
{
    unsigned d = best_dim(t, p, n, rank);
    uint64_t pairs = 0;
    for (uint64_t i = 0; i < n; i++)
        p[i].key = p[i].lo[d];
    qsort(p, n, sizeof *p, compare_placed);
    for (uint64_t i = 0; i < n; i++)
        for (uint64_t k = i + 1;
             k < n && p[k].key < end_of(t, tensor, &p[i], d); k++) {
            if (++pairs > MAX_PAIRS)
                return undecided(t, "too many tasks overlap in global memory");
            bool before = p[i].task < p[k].task;
            const Placed *a = before ? &p[i] : &p[k];
            const Placed *b = before ? &p[k] : &p[i];
            if (boxes_meet(t, tensor, a, b, rank) &&
                !compare_cells(t, tensor, a, b))
                return false;
        }
    return true;
}

/* Places every task's box, each with so many numbers of `room`; false when
 * nobody writes, or all by reductions. */
static bool place(Tasks *t, unsigned tensor, unsigned rank, Placed *p,
                  int64_t *room, uint64_t *n)
{
    unsigned all = 0;
    *n = 0;
    for (size_t i = 0; i < t->classes.len; i++) {
        Class *c = t->classes.data[i];
        unsigned how;
        c->any = class_box(c, tensor, rank, c->lo, c->hi, &how);
        all |= how;
    }
    if (!(all & (TOUCH_write | TOUCH_atomic)) || all == TOUCH_atomic)
        return false;
    for (uint64_t i = 0; i < t->total; i++) {
        Placed *x = &p[*n];
        int64_t *lo = room + *n * (rank + 1);
        *x = (Placed){ .task = i, .class = t->class_of[i], .lo = lo };
        for (unsigned k = 0; k < rank && x->class->any; k++)
            lo[k] = x->class->lo[k] * t->grains[tensor][k] +
                    shift_of(t, x, tensor, k);
        *n += x->class->any;
    }
    return true;
}

static unsigned most_rank(const SyncProgram *p)
{
    unsigned most = 0;
    for (unsigned i = 0; i < p->n_tensors; i++)
        if (p->tensors[i].space == SYNC_global && p->tensors[i].checked &&
            p->tensors[i].value->type->rank > most)
            most = p->tensors[i].value->type->rank;
    return most;
}

static bool find_conflicts(Tasks *t)
{
    const SyncProgram *p = t->run->program;
    if (t->total < 2)
        return true;
    size_t numbers = most_rank(p) + 1;
    if (!has_room(t,
                  t->total * (sizeof(Placed) + 2 * numbers * sizeof(int64_t))))
        return false;
    int64_t *room = ARENA_ARRAY(t->arena, int64_t, t->total * numbers);
    Placed *placed = ARENA_ARRAY(t->arena, Placed, t->total);
    for (unsigned i = 0; i < p->n_tensors; i++) {
        unsigned rank = p->tensors[i].value->type->rank;
        uint64_t n;
        if (p->tensors[i].space != SYNC_global || !p->tensors[i].checked)
            continue;
        if (rank >= SYNC_MAX_RANK)
            return undecided(t, "a tensor has more than 15 dimensions");
        if (place(t, i, rank, placed, room, &n) &&
            !sweep(t, i, placed, n, rank))
            return false;
    }
    return true;
}

void sync_tasks_check(Arena *arena, SyncRun *run, SyncOutcome *out)
{
    Tasks t = { .arena = arena, .run = run, .out = out };
    *out = (SyncOutcome){ .unknown = run->failed };
    if (out->unknown || !find_box(&t))
        return;
    out->n_tasks = t.total;
    t.grains = run->grains = sync_grains(arena, run);
    t.signatures = signatures_new(arena, run);
    if (!find_classes(&t))
        return;
    out->n_classes = t.classes.len;
    bool ok = true;
    for (size_t i = 0; i < t.classes.len && ok; i++)
        ok = run_class(&t, t.classes.data[i]);
    if (ok)
        find_conflicts(&t);
    out->n_events = run->n_events;
}
