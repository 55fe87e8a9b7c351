/* Constants through the registers of one thread, only along the edges that it
 * can take (sparse conditional constant propagation).
 *
 * A register's value is the last one of its basic block, else the join of all
 * its definitions in what is reached: no value yet, one constant, or open. The
 * constant is held for the thread and for lane 0 of its warp, because the
 * warp's number is read there by a shuffle. Instructions are classified once by
 * their mnemonics. */
#include "verify/ptx/ptx.h"

#include <stdlib.h>
#include <string.h>

typedef enum Calc {
    CALC_none,    /* writes no register that decides a branch */
    CALC_open,    /* its results depend on more than the thread */
    CALC_unknown, /* its result is not known here */
    CALC_other,   /* nor here, but it depends on all of its sources */
    CALC_mov,
    CALC_cvt,
    CALC_add,
    CALC_sub,
    CALC_mul,
    CALC_mul_hi,
    CALC_mul_wide,
    CALC_mad,
    CALC_mad_wide,
    CALC_div,
    CALC_rem,
    CALC_min,
    CALC_max,
    CALC_neg,
    CALC_abs,
    CALC_shl,
    CALC_shr,
    CALC_and,
    CALC_or,
    CALC_xor,
    CALC_not,
    CALC_lop3,
    CALC_bfe,
    CALC_selp,
    CALC_setp,
    CALC_shfl,
    CALC_elect
} Calc;

typedef enum Compare { CMP_eq, CMP_ne, CMP_lt, CMP_le, CMP_gt, CMP_ge } Compare;

enum { MAX_SOURCES = 4 };

typedef struct Step {
    Calc calc;
    Compare compare;
    unsigned bits, from_bits; /* of the result's type; cvt: of the source's */
    bool is_signed, from_signed;
} Step;

typedef struct Named {
    const char *stem;
    Calc calc;
} Named;

/* The first that the mnemonic begins with. */
static const Named named[] = {
    { "mov.", CALC_mov },
    { "cvta.", CALC_open },
    { "cvt.", CALC_cvt },
    { "add.", CALC_add },
    { "sub.", CALC_sub },
    { "mul.lo.", CALC_mul },
    { "mul.hi.", CALC_mul_hi },
    { "mul.wide.", CALC_mul_wide },
    { "mad.lo.", CALC_mad },
    { "mad.wide.", CALC_mad_wide },
    { "div.", CALC_div },
    { "rem.", CALC_rem },
    { "min.", CALC_min },
    { "max.", CALC_max },
    { "neg.", CALC_neg },
    { "abs.", CALC_abs },
    { "shl.", CALC_shl },
    { "shr.", CALC_shr },
    { "and.", CALC_and },
    { "or.", CALC_or },
    { "xor.", CALC_xor },
    { "not.", CALC_not },
    { "lop3.", CALC_lop3 },
    { "bfe.", CALC_bfe },
    { "selp.", CALC_selp },
    { "setp.", CALC_setp },
    { "shfl.sync.idx.", CALC_shfl },
    { "st.", CALC_none },
    { "red.", CALC_none },
    { "ld.", CALC_open },
    { "atom.", CALC_open },
    { "elect.", CALC_elect },
    { "mbarrier.", CALC_open },
    { "mapa.", CALC_open },
    { "shfl.", CALC_open },
    { "vote.", CALC_open },
    { "match.", CALC_open },
    { "redux.", CALC_open },
    { "activemask.", CALC_open },
    { "ldmatrix.", CALC_open },
    { "cp.", CALC_none },
    { "wgmma.", CALC_none },
    { "mma.", CALC_none },
    { "stmatrix.", CALC_none },
    { "fence.", CALC_none },
    { "membar.", CALC_none },
    { "bar.", CALC_none },
    { "barrier.", CALC_none },
    { "setmaxnreg.", CALC_none },
    { "prefetch", CALC_none },
    { "bra", CALC_none },
    { "ret", CALC_none },
    { "exit", CALC_none },
    { "trap", CALC_none },
    { "griddepcontrol.", CALC_none },
    { "nanosleep.", CALC_none },
    { "discard.", CALC_none },
    { PTX_OTHER, CALC_other },
};

