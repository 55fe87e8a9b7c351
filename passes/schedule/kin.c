/* The log of kinship, read from its start for each question: it is short. */
#include "passes/schedule/kin.h"

typedef struct Member {
    const char *name;
    unsigned family;
    KinDifference from_family; /* from what its family does */
} Member;

typedef struct Families {
    Arena *arena;
    VEC(Member) members;
    unsigned n_families;
} Families;

void kin_note(KinLog *log, KinKind kind, const char *proc, const char *other)
{
    KinNote note = { kind, proc, other };
    VEC_PUSH(log->arena, &log->notes, note);
}

/* The member's place; who was not met yet is a family of its own. */
static size_t member(Families *f, const char *name)
{
    for (size_t i = 0; i < f->members.len; i++)
        if (f->members.data[i].name == name)
            return i;
    Member m = { .name = name, .family = f->n_families++ };
    VEC_PUSH(f->arena, &f->members, m);
    return f->members.len - 1;
}

static void add_field(Arena *arena, KinFields *fields, const char *field)
{
    for (size_t i = 0; i < fields->len; i++)
        if (fields->data[i] == field)
            return;
    VEC_PUSH(arena, fields, field);
}

static void add_difference(Arena *arena, KinDifference *to,
                           const KinDifference *from)
{
    for (size_t i = 0; i < from->fields.len; i++)
        add_field(arena, &to->fields, from->fields.data[i]);
    to->reassociates |= from->reassociates;
    to->rounds |= from->rounds;
}

static void copy_member(Families *f, const char *name, const char *of)
{
    size_t i = member(f, name), from = member(f, of);
    Member *m = &f->members.data[i];
    m->family = f->members.data[from].family;
    m->from_family = (KinDifference){ 0 };
    add_difference(f->arena, &m->from_family,
                   &f->members.data[from].from_family);
}

static void apply(Families *f, const KinNote *note)
{
    if (note->kind == KIN_copy) {
        copy_member(f, note->proc, note->other);
        return;
    }
    Member *m = &f->members.data[member(f, note->proc)];
    if (note->kind == KIN_rename)
        m->name = note->other;
    else if (note->kind == KIN_breaks)
        m->family = f->n_families++;
    else if (note->kind == KIN_modulo)
        add_field(f->arena, &m->from_family.fields, note->other);
    else if (note->kind == KIN_reassociates)
        m->from_family.reassociates = true;
    else
        m->from_family.rounds = true;
}

bool kin_equal(const KinLog *log, Arena *arena, const char *a, const char *b,
               KinDifference *out)
{
    Families f = { .arena = arena };
    for (size_t i = 0; i < log->notes.len; i++)
        apply(&f, &log->notes.data[i]);
    size_t p = member(&f, a), q = member(&f, b);
    const Member *m = &f.members.data[p], *n = &f.members.data[q];
    add_difference(arena, out, &m->from_family);
    add_difference(arena, out, &n->from_family);
    return m->family == n->family;
}
