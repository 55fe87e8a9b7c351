/* Each instruction becomes one of PTX of the same meaning, with what it needs
 * before it, where its value may come from the thread's number; a branch; or
 * one whose results are open. Not to know an instruction, or to take a source
 * for a result, opens more than need be, and never closes a way. */
#include "verify/sass/sass.h"

#include "verify/sass/webs.h"

#include <stdlib.h>
#include <string.h>

/* Registers as numbers: R0 .., UR0 .., P0 .., UP0 .., what a thread is, then
 * those that only a translation has. */
enum {
    REG_R = 1,
    REG_UR = REG_R + 256,
    REG_P = REG_UR + 64,
    REG_UP = REG_P + 8,
    N_PHYSICAL = REG_UP + 8 - 1,
    REG_TID,
    REG_LANE,
    REG_CTA,
    REG_OPEN,
    REG_FIRST_OWN
};

typedef struct Flow {
    Arena *a;
    SassKernel *k;
    VEC(PtxInstr) instrs;
    VEC(uint32_t) first; /* by instruction of SASS: where it begins */
    uint32_t n_regs;
    const char *why;
} Flow;

/* ---- operands ------------------------------------------------------------ */

typedef struct Source {
    PtxArg arg;
    bool minus, negated;
} Source;

static bool begins(const char *s, const char *with)
{
    return !strncmp(s, with, strlen(with));
}

/* "R12": its number from `base`, below `limit`; 0 where it is none. */
static uint32_t numbered(const char *s, const char *prefix, uint32_t base,
                         unsigned limit)
{
    char *end;
    size_t n = strlen(prefix);
    if (!begins(s, prefix) || s[n] < '0' || s[n] > '9')
        return 0;
    unsigned long number = strtoul(s + n, &end, 10);
    return !*end && number < limit ? base + (uint32_t)number : 0;
}

static uint32_t predicate(const char *s)
{
    uint32_t reg = numbered(s, "P", REG_P, 7);
    return reg ? reg : numbered(s, "UP", REG_UP, 7);
}

/* Also the one that is always true, which has no number. */
static bool is_predicate(const char *s)
{
    return predicate(s) || !strcmp(s, "PT") || !strcmp(s, "UPT");
}

static uint32_t general(const char *s)
{
    uint32_t reg = numbered(s, "R", REG_R, 255);
    return reg ? reg : numbered(s, "UR", REG_UR, 63);
}

static PtxArg constant(int64_t v)
{
    return (PtxArg){ .kind = PTX_int, .value = v, .operand = 1 };
}

static PtxArg reg_arg(uint32_t reg)
{
    return (PtxArg){ .kind = PTX_reg, .reg = reg, .operand = 1 };
}

/* A source as the hardware reads it; PTX_other: what is not known. */
static Source source(const char *s)
{
    Source out = { .arg = { .kind = PTX_other } };
    char *end;
    out.negated = *s == '!';
    s += out.negated;
    long long v = strtoll(s, &end, 0);
    if (*s && !*end) {
        out.arg = constant(v);
        return out;
    }
    out.minus = *s == '-';
    s += out.minus;
    if (!strcmp(s, "RZ") || !strcmp(s, "URZ"))
        out.arg = constant(0);
    else if (!strcmp(s, "PT") || !strcmp(s, "UPT"))
        out.arg = constant(1);
    else if (general(s) || predicate(s))
        out.arg = reg_arg(general(s) ? general(s) : predicate(s));
    return out;
}

/* ---- emission ------------------------------------------------------------ */

static uint32_t new_reg(Flow *f)
{
    return f->n_regs++;
}

/* `op` into the register `to` (0: nowhere) of n sources. */
static PtxInstr *emit(Flow *f, const char *op, uint32_t to, unsigned n,
                      const PtxArg *sources)
{
    PtxInstr in = { .op = op, .n_operands = n + 1, .n_args = n + (to != 0) };
    PtxArg *args = ARENA_ARRAY(f->a, PtxArg, in.n_args + 1), *at = args;
    if (to)
        *at++ = (PtxArg){ .kind = PTX_reg, .reg = to };
    for (unsigned i = 0; i < n; i++) {
        at[i] = sources[i];
        at[i].operand = (uint8_t)(i + 1);
    }
    in.args = args;
    VEC_PUSH(f->a, &f->instrs, in);
    return &f->instrs.data[f->instrs.len - 1];
}

