/* Each instruction becomes one of PTX of the same meaning, with what it needs
 * before it (translate.c); a branch; or one whose results are open. Not to know
 * an instruction, or to take a source for a result, opens more than need be,
 * and never closes a way. */
#include "verify/sass/flow_internal.h"

#include "verify/sass/webs.h"

#include <string.h>

/* ---- what is open -------------------------------------------------------- */

/* Of one instruction: predicates, and what a wgmma writes. */
enum { MAX_RESULTS = SASS_MAX_OPERANDS + 7 + 128 };

/* Registers that a result takes: at least as many as it does. */
static unsigned width(const char *op)
{
    static const struct {
        const char *part;
        unsigned n;
    } wide[] = { { "HFMA2", 1 }, { "GMMA.", 128 }, { "DMMA.", 8 },
                 { "MMA.", 4 },  { "LDSM", 4 },    { ".128", 4 },
                 { "WIDE", 2 },  { "CS2R", 2 },    { "64", 2 } };
    for (size_t i = 0; i < sizeof wide / sizeof *wide; i++)
        if (strstr(op, wide[i].part))
            return wide[i].n;
    return op[0] == 'D' ? 2 : 1;
}

static bool has_no_result(const char *op)
{
    static const char *const stems[] = { "BAR.", "NANOSLEEP", "WARPSYNC" };
    for (size_t i = 0; i < sizeof stems / sizeof *stems; i++)
        if (sass_begins(op, stems[i]))
            return true;
    return false;
}

/* What it may write: predicates that it begins with, a register and those
 * behind it that it takes too, predicates behind that. *n of them; returns how
 * many operands that are. */
static unsigned results(const SassInstr *in, PtxArg *args, unsigned *n)
{
    bool compares = strstr(in->op, "SETP") || strstr(in->op, "PLOP3");
    unsigned i = 0;
    if (in->n_operands && sass_begins(in->op, "VOTEU") &&
        sass_predicate(in->operands[0])) {
        args[(*n)++] = sass_reg(sass_predicate(in->operands[0]));
        return 1; /* of the predicate that follows */
    }
    for (; i < in->n_operands && sass_is_predicate(in->operands[i]); i++)
        if (sass_predicate(in->operands[i]))
            args[(*n)++] = sass_reg(sass_predicate(in->operands[i]));
    if (i == in->n_operands || compares)
        return i;
    uint32_t first = sass_general(in->operands[i]);
    if (!first && strcmp(in->operands[i], "RZ") != 0 &&
        strcmp(in->operands[i], "URZ") != 0 && !sass_begins(in->op, "R2P"))
        return i;
    uint32_t end = first < REG_UR ? REG_UR - 1 : REG_P - 1;
    for (unsigned k = 0; first && k < width(in->op) && first + k < end; k++)
        args[(*n)++] = sass_reg(first + k);
    for (i++; i < in->n_operands && sass_is_predicate(in->operands[i]); i++)
        if (sass_predicate(in->operands[i]))
            args[(*n)++] = sass_reg(sass_predicate(in->operands[i]));
    for (unsigned k = 0; sass_begins(in->op, "R2P") && k < 7; k++)
        args[(*n)++] = sass_reg(REG_P + k);
    return i;
}

/* An instruction of which only that is known. Where it takes more than
 * registers and constants, or asks for registers, what it gives is open for
 * that. */
static void open_results(Flow *f, const SassInstr *in)
{
    PtxArg args[MAX_RESULTS + SASS_MAX_OPERANDS];
    unsigned n = 0, i = 0;
    if (!has_no_result(in->op))
        i = results(in, args, &n);
    for (unsigned k = 0; k < n; k++)
        args[k].operand = 0;
    PtxInstr *out = flow_emit(f, n ? PTX_OTHER : "st.", 0, 0, NULL);
    if (n && sass_begins(in->op, "USETMAXREG"))
        out->op = "ld.";
    out->n_operands = n > 0;
    for (; n && i < in->n_operands; i++) {
        Source s = sass_source(in->operands[i]);
        if (s.arg.kind == PTX_other)
            out->op = "ld.";
        else
            args[n++] = s.arg;
    }
    out->n_args = n;
    out->args = arena_memdup(f->a, args, n * sizeof *args);
}

/* ---- control ------------------------------------------------------------- */

