/* Statements and procedures of the .exo printer.
 *
 * Statements print one a line in block order. The ops that make a data value
 * stand between statements and print inside the next one; a value that is used
 * elsewhere too is given a variable of its own first, so that what prints means
 * the same after any pass. */
#include "ir/exo_print.h"

#include "ir/lib_entry.h"

#include <string.h>

static void print_block(ExoPrinter *p, const Block *b);

/* For the listing: what prints from here on is op's. */
static void note_mark(ExoPrinter *p, const Op *op)
{
    if (!p->listing)
        return;
    ExoMark m = { op, p->out->len, 0 };
    size_t n = p->listing->marks.len;
    if (n)
        p->listing->marks.data[n - 1].end = p->out->len;
    VEC_PUSH(p->arena, &p->listing->marks, m);
    p->stmt = op;
}

/* ---- comments, names --------------------------------------------------- */

static void print_comment(ExoPrinter *p, const char *comment)
{
    const char *s = comment ? comment : "";
    if (strcmp(s, " ") == 0)
        s = "";
    while (*s) {
        size_t n = strcspn(s, "\n");
        for (unsigned i = 0; i < 4 * p->indent; i++)
            strbuf_addc(p->out, ' ');
        strbuf_add(p->out, n ? "# " : "#");
        strbuf_addn(p->out, s, n);
        strbuf_addc(p->out, '\n');
        s += n + (s[n] != 0);
    }
}

static const char *var_name(const ExprNames *n, VarId v)
{
    ExoPrinter *p = n->user;
    if (p->var_names[v])
        return p->var_names[v];
    exo_print_refuse(p, (Loc){ 0 }, "a variable used outside its scope");
    return "?";
}

static const char *tensor_name(const ExprNames *n, const void *value)
{
    ExoPrinter *p = n->user;
    const Value *v = value;
    const char *name = p->value_names[v->id];
    if (!name)
        exo_print_refuse(p, (Loc){ 0 }, "a tensor used outside its scope");
    return name ? name : "?";
}

static uint32_t var_rank(const ExprNames *n, VarId v)
{
    const ExoPrinter *p = n->user;
    return p->var_ranks[v];
}

/* ---- types ------------------------------------------------------------- */

static bool is_sum(const char *s)
{
    int depth = 0;
    for (const char *c = s; *c; c++) {
        depth += (*c == '(') - (*c == ')');
        if (depth == 0 && *c == ' ' && (c[1] == '+' || c[1] == '-'))
            return true;
    }
    return *s == '-';
}

static void print_ring_extent(ExoPrinter *p, const Affine *e, int64_t depth)
{
    size_t at = p->line.len;
    exo_print_index(p, e);
    const char *text = arena_strdup(p->arena, p->line.data + at);
    p->line.len = at;
    strbuf_addf(&p->line, is_sum(text) ? "(%s)" : "%s", text);
    strbuf_addf(&p->line, " @ (ring_buffer_by(depth=%lld))", (long long)depth);
}

static void print_type(ExoPrinter *p, const Value *v)
{
    const Type *t = v->type;
    bool window = t->kind == TK_window || t->kind == TK_map;
    const char *elem =
        t->kind == TK_barrier ? "barrier" : scalar_type_name(t->elem);
    strbuf_addf(&p->line, window && t->rank ? "[%s]" : "%s", elem);
    for (unsigned i = 0; i < t->rank; i++) {
        strbuf_add(&p->line, i ? ", " : "[");
        if (v->ring_dim == (int)i)
            print_ring_extent(p, v->shape[i], v->ring_depth);
        else
            exo_print_index(p, v->shape[i]);
    }
    if (t->rank)
        strbuf_addc(&p->line, ']');
    if (v->ring_guard) {
        const char *guard = p->value_names[v->ring_guard->id];
        strbuf_addf(&p->line, ".ring_guarded_by(%s)", guard ? guard : "?");
    }
    if (t->mem) {
        strbuf_add(&p->line, " @ ");
        memref_print(&p->line, t->mem, true);
    }
}

/* ---- with -------------------------------------------------------------- */