/* The source as a register or a constant. */
static PtxArg plain(Flow *f, const Source *s)
{
    if (!s->minus)
        return s->arg;
    uint32_t to = new_reg(f);
    emit(f, "neg.s32", to, 1, &s->arg);
    return reg_arg(to);
}

/* n operands of the instruction from the first-th as sources. False where one
 * is of a kind that is not read. */
static bool sources(Flow *f, const SassInstr *in, unsigned first, unsigned n,
                    PtxArg *out)
{
    for (unsigned i = 0; i < n; i++) {
        Source s = { .arg = { .kind = PTX_other } };
        if (first + i < in->n_operands)
            s = source(in->operands[first + i]);
        if (s.arg.kind == PTX_other || s.negated)
            return false;
        out[i] = plain(f, &s);
    }
    return true;
}

/* Where a result goes: a register of its own where it goes nowhere. */
static uint32_t result(Flow *f, const char *s)
{
    uint32_t reg = general(s);
    reg = reg ? reg : predicate(s);
    return reg ? reg : new_reg(f);
}

/* ---- arithmetic ---------------------------------------------------------- */

/* Translates; false, and nothing but registers of its own is written, where
 * that cannot be. The last that it emits is the instruction's own. */
typedef bool Translate(Flow *f, const SassInstr *in);

static bool move(Flow *f, const SassInstr *in)
{
    PtxArg x;
    if (in->n_operands != 2 || !sources(f, in, 1, 1, &x))
        return false;
    emit(f, "mov.b32", result(f, in->operands[0]), 1, &x);
    return true;
}

static bool special(Flow *f, const SassInstr *in)
{
    static const struct {
        const char *name;
        uint32_t reg;
    } known[] = { { "SR_TID.X", REG_TID },
                  { "SR_LANEID", REG_LANE },
                  { "SR_CgaCtaId", REG_CTA } };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (in->n_operands == 2 && !strcmp(in->operands[1], known[i].name)) {
            PtxArg x = reg_arg(known[i].reg);
            emit(f, "mov.b32", result(f, in->operands[0]), 1, &x);
            return true;
        }
    return false;
}

static bool multiply(Flow *f, const SassInstr *in)
{
    PtxArg x[3];
    if (in->n_operands != 4 || !sources(f, in, 1, 3, x))
        return false;
    emit(f, "mad.lo.u32", result(f, in->operands[0]), 3, x);
    return true;
}

/* Two or three summands, the last operands; before them may stand predicates
 * that take a carry. */
static bool add(Flow *f, const SassInstr *in)
{
    bool three = strstr(in->op, "IADD3") != NULL;
    unsigned n = three ? 3 : 2;
    PtxArg x[3];
    if (in->n_operands != n + 1 || !sources(f, in, 1, n, x))
        return false;
    if (three) {
        uint32_t sum = new_reg(f);
        emit(f, "add.u32", sum, 2, x);
        x[0] = reg_arg(sum);
        x[1] = x[2];
    }
    emit(f, "add.u32", result(f, in->operands[0]), 2, x);
    return true;
}

static bool shift_and_add(Flow *f, const SassInstr *in)
{
    PtxArg x[3], sum[2];
    if (in->n_operands != 4 || !sources(f, in, 1, 3, x))
        return false;
    uint32_t shifted = new_reg(f);
    const PtxArg by[2] = { x[0], x[2] };
    emit(f, "shl.b32", shifted, 2, by);
    sum[0] = reg_arg(shifted);
    sum[1] = x[1];
    emit(f, "add.u32", result(f, in->operands[0]), 2, sum);
    return true;
}

/* Of the 64 bits that two operands are, one of which is zero: what is shifted
 * stands third or first. */
static bool shift(Flow *f, const SassInstr *in)
{
    bool left = strstr(in->op, "SHF.L") != NULL;
    PtxArg x[3];
    if (in->n_operands != 4 || !sources(f, in, 1, 3, x) ||
        x[1].kind != PTX_int || x[1].value < 0 || x[1].value > 31)
        return false;
    const PtxArg *zero = left ? &x[2] : &x[0];
    if (zero->kind != PTX_int || zero->value)
        return false;
    const PtxArg of[2] = { left ? x[0] : x[2], x[1] };
    emit(f,
         left                     ? "shl.b32"
         : strstr(in->op, ".S32") ? "shr.s32"
                                  : "shr.u32",
         result(f, in->operands[0]), 2, of);
    return true;
}