/* The width of the type at `s` (".s32"), 0 for floats and others. */
static unsigned type_bits(const char *s, bool *is_signed)
{
    *is_signed = s[1] == 's';
    if (!strncmp(s, ".pred", 5))
        return 1;
    if (!strchr("usb", s[1]) || !s[1])
        return 0;
    long n = strtol(s + 2, NULL, 10);
    return n == 8 || n == 16 || n == 32 || n == 64 ? (unsigned)n : 0;
}

/* The last two types of a mnemonic, the last first. */
static void types_of(const char *op, Step *s)
{
    const char *last = NULL, *before = NULL;
    bool is_signed;
    for (const char *at = strchr(op, '.'); at; at = strchr(at + 1, '.'))
        if (type_bits(at, &is_signed)) {
            before = last;
            last = at;
        }
    const char *dot = strrchr(op, '.');
    if (!last || last != dot)
        return; /* it ends in a float's type */
    s->bits = type_bits(last, &s->is_signed);
    s->from_bits = s->bits;
    s->from_signed = s->is_signed;
    if (s->calc == CALC_cvt)
        s->bits = before ? type_bits(before, &s->is_signed) : 0;
    if (s->calc == CALC_mul_wide || s->calc == CALC_mad_wide)
        s->bits = 2 * s->from_bits;
}

/* The relation of a `setp`; false where it is another kind of relation. */
static bool compare_of(const char *op, Step *s)
{
    static const char *const names[] = { "eq.", "ne.", "lt.",
                                         "le.", "gt.", "ge." };
    if (s->calc != CALC_setp)
        return true;
    const char *at = op + strlen("setp.");
    s->bits = s->bits ? 1 : 0;
    for (int i = 0; i < 6; i++)
        if (!strncmp(at, names[i], 3)) {
            s->compare = (Compare)i;
            return strchr(at + 3, '.') == NULL; /* not combined */
        }
    return false;
}

/* How many registers its first operand has. */
static unsigned n_results(const PtxInstr *in)
{
    unsigned n = 0;
    for (unsigned i = 0; i < in->n_args && in->args[i].operand == 0; i++)
        n += in->args[i].kind == PTX_reg && !in->args[i].in_address;
    return n;
}

static Step classify(const PtxInstr *in)
{
    Step s = { .calc = CALC_unknown };
    for (size_t i = 0; i < sizeof named / sizeof *named; i++)
        if (!strncmp(in->op, named[i].stem, strlen(named[i].stem))) {
            s.calc = named[i].calc;
            break;
        }
    if (s.calc <= CALC_other)
        return s;
    if (s.calc == CALC_elect) /* any lane would do */
        return s;
    types_of(in->op, &s);
    bool is_plain = n_results(in) == 1 && compare_of(in->op, &s) &&
                    (s.calc != CALC_cvt || !strstr(in->op, ".sat")) &&
                    (s.calc != CALC_mov || in->n_args == 2);
    if (!s.bits) /* a float, or a float's bits */
        s.calc = CALC_open;
    else if (!is_plain)
        s.calc = s.calc == CALC_shfl ? CALC_open : CALC_unknown;
    return s;
}

/* ---- values -------------------------------------------------------------- */

typedef enum State { VALUE_none, VALUE_known, VALUE_open } State;

typedef struct RegValue {
    uint8_t state;
    bool unsure;      /* open because an instruction is not known here */
    bool leader_open; /* known, but not that of lane 0 */
    int64_t v[2];     /* the thread's and that of its warp's lane 0 */
} RegValue;

static int64_t narrow(int64_t v, unsigned bits, bool is_signed)
{
    if (bits >= 64)
        return v;
    uint64_t mask = (UINT64_C(1) << bits) - 1, u = (uint64_t)v & mask;
    if (is_signed && u >> (bits - 1))
        u |= ~mask;
    return (int64_t)u;
}

