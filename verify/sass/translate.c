/* Instructions whose value may come from the thread's number, as PTX: integer
 * arithmetic, comparisons, functions of predicates, the shuffle that reads lane
 * 0, the election. A row names the mnemonics that a translation is for; a
 * further word in one is another function. */
#include "verify/sass/flow_internal.h"

#include <stdlib.h>
#include <string.h>

/* ---- operands ------------------------------------------------------------ */

bool sass_begins(const char *s, const char *with)
{
    return !strncmp(s, with, strlen(with));
}

/* "R12": its number from `base`, below `limit`; 0 where it is none. */
static uint32_t numbered(const char *s, const char *prefix, uint32_t base,
                         unsigned limit)
{
    char *end;
    size_t n = strlen(prefix);
    if (!sass_begins(s, prefix) || s[n] < '0' || s[n] > '9')
        return 0;
    unsigned long number = strtoul(s + n, &end, 10);
    return !*end && number < limit ? base + (uint32_t)number : 0;
}

uint32_t sass_predicate(const char *s)
{
    uint32_t reg = numbered(s, "P", REG_P, 7);
    return reg ? reg : numbered(s, "UP", REG_UP, 7);
}

bool sass_is_predicate(const char *s)
{
    return sass_predicate(s) || !strcmp(s, "PT") || !strcmp(s, "UPT");
}

uint32_t sass_general(const char *s)
{
    uint32_t reg = numbered(s, "R", REG_R, 255);
    return reg ? reg : numbered(s, "UR", REG_UR, 63);
}

PtxArg sass_constant(int64_t v)
{
    return (PtxArg){ .kind = PTX_int, .value = v, .operand = 1 };
}

PtxArg sass_reg(uint32_t reg)
{
    return (PtxArg){ .kind = PTX_reg, .reg = reg, .operand = 1 };
}

Source sass_source(const char *s)
{
    Source out = { .arg = { .kind = PTX_other } };
    char *end;
    out.negated = *s == '!';
    s += out.negated;
    long long v = strtoll(s, &end, 0);
    if (*s && !*end) {
        out.arg = sass_constant(v);
        return out;
    }
    out.minus = *s == '-';
    s += out.minus;
    if (!strcmp(s, "RZ") || !strcmp(s, "URZ"))
        out.arg = sass_constant(0);
    else if (!strcmp(s, "PT") || !strcmp(s, "UPT"))
        out.arg = sass_constant(1);
    else if (sass_general(s) || sass_predicate(s))
        out.arg =
            sass_reg(sass_general(s) ? sass_general(s) : sass_predicate(s));
    return out;
}

/* ---- emission ------------------------------------------------------------ */

uint32_t flow_new_reg(Flow *f)
{
    return f->n_regs++;
}

PtxInstr *flow_emit(Flow *f, const char *op, uint32_t to, unsigned n,
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
    uint32_t to = flow_new_reg(f);
    flow_emit(f, "neg.s32", to, 1, &s->arg);
    return sass_reg(to);
}

/* n operands of the instruction from the first-th as sources. False where one
 * is of a kind that is not read. */
static bool sources(Flow *f, const SassInstr *in, unsigned first, unsigned n,
                    PtxArg *out)
{
    for (unsigned i = 0; i < n; i++) {
        Source s = { .arg = { .kind = PTX_other } };
        if (first + i < in->n_operands)
            s = sass_source(in->operands[first + i]);
        if (s.arg.kind == PTX_other || s.negated)
            return false;
        out[i] = plain(f, &s);
    }
    return true;
}

/* Where a result goes: a register of its own where it goes nowhere. */
static uint32_t result(Flow *f, const char *s)
{
    uint32_t reg = sass_general(s);
    reg = reg ? reg : sass_predicate(s);
    return reg ? reg : flow_new_reg(f);
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
    flow_emit(f, "mov.b32", result(f, in->operands[0]), 1, &x);
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
            PtxArg x = sass_reg(known[i].reg);
            flow_emit(f, "mov.b32", result(f, in->operands[0]), 1, &x);
            return true;
        }
    return false;
}

static bool multiply(Flow *f, const SassInstr *in)
{
    PtxArg x[3];
    if (in->n_operands != 4 || !sources(f, in, 1, 3, x))
        return false;
    flow_emit(f, "mad.lo.u32", result(f, in->operands[0]), 3, x);
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
        uint32_t sum = flow_new_reg(f);
        flow_emit(f, "add.u32", sum, 2, x);
        x[0] = sass_reg(sum);
        x[1] = x[2];
    }
    flow_emit(f, "add.u32", result(f, in->operands[0]), 2, x);
    return true;
}

static bool shift_and_add(Flow *f, const SassInstr *in)
{
    PtxArg x[3], sum[2];
    if (in->n_operands != 4 || !sources(f, in, 1, 3, x))
        return false;
    uint32_t shifted = flow_new_reg(f);
    const PtxArg by[2] = { x[0], x[2] };
    flow_emit(f, "shl.b32", shifted, 2, by);
    sum[0] = sass_reg(shifted);
    sum[1] = x[1];
    flow_emit(f, "add.u32", result(f, in->operands[0]), 2, sum);
    return true;
}

