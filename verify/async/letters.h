/* What one thread does in order, as letters of a common alphabet.
 *
 * An op that synchronises, copies or is collective, and the PTX instruction
 * that carries it out, are each named by the same text, "fence.proxy.async",
 * with what is constant in it. Used by read-back only. */
#ifndef EXO_VERIFY_ASYNC_LETTERS_H
#define EXO_VERIFY_ASYNC_LETTERS_H

#include "ir/ir.h"
#include "verify/ptx/ptx.h"

enum { LETTER_none = 0 };

/* Letters are 1 .. names.len. */
typedef struct Alphabet {
    Arena *a;
    const char *arch; /* the PTX's target, which chooses an entry's PTX */
    int64_t threads;  /* of a CTA: who meets where a barrier names no number */
    VEC(const char *) names;
} Alphabet;

typedef struct Letter {
    unsigned id;
    unsigned count; /* what it counts for: a stmatrix its matrices */
    bool repeats;   /* a run of instructions may make it up */
    bool is_wait;   /* done when its predicate holds, again until then */
} Letter;
typedef VEC(Letter) LetterVec;

const char *letter_name(const Alphabet *a, unsigned id);
/* LETTER_none for an instruction that is none of those. */
Letter letter_of_instr(Alphabet *a, const PtxInstr *in);
/* Adds the op's letters in the order of their instructions. */
void letters_of_op(Alphabet *a, const Module *m, const Op *op, LetterVec *out);
/* Does the op have letters? One that synchronises must. */
bool letters_know(OpCode code);

#endif