static int64_t compare(const Step *s, int64_t a, int64_t b)
{
    bool lt = s->from_signed ? a < b : (uint64_t)a < (uint64_t)b;
    switch (s->compare) {
    case CMP_eq:
        return a == b;
    case CMP_ne:
        return a != b;
    case CMP_lt:
        return lt;
    case CMP_le:
        return lt || a == b;
    case CMP_gt:
        return !lt && a != b;
    case CMP_ge:
        return !lt;
    }
    return 0;
}

static int64_t high_half(const Step *s, int64_t a, int64_t b)
{
    if (s->from_bits < 64)
        return (int64_t)((uint64_t)a * (uint64_t)b >> s->from_bits);
    uint64_t x = (uint64_t)a, y = (uint64_t)b;
    uint64_t x0 = x & UINT32_MAX, x1 = x >> 32, y0 = y & UINT32_MAX,
             y1 = y >> 32;
    uint64_t mid = x1 * y0 + (x0 * y0 >> 32);
    uint64_t low = x0 * y1 + (mid & UINT32_MAX);
    uint64_t high = x1 * y1 + (mid >> 32) + (low >> 32);
    high -= s->from_signed && a < 0 ? y : 0;
    high -= s->from_signed && b < 0 ? x : 0;
    return (int64_t)high;
}

static int64_t shifted(const Step *s, int64_t a, int64_t by)
{
    uint64_t n = (uint64_t)by & UINT32_MAX;
    bool all = n >= s->from_bits;
    if (s->calc == CALC_shl)
        return all ? 0 : (int64_t)((uint64_t)a << n);
    if (s->from_signed)
        return a >> (all ? 63 : n);
    return all ? 0 : (int64_t)((uint64_t)a >> n);
}

/* Division as the hardware does it where it is defined; false elsewhere. */
static bool divided(const Step *s, int64_t a, int64_t b, int64_t *out)
{
    bool rem = s->calc == CALC_rem;
    if (b == 0 || (s->from_signed && a == INT64_MIN && b == -1))
        return false;
    if (s->from_signed)
        *out = rem ? a % b : a / b;
    else
        *out = (int64_t)(rem ? (uint64_t)a % (uint64_t)b
                             : (uint64_t)a / (uint64_t)b);
    return true;
}

static int64_t field(const Step *s, int64_t a, int64_t pos, int64_t len)
{
    uint64_t p = (uint64_t)pos & 0xff, n = (uint64_t)len & 0xff;
    if (n == 0)
        return 0;
    p = p >= s->from_bits ? s->from_bits - 1 : p;
    n = n > s->from_bits - p ? s->from_bits - p : n;
    return narrow((int64_t)((uint64_t)narrow(a, s->from_bits, false) >> p),
                  (unsigned)n, s->from_signed);
}

/* Bit by bit what the table says of three bits. */
static uint64_t by_table(uint64_t a, uint64_t b, uint64_t c, uint64_t table)
{
    uint64_t out = 0;
    for (unsigned i = 0; i < 8; i++)
        if (table >> i & 1)
            out |= (i & 4 ? a : ~a) & (i & 2 ? b : ~b) & (i & 1 ? c : ~c);
    return out;
}

