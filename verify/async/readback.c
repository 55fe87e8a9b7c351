/* Counting by lines: an instruction is looked for by its stem, in the part of
 * the text that belongs to the kernel's entry. Comments do not count. */
#include "verify/async/readback.h"

#include "passes/abi.h"
#include "verify/async/budget.h"

#include <stdlib.h>
#include <string.h>

static const PtxStem stems[] = {
    { OP_async_elect, "elect.sync _" },
    { OP_async_setmaxnreg, "setmaxnreg." },
    { OP_async_mbarrier_init, "mbarrier.init." },
    { OP_async_mbarrier_wait, "mbarrier.try_wait.parity" },
    { OP_async_mbarrier_arrive, "\tmbarrier.arrive" },
    { OP_async_mbarrier_expect_tx, "mbarrier.expect_tx" },
    { OP_async_cp_async_mbarrier_arrive, "cp.async.mbarrier.arrive" },
    { OP_async_fence_mbarrier_init, "fence.mbarrier_init" },
    { OP_async_fence_proxy, "fence.proxy.async" },
    { OP_async_warp_sync, "bar.warp.sync" },
    { OP_async_barrier_cta_sync, "barrier.cta.sync" },
    { OP_async_barrier_cluster_arrive, "barrier.cluster.arrive" },
    { OP_async_barrier_cluster_wait, "barrier.cluster.wait" },
    { OP_async_bulk_tensor_load, ".shared::cluster.global.tile" },
    { OP_async_bulk_tensor_store, "d.global.shared::cta.tile" },
    { OP_async_bulk_tensor_reduce, "cp.reduce.async.bulk.tensor" },
    { OP_async_bulk_commit_group, "cp.async.bulk.commit_group" },
    { OP_async_bulk_wait_group, "cp.async.bulk.wait_group" },
    { OP_async_cp_async_commit_group, "cp.async.commit_group" },
    { OP_async_cp_async_wait_group, "cp.async.wait_group" },
    { OP_async_cp_async_wait_all, "cp.async.wait_all" },
    { OP_async_wgmma_fence, "wgmma.fence" },
    { OP_async_wgmma_mma_async, "wgmma.mma_async" },
    { OP_async_wgmma_commit_group, "wgmma.commit_group" },
    { OP_async_wgmma_wait_group, "wgmma.wait_group" },
    { OP_none, NULL },
};
enum { N_STEMS = sizeof stems / sizeof *stems - 1 };

const PtxStem *ptx_stem_at(unsigned i)
{
    return &stems[i < N_STEMS ? i : N_STEMS];
}

int64_t ptx_instructions(const Op *op)
{
    int64_t n = 1, extent;
    if (op->code == OP_async_mbarrier_init) {
        const Value *v = op->operands[0].u.value;
        for (unsigned i = 0; i < v->type->rank; i++)
            n *= affine_is_const(v->shape[i], &extent) ? extent : 0;
    } else if (op->code == OP_async_mbarrier_arrive) {
        const Param *p = op_attr_param(op, "cta_xor");
        n = p && p->kind == PARAM_tuple ? (int64_t)p->n : 1;
    }
    return n;
}

typedef struct ReadBack {
    Ctx *ctx;
    uint32_t file;
    const char *text, *at; /* the whole, and a line in it */
    bool bad;
} ReadBack;

static uint32_t line_number(const ReadBack *b, const char *at)
{
    uint32_t n = 1;
    for (const char *p = b->text; p < at; p++)
        n += *p == '\n';
    return n;
}

static void fault(ReadBack *b, const char *at, const char *code,
                  const char *fmt, ...) EXO_PRINTF(4, 5);

static void fault(ReadBack *b, const char *at, const char *code,
                  const char *fmt, ...)
{
    Loc loc = { 0 };
    if (b->file && at)
        loc = (Loc){ b->file, line_number(b, at), 1 };
    va_list ap;
    va_start(ap, fmt);
    char *text = arena_vprintf(ctx_arena(b->ctx), fmt, ap);
    va_end(ap);
    diag_error(b->ctx, loc, code, "PTX: %s: %s", code, text);
    b->bad = true;
}

/* ---- lines --------------------------------------------------------------- */

/* The next line without its comment, in `out`; NULL past the end. */
static const char *next_line(const char **at, const char *end, Arena *arena,
                             const char **out)
{
    const char *line = *at;
    if (line >= end)
        return NULL;
    const char *stop = memchr(line, '\n', (size_t)(end - line));
    stop = stop ? stop : end;
    *at = stop < end ? stop + 1 : end;
    char *copy = arena_strndup(arena, line, (size_t)(stop - line));
    char *comment = strstr(copy, "//");
    if (comment)
        *comment = '\0';
    *out = copy;
    return line;
}

/* The entry of that name: from its head to the next entry or the end. */
static bool find_entry(const ReadBack *b, const char *name, const char **from,
                       const char **to)
{
    char *head = arena_printf(ctx_arena(b->ctx), ".entry %s(", name);
    *from = strstr(b->text, head);
    if (!*from)
        return false;
    const char *next = strstr(*from + 1, ".visible .entry ");
    *to = next ? next : b->text + strlen(b->text);
    return true;
}

/* ---- what must not be there ---------------------------------------------- */

