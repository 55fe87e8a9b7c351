/* The reader. A statement is a label, a directive, a scope's brace or an
 * instruction up to its semicolon; `.loc` and `.file` end with their line.
 * Names of an inner scope (inline assembly declares some) are kept apart by the
 * scope's number; a label may be used before it is there, so that branches are
 * resolved at the end. */
#include "verify/ptx/ptx.h"

#include "ir/name_map.h"
#include "verify/ptx/known.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_DEPTH = 64 };

/* `.reg .b32 %r<9>;` declares %r0 to %r8. */
typedef struct RegRange {
    const char *prefix;
    int64_t n;
} RegRange;

typedef struct Scope {
    uint32_t parent;
    NameMap *regs, *labels;
    VEC(RegRange) ranges;
} Scope;

typedef struct Ref {
    const char *name;
    uint32_t scope, instr;
} Ref;

typedef struct Reader {
    Arena *a;
    const char *at;
    uint32_t line;
    NameMap *tables;    /* what branches by index may reach, by label */
    const char **table; /* every spelling once */
    size_t table_size, n_names;
    VEC(Scope) scopes;
    uint32_t scope;
    VEC(PtxInstr) instrs;
    VEC(PtxReg) regs;
    VEC(Ref) refs;
    VEC(PtxArg) args;
    VEC(PtxParam) params;
    uint32_t local_line;
    const char *error;
} Reader;

/* ---- faults -------------------------------------------------------------- */

static bool refuse(Reader *r, const char *why)
{
    if (!r->error)
        r->error = why;
    return false;
}

/* ---- names --------------------------------------------------------------- */

static void names_grow(Reader *r)
{
    size_t old = r->table_size;
    const char **from = r->table;
    r->table_size = old ? 2 * old : 1024;
    r->table = ARENA_ARRAY(r->a, const char *, r->table_size);
    for (size_t i = 0; i < old; i++) {
        if (!from[i])
            continue;
        size_t h = hash_bytes(HASH_SEED, from[i], strlen(from[i]));
        while (r->table[h % r->table_size])
            h++;
        r->table[h % r->table_size] = from[i];
    }
}

static const char *intern(Reader *r, const char *s, size_t n)
{
    if (2 * (r->n_names + 1) > r->table_size)
        names_grow(r);
    size_t h = hash_bytes(HASH_SEED, s, n);
    for (;; h++) {
        const char **slot = &r->table[h % r->table_size];
        if (!*slot) {
            r->n_names++;
            return *slot = arena_strndup(r->a, s, n);
        }
        if (!strncmp(*slot, s, n) && !(*slot)[n])
            return *slot;
    }
}

static void open_scope(Reader *r)
{
    Scope s = { .parent = r->scope,
                .regs = name_map_new(r->a),
                .labels = name_map_new(r->a) };
    r->scope = (uint32_t)r->scopes.len;
    VEC_PUSH(r->a, &r->scopes, s);
}

static uint32_t new_reg(Reader *r, uint32_t scope, const char *name)
{
    uint32_t *id = ARENA_NEW(r->a, uint32_t);
    *id = (uint32_t)r->regs.len;
    VEC_PUSH(r->a, &r->regs, ((PtxReg){ name }));
    name_map_set(r->scopes.data[scope].regs, name, id);
    return *id;
}

static bool in_range(const Scope *s, const char *name)
{
    for (size_t i = 0; i < s->ranges.len; i++) {
        size_t n = strlen(s->ranges.data[i].prefix);
        char *end;
        if (strncmp(name, s->ranges.data[i].prefix, n) != 0 ||
            !isdigit((unsigned char)name[n]))
            continue;
        if (strtoll(name + n, &end, 10) < s->ranges.data[i].n && !*end)
            return true;
    }
    return false;
}

/* A name's register: that of the innermost scope that declares it, or one that
 * is always there. 0: no register; a name with a percent sign is refused. */
