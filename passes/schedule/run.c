/* Schedule files: a step a line.
 *
 *     # a comment
 *     param TILE_M = 128           a parameter with its default
 *     include "other.sched"        beside this file
 *     proc gemm                    the procedure; else the only public one
 *     [name =] op CURSOR arg .. key=value
 *     try op ..                    a step that may fail
 *     repeat op ..                 as often as it applies
 *     when CONDITION: line         a line that depends on parameters
 *     each NAME in LO..HI: line    a line for each integer, which is $NAME
 *     require CONDITION: "TEXT"    else TEXT is the error
 *
 * `$P` stands for a parameter's value, `$[EXPR]` for the value of a constant
 * expression of .exo; `$(lo CURSOR)`, `$(hi CURSOR)` for a loop's bounds,
 * `$(dim CURSOR k)` for an extent of an allocation, `$(type A)` for the element
 * type of a parameter, `$(count PATTERN)` for how many statements match, in the
 * program as it then is. Arguments are separated by blanks; back-quotes, quotes
 * and brackets hold blanks together. `\` at a line's end continues it.
 *
 * Lines are taken by a session (passes/schedule/session.h). */
#include "passes/schedule/run.h"

#include "passes/schedule/session.h"
#include "passes/schedule/words.h"

#include <string.h>

bool schedule_lines(Ctx *ctx, uint32_t file, SchedLineFn *fn, void *user)
{
    size_t n, at = 0;
    const char *text = ctx_source_text(ctx, file, &n);
    Arena *arena = arena_new();
    StrBuf line = { 0 };
    bool ok = true;
    Loc loc = { file, 0, 1 };
    for (uint32_t number = 1; at < n && ok; number++) {
        const char *nl = memchr(text + at, '\n', n - at);
        size_t end = nl ? (size_t)(nl - text) : n;
        const char *part = line_without_comment(arena, text + at, end - at);
        at = end + 1;
        if (!line.len)
            loc.line = number;
        size_t len = strlen(part);
        bool more = len && part[len - 1] == '\\';
        strbuf_addn(&line, part, more ? len - 1 : len);
        if (more && at < n)
            continue;
        const char *whole = arena_strdup(arena, strbuf_text(&line));
        line.len = 0;
        if (line.data)
            *line.data = 0;
        whole += strspn(whole, " \t");
        if (*whole)
            ok = fn(user, loc, whole);
    }
    strbuf_free(&line);
    arena_free(arena);
    return ok;
}

static bool take(void *session, Loc loc, const char *line)
{
    return sched_session_line(session, loc, line);
}

bool schedule_run(Ctx *ctx, Module **m, uint32_t file, const SchedOptions *o,
                  SchedResult *result)
{
    SchedSession *s = sched_session_new(ctx, m, o, false);
    const char *path = ctx_source_name(ctx, file);
    const char *slash = strrchr(path, '/');
    bool ok =
        schedule_lines(ctx, file, take, s) && sched_session_params_meant(s);
    if (ok)
        sched_session_note_origins(s, slash ? slash + 1 : path);
    if (result)
        *result = *sched_session_result(s);
    sched_session_free(s);
    return ok;
}
