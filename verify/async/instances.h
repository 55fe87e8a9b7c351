/* The instances of a program's statements, each with a number, found by the
 * values of its iterators.
 *
 * A statement has a tree: a level for launches and one for each iterator, with
 * a place for each value between the least and the greatest that came.
 * Instances that come one after another lie side by side, so that what is
 * looked up in the order of the program touches little memory, and the answer
 * is exact. program.c fills them, refine.c looks up. */
#ifndef EXO_VERIFY_ASYNC_INSTANCES_H
#define EXO_VERIFY_ASYNC_INSTANCES_H

#include "ir/support.h"

#define NO_INSTANCE UINT32_MAX

/* One level below some values: places for `room` values, of which n are in use,
 * all of one kind: nodes, or at the last level numbers. */
typedef struct InstanceNode {
    int64_t least; /* the value of the first place */
    uint32_t n, room;
    union {
        struct InstanceNode **below; /* NULL: none */
        uint32_t *numbers;           /* + 1; 0: none */
    } at;
} InstanceNode;

typedef struct InstanceTree {
    unsigned depth; /* iterators */
    InstanceNode root;
} InstanceTree;

typedef enum InstanceAdded {
    INSTANCE_new,
    INSTANCE_known, /* it has a number already, and keeps it */
    INSTANCE_far    /* too far from others: it has none */
} InstanceAdded;

/* Gives an instance a number. iters: a value for each iterator. In the
 * arena. */
InstanceAdded instances_add(Arena *arena, InstanceTree *t, int64_t launch,
                            const int64_t *iters, uint32_t number);
/* The number, or NO_INSTANCE. */
uint32_t instances_find(const InstanceTree *t, int64_t launch,
                        const int64_t *iters);
/* Writes the launch, and the iterators behind it, of a number that was given;
 * false: it was not. Looks at all. */
bool instances_values(const InstanceTree *t, uint32_t number, int64_t *values);

#endif