static uint32_t find_reg(Reader *r, const char *name)
{
    for (uint32_t s = r->scope;; s = r->scopes.data[s].parent) {
        const uint32_t *id = name_map_get(r->scopes.data[s].regs, name);
        if (id)
            return *id;
        if (in_range(&r->scopes.data[s], name))
            return new_reg(r, s, name);
        if (s == 0)
            break;
    }
    if (ptx_special_register(name))
        return new_reg(r, 0, name);
    if (name[0] == '%')
        refuse(r, "a register is not declared");
    return 0;
}

/* ---- words --------------------------------------------------------------- */

static void skip_line(Reader *r)
{
    r->at += strcspn(r->at, "\n");
}

static void skip_space(Reader *r)
{
    for (;;) {
        if (isspace((unsigned char)*r->at)) {
            r->line += *r->at++ == '\n';
        } else if (r->at[0] == '/' && r->at[1] == '/') {
            skip_line(r);
        } else if (r->at[0] == '/' && r->at[1] == '*') {
            for (r->at += 2; *r->at && strncmp(r->at, "*/", 2); r->at++)
                r->line += *r->at == '\n';
            r->at += *r->at ? 2 : 0;
        } else {
            return;
        }
    }
}

static bool is_word(char c)
{
    return isalnum((unsigned char)c) || c == '_' || c == '$' || c == '%' ||
           c == '.';
}

static size_t word_length(const char *s)
{
    size_t n = 0;
    while (is_word(s[n]))
        n++;
    return n;
}

/* A mnemonic has `::` in it, a label ends in one colon. */
static size_t mnemonic_length(const char *s)
{
    size_t n = word_length(s);
    while (s[n] == ':' && s[n + 1] == ':')
        n += 2 + word_length(s + n + 2);
    return n;
}

/* ---- operands ------------------------------------------------------------ */

static void add_word(Reader *r, const char *s, size_t n, unsigned operand,
                     bool in_address)
{
    PtxArg arg = { .kind = PTX_other,
                   .operand = (uint8_t)(operand < 255 ? operand : 255),
                   .in_address = in_address };
    char *end;
    if (isdigit((unsigned char)s[0]) || s[0] == '-') {
        arg.value =
            s[0] == '-' ? strtoll(s, &end, 0) : (int64_t)strtoull(s, &end, 0);
        end += *end == 'U';
        if (end == s + n)
            arg.kind = PTX_int;
    } else {
        arg.reg = find_reg(r, intern(r, s, n));
        if (arg.reg)
            arg.kind = PTX_reg;
    }
    VEC_PUSH(r->a, &r->args, arg);
}

/* Up to the semicolon; what is a list or a pair is taken apart. */
static bool read_operands(Reader *r, PtxInstr *in)
{
    unsigned operand = 0, braces = 0, brackets = 0;
    r->args.len = 0;
    for (skip_space(r); *r->at != ';'; skip_space(r)) {
        size_t n = word_length(r->at);
        if (r->at[0] == '-' && isdigit((unsigned char)r->at[1]))
            n = 1 + word_length(r->at + 1);
        if (n) {
            add_word(r, r->at, n, operand, brackets > 0);
            r->at += n;
            continue;
        }
        char c = *r->at;
        if (!c || !strchr("{}[](),|+!-<>=:", c))
            return refuse(r, "an instruction has no end");
        braces += c == '{' ? 1 : c == '}' && braces ? -1U : 0;
        brackets += c == '[' ? 1 : c == ']' && brackets ? -1U : 0;
        operand += c == ',' && !braces && !brackets;
        r->at++;
    }
    r->at++;
    in->n_operands = r->args.len ? operand + 1 : 0;
    in->n_args = (unsigned)r->args.len;
    in->args = arena_memdup(r->a, r->args.data, r->args.len * sizeof(PtxArg));
    return true;
}

/* ---- statements ---------------------------------------------------------- */

static bool starts(const char *s, const char *with)
{
    return !strncmp(s, with, strlen(with));
}

