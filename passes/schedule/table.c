/* The table of operators. */
#include "passes/schedule/ops.h"

#include <string.h>

static const SchedOp ops[] = {
#define SCHED(...) { __VA_ARGS__ },
#include "passes/schedule/schedule.def"
#undef SCHED
};
enum { N_OPS = sizeof ops / sizeof *ops };

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
}