static bool extend(Flow *f, const SassInstr *in)
{
    PtxArg x[3];
    if (in->n_operands != 3 || !sources(f, in, 1, 2, x))
        return false;
    x[2] = x[1];
    x[1] = constant(0);
    emit(f, strstr(in->op, ".U32") ? "bfe.u32" : "bfe.s32",
         result(f, in->operands[0]), 3, x);
    return true;
}

/* A function of three bits by its table; with a predicate first, whether the
 * result is not zero. */
static bool bitwise(Flow *f, const SassInstr *in)
{
    unsigned tested = is_predicate(in->operands[0]);
    PtxArg x[4];
    if (in->n_operands != 6 + tested ||
        !strchr(in->operands[5 + tested], '!') ||
        !sources(f, in, 1 + tested, 4, x) || x[3].kind != PTX_int)
        return false;
    uint32_t bits = result(f, in->operands[tested]);
    emit(f, "lop3.b32", bits, 4, x);
    if (tested) {
        x[0] = reg_arg(bits);
        x[1] = constant(0);
        emit(f, "setp.ne.u32", result(f, in->operands[0]), 2, x);
    }
    return true;
}

/* The table with its i-th source (0: the first) inverted. */
static int64_t inverted(int64_t table, int i)
{
    static const int64_t where[] = { 0xf0, 0xcc, 0xaa };
    static const int by[] = { 4, 2, 1 };
    return (table & where[i]) >> by[i] | (table << by[i] & where[i]);
}

static bool predicates(Flow *f, const SassInstr *in)
{
    PtxArg x[4];
    if (in->n_operands != 7 || source(in->operands[5]).arg.kind != PTX_int)
        return false;
    int64_t table = source(in->operands[5]).arg.value;
    for (int i = 0; i < 3; i++) {
        Source s = source(in->operands[2 + i]);
        if (s.arg.kind == PTX_other)
            return false;
        x[i] = s.arg;
        table = s.negated ? inverted(table, i) : table;
    }
    if (predicate(in->operands[1]))
        return false;
    x[3] = constant(table);
    emit(f, "lop3.pred", result(f, in->operands[0]), 4, x);
    return true;
}

static const char *relation(const char *op)
{
    static const char *const names[][2] = {
        { ".EQ", "eq" }, { ".NE", "ne" }, { ".LT", "lt" },
        { ".LE", "le" }, { ".GT", "gt" }, { ".GE", "ge" },
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *at = strstr(op, names[i][0]);
        if (at && (at[3] == '.' || !at[3]))
            return names[i][1];
    }
    return NULL;
}

/* Two results: the comparison and its opposite, each combined with the last
 * operand. */
static bool compare(Flow *f, const SassInstr *in)
{
    const char *name = relation(in->op);
    bool is_or = strstr(in->op, ".OR") != NULL;
    PtxArg x[4];
    if (in->n_operands != 5 || !name || strstr(in->op, ".EX") ||
        strstr(in->op, ".XOR") || !sources(f, in, 2, 2, x))
        return false;
    Source with = source(in->operands[4]);
    if (with.arg.kind == PTX_other)
        return false;
    uint32_t holds = new_reg(f);
    emit(f,
         arena_printf(f->a, "setp.%s.%s", name,
                      strstr(in->op, ".U32") ? "u32" : "s32"),
         holds, 2, x);
    x[0] = x[1] = reg_arg(holds);
    x[2] = with.arg;
    for (unsigned i = 2; i-- > 0;) {
        int64_t table = is_or ? 0xf0 | 0xaa : 0xf0 & 0xaa;
        table = i ? inverted(table, 0) : table;
        x[1] = constant(0);
        x[3] = constant(with.negated ? inverted(table, 2) : table);
        emit(f, "lop3.pred", result(f, in->operands[i]), 4, x);
    }
    return true;
}