static void add_ref(Reader *r, const char *name)
{
    Ref ref = { name, r->scope, (uint32_t)r->instrs.len };
    VEC_PUSH(r->a, &r->refs, ref);
}

/* The label that a branch names last: of `bra.uni L`, of `brx.idx %r, L`. */
static bool read_branch(Reader *r)
{
    const char *name = NULL;
    for (skip_space(r); *r->at != ';'; skip_space(r)) {
        size_t n = word_length(r->at);
        if (!n && *r->at != ',')
            return refuse(r, "a branch has no end");
        if (n)
            name = intern(r, r->at, n);
        r->at += n ? n : 1;
    }
    r->at++;
    if (!name)
        return refuse(r, "a branch has no target");
    add_ref(r, name);
    return true;
}

static bool read_instr(Reader *r)
{
    PtxInstr in = { .line = r->line };
    if (*r->at == '@') {
        in.guard_not = r->at[1] == '!';
        r->at += in.guard_not ? 2 : 1;
        size_t n = word_length(r->at);
        in.guard = n ? find_reg(r, intern(r, r->at, n)) : 0;
        if (!in.guard)
            return refuse(r, "a guard is no register");
        r->at += n;
        skip_space(r);
    }
    size_t n = mnemonic_length(r->at);
    if (!n || !isalpha((unsigned char)*r->at))
        return refuse(r, "expected an instruction");
    in.op = intern(r, r->at, n);
    r->at += n;
    in.branches = starts(in.op, "bra") && (!in.op[3] || in.op[3] == '.');
    in.branches |= starts(in.op, "brx.");
    in.ends = !strcmp(in.op, "ret") || starts(in.op, "ret.") ||
              !strcmp(in.op, "exit") || !strcmp(in.op, "trap");
    if (in.branches ? !read_branch(r) : !read_operands(r, &in))
        return false;
    const char *why = ptx_malformed(&in);
    if (why) {
        r->line = in.line;
        return refuse(r, arena_printf(r->a, "'%s' %s", in.op, why));
    }
    if (r->error)
        return false;
    VEC_PUSH(r->a, &r->instrs, in);
    return true;
}

static void read_reg(Reader *r)
{
    while (*r->at && *r->at != ';') {
        skip_space(r);
        size_t n = word_length(r->at);
        const char *name = n ? intern(r, r->at, n) : NULL;
        if (n && r->at[n] == '<') {
            RegRange range = { name, strtoll(r->at + n + 1, NULL, 10) };
            VEC_PUSH(r->a, &r->scopes.data[r->scope].ranges, range);
            n += strcspn(r->at + n, ">;");
        } else if (n && *r->at != '.') {
            new_reg(r, r->scope, name);
        }
        r->at += n ? n : *r->at != ';' && *r->at;
    }
}

static void skip_statement(Reader *r)
{
    while (*r->at && *r->at != ';')
        r->line += *r->at++ == '\n';
    r->at += *r->at == ';';
}

/* `L: .branchtargets A, B;` gives what a branch by index may reach. */
static void read_targets(Reader *r, const char *label)
{
    VEC(const char *) names = { 0 };
    while (*r->at && *r->at != ';') {
        skip_space(r);
        size_t n = word_length(r->at);
        if (n)
            VEC_PUSH(r->a, &names, intern(r, r->at, n));
        r->at += n ? n : *r->at != ';' && *r->at;
    }
    VEC_PUSH(r->a, &names, NULL);
    name_map_set(r->tables, label, names.data);
    r->at += *r->at == ';';
}

static void read_directive(Reader *r, const char *label)
{
    size_t n = word_length(r->at);
    const char *word = intern(r, r->at, n);
    r->at += n;
    if (!strcmp(word, ".loc") || !strcmp(word, ".file")) {
        skip_line(r);
        return;
    }
    if (!strcmp(word, ".branchtargets") && label) {
        read_targets(r, label);
        return;
    }
    if (!strcmp(word, ".local") && !r->local_line)
        r->local_line = r->line;
    if (!strcmp(word, ".reg"))
        read_reg(r);
    skip_statement(r);
}

