/* A module's host code as a C library: names, images, and the two files.
 *
 * The bodies are printed first, then the helpers that they turned out to need;
 * the source is put together as: includes, helpers, driver, images, contexts,
 * procedures, and the functions that every library has.
 *
 * A procedure's function bears its name where that begins with the stem, else
 * the stem goes before it, so that two libraries in one program never clash. */
#include "codegen/c_print.h"

#include <ctype.h>
#include <string.h>

#include "codegen/c_support.h"

/* ---- names ---------------------------------------------------------- */

static const char *api_name(CPrinter *p, const char *stem, const char *proc)
{
    const char *name = c_identifier(p, proc);
    size_t n = strlen(stem);
    bool own = !strncmp(name, stem, n) && (!name[n] || name[n] == '_');
    if (own && !c_is_library_function(name))
        return name;
    return c_text(p, "%s_%s", stem, name);
}

/* Is the exported name one of the library's own, or had before? */
static bool check_api_name(CPrinter *p, const CFunction *f, const char *stem)
{
    static const char *const own[] = { "load", "unload", "error_string",
                                       "last_error" };
    const char *name = op_attr_str(f->op, "name", "");
    for (unsigned i = 0; i < sizeof own / sizeof *own; i++)
        if (!strcmp(f->api, c_text(p, "%s_%s", stem, own[i])))
            return c_refuse(p, f->op,
                            "procedure '%s' would be '%s' in C, "
                            "which every printed library has "
                            "itself; rename the procedure",
                            name, f->api);
    for (size_t i = 0; i < p->functions.len; i++)
        if (!strcmp(p->functions.data[i].api, f->api))
            return c_refuse(
                p, f->op,
                "procedures '%s' and '%s' would both be "
                "'%s' in C; rename one",
                name, op_attr_str(p->functions.data[i].op, "name", ""), f->api);
    return true;
}

static bool add_function(CPrinter *p, const Op *op, const char *stem)
{
    CFunction f = { .op = op, .is_host = op->code == OP_host_proc };
    const char *name = op_attr_str(op, "name", "");
    if (op->n_blocks != 1)
        return c_refuse(p, op, "procedure '%s' has no body", name);
    f.api = api_name(p, stem, name);
    f.run = c_text(p, "exo_run_%s", f.api);
    if (!check_api_name(p, &f, stem))
        return false;
    VEC_PUSH(p->arena, &p->functions, f);
    return true;
}

static bool note_uses(Op *op, void *user)
{
    CPrinter *p = user;
    bool touches = op->code == OP_mem_load || op->code == OP_mem_store ||
                   op->code == OP_mem_reduce || op->code == OP_ctl_call;
    p->has_calls |= op->code == OP_ctl_call;
    p->touches_host |= touches && op_enclosing(op, OP_host_proc);
    for (unsigned i = 0; i < op->n_operands; i++) {
        const Operand *o = &op->operands[i];
        if (o->kind == OPND_value)
            p->used[o->u.value->id] = true;
        if (o->kind == OPND_access)
            p->used[o->u.access->base->id] = true;
    }
    return true;
}

static bool collect(CPrinter *p, const char *stem)
{
    for (Op *op = p->m->body->first; op; op = op->next) {
        if (op->code == OP_async_kernel)
            VEC_PUSH(p->arena, &p->kernels, op);
        if (op->code != OP_host_proc && op->code != OP_ctl_proc)
            continue;
        op_walk(op, note_uses, p);
        if (!add_function(p, op, stem))
            return false;
    }
    if (p->functions.len)
        return true;
    diag_error(p->ctx, (Loc){ 0 }, "c-output",
               "the module has no procedure to print as C");
    return false;
}

/* ---- images --------------------------------------------------------- */

/* The image that holds the kernel, -1 when there is none. */
static int image_of(const CPrinter *p, const Op *kernel)
{
    const char *name = op_attr_str(kernel, "name", "");
    int common = -1;
    for (unsigned i = 0; i < p->opt->n_images; i++) {
        const char *own = p->opt->images[i].kernel;
        if (own && !strcmp(own, name))
            return (int)i;
        if (!own && common < 0)
            common = (int)i;
    }
    return common;
}

static void print_image(const CImage *image, unsigned index, StrBuf *out)
{
    const unsigned char *data = image->data;
    strbuf_addf(out,
                "static const _Alignas(16) unsigned char "
                "exo_image_%u[] = {",
                index);
    for (size_t i = 0; i < image->size; i++)
        strbuf_addf(out, "%s%u,", i % 16 ? "" : "\n    ", data[i]);
    strbuf_add(out, "\n    0};\n\n");
}

