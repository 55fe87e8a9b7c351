/* Host ops: argument checks, tensor maps, allocations, copies and fills.
 *
 * A copy of a part of a tensor is as many driver calls as there are pieces of
 * contiguous memory: the trailing dimensions that are taken whole on both
 * sides are one piece, the others loops. Where the procedures touch the host's
 * memory themselves, a copy from or to it is waited for. */
#include "codegen/c_emit.h"

#include "ir/lib.h"

#include <string.h>

/* ---- checks --------------------------------------------------------- */

typedef struct VarList {
    CPrinter *p;
    const char *format, *values;
    VarId seen[8];
    unsigned n;
} VarList;

static void list_var(VarId v, void *user)
{
    VarList *l = user;
    for (unsigned i = 0; i < l->n; i++)
        if (l->seen[i] == v)
            return;
    if (l->n == 8 || !l->p->var_name[v])
        return;
    l->format = c_text(l->p, "%s%s%s = %%lld", l->format, l->n ? ", " : "",
                       var_get(l->p->m->exprs, v)->name);
    l->values = c_text(l->p, "%s, (long long)%s", l->values, l->p->var_name[v]);
    l->seen[l->n++] = v;
}

/* The text with each `%` doubled, for a printf format. */
static const char *percent_safe(CPrinter *p, const char *s)
{
    char *out = ARENA_ARRAY(p->arena, char, 2 * strlen(s) + 1), *c = out;
    for (; *s; s++) {
        if (*s == '%')
            *c++ = '%';
        *c++ = *s;
    }
    return out;
}

/* A line of the header that quotes the message. */
static void add_rule(CPrinter *p, const char *message)
{
    char *text = arena_strdup(p->arena, message);
    for (char *c = text; *c; c++)
        if ((unsigned char)*c < 32 || (c[0] == '*' && c[1] == '/'))
            *c = ' ';
    p->function->rules = c_text(p, "%s *   \"%s\"\n", p->function->rules, text);
}

static bool is_known(const CPrinter *p, const Cond *cond)
{
    for (size_t i = 0; i < p->known.len; i++)
        if (p->known.data[i] == cond)
            return true;
    return false;
}

bool c_check(CPrinter *p, const Cond *cond, const char *message,
             const char *argument)
{
    if (c_implied(p, cond) || is_known(p, cond))
        return true;
    if (argument && !strstr(message, argument))
        message = c_text(p, "%s: %s", argument, message);
    if (p->indent == 1) {
        VEC_PUSH(p->arena, &p->known, cond);
        add_rule(p, message);
    }
    const char *text = c_condition(p, cond);
    VarList l = { .p = p, .format = "", .values = "" };
    cond_walk_vars(cond, list_var, &l);
    const char *format = percent_safe(p, message);
    if (l.n)
        format = c_text(p, "%s (%s)", format, l.format);
    p->may_fail = true;
    c_line(p, "if (!(%s)) {", text);
    c_open(p);
    c_line(p, "status = exo_fail(%s, EXO_ERROR_ARGUMENT,", p->procedure);
    c_line(p, "                  %s%s);", c_string(p, format), l.values);
    c_line(p, "goto done;");
    c_close(p);
    return !p->failed;
}

static const char *cond_tensor(const ExprNames *n, const void *value)
{
    const Value *v = value;
    (void)n;
    return v->name ? v->name : "?";
}

static bool print_assert(CPrinter *p, const Op *op)
{
    StrBuf b = { 0 };
    ExprNames names = { .exo = true, .tensor = cond_tensor };
    cond_print(&b, p->m->exprs, op->operands[0].u.cond, &names, 0);
    const char *message =
        c_text(p, "the precondition %s does not hold", strbuf_text(&b));
    strbuf_free(&b);
    return c_check(p, op->operands[0].u.cond, message, NULL);
}

