/* The part of a certificate that says by which steps a program was made of
 * which. Needs jansson. */
#ifndef EXO_TOOLS_CERTIFICATE_SCHEDULE_H
#define EXO_TOOLS_CERTIFICATE_SCHEDULE_H

#include "tools/schedule.h"

#if EXO_WITH_JSON
#include <jansson.h>

/* The object, a new reference:
 *   { "before_sha256": .., "procedures": { NAME: { "from": NAME, "steps": [
 *     { "step": TEXT, "questions": N, "by_solver": N, and where they hold
 *       "reassociates": true, "rounds": true } ] } } } */
json_t *certificate_schedule(const ToolScheduled *s);
/* Calls claim for each thing that `said` says and `again` would, with whether
 * they agree. */
void certificate_schedule_compare(const json_t *said, const json_t *again,
                                  void (*claim)(void *user, const char *what,
                                                bool holds),
                                  void *user);
#endif

#endif
