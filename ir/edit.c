/* Edits of statements with the ops that make their values. */
#include "ir/edit.h"

static void note(EditLog *log, EditKind kind, const Op *op, uint32_t at)
{
    Edit e = { kind, op->sid, at };
    VEC_PUSH(log->arena, &log->edits, e);
}

/* ---- statements of a block --------------------------------------------- */

Op *stmt_first(Op *stmt)
{
    while (stmt->prev && !op_has(stmt->prev, OPT_STMT))
        stmt = stmt->prev;
    return stmt;
}

Op *stmt_prev(Op *stmt)
{
    return stmt_first(stmt)->prev;
}

static Op *stmt_from(Op *op)
{
    while (op && !op_has(op, OPT_STMT))
        op = op->next;
    return op;
}

Op *stmt_next(Op *stmt)
{
    return stmt_from(stmt->next);
}

Op *block_first_stmt(const Block *b)
{
    return stmt_from(b->first);
}

Op *block_last_stmt(const Block *b)
{
    Op *op = b->last;
    while (op && !op_has(op, OPT_STMT))
        op = op->prev;
    return op;
}

/* ---- edits ------------------------------------------------------------- */

/* Takes a statement and its value run out of the block they stand in; the run
 * is then a block of its own, which is returned. */
static Block take_run(Op *stmt)
{
    Block run = { 0 };
    if (!stmt->parent) {
        run.first = run.last = stmt;
        return run;
    }
    for (Op *op = stmt_first(stmt), *next; op; op = next) {
        next = op == stmt ? NULL : op->next;
        op_detach(op);
        op->prev = run.last;
        if (run.last)
            run.last->next = op;
        else
            run.first = op;
        run.last = op;
    }
    return run;
}

static void put_run(Op *at, Block *b, Block run)
{
    for (Op *op = run.first, *next; op; op = next) {
        next = op->next;
        op->next = op->prev = NULL;
        if (at)
            op_insert_before(at, op);
        else
            block_append(b, op);
    }
}

void edit_insert_before(EditLog *log, Op *at, Op *op)
{
    Block run = take_run(op);
    put_run(stmt_first(at), NULL, run);
    note(log, EDIT_insert, op, at->sid);
}

void edit_insert_after(EditLog *log, Op *at, Op *op)
{
    Block run = take_run(op);
    put_run(at->next, at->parent, run);
    note(log, EDIT_insert, op, 0);
}

void edit_append(EditLog *log, Block *b, Op *op)
{
    Block run = take_run(op);
    put_run(NULL, b, run);
    note(log, EDIT_insert, op, 0);
}

void edit_erase(EditLog *log, Op *stmt)
{
    note(log, EDIT_erase, stmt, 0);
    take_run(stmt);
}

void edit_move_before(EditLog *log, Op *at, Op *stmt)
{
    Block run = take_run(stmt);
    put_run(stmt_first(at), NULL, run);
    note(log, EDIT_move, stmt, at->sid);
}

void edit_move_after(EditLog *log, Op *at, Op *stmt)
{
    Block run = take_run(stmt);
    put_run(at->next, at->parent, run);
    note(log, EDIT_move, stmt, 0);
}

void edit_move_into(EditLog *log, Block *b, Op *stmt)
{
    Block run = take_run(stmt);
    put_run(NULL, b, run);
    note(log, EDIT_move, stmt, 0);
}

void edit_wrap(EditLog *log, Op *first, Op *last, Op *outer)
{
    edit_insert_before(log, first, outer);
    for (Op *op = first, *next; op; op = next) {
        next = op == last ? NULL : stmt_next(op);
        put_run(NULL, outer->blocks[0], take_run(op));
        note(log, EDIT_wrap, op, outer->sid);
    }
}

void edit_unwrap(EditLog *log, Op *stmt, Block *b)
{
    Op *first = block_first_stmt(b);
    note(log, EDIT_unwrap, stmt, first ? first->sid : 0);
    Op *place = stmt_first(stmt);
    for (Op *op = b->first, *next; op; op = next) {
        next = op->next;
        op_detach(op);
        op_insert_before(place, op);
    }
    for (Op *op = place, *next; op; op = next) {
        next = op == stmt ? NULL : op->next;
        op_detach(op);
    }
}

void edit_became(EditLog *log, Op *stmt, const Op *first)
{
    note(log, EDIT_unwrap, stmt, first ? first->sid : 0);
    take_run(stmt);
}

void edit_replace(EditLog *log, const Op *stmt)
{
    note(log, EDIT_replace, stmt, 0);
}

/* ---- the journal ------------------------------------------------------- */

uint32_t edit_forward(const EditLog *log, size_t from, uint32_t sid)
{
    for (size_t i = from; i < log->edits.len && sid; i++) {
        const Edit *e = &log->edits.data[i];
        if (e->sid != sid)
            continue;
        if (e->kind == EDIT_erase)
            return 0;
        if (e->kind == EDIT_unwrap)
            sid = e->at;
    }
    return sid;
}

/* ---- completing it ------------------------------------------------------ */

typedef struct Complete {
    EditLog *log;
    bool *said, *was, *is; /* by sid */
    uint32_t found;
} Complete;

static bool mark_was(Op *op, void *user)
{
    Complete *c = user;
    c->was[op->sid] = true;
    return true;
}

static bool mark_is(Op *op, void *user)
{
    Complete *c = user;
    c->is[op->sid] = true;
    return true;
}

static bool find_survivor(Op *op, void *user)
{
    Complete *c = user;
    if (!c->found && op->sid && c->is[op->sid])
        c->found = op->sid;
    return !c->found;
}

static bool note_gone(Op *op, void *user)
{
    Complete *c = user;
    if (!op->sid || c->is[op->sid] || c->said[op->sid])
        return true;
    c->found = 0;
    op_walk(op, find_survivor, c);
    note(c->log, c->found ? EDIT_unwrap : EDIT_erase, op, c->found);
    return true;
}

static bool note_new(Op *op, void *user)
{
    Complete *c = user;
    if (op->sid && !c->was[op->sid] && !c->said[op->sid])
        note(c->log, EDIT_insert, op, 0);
    return true;
}

void edit_complete(EditLog *log, size_t from, const Module *before,
                   const Module *after)
{
    Arena *arena = arena_new();
    uint32_t n =
        after->next_sid > before->next_sid ? after->next_sid : before->next_sid;
    Complete c = { .log = log,
                   .said = ARENA_ARRAY(arena, bool, n + 1),
                   .was = ARENA_ARRAY(arena, bool, n + 1),
                   .is = ARENA_ARRAY(arena, bool, n + 1) };
    for (size_t i = from; i < log->edits.len; i++)
        if (log->edits.data[i].kind == EDIT_insert ||
            log->edits.data[i].kind == EDIT_erase ||
            log->edits.data[i].kind == EDIT_unwrap)
            c.said[log->edits.data[i].sid] = true;
    block_walk(before->body, mark_was, &c);
    block_walk(after->body, mark_is, &c);
    block_walk(before->body, note_gone, &c);
    block_walk(after->body, note_new, &c);
    arena_free(arena);
}

const char *edit_kind_name(EditKind kind)
{
    static const char *const names[] = { "insert", "erase",  "move",
                                         "wrap",   "unwrap", "replace" };
    return names[kind];
}