/* The high half of 64 bits that are shifted, of which the upper are zero, and a
 * summand: a shift to the right. */
static bool shift_back_and_add(Flow *f, const SassInstr *in)
{
    PtxArg x[4], sum[2];
    if (in->n_operands != 5 || !sources(f, in, 1, 4, x) ||
        x[2].kind != PTX_int || x[2].value || x[3].kind != PTX_int ||
        x[3].value < 1 || x[3].value > 31)
        return false;
    uint32_t shifted = flow_new_reg(f);
    const PtxArg by[2] = { x[0], sass_constant(32 - x[3].value) };
    flow_emit(f, "shr.u32", shifted, 2, by);
    sum[0] = sass_reg(shifted);
    sum[1] = x[1];
    flow_emit(f, "add.u32", result(f, in->operands[0]), 2, sum);
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
    flow_emit(f,
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
    x[1] = sass_constant(0);
    flow_emit(f, strstr(in->op, ".U32") ? "bfe.u32" : "bfe.s32",
              result(f, in->operands[0]), 3, x);
    return true;
}

/* A function of three bits by its table; with a predicate first, whether the
 * result is not zero. */
static bool bitwise(Flow *f, const SassInstr *in)
{
    unsigned tested = sass_is_predicate(in->operands[0]);
    PtxArg x[4];
    if (in->n_operands != 6 + tested ||
        !strchr(in->operands[5 + tested], '!') ||
        !sources(f, in, 1 + tested, 4, x) || x[3].kind != PTX_int)
        return false;
    uint32_t bits = result(f, in->operands[tested]);
    flow_emit(f, "lop3.b32", bits, 4, x);
    if (tested) {
        x[0] = sass_reg(bits);
        x[1] = sass_constant(0);
        flow_emit(f, "setp.ne.u32", result(f, in->operands[0]), 2, x);
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
    if (in->n_operands != 7 || sass_source(in->operands[5]).arg.kind != PTX_int)
        return false;
    int64_t table = sass_source(in->operands[5]).arg.value;
    for (int i = 0; i < 3; i++) {
        Source s = sass_source(in->operands[2 + i]);
        if (s.arg.kind == PTX_other)
            return false;
        x[i] = s.arg;
        table = s.negated ? inverted(table, i) : table;
    }
    if (sass_predicate(in->operands[1]))
        return false;
    x[3] = sass_constant(table);
    flow_emit(f, "lop3.pred", result(f, in->operands[0]), 4, x);
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
    Source with = sass_source(in->operands[4]);
    if (with.arg.kind == PTX_other)
        return false;
    uint32_t holds = flow_new_reg(f);
    flow_emit(f,
              arena_printf(f->a, "setp.%s.%s", name,
                           strstr(in->op, ".U32") ? "u32" : "s32"),
              holds, 2, x);
    x[0] = x[1] = sass_reg(holds);
    x[2] = with.arg;
    for (unsigned i = 2; i-- > 0;) {
        int64_t table = is_or ? 0xf0 | 0xaa : 0xf0 & 0xaa;
        table = i ? inverted(table, 0) : table;
        x[1] = sass_constant(0);
        x[3] = sass_constant(with.negated ? inverted(table, 2) : table);
        flow_emit(f, "lop3.pred", result(f, in->operands[i]), 4, x);
    }
    return true;
}

static bool choose(Flow *f, const SassInstr *in)
{
    PtxArg x[3];
    if (in->n_operands != 4 || !sources(f, in, 1, 2, x))
        return false;
    Source by = sass_source(in->operands[3]);
    if (by.arg.kind == PTX_other)
        return false;
    const PtxArg of[3] = { x[by.negated], x[!by.negated], by.arg };
    flow_emit(f, "selp.b32", result(f, in->operands[0]), 3, of);
    return true;
}

static bool shuffle(Flow *f, const SassInstr *in)
{
    PtxArg x[3];
    if (in->n_operands != 5 || strcmp(in->operands[0], "PT") != 0 ||
        !sources(f, in, 2, 3, x))
        return false;
    flow_emit(f, "shfl.sync.idx.b32", result(f, in->operands[1]), 3, x);
    return true;
}

/* Its other result, the elected lane, is not read where roles are chosen. */
static bool elect(Flow *f, const SassInstr *in)
{
    if (in->n_operands != 3)
        return false;
    uint32_t lane = result(f, in->operands[1]);
    flow_emit(f, "ld.", lane, 0, NULL);
    flow_emit(f, "elect.sync", result(f, in->operands[0]), 0, NULL);
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
    { "LEA.HI", shift_back_and_add },
    { "ULEA.HI", shift_back_and_add },
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

bool sass_translate(Flow *f, const SassInstr *in)
{
    for (size_t i = 0; i < sizeof named / sizeof *named; i++)
        if (in->n_operands && is_named(in->op, named[i].op))
            return named[i].translate(f, in);
    return false;
}
