/* Command lines against the table of options, help and docs/tools.md. */
#include "tools/options.h"

#include "tools/schedule.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const OptionRow rows[] = {
#define OPTION(tools, name, argument, text) { tools, name, argument, text },
#include "tools/options.def"
#undef OPTION
};
enum { N_ROWS = sizeof rows / sizeof *rows };

static const struct {
    const char *tool, *usage, *text;
} tools[] = {
    { "opt", "exo-opt FILE [--pass-pipeline='a,b{x=1}'] [-o OUT]",
      "Reads a program, .exo or .eir, runs passes and checks on it, prints "
      "it." },
    { "translate", "exo-translate FILE --to=eir|exo|llvm|ptx|cubin|c [-o OUT]",
      "Takes a program through the default pipeline to a form, with the "
      "checks of each level on the way. Refuses what a check refuted, and "
      "what one could not decide unless --allow-unknown." },
    { "check", "exo-check FILE [--proc=P] [--size M=..,N=..] [-o REPORT]",
      "Runs the checks of the program's level, then lowers it and checks the "
      "lowered form. Prints a line for each check." },
    { "run", "exo-run FILE [--proc=P] --size M=..,N=.. [--level=..]",
      "Runs a procedure on made inputs: sequentially, on the machine model, "
      "or on a GPU." },
};
enum { N_TOOLS = sizeof tools / sizeof *tools };

ToolStatus tool_status_worse(ToolStatus a, ToolStatus b)
{
    static const int rank[] = { 0, 3, 4, 1, 2 };
    return rank[a] >= rank[b] ? a : b;
}

/* Is `word` one of the words of `list`, which `separators` divide? */
static bool has_word(const char *list, const char *word, const char *separators)
{
    size_t len = strlen(word);
    while (*list) {
        size_t n = strcspn(list, separators);
        if (n == len && !strncmp(list, word, n))
            return true;
        list += n;
        list += strspn(list, separators);
    }
    return false;
}

static bool row_repeats(const OptionRow *row)
{
    size_t n = row->argument ? strlen(row->argument) : 0;
    return n > 2 && !strcmp(row->argument + n - 2, "..");
}

ToolStatus options_usage(const Options *o, const char *fmt, ...)
{
    va_list ap;
    fprintf(stderr, "exo-%s: ", o->tool);
    va_start(ap, fmt);
    vfprintf(stderr, fmt, ap);
    va_end(ap);
    fprintf(stderr, "; exo-%s --help lists the options\n", o->tool);
    return TOOL_usage;
}

/* ---- parsing ------------------------------------------------------------- */

static const OptionRow *row_find(const char *tool, const char *name, size_t n)
{
    for (int i = 0; i < N_ROWS; i++)
        if (strlen(rows[i].name) == n && !strncmp(rows[i].name, name, n) &&
            has_word(rows[i].tools, tool, " "))
            return &rows[i];
    return NULL;
}

static unsigned distance(const char *a, const char *b)
{
    enum { LONGEST = 64 };
    unsigned row[LONGEST + 1];
    size_t n = strlen(b);
    if (n > LONGEST)
        return LONGEST;
    for (size_t j = 0; j <= n; j++)
        row[j] = (unsigned)j;
    for (size_t i = 1; a[i - 1]; i++) {
        unsigned corner = row[0];
        row[0] = (unsigned)i;
        for (size_t j = 1; j <= n; j++) {
            unsigned replaced = corner + (a[i - 1] != b[j - 1]);
            corner = row[j];
            unsigned least = row[j] < row[j - 1] ? row[j] : row[j - 1];
            row[j] = least + 1 < replaced ? least + 1 : replaced;
        }
    }
    return row[n];
}

static ToolStatus unknown_option(const Options *o, const char *arg, size_t n)
{
    const char *best = NULL;
    unsigned least = 4;
    char name[64] = "";
    strncat(name, arg, n < sizeof name - 1 ? n : sizeof name - 1);
    for (int i = 0; i < N_ROWS; i++) {
        unsigned d = distance(name, rows[i].name);
        if (d < least && has_word(rows[i].tools, o->tool, " ")) {
            best = rows[i].name;
            least = d;
        }
    }
    if (best)
        return options_usage(o, "no option '%s', did you mean '%s'?", name,
                             best);
    return options_usage(o, "no option '%s'", name);
}

static bool is_number(const char *s)
{
    errno = 0;
    char *end;
    long long v = strtoll(s, &end, 10);
    return *s && !*end && errno == 0 && v >= 0 && *s != '+' && *s != ' ';
}

/* A row of argument `[word]`: the word follows at once, or nothing does. */
static bool is_optional(const OptionRow *row)
{
    return row->argument && row->argument[0] == '[';
}

