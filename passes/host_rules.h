/* What the host must check before it launches: one list, from which lowering
 * makes the checks of a host.proc, and by which check-async judges those of a
 * text.
 *
 *   controls   sizes are at least 1, all within passes/abi.h
 *   strides    of windows: the same
 *   tasks      of a launch: fewer than 2^31
 *   maps       CUDA driver API, cuTensorMapEncodeTiled: address, strides and
 *              begin are multiples of 16 bytes, the innermost stride is 1
 *   pieces     what an instruction moves at once in global memory begins at a
 *              multiple of its bytes: the tensor's address, and each stride or
 *              size by which such a place is reached
 *
 * The procedure's own asserts are rules too; whoever has the program adds
 * them. */
#ifndef EXO_PASSES_HOST_RULES_H
#define EXO_PASSES_HOST_RULES_H

#include "ir/lib.h"

typedef struct HostRule {
    const Value *tensor; /* its address is a multiple of bytes; NULL: */
    int64_t bytes;
    const Cond *cond; /* this holds, in the host's terms */
    bool stated;      /* also where it follows from a variable's range */
    const char *argument, *message;
} HostRule;

typedef struct HostRules {
    Arena *arena; /* of texts and rules */
    Module *m;
    VEC(HostRule) rules;
} HostRules;

/* Each appends what is not in the list yet. */
void host_rules_control(HostRules *r, VarId v);
void host_rules_strides(HostRules *r, const Value *v);
void host_rules_tasks(HostRules *r, const Affine *count);
/* Of a map over this window. */
void host_rules_map(HostRules *r, const Access *window);
/* Pieces that kernel moves, with the operands of launch as its arguments. */
void host_rules_pieces(HostRules *r, const Op *launch, const Op *kernel);
/* Tasks of each async.tasks of kernel, with the operands of launch. */
void host_rules_launch_tasks(HostRules *r, const Op *launch, const Op *kernel);

#endif
