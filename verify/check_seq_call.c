/* Calls of instructions and procedures: shapes, preconditions, aliasing, and
 * the bounds of what the callee does with its arguments.
 *
 * The callee's body is copied behind a window per argument, into a block that
 * nothing but this check sees, standing where the call stands. So its accesses
 * are seen on the caller's tensors, with all that is known at the call. */
#include "verify/check_seq_internal.h"

#define MAX_CALL_DEPTH 64

/* One call being looked into. */
typedef struct Call {
    SeqCheck *c;
    Op *op;
    const char *name;
    const Op *body;     /* ctl.proc of the callee */
    Module *from;       /* module of the body */
    const Instr *instr; /* NULL: a procedure */
    unsigned n_args;
    CloneMap *map;
    Facts *facts;   /* at the call */
    Facts *strides; /* of the windows made for arguments */
    Block *block;   /* holds the windows and the copy */
} Call;

static const char *param_name(const Call *k, unsigned i)
{
    const BlockArg *a = &k->body->blocks[0]->args[i];
    const char *n =
        a->value ? a->value->name : var_get(k->from->exprs, a->var)->name;
    return n ? n : "_";
}

/* ---- arguments ---------------------------------------------------------- */

static bool is_whole_tensor(const Access *a)
{
    for (unsigned i = 0; i < a->rank; i++) {
        int64_t lo;
        if (a->dims[i].kind != DIM_interval ||
            !affine_is_const(a->dims[i].lo, &lo) || lo ||
            a->dims[i].len != a->base->shape[i])
            return false;
    }
    return true;
}

/* What is known of a window's strides: they are those of its base. */
static void assume_strides(Call *k, const Value *w, const Access *a)
{
    ExprCtx *x = k->c->m->exprs;
    unsigned n = 0;
    for (unsigned i = 0; i < a->rank; i++)
        if (a->dims[i].kind == DIM_interval) {
            const Cond *same = cond_cmp(x, CMP_eq, affine_stride(x, w, n++),
                                        affine_stride(x, a->base, i));
            facts_assume(k->strides, same);
            facts_assume(k->facts, same);
        }
}

/* A window of the argument, standing in the call's own block. */
static Value *argument_window(Call *k, Access *a, const Value *param)
{
    Module *m = k->c->m;
    if (is_whole_tensor(a))
        return a->base;
    Op *w = op_new(m, OP_mem_window, k->op->loc, 1, 1, 0);
    w->operands[0] = opnd_access(a);
    bool map = a->base->type->kind == TK_map;
    Value *v = op_set_result(m, w, 0,
                             type_tensor(k->c->ctx, map ? TK_map : TK_window,
                                         a->base->type->elem, param->type->rank,
                                         a->base->type->mem),
                             param->name);
    unsigned n = 0;
    for (unsigned i = 0; i < a->rank; i++)
        if (a->dims[i].kind == DIM_interval)
            v->shape[n++] = a->dims[i].len;
    block_append(k->block, w);
    if (a->base->type->kind == TK_tensor || a->base->type->kind == TK_window)
        assume_strides(k, v, a);
    return v;
}

static unsigned interval_count(const Access *a)
{
    unsigned n = 0;
    for (unsigned i = 0; i < a->rank; i++)
        n += a->dims[i].kind == DIM_interval;
    return n;
}

/* A condition as a number, for a formal that is a bool. */
static const Affine *bool_value(Call *k, const Cond *c)
{
    if (c->kind == COND_true || c->kind == COND_false)
        return affine_const(k->c->m->exprs, c->kind == COND_true);
    VarId v = var_new(k->c->m->exprs, "_", VAR_bool);
    return affine_var(k->c->m->exprs, v);
}

static bool is_parameter(const Block *b, VarId v)
{
    for (unsigned i = 0; i < b->n_args; i++)
        if (!b->args[i].value && b->args[i].var == v)
            return true;
    return false;
}

/* An extent written `_` stands for whatever the argument has. */
static void map_free_extents(Call *k, const Value *formal, const Access *a)
{
    unsigned n = 0;
    for (unsigned i = 0; i < a->rank; i++) {
        VarId v;
        if (a->dims[i].kind == DIM_interval &&
            affine_is_var(formal->shape[n++], &v) &&
            !is_parameter(k->body->blocks[0], v))
            clone_map_index(k->map, v, a->dims[i].len);
    }
}

