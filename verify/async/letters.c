/* Both sides of one table: an op's name comes from its attributes, that of an
 * instruction from its mnemonic and its last constant. An entry of the library
 * is named by the instructions in its PTX, which is read as a text of its own:
 * by mnemonics, operands and the constants among these. */
#include "verify/async/letters.h"

#include "ir/cache_hint.h"
#include "ir/lib.h"
#include "passes/wgmma_layout.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

/* What an instruction's name ends in, besides the row's. */
typedef enum Field {
    FIELD_none,
    FIELD_last,    /* its last constant */
    FIELD_barrier, /* its last constant, behind the first operand if constant */
    FIELD_size,    /* its third operand, a constant */
    FIELD_times,   /* what comes behind two operands, unless it is 1 */
    FIELD_columns, /* what follows .m64n: shape and types, and the constants */
    FIELD_lanes,   /* that not all of them are meant */
    FIELD_type,    /* its mnemonic's last word */
} Field;

typedef struct Row {
    OpCode code;
    const char *begins, *has; /* of the mnemonic; has: NULL or a part */
    const char *name;
    Field field;
    /* Parts of a mnemonic that are told apart: each that is there is added. */
    const char *parts[2];
} Row;

static const Row rows[] = {
    { OP_async_elect, "elect.sync", NULL, "elect.sync", FIELD_lanes, { 0 } },
    { OP_async_setmaxnreg,
      "setmaxnreg.",
      NULL,
      "setmaxnreg",
      FIELD_last,
      { ".inc", ".dec" } },
    { OP_async_mbarrier_init,
      "mbarrier.init",
      NULL,
      "mbarrier.init",
      FIELD_last,
      { 0 } },
    { OP_async_mbarrier_wait,
      "mbarrier.try_wait.parity",
      NULL,
      "mbarrier.try_wait",
      0,
      { ".cluster" } },
    { OP_async_mbarrier_arrive,
      "mbarrier.arrive",
      NULL,
      "mbarrier.arrive",
      FIELD_times,
      { ".release.cluster", ".shared::cluster" } },
    { OP_async_mbarrier_expect_tx,
      "mbarrier.expect_tx",
      NULL,
      "mbarrier.expect_tx",
      FIELD_last,
      { 0 } },
    { OP_async_cp_async_mbarrier_arrive,
      "cp.async.mbarrier.arrive",
      NULL,
      "cp.async.mbarrier.arrive",
      0,
      { ".noinc" } },
    { OP_async_fence_mbarrier_init,
      "fence.mbarrier_init.release.cluster",
      NULL,
      "fence.mbarrier_init",
      0,
      { 0 } },
    { OP_async_fence_proxy,
      "fence.proxy.async",
      NULL,
      "fence.proxy.async",
      0,
      { ".shared" } },
    { OP_async_warp_sync,
      "bar.warp.sync",
      NULL,
      "bar.warp.sync",
      FIELD_lanes,
      { 0 } },
    { OP_async_barrier_cta_sync,
      "barrier.cta.sync",
      NULL,
      "barrier.cta.sync",
      FIELD_barrier,
      { 0 } },
    { OP_async_barrier_cta_arrive,
      "barrier.cta.arrive",
      NULL,
      "barrier.cta.arrive",
      FIELD_barrier,
      { 0 } },
    { OP_async_barrier_cta_sync,
      "bar.sync",
      NULL,
      "barrier.cta.sync",
      FIELD_barrier,
      { 0 } },
    { OP_async_barrier_cta_sync,
      "barrier.sync",
      NULL,
      "barrier.cta.sync",
      FIELD_barrier,
      { 0 } },
    { OP_async_barrier_cluster_arrive,
      "barrier.cluster.arrive",
      NULL,
      "barrier.cluster.arrive",
      0,
      { ".relaxed" } },
    { OP_async_barrier_cluster_wait,
      "barrier.cluster.wait",
      NULL,
      "barrier.cluster.wait",
      0,
      { 0 } },
    { OP_async_griddepcontrol_wait,
      "griddepcontrol.wait",
      NULL,
      "griddepcontrol.wait",
      0,
      { 0 } },
    { OP_async_griddepcontrol_launch_dependents,
      "griddepcontrol.launch_dependents",
      NULL,
      "griddepcontrol.launch_dependents",
      0,
      { 0 } },
    { OP_async_prefetch_tensormap,
      "prefetch.tensormap",
      NULL,
      "prefetch.tensormap",
      0,
      { 0 } },
    { OP_async_bulk_tensor_load,
      "cp.async.bulk.tensor",
      ".shared::cluster.global",
      "cp.async.bulk.tensor.load",
      FIELD_last,
      { ".multicast", ".L2::cache_hint" } },
    { OP_async_bulk_copy,
      "cp.async.bulk.shared::cluster",
      ".shared::cta",
      "cp.async.bulk.copy",
      FIELD_size,
      { 0 } },
    { OP_async_bulk_tensor_store,
      "cp.async.bulk.tensor",
      ".global.shared::cta",
      "cp.async.bulk.tensor.store",
      FIELD_last,
      { ".L2::cache_hint" } },
    { OP_async_bulk_tensor_reduce,
      "cp.reduce.async.bulk.tensor",
      NULL,
      "cp.reduce.async.bulk.tensor",
      FIELD_last,
      { ".add", ".L2::cache_hint" } },
    { OP_async_bulk_commit_group,
      "cp.async.bulk.commit_group",
      NULL,
      "cp.async.bulk.commit_group",
      0,
      { 0 } },
    { OP_async_bulk_wait_group,
      "cp.async.bulk.wait_group",
      NULL,
      "cp.async.bulk.wait_group",
      FIELD_last,
      { ".read" } },
    { OP_async_cp_async_commit_group,
      "cp.async.commit_group",
      NULL,
      "cp.async.commit_group",
      0,
      { 0 } },
    { OP_async_cp_async_wait_group,
      "cp.async.wait_group",
      NULL,
      "cp.async.wait_group",
      FIELD_last,
      { 0 } },
    { OP_async_cp_async_wait_all,
      "cp.async.wait_all",
      NULL,
      "cp.async.wait_all",
      0,
      { 0 } },
    { OP_async_wgmma_fence, "wgmma.fence", NULL, "wgmma.fence", 0, { 0 } },
    { OP_async_wgmma_mma_async,
      "wgmma.mma_async",
      NULL,
      "wgmma.mma_async",
      FIELD_columns,
      { 0 } },
    { OP_async_wgmma_commit_group,
      "wgmma.commit_group",
      NULL,
      "wgmma.commit_group",
      0,
      { 0 } },
    { OP_async_wgmma_wait_group,
      "wgmma.wait_group",
      NULL,
      "wgmma.wait_group",
      FIELD_last,
      { 0 } },
    { OP_async_cluster_load,
      "ld.shared::cluster",
      NULL,
      "ld.shared::cluster",
      0,
      { ".v2", ".v4" } },
    { OP_async_tile_store, "stmatrix.", NULL, "stmatrix", 0, { 0 } },
    { OP_mem_reduce,
      "atom.",
      ".add.",
      "atom.add",
      FIELD_type,
      { ".global", ".shared" } },
};
enum { N_ROWS = sizeof rows / sizeof *rows };

