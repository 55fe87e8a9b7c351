/* The talk: a line is a command of the table below, or else a line of a
 * schedule, which a session takes (passes/schedule/session.h). After each one
 * that is taken come the procedure and what changed in the program. */
#include "tools/interactive.h"

#include "ir/exo.h"
#include "passes/schedule/session.h"
#include "passes/schedule/words.h"
#include "tools/line_reader.h"
#include "tools/output.h"
#include "tools/schedule.h"
#include "tools/text_diff.h"

#include <stdio.h>
#include <string.h>

typedef struct Talk {
    Ctx *ctx;
    const Options *options;
    Module **m;
    SchedSession *session;
    LineReader *reader;
    Arena *arena;      /* of the line */
    const char *saved; /* the file that has the steps; NULL: none yet */
    uint32_t n_lines;
    bool brief, over; /* brief: only what changed is shown */
} Talk;

typedef struct Command {
    const char *name, *args, *text;
    void (*run)(Talk *t, const char *arg);
} Command;

/* The i-th command; NULL past the last. */
static const Command *command_at(unsigned i);

/* ---- showing ------------------------------------------------------------ */

static void say(const StrBuf *s)
{
    fputs(strbuf_text(s), stdout);
    fflush(stdout);
}

/* Prints what was reported since the mark and forgets it. */
static void say_reports(Talk *t, CtxMark mark)
{
    StrBuf s = { 0 };
    for (const Diag *d = ctx_diags_since(t->ctx, mark); d; d = d->next)
        diag_render(t->ctx, d, &s);
    ctx_rollback(t->ctx, mark);
    say(&s);
    strbuf_free(&s);
}

static void program_text(const Talk *t, StrBuf *out)
{
    exo_print(*t->m, out);
}

static void show_proc(Talk *t, const char *arg)
{
    ExoListing l;
    const Op *proc = sched_session_proc(t->session);
    StrBuf s = { 0 };
    (void)arg;
    if (proc && exo_list_proc(*t->m, proc, t->arena, &l))
        strbuf_add(&s, l.text);
    else
        program_text(t, &s);
    say(&s);
    strbuf_free(&s);
}

/* The procedure and the difference from the text before. */
static void show_change(Talk *t, const StrBuf *before)
{
    StrBuf after = { 0 }, diff = { 0 };
    program_text(t, &after);
    text_diff(strbuf_text(before), strbuf_text(&after), &diff);
    if (!t->brief)
        show_proc(t, "");
    say(&diff);
    strbuf_free(&after);
    strbuf_free(&diff);
}

/* ---- commands ----------------------------------------------------------- */

static void list_operators(void)
{
    enum { WIDTH = 80 };
    const SchedOp *op;
    unsigned column = 0;
    for (unsigned i = 0; (op = sched_op_at(i)); i++) {
        unsigned n = (unsigned)strlen(op->name) + 1;
        if (column + n > WIDTH) {
            fputc('\n', stdout);
            column = 0;
        }
        column += n;
        printf("%s ", op->name);
    }
    fputc('\n', stdout);
}

static void help(Talk *t, const char *arg)
{
    StrBuf s = { 0 };
    (void)t;
    if (*arg) {
        if (!sched_op_print(arg, &s))
            strbuf_addf(&s, "no operator '%s'; help lists them\n", arg);
        say(&s);
        strbuf_free(&s);
        return;
    }
    printf("A line is a step of a schedule, `[name =] OPERATOR CURSOR ..`, or\n"
           "`param P = V`, `proc NAME`, `include \"FILE\"`, or a command:\n");
    const Command *c;
    for (unsigned i = 0; (c = command_at(i)); i++)
        printf("  %-6s %-9s %s\n", c->name, c->args, c->text);
    printf("Operators:\n");
    list_operators();
}

static void ops(Talk *t, const char *arg)
{
    StrBuf s = { 0 };
    (void)t;
    (void)arg;
    sched_list_print(&s);
    say(&s);
    strbuf_free(&s);
}