/* Maps parameter i; false where the argument does not fit it at all. */
static bool map_argument(Call *k, unsigned i)
{
    const BlockArg *p = &k->body->blocks[0]->args[i];
    const Operand *o = &k->op->operands[i];
    if (!p->value) {
        if (o->kind == OPND_index)
            clone_map_index(k->map, p->var, o->u.index);
        else if (o->kind == OPND_cond)
            clone_map_index(k->map, p->var, bool_value(k, o->u.cond));
        return o->kind == OPND_index || o->kind == OPND_cond;
    }
    if (o->kind != OPND_access ||
        interval_count(o->u.access) != p->value->type->rank)
        return false;
    map_free_extents(k, p->value, o->u.access);
    clone_map_value(k->map, p->value,
                    argument_window(k, o->u.access, p->value));
    return true;
}

/* ---- shapes and sizes --------------------------------------------------- */

static void check_shape(Call *k, unsigned i)
{
    const Value *formal = k->body->blocks[0]->args[i].value;
    const Access *a = k->op->operands[i].u.access;
    unsigned n = 0;
    for (unsigned d = 0; d < a->rank; d++) {
        if (a->dims[d].kind != DIM_interval)
            continue;
        const Affine *want = clone_index(k->map, formal->shape[n++]);
        if (want == a->dims[d].len)
            continue;
        Proof p = affine_equal(k->c->prover, k->facts, want, a->dims[d].len);
        if (p.answer == PROVE_yes)
            continue;
        sc_answer(k->c, k->op, &p, "shape",
                  arena_printf(k->c->m->arena,
                               "argument %s of %s: dimension "
                               "%u must be %s, found %s in %s",
                               param_name(k, i), k->name, n - 1,
                               par_text_affine(k->c->m, want),
                               par_text_affine(k->c->m, a->dims[d].len),
                               par_text_access(k->c->m, a)));
    }
}

static void check_size(Call *k, unsigned i)
{
    const BlockArg *p = &k->body->blocks[0]->args[i];
    const Operand *o = &k->op->operands[i];
    if (var_get(k->from->exprs, p->var)->kind != VAR_size ||
        o->kind != OPND_index)
        return;
    ExprCtx *x = k->c->m->exprs;
    sc_require(k->c, k->op, k->facts,
               cond_cmp(x, CMP_gt, o->u.index, affine_const(x, 0)), "size",
               "argument %s of %s: the size %s must be positive",
               param_name(k, i), k->name, par_text_affine(k->c->m, o->u.index));
}

/* ---- preconditions ------------------------------------------------------ */

static const char *cond_text(Call *k, const Cond *c);

static void check_preconditions(Call *k)
{
    for (const Op *op = k->body->blocks[0]->first; op; op = op->next) {
        if (op->code != OP_ctl_assert)
            continue;
        const Cond *c = clone_cond(k->map, op->operands[0].u.cond);
        Proof p = prove_implied(k->c->prover, k->facts, c);
        if (p.answer == PROVE_yes)
            continue;
        const char *text =
            arena_printf(k->c->m->arena,
                         "precondition of %s does not hold: "
                         "%s",
                         k->name, c ? cond_text(k, c) : "overflow");
        unsigned before = ctx_error_count(k->c->ctx);
        sc_answer(k->c, k->op, &p, "precondition", text);
        if (ctx_error_count(k->c->ctx) > before && op->loc.file)
            diag_remark(k->c->ctx, op->loc, "precondition",
                        "the precondition is asserted here");
    }
}

static const char *var_text(const ExprNames *n, VarId v)
{
    const Call *k = n->user;
    const char *name = var_get(k->c->m->exprs, v)->name;
    return name ? name : "_";
}

static const char *tensor_text(const ExprNames *n, const void *value)
{
    (void)n;
    return par_text_value(value);
}