/* Instructions that no op of their own stands for: an entry of the library has
 * brought them, or nobody. */
static const char *const families[] = {
    "mma.",      "wgmma.",     "ldmatrix.",  "stmatrix.", "movmatrix.",
    "cp.",       "mbarrier.",  "bar",        "fence",     "membar",
    "elect",     "setmaxnreg", "red.",       "atom.",     "multimem.",
    "griddep",   "redux.",     "vote.",      "match.",    "tcgen",
    "tensormap", "clusterla",  "call",       "st.async",  "st.bulk",
    "red.async", "discard.",   "applyprior", "prefetch",  "wmma.",
    "trap",      "brkpt",
};

static unsigned add_name(Alphabet *a, const char *name)
{
    for (size_t i = 0; i < a->names.len; i++)
        if (!strcmp(a->names.data[i], name))
            return (unsigned)i + 1;
    VEC_PUSH(a->a, &a->names, arena_strdup(a->a, name));
    return (unsigned)a->names.len;
}

const char *letter_name(const Alphabet *a, unsigned id)
{
    return id ? a->names.data[id - 1] : "nothing";
}

static bool begins(const char *s, const char *with)
{
    return !strncmp(s, with, strlen(with));
}

bool letters_know(OpCode code)
{
    for (unsigned i = 0; i < N_ROWS; i++)
        if (rows[i].code == code)
            return true;
    return code == OP_async_instr;
}

/* ---- instructions -------------------------------------------------------- */

static bool is_family(const char *op)
{
    for (size_t i = 0; i < sizeof families / sizeof *families; i++)
        if (begins(op, families[i]))
            return true;
    return false;
}