/* Moves the session, when it can, and shows what that changed. */
static void move_session(Talk *t, bool (*move)(SchedSession *s),
                         const char *nothing)
{
    StrBuf before = { 0 };
    CtxMark mark = ctx_mark(t->ctx);
    program_text(t, &before);
    if (move(t->session))
        show_change(t, &before);
    else
        printf("%s\n", nothing);
    say_reports(t, mark);
    strbuf_free(&before);
}

static void undo(Talk *t, const char *arg)
{
    (void)arg;
    move_session(t, sched_session_undo, "there is nothing to undo");
}

static void redo(Talk *t, const char *arg)
{
    (void)arg;
    move_session(t, sched_session_redo, "there is nothing to redo");
}

static void steps(Talk *t, const char *arg)
{
    const char *line;
    (void)arg;
    for (unsigned i = 0; (line = sched_session_taken(t->session, i)); i++)
        printf("%3u  %s\n", i + 1, line);
}

static void save(Talk *t, const char *arg)
{
    StrBuf s = { 0 };
    const char *line;
    unsigned n = 0;
    CtxMark mark = ctx_mark(t->ctx);
    if (!*arg) {
        printf("expected save FILE\n");
        return;
    }
    for (; (line = sched_session_taken(t->session, n)); n++)
        strbuf_addf(&s, "%s\n", line);
    if (output_write(t->ctx, arg, strbuf_text(&s), s.len)) {
        printf("wrote %u line%s to '%s'\n", n, n == 1 ? "" : "s", arg);
        t->saved = arena_strdup(ctx_arena(t->ctx), arg);
    }
    say_reports(t, mark);
    strbuf_free(&s);
}

static void show_or_not(Talk *t, const char *arg)
{
    bool on = !strcmp(arg, "on"), off = !strcmp(arg, "off");
    if (on || off)
        t->brief = off;
    else if (!*arg)
        show_proc(t, arg);
    else
        printf("expected show, show on or show off\n");
}

static void quit(Talk *t, const char *arg)
{
    (void)arg;
    t->over = true;
}

static const Command *command_at(unsigned i)
{
    static const Command commands[] = {
        { "help", "[OP]", "this, or what an operator takes and does", help },
        { "ops", "", "every operator with its arguments", ops },
        { "show", "[on|off]", "the procedure, now or after each step",
          show_or_not },
        { "steps", "", "the lines that are taken now", steps },
        { "undo", "", "take the last line back", undo },
        { "redo", "", "take it again", redo },
        { "save", "FILE", "write the lines as a schedule", save },
        { "quit", "", "end", quit },
    };
    return i < sizeof commands / sizeof *commands ? &commands[i] : NULL;
}

static const Command *find_command(const char *word, size_t n)
{
    const Command *c;
    for (unsigned i = 0; (c = command_at(i)); i++)
        if (strlen(c->name) == n && !memcmp(c->name, word, n))
            return c;
    return NULL;
}

/* ---- completing names --------------------------------------------------- */

typedef struct Words {
    const char *word;
    Arena *arena;
    WordVec *out;
} Words;

static void offer(const char *name, void *user)
{
    Words *w = user;
    if (strncmp(name, w->word, strlen(w->word)) != 0)
        return;
    for (size_t i = 0; i < w->out->len; i++)
        if (!strcmp(w->out->data[i], name))
            return;
    const char *copy = arena_strdup(w->arena, name);
    VEC_PUSH(w->arena, w->out, copy);
}

/* Does an operator come next? At the start, and behind `x =`, try, repeat and
 * help. */
static bool wants_operator(Arena *arena, const char *line)
{
    const char *p = line + strspn(line, " \t");
    if (!*p)
        return true;
    const char *end = word_end(p), *next = end + strspn(end, " \t");
    const char *first = arena_strndup(arena, p, (size_t)(end - p));
    if (*next == '=')
        return !next[1 + strspn(next + 1, " \t")];
    return !*next && (!strcmp(first, "try") || !strcmp(first, "repeat") ||
                      !strcmp(first, "help"));
}

