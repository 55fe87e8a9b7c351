/* A procedure as two C functions: a static one with the body, and the exported
 * one, which fixes the procedure's name and stream for messages and helpers.
 *
 * The body is printed first, into a buffer: what its head declares (the
 * allocations, the overflow flag, the exit label) is known only then. */
#include "codegen/c_emit.h"
#include "passes/abi.h"

#include <string.h>

static const char *join(CPrinter *p, const char *list, const char *item)
{
    return *list ? c_text(p, "%s, %s", list, item) : item;
}

CFunction *c_function(CPrinter *p, const char *procedure)
{
    for (size_t i = 0; i < p->functions.len; i++) {
        CFunction *f = &p->functions.data[i];
        if (!strcmp(op_attr_str(f->op, "name", ""), procedure))
            return f;
    }
    return NULL;
}

/* ---- parameters ----------------------------------------------------- */

static void add_param(CPrinter *p, CFunction *f, const char *type,
                      const char *name)
{
    bool pointer = type[strlen(type) - 1] == '*';
    f->params =
        join(p, f->params, c_text(p, "%s%s%s", type, pointer ? "" : " ", name));
    f->arguments = join(p, f->arguments, name);
}

static void control_param(CPrinter *p, CFunction *f, VarId v)
{
    const Var *var = var_get(p->m->exprs, v);
    const char *name = c_name(p, var->name);
    double limit = (double)ABI_CONTROL_LIMIT;
    bool is_bool = var->kind == VAR_bool;
    add_param(p, f, is_bool ? "bool" : "int64_t", name);
    p->var_name[v] = name;
    p->var_range[v] = is_bool                 ? (CRange){ 0, 1 }
                      : var->kind == VAR_size ? (CRange){ 1, limit }
                                              : (CRange){ -limit, limit };
}

static bool is_grid_constant(const Type *t)
{
    return t->mem && !strcmp(t->mem->name, "CudaGridConstant");
}

static bool tensor_param(CPrinter *p, CFunction *f, Value *v)
{
    const Type *t = v->type;
    const char *mem = t->mem ? t->mem->name : "DRAM";
    bool device = c_is_device(t), constant = is_grid_constant(t);
    if ((t->kind != TK_tensor && t->kind != TK_window) ||
        (!device && !constant && strncmp(mem, "DRAM", 4) != 0))
        return c_refuse(p, f->op,
                        "parameter '%s' of procedure '%s' is in %s, "
                        "which a C caller cannot pass",
                        v->name ? v->name : "?", op_attr_str(f->op, "name", ""),
                        mem);
    if (!scalar_type_bytes(t->elem))
        return c_refuse(p, f->op,
                        "parameter '%s' has type %s, which must be "
                        "resolved first",
                        v->name ? v->name : "?", scalar_type_name(t->elem));
    const char *name = c_name(p, v->name);
    CValue *cv = c_value(p, v);
    *cv = (CValue){ .kind = CV_tensor,
                    .device = device,
                    .name = name,
                    .argument = v->name ? v->name : name };
    cv->by_value = constant && t->rank == 0;
    const char *elem = device ? "void" : c_elem_type(t->elem);
    const char *qualifier = c_writes(p, f->op->blocks[0], v) ? "" : "const ";
    if (cv->by_value)
        add_param(p, f, elem, name);
    else
        add_param(p, f, c_text(p, "%s%s *", qualifier, elem), name);
    if (device)
        cv->name = c_text(p, "(uint64_t)(uintptr_t)%s", name);
    if (t->kind != TK_window)
        return true;
    cv->strides = ARENA_ARRAY(p->arena, const char *, t->rank + 1);
    for (unsigned i = 0; i < t->rank; i++) {
        cv->strides[i] = c_name(p, c_text(p, "%s_stride%u", name, i));
        add_param(p, f, "int64_t", cv->strides[i]);
    }
    return true;
}

bool c_params(CPrinter *p, CFunction *f)
{
    const Block *b = f->op->blocks[0];
    f->params = f->arguments = "";
    for (unsigned i = 0; i < b->n_args; i++) {
        if (!b->args[i].value)
            control_param(p, f, b->args[i].var);
        else if (!tensor_param(p, f, b->args[i].value))
            return false;
    }
    f->stream = f->is_host ? c_name(p, "stream") : NULL;
    return true;
}