static bool choose(Flow *f, const SassInstr *in)
{
    PtxArg x[3];
    if (in->n_operands != 4 || !sources(f, in, 1, 2, x))
        return false;
    Source by = source(in->operands[3]);
    if (by.arg.kind == PTX_other)
        return false;
    const PtxArg of[3] = { x[by.negated], x[!by.negated], by.arg };
    emit(f, "selp.b32", result(f, in->operands[0]), 3, of);
    return true;
}

static bool shuffle(Flow *f, const SassInstr *in)
{
    PtxArg x[3];
    if (in->n_operands != 5 || strcmp(in->operands[0], "PT") != 0 ||
        !sources(f, in, 2, 3, x))
        return false;
    emit(f, "shfl.sync.idx.b32", result(f, in->operands[1]), 3, x);
    return true;
}

/* Its other result, the elected lane, is not read where roles are chosen. */
static bool elect(Flow *f, const SassInstr *in)
{
    if (in->n_operands != 3)
        return false;
    uint32_t lane = result(f, in->operands[1]);
    emit(f, "ld.", lane, 0, NULL);
    emit(f, "elect.sync", result(f, in->operands[0]), 0, NULL);
    return true;
}

typedef struct Named {
    const char *op; /* with `.*`: that and all that goes on with a dot */
    Translate *translate;
} Named;

static const Named named[] = {
    { "MOV", move },
    { "UMOV", move },
    { "R2UR", move },
    { "S2R", special },
    { "S2UR", special },
    { "IMAD", multiply },
    { "IMAD.U32", multiply },
    { "IMAD.MOV", multiply },
    { "IMAD.MOV.U32", multiply },
    { "IMAD.SHL", multiply },
    { "IMAD.SHL.U32", multiply },
    { "IMAD.IADD", multiply },
    { "UIMAD", multiply },
    { "VIADD", add },
    { "IADD3", add },
    { "UIADD3", add },
    { "LEA", shift_and_add },
    { "ULEA", shift_and_add },
    { "SHF.R.U32.HI", shift },
    { "SHF.R.S32.HI", shift },
    { "SHF.L.U32", shift },
    { "USHF.R.U32.HI", shift },
    { "USHF.R.S32.HI", shift },
    { "USHF.L.U32", shift },
    { "SGXT", extend },
    { "SGXT.U32", extend },
    { "USGXT", extend },
    { "USGXT.U32", extend },
    { "LOP3.LUT", bitwise },
    { "ULOP3.LUT", bitwise },
    { "PLOP3.LUT", predicates },
    { "UPLOP3.LUT", predicates },
    { "ISETP.*", compare },
    { "UISETP.*", compare },
    { "SEL", choose },
    { "USEL", choose },
    { "SHFL.IDX", shuffle },
    { "ELECT", elect },
};

static bool is_named(const char *op, const char *name)
{
    size_t n = strlen(name);
    return name[n - 1] == '*' ? !strncmp(op, name, n - 1) : !strcmp(op, name);
}

static bool translate(Flow *f, const SassInstr *in)
{
    for (size_t i = 0; i < sizeof named / sizeof *named; i++)
        if (in->n_operands && is_named(in->op, named[i].op))
            return named[i].translate(f, in);
    return false;
}

/* ---- the rest ------------------------------------------------------------ */

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
        if (begins(op, stems[i]))
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
    for (; i < in->n_operands && is_predicate(in->operands[i]); i++)
        if (predicate(in->operands[i]))
            args[(*n)++] = reg_arg(predicate(in->operands[i]));
    if (i == in->n_operands || compares)
        return i;
    uint32_t first = general(in->operands[i]);
    uint32_t end = first < REG_UR ? REG_UR - 1 : REG_P - 1;
    for (unsigned k = 0; first && k < width(in->op) && first + k < end; k++)
        args[(*n)++] = reg_arg(first + k);
    for (i++; i < in->n_operands && is_predicate(in->operands[i]); i++)
        if (predicate(in->operands[i]))
            args[(*n)++] = reg_arg(predicate(in->operands[i]));
    for (unsigned k = 0; begins(in->op, "R2P") && k < 7; k++)
        args[(*n)++] = reg_arg(REG_P + k);
    return i;
}

/* An instruction of which only that is known. Where it takes more than
 * registers and constants, what it gives is open for that. */
