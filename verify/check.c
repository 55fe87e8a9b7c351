/* Names and spellings of verdicts, and the table of hazards. */
#include "verify/check.h"

#include <string.h>

static const Hazard hazards[] = {
#define HAZARD(code, group, text) { code, group, text },
#include "verify/hazards.def"
#undef HAZARD
};
enum { HAZARD_COUNT = sizeof hazards / sizeof *hazards };

const Hazard *hazard_at(unsigned i)
{
    return i < HAZARD_COUNT ? &hazards[i] : NULL;
}

const Hazard *hazard_find(const char *code)
{
    for (unsigned i = 0; code && i < HAZARD_COUNT; i++)
        if (!strcmp(hazards[i].code, code))
            return &hazards[i];
    return NULL;
}

const char *verdict_name(Verdict v)
{
    switch (v) {
    case VERDICT_proved:
        return "proved";
    case VERDICT_refuted:
        return "refuted";
    case VERDICT_unknown:
        return "unknown";
    case VERDICT_not_run:
        return "not run";
    }
    panic("verdict_name: %d", (int)v);
}

void check_result_print(StrBuf *out, const CheckResult *r)
{
    strbuf_addf(out, "%s: %s", r->check, verdict_name(r->verdict));
    if (r->verdict == VERDICT_proved)
        strbuf_addf(out, " [%s]", r->scope ? r->scope : "all sizes");
    else if (r->verdict == VERDICT_refuted && r->witness)
        strbuf_addf(out, ": %s", r->witness);
    else if (r->reason)
        strbuf_addf(out, ": %s", r->reason);
}
