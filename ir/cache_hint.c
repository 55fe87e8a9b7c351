/* The one table of cache policies.
 *
 * PTX ISA, createpolicy: a policy is 64 bits of no documented layout, made by
 * `createpolicy.fractional.L2::PRIORITY.b64 policy, 1.0`. The rows are what
 * ptxas 13.0 makes of that instruction, so that a copy takes its policy as an
 * immediate and no register holds it. */
#include "ir/cache_hint.h"

#include <string.h>

static const struct {
    const char *name;
    int64_t policy;
} rows[] = {
    { "evict_first", INT64_C(0x12f0000000000000) },
    { "evict_last", INT64_C(0x14f0000000000000) },
    { "evict_normal", INT64_C(0x16f0000000000000) },
    { "evict_unchanged", INT64_C(0x10f0000000000000) },
};

bool cache_hint_policy(const char *name, int64_t *policy)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (!strcmp(rows[i].name, name)) {
            *policy = rows[i].policy;
            return true;
        }
    return false;
}