static void open_results(Flow *f, const SassInstr *in)
{
    PtxArg args[2 * SASS_MAX_OPERANDS + 128];
    unsigned n = 0, i = 0;
    if (!has_no_result(in->op))
        i = results(in, args, &n);
    for (unsigned k = 0; k < n; k++)
        args[k].operand = 0;
    PtxInstr *out = emit(f, n ? PTX_OTHER : "st.", 0, 0, NULL);
    out->n_operands = n > 0;
    for (; n && i < in->n_operands; i++) {
        Source s = source(in->operands[i]);
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
    PtxInstr *out = emit(f, "bra", 0, 0, NULL);
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

/* To behind every call. */
static void go_back(Flow *f)
{
    uint32_t *targets = ARENA_ARRAY(f->a, uint32_t, f->k->n_instrs);
    unsigned n = 0;
    for (uint32_t i = 0; i + 1 < f->k->n_instrs; i++)
        if (begins(f->k->instrs[i].op, "CALL"))
            targets[n++] = i + 1;
    PtxInstr *out = emit(f, "bra", 0, 0, NULL);
    out->branches = true;
    out->n_targets = n;
    out->targets = targets;
}

/* Threads meet there and go on behind it, where they said that they would. */
static void meet(Flow *f, const SassInstr *in)
{
    uint32_t next = number_of(f, in) + 1;
    bool told = false;
    for (uint32_t i = 0; i < f->k->n_instrs; i++) {
        const SassInstr *other = &f->k->instrs[i];
        told |= begins(other->op, "BSSY") && other->target == next &&
                in->n_operands && other->n_operands &&
                !strcmp(other->operands[0], in->operands[0]);
    }
    if (!told)
        refuse(f, in, "goes on elsewhere than behind it");
    emit(f, "st.", 0, 0, NULL);
}

/* Does it change where control goes? Then it is emitted. */
static bool control(Flow *f, const SassInstr *in)
{
    if (begins(in->op, "BRX") || begins(in->op, "JMX") ||
        begins(in->op, "JMP")) {
        refuse(f, in, "goes to a place that is computed");
        return false;
    }
    if (begins(in->op, "BRA") || begins(in->op, "CALL"))
        go_to(f, in);
    else if (begins(in->op, "RET"))
        go_back(f);
    else if (begins(in->op, "EXIT"))
        emit(f, "exit", 0, 0, NULL)->ends = true;
    else if (begins(in->op, "BSYNC"))
        meet(f, in);
    else
        return false;
    return true;
}

/* ---- guards -------------------------------------------------------------- */

/* The predicate as a register, right side up. */
static uint32_t as_register(Flow *f, const Source *s)
{
    const PtxArg x[4] = { s->arg, constant(0), constant(0),
                          constant(s->negated ? 0x0f : 0xf0) };
    uint32_t to = new_reg(f);
    emit(f, "lop3.pred", to, 4, x);
    return to;
}

/* A branch has a second predicate as its first operand; one that asks whether
 * the warp has come apart may be taken. */
static uint32_t branch_condition(Flow *f, const SassInstr *in)
{
    if (begins(in->op, "BRA.DIV") || begins(in->op, "BRA.CONV"))
        return REG_OPEN;
    if (!in->n_operands || !(begins(in->op, "BRA") || begins(in->op, "EXIT")))
        return 0;
    Source s = source(in->operands[0]);
    bool is_one = s.negated || (s.arg.kind == PTX_reg && s.arg.reg >= REG_P);
    return is_one ? as_register(f, &s) : 0;
}

/* What stands before it and decides whether it is executed; 0: always. */
static uint32_t condition(Flow *f, const SassInstr *in)
{
    uint32_t guard = 0, second = branch_condition(f, in);
    if (in->guard) {
        Source s = source(in->guard);
        guard = s.arg.kind == PTX_other ? REG_OPEN : as_register(f, &s);
    }
    if (!guard || !second)
        return guard ? guard : second;
    const PtxArg x[4] = { reg_arg(guard), reg_arg(second), constant(0),
                          constant(0xc0) };
    uint32_t both = new_reg(f);
    emit(f, "lop3.pred", both, 4, x);
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
        if (!translate(f, in)) {
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
