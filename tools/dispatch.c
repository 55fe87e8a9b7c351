/* Reading a table of tuned kernels: JSON to `Dispatch`, then one module that
 * imports every file, in which the named procedures are the file's own. */
#include "tools/dispatch.h"

#include "ir/wellformed.h"

#include <ctype.h>
#include <string.h>

#if EXO_WITH_JSON
#include "tools/json_file.h"
#endif

bool dispatch_is_table(const char *path)
{
    size_t n = strlen(path);
    return n > 5 && !strcmp(path + n - 5, ".json");
}

#if EXO_WITH_JSON

typedef struct Table {
    Ctx *ctx;
    Arena *arena;
    uint32_t file;
    bool ok;
    VEC(const char *) files; /* each once */
    Dispatch d;
} Table;

static void fault(Table *t, const char *what, const char *wanted)
{
    if (t->ok)
        diag_error(t->ctx, (Loc){ t->file, 1, 1 }, "dispatch",
                   "the table's %s: expected %s", what, wanted);
    t->ok = false;
}

static const char *text_of(Table *t, const json_t *object, const char *key)
{
    const char *s = json_string_value(json_object_get(object, key));
    if (!s) {
        fault(t, key, "a string");
        return "";
    }
    return arena_strdup(t->arena, s);
}

/* A string that can be part of a name in C. */
static const char *word_of(Table *t, const json_t *object, const char *key)
{
    const char *s = text_of(t, object, key);
    bool ok = isalpha((unsigned char)*s);
    for (const char *p = s; *p; p++)
        ok &= isalnum((unsigned char)*p) || *p == '_';
    if (!ok)
        fault(t, key, "a name of letters, digits and '_'");
    return s;
}

static int64_t number_of(Table *t, const json_t *object, const char *key)
{
    const json_t *v = json_object_get(object, key);
    int64_t n = (int64_t)json_integer_value(v);
    if (!json_is_integer(v) || n < 1 || n > INT64_C(1) << 30)
        fault(t, key, "an integer from 1 to 2^30");
    return n < 1 ? 1 : n;
}

static void costs_of(Table *t, const json_t *object, const char *key,
                     double *out)
{
    enum { N = 4 };
    const json_t *list = json_object_get(object, key);
    bool ok = json_is_array(list) && json_array_size(list) == N;
    for (size_t i = 0; ok && i < N; i++) {
        const json_t *v = json_array_get(list, i);
        out[i] = json_number_value(v);
        ok = json_is_number(v) && out[i] >= 0 && out[i] < 1e12;
    }
    if (!ok)
        fault(t, key, "four numbers from 0");
}

static void note_file(Table *t, const char *file)
{
    for (size_t i = 0; i < t->files.len; i++)
        if (!strcmp(t->files.data[i], file))
            return;
    if (strpbrk(file, "\"\\\n"))
        fault(t, "file", "a path without quotes, backslashes and line ends");
    VEC_PUSH(t->arena, &t->files, file);
}

static DispatchKernel read_kernel(Table *t, const json_t *k)
{
    DispatchKernel out = { .name = word_of(t, k, "kernel"),
                           .rows = number_of(t, k, "rows"),
                           .columns = number_of(t, k, "columns"),
                           .cluster = number_of(t, k, "cluster"),
                           .step = number_of(t, k, "step") };
    costs_of(t, k, "one_wave", out.one_wave);
    costs_of(t, k, "waves", out.waves);
    if (out.cluster > t->d.multiprocessors)
        fault(t, "cluster", "no more CTAs than there are multiprocessors");
    note_file(t, text_of(t, k, "file"));
    return out;
}

static DispatchShape read_shape(Table *t, const DispatchEntry *e,
                                const json_t *s)
{
    const char *name = text_of(t, s, "kernel");
    DispatchShape out = { number_of(t, s, "M"), number_of(t, s, "N"),
                          number_of(t, s, "K"), 0 };
    while (out.kernel < e->n_kernels &&
           strcmp(e->kernels[out.kernel].name, name) != 0)
        out.kernel++;
    if (out.kernel == e->n_kernels)
        fault(t, "shapes", "a kernel of the same entry for each");
    return out;
}

static DispatchEntry read_entry(Table *t, const json_t *object)
{
    const json_t *kernels = json_object_get(object, "kernels");
    const json_t *shapes = json_object_get(object, "shapes");
    DispatchEntry e = { .type = word_of(t, object, "type"),
                        .n_kernels = (unsigned)json_array_size(kernels),
                        .n_shapes = (unsigned)json_array_size(shapes) };
    if (strcmp(text_of(t, object, "layout"), "tn") != 0)
        fault(t, "layout", "\"tn\", A and B with K innermost");
    if (!e.n_kernels)
        fault(t, "kernels", "a list of at least one kernel");
    DispatchKernel *to = ARENA_ARRAY(t->arena, DispatchKernel, e.n_kernels + 1);
    for (unsigned i = 0; i < e.n_kernels; i++)
        to[i] = read_kernel(t, json_array_get(kernels, i));
    e.kernels = to;
    DispatchShape *at = ARENA_ARRAY(t->arena, DispatchShape, e.n_shapes + 1);
    for (unsigned i = 0; i < e.n_shapes; i++)
        at[i] = read_shape(t, &e, json_array_get(shapes, i));
    e.shapes = at;
    return e;
}