/* 8 x 8 matrices of a stmatrix. */
static unsigned matrices(const char *op)
{
    return strstr(op, ".x4") ? 4 : strstr(op, ".x2") ? 2 : 1;
}

/* One for each operand: its value where it is a constant, else `_`. */
static const char *with_operands(Alphabet *a, const PtxInstr *in)
{
    StrBuf text = { 0 };
    strbuf_add(&text, in->op);
    for (unsigned i = 0, k = 0; i < in->n_operands; i++) {
        const PtxArg *first = &in->args[k];
        unsigned n = 0;
        for (; k < in->n_args && in->args[k].operand <= i; k++)
            n++;
        strbuf_add(&text, i ? ", " : " ");
        if (n == 1 && first->kind == PTX_int && !first->in_address)
            strbuf_addf(&text, "%lld", (long long)first->value);
        else
            strbuf_add(&text, "_");
    }
    const char *out = arena_strdup(a->a, strbuf_text(&text));
    strbuf_free(&text);
    return out;
}

static Letter stmatrix_letter(Alphabet *a, unsigned n, bool transposed)
{
    const char *name = transposed ? "stmatrix.trans" : "stmatrix";
    return (Letter){ .id = add_name(a, name), .count = n, .repeats = true };
}

/* An instruction that no row is for. */
static Letter by_operands(Alphabet *a, const PtxInstr *in)
{
    if (begins(in->op, "stmatrix."))
        return stmatrix_letter(a, matrices(in->op),
                               strstr(in->op, ".trans") != NULL);
    Letter l = { .count = 1 };
    if (is_family(in->op))
        l.id = add_name(a, with_operands(a, in));
    return l;
}

/* Words of a mnemonic that say what is so without them, or what ops leave no
 * choice about. */
static bool is_plain(const Row *row, const char *word)
{
    static const char *const plain[] = {
        ".sync",   ".aligned", ".release",     ".acquire",
        ".shared", ".b32",     ".shared::cta", ".b64",
        ".u32",    ".s32",     ".f32",         ".tile",
        ".1d",     ".2d",      ".3d",          ".4d",
        ".5d",     ".global",  ".bulk_group",  ".mbarrier::complete_tx::bytes",
    };
    if (!strcmp(word, ".relaxed"))
        return row->code == OP_async_mbarrier_expect_tx ||
               row->code == OP_mem_reduce;
    if (!strcmp(word, ".gpu"))
        return row->code == OP_mem_reduce;
    if (!strcmp(word, ".cta"))
        return row->code != OP_mem_reduce;
    if (!strcmp(word, ".global"))
        return row->code != OP_async_fence_proxy;
    for (size_t i = 0; i < sizeof plain / sizeof *plain; i++)
        if (!strcmp(word, plain[i]))
            return true;
    return false;
}

/* Do the row's begin and parts, and plain words, make up the mnemonic? */
static bool is_covered(const Row *row, const char *op)
{
    size_t length = strlen(row->begins);
    for (const char *at = op + length - (row->begins[length - 1] == '.');
         *at;) {
        char word[64];
        size_t n = 1 + strcspn(at + 1, ".");
        if (n >= sizeof word || at[0] != '.')
            return false;
        memcpy(word, at, n);
        word[n] = '\0';
        bool known =
            is_plain(row, word) || (row->has && strstr(row->has, word));
        for (int i = 0; i < 2 && row->parts[i]; i++)
            known = known || strstr(row->parts[i], word) ||
                    begins(word, row->parts[i]);
        if ((row->field == FIELD_columns && begins(word, ".m64n")) ||
            (row->field == FIELD_type && !at[n]))
            return true;
        if (!known)
            return false;
        at += n;
    }
    return true;
}

static const Row *row_of(const char *op)
{
    for (unsigned i = 0; i < N_ROWS; i++) {
        const char *end = rows[i].begins + strlen(rows[i].begins);
        const char *rest = op + (end - rows[i].begins);
        if (begins(op, rows[i].begins) &&
            (end[-1] == '.' || *rest == '.' || !*rest) &&
            (!rows[i].has || strstr(op, rows[i].has)))
            return &rows[i];
    }
    return NULL;
}

/* What follows .m64n, and the constants of mma_async: the signs of A and B, and
 * which of them that lie in shared memory are M- or N-major. */