/* ---- checks on entry ------------------------------------------------ */

static void check_control(CPrinter *p, VarId v)
{
    const Var *var = var_get(p->m->exprs, v);
    if (var->kind == VAR_bool) {
        c_line(p, "(void)%s;", p->var_name[v]);
        return;
    }
    p->needs |= NEED_control;
    c_try(p, "exo_check_control(%s, %s, %s, %s)", p->procedure,
          c_string(p, var->name), p->var_name[v],
          var->kind == VAR_size ? "1" : "-EXO_CONTROL_LIMIT");
}

/* Extents that could be negative, or give 2^47 bytes or more. */
static bool extent_is_doubtful(CPrinter *p, const Value *v)
{
    double bytes = scalar_type_bytes(v->type->elem);
    for (unsigned i = 0; i < v->type->rank; i++) {
        CRange r = c_range(p, v->shape[i]);
        if (r.lo < 0)
            return true;
        bytes *= r.hi;
    }
    return bytes >= 0x1p47;
}

static void check_extent(CPrinter *p, const Value *v, const CValue *cv)
{
    if (v->type->rank == 0 || !extent_is_doubtful(p, v))
        return;
    const char *extents = "";
    for (unsigned i = 0; i < v->type->rank; i++)
        extents = join(p, extents, c_index(p, v->shape[i]));
    p->needs |= NEED_extent;
    c_try(p, "exo_check_extent(%s, %s, %d, %u, (const int64_t[]){%s})",
          p->procedure, c_string(p, cv->argument),
          scalar_type_bytes(v->type->elem), v->type->rank, extents);
}

static void check_tensor(CPrinter *p, const Value *v)
{
    CValue *cv = c_value(p, v);
    if (cv->by_value) {
        if (!p->used[v->id])
            c_line(p, "(void)%s;", cv->name);
        return;
    }
    const char *pointer = cv->device ? strrchr(cv->name, ')') + 1 : cv->name;
    p->needs |= NEED_pointer;
    c_try(p, "exo_check_pointer(%s, %s, %s, %du)", p->procedure,
          c_string(p, cv->argument), pointer, scalar_type_bytes(v->type->elem));
    for (unsigned i = 0; v->type->kind == TK_window && i < v->type->rank; i++) {
        p->needs |= NEED_control;
        c_try(p, "exo_check_control(%s, %s, %s, -EXO_CONTROL_LIMIT)",
              p->procedure,
              c_string(p, c_text(p, "stride %u of %s", i, cv->argument)),
              cv->strides[i]);
    }
    check_extent(p, v, cv);
    if (!cv->strides)
        cv->strides = c_dense_strides(p, v);
}

static void entry_checks(CPrinter *p, const CFunction *f)
{
    const Block *b = f->op->blocks[0];
    for (unsigned i = 0; i < b->n_args; i++)
        if (!b->args[i].value)
            check_control(p, b->args[i].var);
    for (unsigned i = 0; i < b->n_args; i++)
        if (b->args[i].value)
            check_tensor(p, b->args[i].value);
}

/* ---- the functions -------------------------------------------------- */

static const char *run_params(CPrinter *p, const CFunction *f)
{
    const char *list =
        f->is_host ? join(p, "exo_call *call", f->params) : f->params;
    if (f->is_host && !*f->params)
        list = "exo_call *call";
    return *list ? list : "void";
}

const char *c_run_prototype(CPrinter *p, const CFunction *f)
{
    return c_text(p, "static int %s(%s);", f->run, run_params(p, f));
}

static void print_head(CPrinter *p, const CFunction *f)
{
    c_line(p, "static int %s(%s)", f->run, run_params(p, f));
    c_line(p, "{");
    c_open(p);
    c_line(p, "int status = EXO_OK;");
    if (p->has_overflow)
        c_line(p, "bool overflow = false;");
    for (size_t i = 0; i < p->allocs.len; i++) {
        const CAlloc *a = &p->allocs.data[i];
        if (a->device)
            c_line(p, "uint64_t %s = 0;", a->name);
        else
            c_line(p, "%s *%s = NULL;", a->elem, a->name);
    }
    if (f->is_host && !p->uses_call)
        c_line(p, "(void)call;");
}