/* The result for one lane of its sources. */
static bool calculate(const Step *s, const int64_t *x, int64_t *out)
{
    uint64_t a = (uint64_t)x[0], b = (uint64_t)x[1];
    bool less = s->from_signed ? x[0] < x[1] : a < b;
    int64_t v = 0;
    switch (s->calc) {
    case CALC_mov:
    case CALC_cvt:
    case CALC_shfl:
        v = x[0];
        break;
    case CALC_add:
        v = (int64_t)(a + b);
        break;
    case CALC_sub:
        v = (int64_t)(a - b);
        break;
    case CALC_mul:
    case CALC_mul_wide:
        v = (int64_t)(a * b);
        break;
    case CALC_mul_hi:
        v = high_half(s, x[0], x[1]);
        break;
    case CALC_mad:
    case CALC_mad_wide:
        v = (int64_t)(a * b + (uint64_t)x[2]);
        break;
    case CALC_div:
    case CALC_rem:
        if (!divided(s, x[0], x[1], &v))
            return false;
        break;
    case CALC_min:
        v = less ? x[0] : x[1];
        break;
    case CALC_max:
        v = less ? x[1] : x[0];
        break;
    case CALC_neg:
        v = (int64_t)(0 - a);
        break;
    case CALC_abs:
        v = x[0] < 0 ? (int64_t)(0 - a) : x[0];
        break;
    case CALC_shl:
    case CALC_shr:
        v = shifted(s, x[0], x[1]);
        break;
    case CALC_and:
        v = (int64_t)(a & b);
        break;
    case CALC_or:
        v = (int64_t)(a | b);
        break;
    case CALC_xor:
        v = (int64_t)(a ^ b);
        break;
    case CALC_not:
        v = (int64_t)~a;
        break;
    case CALC_lop3:
        v = (int64_t)by_table(a, b, (uint64_t)x[2], (uint64_t)x[3]);
        break;
    case CALC_bfe:
        v = field(s, x[0], x[1], x[2]);
        break;
    case CALC_selp:
        v = x[2] ? x[0] : x[1];
        break;
    case CALC_setp:
        v = compare(s, x[0], x[1]);
        break;
    default:
        return false;
    }
    *out = narrow(v, s->bits, false);
    return true;
}

/* ---- one thread ---------------------------------------------------------- */

typedef struct Coord {
    uint32_t reg, which;
} Coord;

struct PtxPlan {
    const PtxKernel *k;
    Step *steps;
    RegValue *start; /* what is defined nowhere is open */
    RegValue *regs, *local;
    uint32_t *local_block;
    uint8_t *seen, *is_target;
    uint32_t *stack;
    Coord *coords; /* registers that are defined nowhere */
    size_t n_coords;
    bool has_other; /* CALC_other */
};

typedef struct Run {
    const PtxKernel *k;
    const Step *steps;
    RegValue *regs;
    RegValue *local; /* of the block that is walked, by local_block */
    uint32_t *local_block, block;
    uint8_t *can;
    int64_t lane;
    bool changed;
} Run;

static RegValue value_of(const Run *r, uint32_t reg)
{
    return r->local_block[reg] == r->block ? r->local[reg] : r->regs[reg];
}

static RegValue source(const Run *r, const PtxArg *arg, const Step *s)
{
    RegValue v = { .state = VALUE_open };
    unsigned bits = s->from_bits;
    if (s->calc == CALC_mad_wide && arg->operand == 3)
        bits = s->bits;
    if (s->calc == CALC_lop3 && arg->operand == 4)
        bits = 8; /* the table */
    if (arg->kind == PTX_reg)
        v = value_of(r, arg->reg);
    else if (arg->kind == PTX_int)
        v = (RegValue){ .state = VALUE_known, .v = { arg->value, arg->value } };
    for (int i = 0; i < 2; i++)
        v.v[i] = narrow(v.v[i], bits, s->from_signed);
    return v;
}

static void join(Run *r, uint32_t reg, RegValue v)
{
    RegValue *to = &r->regs[reg], old = *to;
    if (v.state == VALUE_none)
        return;
    if (to->state == VALUE_none)
        *to = v;
    else if (to->state == VALUE_known &&
             (v.state == VALUE_open || v.v[0] != to->v[0]))
        to->state = VALUE_open;
    to->leader_open |= v.leader_open || v.v[1] != to->v[1];
    to->unsure |= v.unsure;
    r->changed |= old.state != to->state || old.unsure != to->unsure ||
                  old.leader_open != to->leader_open;
}

static void join_results(Run *r, const PtxInstr *in, RegValue v)
{
    for (unsigned i = 0; i < in->n_args && in->args[i].operand == 0; i++) {
        uint32_t reg = in->args[i].reg;
        if (in->args[i].kind != PTX_reg || in->args[i].in_address)
            continue;
        join(r, reg, v);
        r->local[reg] = in->guard ? r->regs[reg] : v;
        r->local_block[reg] = r->block;
    }
}