static void print_columns(const PtxInstr *in, const char *columns, char *out,
                          size_t n)
{
    size_t at = (size_t)snprintf(out, n, " %s", columns);
    for (unsigned i = 0; i < in->n_args && at < n; i++)
        if (in->args[i].kind == PTX_int)
            at += (size_t)snprintf(out + at, n - at, ", %lld",
                                   (long long)in->args[i].value);
}

/* The type that an atomic addition ends in; signs do not matter to it. */
static const char *type_word(const char *op)
{
    const char *word = strrchr(op, '.');
    return !word ? "" : !strcmp(word, ".s32") ? ".u32" : word;
}

/* Is a mask that of all lanes? */
static bool names_warp(const PtxArg *mask)
{
    return (uint32_t)mask->value == UINT32_MAX;
}

static void print_size(const PtxInstr *in, char *out, size_t n)
{
    for (unsigned i = 0; i < in->n_args; i++)
        if (in->args[i].operand == 2 && in->args[i].kind == PTX_int)
            snprintf(out, n, " %lld", (long long)in->args[i].value);
}

static void print_field(const Alphabet *a, const Row *row, const PtxInstr *in,
                        char *out, size_t n)
{
    const PtxArg *last = in->n_args ? &in->args[in->n_args - 1] : NULL;
    const PtxArg *first = in->args;
    const char *columns = strstr(in->op, ".m64n");
    bool constant = last && last->kind == PTX_int;
    if (row->field == FIELD_columns && columns)
        print_columns(in, columns + 5, out, n);
    else if (row->field == FIELD_size)
        print_size(in, out, n);
    else if (row->field == FIELD_type)
        snprintf(out, n, "%s", type_word(in->op));
    else if (row->field == FIELD_lanes && !(constant && names_warp(last)))
        snprintf(out, n, " of other lanes than all");
    else if (row->field == FIELD_barrier && in->n_operands == 1 && constant)
        snprintf(out, n, " %lld, %lld", (long long)last->value,
                 (long long)a->threads);
    else if (row->field == FIELD_barrier && in->n_operands == 1)
        snprintf(out, n, " %lld", (long long)a->threads);
    else if (row->field == FIELD_times && in->n_operands > 2 && !constant)
        snprintf(out, n, " as often as a register says");
    else if (row->field == FIELD_times && in->n_operands > 2 &&
             last->value != 1)
        snprintf(out, n, " %lld times", (long long)last->value);
    else if (row->field == FIELD_barrier && constant && first->kind == PTX_int)
        snprintf(out, n, " %lld, %lld", (long long)first->value,
                 (long long)last->value);
    else if ((row->field == FIELD_last || row->field == FIELD_barrier) &&
             constant)
        snprintf(out, n, " %lld", (long long)last->value);
}

Letter letter_of_instr(Alphabet *a, const PtxInstr *in)
{
    const Row *row = row_of(in->op);
    char name[192], number[128] = "";
    if (!row || row->code == OP_async_tile_store || !is_covered(row, in->op))
        return by_operands(a, in);
    print_field(a, row, in, number, sizeof number);
    snprintf(name, sizeof name, "%s", row->name);
    for (int i = 0; i < 2 && row->parts[i]; i++)
        if (strstr(in->op, row->parts[i]))
            strncat(name, row->parts[i], sizeof name - strlen(name) - 1);
    strncat(name, number, sizeof name - strlen(name) - 1);
    return (Letter){ .id = add_name(a, name),
                     .count = 1,
                     .is_wait = row->code == OP_async_mbarrier_wait };
}

/* ---- ops ----------------------------------------------------------------- */

static void add(Alphabet *a, LetterVec *out, const char *fmt, ...)
    EXO_PRINTF(3, 4);

static void add(Alphabet *a, LetterVec *out, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    Letter l = { .id = add_name(a, arena_vprintf(a->a, fmt, ap)), .count = 1 };
    va_end(ap);
    VEC_PUSH(a->a, out, l);
}

static bool is_scope(const Op *op, const char *scope)
{
    return !strcmp(op_attr_str(op, "scope", "cta"), scope);
}

static void add_inits(Alphabet *a, const Op *op, LetterVec *out)
{
    const Value *v = op->operands[0].u.value;
    int64_t n = 1, extent;
    for (unsigned i = 0; i < v->type->rank; i++)
        n *= v->shape && affine_is_const(v->shape[i], &extent) ? extent : 0;
    for (int64_t i = 0; i < n && v->def; i++)
        add(a, out, "mbarrier.init %lld",
            (long long)op_attr_int(v->def, "count", 0));
}

