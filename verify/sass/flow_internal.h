/* What the files of verify/sass/ that make PTX of SASS share. */
#ifndef EXO_VERIFY_SASS_FLOW_INTERNAL_H
#define EXO_VERIFY_SASS_FLOW_INTERNAL_H

#include "verify/sass/sass.h"

/* Registers as numbers: R0 .., UR0 .., P0 .., UP0 .., what a thread is, then
 * those that only a translation has. */
enum {
    REG_R = 1,
    REG_UR = REG_R + 256,
    REG_P = REG_UR + 64,
    REG_UP = REG_P + 8,
    N_PHYSICAL = REG_UP + 8 - 1,
    REG_TID,
    REG_LANE,
    REG_CTA,
    REG_OPEN,
    REG_FIRST_OWN
};

typedef struct Flow {
    Arena *a;
    SassKernel *k;
    VEC(PtxInstr) instrs;
    VEC(uint32_t) first; /* by instruction of SASS: where it begins */
    uint32_t n_regs;
    const char *why;
} Flow;

/* ---- operands and emission: translate.c ---------------------------------- */

typedef struct Source {
    PtxArg arg;
    bool minus, negated;
} Source;

/* Does the mnemonic begin so? */
bool sass_begins(const char *op, const char *with);
/* The number of a register that can be written, 0: it is none. */
uint32_t sass_general(const char *s);
uint32_t sass_predicate(const char *s);
/* Also the one that is always true, which has no number. */
bool sass_is_predicate(const char *s);
/* A source as the hardware reads it; PTX_other: what is not known. */
Source sass_source(const char *s);

PtxArg sass_constant(int64_t v);
PtxArg sass_reg(uint32_t reg);
/* A register that only the translation has. */
uint32_t flow_new_reg(Flow *f);
/* `op` into the register `to` (0: nowhere) of n sources; valid until the next
 * one. */
PtxInstr *flow_emit(Flow *f, const char *op, uint32_t to, unsigned n,
                    const PtxArg *sources);

/* Emits the instruction as PTX of the same meaning, the last of which is its
 * own. False where that cannot be: what was emitted by then writes registers of
 * its own alone. */
bool sass_translate(Flow *f, const SassInstr *in);

#endif
