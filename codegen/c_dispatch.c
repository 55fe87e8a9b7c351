/* Tables and thunks; the text of the chooser is in c_dispatch_text.c, that of
 * the tuner in c_dispatch_tune.c. */
#include "codegen/c_dispatch.h"

#include <ctype.h>
#include <string.h>

#include "codegen/c_dispatch_text.h"
#include "codegen/c_emit.h"

static void add_upper(StrBuf *out, const char *s)
{
    for (; *s; s++)
        strbuf_addc(out, (char)toupper((unsigned char)*s));
}

/* Appends the text with the name for each @, in capitals for each $. */
static void add_named(StrBuf *out, const char *text, const char *name)
{
    for (; *text; text++) {
        if (*text == '@')
            strbuf_add(out, name);
        else if (*text == '$')
            add_upper(out, name);
        else
            strbuf_addc(out, *text);
    }
}

const char *dispatch_activation_name(DispatchActivation a)
{
    static const char *const names[DISPATCH_n_activations] = { "", "relu",
                                                               "gelu", "silu" };
    return names[a];
}

/* The place of entry i's type among those of the library. */
static unsigned type_number(const Dispatch *d, unsigned i)
{
    unsigned n = 0;
    for (unsigned j = 0; strcmp(d->entries[j].type, d->entries[i].type); j++) {
        unsigned first = 0;
        while (strcmp(d->entries[first].type, d->entries[j].type) != 0)
            first++;
        n += first == j;
    }
    return n;
}

/* Is entry i the first of its type? */
static bool is_first(const Dispatch *d, unsigned i)
{
    for (unsigned j = 0; j < i; j++)
        if (!strcmp(d->entries[j].type, d->entries[i].type))
            return false;
    return true;
}

/* ---- the header --------------------------------------------------------- */

static void print_header(const Dispatch *d, StrBuf *out)
{
    strbuf_addf(out,
                "\n#include <stddef.h>\n\n"
                "/* Element types; costs measured on %s. */\ntypedef enum {",
                d->device);
    for (unsigned i = 0; i < d->n_entries; i++) {
        if (!is_first(d, i))
            continue;
        strbuf_add(out, i ? ",\n    " : "\n    ");
        add_upper(out, d->function);
        strbuf_addc(out, '_');
        add_upper(out, d->entries[i].type);
        strbuf_addf(out, " = %u", type_number(d, i));
    }
    add_named(out, "\n} @_type;\n\n", d->function);
    add_named(out, c_dispatch_arguments, d->function);
    add_named(out, c_dispatch_declarations, d->function);
    add_named(out, c_dispatch_tune_declarations, d->function);
}

/* ---- thunks ------------------------------------------------------------- */

/* What the kernel's function takes for a parameter: rows and batch strides of
 * tensors go before the address in `x`. */
static void print_argument(const Dispatch *d, const DispatchEntry *e,
                           const DispatchKernel *k, DispatchParam p,
                           StrBuf *out)
{
    static const char *const plain[DISPATCH_n_params] = {
        [DISPATCH_batch] = "x->batch", [DISPATCH_m] = "x->m",
        [DISPATCH_n] = "x->n",         [DISPATCH_k] = "x->k",
        [DISPATCH_alpha] = "x->alpha", [DISPATCH_beta] = "x->beta",
        [DISPATCH_bias] = "x->bias"
    };
    if (plain[p]) {
        strbuf_add(out, plain[p]);
        return;
    }
    if (p == DISPATCH_w) {
        strbuf_addf(out, "%s_whole_rows(x->m, x->n, %lld, %lld, %lld)",
                    d->function, (long long)k->rows, (long long)k->columns,
                    (long long)k->slots);
        return;
    }
    char t = "abc"[p - DISPATCH_a];
    strbuf_addf(out, "x->%c, ", t);
    if (e->batched)
        strbuf_addf(out, "x->%c_batch, ", t);
    strbuf_addf(out, "x->ld%c, 1", t);
}

static void print_thunk(const Dispatch *d, const DispatchEntry *e,
                        const DispatchKernel *k, const char *function,
                        StrBuf *out)
{
    strbuf_addf(out,
                "\nstatic int %s_run_%s(const %s_args *x)\n{\n    return %s(",
                d->function, k->name, d->function, function);
    for (unsigned i = 0; i < k->n_params; i++) {
        print_argument(d, e, k, k->params[i], out);
        strbuf_add(out, ", ");
    }
    strbuf_add(out, "x->stream);\n}\n");
}

/* ---- the tables --------------------------------------------------------- */

static void add_numbers(StrBuf *out, const double *x, unsigned n)
{
    strbuf_addc(out, '{');
    for (unsigned i = 0; i < n; i++)
        strbuf_addf(out, "%s%.9g", i ? ", " : "", x[i]);
    strbuf_addc(out, '}');
}