/* One a CTA: the thread's own is reached otherwise than the others'. */
static void add_arrives(Alphabet *a, const Op *op, LetterVec *out)
{
    const Param *p = op_attr_param(op, "cta_xor");
    unsigned n = p && p->kind == PARAM_tuple ? p->n : 1;
    for (unsigned i = 0; i < n; i++) {
        int64_t x = !p ? 0 : p->kind == PARAM_tuple ? p->items[i].i : p->i;
        bool wide = x && is_scope(op, "cluster");
        add(a, out, "mbarrier.arrive%s%s", wide ? ".release.cluster" : "",
            x ? ".shared::cluster" : "");
    }
}

static bool is_multicast(const Op *op)
{
    const Param *p = op_attr_param(op, "cta_xor");
    if (p && p->kind == PARAM_tuple)
        return p->n > 1 || (p->n == 1 && p->items[0].i != 0);
    return p && p->i != 0;
}

/* A bulk copy, with its policy where it has a hint. */
static void add_copy(Alphabet *a, const Op *op, const char *name,
                     const char *part, LetterVec *out)
{
    int64_t policy;
    if (cache_hint_policy(op_attr_str(op, "cache_hint", ""), &policy))
        add(a, out, "%s%s.L2::cache_hint %lld", name, part, (long long)policy);
    else
        add(a, out, "%s%s", name, part);
}

/* An entry's PTX as a kernel, with one register for all of its operands: where
 * one has several, they stand in a list. */
static void add_entry_text(const Ptx *ptx, StrBuf *out)
{
    strbuf_add(out, ".entry e()\n{\n.reg .b32 %o;\n");
    for (unsigned i = 0; i < ptx->n; i++)
        strbuf_add(out, ptx->pieces[i].text ? ptx->pieces[i].text : "%o");
    strbuf_add(out, "\n}\n");
}

/* The instructions of an entry's PTX. Where that cannot be read, neither can
 * the kernel's. */
static void add_entry(Alphabet *a, const Module *m, const Op *op,
                      LetterVec *out)
{
    const Instr *in = op_instr(m, op);
    const Ptx *ptx = in ? instr_ptx_for(in, a->arch) : NULL;
    Arena *own = arena_new();
    StrBuf text = { 0 };
    PtxKernel k;
    const char *error;
    uint32_t line;
    if (ptx)
        add_entry_text(ptx, &text);
    if (ptx && ptx_read(own, strbuf_text(&text), "e", &k, &error, &line))
        for (unsigned i = 0; i < k.n_instrs; i++) {
            Letter l = letter_of_instr(a, &k.instrs[i]);
            if (l.id)
                VEC_PUSH(a->a, out, l);
        }
    strbuf_free(&text);
    arena_free(own);
}

static void add_tile_store(Alphabet *a, const Op *op, LetterVec *out)
{
    const Type *to = op->operands[0].u.access->base->type;
    if (scalar_type_bytes(to->elem) != 2)
        return; /* plain stores */
    unsigned n = (unsigned)op_attr_int(op, "cols", 0) / 8 * 2;
    bool transposed = op_attr_int(op, "transposed", 0);
    VEC_PUSH(a->a, out, stmatrix_letter(a, n, transposed));
}

static bool is_shared(const Module *m, const Op *op)
{
    const Value *v = value_root(op->operands[0].u.access->base);
    const Mem *mem = v->type->mem ? lib_mem_find(m->lib, v->type->mem) : NULL;
    return mem && mem->family == MEMF_shared;
}

static const char *wgmma_type(const Operand *o)
{
    ScalarType t = o->kind == OPND_access ? o->u.access->base->type->elem
                                          : o->u.value->type->elem;
    return t == TY_f32 ? "tf32" : scalar_info(t)->ptx;
}

/* Is an operand in shared memory M- or N-major, where one can be? */
static const char *major(const Module *m, const Operand *o, int64_t mn,
                         int64_t k)
{
    WgmmaOperand w;
    int64_t len[2];
    if (o->kind != OPND_access ||
        scalar_type_bytes(o->u.access->base->type->elem) != 2)
        return "";
    if (wgmma_operand((Module *)m, o->u.access, mn, k, &w, len) != WGMMA_fits)
        return ", _";
    return w.transposed ? ", 1" : ", 0";
}