static bool print_align_check(CPrinter *p, const Op *op)
{
    const Value *v = op->operands[0].u.value;
    const CValue *cv = c_value(p, v);
    if (cv->kind != CV_tensor)
        return c_refuse(p, op, "'host.align_check' needs a tensor");
    const char *address =
        cv->device ? cv->name : c_text(p, "(uint64_t)(uintptr_t)%s", cv->name);
    if (cv->offset)
        address = c_text(p, "%s + %du * (uint64_t)(%s)", address,
                         scalar_type_bytes(v->type->elem), cv->offset);
    int64_t bytes = op_attr_int(op, "bytes", 1);
    const char *message = op_attr_str(op, "message", "misaligned address");
    p->needs |= NEED_align;
    if (p->indent == 1)
        add_rule(p, message);
    c_try(p, "exo_check_align(%s, %s, %lldu, %s)", p->procedure, address,
          (long long)(bytes < 1 ? 1 : bytes), c_string(p, message));
    return true;
}

/* ---- tensor maps ---------------------------------------------------- */

/* The i-th interval dimension of an access, or -1. */
static int interval_dim(const Access *a, unsigned i)
{
    for (unsigned d = 0; d < a->rank; d++)
        if (a->dims[d].kind == DIM_interval && i-- == 0)
            return (int)d;
    return -1;
}

static bool map_params(CPrinter *p, const Op *op, const Type *t, unsigned rank)
{
    const MemRef *mem = t->mem;
    if (!mem || mem->n_params != rank + 1 || rank < 1 || rank > 5)
        return c_refuse(p, op,
                        "'host.tensor_map' of %u dimensions must have "
                        "a memory Sm90_tensorMap with a swizzle and as "
                        "many box sizes",
                        rank);
    for (unsigned i = 0; i <= rank; i++)
        if (mem->params[i].kind != PARAM_int)
            return c_refuse(p, op,
                            "'host.tensor_map' swizzle and box must be "
                            "integers");
    if (scalar_info(t->elem)->tensor_map < 0)
        return c_refuse(p, op,
                        "'host.tensor_map' cannot hold elements of "
                        "type %s",
                        scalar_type_name(t->elem));
    return true;
}

/* CUtensorMapDataType. */
static int map_type(const CPrinter *p, const Type *t)
{
    return lib_rounds_tf32(p->m->lib, t->mem)
               ? SCALAR_TENSOR_MAP_TF32
               : scalar_info(t->elem)->tensor_map;
}

static bool print_tensor_map(CPrinter *p, const Op *op)
{
    const Access *a = op->operands[0].u.access;
    const CValue *base = c_value(p, a->base);
    const Type *t = op->results[0]->type;
    unsigned rank = 0;
    while (interval_dim(a, rank) >= 0)
        rank++;
    if (base->kind != CV_tensor || !base->device)
        return c_refuse(p, op,
                        "'host.tensor_map' needs a tensor in "
                        "CudaGmemLinear");
    if (!map_params(p, op, t, rank))
        return false;
    const char *dims = "", *strides = "", *box = "";
    for (unsigned i = rank; i-- > 0;) { /* innermost first */
        const char *comma = i + 1 < rank ? ", " : "";
        const AccessDim *d = &a->dims[interval_dim(a, i)];
        dims = c_text(p, "%s%s%s", dims, comma, c_index(p, d->len));
        strides = c_text(p, "%s%s%s", strides, comma,
                         base->strides[interval_dim(a, i)]);
        box = c_text(p, "%s%s%lld", box, comma,
                     (long long)t->mem->params[i + 1].i);
    }
    const char *address = c_address(p, a);
    const char *name = c_name(p, op->results[0]->name);
    *c_value(p, op->results[0]) =
        (CValue){ .kind = CV_map, .name = name, .argument = base->argument };
    p->needs |= NEED_map | NEED_driver;
    p->uses_call = true;
    c_line(p, "exo_tensor_map %s;", name);
    c_line(p, "{");
    c_open(p);
    c_line(p, "const int64_t exo_dims[] = {%s};", dims);
    c_line(p, "const int64_t exo_strides[] = {%s};", strides);
    c_line(p, "const uint32_t exo_box[] = {%s};", box);
    c_try(p,
          "exo_encode(call, &%s, %s, %d, %d, %u, %s, exo_dims, exo_strides, "
          "exo_box, %lld)",
          name, c_string(p, base->argument), map_type(p, t),
          scalar_type_bytes(t->elem), rank, address,
          (long long)t->mem->params[0].i);
    c_close(p);
    return !p->failed;
}