static void print_option(ExoPrinter *p, const char *key, const char *value,
                         bool *first)
{
    strbuf_add(&p->line, *first ? "" : ", ");
    if (key)
        strbuf_addf(&p->line, "%s=", key);
    strbuf_add(&p->line, value);
    *first = false;
}

static void print_int_option(ExoPrinter *p, const Op *op, const char *key,
                             bool *first)
{
    if (op_attr(op, key))
        print_option(
            p, key,
            arena_printf(p->arena, "%lld", (long long)op_attr_int(op, key, 0)),
            first);
}

static const char *param_text(ExoPrinter *p, const Param *param)
{
    StrBuf b = { 0 };
    Param bare = *param;
    bare.name = NULL;
    param_print(&b, &bare);
    const char *s = arena_strdup(p->arena, strbuf_text(&b));
    strbuf_free(&b);
    return s;
}

static void print_warp_config(ExoPrinter *p, const Param *list)
{
    static const char *const keys[] = { "name", "count", "setmaxnreg_dec",
                                        "setmaxnreg_inc" };
    strbuf_add(&p->line, "warp_config=[");
    for (unsigned i = 0; i < list->n; i++) {
        const Param *w = &list->items[i];
        strbuf_add(&p->line, i ? ", CudaWarpConfig(" : "CudaWarpConfig(");
        for (unsigned k = 0; k < w->n && k < 4; k++)
            strbuf_addf(&p->line, "%s%s=%s", k ? ", " : "", keys[k],
                        param_text(p, &w->items[k]));
        strbuf_addc(&p->line, ')');
    }
    strbuf_addc(&p->line, ']');
}

static void print_device(ExoPrinter *p, const Op *op)
{
    bool first = true;
    const Param *config = op_attr_param(op, "warp_config");
    strbuf_add(&p->line, "with CudaDeviceFunction(");
    print_int_option(p, op, "blockDim", &first);
    if (op_attr_int(op, "clusterDim", 1) != 1)
        print_int_option(p, op, "clusterDim", &first);
    if (op_attr_int(op, "blocks_per_sm", 1) != 1)
        print_int_option(p, op, "blocks_per_sm", &first);
    if (config) {
        strbuf_add(&p->line, first ? "" : ", ");
        print_warp_config(p, config);
        first = false;
    }
    if (op_attr_int(op, "unsafe_no_shutdown_cluster_sync", 0))
        print_option(p, "unsafe_no_shutdown_cluster_sync", "True", &first);
    if (op_attr_int(op, "programmatic_dependent_launch", 0))
        print_option(p, "programmatic_dependent_launch", "True", &first);
    strbuf_add(&p->line, "):");
    exo_print_line(p);
}

static void print_warps(ExoPrinter *p, const Op *op)
{
    static const char *const keys[] = { "lo", "hi", "name" };
    bool first = true, positional = true;
    strbuf_add(&p->line, "with CudaWarps(");
    for (unsigned i = 0; i < 3; i++) {
        const Param *a = op_attr_param(op, keys[i]);
        positional &= a != NULL && i < 2;
        if (a)
            print_option(p, positional ? NULL : keys[i], param_text(p, a),
                         &first);
    }
    strbuf_add(&p->line, "):");
    exo_print_line(p);
}

/* ---- loops, conditions ------------------------------------------------- */

static void print_nested(ExoPrinter *p, const Block *b)
{
    size_t mark = build_mark(&p->names);
    p->indent++;
    print_block(p, b);
    p->indent--;
    build_close(&p->names, mark);
}

