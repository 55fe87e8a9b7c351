/* Verdicts as text, and the table of hazards. */
#include "verify/check.h"

#include <criterion/criterion.h>
#include <string.h>

static void expect_line(CheckResult r, const char *line)
{
    StrBuf b = { 0 };
    r.check = "check-seq";
    check_result_print(&b, &r);
    cr_expect_str_eq(strbuf_text(&b), line);
    strbuf_free(&b);
}

Test(check, verdicts_as_text)
{
    expect_line((CheckResult){ .verdict = VERDICT_proved },
                "check-seq: proved [all sizes]");
    expect_line((CheckResult){ .verdict = VERDICT_proved, .scope = "M=8" },
                "check-seq: proved [M=8]");
    expect_line((CheckResult){ .verdict = VERDICT_refuted },
                "check-seq: refuted");
    expect_line((CheckResult){ .verdict = VERDICT_refuted, .witness = "N = 1" },
                "check-seq: refuted: N = 1");
    expect_line((CheckResult){ .verdict = VERDICT_unknown, .reason = "why" },
                "check-seq: unknown: why");
    expect_line((CheckResult){ .verdict = VERDICT_not_run, .reason = "why" },
                "check-seq: not run: why");
}

Test(check, hazards_are_found_by_code)
{
    unsigned n = 0;
    for (const Hazard *h; (h = hazard_at(n)); n++) {
        cr_expect_eq(hazard_find(h->code), h, "%s", h->code);
        cr_expect(*h->group && *h->text, "%s", h->code);
    }
    cr_expect_gt(n, 20);
    cr_expect_null(hazard_find("no-such-code"));
    cr_expect_null(hazard_find(NULL));
    cr_expect(strstr(hazard_find("tasks")->text, "Invalid cuda_tasks"));
}
