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

void sched_list_print(StrBuf *out)
{
    for (unsigned i = 0; i < N_OPS; i++) {
        strbuf_addf(out, "%s %s\n    %s\n", ops[i].name, ops[i].signature,
                    ops[i].doc);
        print_sketch(out, "before", ops[i].before);
        print_sketch(out, "after", ops[i].after);
    }
    strbuf_add(out, "\nother names\n");
    for (unsigned i = 0; i < N_OTHERS; i++)
        strbuf_addf(out, "    %s: write %s; %s\n", others[i].name,
                    others[i].write, others[i].why);
}
