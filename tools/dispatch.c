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
    int64_t multiprocessors;
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

/* A number that the table may leave out. */
static int64_t number_or(Table *t, const json_t *object, const char *key,
                         int64_t absent)
{
    return json_object_get(object, key) ? number_of(t, object, key) : absent;
}

/* Four costs or more; those that a table leaves out are 0. */
static void costs_of(Table *t, const json_t *object, const char *key, size_t n,
                     double *out)
{
    const json_t *list = json_object_get(object, key);
    size_t given = json_array_size(list);
    bool ok = json_is_array(list) && given >= 4 && given <= n;
    for (size_t i = 0; ok && i < given; i++) {
        const json_t *v = json_array_get(list, i);
        out[i] = json_number_value(v);
        ok = json_is_number(v) && out[i] >= 0 && out[i] < 1e12;
    }
    if (!ok)
        fault(t, key,
              n == DISPATCH_WAVES ? "four to seven numbers from 0"
                                  : "four to six numbers from 0");
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
                           .beside = number_or(t, k, "beside", 1),
                           .step = number_of(t, k, "step"),
                           .split = number_or(t, k, "split", 1),
                           .part = number_or(t, k, "part", 1 << 30),
                           .sums = number_or(t, k, "sums", 0) };
    costs_of(t, k, "one_wave", DISPATCH_ONE_WAVE, out.one_wave);
    costs_of(t, k, "waves", DISPATCH_WAVES, out.waves);
    int64_t ctas = out.cluster * out.beside * out.split;
    if (ctas > t->multiprocessors)
        fault(t, "cluster", "no more CTAs than there are multiprocessors");
    out.slots = number_or(t, k, "slots", t->multiprocessors / ctas);
    if (out.sums && out.part == 1 << 30)
        fault(t, "sums", "a part beside it");
    out.half = number_or(t, k, "half", 0);
    if (out.half &&
        (out.half * 2 != out.rows || ctas > 1 || out.part < 1 << 30))
        fault(t, "half", "half of the rows, of kernels without clusters");
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

/* A's letter, then B's: "tn" is K innermost in both. */
static void read_layout(Table *t, const json_t *object, DispatchEntry *e)
{
    const char *s = text_of(t, object, "layout");
    if (strlen(s) != 2 || !strchr("tn", s[0]) || !strchr("tn", s[1])) {
        fault(t, "layout", "\"tn\", \"nn\", \"nt\" or \"tt\"");
        return;
    }
    e->a_mn = s[0] == 'n';
    e->b_mn = s[1] == 't';
}

/* A word of an epilogue, each of which comes once. */
static bool read_word(const char *word, size_t n, DispatchEntry *e)
{
    static const char *const flags[] = { "alpha", "beta", "bias" };
    bool *const to[] = { &e->alpha, &e->beta, &e->bias };
    for (unsigned i = 0; i < 3; i++)
        if (strlen(flags[i]) == n && !strncmp(flags[i], word, n)) {
            bool fresh = !*to[i];
            *to[i] = true;
            return fresh;
        }
    for (unsigned i = 1; i < DISPATCH_n_activations; i++) {
        const char *name = dispatch_activation_name((DispatchActivation)i);
        if (strlen(name) == n && !strncmp(name, word, n)) {
            bool fresh = !e->activation;
            e->activation = (DispatchActivation)i;
            return fresh;
        }
    }
    return false;
}

/* "" or words with '_' between them; all but the empty one scale by alpha. */
static void read_epilogue(Table *t, const json_t *object, DispatchEntry *e)
{
    e->epilogue = "";
    if (!json_object_get(object, "epilogue"))
        return;
    e->epilogue = text_of(t, object, "epilogue");
    bool ok = true;
    for (const char *s = e->epilogue; ok && *s;) {
        size_t n = strcspn(s, "_");
        ok = read_word(s, n, e);
        s += n + (s[n] == '_');
        ok &= *s || s[-1] != '_';
    }
    if (!ok)
        fault(t, "epilogue",
              "words of alpha, beta, bias, relu, gelu and silu, "
              "each once, with '_' between them");
    e->alpha = *e->epilogue != '\0';
}

