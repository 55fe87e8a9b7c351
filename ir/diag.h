/* Diagnostics and the context that every entry point takes first.
 *
 * A Ctx lives as long as one tool run: it owns source texts, interned strings,
 * types, and the diagnostics reported so far. Reporting never prints; a tool
 * prints them (text here, JSON in tools/), so that a library user decides.
 *
 * Message form: lower case, no full stop, the construct named, what was
 * expected and what was found. `code` names the class of fault for machines
 * (for example "syntax", "type", "bounds", "unit"); tests and JSON use it. */
#ifndef EXO_IR_DIAG_H
#define EXO_IR_DIAG_H

#include "ir/support.h"

typedef struct Ctx Ctx;

/* A place in a source text; file 0 means no place is known. Line and column
 * count from 1, columns in bytes. */
typedef struct Loc {
    uint32_t file, line, col;
} Loc;

typedef enum Severity { SEV_error, SEV_warning, SEV_remark, SEV_note } Severity;

typedef struct Diag {
    Severity severity;
    Loc loc;
    const char *code, *message;
    const char *fix;     /* what to do, or NULL */
    const char *witness; /* values that show the fault, or NULL */
    struct Diag *notes;  /* first attached note */
    struct Diag *next;   /* next diagnostic, or next note of the parent */
} Diag;

GIVES Ctx *ctx_new(void);
void ctx_free(TAKES Ctx *ctx);
Arena *ctx_arena(Ctx *ctx);
/* Calls fn(what) when the context is freed, last registered first: for what
 * lives as long as the context but not in its arena. */
void ctx_at_free(Ctx *ctx, void (*fn)(void *what), void *what);
/* One copy of each string per context: equal strings are equal pointers. */
const char *ctx_intern(Ctx *ctx, const char *s);
const char *ctx_intern_n(Ctx *ctx, const char *s, size_t n);
/* The context's one copy of the n bytes at p (types, parameter lists): equal
 * bytes give equal pointers. Padding must have been zeroed. */
const void *ctx_unique(Ctx *ctx, const void *p, size_t n);

/* Registers a source text (copied) under a name as users know it. */
uint32_t ctx_add_source(Ctx *ctx, const char *name, const char *text, size_t n);
const char *ctx_source_name(const Ctx *ctx, uint32_t file);
const char *ctx_source_text(const Ctx *ctx, uint32_t file, size_t *n);
/* Reads a whole file and registers it; 0 and a diagnostic when it cannot. */
uint32_t ctx_read_source(Ctx *ctx, const char *path);

/* Each returns the diagnostic, so that notes, a fix or a witness can follow.
 * An error that was reported before, at the same place in the same words, and
 * those past max_errors are counted but not kept; the pointer stays valid. */
Diag *diag_error(Ctx *ctx, Loc loc, const char *code, const char *fmt, ...)
    EXO_PRINTF(4, 5);
Diag *diag_warning(Ctx *ctx, Loc loc, const char *code, const char *fmt, ...)
    EXO_PRINTF(4, 5);
Diag *diag_remark(Ctx *ctx, Loc loc, const char *code, const char *fmt, ...)
    EXO_PRINTF(4, 5);
void diag_note(Ctx *ctx, Diag *d, Loc loc, const char *fmt, ...)
    EXO_PRINTF(4, 5);
void diag_fix(Ctx *ctx, Diag *d, const char *fmt, ...) EXO_PRINTF(3, 4);
void diag_witness(Ctx *ctx, Diag *d, const char *fmt, ...) EXO_PRINTF(3, 4);

const Diag *ctx_diags(const Ctx *ctx); /* in order of report */
unsigned ctx_error_count(const Ctx *ctx);
/* How many of them say again what an earlier one says. */
unsigned ctx_repeated_count(const Ctx *ctx);
void ctx_set_max_errors(Ctx *ctx, unsigned n); /* 20 at first; 0: no limit */
/* Forgets all reported diagnostics (a test harness between split inputs). */
void ctx_clear_diags(Ctx *ctx);

/* Where the reports stand now, to which ctx_rollback goes back: whoever tries
 * something that may fail without it being the user's fault. */
typedef struct CtxMark {
    Diag *last;
    unsigned n_errors, n_repeated;
} CtxMark;
CtxMark ctx_mark(const Ctx *ctx);
void ctx_rollback(Ctx *ctx, CtxMark mark);
/* The first report since the mark, or NULL. */
const Diag *ctx_diags_since(const Ctx *ctx, CtxMark mark);

/* Appends `file:line:col: error: ..`, the source line, a caret, the notes. */
void diag_render(const Ctx *ctx, const Diag *d, StrBuf *out);
const char *severity_name(Severity s);

#endif
