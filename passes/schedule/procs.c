/* Procedures: names, calls in line and out of line, assertions, fixed sizes. */
#include "passes/schedule/ops.h"

bool sched_rename(Sched *s, const SchedArg *a)
{
    if (module_symbol(s->m, a[0].s))
        return sched_fail(s, a[0].loc, "there is a procedure '%s' already",
                          a[0].s);
    op_set_str(s->m, s->proc, "name", a[0].s);
    return true;
}

/* The tensor parameter of a name, or NULL after a report. */
static Value *find_param(Sched *s, const SchedArg *a)
{
    const Block *b = s->proc->blocks[0];
    for (unsigned i = 0; i < b->n_args; i++)
        if (b->args[i].value && b->args[i].value->name &&
            !strcmp(b->args[i].value->name, a->s))
            return b->args[i].value;
    sched_fail(s, a->loc, "there is no tensor parameter '%s'", a->s);
    return NULL;
}

/* Is the procedure called in the module? Its parameters are then given. */
static bool find_caller(Op *op, void *user)
{
    const char **name = user;
    if (op->code == OP_ctl_call && *name &&
        !strcmp(op_attr_str(op, "callee", ""), *name))
        *name = NULL;
    return *name != NULL;
}

static bool not_called(Sched *s, Loc loc)
{
    const char *name = op_attr_str(s->proc, "name", "");
    block_walk(s->m->body, find_caller, &name);
    return name || sched_fail(s, loc, "the procedure is called: its interface "
                                      "stays");
}

bool sched_set_arg_memory(Sched *s, const SchedArg *a)
{
    Value *v = find_param(s, &a[0]);
    const MemRef *mem = v ? sched_mem(s, a[1].loc, a[1].s) : NULL;
    if (!mem || !not_called(s, a[0].loc))
        return false;
    v->type = type_tensor(s->ctx, v->type->kind, v->type->elem, v->type->rank,
                          mem);
    return true;
}

bool sched_set_window(Sched *s, const SchedArg *a)
{
    Value *v = find_param(s, &a[0]);
    if (!v || !not_called(s, a[0].loc))
        return false;
    if (v->type->rank == 0)
        return sched_fail(s, a[0].loc, "a scalar is no window");
    if (sched_uses_stride(s, v))
        return sched_fail(s, a[0].loc, "a stride of %s is read", v->name);
    v->type = type_tensor(s->ctx, a[1].i ? TK_window : TK_tensor,
                          v->type->elem, v->type->rank, v->type->mem);
    return true;
}
