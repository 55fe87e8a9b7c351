/* Shared by the files of sizes: what a program says about its sizes. */
#ifndef EXO_VERIFY_SIZES_IMPL_H
#define EXO_VERIFY_SIZES_IMPL_H

#include "verify/sizes.h"

/* SIZE_DEPTH: the deepest ring of which all phases are run. */
enum { SIZE_LOOPS = 64, SIZE_MAPPED = 32, SIZE_DEPTH = 128 };
#define SIZE_MOST (INT64_C(1) << 20)

/* A loop whose bounds depend on parameters. */
typedef struct SizeLoop {
    VarId var;
    const Affine *lo, *hi;
    bool tasks;
    unsigned rank; /* tasks: which dimension */
} SizeLoop;

typedef struct Chooser {
    Arena *arena;
    Module *m;
    const Op *proc;
    SizeSet set; /* its values are `values`, being tried */
    int64_t *values;
    int64_t *step; /* by parameter: the least that keeps its own asserts */
    bool *pinned;  /* by parameter: may not be mended */
    SizeLoop loops[SIZE_LOOPS];
    unsigned n_loops;
    VEC(VarId) sized; /* iterators of loops whose bounds sizes decide */
    int64_t depth;    /* of rings */
    int64_t modulus;  /* by which slots of shared memory are counted, or 0 */
    /* of the program whose loops count, when that is not proc: its parameters
     * in proc's terms */
    Module *of;
    CloneMap *copy;
    const SizeSet *ones;
    /* a kernel's parameters in the launching procedure's terms */
    VarId from[SIZE_MAPPED], to[SIZE_MAPPED];
    unsigned n_map;
} Chooser;

Chooser *chooser_new(Arena *arena, Module *m, const Op *proc);
/* Do sizes decide e: is one in it, or a loop whose trips they decide? */
bool chooser_decides(const Chooser *c, const Affine *e);
bool size_loop_uses(const SizeLoop *l, VarId v);
/* Trips at the values tried; -1: they do not decide it. */
int64_t chooser_trips(const Chooser *c, const SizeLoop *l);
/* Gives parameter i the least multiple of its step from which on the loop has
 * n trips, the others being as they are. False, where it has never just so
 * many; then it has the value from which on it has more, or the greatest. */
bool chooser_set_trips(Chooser *c, unsigned i, const SizeLoop *l, int64_t n);
/* Moves parameters that are not pinned until the asserts hold. */
bool chooser_mend(Chooser *c);
/* The values tried as a set of their own. */
SizeSet chooser_keep(const Chooser *c);
bool sizes_equal(const SizeSet *a, const SizeSet *b);
/* Tries these values. */
void chooser_load(Chooser *c, const int64_t *values);
/* Adds the values tried as a set, where none is equal. False: there are too
 * many sets. */
bool chooser_add(Chooser *c, SizeSets *out);

/* Adds the least sizes with which cond can hold where f does, the greatest of
 * them counting; parameters that it says nothing of are as in base. False:
 * there are none up to SIZE_MOST, or too many sets. */
bool sizes_least(Chooser *c, Prover *prover, const Facts *f, const Cond *cond,
                 const int64_t *base, SizeSets *out);
/* A prover that has answered enough at some point, and knows nothing from then
 * on: as many conditions with as many facts as there may be, an answer should
 * come soon. */
typedef struct MeteredProver {
    Prover base;
    Prover *inner;
    uint64_t left; /* of what it may spend; 0: it has */
} MeteredProver;

MeteredProver prover_metered(Prover *inner, uint64_t most);

/* Who looks for sizes at which conditions hold, and adds them to out. */
typedef struct Seeker {
    Chooser *c;
    Prover *prover;
    SizeSets *out;
    const int64_t *base; /* for parameters that a condition does not speak of */
    int64_t trips;       /* that a loop should have for all its phases */
} Seeker;

/* Can the condition hold where the facts do? For certain. */
bool seek_can_hold(const Seeker *s, const Facts *f, const Cond *cond);
/* Adds sizes with which cond holds at op, where f does, and such that steps
 * follow, each where no set has them yet. what: what it is about, for
 * out->beyond where it may hold at no sizes that can be run. */
void seek_at(const Seeker *s, const Op *op, const Facts *f, const Cond *cond,
             const char *what);
/* The second half of seek_at: nothing is said of what is not found. */
void seek_steps(const Seeker *s, const Op *op, const Facts *f,
                const Cond *cond);

/* Adds sets with which the conditions and loops of the program have all their
 * outcomes. */
void sizes_outcomes(const Seeker *s);
/* Adds sets at which two tasks come to one place of global memory, starting
 * from the values tried. */
void sizes_meet(Chooser *c, Prover *prover, SizeSets *out);
/* Adds sets at which two accesses of a task come to one place of shared or
 * global memory. */
void sizes_touch(const Seeker *s);

#endif