static void print_for(ExoPrinter *p, const Op *op)
{
    const char *mode = op_attr_str(op, "mode", "seq");
    bool cuda = strcmp(mode, "seq") != 0 && strcmp(mode, "par") != 0;
    const Block *body = op->blocks[0];
    size_t mark = build_mark(&p->names);
    if (op->n_results || op->n_operands != 2 || body->n_args != 1) {
        exo_print_refuse(p, op->loc, "a loop that carries values");
        return;
    }
    /* The bounds are outside the iterator's scope; its name is not. */
    StrBuf head = p->line;
    p->line = (StrBuf){ 0 };
    strbuf_addf(&p->line, " in %s%s(", cuda ? "cuda_" : "", mode);
    exo_print_index(p, op->operands[0].u.index);
    strbuf_add(&p->line, ", ");
    exo_print_index(p, op->operands[1].u.index);
    const Attr *unit = op_attr(op, "unit");
    const Param *unroll = op_attr_param(op, "pragma_unroll");
    if (unit && unit->kind == ATTR_unit) {
        strbuf_add(&p->line, ", unit=");
        unitref_print(&p->line, unit->unit);
    }
    if (unroll && unroll->kind == PARAM_int)
        strbuf_addf(&p->line, ", pragma_unroll=%lld", (long long)unroll->i);
    if (op_attr(op, "group"))
        strbuf_addf(&p->line, ", group=%lld",
                    (long long)op_attr_int(op, "group", 1));
    strbuf_add(&p->line, "):");
    StrBuf range = p->line;
    p->line = head;
    strbuf_addf(&p->line, "for %s%s", exo_name_var(p, body->args[0].var),
                strbuf_text(&range));
    strbuf_free(&range);
    exo_print_line(p);
    print_nested(p, body);
    build_close(&p->names, mark);
}

/* `word cond`, in brackets where the line is too long without. */
static void print_condition(ExoPrinter *p, const char *word, const Cond *c,
                            const char *end)
{
    exo_print_cond(p, c);
    StrBuf cond = p->line;
    p->line = (StrBuf){ 0 };
    size_t columns = 4 * p->indent + strlen(word) + cond.len + strlen(end);
    strbuf_addf(&p->line, columns > 79 ? "%s(%s)%s" : "%s%s%s", word,
                strbuf_text(&cond), end);
    strbuf_free(&cond);
    exo_print_line(p);
}

static void print_if(ExoPrinter *p, const Op *op)
{
    if (op->n_results) {
        exo_print_refuse(p, op->loc, "an if that gives values");
        return;
    }
    print_condition(p, "if ", op->operands[0].u.cond, ":");
    print_nested(p, op->blocks[0]);
    if (op->n_blocks == 1)
        return;
    note_mark(p, NULL);
    strbuf_add(&p->line, "else:");
    exo_print_line(p);
    print_nested(p, op->blocks[1]);
}

/* ---- memory ------------------------------------------------------------ */

static void print_alloc(ExoPrinter *p, const Op *op)
{
    const Value *v = op->results[0];
    if (op_attr(op, "offset") || v->type->kind == TK_mbarrier) {
        exo_print_refuse(p, op->loc, "an object of level async");
        return;
    }
    print_type(p, v);
    StrBuf type = p->line;
    p->line = (StrBuf){ 0 };
    strbuf_addf(&p->line, "%s: %s", exo_name_value(p, v), strbuf_text(&type));
    strbuf_free(&type);
    exo_print_line(p);
}

static void print_window(ExoPrinter *p, const Op *op)
{
    const Value *v = op->results[0];
    const Access *a = op->operands[0].u.access;
    if (v->type->rank == 0) {
        exo_print_refuse(p, op->loc, "a window without dimensions");
        return;
    }
    exo_print_access(p, a);
    if (v->type->kind == TK_map && a->base->type->kind != TK_map) {
        strbuf_add(&p->line, " @ ");
        memref_print(&p->line, v->type->mem, true);
    }
    StrBuf right = p->line;
    p->line = (StrBuf){ 0 };
    strbuf_addf(&p->line, "%s = %s", exo_name_value(p, v), strbuf_text(&right));
    strbuf_free(&right);
    exo_print_line(p);
}

static void print_assign(ExoPrinter *p, const Op *op)
{
    const Access *a = op->operands[0].u.access;
    ScalarType t = a->base->type->elem;
    exo_print_access(p, a);
    if (op->code == OP_mem_store) {
        strbuf_add(&p->line, " = ");
        exo_print_data(p, op->operands[1].u.value, t, true);
    } else {
        strbuf_add(&p->line, " += ");
        if (op->n_operands == 3)
            exo_print_product(p, op->operands[1].u.value,
                              op->operands[2].u.value);
        else
            exo_print_addend(p, op->operands[1].u.value, t);
    }
    exo_print_line(p);
}