static void print_images(CPrinter *p, StrBuf *out)
{
    unsigned n = p->opt->n_images;
    strbuf_addf(out, "/* The kernels, as the driver loads them: %s. */\n",
                n && p->opt->images[0].is_ptx ? "PTX text" : "cubin");
    strbuf_addf(out, "#define EXO_N_IMAGES %u\n\n", n);
    for (unsigned i = 0; i < n; i++)
        print_image(&p->opt->images[i], i, out);
    strbuf_add(out, "static const unsigned char *const "
                    "exo_images[EXO_N_IMAGES + 1] = {");
    for (unsigned i = 0; i < n; i++)
        strbuf_addf(out, "exo_image_%u, ", i);
    strbuf_add(out, "NULL};\n\n");
}

static bool print_kernels(CPrinter *p, StrBuf *out)
{
    strbuf_addf(out, "#define EXO_N_KERNELS %zu\n\n", p->kernels.len);
    strbuf_add(out, "typedef struct exo_kernel {\n"
                    "    const char *name;\n"
                    "    int image;\n"
                    "    unsigned block, cluster, shared_bytes;\n"
                    "    bool dependent; /* may start before those before it "
                    "end: it waits itself */\n"
                    "} exo_kernel;\n\n"
                    "static const exo_kernel exo_kernels[EXO_N_KERNELS + 1] "
                    "= {\n");
    for (size_t i = 0; i < p->kernels.len; i++) {
        const Op *k = p->kernels.data[i];
        const char *name = op_attr_str(k, "name", "");
        int image = image_of(p, k);
        if (image < 0)
            return c_refuse(p, k, "no PTX or cubin was given for kernel '%s'",
                            name);
        int64_t cluster = op_attr_int(k, "clusterDim", 1);
        bool dependent =
            op_attr_int(k, "programmatic_dependent_launch", 0) != 0;
        strbuf_addf(out, "    {%s, %d, %lld, %lld, %lld, %s},\n",
                    c_string(p, name), image,
                    (long long)op_attr_int(k, "blockDim", 1),
                    (long long)(cluster < 1 ? 1 : cluster),
                    (long long)op_attr_int(k, "smem_bytes", 0),
                    dependent ? "true" : "false");
    }
    strbuf_add(out, "    {NULL, 0, 0, 0, 0, false},\n};\n\n");
    return true;
}

/* ---- target --------------------------------------------------------- */

static const char *target(const CPrinter *p)
{
    if (p->opt->arch)
        return p->opt->arch;
    for (size_t i = 0; i < p->kernels.len; i++) {
        const char *arch = op_attr_str(p->kernels.data[i], "arch", NULL);
        if (arch)
            return arch;
    }
    return "";
}

/* Which compute capabilities the images run on: sm_90a on 9.0 alone, PTX for
 * sm_80 on 8.0 and later, a cubin for it on 8.0 to 8.9. */
static void print_target(CPrinter *p, StrBuf *out)
{
    const char *arch = target(p);
    const char *digit = arch + strcspn(arch, "0123456789");
    int number = 0;
    for (; isdigit((unsigned char)*digit) && number < 1000; digit++)
        number = 10 * number + (*digit - '0');
    bool is_ptx = p->opt->n_images && p->opt->images[0].is_ptx;
    strbuf_addf(out, "#define EXO_ARCH %s\n",
                c_string(p, *arch ? arch : "any device"));
    if (number == 0)
        strbuf_add(out, "#define EXO_RUNS_ON(cc) ((cc) > 0)\n\n");
    else if (*digit == 'a')
        strbuf_addf(out, "#define EXO_RUNS_ON(cc) ((cc) == %d)\n\n", number);
    else if (is_ptx)
        strbuf_addf(out, "#define EXO_RUNS_ON(cc) ((cc) >= %d)\n\n", number);
    else
        strbuf_addf(out,
                    "#define EXO_RUNS_ON(cc) ((cc) >= %d && (cc) < "
                    "%d)\n\n",
                    number, number / 10 * 10 + 10);
}

/* ---- the driver's functions ----------------------------------------- */

