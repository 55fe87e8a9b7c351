/* The table of operators. */
#include "passes/schedule/ops.h"

#include <string.h>

static const SchedOp ops[] = {
#define SCHED(...) { __VA_ARGS__ },
#define SCHED_OTHER(...)
#include "passes/schedule/schedule.def"
#undef SCHED
#undef SCHED_OTHER
};

static const SchedOther others[] = {
#define SCHED(...)
#define SCHED_OTHER(...) { __VA_ARGS__ },
#include "passes/schedule/schedule.def"
#undef SCHED
#undef SCHED_OTHER
};
enum {
    N_OPS = sizeof ops / sizeof *ops,
    N_OTHERS = sizeof others / sizeof *others
};

const SchedOp *sched_op_at(unsigned i)
{
    return i < N_OPS ? &ops[i] : NULL;
}

const SchedOp *sched_op_find(const char *name)
{
    for (unsigned i = 0; i < N_OPS; i++)
        if (!strcmp(ops[i].name, name))
            return &ops[i];
    return NULL;
}

const SchedOther *sched_other_find(const char *name)
{
    for (unsigned i = 0; i < N_OTHERS; i++)
        if (!strcmp(others[i].name, name))
            return &others[i];
    return NULL;
}

static void print_sketch(StrBuf *out, const char *head, const char *text)
{
    strbuf_addf(out, "    %s: %s\n", head, text);
}

static void print_op(StrBuf *out, const SchedOp *op)
{
    strbuf_addf(out, "%s %s\n    %s\n", op->name, op->signature, op->doc);
    print_sketch(out, "before", op->before);
    print_sketch(out, "after", op->after);
}

static void print_other(StrBuf *out, const SchedOther *o)
{
    strbuf_addf(out, "    %s: write %s; %s\n", o->name, o->write, o->why);
}

bool sched_op_print(const char *name, StrBuf *out)
{
    const SchedOp *op = sched_op_find(name);
    const SchedOther *other = sched_other_find(name);
    if (op)
        print_op(out, op);
    else if (other)
        print_other(out, other);
    return op || other;
}

void sched_list_print(StrBuf *out)
{
    for (unsigned i = 0; i < N_OPS; i++)
        print_op(out, &ops[i]);
    strbuf_add(out, "\nother names\n");
    for (unsigned i = 0; i < N_OTHERS; i++)
        print_other(out, &others[i]);
}
