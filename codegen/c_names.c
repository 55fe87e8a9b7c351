/* Lines, strings and names of the C that is printed.
 *
 * A name is the source's, with what C cannot spell replaced by `_`, and a
 * number behind it where it is a keyword (of C or C++, since the header is for
 * both), a word of the generated code, or already in scope: nothing shadows. */
#include "codegen/c_emit.h"

#include <ctype.h>
#include <string.h>

void c_line(CPrinter *p, const char *fmt, ...)
{
    va_list ap;
    for (unsigned i = 0; i < p->indent; i++)
        strbuf_add(p->out, "    ");
    va_start(ap, fmt);
    strbuf_vaddf(p->out, fmt, ap);
    va_end(ap);
    strbuf_addc(p->out, '\n');
}

void c_open(CPrinter *p)
{
    p->indent++;
}

void c_close(CPrinter *p)
{
    p->indent--;
    c_line(p, "}");
}

const char *c_text(CPrinter *p, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    const char *s = arena_vprintf(p->arena, fmt, ap);
    va_end(ap);
    return s;
}

const char *c_string(CPrinter *p, const char *s)
{
    StrBuf b = { 0 };
    strbuf_addc(&b, '"');
    for (; *s; s++) {
        unsigned char c = (unsigned char)*s;
        if (c == '"' || c == '\\')
            strbuf_addf(&b, "\\%c", c);
        else if (c < 32 || c == 127 || c == '?')
            strbuf_addf(&b, "\\%03o", c);
        else
            strbuf_addc(&b, (char)c);
    }
    strbuf_addc(&b, '"');
    const char *text = arena_strdup(p->arena, strbuf_text(&b));
    strbuf_free(&b);
    return text;
}

bool c_refuse(CPrinter *p, const Op *op, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    const char *message = arena_vprintf(p->arena, fmt, ap);
    va_end(ap);
    diag_error(p->ctx, op->loc, "c-output", "%s", message);
    p->failed = true;
    return false;
}

bool c_refuse_config(CPrinter *p, Loc at, const char *field)
{
    Diag *d = diag_error(p->ctx, at, "c-output",
                         "configuration state (%s) has no form in C", field);
    diag_fix(p->ctx, d,
             "make it a parameter of the procedures that use it; one that "
             "writes it takes a tensor in DRAM without dimensions");
    p->failed = true;
    return false;
}

static bool is_in(const char *const *words, size_t n, const char *s)
{
    for (size_t i = 0; i < n; i++)
        if (!strcmp(words[i], s))
            return true;
    return false;
}

bool c_is_reserved(const char *s)
{
    // clang-format off
    static const char *const words[] = {
        "alignas", "alignof", "and", "and_eq", "asm", "auto", "bitand",
        "bitor", "bool", "break", "call", "case", "catch", "char", "char16_t",
        "char32_t", "char8_t", "class", "co_await", "co_return", "co_yield",
        "compl", "concept", "const", "const_cast", "consteval", "constexpr",
        "constinit", "continue", "decltype", "default", "delete", "do", "done",
        "double", "dynamic_cast", "else", "enum", "errno", "exp", "exp2",
        "explicit", "export", "extern", "fabs", "false", "float", "fma",
        "fmaf", "for", "friend", "goto", "if", "inline", "int", "linux",
        "log", "log2", "long", "mutable", "namespace", "new",
        "noexcept", "not", "not_eq", "nullptr", "operator", "or", "or_eq",
        "overflow", "private", "protected", "public", "register",
        "reinterpret_cast", "requires", "restrict", "return", "short",
        "signed", "sin", "size_t", "sizeof", "sqrt", "static", "static_assert",
        "static_cast", "status", "stderr", "stdin", "stdout", "struct",
        "switch", "template", "this", "thread_local", "throw", "true", "try",
        "typedef", "typeid", "typename", "typeof", "typeof_unqual", "union",
        "unix", "unsigned", "using", "va_list", "virtual", "void", "volatile",
        "wchar_t", "while", "xor", "xor_eq", "NULL", "EOF", "BUFSIZ",
        "RAND_MAX", "EXIT_SUCCESS", "EXIT_FAILURE", "NAN", "INFINITY",
        "HUGE_VAL", "HUGE_VALF",
    };
    // clang-format on
    size_t n = strlen(s);
    return is_in(words, sizeof words / sizeof *words, s) || s[0] == '_' ||
           !strncmp(s, "exo_", 4) || !strncmp(s, "EXO_", 4) ||
           !strncmp(s, "INT", 3) || !strncmp(s, "UINT", 4) ||
           !strncmp(s, "RTLD_", 5) || !strncmp(s, "PTHREAD_", 8) ||
           !strncmp(s, "SIZE_", 5) || !strncmp(s, "PTRDIFF_", 8) ||
           (n > 2 && !strcmp(s + n - 2, "_t"));
}

