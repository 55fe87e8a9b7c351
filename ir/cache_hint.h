/* Hints to the L2 cache on bulk copies: an eviction priority by name, and the
 * policy that stands for it in PTX.
 *
 * The names are those of PTX's createpolicy; `cache_hint` in the library and on
 * async ops is one of them. A hint changes no value and no order. */
#ifndef EXO_IR_CACHE_HINT_H
#define EXO_IR_CACHE_HINT_H

#include "ir/support.h"

/* What stands in the text where a copy has no hint. */
#define CACHE_HINT_NONE "none"

/* The policy for that priority; false where there is none of that name. */
bool cache_hint_policy(const char *name, int64_t *policy);

#endif