/* -1, or the status when the value does not fit the row. */
static int check_value(const Options *o, const OptionRow *row,
                       const char *value)
{
    bool words = row->argument[0] >= 'a' && row->argument[0] <= 'z';
    if (is_optional(row)) {
        const char *word = row->argument + 1;
        size_t n = strlen(word) - 1;
        if (strlen(value) != n || strncmp(value, word, n) != 0)
            return (int)options_usage(o,
                                      "%s: expected %.*s or nothing after "
                                      "it, found '%s'",
                                      row->name, (int)n, word, value);
        return -1;
    }
    if (words && !has_word(row->argument, value, "|"))
        return (int)options_usage(o, "%s: expected one of %s, found '%s'",
                                  row->name, row->argument, value);
    if (!strcmp(row->argument, "N") && !is_number(value))
        return (int)options_usage(
            o, "%s: expected an integer of 0 or more, found '%s'", row->name,
            value);
    return -1;
}

static bool is_short(const char *arg)
{
    return arg[0] == '-' && arg[1] != '-';
}

/* The option at argv[*i]: `--name`, `--name=value`, `--name value`, `-Ivalue`,
 * `-I value`. */
static int parse_option(Options *o, int argc, char **argv, int *i)
{
    const char *arg = argv[*i];
    size_t n = is_short(arg) ? 2 : strcspn(arg, "=");
    const OptionRow *row = row_find(o->tool, arg, n);
    if (!row)
        return (int)unknown_option(o, arg, is_short(arg) ? strlen(arg) : n);
    const char *value = arg[n] ? arg + n + (arg[n] == '=') : NULL;
    if (!row->argument && value)
        return (int)options_usage(o, "%s takes no value", row->name);
    if (row->argument && !value && !is_optional(row)) {
        if (*i + 1 >= argc)
            return (int)options_usage(o, "%s: expected %s after it", row->name,
                                      row->argument);
        value = argv[++*i];
    }
    if (row->argument && value) {
        int status = check_value(o, row, value);
        if (status >= 0)
            return status;
    }
    if (!row_repeats(row) && options_has(o, row->name))
        return (int)options_usage(o, "%s is given twice", row->name);
    OptionGiven given = { row, value ? value : "" };
    VEC_PUSH(o->arena, &o->given, given);
    return -1;
}

void options_give(Options *o, const char *name, const char *value)
{
    const OptionRow *row = row_find(o->tool, name, strlen(name));
    if (row)
        VEC_PUSH(o->arena, &o->given, ((OptionGiven){ row, value }));
}

/* --help, --version, --print-options. */
static int answer(const Options *o)
{
    StrBuf s = { 0 };
    if (options_has(o, "--help"))
        options_help(o->tool, &s);
    else if (options_has(o, "--version"))
        strbuf_addf(&s, "exo-%s %s\n", o->tool, EXO_VERSION);
    else if (options_has(o, "--print-options"))
        options_markdown(&s);
    else
        return -1;
    fputs(strbuf_text(&s), stdout);
    strbuf_free(&s);
    return TOOL_done;
}

int options_parse(const char *tool, int argc, char **argv, Options *o)
{
    *o = (Options){ .arena = arena_new(), .tool = tool };
    o->program = argc ? argv[0] : tool;
    o->scheduled = ARENA_NEW(o->arena, ToolScheduled);
    bool only_files = false;
    int status = -1;
    for (int i = 1; i < argc && status < 0; i++) {
        if (!only_files && !strcmp(argv[i], "--"))
            only_files = true;
        else if (!only_files && argv[i][0] == '-' && argv[i][1])
            status = parse_option(o, argc, argv, &i);
        else
            VEC_PUSH(o->arena, &o->files, argv[i]);
    }
    if (status < 0)
        status = answer(o);
    if (status >= 0)
        options_free(o);
    return status;
}

void options_free(Options *o)
{
    arena_free(o->arena);
    o->arena = NULL;
}

/* ---- what was given ------------------------------------------------------ */

const char *options_nth(const Options *o, const char *name, unsigned i)
{
    for (size_t k = 0; k < o->given.len; k++)
        if (!strcmp(o->given.data[k].row->name, name) && i-- == 0)
            return o->given.data[k].value;
    return NULL;
}

bool options_has(const Options *o, const char *name)
{
    return options_nth(o, name, 0) != NULL;
}

const char *options_value(const Options *o, const char *name,
                          const char *otherwise)
{
    const char *last = otherwise, *v;
    for (unsigned i = 0; (v = options_nth(o, name, i)); i++)
        last = v;
    return last;
}

const char *options_joined(const Options *o, const char *name)
{
    const char *text = options_nth(o, name, 0), *more;
    for (unsigned i = 1; (more = options_nth(o, name, i)); i++)
        text = arena_printf(o->arena, "%s,%s", text, more);
    return text;
}

int64_t options_int(const Options *o, const char *name, int64_t otherwise)
{
    const char *v = options_value(o, name, NULL);
    return v ? strtoll(v, NULL, 10) : otherwise;
}

const char *options_file(const Options *o)
{
    if (o->files.len == 1)
        return o->files.data[0];
    options_usage(o, "expected one FILE, found %zu", o->files.len);
    return NULL;
}

