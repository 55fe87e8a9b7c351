/* A list of places to go on from; the sets that a place was come to with are
 * kept where ways meet: at targets, and behind what a guard may skip. */
#include "verify/async/walk.h"

#include <string.h>

typedef struct Place {
    uint32_t instr;
    unsigned set;
} Place;

typedef VEC(unsigned) SetVec;

typedef struct Walk {
    Arena *a;
    const Automaton *n;
    const PtxKernel *k;
    const uint8_t *can;
    bool *is_target;
    SetVec *walked; /* by target */
    VEC(Place) todo;
    size_t left;
    WalkStep *step;
    void *user;
} Walk;

static void go_to(Walk *w, uint32_t instr, unsigned set)
{
    if (w->is_target[instr]) {
        SetVec *walked = &w->walked[instr];
        for (size_t i = 0; i < walked->len; i++)
            if (automaton_includes(w->n, set, walked->data[i]))
                return;
        VEC_PUSH(w->a, walked, set);
    }
    VEC_PUSH(w->a, &w->todo, ((Place){ instr, set }));
}

/* One instruction; where control goes on is put on the list. */
static void step(Walk *w, Place at)
{
    const PtxInstr *in = &w->k->instrs[at.instr];
    uint8_t can = w->can[at.instr];
    unsigned set = at.set;
    uint32_t next = WALK_ON;
    if (can & PTX_CAN_SKIP && w->step(w->user, at.instr, false, &set, &next))
        go_to(w, at.instr + 1, set);
    if (!(can & PTX_CAN_RUN) ||
        !w->step(w->user, at.instr, true, &at.set, &next))
        return;
    if (next != WALK_ON) {
        go_to(w, next, at.set);
        return;
    }
    for (unsigned i = 0; i < in->n_targets; i++)
        go_to(w, in->targets[i], at.set);
    if (!in->branches && !in->ends)
        go_to(w, at.instr + 1, at.set);
}

bool walk_code(Arena *a, const Automaton *n, const PtxKernel *k,
               const uint8_t *can, size_t most, WalkStep *fn, void *user,
               const bool *stop)
{
    Walk w = { a, n, .k = k, .can = can, .step = fn, .user = user };
    w.is_target = ARENA_ARRAY(a, bool, k->n_instrs + 1);
    w.walked = ARENA_ARRAY(a, SetVec, k->n_instrs + 1);
    for (uint32_t i = 0; i < k->n_instrs; i++) {
        w.is_target[i + 1] |= k->instrs[i].guard != 0;
        for (unsigned t = 0; t < k->instrs[i].n_targets; t++)
            w.is_target[k->instrs[i].targets[t]] = true;
    }
    go_to(&w, 0, 0);
    for (; w.todo.len && !*stop; most--) {
        if (!most)
            return false;
        step(&w, w.todo.data[--w.todo.len]);
    }
    return true;
}