static void read_lists(Table *t, const json_t *object, DispatchEntry *e)
{
    const json_t *kernels = json_object_get(object, "kernels");
    const json_t *shapes = json_object_get(object, "shapes");
    e->n_kernels = (unsigned)json_array_size(kernels);
    e->n_shapes = (unsigned)json_array_size(shapes);
    if (!e->n_kernels)
        fault(t, "kernels", "a list of at least one kernel");
    DispatchKernel *to =
        ARENA_ARRAY(t->arena, DispatchKernel, e->n_kernels + 1);
    for (unsigned i = 0; i < e->n_kernels; i++)
        to[i] = read_kernel(t, json_array_get(kernels, i));
    for (unsigned i = 0; i < e->n_kernels; i++)
        if (to[i].half && e->batched)
            fault(t, "half", "no kernel of batches");
    e->kernels = to;
    DispatchShape *at = ARENA_ARRAY(t->arena, DispatchShape, e->n_shapes + 1);
    for (unsigned i = 0; i < e->n_shapes; i++)
        at[i] = read_shape(t, e, json_array_get(shapes, i));
    e->shapes = at;
}

/* An element type's name, in whose place among the constants of the header an
 * activation's would be. */
static const char *type_of(Table *t, const json_t *object)
{
    const char *s = word_of(t, object, "type");
    bool taken = !strcmp(s, "none");
    for (unsigned i = 1; i < DISPATCH_n_activations; i++)
        taken |= !strcmp(s, dispatch_activation_name((DispatchActivation)i));
    if (taken || !strncmp(s, "output_", 7))
        fault(t, "type", "a name that is no activation's or output's");
    return s;
}

static DispatchEntry read_entry(Table *t, const json_t *object)
{
    const json_t *batched = json_object_get(object, "batched");
    DispatchEntry e = { .type = type_of(t, object),
                        .batched = json_is_true(batched) };
    if (batched && !json_is_boolean(batched))
        fault(t, "batched", "true or false");
    if (json_object_get(object, "output"))
        e.output = text_of(t, object, "output");
    read_layout(t, object, &e);
    read_epilogue(t, object, &e);
    read_lists(t, object, &e);
    return e;
}

static void read_table(Table *t, const json_t *root)
{
    const json_t *entries = json_object_get(root, "entries");
    if (json_integer_value(json_object_get(root, "version")) != 1)
        fault(t, "version", "1");
    t->d.function = word_of(t, root, "function");
    if (!c_dispatch_can_be_named(t->d.function))
        fault(t, "function",
              "no word of C or C++, of its library or of the code that is "
              "printed");
    t->d.device = text_of(t, root, "device");
    if (strpbrk(t->d.device, "*/\n"))
        fault(t, "device", "a name that fits into a comment");
    t->multiprocessors = number_of(t, root, "multiprocessors");
    t->d.n_entries = (unsigned)json_array_size(entries);
    if (!t->d.n_entries)
        fault(t, "entries", "a list of at least one entry");
    DispatchEntry *to =
        ARENA_ARRAY(t->arena, DispatchEntry, t->d.n_entries + 1);
    for (unsigned i = 0; i < t->d.n_entries && t->ok; i++)
        to[i] = read_entry(t, json_array_get(entries, i));
    t->d.entries = to;
}

/* ---- the module --------------------------------------------------------- */

/* Names of the parameters, and whether one is a control value. */
static const struct {
    const char *name;
    bool is_size;
} known_params[DISPATCH_n_params] = {
    [DISPATCH_batch] = { "L", true },      [DISPATCH_m] = { "M", true },
    [DISPATCH_n] = { "N", true },          [DISPATCH_k] = { "K", true },
    [DISPATCH_w] = { "W", true },          [DISPATCH_a] = { "A", false },
    [DISPATCH_b] = { "B", false },         [DISPATCH_c] = { "C", false },
    [DISPATCH_alpha] = { "alpha", false }, [DISPATCH_beta] = { "beta", false },
    [DISPATCH_bias] = { "bias", false },
};

