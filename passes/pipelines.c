/* The default pipelines, and the drawing of what runs where.
 *
 *      .exo / .eir
 *           |
 *         seq     check-seq             types, bounds, preconditions
 *           |
 *         par     check-par             permissions, units, barriers
 *           |     sync-check            parallel equals sequential
 *           |
 *           |     lower-par-to-async    kernels by role, host procedures
 *           v
 *        async    canonicalize, cse, dce
 *           |     check-async           protocol, races, budget
 *           v
 *     codegen: LLVM IR, PTX, cubin, C
 *
 *     par --- strip-annotations ---> seq      erase, and the meaning stays
 *
 * Every line is text that --pass-pipeline takes. */
#include "passes/pass.h"

#include <string.h>

static const struct {
    const char *form, *text;
} pipelines[] = {
    { "seq", "check-seq" },
    { "par", "check-seq,check-par,sync-check" },
    { "lower", "lower-par-to-async" },
    { "async", "check-seq,check-par,sync-check,lower-par-to-async,"
               "check-async" },
};

const char *pipeline_default(const char *form)
{
    for (size_t i = 0; i < sizeof pipelines / sizeof *pipelines; i++)
        if (!strcmp(pipelines[i].form, form))
            return pipelines[i].text;
    return NULL;
}