static uint32_t number_of(const Flow *f, const SassInstr *in)
{
    return (uint32_t)(in - f->k->instrs);
}

static void refuse(Flow *f, const SassInstr *in, const char *what)
{
    if (!f->why)
        f->why = arena_printf(f->a, "line %u: '%s' %s", in->line, in->op, what);
}

/* The targets stay instructions of SASS until all have their places. */
static void go_to(Flow *f, const SassInstr *in)
{
    PtxInstr *out = flow_emit(f, "bra", 0, 0, NULL);
    uint32_t *target = ARENA_NEW(f->a, uint32_t);
    if (in->target == UINT32_MAX) {
        refuse(f, in, "names no place of the kernel");
        return;
    }
    *target = in->target;
    out->branches = true;
    out->n_targets = 1;
    out->targets = target;
}

/* Does control never go on behind it? */
static bool never_falls(const SassInstr *in)
{
    bool away = sass_begins(in->op, "RET") || sass_begins(in->op, "EXIT") ||
                !strcmp(in->op, "BRA");
    return away && !in->guard && in->n_operands < 2;
}

/* Registers that the code at an instruction may write before it returns. */
static void find_written(Flow *f, uint32_t from, bool *written)
{
    const SassKernel *k = f->k;
    bool *seen = ARENA_ARRAY(f->a, bool, k->n_instrs + 1);
    VEC(uint32_t) todo = { 0 };
    VEC_PUSH(f->a, &todo, from);
    while (todo.len)
        for (uint32_t i = todo.data[--todo.len]; i < k->n_instrs && !seen[i];
             i++) {
            const SassInstr *in = &k->instrs[i];
            PtxArg args[MAX_RESULTS];
            unsigned n = 0;
            seen[i] = true;
            if (!has_no_result(in->op))
                results(in, args, &n);
            while (n)
                written[args[--n].reg] = true;
            if (sass_begins(in->op, "BRA") || sass_begins(in->op, "CALL"))
                VEC_PUSH(f->a, &todo, in->target);
            if (never_falls(in))
                break;
        }
}

/* Goes there and on behind it, with what is written there open: so a place
 * that two roles call does not join them. */
static void call(Flow *f, const SassInstr *in)
{
    bool written[N_PHYSICAL + 1] = { false };
    PtxArg *args = ARENA_ARRAY(f->a, PtxArg, N_PHYSICAL);
    unsigned n = 0;
    find_written(f, in->target, written);
    for (uint32_t r = 1; r <= N_PHYSICAL; r++)
        if (written[r])
            args[n++] = (PtxArg){ .kind = PTX_reg, .reg = r };
    PtxInstr *out = flow_emit(f, "ld.", 0, 0, NULL);
    out->n_operands = 1;
    out->n_args = n;
    out->args = args;
    go_to(f, in);
}

/* Threads meet there and go on behind it, where they said that they would. */
static void meet(Flow *f, const SassInstr *in)
{
    uint32_t next = number_of(f, in) + 1;
    bool told = false;
    for (uint32_t i = 0; i < f->k->n_instrs; i++) {
        const SassInstr *other = &f->k->instrs[i];
        told |= sass_begins(other->op, "BSSY") && other->target == next &&
                in->n_operands && other->n_operands &&
                !strcmp(other->operands[0], in->operands[0]);
    }
    if (!told)
        refuse(f, in, "goes on elsewhere than behind it");
    flow_emit(f, "st.", 0, 0, NULL);
}

/* Does it change where control goes? Then it is emitted. */
static bool control(Flow *f, const SassInstr *in)
{
    if (sass_begins(in->op, "BRX") || sass_begins(in->op, "JMX") ||
        sass_begins(in->op, "JMP")) {
        refuse(f, in, "goes to a place that is computed");
        return false;
    }
    if (sass_begins(in->op, "BRA"))
        go_to(f, in);
    else if (sass_begins(in->op, "CALL"))
        call(f, in);
    else if (sass_begins(in->op, "EXIT") || sass_begins(in->op, "RET"))
        flow_emit(f, "exit", 0, 0, NULL)->ends = true;
    else if (sass_begins(in->op, "BSYNC"))
        meet(f, in);
    else
        return false;
    return true;
}

/* ---- guards -------------------------------------------------------------- */

