/* PTX as read: a kernel's instructions, their control flow, and which of them
 * one thread can execute.
 *
 * The reader knows PTX's grammar and of its instructions their form (known.h).
 * It takes any text of whatever origin. An instruction is its mnemonic, its
 * guard and its operands flattened; scopes are resolved, so that a register or
 * a label is a number.
 * Everything lives in the arena given. Used by verify/async/readback.h. */
#ifndef EXO_VERIFY_PTX_PTX_H
#define EXO_VERIFY_PTX_PTX_H

#include "ir/support.h"

typedef enum PtxArgKind {
    PTX_reg,
    PTX_int,
    PTX_other /* a float, a symbol, `_` */
} PtxArgKind;

typedef struct PtxArg {
    PtxArgKind kind;
    bool in_address; /* within [] */
    uint8_t operand; /* which operand it is a part of, from 0 */
    uint32_t reg;    /* PTX_reg: 1 .. n_regs */
    int64_t value;   /* PTX_int */
} PtxArg;

typedef struct PtxInstr {
    const char *op;              /* the mnemonic with all that it ends in */
    uint32_t line;               /* in the text that was read, from 1 */
    uint32_t guard;              /* the register that decides, 0: none */
    bool guard_not;              /* executed where it is false */
    unsigned n_operands, n_args; /* args: operands taken apart */
    const PtxArg *args;
    /* Where control goes when it is executed: the targets (instructions), then
     * the next one unless it `ends` the thread or always branches. */
    unsigned n_targets;
    const uint32_t *targets;
    bool ends, branches;
} PtxInstr;

typedef struct PtxReg {
    const char *name;
} PtxReg;

/* A parameter as the entry declares it. */
typedef struct PtxParam {
    int64_t bytes, align;
} PtxParam;

typedef struct PtxKernel {
    unsigned n_instrs, n_regs, n_params;
    const PtxInstr *instrs;
    const PtxReg *regs; /* 1 .. n_regs */
    const PtxParam *params;
    uint32_t line;       /* of its head */
    const char *head;    /* its directives, between parameters and body */
    uint32_t local_line; /* of a declaration in local memory, 0: none */
} PtxKernel;

/* The entry of that name. False where there is none, with *error NULL, or
 * where it cannot be read: *error says why, *line where. */
bool ptx_read(Arena *a, const char *text, const char *entry, PtxKernel *out,
              const char **error, uint32_t *line);

/* One thread of a launch: what its control flow can depend on and is known. */
typedef struct PtxThread {
    int64_t cta, warp, lane, block_dim, cluster_dim;
} PtxThread;

enum {
    PTX_CAN_RUN = 1, /* it may come to the instruction and execute it */
    PTX_CAN_SKIP = 2 /* come to it and not, by its guard */
};

/* The mnemonic of an instruction of another language than PTX whose function is
 * not known here. */
#define PTX_OTHER "?"

/* What running the kernel for many threads shares; not for two at a time. */
typedef struct PtxPlan PtxPlan;
PtxPlan *ptx_plan(Arena *a, const PtxKernel *k);

/* What the thread can execute, in can[n_instrs]: constants are propagated from
 * its coordinates through the integer instructions, and a branch is followed
 * only to where it can go. The lane that elect.sync elects is 0. Whatever else
 * decides a branch (sizes, memory, loops) leaves it open. False where a branch
 * stays open because an instruction is not known here. */
bool ptx_run(const PtxPlan *p, const PtxThread *t, uint8_t *can);

#endif