/* Does `text` give the name of n bytes at `at` before? */
static bool named_before(const char *text, const char *at, size_t n)
{
    while (text < at) {
        size_t len = strcspn(text, "=");
        if (len == n && !strncmp(text, at, n))
            return true;
        text += strcspn(text, ",");
        text += *text == ',';
    }
    return false;
}

bool options_sizes(const char *text,
                   bool (*fn)(const char *name, size_t n, int64_t value,
                              void *user),
                   void *user)
{
    for (const char *all = text; *text;) {
        size_t n = strcspn(text, "=,");
        if (n == 0 || text[n] != '=' || named_before(all, text, n))
            return false;
        const char *digits = text + n + 1;
        char *end;
        errno = 0;
        long long v = strtoll(digits, &end, 10);
        if (end == digits || errno || (*end && *end != ',') ||
            !fn(text, n, v, user))
            return false;
        if (*end == ',' && !end[1])
            return false;
        text = *end ? end + 1 : end;
    }
    return true;
}

/* ---- help ---------------------------------------------------------------- */

/* `--name=ARG`, `-o FILE`, with `..` taken off. */
static void spell(const OptionRow *row, StrBuf *out)
{
    strbuf_add(out, row->name);
    if (!row->argument)
        return;
    if (!is_optional(row))
        strbuf_addc(out, is_short(row->name) ? ' ' : '=');
    strbuf_addn(out, row->argument,
                strlen(row->argument) - (row_repeats(row) ? 2 : 0));
}

/* Text in lines of at most 79 columns, each after the indent but the first. */
static void fill(StrBuf *out, const char *text, unsigned indent)
{
    unsigned col = indent;
    while (*text) {
        size_t n = strcspn(text, " ");
        if (col > indent && col + 1 + n > 79) {
            strbuf_addf(out, "\n%*s", (int)indent, "");
            col = indent;
        } else if (col > indent) {
            strbuf_addc(out, ' ');
            col++;
        }
        strbuf_addn(out, text, n);
        col += (unsigned)n;
        text += n;
        text += strspn(text, " ");
    }
    strbuf_addc(out, '\n');
}

void options_help(const char *tool, StrBuf *out)
{
    enum { COLUMN = 28 };
    for (int t = 0; t < N_TOOLS; t++)
        if (!strcmp(tools[t].tool, tool)) {
            strbuf_addf(out, "usage: %s\n", tools[t].usage);
            fill(out, tools[t].text, 0);
        }
    for (int i = 0; i < N_ROWS; i++) {
        if (!has_word(rows[i].tools, tool, " "))
            continue;
        StrBuf name = { 0 };
        spell(&rows[i], &name);
        strbuf_addf(out, "  %-*s", COLUMN - 2, strbuf_text(&name));
        if (name.len > COLUMN - 3)
            strbuf_addf(out, "\n%*s", COLUMN, "");
        fill(out, rows[i].text, COLUMN);
        strbuf_free(&name);
    }
}

static void markdown_text(StrBuf *out, const char *text)
{
    for (; *text; text++) {
        if (*text == '|')
            strbuf_addc(out, '\\');
        strbuf_addc(out, *text);
    }
}

void options_markdown(StrBuf *out)
{
    strbuf_add(out, "# The tools\n\nMade from tools/options.def by "
                    "`exo-opt --print-options`; change that file.\n");
    for (int t = 0; t < N_TOOLS; t++) {
        strbuf_addf(out, "\n## exo-%s\n\n`%s`\n\n", tools[t].tool,
                    tools[t].usage);
        fill(out, tools[t].text, 0);
        strbuf_add(out, "\n| option | |\n|---|---|\n");
        for (int i = 0; i < N_ROWS; i++) {
            if (!has_word(rows[i].tools, tools[t].tool, " "))
                continue;
            StrBuf name = { 0 };
            spell(&rows[i], &name);
            strbuf_add(out, "| `");
            markdown_text(out, strbuf_text(&name));
            strbuf_addf(out, "` | ");
            markdown_text(out, rows[i].text);
            strbuf_add(out, row_repeats(&rows[i]) ? " May be repeated. |\n"
                                                  : " |\n");
            strbuf_free(&name);
        }
    }
    strbuf_add(
        out,
        "\n## Exit status\n\n"
        "| | |\n|---|---|\n"
        "| 0 | done; of checks: all proved, at any scope |\n"
        "| 1 | wrong input, such as sizes that break an assert, or a check "
        "refuted it |\n"
        "| 2 | wrong usage |\n"
        "| 3 | a check could not decide |\n"
        "| 4 | a part that is needed is missing here |\n\n"
        "When several apply: 1, then 4, 3, 0. What was not run changes "
        "nothing.\n\n"
        "## Files\n\n"
        "A regular output file is written beside its target and renamed, so "
        "that it is\nwhole or not there; anything else (`/dev/null`, a pipe, "
        "standard output) is\nwritten in place. The libraries are read from "
        "`../share/exo/lib` beside the\nfolder of the program. Imports are "
        "looked for in the importing file's folder,\nthen with `-I`, then in "
        "the folders of `EXO_PATH` (divided by colons).\n");
}