/* The predicate as a register, right side up. */
static uint32_t as_register(Flow *f, const Source *s)
{
    const PtxArg x[4] = { s->arg, sass_constant(0), sass_constant(0),
                          sass_constant(s->negated ? 0x0f : 0xf0) };
    uint32_t to = flow_new_reg(f);
    flow_emit(f, "lop3.pred", to, 4, x);
    return to;
}

/* A branch has a second predicate as its first operand; one that asks whether
 * the warp has come apart may be taken, and a call goes on behind it. */
static uint32_t branch_condition(Flow *f, const SassInstr *in)
{
    if (sass_begins(in->op, "BRA.DIV") || sass_begins(in->op, "BRA.CONV") ||
        sass_begins(in->op, "CALL"))
        return REG_OPEN;
    if (!in->n_operands ||
        !(sass_begins(in->op, "BRA") || sass_begins(in->op, "EXIT")))
        return 0;
    Source s = sass_source(in->operands[0]);
    bool is_one = s.negated || (s.arg.kind == PTX_reg && s.arg.reg >= REG_P);
    return is_one ? as_register(f, &s) : 0;
}

/* What stands before it and decides whether it is executed; 0: always. */
static uint32_t condition(Flow *f, const SassInstr *in)
{
    uint32_t guard = 0, second = branch_condition(f, in);
    if (in->guard) {
        Source s = sass_source(in->guard);
        guard = s.arg.kind == PTX_other ? REG_OPEN : as_register(f, &s);
    }
    if (!guard || !second)
        return guard ? guard : second;
    const PtxArg x[4] = { sass_reg(guard), sass_reg(second), sass_constant(0),
                          sass_constant(0xc0) };
    uint32_t both = flow_new_reg(f);
    flow_emit(f, "lop3.pred", both, 4, x);
    return both;
}

/* ---- the whole ----------------------------------------------------------- */

/* Guards all that the instruction emitted that is not its translation's own. */
static void guard_from(Flow *f, uint32_t from, uint32_t guard)
{
    for (size_t i = from; i < f->instrs.len; i++) {
        PtxInstr *in = &f->instrs.data[i];
        bool own = in->n_args && in->args[0].reg >= REG_FIRST_OWN;
        in->guard = own && i + 1 < f->instrs.len ? 0 : guard;
    }
}

static void add_instr(Flow *f, SassInstr *in)
{
    uint32_t guard = condition(f, in), from = (uint32_t)f->instrs.len;
    if (!control(f, in)) {
        size_t before = f->instrs.len;
        if (!sass_translate(f, in)) {
            f->instrs.len = before;
            open_results(f, in);
        }
    }
    guard_from(f, from, guard);
    in->step = (uint32_t)f->instrs.len - 1;
}

static void resolve(Flow *f)
{
    for (size_t i = 0; i < f->instrs.len; i++) {
        PtxInstr *in = &f->instrs.data[i];
        uint32_t *targets = (uint32_t *)(uintptr_t)in->targets;
        for (unsigned t = 0; t < in->n_targets; t++)
            targets[t] = f->first.data[targets[t]];
    }
}

static void name_registers(Flow *f, PtxKernel *k)
{
    PtxReg *regs = ARENA_ARRAY(f->a, PtxReg, f->n_regs);
    for (uint32_t r = 0; r < f->n_regs; r++)
        regs[r].name = "";
    regs[REG_TID].name = "%tid.x";
    regs[REG_LANE].name = "%laneid";
    regs[REG_CTA].name = "%cluster_ctarank";
    k->regs = regs;
    k->n_regs = f->n_regs - 1;
}

bool sass_flow(Arena *a, SassKernel *k, const char **why)
{
    Flow f = { .a = a, .k = k, .n_regs = REG_FIRST_OWN };
    for (uint32_t i = 0; i < k->n_instrs; i++) {
        VEC_PUSH(a, &f.first, (uint32_t)f.instrs.len);
        add_instr(&f, &k->instrs[i]);
    }
    *why = f.why;
    if (f.why)
        return false;
    resolve(&f);
    k->flow = (PtxKernel){ .n_instrs = (unsigned)f.instrs.len,
                           .instrs = f.instrs.data };
    name_registers(&f, &k->flow);
    webs_rename(a, &k->flow, N_PHYSICAL);
    return true;
}
