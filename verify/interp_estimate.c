/* Questions about a procedure that are answered without running it: the shapes
 * of its parameters, and how much work a run would be. */
#include "verify/interp.h"

#include "verify/nest_internal.h"

#include <string.h>

/* What a trip of a native nest costs beside a plainly interpreted op. */
#define NATIVE_TRIP 0.02

/* Calls are followed so deep: a procedure that calls itself has an estimate
 * too, and running it says what is wrong. Where there are more ops to look at
 * than that, it is a lot of work. */
#define MAX_CALL_DEPTH 64
#define MAX_OPS 1000000
#define A_LOT 1e30

static bool known_value(const struct Env *env, const Atom *atom, int64_t *out)
{
    const int64_t *vars = env->user;
    if (atom->kind != ATOM_var)
        return false;
    *out = vars[atom->var];
    return true;
}

static int64_t *known_vars(Arena *arena, Module *m, const Op *proc,
                           const ProcArg *args)
{
    int64_t *vars = ARENA_ARRAY(arena, int64_t, var_count(m->exprs) + 1);
    const Block *b = proc->blocks[0];
    for (unsigned i = 0; i < b->n_args; i++)
        if (!b->args[i].value)
            vars[b->args[i].var] = args[i].value;
    return vars;
}

bool interp_param_extents(Module *m, const Op *proc, unsigned arg,
                          const ProcArg *args, int64_t *extent)
{
    const Value *v = proc->blocks[0]->args[arg].value;
    Arena *arena = arena_new();
    Env env = { .value = known_value,
                .user = known_vars(arena, m, proc, args) };
    bool ok = v->type->rank <= TENSOR_MAX_RANK;
    for (unsigned d = 0; ok && d < v->type->rank; d++) {
        ok = affine_eval(v->shape[d], &env, &extent[d]);
        if (ok && extent[d] < 0) {
            diag_error(m->ctx, proc->loc, "size",
                       "extent %u of parameter '%s' is %lld for these sizes", d,
                       v->name ? v->name : "?", (long long)extent[d]);
            arena_free(arena);
            return false;
        }
    }
    if (!ok)
        diag_error(m->ctx, proc->loc, "size",
                   "the shape of parameter '%s' cannot be computed from the "
                   "sizes given",
                   v->name ? v->name : "?");
    arena_free(arena);
    return ok;
}

typedef struct Estimate {
    Module *m;
    int64_t *vars;
    Arena *arena;
    unsigned call_depth, n_ops;
} Estimate;

static double block_work(Estimate *es, Module *m, int64_t *vars,
                         const Block *b);

static double loop_work(Estimate *es, Module *m, int64_t *vars, const Op *op)
{
    Env env = { .value = known_value, .user = vars };
    int64_t lo = 0, hi = 1;
    if (!affine_eval(op->operands[0].u.index, &env, &lo) ||
        !affine_eval(op->operands[1].u.index, &env, &hi) || hi <= lo)
        return 1.0;
    vars[op->blocks[0]->args[0].var] = lo;
    double trips = (double)hi - (double)lo;
    const Nest *nest = nest_recognise(es->arena, op);
    if (nest->kind == NEST_none)
        return 1.0 + trips * block_work(es, m, vars, op->blocks[0]);
    for (unsigned l = 1; l < nest->n_loops; l++)
        if (affine_eval(nest->loops[l]->operands[0].u.index, &env, &lo) &&
            affine_eval(nest->loops[l]->operands[1].u.index, &env, &hi) &&
            hi > lo)
            trips *= (double)(hi - lo);
    return 10.0 + NATIVE_TRIP * trips;
}

static double callee_work(Estimate *es, Module *m, int64_t *vars,
                          const Op *callee)
{
    if (es->call_depth == MAX_CALL_DEPTH)
        return 1.0;
    es->call_depth++;
    double work = block_work(es, m, vars, callee->blocks[0]);
    es->call_depth--;
    return work;
}

static double call_work(Estimate *es, Module *m, int64_t *vars, const Op *op)
{
    if (op->code == OP_ctl_call) {
        const Op *callee = module_symbol(m, op_attr_str(op, "callee", ""));
        return callee ? callee_work(es, m, vars, callee) : 1.0;
    }
    const Instr *in = op_instr(m, op);
    if (!in)
        return 1.0;
    int64_t *inner =
        ARENA_ARRAY(es->arena, int64_t, var_count(in->module->exprs) + 1);
    return block_work(es, in->module, inner, in->body->blocks[0]);
}

static double block_work(Estimate *es, Module *m, int64_t *vars, const Block *b)
{
    double sum = 0.0;
    for (const Op *op = b->first; op; op = op->next) {
        if (es->n_ops++ > MAX_OPS)
            return A_LOT;
        if (op->code == OP_ctl_for)
            sum += loop_work(es, m, vars, op);
        else if (op->code == OP_ctl_call || op->code == OP_par_instr)
            sum += call_work(es, m, vars, op);
        else
            sum += 1.0;
        if (op->code != OP_ctl_for)
            for (unsigned i = 0; i < op->n_blocks; i++)
                sum += block_work(es, m, vars, op->blocks[i]);
    }
    return sum;
}

double interp_estimate(Module *m, const Op *proc, const ProcArg *args)
{
    Estimate es = { .m = m, .arena = arena_new() };
    es.vars = known_vars(es.arena, m, proc, args);
    double work = block_work(&es, m, es.vars, proc->blocks[0]);
    arena_free(es.arena);
    return work;
}