static void set_label(Reader *r, const char *name)
{
    uint32_t *at = ARENA_NEW(r->a, uint32_t);
    *at = (uint32_t)r->instrs.len;
    name_map_set(r->scopes.data[r->scope].labels, name, at);
}

static bool read_body(Reader *r)
{
    unsigned depth = 0;
    const char *label = NULL;
    for (;;) {
        skip_space(r);
        size_t n = word_length(r->at);
        if (!*r->at)
            return refuse(r, "the entry has no end");
        if (*r->at == '{' && ++depth > MAX_DEPTH)
            return refuse(r, "scopes are nested too deep");
        if (*r->at == '{') {
            open_scope(r);
            r->at++;
        } else if (*r->at == '}') {
            r->scope = r->scopes.data[r->scope].parent;
            r->at++;
            if (!depth--)
                return true;
        } else if (n && r->at[n] == ':' && r->at[n + 1] != ':') {
            label = intern(r, r->at, n);
            set_label(r, label);
            r->at += n + 1;
            continue;
        } else if (*r->at == '.') {
            read_directive(r, label);
        } else if (*r->at == ';') {
            r->at++;
        } else if (!read_instr(r)) {
            return false;
        }
        label = NULL;
    }
}

/* ---- branches ------------------------------------------------------------ */

static const uint32_t *find_label(const Reader *r, const char *name,
                                  uint32_t scope)
{
    for (;; scope = r->scopes.data[scope].parent) {
        const uint32_t *at = name_map_get(r->scopes.data[scope].labels, name);
        if (at || scope == 0)
            return at;
    }
}

static bool resolve(Reader *r, const Ref *ref)
{
    PtxInstr *in = &r->instrs.data[ref->instr];
    const char *one[2] = { ref->name, NULL };
    const char *const *names = one;
    VEC(uint32_t) targets = { 0 };
    if (starts(in->op, "brx."))
        names = name_map_get(r->tables, ref->name);
    if (!names)
        return refuse(r, "a branch by index has no list of targets");
    for (; *names; names++) {
        const uint32_t *at = find_label(r, *names, ref->scope);
        if (!at || *at >= r->instrs.len) {
            r->line = in->line;
            return refuse(r, "a branch goes to a label that is not there");
        }
        VEC_PUSH(r->a, &targets, *at);
    }
    in->n_targets = (unsigned)targets.len;
    in->targets = targets.data;
    return true;
}

/* ---- parameters ---------------------------------------------------------- */

/* Of a type as `.u32` or `.f16x2`; 0: it is none. */
static int64_t type_bytes(const char *word, size_t n)
{
    size_t name = strcspn(word, "0123456789");
    if (name >= n)
        return 0;
    char *end;
    int64_t bits = strtoll(word + name, &end, 10);
    if (end + 2 == word + n && end[0] == 'x' && end[1] == '2')
        bits *= 2;
    else if (end != word + n)
        return 0;
    return bits % 8 == 0 && bits <= 128 ? bits / 8 : 0;
}

/* A word of a parameter's declaration; `.ptr` and what follows it say what the
 * parameter points to. */
static void read_param_word(Reader *r, PtxParam *p, bool *pointer)
{
    size_t n = word_length(r->at);
    const char *word = intern(r, r->at, n);
    r->at += n;
    *pointer |= !strcmp(word, ".ptr");
    if (!strcmp(word, ".align")) {
        skip_space(r);
        int64_t align = strtoll(r->at, NULL, 10);
        p->align = *pointer ? p->align : align;
        r->at += word_length(r->at);
    } else if (word[0] == '.' && !p->bytes) {
        p->bytes = type_bytes(word, n);
    }
}