static void print_symbols(const CPrinter *p, StrBuf *out)
{
    static const struct {
        uint32_t need;
        const char *field, *symbol;
        bool optional;
    } rows[] = {
        { NEED_driver, "Init", "cuInit", false },
        { NEED_driver, "GetErrorName", "cuGetErrorName", false },
        { NEED_driver, "GetErrorString", "cuGetErrorString", false },
        { NEED_driver, "CtxGetCurrent", "cuCtxGetCurrent", false },
        { NEED_driver, "CtxGetId", "cuCtxGetId", true },
        { NEED_driver, "CtxGetDevice", "cuCtxGetDevice", false },
        { NEED_driver, "DeviceGetAttribute", "cuDeviceGetAttribute", false },
        { NEED_driver, "ModuleLoadDataEx", "cuModuleLoadDataEx", false },
        { NEED_driver, "ModuleUnload", "cuModuleUnload", false },
        { NEED_driver, "ModuleGetFunction", "cuModuleGetFunction", false },
        { NEED_driver, "FuncSetAttribute", "cuFuncSetAttribute", false },
        { NEED_driver, "OccupancyMaxActiveBlocksPerMultiprocessor",
          "cuOccupancyMaxActiveBlocksPerMultiprocessor", false },
        { NEED_driver, "OccupancyMaxActiveClusters",
          "cuOccupancyMaxActiveClusters", false },
        { NEED_launch, "LaunchKernelEx", "cuLaunchKernelEx", false },
        { NEED_map, "TensorMapEncodeTiled", "cuTensorMapEncodeTiled", false },
        { NEED_alloc, "MemPoolCreate", "cuMemPoolCreate", false },
        { NEED_alloc, "MemPoolSetAttribute", "cuMemPoolSetAttribute", false },
        { NEED_alloc, "MemPoolDestroy", "cuMemPoolDestroy", false },
        { NEED_alloc, "MemAllocFromPoolAsync", "cuMemAllocFromPoolAsync",
          false },
        { NEED_alloc, "MemFreeAsync", "cuMemFreeAsync", false },
        { NEED_htod, "MemcpyHtoDAsync", "cuMemcpyHtoDAsync_v2", false },
        { NEED_dtoh, "MemcpyDtoHAsync", "cuMemcpyDtoHAsync_v2", false },
        { NEED_dtod, "MemcpyDtoDAsync", "cuMemcpyDtoDAsync_v2", false },
        { NEED_memset, "MemsetD8Async", "cuMemsetD8Async", false },
        { NEED_memset, "MemsetD2D8Async", "cuMemsetD2D8Async", false },
        { NEED_sync, "StreamSynchronize", "cuStreamSynchronize", false },
        { NEED_tune, "StreamIsCapturing", "cuStreamIsCapturing", false },
        { NEED_tune, "ThreadExchangeStreamCaptureMode",
          "cuThreadExchangeStreamCaptureMode", false },
        { NEED_tune, "DeviceGetName", "cuDeviceGetName", false },
        { NEED_tune, "EventCreate", "cuEventCreate", false },
        { NEED_tune, "EventDestroy", "cuEventDestroy_v2", false },
        { NEED_tune, "EventRecord", "cuEventRecord", false },
        { NEED_tune, "EventQuery", "cuEventQuery", false },
        { NEED_tune, "EventSynchronize", "cuEventSynchronize", false },
        { NEED_tune, "EventElapsedTime", "cuEventElapsedTime", false },
    };
    strbuf_add(out, "static const exo_symbol exo_symbols[] = {\n");
    for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].need & p->needs)
            strbuf_addf(out,
                        "    {\"%s\",\n"
                        "     offsetof(exo_driver_table, %s), %s},\n",
                        rows[i].symbol, rows[i].field,
                        rows[i].optional ? "true" : "false");
    strbuf_add(out, "};\n\n");
}

static void print_pieces(const CPrinter *p, const CPiece *pieces, StrBuf *out)
{
    for (; pieces->text; pieces++)
        if (!pieces->needs || (pieces->needs & p->needs))
            strbuf_add(out, pieces->text);
}

/* ---- the files ------------------------------------------------------ */

static const char *upper(CPrinter *p, const char *s)
{
    char *copy = arena_strdup(p->arena, s);
    for (char *c = copy; *c; c++)
        *c = (char)toupper((unsigned char)*c);
    return copy;
}

static bool is_host_library(const CPrinter *p)
{
    for (size_t i = 0; i < p->functions.len; i++)
        if (p->functions.data[i].is_host)
            return true;
    return false;
}

