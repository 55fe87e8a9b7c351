/* What statements do to memory and configuration state, and when two of them
 * may change places.
 *
 * Effects are collected below a range of statements: accesses seen on their
 * roots, with the conditions and loop ranges under which they happen. Memory
 * allocated within the range is its own and is left out. Synchronisation does
 * nothing here. Calls of procedures read and write what they are given, and
 * their configuration accesses count. */
#ifndef EXO_PASSES_SCHEDULE_EFFECTS_H
#define EXO_PASSES_SCHEDULE_EFFECTS_H

#include "passes/schedule/schedule.h"

typedef struct Effect {
    const Access *access; /* on its root; NULL: configuration state */
    const char *field;    /* Config.field, interned */
    unsigned flags;       /* ACC_READ, ACC_WRITE, ACC_REDUCE */
    const Cond *when;     /* conditions and ranges inside, or true */
    Op *op;
    bool own; /* of memory allocated in the range (effects_all) */
} Effect;
typedef VEC(Effect) EffectVec;

/* Of the statements first .. last and the ops that make their values. */
void effects_of(Sched *s, Op *first, Op *last, EffectVec *out);
/* The same with accesses to memory allocated in the range. */
void effects_all(Sched *s, Op *first, Op *last, EffectVec *out);
/* Of a whole block. */
void effects_of_block(Sched *s, const Block *b, EffectVec *out);
/* The effects with variables renamed: vars[i] becomes to[i], and every other
 * variable of a loop inside block `until` gets a twin of the same range. */
bool effects_renamed(Sched *s, const EffectVec *in, const Block *until,
                     unsigned n_vars, const VarId *vars,
                     const Affine *const *to, EffectVec *out);
/* Can all of a change places with all of b, where the facts hold? Else reports
 * `what`, naming the two statements. Sums into one place may be reordered:
 * s->reassociates is then set where the sum is floating. */
bool effects_commute(Sched *s, const Facts *f, const EffectVec *a,
                     const EffectVec *b, Loc loc, const char *what);
/* Is running it, which stands in block `until`, twice in a row the same as
 * once? Else reports. */
bool effects_idempotent(Sched *s, const Facts *f, const EffectVec *e,
                        const Block *until, Loc loc, const char *what);
/* May effects of these two touch one place? By names only. */
bool effects_same_root(const Effect *a, const Effect *b);
/* The tensor behind windows and tensor maps. */
Value *effect_root(Value *v);
/* May a be read where it was not read before: does it belong to a parameter,
 * which holds something, and lie within it? Else reports. */
bool sched_read_fits(Sched *s, const Facts *f, const Access *a, Loc loc);

#endif