/* Operands: the accumulator, A in memory or registers, B. */
static void add_wgmma(Alphabet *a, const Module *m, const Op *op,
                      const char *name, LetterVec *out)
{
    int64_t n = op_attr_int(op, "n", 0), k = op_attr_int(op, "k", 0);
    add(a, out, "%s %lldk%lld.%s.%s.%s, 1, 1%s%s", name, (long long)n,
        (long long)k, scalar_info(op->operands[0].u.value->type->elem)->ptx,
        wgmma_type(&op->operands[1]), wgmma_type(&op->operands[2]),
        major(m, &op->operands[1], 64, k), major(m, &op->operands[2], n, k));
}

static const char *atomic_type(const Op *op)
{
    ScalarType t = op->operands[0].u.access->base->type->elem;
    return t == TY_f64 ? ".f64" : t == TY_f32 ? ".f32" : ".u32";
}

void letters_of_op(Alphabet *a, const Module *m, const Op *op, LetterVec *out)
{
    const char *name = NULL;
    for (unsigned i = 0; i < N_ROWS && !name; i++)
        if (rows[i].code == op->code)
            name = rows[i].name;
    switch (op->code) {
    case OP_async_instr:
        add_entry(a, m, op, out);
        return;
    case OP_async_tile_store:
        add_tile_store(a, op, out);
        return;
    case OP_mem_reduce:
        if (op_is_atomic(op))
            add(a, out, "%s%s%s", name,
                is_shared(m, op) ? ".shared" : ".global", atomic_type(op));
        return;
    case OP_async_mbarrier_init:
        add_inits(a, op, out);
        return;
    case OP_async_mbarrier_arrive:
        add_arrives(a, op, out);
        return;
    case OP_async_setmaxnreg:
        add(a, out, "%s.%s %lld", name, op_attr_str(op, "action", ""),
            (long long)op_attr_int(op, "count", 0));
        return;
    case OP_async_mbarrier_wait:
        add(a, out, "%s%s", name, is_scope(op, "cluster") ? ".cluster" : "");
        out->data[out->len - 1].is_wait = true;
        return;
    case OP_async_mbarrier_expect_tx:
        add(a, out, "%s %lld", name, (long long)op_attr_int(op, "bytes", 0));
        return;
    case OP_async_cp_async_mbarrier_arrive:
        add(a, out, "%s.noinc", name);
        return;
    case OP_async_fence_proxy:
        add(a, out, "%s%s", name,
            strcmp(op_attr_str(op, "space", ""), "shared") ? "" : ".shared");
        return;
    case OP_async_barrier_cluster_arrive:
        add(a, out, "%s%s", name,
            op_attr_int(op, "relaxed", 0) ? ".relaxed" : "");
        return;
    case OP_async_barrier_cta_sync:
    case OP_async_barrier_cta_arrive:
        if (op->n_operands)
            add(a, out, "%s %lld", name,
                (long long)op_attr_int(op, "threads", 0));
        else
            add(a, out, "%s %lld, %lld", name,
                (long long)op_attr_int(op, "id", 0),
                (long long)op_attr_int(op, "threads", 0));
        return;
    case OP_async_bulk_tensor_load:
        add_copy(a, op, name, is_multicast(op) ? ".multicast" : "", out);
        return;
    case OP_async_bulk_tensor_store:
        add_copy(a, op, name, "", out);
        return;
    case OP_async_bulk_copy:
        add(a, out, "%s %lld", name,
            (long long)access_bytes(op->operands[1].u.access));
        return;
    case OP_async_cluster_load:
        add(a, out, "%s%s", name,
            op->n_results == 4   ? ".v4"
            : op->n_results == 2 ? ".v2"
                                 : "");
        return;
    case OP_async_bulk_tensor_reduce:
        add_copy(a, op, name,
                 arena_printf(a->a, ".%s", op_attr_str(op, "op", "add")), out);
        return;
    case OP_async_bulk_wait_group:
        add(a, out, "%s%s %lld", name,
            op_attr_int(op, "read", 0) ? ".read" : "",
            (long long)op_attr_int(op, "n", 0));
        return;
    case OP_async_cp_async_wait_group:
    case OP_async_wgmma_wait_group:
        add(a, out, "%s %lld", name, (long long)op_attr_int(op, "n", 0));
        return;
    case OP_async_wgmma_mma_async:
        add_wgmma(a, m, op, name, out);
        return;
    default:
        if (name)
            add(a, out, "%s", name);
        return;
    }
}
