/* The command lines of all tools, from one table (tools/options.def), and the
 * exit status they share.
 *
 *     Options o;
 *     int status = options_parse("opt", argc, argv, &o);
 *     if (status >= 0)
 *         return status;   (usage was wrong, or --help was answered)
 *     const char *out = options_value(&o, "-o", NULL);
 *     ..
 *     options_free(&o); */
#ifndef EXO_TOOLS_OPTIONS_H
#define EXO_TOOLS_OPTIONS_H

#include "ir/support.h"

/* Exit status: design of the tools, docs/tools.md. */
typedef enum ToolStatus {
    TOOL_done = 0,
    TOOL_wrong = 1, /* wrong input, or a check refuted it */
    TOOL_usage = 2,
    TOOL_undecided = 3, /* a check answered unknown */
    TOOL_missing = 4    /* a part that is needed is not in this build */
} ToolStatus;

/* Of two outcomes the one to exit with: 2, then 1, then 4, 3, 0. */
ToolStatus tool_status_worse(ToolStatus a, ToolStatus b);

typedef struct OptionRow {
    const char *tools, *name, *argument, *text;
} OptionRow;

typedef struct OptionGiven {
    const OptionRow *row;
    const char *value; /* "" for a flag */
} OptionGiven;

struct ToolScheduled; /* tools/schedule.h */

typedef struct Options {
    Arena *arena;
    const char *tool;    /* "opt" */
    const char *program; /* argv[0] */
    VEC(OptionGiven) given;
    VEC(const char *) files;         /* what is no option */
    struct ToolScheduled *scheduled; /* what --schedule did, once it has */
} Options;

/* -1 when all is well; otherwise the status to exit with, everything said:
 * --help, --version and --print-options are answered here. The strings are
 * those of argv. */
int options_parse(const char *tool, int argc, char **argv, Options *out);
void options_free(Options *o);

bool options_has(const Options *o, const char *name);
/* The last value given, or `otherwise`. */
const char *options_value(const Options *o, const char *name,
                          const char *otherwise);
/* All values given, divided by commas, as --size takes them; or NULL. */
const char *options_joined(const Options *o, const char *name);
int64_t options_int(const Options *o, const char *name, int64_t otherwise);
/* The i-th value given of an option that repeats, or NULL past the last. */
const char *options_nth(const Options *o, const char *name, unsigned i);
/* As if the option had been given. */
void options_give(Options *o, const char *name, const char *value);
/* The one FILE, or NULL after saying what is wrong (exit with TOOL_usage). */
const char *options_file(const Options *o);
/* Says "exo-opt: text" with a hint at --help; answers TOOL_usage. */
ToolStatus options_usage(const Options *o, const char *fmt, ...)
    EXO_PRINTF(2, 3);

/* Reads `M=1,N=2` lists, as of --size: calls fn for each; false when a part is
 * no name=integer. */
bool options_sizes(const char *text,
                   bool (*fn)(const char *name, size_t n, int64_t value,
                              void *user),
                   void *user);

/* The options of one tool for people, and those of all as a Markdown page. */
void options_help(const char *tool, StrBuf *out);
void options_markdown(StrBuf *out);

#endif