static void print_header(CPrinter *p, const char *stem, const char *protos,
                         StrBuf *out)
{
    const char *guard = c_text(p, "EXO_C_%s_H", upper(p, stem));
    strbuf_addf(out,
                "/* %s: printed by exo %s; do not edit.\n"
                " *\n"
                " * Every function answers EXO_OK or an error; "
                "%s_last_error says what is\n * wrong with which "
                "argument. None exits, prints or keeps its arguments.\n"
                " * All may be called from several threads at once. */\n",
                c_text(p, "%s.h", p->opt->stem), EXO_VERSION, stem);
    strbuf_addf(out, "#ifndef %s\n#define %s\n\n", guard, guard);
    strbuf_add(out, "#include <stdbool.h>\n#include <stdint.h>\n\n"
                    "#ifdef __cplusplus\nextern \"C\" {\n#endif\n\n"
                    "#ifndef EXO_STATUS_CODES\n"
                    "#define EXO_STATUS_CODES\n"
                    "enum {\n"
                    "    EXO_OK = 0,\n"
                    "    EXO_ERROR_ARGUMENT = 1,    /* nothing was done */\n"
                    "    EXO_ERROR_NO_DRIVER = 2,   /* no libcuda.so.1, or too "
                    "old */\n"
                    "    EXO_ERROR_NO_CONTEXT = 3,  /* none current in this "
                    "thread */\n"
                    "    EXO_ERROR_UNSUPPORTED = 4, /* not for this device */\n"
                    "    EXO_ERROR_MEMORY = 5,      /* of the host */\n"
                    "    EXO_ERROR_DRIVER = 6       /* a driver call "
                    "failed */\n"
                    "};\n"
                    "#endif\n");
    strbuf_add(out, protos);
    strbuf_addf(out,
                "\n/* What a code means, in a few words. */\n"
                "const char *%s_error_string(int code);\n\n"
                "/* The message of the last error in this thread. */\n"
                "const char *%s_last_error(void);\n",
                stem, stem);
    if (is_host_library(p))
        strbuf_addf(out,
                    "\n/* Loads the kernels into the current context, which "
                    "otherwise the first call\n * there does. */\n"
                    "int %s_load(void);\n\n"
                    "/* Unloads them from the current context. No work that "
                    "uses them may be under\n * way, no other thread may be "
                    "in a function of this library. */\n"
                    "int %s_unload(void);\n",
                    stem, stem);
    strbuf_add(out, "\n#ifdef __cplusplus\n}\n#endif\n\n#endif\n");
}

static void print_common(CPrinter *p, const char *stem, StrBuf *out)
{
    strbuf_addf(out, "const char *%s_error_string(int code)\n{\n", stem);
    strbuf_add(out, "    switch (code) {\n"
                    "    case EXO_OK:\n"
                    "        return \"no error\";\n"
                    "    case EXO_ERROR_ARGUMENT:\n"
                    "        return \"an argument breaks a rule\";\n"
                    "    case EXO_ERROR_NO_DRIVER:\n"
                    "        return \"there is no CUDA driver, or it is too "
                    "old\";\n"
                    "    case EXO_ERROR_NO_CONTEXT:\n"
                    "        return \"no CUDA context is current\";\n"
                    "    case EXO_ERROR_UNSUPPORTED:\n"
                    "        return \"the kernel does not run on this "
                    "device\";\n"
                    "    case EXO_ERROR_MEMORY:\n"
                    "        return \"out of host memory\";\n"
                    "    case EXO_ERROR_DRIVER:\n"
                    "        return \"a call of the CUDA driver failed\";\n"
                    "    default:\n"
                    "        return \"unknown error\";\n"
                    "    }\n}\n\n");
    strbuf_addf(out,
                "const char *%s_last_error(void)\n{\n"
                "    return exo_message;\n}\n",
                stem);
    if (!is_host_library(p))
        return;
    strbuf_addf(out,
                "\nint %s_load(void)\n{\n"
                "    exo_call exo_this = {\"%s_load\", NULL, NULL};\n"
                "    return exo_enter(&exo_this);\n}\n",
                stem, stem);
    strbuf_addf(out,
                "\nint %s_unload(void)\n{\n"
                "    void *handle = NULL;\n"
                "    unsigned long long id = 0;\n"
                "    int status = exo_current(\"%s_unload\", &handle, "
                "&id);\n"
                "    if (status != EXO_OK)\n"
                "        return status;\n"
                "    pthread_mutex_lock(&exo_lock);\n"
                "    exo_context **at = exo_context_find(handle, id);\n"
                "    exo_context *found = *at;\n"
                "    if (found) {\n"
                "        *at = found->next;\n"
                "        exo_context_unload(found);\n"
                "    }\n"
                "    pthread_mutex_unlock(&exo_lock);\n"
                "    return EXO_OK;\n}\n",
                stem, stem);
}