/* Is the result of a table the same whatever its open sources are, for the
 * thread (i = 0), or for lane 0 of its warp? */
static bool is_fixed(const Step *s, const RegValue *x, int i, int64_t *out)
{
    for (unsigned open = 0; open < 8; open++) {
        int64_t of[MAX_SOURCES], v;
        for (unsigned j = 0; j < MAX_SOURCES; j++)
            of[j] = x[j].state == VALUE_known && !(i && x[j].leader_open)
                        ? x[j].v[i]
                        : -(int64_t)(open >> j & 1);
        if (!calculate(s, of, &v) || (open && v != *out))
            return false;
        *out = v;
    }
    return true;
}

static bool table_decides(const Step *s, const RegValue *x, RegValue *out)
{
    *out = (RegValue){ .state = VALUE_known };
    if (x[3].state != VALUE_known || !is_fixed(s, x, 0, &out->v[0]))
        return false;
    out->leader_open = !is_fixed(s, x, 1, &out->v[1]);
    return true;
}

/* A known zero decides `and`, a known one `or` of predicates. */
static bool decided(const Step *s, const RegValue *x, RegValue *out)
{
    if (s->calc == CALC_lop3)
        return table_decides(s, x, out);
    int64_t by = s->calc == CALC_and || s->calc == CALC_mul ? 0 : 1;
    if (s->calc != CALC_and && s->calc != CALC_mul &&
        (s->calc != CALC_or || s->bits != 1))
        return false;
    for (int i = 0; i < 2; i++)
        if (x[i].state == VALUE_known && x[i].v[0] == by) {
            *out =
                (RegValue){ .state = VALUE_known,
                            .leader_open = x[i].leader_open || x[i].v[1] != by,
                            .v = { by, by } };
            return true;
        }
    return false;
}

static RegValue result_of(const Run *r, const PtxInstr *in, const Step *s)
{
    RegValue x[MAX_SOURCES] = { 0 }, out = { .state = VALUE_open };
    int64_t lane[MAX_SOURCES];
    unsigned n = 0;
    bool is_open = false;
    for (unsigned i = 0; i < in->n_args; i++)
        if (in->args[i].operand > 0 && n < MAX_SOURCES)
            x[n++] = source(r, &in->args[i], s);
    if (s->calc == CALC_shfl) { /* from lane 0, else open */
        if (n < 2 || x[1].state != VALUE_known || x[1].v[0] != 0 ||
            x[0].leader_open)
            return x[0].state == VALUE_none ? x[0] : out;
        x[0].v[0] = x[0].v[1];
        n = 1;
    }
    if (decided(s, x, &out))
        return out;
    out = (RegValue){ .state = VALUE_open };
    for (unsigned i = 0; i < n; i++) {
        if (x[i].state == VALUE_none)
            return x[i];
        is_open |= x[i].state == VALUE_open;
        out.unsure |= x[i].unsure;
        out.leader_open |= x[i].leader_open;
    }
    if (is_open)
        return out;
    out.state = VALUE_known;
    for (int i = 0; i < 2; i++) {
        for (int j = 0; j < MAX_SOURCES; j++)
            lane[j] = x[j].v[i];
        if (!calculate(s, lane, &out.v[i]))
            out.state = VALUE_open;
    }
    return out;
}

/* Open, and for a reason that is known where a source is. */
static RegValue other_result(const Run *r, const PtxInstr *in, const Step *s)
{
    RegValue out = { .state = VALUE_open };
    bool is_open = false;
    for (unsigned i = 0; i < in->n_args; i++) {
        RegValue v = source(r, &in->args[i], s);
        if (in->args[i].operand == 0)
            continue;
        if (v.state == VALUE_none)
            return v;
        is_open |= v.state == VALUE_open;
        out.unsure |= v.unsure;
    }
    out.unsure |= !is_open;
    return out;
}