/* The parameter that a block's argument is; DISPATCH_n_params for none. */
static unsigned known_param(const Module *m, const BlockArg *arg)
{
    const char *name =
        arg->value ? arg->value->name : var_get(m->exprs, arg->var)->name;
    unsigned i = 0;
    while (i < DISPATCH_n_params &&
           (!name || strcmp(known_params[i].name, name) != 0 ||
            known_params[i].is_size == (arg->value != NULL)))
        i++;
    return i;
}

/* Is the extent the parameter of that name? */
static bool is_extent(const Module *m, const Affine *extent, const char *name)
{
    VarId v;
    return affine_is_var(extent, &v) &&
           !strcmp(var_get(m->exprs, v)->name, name);
}

/* [rows, columns] of the layout, in a batch [L, rows, columns]. */
static bool tensor_fits(const Module *m, const DispatchEntry *e, unsigned param,
                        const Value *v)
{
    const char *rows = param == DISPATCH_b ? "N" : "M";
    const char *columns = param == DISPATCH_c ? "N" : "K";
    bool mn = param == DISPATCH_a ? e->a_mn : param == DISPATCH_b && e->b_mn;
    unsigned first = e->batched ? 1 : 0;
    return v->type->kind == TK_window && v->type->rank == first + 2 &&
           (!first || is_extent(m, v->shape[0], "L")) &&
           is_extent(m, v->shape[first], mn ? columns : rows) &&
           is_extent(m, v->shape[first + 1], mn ? rows : columns);
}

/* Is the parameter what the entry wants, C of elements c? */
static bool value_fits(const Module *m, const DispatchEntry *e, unsigned param,
                       const Value *v, ScalarType c)
{
    const Type *t = v->type;
    if (param <= DISPATCH_c)
        return tensor_fits(m, e, param, v);
    if (param == DISPATCH_bias)
        return t->kind == TK_tensor && t->rank == 1 && t->elem == c &&
               is_extent(m, v->shape[0], "N");
    return t->kind == TK_tensor && t->rank == 0 && t->elem == TY_f32 &&
           t->mem && !strcmp(t->mem->name, "CudaGridConstant");
}

/* May the operands of the entry be of that type? Its type's name begins with
 * the element type's, or with tf32 for f32; another name has one element type
 * in all entries. */
static bool element_fits(const Table *t, DispatchEntry *e, ScalarType a)
{
    size_t n = strcspn(e->type, "_");
    ScalarType named = n == 4 && !strncmp(e->type, "tf32", n)
                           ? TY_f32
                           : scalar_type_from_name(e->type, n);
    bool same = named == TY_none || named == a;
    for (unsigned i = 0; i < t->d.n_entries; i++) {
        const DispatchEntry *other = &t->d.entries[i];
        same &= !other->element || strcmp(other->type, e->type) != 0 ||
                !strcmp(other->element, scalar_type_name(a));
    }
    e->element = scalar_type_name(a);
    return same;
}

/* All the parameters that the entry needs, each once and no other. Sets the
 * kernel's parameters and the entry's element sizes and output. */