/* ---- allocations ---------------------------------------------------- */

/* The product of the extents, in elements. */
static const char *element_count(CPrinter *p, const Value *v)
{
    const Affine *n = affine_const(p->m->exprs, 1);
    for (unsigned i = 0; i < v->type->rank; i++)
        n = affine_mul(p->m->exprs, n, v->shape[i]);
    if (n)
        return c_index(p, n);
    diag_error(p->ctx, v->def ? v->def->loc : (Loc){ 0 }, "c-output",
               "the size of '%s' is too large", v->name ? v->name : "?");
    p->failed = true;
    return "0";
}

/* Memory of the host itself: a grid constant is copied at the launch. */
static bool is_of_host(const Type *t)
{
    return !t->mem || !strncmp(t->mem->name, "DRAM", 4) ||
           !strcmp(t->mem->name, "CudaGridConstant");
}

bool c_alloc(CPrinter *p, const Op *op)
{
    const Value *v = op->results[0];
    const Type *t = v->type;
    bool device = c_is_device(t);
    if (!device && !is_of_host(t))
        return c_refuse(p, op, "'%s' in %s cannot be allocated by the host",
                        v->name ? v->name : "a tensor", t->mem->name);
    CValue *cv = c_value(p, v);
    *cv = (CValue){ .kind = CV_tensor,
                    .device = device,
                    .argument = v->name ? v->name : "a temporary" };
    if (!device && t->rank == 0) {
        cv->by_value = true;
        cv->name = c_name(p, v->name);
        c_line(p, "%s %s = 0;", c_elem_type(t->elem), cv->name);
        if (!p->used[v->id])
            c_line(p, "(void)%s;", cv->name);
        return true;
    }
    const char *count = element_count(p, v);
    cv->strides = c_dense_strides(p, v);
    cv->name = c_alloc_name(p, v->name, device);
    CAlloc *a = &p->allocs.data[p->allocs.len - 1];
    a->elem = c_elem_type(t->elem);
    if (device) {
        p->needs |= NEED_alloc | NEED_driver;
        p->uses_call = true;
        c_try(p, "exo_alloc(call, &%s, %s, %du)", cv->name, count,
              scalar_type_bytes(t->elem));
    } else {
        p->needs |= NEED_host_alloc;
        c_line(p, "%s = exo_host_alloc(%s, sizeof *%s);", cv->name, count,
               cv->name);
        p->may_fail = true;
        c_line(p, "if (!%s) {", cv->name);
        c_open(p);
        c_line(p,
               "status = exo_fail(%s, EXO_ERROR_MEMORY, \"no memory for "
               "%%s\", %s);",
               p->procedure, c_string(p, cv->argument));
        c_line(p, "goto done;");
        c_close(p);
    }
    return !p->failed;
}

void c_release(CPrinter *p, const CAlloc *a)
{
    if (a->device) {
        c_line(p, "exo_release(call, &%s);", a->name);
    } else {
        c_line(p, "exo_host_free(%s);", a->name);
        c_line(p, "%s = NULL;", a->name);
    }
}

/* ---- copies and fills ----------------------------------------------- */

/* One side of a copy, seen on its root. */
typedef struct Side {
    const Access *a;
    const CValue *base;
    const char *offset;
} Side;

static bool side_of(CPrinter *p, const Op *op, unsigned i, bool device, Side *s)
{
    s->a = access_compose((Module *)p->m, op->operands[i].u.access);
    s->base = c_value(p, s->a->base);
    if (s->base->kind != CV_tensor || s->base->device != device)
        return c_refuse(p, op,
                        "'host.%s' operand %u must be a tensor of the "
                        "%s",
                        op_info(op->code)->name, i, device ? "GPU" : "host");
    s->offset = c_offset(p, s->a);
    return true;
}

static bool is_full(const Access *a, int d)
{
    int64_t lo;
    return a->base->type->kind == TK_tensor &&
           affine_is_const(a->dims[d].lo, &lo) && lo == 0 &&
           a->dims[d].len == a->base->shape[d];
}

