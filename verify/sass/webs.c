/* Each definition is a node, and so is each register where branches meet; a
 * walk through the text unites with that what reaches it, if it is live there.
 * A guarded definition leaves what was there before it, and is united with
 * that. */
#include "verify/sass/webs.h"

#include <string.h>

typedef struct Webs {
    Arena *a;
    PtxInstr *instrs;
    uint32_t n;
    unsigned n_physical, n_words;
    uint64_t **live;      /* by instruction where branches meet, else NULL */
    uint32_t **at;        /* there, by register: its node */
    uint32_t *now;        /* by register, in the walk */
    VEC(uint32_t) parent; /* of nodes */
} Webs;

static bool falls_through(const PtxInstr *in)
{
    return in->guard || (!in->branches && !in->ends);
}

static PtxArg *args_of(const PtxInstr *in)
{
    return (PtxArg *)(uintptr_t)in->args;
}

/* ---- what is live -------------------------------------------------------- */

static void set_live(const Webs *w, uint64_t *live, uint32_t reg, bool on)
{
    uint64_t bit = UINT64_C(1) << reg % 64;
    if (reg && reg <= w->n_physical)
        live[reg / 64] = on ? live[reg / 64] | bit : live[reg / 64] & ~bit;
}

static bool is_live(const uint64_t *live, uint32_t reg)
{
    return live[reg / 64] >> reg % 64 & 1;
}

static void step_back(const Webs *w, const PtxInstr *in, uint64_t *live)
{
    for (unsigned i = 0; i < in->n_args && !in->guard; i++)
        if (in->args[i].kind == PTX_reg && !in->args[i].operand)
            set_live(w, live, in->args[i].reg, false);
    for (unsigned i = 0; i < in->n_args; i++)
        if (in->args[i].kind == PTX_reg && in->args[i].operand)
            set_live(w, live, in->args[i].reg, true);
    set_live(w, live, in->guard, true);
}

/* One walk from the end; true when something was added. */
static bool find_live(Webs *w, uint64_t *live)
{
    bool changed = false;
    for (uint32_t i = w->n; i-- > 0;) {
        const PtxInstr *in = &w->instrs[i];
        if (!falls_through(in) || i + 1 == w->n)
            memset(live, 0, w->n_words * sizeof *live);
        for (unsigned t = 0; t < in->n_targets; t++)
            for (unsigned k = 0; k < w->n_words; k++)
                live[k] |= w->live[in->targets[t]][k];
        step_back(w, in, live);
        for (unsigned k = 0; w->live[i] && k < w->n_words; k++) {
            changed |= (live[k] & ~w->live[i][k]) != 0;
            w->live[i][k] |= live[k];
        }
    }
    return changed;
}

/* ---- nodes --------------------------------------------------------------- */

static uint32_t new_node(Webs *w)
{
    uint32_t node = (uint32_t)w->parent.len;
    VEC_PUSH(w->a, &w->parent, node);
    return node;
}

static uint32_t root_of(Webs *w, uint32_t node)
{
    uint32_t *parent = w->parent.data;
    while (parent[node] != node)
        node = parent[node] = parent[parent[node]];
    return node;
}

static void unite(Webs *w, uint32_t x, uint32_t y)
{
    x = root_of(w, x);
    w->parent.data[x] = root_of(w, y);
}

/* Control goes on from here to where branches meet. */
static void flow_to(Webs *w, uint32_t i)
{
    for (unsigned r = 1; r <= w->n_physical; r++)
        if (is_live(w->live[i], r))
            unite(w, w->now[r], w->at[i][r]);
}

static void use_and_define(Webs *w, PtxInstr *in)
{
    PtxArg *args = args_of(in);
    bool guarded = in->guard != 0;
    if (guarded)
        in->guard = w->now[in->guard];
    for (unsigned i = 0; i < in->n_args; i++)
        if (args[i].kind == PTX_reg && args[i].operand)
            args[i].reg = w->now[args[i].reg];
    for (unsigned i = 0; i < in->n_args; i++)
        if (args[i].kind == PTX_reg && !args[i].operand) {
            uint32_t reg = args[i].reg;
            args[i].reg = new_node(w);
            if (guarded)
                unite(w, args[i].reg, w->now[reg]);
            w->now[reg] = args[i].reg;
        }
}

static void name_nodes(Webs *w)
{
    for (uint32_t i = 0; i < w->n; i++) {
        PtxInstr *in = &w->instrs[i];
        if (w->live[i]) {
            if (i == 0 || falls_through(in - 1))
                flow_to(w, i);
            memcpy(w->now, w->at[i], (w->n_physical + 1) * sizeof *w->now);
        }
        use_and_define(w, in);
        for (unsigned t = 0; t < in->n_targets; t++)
            flow_to(w, in->targets[t]);
    }
}

/* ---- the whole ----------------------------------------------------------- */

static void add_meeting(Webs *w, uint32_t i)
{
    if (w->live[i])
        return;
    w->live[i] = ARENA_ARRAY(w->a, uint64_t, w->n_words);
    w->at[i] = ARENA_ARRAY(w->a, uint32_t, w->n_physical + 1);
    for (unsigned r = 1; r <= w->n_physical; r++)
        w->at[i][r] = new_node(w);
}

static void number_webs(Webs *w, PtxKernel *k, const uint32_t *first)
{
    uint32_t *number = ARENA_ARRAY(w->a, uint32_t, w->parent.len);
    uint32_t n = 0;
    for (uint32_t i = 0; i < w->parent.len; i++)
        if (root_of(w, i) == i)
            number[i] = ++n;
    PtxReg *regs = ARENA_ARRAY(w->a, PtxReg, n + 1);
    for (uint32_t i = 0; i <= n; i++)
        regs[i].name = "";
    for (uint32_t r = 1; r <= k->n_regs; r++)
        regs[number[root_of(w, first[r])]].name = k->regs[r].name;
    for (uint32_t i = 0; i < w->n; i++) {
        PtxInstr *in = &w->instrs[i];
        PtxArg *args = args_of(in);
        if (in->guard)
            in->guard = number[root_of(w, in->guard)];
        for (unsigned j = 0; j < in->n_args; j++)
            if (args[j].kind == PTX_reg)
                args[j].reg = number[root_of(w, args[j].reg)];
    }
    k->regs = regs;
    k->n_regs = n;
}

void webs_rename(Arena *a, PtxKernel *k, unsigned n_physical)
{
    Webs w = { .a = a,
               .instrs = (PtxInstr *)(uintptr_t)k->instrs,
               .n = k->n_instrs,
               .n_physical = n_physical,
               .n_words = n_physical / 64 + 1 };
    w.live = ARENA_ARRAY(a, uint64_t *, w.n + 1);
    w.at = ARENA_ARRAY(a, uint32_t *, w.n + 1);
    w.now = ARENA_ARRAY(a, uint32_t, k->n_regs + 1);
    new_node(&w); /* none */
    for (uint32_t r = 1; r <= k->n_regs; r++)
        w.now[r] = new_node(&w);
    uint32_t *first = arena_memdup(a, w.now, (k->n_regs + 1) * sizeof *w.now);
    for (uint32_t i = 0; i < w.n; i++)
        for (unsigned t = 0; t < w.instrs[i].n_targets; t++)
            add_meeting(&w, w.instrs[i].targets[t]);
    uint64_t *live = ARENA_ARRAY(a, uint64_t, w.n_words);
    while (find_live(&w, live))
        ;
    name_nodes(&w);
    number_webs(&w, k, first);
}