static bool fits(Table *t, const Module *m, const Op *proc, DispatchEntry *e,
                 DispatchKernel *k)
{
    const Block *b = proc->blocks[0];
    const bool wanted[DISPATCH_n_params] = { e->batched,  true,    true,   true,
                                             k->half > 0, true,    true,   true,
                                             e->alpha,    e->beta, e->bias };
    const BlockArg *at[DISPATCH_n_params] = { NULL };
    DispatchParam *params = ARENA_ARRAY(t->arena, DispatchParam, b->n_args + 1);
    unsigned missing = 0;
    for (unsigned i = 0; i < b->n_args; i++) {
        unsigned p = known_param(m, &b->args[i]);
        if (p == DISPATCH_n_params || at[p] || !wanted[p])
            return false;
        at[p] = &b->args[i];
        params[i] = (DispatchParam)p;
    }
    for (unsigned p = 0; p < DISPATCH_n_params; p++)
        missing += wanted[p] && !at[p];
    if (missing)
        return false;
    ScalarType a = at[DISPATCH_a]->value->type->elem;
    ScalarType c = at[DISPATCH_c]->value->type->elem;
    for (unsigned p = DISPATCH_a; p < DISPATCH_n_params; p++)
        if (at[p] && !value_fits(m, e, p, at[p]->value, c))
            return false;
    if (at[DISPATCH_b]->value->type->elem != a)
        return false;
    k->n_params = b->n_args;
    k->params = params;
    bool same = element_fits(t, e, a) &&
                (!e->output || !strcmp(e->output, scalar_type_name(c)));
    e->bytes_in = scalar_type_bytes(a);
    e->bytes_out = scalar_type_bytes(c);
    e->output = scalar_type_name(c);
    return same;
}

/* [L, M, K] and the like. */
static const char *shape_text(const Table *t, const DispatchEntry *e,
                              const char *first, const char *second)
{
    return arena_printf(t->arena, "[%s%s, %s]", e->batched ? "L, " : "", first,
                        second);
}

static void report_unfit(Table *t, const DispatchEntry *e,
                         const DispatchKernel *k, const Op *proc)
{
    diag_error(
        t->ctx, proc->loc, "dispatch",
        "a kernel of type %s and epilogue '%s' must have the parameters "
        "(%sM: size, N: size, K: size, %sA: [T]%s, B: [T]%s, C: [U]%s%s%s%s), "
        "alpha and beta in CudaGridConstant, T what its type is named after "
        "and the same for all of the type, U the entry's output",
        e->type, e->epilogue, e->batched ? "L: size, " : "",
        k->half ? "W: size, " : "",
        e->a_mn ? shape_text(t, e, "K", "M") : shape_text(t, e, "M", "K"),
        e->b_mn ? shape_text(t, e, "K", "N") : shape_text(t, e, "N", "K"),
        shape_text(t, e, "M", "N"), e->alpha ? ", alpha: f32" : "",
        e->beta ? ", beta: f32" : "", e->bias ? ", bias: U[N]" : "");
}

static void claim_kernel(Table *t, Module *m, DispatchEntry *e,
                         DispatchKernel *k)
{
    Op *proc = module_symbol(m, k->name);
    if (!proc || proc->code != OP_ctl_proc) {
        diag_error(t->ctx, (Loc){ t->file, 1, 1 }, "dispatch",
                   "no file of the table has a procedure '%s'", k->name);
        t->ok = false;
    } else if (!op_attr(proc, "imported")) {
        fault(t, k->name, "each kernel once");
    } else if (!fits(t, m, proc, e, k)) {
        report_unfit(t, e, k, proc);
        t->ok = false;
    } else {
        op_remove_attr(proc, "imported");
    }
}

static bool is_same_entry(const DispatchEntry *a, const DispatchEntry *b)
{
    return !strcmp(a->type, b->type) && a->a_mn == b->a_mn &&
           a->b_mn == b->b_mn && !strcmp(a->output, b->output) &&
           a->batched == b->batched && a->alpha == b->alpha &&
           a->beta == b->beta && a->bias == b->bias &&
           a->activation == b->activation;
}

/* Finds every kernel's procedure, which is no longer imported then. */
static void claim_kernels(Table *t, Module *m)
{
    DispatchEntry *entries = (DispatchEntry *)t->d.entries;
    for (unsigned i = 0; i < t->d.n_entries; i++) {
        DispatchEntry *e = &entries[i];
        for (unsigned k = 0; k < e->n_kernels; k++)
            claim_kernel(t, m, e, (DispatchKernel *)&e->kernels[k]);
        for (unsigned j = 0; t->ok && j < i; j++)
            if (is_same_entry(&entries[j], e))
                fault(t, "entries",
                      "one entry for each type, layout, output, "
                      "epilogue, and batched or not");
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
    claim_kernels(t, m);
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