/* Is interval i one piece of memory with the intervals after it? */
static bool is_contiguous(const Access *a, unsigned i, unsigned n)
{
    int d = interval_dim(a, i);
    if (i + 1 == n)
        return d == (int)a->rank - 1;
    return d + 1 == interval_dim(a, i + 1) && is_full(a, d + 1);
}

static unsigned n_intervals(const Access *a)
{
    unsigned n = 0;
    while (interval_dim(a, n) >= 0)
        n++;
    return n;
}

/* A window parameter must have 1 as its last stride to be copied by pieces. */
static void check_unit_stride(CPrinter *p, const Side *s)
{
    const Value *v = s->a->base;
    if (v->type->kind != TK_window || v->type->rank == 0)
        return;
    const Affine *stride = affine_stride(p->m->exprs, v, v->type->rank - 1);
    const Affine *one = affine_const(p->m->exprs, 1);
    c_check(
        p, cond_cmp(p->m->exprs, CMP_eq, stride, one),
        c_text(p, "the innermost stride of %s must be 1", s->base->argument),
        s->base->argument);
}

static const char *side_text(CPrinter *p, const Side *s)
{
    const char *offset = s->offset ? s->offset : "0";
    if (s->base->device && !s->offset)
        return s->base->name;
    if (!s->base->device)
        return s->base->by_value ? c_text(p, "&%s", s->base->name)
                                 : c_text(p, "&%s[%s]", s->base->name, offset);
    return c_text(p, "%s + %du * (uint64_t)(%s)", s->base->name,
                  scalar_type_bytes(s->a->base->type->elem), offset);
}

/* Opens loops over the intervals that are no part of the piece, moves the
 * sides' offsets by their variables; answers how many. */
static unsigned open_loops(CPrinter *p, unsigned n_sides, Side *sides,
                           unsigned first_piece)
{
    for (unsigned i = 0; i < first_piece; i++) {
        const Access *a = sides[0].a;
        const char *len = c_index(p, a->dims[interval_dim(a, i)].len);
        const char *v = c_name(p, "i");
        c_line(p, "for (int64_t %s = 0; %s < %s; %s++) {", v, v, len, v);
        c_open(p);
        for (unsigned s = 0; s < n_sides; s++) {
            int d = interval_dim(sides[s].a, i);
            sides[s].offset = c_plus(p, sides[s].offset,
                                     c_times(p, v, sides[s].base->strides[d]));
        }
    }
    return first_piece;
}

static const char *piece_bytes(CPrinter *p, const Access *a, unsigned first)
{
    const char *bytes = c_text(p, "%d", scalar_type_bytes(a->base->type->elem));
    for (unsigned i = first; interval_dim(a, i) >= 0; i++)
        bytes = c_times(p, bytes, c_index(p, a->dims[interval_dim(a, i)].len));
    return c_text(p, "(uint64_t)(%s)", bytes);
}

/* The first interval of the piece of memory that all sides end in. */
static unsigned first_of_piece(unsigned n, unsigned n_sides, const Side *sides)
{
    unsigned first = n;
    for (bool more = true; more && first > 0;) {
        for (unsigned s = 0; s < n_sides && more; s++)
            more = is_contiguous(sides[s].a, first - 1, n);
        first -= more;
    }
    return first;
}

static bool print_move(CPrinter *p, const Op *op, unsigned n_sides, Side *sides,
                       const char *helper)
{
    unsigned n = n_intervals(sides[0].a);
    if (n_sides == 2 && n_intervals(sides[1].a) != n)
        return c_refuse(p, op,
                        "'host.copy' operands must have equally many "
                        "intervals");
    unsigned first = first_of_piece(n, n_sides, sides);
    size_t scope = c_scope(p);
    for (unsigned s = 0; s < n_sides; s++)
        check_unit_stride(p, &sides[s]);
    unsigned loops = open_loops(p, n_sides, sides, first);
    const char *list = side_text(p, &sides[0]);
    if (n_sides == 2)
        list = c_text(p, "%s, %s", list, side_text(p, &sides[1]));
    p->uses_call = true;
    p->needs |= NEED_driver;
    c_try(p, "%s(call, %s, %s)", helper, list,
          piece_bytes(p, sides[0].a, first));
    for (unsigned i = 0; i < loops; i++)
        c_close(p);
    if (n_sides == 2 && sides[0].base->device != sides[1].base->device &&
        p->touches_host) {
        p->needs |= NEED_sync;
        c_try(p, "exo_wait(call)");
    }
    c_scope_end(p, scope);
    return !p->failed;
}