bool c_is_library_function(const char *name)
{
    // clang-format off
    static const char *const words[] = {
        "abort", "abs", "access", "acos", "alloca", "asin", "atan", "atof",
        "atoi", "bcmp", "bcopy", "bzero", "calloc", "cbrt", "ceil", "close",
        "copysign", "cos", "cosh", "div", "erf", "exit", "exp", "exp2",
        "expm1", "fabs", "fdim", "ffs", "floor", "fma", "fmax", "fmin",
        "fmod", "fopen", "fork", "fputs", "free", "frexp", "fseek", "fwrite",
        "gamma", "getc", "getenv", "hypot", "index", "j0", "j1", "jn",
        "ldexp", "lgamma", "link", "log", "log10", "log1p", "log2", "logb",
        "main", "malloc", "memchr", "memcmp", "memcpy", "memmove", "memset",
        "modf", "nan", "open", "pipe", "pow", "printf", "putc", "puts",
        "qsort", "raise", "rand", "read", "realloc", "remainder", "remove",
        "rename", "rindex", "rint", "round", "scalbn", "scanf", "select",
        "send", "signal", "significand", "sin", "sinh", "sleep", "sqrt",
        "strcat", "strchr", "strcmp", "strcpy", "strlen", "system", "tan",
        "tanh", "time", "trunc", "unlink", "wait", "write", "y0", "y1", "yn",
    };
    // clang-format on
    size_t n = strlen(name);
    if (is_in(words, sizeof words / sizeof *words, name))
        return true;
    if (n < 2 || (name[n - 1] != 'f' && name[n - 1] != 'l'))
        return false;
    char base[16];
    if (n - 1 >= sizeof base)
        return false;
    memcpy(base, name, n - 1);
    base[n - 1] = '\0';
    return is_in(words, sizeof words / sizeof *words, base);
}

const char *c_identifier(CPrinter *p, const char *s)
{
    char *copy = arena_strdup(p->arena, s && *s ? s : "x");
    for (char *c = copy; *c; c++)
        if (!isalnum((unsigned char)*c) || (unsigned char)*c > 127)
            *c = '_';
    return isdigit((unsigned char)*copy) ? c_text(p, "n%s", copy) : copy;
}

static bool is_taken(const CPrinter *p, const char *name)
{
    return c_is_reserved(name) || is_in(p->names.data, p->names.len, name);
}

const char *c_name(CPrinter *p, const char *wanted)
{
    const char *base = c_identifier(p, wanted);
    if (c_is_reserved(c_text(p, "%s_1", base))) /* by how it begins */
        base = c_text(p, "v%s%s", base[0] == '_' ? "" : "_", base);
    const char *name = base;
    for (unsigned i = 1; is_taken(p, name); i++)
        name = c_text(p, "%s_%u", base, i);
    VEC_PUSH(p->arena, &p->names, name);
    return name;
}

size_t c_scope(const CPrinter *p)
{
    return p->names.len;
}

void c_scope_end(CPrinter *p, size_t scope)
{
    p->names.len = scope;
}