static void print_config(ExoPrinter *p, const Op *op)
{
    Value *v = op->operands[0].u.value;
    strbuf_addf(&p->line, "%s = ", op_attr_str(op, "field", "?"));
    exo_print_data(p, v, v->type->elem, false);
    exo_print_line(p);
}

/* ---- synchronisation, calls -------------------------------------------- */

static void print_barriers(ExoPrinter *p, const Op *op, unsigned from)
{
    for (unsigned i = from; i < op->n_operands; i++) {
        strbuf_add(&p->line, " >> ");
        exo_print_access(p, op->operands[i].u.access);
    }
    exo_print_line(p);
}

static void print_await(ExoPrinter *p, const Op *op)
{
    int64_t n = op_attr_int(op, "n", 0);
    strbuf_add(&p->line, "Await(");
    exo_print_access(p, op->operands[0].u.access);
    strbuf_addf(&p->line, ", %s, %s%lld)", op_attr_str(op, "second", "?"),
                n < 0 ? "~" : "", (long long)(n < 0 ? ~n : n));
    exo_print_line(p);
}

static void print_argument(ExoPrinter *p, const Operand *o)
{
    switch (o->kind) {
    case OPND_access:
        exo_print_access(p, o->u.access);
        break;
    case OPND_index:
        exo_print_index(p, o->u.index);
        break;
    case OPND_cond:
        exo_print_cond(p, o->u.cond);
        break;
    case OPND_value:
        exo_print_data(p, o->u.value, o->u.value->type->elem, false);
        break;
    }
}

static void print_call(ExoPrinter *p, const Op *op)
{
    bool trailing = op_attr_int(op, "trailing", 0) != 0 && op->n_operands;
    unsigned n = op->n_operands - trailing;
    const Param *targs = op_attr_param(op, "targs");
    strbuf_addf(&p->line, "%s(", op_attr_str(op, "callee", "?"));
    for (unsigned i = 0; i < n; i++) {
        strbuf_add(&p->line, i ? ", " : "");
        print_argument(p, &op->operands[i]);
    }
    for (unsigned i = 0; targs && i < targs->n; i++) {
        strbuf_addf(&p->line, "%s%s=", i || n ? ", " : "",
                    targs->items[i].name ? targs->items[i].name : "?");
        exo_print_param(p, &targs->items[i]);
    }
    strbuf_addc(&p->line, ')');
    print_barriers(p, op, n);
}

/* ---- dispatch ---------------------------------------------------------- */

static void print_stmt(ExoPrinter *p, const Op *op)
{
    bool outer = p->in_device;
    print_comment(p, op->comment);
    note_mark(p, op);
    p->noted = op;
    switch (op->code) {
    case OP_ctl_assert:
        print_condition(p, "assert ", op->operands[0].u.cond, "");
        break;
    case OP_ctl_for:
        print_for(p, op);
        break;
    case OP_ctl_if:
        print_if(p, op);
        break;
    case OP_ctl_pass:
        strbuf_add(&p->line, "pass");
        exo_print_line(p);
        break;
    case OP_mem_alloc:
        print_alloc(p, op);
        break;
    case OP_mem_window:
        print_window(p, op);
        break;
    case OP_mem_store:
    case OP_mem_reduce:
        print_assign(p, op);
        break;
    case OP_cfg_write:
        print_config(p, op);
        break;
    case OP_par_device:
        print_device(p, op);
        p->in_device = true;
        print_nested(p, op->blocks[0]);
        p->in_device = outer;
        break;
    case OP_par_warps:
        print_warps(p, op);
        print_nested(p, op->blocks[0]);
        break;
    case OP_par_fence:
        strbuf_addf(&p->line, "Fence(%s, %s)", op_attr_str(op, "first", "?"),
                    op_attr_str(op, "second", "?"));
        exo_print_line(p);
        break;
    case OP_par_arrive:
        strbuf_addf(&p->line, "Arrive(%s, %lld)", op_attr_str(op, "first", "?"),
                    (long long)op_attr_int(op, "n", 1));
        print_barriers(p, op, 0);
        break;
    case OP_par_await:
        print_await(p, op);
        break;
    case OP_par_instr:
    case OP_ctl_call:
        print_call(p, op);
        break;
    default:
        exo_print_refuse(p, op->loc,
                         arena_printf(p->arena, "%s.%s",
                                      op_info(op->code)->dialect,
                                      op_info(op->code)->name));
    }
}