static void read_table(Table *t, const json_t *root)
{
    const json_t *entries = json_object_get(root, "entries");
    if (json_integer_value(json_object_get(root, "version")) != 1)
        fault(t, "version", "1");
    t->d.function = word_of(t, root, "function");
    t->d.device = text_of(t, root, "device");
    if (strpbrk(t->d.device, "*/\n"))
        fault(t, "device", "a name that fits into a comment");
    t->d.multiprocessors = number_of(t, root, "multiprocessors");
    t->d.n_entries = (unsigned)json_array_size(entries);
    if (!t->d.n_entries)
        fault(t, "entries", "a list of at least one entry");
    DispatchEntry *to =
        ARENA_ARRAY(t->arena, DispatchEntry, t->d.n_entries + 1);
    for (unsigned i = 0; i < t->d.n_entries && t->ok; i++) {
        to[i] = read_entry(t, json_array_get(entries, i));
        for (unsigned j = 0; j < i; j++)
            if (!strcmp(to[j].type, to[i].type))
                fault(t, "entries", "one entry for each type");
    }
    t->d.entries = to;
}

/* ---- the module --------------------------------------------------------- */

/* (M, N, K, A, B, C): sizes, then windows of rank 2. Sets the element sizes. */
static bool fits(const Op *proc, DispatchEntry *e)
{
    const Block *b = proc->blocks[0];
    if (b->n_args != 6)
        return false;
    for (unsigned i = 0; i < 6; i++) {
        const Value *v = b->args[i].value;
        if ((i < 3) != !v)
            return false;
        if (v && (v->type->kind != TK_window || v->type->rank != 2))
            return false;
    }
    int64_t a = scalar_type_bytes(b->args[3].value->type->elem);
    int64_t c = scalar_type_bytes(b->args[5].value->type->elem);
    bool same = (!e->bytes_in || e->bytes_in == a) &&
                (!e->bytes_out || e->bytes_out == c) &&
                scalar_type_bytes(b->args[4].value->type->elem) == a;
    e->bytes_in = a;
    e->bytes_out = c;
    return same;
}

static void claim_kernels(Table *t, Module *m, DispatchEntry *e)
{
    for (unsigned i = 0; i < e->n_kernels; i++) {
        Op *proc = module_symbol(m, e->kernels[i].name);
        if (!proc || proc->code != OP_ctl_proc) {
            diag_error(t->ctx, (Loc){ t->file, 1, 1 }, "dispatch",
                       "no file of the table has a procedure '%s'",
                       e->kernels[i].name);
            t->ok = false;
        } else if (!fits(proc, e)) {
            diag_error(t->ctx, proc->loc, "dispatch",
                       "a kernel of the table must have the parameters (M: "
                       "size, N: size, K: size, A: [T][M, K], B: [T][N, K], "
                       "C: [U][M, N]), the same T and U for all of type %s",
                       e->type);
            t->ok = false;
        } else {
            op_remove_attr(proc, "imported");
        }
    }
}

static Module *read_kernels(Table *t, const Options *o)
{
    StrBuf text = { 0 };
    Lib *lib = input_library(t->ctx, o);
    for (size_t i = 0; i < t->files.len; i++)
        strbuf_addf(&text, "import \"%s\"\n", t->files.data[i]);
    uint32_t file =
        ctx_add_source(t->ctx, ctx_source_name(t->ctx, t->file),
                       arena_strdup(t->arena, strbuf_text(&text)), text.len);
    strbuf_free(&text);
    Module *m = lib ? input_module(t->ctx, o, file, true, lib) : NULL;
    if (!m)
        return NULL;
    for (unsigned i = 0; i < t->d.n_entries; i++)
        claim_kernels(t, m, (DispatchEntry *)&t->d.entries[i]);
    if (t->ok)
        return m;
    module_free(m);
    return NULL;
}

Module *dispatch_read(Ctx *ctx, const Options *o, const char *path,
                      const Dispatch **table)
{
    uint32_t file;
    json_t *root = json_file_read(ctx, path, "dispatch", &file);
    if (!root)
        return NULL;
    Table *t = ARENA_NEW(ctx_arena(ctx), Table);
    *t = (Table){
        .ctx = ctx, .arena = ctx_arena(ctx), .file = file, .ok = true
    };
    read_table(t, root);
    json_decref(root);
    *table = &t->d;
    return t->ok ? read_kernels(t, o) : NULL;
}

#else

Module *dispatch_read(Ctx *ctx, const Options *o, const char *path,
                      const Dispatch **table)
{
    (void)o;
    *table = NULL;
    diag_error(ctx, (Loc){ 0 }, "dispatch",
               "%s: tables need jansson, without which this was built", path);
    return NULL;
}

#endif