static bool read_param(Reader *r)
{
    PtxParam p = { 0 };
    int64_t n = 1;
    bool pointer = false;
    for (skip_space(r); *r->at != ',' && *r->at != ')'; skip_space(r)) {
        if (*r->at == '[') {
            char *end;
            n = strtoll(r->at + 1, &end, 10);
            end += strspn(end, " \t");
            if (*end != ']' || n < 1 || n > 1 << 16)
                return refuse(r, "a parameter's length is none");
            r->at = end + 1;
        } else if (word_length(r->at)) {
            read_param_word(r, &p, &pointer);
        } else {
            return refuse(r, "a parameter has no end");
        }
    }
    if (!p.bytes)
        return refuse(r, "a parameter has no type");
    p.align = p.align ? p.align : p.bytes;
    p.bytes *= n;
    VEC_PUSH(r->a, &r->params, p);
    return true;
}

static bool read_params(Reader *r)
{
    skip_space(r);
    if (*r->at != '(')
        return true;
    r->at++;
    skip_space(r);
    while (*r->at != ')') {
        if (!read_param(r))
            return false;
        r->at += *r->at == ',';
    }
    r->at++;
    return true;
}

/* ---- the entry ----------------------------------------------------------- */

static bool is_commented(const char *text, const char *at)
{
    while (at > text && at[-1] != '\n')
        if (*--at == '/' && at[1] == '/')
            return true;
    return false;
}

/* At the name behind `.entry`, else NULL. */
static const char *find_entry(const char *text, const char *entry)
{
    for (const char *at = text; (at = strstr(at, ".entry"));) {
        bool commented = is_commented(text, at);
        at += strlen(".entry");
        const char *name = at + strspn(at, " \t\r\n");
        size_t n = word_length(name);
        if (!commented && n == strlen(entry) && !strncmp(name, entry, n))
            return name;
    }
    return NULL;
}

/* Parameters and directives, up to the body; these without comments. */
static bool read_head(Reader *r, PtxKernel *out)
{
    StrBuf head = { 0 };
    bool ok = read_params(r);
    for (skip_space(r); ok && *r->at && *r->at != '{' && *r->at != ';';
         skip_space(r)) {
        size_t n = word_length(r->at);
        strbuf_addf(&head, "%s%.*s", n ? " " : "", (int)(n ? n : 1), r->at);
        r->at += n ? n : 1;
    }
    out->head = arena_strdup(r->a, strbuf_text(&head));
    strbuf_free(&head);
    if (ok && *r->at != '{')
        return refuse(r, "the entry has no body");
    r->at += ok;
    return ok;
}

bool ptx_read(Arena *a, const char *text, const char *entry, PtxKernel *out,
              const char **error, uint32_t *line)
{
    Reader r = { .a = a, .line = 1, .tables = name_map_new(a) };
    const char *name = find_entry(text, entry);
    *error = NULL;
    *line = 0;
    if (!name)
        return false;
    for (const char *p = text; p < name; p++)
        r.line += *p == '\n';
    *out = (PtxKernel){ .line = r.line };
    VEC_PUSH(a, &r.regs, ((PtxReg){ "" }));
    open_scope(&r);
    r.at = name + strlen(entry);
    bool ok = read_head(&r, out) && read_body(&r);
    if (ok && find_entry(r.at, entry))
        ok = refuse(&r, "the entry is there twice");
    PtxInstr end = { .op = "ret", .line = r.line, .ends = true };
    VEC_PUSH(a, &r.instrs, end);
    for (size_t i = 0; ok && i < r.refs.len; i++)
        ok = resolve(&r, &r.refs.data[i]);
    *error = r.error;
    *line = r.line;
    out->n_instrs = (unsigned)r.instrs.len;
    out->instrs = r.instrs.data;
    out->n_regs = (unsigned)r.regs.len - 1;
    out->regs = r.regs.data;
    out->n_params = (unsigned)r.params.len;
    out->params = r.params.data;
    out->local_line = r.local_line;
    return ok;
}