static void execute(Run *r, uint32_t i)
{
    const PtxInstr *in = &r->k->instrs[i];
    const Step *s = &r->steps[i];
    RegValue v = { .state = VALUE_open, .unsure = s->calc == CALC_unknown };
    if (s->calc == CALC_none)
        return;
    if (s->calc == CALC_elect)
        v = (RegValue){ .state = VALUE_known, .v = { r->lane == 0, 1 } };
    else if (s->calc == CALC_other)
        v = other_result(r, in, s);
    else if (s->calc > CALC_other)
        v = result_of(r, in, s);
    join_results(r, in, v);
}

static uint8_t guard_of(const Run *r, const PtxInstr *in)
{
    if (!in->guard)
        return PTX_CAN_RUN;
    RegValue v = value_of(r, in->guard);
    if (v.state == VALUE_known)
        return (v.v[0] != 0) != in->guard_not ? PTX_CAN_RUN : PTX_CAN_SKIP;
    return v.state == VALUE_none ? 0 : PTX_CAN_RUN | PTX_CAN_SKIP;
}

/* One round: every instruction that can be reached, once. */
static void walk(Run *r, const PtxPlan *p)
{
    unsigned n = 0;
    uint8_t *seen = p->seen;
    uint32_t *stack = p->stack;
    stack[n++] = 0;
    while (n) {
        r->block++;
        for (uint32_t i = stack[--n]; i < r->k->n_instrs && !seen[i]; i++) {
            const PtxInstr *in = &r->k->instrs[i];
            r->block += p->is_target[i];
            uint8_t can = guard_of(r, in);
            seen[i] = 1;
            r->changed |= (r->can[i] | can) != r->can[i];
            r->can[i] |= can;
            if (can & PTX_CAN_RUN)
                execute(r, i);
            for (unsigned t = 0; t < in->n_targets; t++)
                if (can & PTX_CAN_RUN && !seen[in->targets[t]])
                    stack[n++] = in->targets[t];
            bool falls = !in->branches && !in->ends;
            if (!falls && !(can & PTX_CAN_SKIP))
                break;
        }
    }
}

/* Rounds until nothing changes. */
static void walk_all(Run *r, const PtxPlan *p)
{
    do {
        r->changed = false;
        memset(p->seen, 0, r->k->n_instrs);
        walk(r, p);
    } while (r->changed);
}

/* Registers that say which thread it is. */
static const char *const coordinates[] = {
    "%tid.x",
    "%tid.y",
    "%tid.z",
    "%laneid",
    "%ntid.x",
    "%cluster_ctarank",
    "%cluster_nctarank",
};
enum { N_COORDINATES = sizeof coordinates / sizeof *coordinates };

static void set_coordinates(Run *r, const PtxPlan *p, const PtxThread *t)
{
    int64_t first = 32 * t->warp, thread = first + t->lane;
    const int64_t known[N_COORDINATES][2] = {
        { thread, first },
        { 0, 0 },
        { 0, 0 },
        { t->lane, 0 },
        { t->block_dim, t->block_dim },
        { t->cta, t->cta },
        { t->cluster_dim, t->cluster_dim },
    };
    for (size_t i = 0; i < p->n_coords; i++) {
        RegValue *v = &r->regs[p->coords[i].reg];
        v->state = VALUE_known;
        memcpy(v->v, known[p->coords[i].which], sizeof v->v);
    }
}

static bool stays_sure(const Run *r)
{
    for (uint32_t i = 0; i < r->k->n_instrs; i++) {
        const PtxInstr *in = &r->k->instrs[i];
        if (r->can[i] == (PTX_CAN_RUN | PTX_CAN_SKIP) &&
            r->regs[in->guard].unsure)
            return false;
    }
    return true;
}

static void find_coordinates(PtxPlan *p, Arena *a)
{
    p->coords = ARENA_ARRAY(a, Coord, p->k->n_regs + 1);
    for (uint32_t i = 1; i <= p->k->n_regs; i++)
        for (uint32_t j = 0; j < N_COORDINATES; j++)
            if (p->start[i].state == VALUE_open &&
                !strcmp(p->k->regs[i].name, coordinates[j]))
                p->coords[p->n_coords++] = (Coord){ i, j };
}