static bool print_copy(CPrinter *p, const Op *op)
{
    static const struct {
        const char *direction, *helper;
        bool to_device, from_device;
        CNeed need;
    } rows[] = {
        { "htod", "exo_copy_htod", true, false, NEED_htod },
        { "dtoh", "exo_copy_dtoh", false, true, NEED_dtoh },
        { "dtod", "exo_copy_dtod", true, true, NEED_dtod },
    };
    const char *direction = op_attr_str(op, "direction", "");
    for (unsigned i = 0; i < 3; i++) {
        if (strcmp(rows[i].direction, direction) != 0)
            continue;
        Side sides[2] = { { 0 } };
        p->needs |= rows[i].need;
        return side_of(p, op, 0, rows[i].to_device, &sides[0]) &&
               side_of(p, op, 1, rows[i].from_device, &sides[1]) &&
               print_move(p, op, 2, sides, rows[i].helper);
    }
    return c_refuse(p, op,
                    "'host.copy' direction must be htod, dtoh or dtod, "
                    "but is '%s'",
                    direction);
}

/* Pieces of memory that one interval sets apart are cleared by one call. */
static bool print_memset(CPrinter *p, const Op *op)
{
    Side side = { 0 };
    p->needs |= NEED_memset | NEED_driver;
    if (!side_of(p, op, 0, true, &side))
        return false;
    const Access *a = side.a;
    unsigned first = first_of_piece(n_intervals(a), 1, &side);
    const char *pitch = "0", *rows = "1";
    size_t scope = c_scope(p);
    check_unit_stride(p, &side);
    if (first > 0) {
        int d = interval_dim(a, first - 1);
        pitch =
            c_times(p, side.base->strides[d],
                    c_text(p, "%d", scalar_type_bytes(a->base->type->elem)));
        rows = c_index(p, a->dims[d].len);
    }
    unsigned loops = open_loops(p, 1, &side, first ? first - 1 : 0);
    p->uses_call = true;
    c_try(p, "exo_clear(call, %s, %s, %s, %s)", side_text(p, &side), pitch,
          piece_bytes(p, a, first), rows);
    for (unsigned i = 0; i < loops; i++)
        c_close(p);
    c_scope_end(p, scope);
    return !p->failed;
}

bool c_host_op(CPrinter *p, const Op *op)
{
    switch (op->code) {
    case OP_host_check:
        return c_check(p, op->operands[0].u.cond,
                       op_attr_str(op, "message", "an argument check failed"),
                       op_attr_str(op, "argument", NULL));
    case OP_ctl_assert:
        return print_assert(p, op);
    case OP_host_align_check:
        return print_align_check(p, op);
    case OP_host_tensor_map:
        return print_tensor_map(p, op);
    case OP_host_alloc:
        return c_alloc(p, op);
    case OP_host_copy:
        return print_copy(p, op);
    case OP_host_memset:
        return print_memset(p, op);
    default:
        return c_refuse(p, op, "'%s.%s' has no form in C",
                        op_info(op->code)->dialect, op_info(op->code)->name);
    }
}

static bool only_looks(const Op *op)
{
    switch (op->code) {
    case OP_ctl_assert:
    case OP_ctl_pass:
    case OP_host_check:
    case OP_host_align_check:
    case OP_host_tensor_map:
    case OP_mem_window:
        return true;
    default:
        return false;
    }
}

const Op *c_prologue(CPrinter *p, const Block *b)
{
    const Op *end = b->first;
    bool ok = true;
    for (; end && only_looks(end) && ok; end = end->next)
        if (end->code == OP_mem_window)
            ok = c_window(p, end);
        else if (end->code != OP_ctl_pass && end->code != OP_host_tensor_map)
            ok = c_host_op(p, end);
    for (const Op *op = b->first; op != end && ok; op = op->next)
        if (op->code == OP_host_tensor_map)
            ok = c_host_op(p, op);
    return ok ? end : NULL;
}
