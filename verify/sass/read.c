/* Line by line. An instruction has its address in a comment before it; a label
 * stands by itself (nvdisasm), or a branch names an address (cuobjdump). */
#include "verify/sass/sass.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

typedef struct Label {
    const char *name;
    uint32_t instr; /* that it stands before */
} Label;

typedef struct Reader {
    Arena *a;
    VEC(SassInstr) instrs;
    VEC(Label) labels;
} Reader;

/* Is the line the head of a kernel's code? Its name then, *n long. */
static const char *head(const char *line, size_t *n)
{
    static const char dump[] = "Function : ", section[] = ".text.";
    line += strspn(line, " \t");
    if (!strncmp(line, dump, sizeof dump - 1)) {
        line += sizeof dump - 1;
        *n = strcspn(line, " \r\n");
        return line;
    }
    if (strncmp(line, section, sizeof section - 1))
        return NULL;
    line += sizeof section - 1;
    *n = strcspn(line, ":\r\n");
    return line[*n] == ':' ? line : NULL;
}

/* What follows the address, which goes to *address; NULL: there is none. */
static const char *behind_address(const char *line, uint64_t *address)
{
    char *end;
    line += strspn(line, " \t");
    if (strncmp(line, "/*", 2) || !isxdigit((unsigned char)line[2]))
        return NULL;
    *address = strtoull(line + 2, &end, 16);
    if (strncmp(end, "*/", 2))
        return NULL;
    return end + 2 + strspn(end + 2, " \t{");
}

/* The operand without blanks around it and without what says nothing of its
 * value. */
static const char *operand(Arena *a, const char *s, size_t n)
{
    while (n && isspace((unsigned char)*s))
        s++, n--;
    while (n && isspace((unsigned char)s[n - 1]))
        n--;
    char *out = arena_strndup(a, s, n), *reuse = strstr(out, ".reuse");
    if (reuse)
        memmove(reuse, reuse + 6, strlen(reuse + 6) + 1);
    return out;
}

/* A label is written `(NAME). */
static const char *label_of(Arena *a, const char *s)
{
    const char *at = strstr(s, "`(");
    return at ? arena_strndup(a, at + 2, strcspn(at + 2, ")")) : NULL;
}

static void read_operands(Reader *r, SassInstr *in, const char *at,
                          const char *end)
{
    while (at < end && in->n_operands < SASS_MAX_OPERANDS) {
        const char *stop = at;
        for (int depth = 0; stop < end && (depth || *stop != ','); stop++)
            depth += (*stop == '[' || *stop == '(' || *stop == '{') -
                     (*stop == ']' || *stop == ')' || *stop == '}');
        const char *o = operand(r->a, at, (size_t)(stop - at));
        if (*o)
            in->operands[in->n_operands++] = o;
        if (!in->label)
            in->label = label_of(r->a, o);
        at = stop + 1;
    }
}

static void read_instr(Reader *r, const char *at, uint64_t address,
                       uint32_t line)
{
    SassInstr in = { .address = address, .line = line, .target = UINT32_MAX };
    size_t length = strcspn(at, ";\n");
    const char *end = at + length;
    if (*at == '@') {
        size_t n = strcspn(at, " ");
        in.guard = arena_strndup(r->a, at + 1, n - 1);
        at += n;
        at += strspn(at, " ");
    }
    size_t n = strcspn(at, " ;\n");
    if (!n || *end != ';')
        return;
    in.op = arena_strndup(r->a, at, n);
    if (at + n < end)
        read_operands(r, &in, at + n, end);
    VEC_PUSH(r->a, &r->instrs, in);
}

static void read_label(Reader *r, const char *line)
{
    size_t n = strcspn(line, " \t\r\n");
    if (n < 2 || line[n - 1] != ':')
        return;
    Label l = { arena_strndup(r->a, line, n - 1), (uint32_t)r->instrs.len };
    VEC_PUSH(r->a, &r->labels, l);
}

static bool jumps(const char *op)
{
    static const char *const stems[] = { "BRA", "BSSY", "CALL", "JMP",
                                         "WARPSYNC.COLLECTIVE" };
    for (size_t i = 0; i < sizeof stems / sizeof *stems; i++)
        if (!strncmp(op, stems[i], strlen(stems[i])))
            return true;
    return false;
}

static uint32_t instr_at(const Reader *r, uint64_t address)
{
    for (size_t i = 0; i < r->instrs.len; i++)
        if (r->instrs.data[i].address == address)
            return (uint32_t)i;
    return UINT32_MAX;
}

/* The place that the instruction names by a label, or as an address. */
static uint32_t find_target(const Reader *r, const SassInstr *in)
{
    if (in->label) {
        for (size_t i = 0; i < r->labels.len; i++)
            if (!strcmp(r->labels.data[i].name, in->label) &&
                r->labels.data[i].instr < r->instrs.len)
                return r->labels.data[i].instr;
        return UINT32_MAX;
    }
    if (!in->n_operands || !jumps(in->op))
        return UINT32_MAX;
    const char *last = in->operands[in->n_operands - 1];
    char *end;
    uint64_t address = strtoull(last, &end, 16);
    return *last && !*end ? instr_at(r, address) : UINT32_MAX;
}

/* The line after, or NULL. */
static const char *next_line(const char *line)
{
    const char *end = strchr(line, '\n');
    return end && end[1] ? end + 1 : NULL;
}

SassText *sass_text(Arena *a, const char *text)
{
    SassText *out = ARENA_NEW(a, SassText);
    uint32_t number = 0;
    for (const char *line = *text ? text : NULL; line; line = next_line(line)) {
        SassHead h = { .line = line, .number = ++number };
        h.name = head(line, &h.n);
        if (h.name)
            VEC_PUSH(a, &out->heads, h);
    }
    return out;
}

static void read_code(Reader *r, const SassHead *from, const char *end)
{
    uint32_t number = from->number;
    for (const char *line = from->line; line != end; line = next_line(line)) {
        uint64_t address;
        const char *word = behind_address(line, &address);
        if (word)
            read_instr(r, word, address, number);
        else
            read_label(r, line);
        number++;
    }
}

bool sass_read(Arena *a, const SassText *text, const char *name,
               SassKernel *out)
{
    Reader r = { .a = a };
    bool there = false;
    for (size_t i = 0; i < text->heads.len; i++) {
        const SassHead *h = &text->heads.data[i];
        if (strlen(name) != h->n || strncmp(h->name, name, h->n) != 0)
            continue;
        there = true;
        read_code(&r, h, i + 1 < text->heads.len ? h[1].line : NULL);
    }
    for (size_t i = 0; i < r.instrs.len; i++)
        r.instrs.data[i].target = find_target(&r, &r.instrs.data[i]);
    *out = (SassKernel){ .n_instrs = (uint32_t)r.instrs.len,
                         .instrs = r.instrs.data };
    return there;
}