static const char *cond_text(Call *k, const Cond *c)
{
    ExprNames names = {
        .var = var_text, .tensor = tensor_text, .user = k, .exo = true
    };
    StrBuf b = { 0 };
    cond_print(&b, k->c->m->exprs, c, &names, 0);
    const char *text = arena_strdup(k->c->m->arena, strbuf_text(&b));
    strbuf_free(&b);
    return text;
}

/* ---- aliasing ----------------------------------------------------------- */

typedef struct WriteSearch {
    const Module *m;
    const Value *v;
    unsigned depth;
    bool found;
} WriteSearch;

static bool find_write(Op *op, void *user);

/* Does the procedure write its parameter v, itself or in what it calls? */
static bool param_is_written(const Module *m, const Op *proc, const Value *v,
                             unsigned depth)
{
    WriteSearch s = { m, v, depth, false };
    block_walk(proc->blocks[0], find_write, &s);
    return s.found;
}

static bool call_writes(const WriteSearch *s, const Op *op, unsigned i)
{
    const Op *callee = module_symbol(s->m, op_attr_str(op, "callee", ""));
    if (!callee || s->depth == 0 || i >= callee->blocks[0]->n_args ||
        !callee->blocks[0]->args[i].value)
        return true;
    return param_is_written(s->m, callee, callee->blocks[0]->args[i].value,
                            s->depth - 1);
}

static bool find_write(Op *op, void *user)
{
    WriteSearch *s = user;
    const Instr *in = op->code == OP_par_instr ? op_instr(s->m, op) : NULL;
    for (unsigned i = 0; i < op->n_operands && !s->found; i++) {
        const Operand *o = &op->operands[i];
        if (o->kind != OPND_access || value_root(o->u.access->base) != s->v)
            continue;
        if (op->code == OP_mem_store || op->code == OP_mem_reduce)
            s->found = true;
        else if (op->code == OP_par_instr)
            s->found = !in || i >= in->n_params ||
                       (in->params[i].flags & (ACC_WRITE | ACC_REDUCE));
        else if (op->code == OP_ctl_call)
            s->found = call_writes(s, op, i);
    }
    return !s->found;
}

static bool is_written(const Call *k, unsigned i)
{
    if (k->instr)
        return i < k->instr->n_params &&
               (k->instr->params[i].flags & (ACC_WRITE | ACC_REDUCE));
    return param_is_written(k->from, k->body, k->body->blocks[0]->args[i].value,
                            MAX_CALL_DEPTH);
}

/* The tensor in memory: a tensor map is another name for its tensor. */
static const Access *on_storage(Module *m, const Access *a)
{
    a = access_compose(m, a);
    while (a->base->type->kind == TK_map && a->base->def &&
           a->base->def->code == OP_mem_window) {
        const Access *source = a->base->def->operands[0].u.access;
        Access *whole = access_new(m, source->base);
        for (unsigned i = 0; i < source->rank; i++)
            whole->dims[i] = source->dims[i];
        a = access_compose(m, whole);
    }
    return a;
}

static void check_pair(Call *k, unsigned i, unsigned j)
{
    Module *m = k->c->m;
    const Access *a = on_storage(m, k->op->operands[i].u.access);
    const Access *b = on_storage(m, k->op->operands[j].u.access);
    if (a->base != b->base || (!is_written(k, i) && !is_written(k, j)))
        return;
    Proof p = prove_disjoint(k->c->prover, k->facts, a, b);
    if (p.answer == PROVE_yes)
        return;
    const char *text = arena_printf(
        m->arena,
        "arguments %s and %s of %s share the buffer %s "
        "and one is written",
        param_name(k, i), param_name(k, j), k->name, par_text_value(a->base));
    sc_answer(k->c, k->op, &p, "alias", text);
}

static void check_aliases(Call *k)
{
    for (unsigned i = 0; i < k->n_args; i++)
        for (unsigned j = i + 1; j < k->n_args; j++)
            if (k->op->operands[i].kind == OPND_access &&
                k->op->operands[j].kind == OPND_access)
                check_pair(k, i, j);
}

/* ---- the body ----------------------------------------------------------- */

/* Roots that this instruction may touch out of bounds. */
static unsigned spared_roots(Call *k, Value **out)
{
    unsigned n = 0;
    for (unsigned i = 0; k->instr && i < k->instr->n_params; i++)
        if (k->instr->params[i].allow_out_of_bounds &&
            k->op->operands[i].kind == OPND_access)
            out[n++] = value_root(k->op->operands[i].u.access->base);
    return n;
}

