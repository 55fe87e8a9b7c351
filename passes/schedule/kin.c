/* The log of kinship, read from its start for each question: it is short. */
#include "passes/schedule/kin.h"

typedef struct Member {
    const char *name;
    unsigned family;
    KinFields fields;
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

static void add_fields(Arena *arena, KinFields *to, const KinFields *from)
{
    for (size_t i = 0; i < from->len; i++)
        add_field(arena, to, from->data[i]);
}

static void apply(Families *f, const KinNote *note)
{
    size_t i = member(f, note->proc), from;
    Member *m = &f->members.data[i];
    switch (note->kind) {
    case KIN_copy:
        from = member(f, note->other);
        m = &f->members.data[i];
        m->family = f->members.data[from].family;
        m->fields = (KinFields){ 0 };
        add_fields(f->arena, &m->fields, &f->members.data[from].fields);
        break;
    case KIN_rename:
        m->name = note->other;
        break;
    case KIN_breaks:
        m->family = f->n_families++;
        break;
    case KIN_modulo:
        add_field(f->arena, &m->fields, note->other);
        break;
    }
}

bool kin_equal(const KinLog *log, Arena *arena, const char *a, const char *b,
               KinFields *fields)
{
    Families f = { .arena = arena };
    for (size_t i = 0; i < log->notes.len; i++)
        apply(&f, &log->notes.data[i]);
    size_t p = member(&f, a), q = member(&f, b);
    const Member *m = &f.members.data[p], *n = &f.members.data[q];
    add_fields(arena, fields, &m->fields);
    add_fields(arena, fields, &n->fields);
    return m->family == n->family;
}