static void complete(void *user, const char *line, const char *word,
                     Arena *arena, WordVec *out)
{
    Talk *t = user;
    Words w = { word, arena, out };
    const SchedOp *op;
    if (!wants_operator(arena, line)) {
        sched_session_names(t->session, offer, &w);
        return;
    }
    for (unsigned i = 0; (op = sched_op_at(i)); i++)
        offer(op->name, &w);
    const Command *c;
    for (unsigned i = 0; !*line && (c = command_at(i)); i++)
        offer(c->name, &w);
}

/* ---- lines -------------------------------------------------------------- */

/* The line with those that it continues on, each read and, where nobody typed
 * it, shown; NULL at the end. */
static const char *next_line(Talk *t, const char *prompt, StrBuf *line)
{
    const char *more;
    while ((more = line_reader_next(t->reader, line->len ? ". " : prompt))) {
        if (!line_reader_is_terminal(t->reader))
            printf("%s%s\n", line->len ? ". " : prompt, more);
        t->n_lines++;
        const char *part = line_without_comment(t->arena, more, strlen(more));
        size_t n = strlen(part);
        bool goes_on = n && part[n - 1] == '\\';
        strbuf_addn(line, part, goes_on ? n - 1 : n);
        if (!goes_on)
            return strbuf_text(line);
    }
    return line->len ? strbuf_text(line) : NULL;
}

/* A source that has the line where it was typed. */
static Loc register_line(Talk *t, const char *line)
{
    StrBuf s = { 0 };
    for (uint32_t i = 1; i < t->n_lines; i++)
        strbuf_addc(&s, '\n');
    strbuf_add(&s, line);
    uint32_t file = ctx_add_source(t->ctx, "<steps>", strbuf_text(&s), s.len);
    strbuf_free(&s);
    return (Loc){ file, t->n_lines, 1 };
}

static void take_line(Talk *t, const char *line)
{
    StrBuf before = { 0 };
    CtxMark mark = ctx_mark(t->ctx);
    program_text(t, &before);
    bool taken = sched_session_line(t->session, register_line(t, line), line);
    say_reports(t, mark);
    if (taken)
        show_change(t, &before);
    strbuf_free(&before);
}

static void take_any(Talk *t, const char *line)
{
    const char *end = word_end(line), *arg = end + strspn(end, " \t");
    const Command *c = find_command(line, (size_t)(end - line));
    if (c && *arg != '=')
        c->run(t, arg);
    else if (*line)
        take_line(t, line);
}

static void talk(Talk *t)
{
    printf("exo-opt: steps of a schedule; help says more\n");
    show_proc(t, "");
    while (!t->over) {
        StrBuf line = { 0 };
        t->arena = arena_new();
        const char *text = next_line(t, "> ", &line);
        if (text)
            take_any(t, text + strspn(text, " \t"));
        else
            t->over = true;
        arena_free(t->arena);
        strbuf_free(&line);
    }
}

ToolStatus interactive_run(Ctx *ctx, const Options *o, Module **m)
{
    ToolSchedule ts;
    if (!strcmp(o->files.len ? o->files.data[0] : "", "-"))
        return options_usage(o, "--interactive reads steps from standard "
                                "input, so that FILE cannot be -");
    if (!tool_schedule_open(ctx, o, &ts))
        return TOOL_wrong;
    Talk t = { .ctx = ctx, .options = o, .m = m, .arena = ctx_arena(ctx) };
    t.session = sched_session_new(ctx, m, &ts.options, true);
    t.reader = line_reader_new(complete, &t);
    talk(&t);
    const char *slash = t.saved ? strrchr(t.saved, '/') : NULL;
    sched_session_note_origins(t.session, !t.saved ? "hand"
                                          : slash  ? slash + 1
                                                   : t.saved);
    line_reader_free(t.reader);
    sched_session_free(t.session);
    tool_schedule_close(&ts);
    return TOOL_done;
}