static void print_kernels(const Dispatch *d, unsigned entry, StrBuf *out)
{
    const DispatchEntry *e = &d->entries[entry];
    strbuf_addf(out, "\nstatic const %s_kernel %s_kernels_%u[] = {\n",
                d->function, d->function, entry);
    for (unsigned i = 0; i < e->n_kernels; i++) {
        const DispatchKernel *k = &e->kernels[i];
        strbuf_addf(out, "    {\"%s\", %s_run_%s, ", k->name, d->function,
                    k->name);
        const int64_t numbers[] = { k->rows,  k->columns, k->cluster, k->beside,
                                    k->step,  k->split,   k->part,    k->sums,
                                    k->slots, k->half };
        for (unsigned j = 0; j < sizeof numbers / sizeof *numbers; j++)
            strbuf_addf(out, "%lld, ", (long long)numbers[j]);
        strbuf_add(out, "\n     ");
        add_numbers(out, k->one_wave, DISPATCH_ONE_WAVE);
        strbuf_add(out, ", ");
        add_numbers(out, k->waves, DISPATCH_WAVES);
        strbuf_add(out, "},\n");
    }
    strbuf_add(out, "};\n");
}

static void print_shapes(const Dispatch *d, unsigned entry, StrBuf *out)
{
    const DispatchEntry *e = &d->entries[entry];
    strbuf_addf(out, "\nstatic const %s_shape %s_shapes_%u[] = {\n",
                d->function, d->function, entry);
    for (unsigned i = 0; i < e->n_shapes; i++) {
        const DispatchShape *s = &e->shapes[i];
        strbuf_addf(out, "    {%lld, %lld, %lld, &%s_kernels_%u[%u]},\n",
                    (long long)s->m, (long long)s->n, (long long)s->k,
                    d->function, entry, s->kernel);
    }
    strbuf_add(out, "    {0, 0, 0, NULL}\n};\n");
}

static void print_entry(const Dispatch *d, unsigned i, StrBuf *out)
{
    const DispatchEntry *e = &d->entries[i];
    strbuf_addf(out, "    {%u, \"%s\", %d, %d, \"%s\", \"%s\",\n     ",
                type_number(d, i), e->type, e->a_mn, e->b_mn, e->output,
                e->epilogue);
    strbuf_addf(out, "%d, %d, %d, %d, %d, %lld, %lld, %u, %u,\n", e->batched,
                e->alpha, e->beta, e->bias, e->activation,
                (long long)e->bytes_in, (long long)e->bytes_out, e->n_kernels,
                e->n_shapes);
    strbuf_addf(out, "     %s_kernels_%u, %s_shapes_%u},\n", d->function, i,
                d->function, i);
}

static void print_entries(const Dispatch *d, StrBuf *out)
{
    strbuf_addf(out, "\nstatic const %s_entry %s_entries[] = {\n", d->function,
                d->function);
    for (unsigned i = 0; i < d->n_entries; i++)
        print_entry(d, i, out);
    strbuf_addf(out, "};\n\nenum { %s_n_entries = %u };\n", d->function,
                d->n_entries);
}

/* What is behind the tables. */
static const char *const source_text[] = {
    c_dispatch_waves,          c_dispatch_cost,     c_dispatch_choose,
    c_dispatch_find,           c_dispatch_refuse,   c_dispatch_strides,
    c_dispatch_run_plan,       c_dispatch_entry,    c_dispatch_plan,
    c_dispatch_tuned,          c_dispatch_remember, c_dispatch_trials,
    c_dispatch_candidates,     c_dispatch_tune,     c_dispatch_file,
    c_dispatch_load,           c_dispatch_run,      c_dispatch_functions,
    c_dispatch_tune_functions,
};

bool c_dispatch_can_be_named(const char *function)
{
    return !c_is_library_function(function) &&
           (!strncmp(function, "exo_gemm", 8) || !c_is_reserved(function));
}

void c_dispatch_print(const Dispatch *d, DispatchNameFn *name, void *user,
                      StrBuf *header, StrBuf *source)
{
    print_header(d, header);
    add_named(source, c_dispatch_types, d->function);
    for (unsigned i = 0; i < d->n_entries; i++) {
        const DispatchEntry *e = &d->entries[i];
        for (unsigned k = 0; k < e->n_kernels; k++)
            print_thunk(d, e, &e->kernels[k], name(user, e->kernels[k].name),
                        source);
        print_kernels(d, i, source);
        print_shapes(d, i, source);
    }
    print_entries(d, source);
    for (unsigned i = 0; i < sizeof source_text / sizeof *source_text; i++)
        add_named(source, source_text[i], d->function);
}