static const char *skip_predicate(const char *s)
{
    s += strspn(s, " \t{");
    if (*s == '@') {
        s += strcspn(s, " \t");
        s += strspn(s, " \t");
    }
    return s;
}

/* Memory instructions name the space that they go to. */
static bool is_generic(const char *line)
{
    static const char *const spaces[] = { ".global", ".shared", ".param",
                                          ".const", ".local" };
    const char *s = skip_predicate(line);
    bool memory = !strncmp(s, "ld.", 3) || !strncmp(s, "st.", 3) ||
                  !strncmp(s, "atom.", 5) || !strncmp(s, "red.", 4);
    size_t n = strcspn(s, " \t[");
    for (unsigned i = 0; memory && i < sizeof spaces / sizeof *spaces; i++) {
        const char *found = strstr(s, spaces[i]);
        if (found && found < s + n)
            return false;
    }
    return memory;
}

static bool uses_local(const char *line)
{
    const char *s = skip_predicate(line);
    return strstr(s, ".local") && (!strncmp(s, "ld.", 3) ||
                                   !strncmp(s, "st.", 3) || *s == '.');
}

static void check_memory(ReadBack *b, const char *line, const char *at)
{
    if (uses_local(line))
        fault(b, at, "PTX-LOCAL", "local memory is used: '%s'",
              line + strspn(line, " \t"));
    else if (is_generic(line) || strstr(line, "cvta.shared"))
        fault(b, at, "PTX-GENERIC", "an access does not name its space: '%s'",
              line + strspn(line, " \t"));
}

/* ---- counts -------------------------------------------------------------- */

static bool count_op(Op *op, void *user)
{
    int64_t *counts = user;
    for (int i = 0; i < N_STEMS; i++)
        if (stems[i].code == op->code)
            counts[i] += ptx_instructions(op);
    return true;
}

static void count_line(const char *line, int64_t *counts)
{
    for (int i = 0; i < N_STEMS; i++)
        for (const char *at = strstr(line, stems[i].stem); at;
             at = strstr(at + 1, stems[i].stem))
            counts[i]++;
}

static void compare(ReadBack *b, const Op *kernel, const char *from,
                    const int64_t *ptx)
{
    int64_t counts[N_STEMS] = { 0 };
    op_walk((Op *)kernel, count_op, counts);
    for (int i = 0; i < N_STEMS; i++)
        if (counts[i] != ptx[i])
            fault(b, from, "PTX-COUNT",
                  "%s has %lld of '%s', but the kernel has %lld",
                  op_attr_str(kernel, "name", ""), (long long)ptx[i],
                  stems[i].stem + strspn(stems[i].stem, "\t"),
                  (long long)counts[i]);
}

/* ---- the head ------------------------------------------------------------ */

static bool needs_90a(Op *op, void *user)
{
    bool *needed = user;
    *needed |= op->code == OP_async_wgmma_mma_async ||
               op->code == OP_async_setmaxnreg;
    return true;
}

static void check_head(ReadBack *b, const Op *kernel)
{
    const char *version = strstr(b->text, "\n.version ");
    const char *target = strstr(b->text, "\n.target ");
    bool needed = false;
    op_walk((Op *)kernel, needs_90a, &needed);
    if (!version || strtod(version + 10, NULL) < 8.0)
        fault(b, version, "T-ARCH", "expected .version 8.0 or later");
    if (!target || strncmp(target + 9, needed ? "sm_90a" : "sm_90",
                           needed ? 6 : 5) != 0)
        fault(b, target, "T-ARCH", "expected .target %s",
              needed ? "sm_90a" : "sm_90");
    char *abi = arena_printf(
        ctx_arena(b->ctx), "// exo-abi: %016llx %s\n",
        (unsigned long long)kernel_abi_hash(b->ctx, kernel),
        op_attr_str(kernel, "name", ""));
    if (!strstr(b->text, abi))
        fault(b, b->text, "PTX-ABI",
              "no line '%.*s': the PTX was made from another kernel",
              (int)strlen(abi) - 1, abi);
}

static void check_kernel(ReadBack *b, const Op *kernel)
{
    const char *from, *to, *line, *at;
    int64_t counts[N_STEMS] = { 0 };
    const char *name = op_attr_str(kernel, "name", "");
    if (!find_entry(b, name, &from, &to)) {
        fault(b, b->text, "PTX-COUNT", "there is no entry %s", name);
        return;
    }
    check_head(b, kernel);
    Arena *scratch = arena_new();
    const char *rest = from;
    while ((at = next_line(&rest, to, scratch, &line))) {
        count_line(line, counts);
        check_memory(b, line, at);
    }
    arena_free(scratch);
    compare(b, kernel, from, counts);
}

CheckResult check_readback(Ctx *ctx, const Module *m, const Op *host,
                           uint32_t file, const char *ptx, size_t n)
{
    ReadBack b = { .ctx = ctx, .file = file };
    b.text = arena_strndup(ctx_arena(ctx), ptx, n);
    for (const Op *op = m->body->first; op; op = op->next)
        if (op->code == OP_async_kernel &&
            kernel_is_launched(host, op_attr_str(op, "name", "")))
            check_kernel(&b, op);
    return (CheckResult){ .check = "check-async/read-back",
                          .proc = op_attr_str(host, "name", "_"),
                          .verdict = b.bad ? VERDICT_refuted : VERDICT_proved,
                          .scope = "all sizes",
                          .version = 1 };
}