static void print_includes(CPrinter *p, bool host, StrBuf *out)
{
    strbuf_addf(out, "/* %s.c: printed by exo %s; do not edit. */\n",
                p->opt->stem, EXO_VERSION);
    if (host)
        strbuf_add(out, "#ifndef _POSIX_C_SOURCE\n"
                        "#define _POSIX_C_SOURCE 200809L\n#endif\n\n");
    strbuf_addf(out, "#include \"%s.h\"\n\n", p->opt->stem);
    if (host)
        strbuf_add(out, "#include <dlfcn.h>\n");
    if (p->scalars)
        strbuf_add(out, "#include <math.h>\n");
    if (host)
        strbuf_add(out, "#include <pthread.h>\n");
    strbuf_add(out, "#include <stdarg.h>\n#include <stddef.h>\n"
                    "#include <stdio.h>\n#include <stdlib.h>\n"
                    "#include <string.h>\n\n"
                    "#define EXO_TRY(call)                    \\\n"
                    "    do {                                 \\\n"
                    "        if ((status = (call)) != EXO_OK) \\\n"
                    "            goto done;                   \\\n"
                    "    } while (0)\n\n");
}

static bool print_source(CPrinter *p, const char *stem, const char *bodies,
                         StrBuf *out)
{
    bool host = is_host_library(p);
    print_includes(p, host, out);
    print_pieces(p, c_check_pieces, out);
    c_scalar_print(p, out);
    if (host) {
        print_pieces(p, c_driver_pieces, out);
        print_symbols(p, out);
        print_target(p, out);
        print_images(p, out);
        if (!print_kernels(p, out))
            return false;
        print_pieces(p, c_context_pieces, out);
    }
    for (size_t i = 0; i < p->functions.len && p->has_calls; i++)
        strbuf_addf(out, "%s\n", c_run_prototype(p, &p->functions.data[i]));
    strbuf_add(out, p->has_calls ? "\n" : "");
    strbuf_add(out, bodies);
    print_common(p, stem, out);
    return true;
}

static bool print_functions(CPrinter *p, StrBuf *protos, StrBuf *bodies)
{
    for (size_t i = 0; i < p->functions.len; i++) {
        CFunction *f = &p->functions.data[i];
        p->names.len = 0;
        if (!c_params(p, f) || !c_proc(p, f, bodies))
            return false;
        if (!p->opt->dispatch)
            c_prototype(p, f, protos);
    }
    return !p->failed;
}

static const char *function_name(void *user, const char *proc)
{
    const CPrinter *p = user;
    for (size_t i = 0; i < p->functions.len; i++) {
        const CFunction *f = &p->functions.data[i];
        if (!strcmp(op_attr_str(f->op, "name", ""), proc))
            return f->api;
    }
    panic("a dispatch table names procedure '%s', which is not there", proc);
}

static bool check_stem(CPrinter *p)
{
    const char *s = p->opt->stem;
    bool ok = s && (isalpha((unsigned char)*s));
    for (; ok && *s; s++)
        ok = isalnum((unsigned char)*s) || strchr("_-.", *s);
    if (!ok)
        diag_error(p->ctx, (Loc){ 0 }, "c-output",
                   "the name of the C files must begin with a letter and have "
                   "letters, digits, '_', '-' and '.' only, but is '%s'",
                   p->opt->stem ? p->opt->stem : "");
    return ok;
}

bool c_print_library(Ctx *ctx, const Module *m, const COptions *opt,
                     StrBuf *header, StrBuf *source)
{
    CPrinter p = { .ctx = ctx, .m = m, .opt = opt, .arena = arena_new() };
    StrBuf protos = { 0 }, bodies = { 0 };
    p.n_vars = var_count(m->exprs) + 1;
    p.n_values = m->next_value + 1;
    p.var_name = ARENA_ARRAY(p.arena, const char *, p.n_vars);
    p.var_range = ARENA_ARRAY(p.arena, CRange, p.n_vars);
    p.values = ARENA_ARRAY(p.arena, CValue, p.n_values);
    p.used = ARENA_ARRAY(p.arena, bool, p.n_values);
    bool ok = check_stem(&p);
    const char *stem = ok ? c_identifier(&p, opt->stem) : "";
    ok = ok && collect(&p, stem) && print_functions(&p, &protos, &bodies);
    if (ok && opt->dispatch) {
        c_dispatch_print(opt->dispatch, function_name, &p, &protos, &bodies);
        p.needs |= NEED_tune | NEED_alloc | NEED_memset;
    }
    p.needs |= is_host_library(&p) ? NEED_driver : 0;
    StrBuf text = { 0 };
    ok = ok && print_source(&p, stem, strbuf_text(&bodies), &text);
    if (ok) {
        strbuf_add(source, strbuf_text(&text));
        print_header(&p, stem, strbuf_text(&protos), header);
    }
    strbuf_free(&text);
    strbuf_free(&protos);
    strbuf_free(&bodies);
    arena_free(p.arena);
    return ok;
}
