/* libedit's own interface, whose state hangs on the EditLine: there is no
 * global hook. Without it, or off a terminal, lines are read by getline. */
#include "tools/line_reader.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#if EXO_WITH_EDIT
#include <histedit.h>
#endif

struct LineReader {
    LineWordsFn *words;
    void *user;
    bool terminal;
    const char *prompt;
    char *line;
    size_t cap;
#if EXO_WITH_EDIT
    EditLine *edit;
    History *history;
#endif
};

#if EXO_WITH_EDIT

/* ---- completion --------------------------------------------------------- */

static bool ends_word(char c)
{
    return c == ' ' || c == '\t' || c == '/' || c == '=';
}

/* The length of what all words begin with. */
static size_t common_length(const WordVec *words)
{
    size_t n = strlen(words->data[0]);
    for (size_t i = 1; i < words->len; i++)
        for (size_t k = 0; k < n; k++)
            if (words->data[i][k] != words->data[0][k])
                n = k;
    return n;
}

static void list_words(const WordVec *words)
{
    fputc('\n', stdout);
    for (size_t i = 0; i < words->len; i++)
        printf("%s%s", i ? "  " : "", words->data[i]);
    fputc('\n', stdout);
    fflush(stdout);
}

static unsigned char complete(EditLine *edit, int key)
{
    LineReader *r = NULL;
    const LineInfo *li = el_line(edit);
    const char *from = li->cursor;
    WordVec words = { 0 };
    (void)key;
    el_get(edit, EL_CLIENTDATA, &r);
    while (from > li->buffer && !ends_word(from[-1]))
        from--;
    Arena *arena = arena_new();
    const char *before =
        arena_strndup(arena, li->buffer, (size_t)(from - li->buffer));
    size_t n = (size_t)(li->cursor - from);
    r->words(r->user, before, arena_strndup(arena, from, n), arena, &words);
    unsigned char answer = CC_ERROR;
    size_t common = words.len ? common_length(&words) : 0;
    if (common > n || words.len == 1) {
        el_insertstr(edit, arena_printf(arena, "%.*s%s", (int)(common - n),
                                        words.data[0] + n,
                                        words.len == 1 ? " " : ""));
        answer = CC_REFRESH;
    } else if (words.len) {
        list_words(&words);
        answer = CC_REDISPLAY;
    }
    arena_free(arena);
    return answer;
}

/* ---- life --------------------------------------------------------------- */

static char *show_prompt(EditLine *edit)
{
    LineReader *r = NULL;
    el_get(edit, EL_CLIENTDATA, &r);
    return (char *)r->prompt;
}

static void open_edit(LineReader *r)
{
    enum { REMEMBERED = 1000 };
    HistEvent event;
    r->edit = el_init("exo-opt", stdin, stdout, stderr);
    r->history = history_init();
    if (!r->edit || !r->history)
        return;
    history(r->history, &event, H_SETSIZE, REMEMBERED);
    el_set(r->edit, EL_CLIENTDATA, r);
    el_set(r->edit, EL_PROMPT, show_prompt);
    el_set(r->edit, EL_EDITOR, "emacs");
    el_set(r->edit, EL_SIGNAL, 1);
    el_set(r->edit, EL_HIST, history, r->history);
    if (r->words) {
        el_set(r->edit, EL_ADDFN, "exo-complete", "complete a name", complete);
        el_set(r->edit, EL_BIND, "^I", "exo-complete", NULL);
    }
}

static void close_edit(LineReader *r)
{
    if (r->history)
        history_end(r->history);
    if (r->edit)
        el_end(r->edit);
}

static const char *edited_line(LineReader *r)
{
    int n = 0;
    HistEvent event;
    const char *line = el_gets(r->edit, &n);
    if (!line || n <= 0)
        return NULL;
    if (*line != '\n')
        history(r->history, &event, H_ENTER, line);
    free(r->line);
    r->line = strdup(line);
    return r->line;
}

#endif

LineReader *line_reader_new(LineWordsFn *words, void *user)
{
    LineReader *r = calloc(1, sizeof *r);
    if (!r)
        panic("out of memory");
    r->words = words;
    r->user = user;
    r->terminal = isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);
#if EXO_WITH_EDIT
    if (r->terminal)
        open_edit(r);
#endif
    return r;
}

void line_reader_free(LineReader *r)
{
    if (!r)
        return;
#if EXO_WITH_EDIT
    close_edit(r);
#endif
    free(r->line);
    free(r);
}

bool line_reader_is_terminal(const LineReader *r)
{
    return r->terminal;
}

static const char *plain_line(LineReader *r)
{
    if (r->terminal) {
        fputs(r->prompt, stdout);
        fflush(stdout);
    }
    return getline(&r->line, &r->cap, stdin) < 0 ? NULL : r->line;
}

const char *line_reader_next(LineReader *r, const char *prompt)
{
    const char *line = NULL;
    r->prompt = prompt;
#if EXO_WITH_EDIT
    line = r->edit && r->history ? edited_line(r) : plain_line(r);
#else
    line = plain_line(r);
#endif
    if (line)
        r->line[strcspn(r->line, "\r\n")] = 0;
    return line;
}
