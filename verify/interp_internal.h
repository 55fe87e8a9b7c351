/* What the files of the interpreter share. Only verify/interp*.c and
 * verify/nest*.c include this. */
#ifndef EXO_VERIFY_INTERP_INTERNAL_H
#define EXO_VERIFY_INTERP_INTERNAL_H

#include "ir/sem.h"
#include "verify/interp.h"

/* What a value stands for at this moment, by Value.id. */
typedef struct Slot {
    double f;      /* scalars */
    View *view;    /* tensors, windows, maps */
    Tensor *owned; /* storage of a mem.alloc, reused when it runs again */
} Slot;

/* Values and variables of one module: directly indexed by their numbers. No
 * procedure calls itself, so one environment a module is enough. */
struct Scope {
    Module *m;
    int64_t *vars;
    size_t n_vars;
    Slot *slots;
    size_t n_slots;
    Scope *next;
};

typedef struct Call {
    const Op *at; /* the calling op */
    Scope *env;   /* in which it stands */
    const struct Call *outer;
} Call;

typedef struct ConfigField {
    const char *field;
    double value;
    struct ConfigField *next;
} ConfigField;

typedef struct NestCache NestCache;

struct Interp {
    Module *m;
    Arena *arena;
    Scope *envs;
    const Call *call;
    const ProcArg *unused;
    InterpOptions options;
    Sem sem;
    ConfigField *config;
    int64_t tasks, task_nests; /* that the run met */
    unsigned task_depth;       /* nesting of task loops now running */
    NestCache *nests;
};

Scope *interp_scope(Interp *in, Module *m);
static inline Slot *scope_slot(Scope *env, const Value *v)
{
    return &env->slots[v->id];
}
View *interp_slot_view(Interp *in, Slot *s);

/* A diagnostic at op with witness and call notes; answers false. */
bool interp_fail(Interp *in, Scope *env, const Op *op, const char *code,
                 const char *fmt, ...) EXO_PRINTF(5, 6);

/* Index expressions and conditions; on failure a diagnostic at op. */
bool interp_index(Interp *in, Scope *env, const Op *op, const Affine *e,
                  int64_t *out);
bool interp_cond(Interp *in, Scope *env, const Op *op, const Cond *c,
                 bool *out);

/* The storage position of a point access: >= 0, or VIEW_OUTSIDE_MAP, or
 * VIEW_OUT_OF_BOUNDS after a diagnostic. */
int64_t interp_element(Interp *in, Scope *env, const Op *op, const Access *a,
                       Tensor **tensor);
/* Fails with the access's text and the element when it was never written. */
bool interp_check_written(Interp *in, Scope *env, const Op *op, const Tensor *t,
                          int64_t element);
/* The window that an access describes. */
bool interp_window(Interp *in, Scope *env, const Op *op, const Access *a,
                   View *out);

bool interp_block(Interp *in, Scope *env, const Block *b);
/* Evaluates a scalar op whose operands have values. */
bool interp_scalar_op(Interp *in, Scope *env, const Op *op);

#endif