/* Does the instruction write one of these registers? */
static bool writes_any(const PtxInstr *in, const bool *of)
{
    for (unsigned j = 0; j < in->n_args; j++) {
        const PtxArg *x = &in->args[j];
        if (x->operand == 0 && x->kind == PTX_reg && !x->in_address &&
            of[x->reg])
            return true;
    }
    return false;
}

/* Most instructions write nothing that decides a guard: these are left out. */
static void leave_out(PtxPlan *p, Arena *a)
{
    const PtxKernel *k = p->k;
    bool *needed = ARENA_ARRAY(a, bool, k->n_regs + 1);
    bool more = true;
    for (uint32_t i = 0; i < k->n_instrs; i++)
        needed[k->instrs[i].guard] = true;
    needed[0] = false; /* no guard */
    while (more) {
        more = false;
        for (uint32_t i = k->n_instrs; i-- > 0;) {
            const PtxInstr *in = &k->instrs[i];
            for (unsigned j = 0; writes_any(in, needed) && j < in->n_args; j++)
                if (in->args[j].kind == PTX_reg && !needed[in->args[j].reg])
                    more = needed[in->args[j].reg] = true;
        }
    }
    for (uint32_t i = 0; i < k->n_instrs; i++)
        if (!writes_any(&k->instrs[i], needed))
            p->steps[i].calc = CALC_none;
}

PtxPlan *ptx_plan(Arena *a, const PtxKernel *k)
{
    PtxPlan *p = ARENA_NEW(a, PtxPlan);
    size_t edges = 1;
    p->k = k;
    p->steps = ARENA_ARRAY(a, Step, k->n_instrs + 1);
    p->start = ARENA_ARRAY(a, RegValue, k->n_regs + 1);
    p->regs = ARENA_ARRAY(a, RegValue, k->n_regs + 1);
    p->local = ARENA_ARRAY(a, RegValue, k->n_regs + 1);
    p->local_block = ARENA_ARRAY(a, uint32_t, k->n_regs + 1);
    p->seen = ARENA_ARRAY(a, uint8_t, k->n_instrs + 1);
    p->is_target = ARENA_ARRAY(a, uint8_t, k->n_instrs + 1);
    for (uint32_t i = 1; i <= k->n_regs; i++)
        p->start[i].state = VALUE_open;
    for (uint32_t i = 0; i < k->n_instrs; i++) {
        const PtxInstr *in = &k->instrs[i];
        p->steps[i] = classify(in);
        p->has_other |= p->steps[i].calc == CALC_other;
        edges += in->n_targets;
        for (unsigned j = 0; j < in->n_targets; j++)
            p->is_target[in->targets[j]] = 1;
        for (unsigned j = 0; p->steps[i].calc != CALC_none && j < in->n_args &&
                             in->args[j].operand == 0;
             j++)
            if (!in->args[j].in_address)
                p->start[in->args[j].reg].state = VALUE_none;
    }
    find_coordinates(p, a);
    leave_out(p, a);
    p->stack = ARENA_ARRAY(a, uint32_t, edges);
    return p;
}

bool ptx_run(const PtxPlan *p, const PtxThread *t, uint8_t *can)
{
    const PtxKernel *k = p->k;
    Run r = { .k = k,
              .steps = p->steps,
              .regs = p->regs,
              .local = p->local,
              .local_block = p->local_block,
              .can = can,
              .lane = t->lane };
    memcpy(p->regs, p->start, (k->n_regs + 1) * sizeof(RegValue));
    memset(p->local_block, 0, (k->n_regs + 1) * sizeof(uint32_t));
    memset(can, 0, k->n_instrs);
    set_coordinates(&r, p, t);
    walk_all(&r, p);
    if (p->has_other) { /* what looked known for a time was not */
        for (uint32_t i = 1; i <= k->n_regs; i++)
            r.regs[i].unsure = false;
        walk_all(&r, p);
    }
    return stays_sure(&r);
}