/* ---- values used more than once ---------------------------------------- */

/* Ops up to and with the next statement of a block are a group; a value prints
 * inside the statement of its group. */
typedef struct UseScan {
    ExoPrinter *p;
    uint32_t *group; /* by Value.id: where it is defined; 0: an argument */
    bool *used;      /* by Value.id: seen as an operand */
    uint8_t *height; /* by Value.id: of its expression */
    uint32_t n_groups;
} UseScan;

enum { HEIGHT_MAX = 100 };

static bool is_computed(const Op *op)
{
    return op->n_operands && op->code != OP_mem_load;
}

static void scan_op(UseScan *s, const Op *op, uint32_t group)
{
    unsigned height = 0;
    for (unsigned i = 0; i < op->n_operands; i++) {
        const Value *v =
            op->operands[i].kind == OPND_value ? op->operands[i].u.value : NULL;
        if (!v)
            continue;
        bool again = s->used[v->id] && v->def && is_computed(v->def);
        bool high = s->height[v->id] >= HEIGHT_MAX && !op_has(op, OPT_STMT);
        if (again || high || s->group[v->id] != group)
            s->p->shared[v->id] = true;
        s->used[v->id] = true;
        if (!s->p->shared[v->id] && s->height[v->id] > height)
            height = s->height[v->id];
    }
    for (unsigned i = 0; i < op->n_results; i++) {
        unsigned id = op->results[i]->id;
        s->group[id] = group;
        s->height[id] = (uint8_t)(height + is_computed(op));
    }
}

/* Marks the values that are used outside the group that defines them, and
 * computed ones that are used twice, whose text would otherwise double, or
 * that are too high an expression. */
static void scan_block(UseScan *s, const Block *b)
{
    uint32_t group = ++s->n_groups;
    for (const Op *op = b->first; op; op = op->next) {
        scan_op(s, op, group);
        for (unsigned i = 0; i < op->n_blocks; i++)
            scan_block(s, op->blocks[i]);
        if (op_has(op, OPT_STMT))
            group = ++s->n_groups;
    }
}

/* A literal prints at each of its uses, another value only when none of them is
 * elsewhere. */
static bool prints_in_place(const ExoPrinter *p, const Op *op)
{
    return op->code == OP_arith_const || !p->shared[op->results[0]->id];
}

/* Declares a variable for the value, and assigns it. */
static void print_temporary(ExoPrinter *p, const Op *op)
{
    Value *v = op->results[0];
    const char *type = scalar_type_name(v->type->elem);
    exo_print_data(p, v, v->type->elem, false);
    StrBuf right = p->line;
    p->line = (StrBuf){ 0 };
    const char *name = exo_name_value(p, v);
    strbuf_addf(&p->line, "%s: %s @ %s", name, type,
                p->in_device ? "CudaRmemLinear" : "DRAM");
    exo_print_line(p);
    strbuf_addf(&p->line, "%s = %s", name, strbuf_text(&right));
    strbuf_free(&right);
    exo_print_line(p);
}

static void print_block(ExoPrinter *p, const Block *b)
{
    bool any = false;
    for (const Op *op = b->first; op && p->ok; op = op->next) {
        if (op_has(op, OPT_STMT)) {
            print_stmt(p, op);
            any = true;
        } else if (op->n_results == 1 && op->n_blocks == 0 &&
                   op->results[0]->type->kind == TK_scalar) {
            if (prints_in_place(p, op))
                continue;
            note_mark(p, NULL);
            print_temporary(p, op);
            any = true;
        } else {
            exo_print_refuse(p, op->loc,
                             arena_printf(p->arena, "%s.%s",
                                          op_info(op->code)->dialect,
                                          op_info(op->code)->name));
        }
    }
    if (!any) {
        strbuf_add(&p->line, "pass");
        exo_print_line(p);
    }
}