static bool check_inner_calls(Op *op, void *user)
{
    if (op->code == OP_par_instr || op->code == OP_ctl_call)
        check_seq_call(user, op);
    return true;
}

static void check_body(Call *k)
{
    Value **spared = ARENA_ARRAY(k->c->m->arena, Value *, k->n_args);
    BoundsScope s = { .at = k->op,
                      .in_call = k->name,
                      .extra = k->strides,
                      .n_spared = spared_roots(k, spared),
                      .spared = spared };
    block_clone_into(k->map, k->body->blocks[0], k->block);
    for (Op *op = k->block->first; op; op = op->next) {
        if (op->code == OP_ctl_assert)
            continue;
        check_seq_bounds(k->c, op, &s);
        op_walk(op, check_inner_calls, k->c);
    }
}

/* Every element that an argument names is there: then the body, which keeps to
 * its parameters, needs no look. */
static bool windows_fit(Call *k)
{
    for (unsigned i = 0; i < k->n_args; i++) {
        if (k->op->operands[i].kind != OPND_access)
            continue;
        const Access *a = access_compose(k->c->m, k->op->operands[i].u.access);
        for (unsigned d = 0; d < a->rank; d++) {
            const Affine *len = a->dims[d].kind == DIM_interval
                                    ? a->dims[d].len
                                    : affine_const(k->c->m->exprs, 1);
            Proof p = prove_within(k->c->prover, k->facts, a->dims[d].lo, len,
                                   a->base->shape[d]);
            if (p.answer != PROVE_yes)
                return false;
        }
    }
    return true;
}

/* ---- the call ----------------------------------------------------------- */

static bool find_callee(Call *k)
{
    if (k->op->code == OP_par_instr) {
        k->instr = op_instr(k->c->m, k->op);
        if (!k->instr || !k->instr->body)
            return false;
        k->name = k->instr->name;
        k->body = k->instr->body;
        k->from = k->instr->module;
        return true;
    }
    k->name = op_attr_str(k->op, "callee", "_");
    k->body = module_symbol(k->c->m, k->name);
    k->from = k->c->m;
    return k->body && k->body->code == OP_ctl_proc;
}

/* A block that stands where the call stands, so that facts are found. */
static void make_block(Call *k)
{
    Module *m = k->c->m;
    Op *holder = op_new(m, OP_ctl_if, k->op->loc, 1, 0, 1);
    holder->operands[0] = opnd_cond(cond_bool(m->exprs, true));
    holder->parent = k->op->parent;
    k->block = holder->blocks[0];
}

static bool map_arguments(Call *k)
{
    for (unsigned i = 0; i < k->n_args; i++)
        if (!map_argument(k, i))
            return false;
    return true;
}

static void look_into(Call *k)
{
    Module *m = k->c->m;
    k->facts = prove_facts_at(m->arena, m, k->op);
    k->strides = facts_new(m->arena, m->exprs);
    k->map = clone_map_new(m, k->from);
    make_block(k);
    if (!map_arguments(k))
        return; /* check_seq_types and well-formedness say why */
    for (unsigned i = 0; i < k->n_args; i++) {
        if (k->body->blocks[0]->args[i].value)
            check_shape(k, i);
        else
            check_size(k, i);
    }
    check_preconditions(k);
    check_aliases(k);
    if (k->instr || !windows_fit(k))
        check_body(k);
}

void check_seq_call(SeqCheck *c, Op *op)
{
    Call k = { .c = c, .op = op };
    if (!find_callee(&k))
        return;
    k.n_args = k.body->blocks[0]->n_args;
    if (op->n_operands < k.n_args)
        return;
    if (c->depth == MAX_CALL_DEPTH) {
        if (!c->unknown)
            c->unknown = "calls are nested too deeply, or recursive";
        return;
    }
    uint32_t next_sid = c->m->next_sid;
    unsigned next_value = c->m->next_value;
    c->depth++;
    look_into(&k);
    c->depth--;
    c->m->next_sid = next_sid;
    c->m->next_value = next_value;
}
