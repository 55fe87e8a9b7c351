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