/* ---- procedures -------------------------------------------------------- */

static const char *control_type(VarKind kind)
{
    return kind == VAR_size   ? "size"
           : kind == VAR_bool ? "bool"
           : kind == VAR_int  ? "stride"
                              : "index";
}

static void print_proc(ExoPrinter *p, const Op *op)
{
    const Block *body = op->blocks[0];
    size_t mark = build_mark(&p->names);
    print_comment(p, op->comment);
    if (op_attr_int(op, "imported", 0)) {
        strbuf_add(&p->line, "@imported");
        exo_print_line(p);
    }
    strbuf_addf(&p->line, "def %s(", op_attr_str(op, "name", "?"));
    for (unsigned i = 0; i < body->n_args; i++) {
        const BlockArg *a = &body->args[i];
        strbuf_add(&p->line, i ? ", " : "");
        if (a->value) {
            strbuf_addf(&p->line, "%s: ", exo_name_value(p, a->value));
            print_type(p, a->value);
        } else {
            strbuf_addf(&p->line, "%s: ", exo_name_var(p, a->var));
            strbuf_add(&p->line,
                       control_type(var_get(p->m->exprs, a->var)->kind));
        }
    }
    strbuf_add(&p->line, "):");
    exo_print_line(p);
    print_nested(p, body);
    build_close(&p->names, mark);
}

/* A printer of m onto out; its tables are in the arena. */
static void open_printer(ExoPrinter *p, const Module *m, Arena *arena,
                         StrBuf *out)
{
    unsigned n_vars = var_count(m->exprs) + 1;
    *p = (ExoPrinter){ .m = m, .out = out, .arena = arena, .ok = true };
    p->value_names = ARENA_ARRAY(arena, const char *, m->next_value);
    p->var_names = ARENA_ARRAY(arena, const char *, n_vars);
    p->var_ranks = ARENA_ARRAY(arena, uint32_t, n_vars);
    p->shared = ARENA_ARRAY(arena, bool, m->next_value);
    UseScan scan = { p, ARENA_ARRAY(arena, uint32_t, m->next_value),
                     ARENA_ARRAY(arena, bool, m->next_value),
                     ARENA_ARRAY(arena, uint8_t, m->next_value), 0 };
    scan_block(&scan, m->body);
    p->expr_names = (ExprNames){ .var = var_name,
                                 .tensor = tensor_name,
                                 .rank = var_rank,
                                 .user = p,
                                 .exo = true };
    p->names.arena = arena;
}

bool exo_list_proc(const Module *m, const Op *proc, Arena *arena,
                   ExoListing *out)
{
    StrBuf text = { 0 };
    ExoPrinter p;
    *out = (ExoListing){ 0 };
    open_printer(&p, m, arena, &text);
    p.listing = out;
    print_proc(&p, proc);
    if (out->marks.len)
        out->marks.data[out->marks.len - 1].end = text.len;
    out->text = arena_strdup(arena, strbuf_text(&text));
    out->value_names = p.value_names;
    out->var_names = p.var_names;
    out->n_values_named = m->next_value;
    out->n_vars_named = var_count(m->exprs) + 1;
    strbuf_free(&text);
    strbuf_free(&p.line);
    return p.ok;
}

bool exo_print_noted(const Module *m, const ExoNotes *notes, StrBuf *out)
{
    Arena *arena = arena_new();
    ExoPrinter p;
    open_printer(&p, m, arena, out);
    p.notes = notes;
    lib_own_text(m->lib, out);
    for (const Op *op = m->body->first; op && p.ok; op = op->next) {
        if (op->code != OP_ctl_proc) {
            exo_print_refuse(&p, op->loc,
                             arena_printf(arena, "%s.%s",
                                          op_info(op->code)->dialect,
                                          op_info(op->code)->name));
            break;
        }
        if (out->len)
            strbuf_addc(out, '\n');
        print_proc(&p, op);
    }
    strbuf_free(&p.line);
    arena_free(arena);
    return p.ok;
}

bool exo_print(const Module *m, StrBuf *out)
{
    return exo_print_noted(m, NULL, out);
}