static void print_tail(CPrinter *p)
{
    p->indent = 0;
    if (p->may_fail)
        strbuf_add(p->out, "done:\n");
    p->indent = 1;
    for (size_t i = p->allocs.len; i-- > 0;)
        c_release(p, &p->allocs.data[i]);
    c_line(p, "return status;");
    c_close(p);
    c_line(p, "%s", "");
}

static void print_api(CPrinter *p, const CFunction *f)
{
    const char *params = f->params;
    if (f->stream)
        params =
            c_text(p, "%s%svoid *%s", params, *params ? ", " : "", f->stream);
    c_line(p, "%sint %s(%s)", p->opt->dispatch ? "static " : "", f->api,
           *params ? params : "void");
    c_line(p, "{");
    c_open(p);
    if (f->is_host) {
        c_line(p, "exo_call exo_this = {%s, %s, NULL};", p->procedure,
               f->stream);
        c_line(p, "return %s(&exo_this%s%s);", f->run,
               *f->arguments ? ", " : "", f->arguments);
    } else {
        c_line(p, "return %s(%s);", f->run, f->arguments);
    }
    c_close(p);
    c_line(p, "%s", "");
}

bool c_proc(CPrinter *p, CFunction *f, StrBuf *out)
{
    StrBuf body = { 0 };
    p->out = &body;
    p->indent = 1;
    p->is_host = f->is_host;
    p->may_fail = p->has_overflow = p->checked = p->uses_call = false;
    p->allocs.len = 0;
    p->procedure = c_string(p, f->api);
    p->known.len = 0;
    p->function = f;
    f->rules = "";
    entry_checks(p, f);
    bool ok = !p->failed && c_block(p, f->op->blocks[0]);
    p->out = out;
    p->indent = 0;
    if (ok) {
        print_head(p, f);
        strbuf_add(out, strbuf_text(&body));
        print_tail(p);
        print_api(p, f);
    }
    strbuf_free(&body);
    return ok;
}

/* ---- the header ----------------------------------------------------- */

static void describe_tensor(CPrinter *p, const CFunction *f, const Value *v,
                            StrBuf *out)
{
    const CValue *cv = c_value(p, v);
    ExprNames names = { .exo = true };
    const char *elem = scalar_type_name(v->type->elem);
    strbuf_addf(out, " *   %s: %s", cv->argument,
                cv->by_value ? ""
                : cv->device ? "device address of "
                             : "host address of ");
    strbuf_add(out, elem);
    for (unsigned i = 0; i < v->type->rank; i++) {
        strbuf_add(out, i ? ", " : "[");
        affine_print(out, p->m->exprs, v->shape[i], &names, 0);
    }
    if (v->type->rank)
        strbuf_add(out, "]");
    if (!cv->by_value)
        strbuf_add(out, c_writes(p, f->op->blocks[0], v) ? ", written"
                                                         : ", only read");
    if (v->type->kind == TK_window)
        strbuf_add(out, "; strides in elements");
    strbuf_add(out, "\n");
}

void c_prototype(CPrinter *p, const CFunction *f, StrBuf *out)
{
    const Block *b = f->op->blocks[0];
    strbuf_addf(out, "\n/* Procedure %s.\n", op_attr_str(f->op, "name", ""));
    for (unsigned i = 0; i < b->n_args; i++) {
        if (b->args[i].value) {
            describe_tensor(p, f, b->args[i].value, out);
            continue;
        }
        const Var *var = var_get(p->m->exprs, b->args[i].var);
        strbuf_addf(out, " *   %s: %s\n", var->name,
                    var->kind == VAR_size   ? "size, 1 to 2^30"
                    : var->kind == VAR_bool ? "truth value"
                                            : "integer, -2^30 to 2^30");
    }
    if (*f->rules)
        strbuf_addf(out,
                    " * Refuses arguments with one of these messages:\n"
                    "%s",
                    f->rules);
    strbuf_add(out, f->stream
                        ? " * Queued on the stream, a CUstream; NULL is the "
                          "default stream. */\n"
                        : " * Runs on the host. */\n");
    const char *params = f->params;
    if (f->stream)
        params =
            c_text(p, "%s%svoid *%s", params, *params ? ", " : "", f->stream);
    strbuf_addf(out, "int %s(%s);\n", f->api, *params ? params : "void");
}
