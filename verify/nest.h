/* Native execution of simple loop nests in the interpreter.
 *
 * Two shapes are recognised, by the structure of the loops and never by a
 * name: perfectly nested rectangular loops around
 *   copy:        dst[..] = chain(src[..])    or = a value from outside
 *   contraction: dst[..] += chain(a[..]) * chain(b[..])   (f32 and f64)
 * where a chain is casts and tf32 roundings, and each index is a sum of terms
 * in one loop's variable each. They give the same bits as the plain way, since
 * each element's steps are done in the loops' order with the same roundings.
 * Whatever would be a fault (an element outside its tensor or never written)
 * makes the nest step back, and the plain way finds and reports it. */
#ifndef EXO_VERIFY_NEST_H
#define EXO_VERIFY_NEST_H

#include "verify/interp_internal.h"

GIVES NestCache *nest_cache_new(void);
void nest_cache_free(TAKES NestCache *c);
/* Runs the nest that starts at this ctl.for natively; false: it was left
 * untouched. */
bool nest_run(Interp *in, Scope *env, const Op *loop);

#endif
