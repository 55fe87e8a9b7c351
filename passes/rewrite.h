/* Small steps that the general passes share: substitution in place, splicing
 * blocks, deciding conditions, putting a body in place of a call. */
#ifndef EXO_PASSES_REWRITE_H
#define EXO_PASSES_REWRITE_H

#include "passes/pass.h"

/* Rewrites everything op refers to (operands, attributes, origin) through the
 * map, which is one within op's module. False when a number passed 64 bits. */
bool op_substitute(CloneMap *cm, Module *m, Op *op);
/* The same for the extents, ring and guard of a value. */
bool value_substitute(CloneMap *cm, Module *m, Value *v);

/* Moves the ops of b before `at`. */
void block_splice_before(Op *at, Block *b);
/* The ctl.yield that ends b, or NULL. */
Op *block_yield(const Block *b);

typedef enum Decided { DECIDED_no, DECIDED_yes, DECIDED_open } Decided;
/* What the bounds of the variables say about a condition, by intervals. */
Decided cond_decide(ExprCtx *x, const Cond *c);

/* Puts a copy of proc's body (of module `from`, which may be m) before `call`,
 * its parameters standing for the first n_args operands; windows are made for
 * arguments that are parts of a tensor. The call stays. False, with an error
 * at the call, when an argument cannot stand for its parameter. */
bool call_inline(Module *m, Op *call, unsigned n_args, Module *from,
                 const Op *proc);
/* Is an argument a condition that cannot stand for a bool: neither the name of
 * one nor a constant? */
bool call_passes_condition(const Module *m, const Op *call);

#endif
