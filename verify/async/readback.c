/* The PTX of each launched kernel is read as instructions; its head and every
 * instruction by itself here, what threads do in order in paths.h. */
#include "verify/async/readback.h"

#include "passes/abi.h"
#include "verify/async/budget.h"
#include "verify/async/dependent.h"
#include "verify/async/paths.h"

#include <stdlib.h>
#include <string.h>

typedef struct ReadBack {
    Ctx *ctx;
    uint32_t file;
    const char *text;
    bool bad;
    const char *open; /* why it could not be decided */
} ReadBack;

static void fault(ReadBack *b, uint32_t line, const char *code, const char *fmt,
                  ...) EXO_PRINTF(4, 5);

static void fault(ReadBack *b, uint32_t line, const char *code, const char *fmt,
                  ...)
{
    Loc loc = { 0 };
    if (b->file && line)
        loc = (Loc){ b->file, line, 1 };
    va_list ap;
    va_start(ap, fmt);
    char *text = arena_vprintf(ctx_arena(b->ctx), fmt, ap);
    va_end(ap);
    diag_error(b->ctx, loc, code, "PTX: %s: %s", code, text);
    b->bad = true;
}

/* ---- instructions by themselves ------------------------------------------ */

static bool begins(const char *s, const char *with)
{
    return !strncmp(s, with, strlen(with));
}

/* Instructions that take an address name the space that it is in. */
static bool is_generic(const char *op)
{
    static const char *const takes[] = { "ld.",       "st.",       "atom.",
                                         "red.",      "mbarrier.", "ldmatrix.",
                                         "stmatrix.", "cp.async." };
    static const char *const spaces[] = { ".global", ".shared", ".param",
                                          ".const", ".local" };
    bool memory = false;
    for (size_t i = 0; i < sizeof takes / sizeof *takes; i++)
        memory |= begins(op, takes[i]);
    if (strstr(op, "_group") || strstr(op, "wait_all") ||
        begins(op, "mbarrier.pending_count"))
        return false;
    for (size_t i = 0; memory && i < sizeof spaces / sizeof *spaces; i++)
        if (strstr(op, spaces[i]))
            return false;
    return memory;
}

/* An address in shared memory that is made generic can be used as one. */
static bool makes_generic(const char *op)
{
    return begins(op, "cvta.shared") || begins(op, "cvta.local");
}

static void check_instr(ReadBack *b, const PtxInstr *in)
{
    bool memory = begins(in->op, "ld.") || begins(in->op, "st.");
    if (begins(in->op, "alloca.") || (memory && strstr(in->op, ".local")))
        fault(b, in->line, "PTX-LOCAL", "local memory is used: '%s'", in->op);
    else if (is_generic(in->op) || makes_generic(in->op))
        fault(b, in->line, "PTX-GENERIC",
              "an access does not name its space: '%s'", in->op);
}

/* ---- the head ------------------------------------------------------------ */

static bool needs_90a(Op *op, void *user)
{
    bool *needed = user;
    *needed |=
        op->code == OP_async_wgmma_mma_async || op->code == OP_async_setmaxnreg;
    return true;
}

static bool sets_registers(Op *op, void *user)
{
    *(bool *)user |= op->code == OP_async_setmaxnreg;
    return true;
}

static uint32_t line_number(const ReadBack *b, const char *at)
{
    uint32_t n = 1;
    for (const char *p = b->text; at && p < at; p++)
        n += *p == '\n';
    return n;
}

static bool is_word_at(const char *at, const char *word)
{
    size_t n = strlen(word);
    return !strncmp(at, word, n) && strchr(" \t\r\n,", at[n]);
}

/* A version as `8.3`. */
static bool is_version(const char *at)
{
    char *end;
    double v = strtod(at, &end);
    return v >= 8.0 && v < 10.0 && end - at == 3 && strchr("\r\n", *end);
}

/* The target, or "" where there is none. */
static const char *check_target(ReadBack *b, const Op *kernel)
{
    const char *version = strstr(b->text, "\n.version ");
    const char *target = strstr(b->text, "\n.target ");
    const char *size = strstr(b->text, "\n.address_size ");
    bool needed = false;
    op_walk((Op *)kernel, needs_90a, &needed);
    if (!version || !is_version(version + 10))
        fault(b, line_number(b, version), "T-ARCH",
              "expected .version 8.0 or later");
    if (!target || !(is_word_at(target + 9, "sm_90a") ||
                     (!needed && is_word_at(target + 9, "sm_90"))))
        fault(b, line_number(b, target), "T-ARCH", "expected .target %s",
              needed ? "sm_90a" : "sm_90");
    if (!size || !is_word_at(size + 15, "64"))
        fault(b, line_number(b, size), "T-ARCH", "expected .address_size 64");
    return target ? target + 9 : "";
}

static void check_abi(ReadBack *b, const Op *kernel)
{
    char *abi =
        arena_printf(ctx_arena(b->ctx), "// exo-abi: %016llx %s",
                     (unsigned long long)kernel_abi_hash(b->ctx, kernel),
                     op_attr_str(kernel, "name", ""));
    const char *at = b->text;
    while ((at = strstr(at, abi)) && !strchr("\r\n", at[strlen(abi)]))
        at++;
    if (!at)
        fault(b, 1, "PTX-ABI",
              "no line '%s': the PTX was made from another kernel", abi);
}

/* The parameters that a launch gives, each in its place. */
static void check_params(ReadBack *b, Arena *a, const PtxKernel *ptx,
                         const Op *kernel)
{
    AbiParamVec want = { 0 };
    if (!kernel_abi(b->ctx, kernel, a, &want))
        return;
    if (want.len != ptx->n_params) {
        fault(b, ptx->line, "PTX-HEAD",
              "%u parameters are declared, but the kernel has %zu",
              ptx->n_params, want.len);
        return;
    }
    for (size_t i = 0; i < want.len; i++) {
        const AbiParam *w = &want.data[i];
        const PtxParam *p = &ptx->params[i];
        if (p->bytes != w->bytes || p->align % w->align)
            fault(b, ptx->line, "PTX-HEAD",
                  "parameter %zu has %lld bytes aligned to %lld, but the "
                  "kernel's has %u aligned to %u",
                  i, (long long)p->bytes, (long long)p->align, w->bytes,
                  w->align);
    }
}

/* Does a line begin here, or with `.visible ` before? */
static bool begins_line(const char *text, const char *at)
{
    static const char visible[] = ".visible ";
    const size_t n = sizeof visible - 1;
    if ((size_t)(at - text) >= n && begins(at - n, visible))
        at -= n;
    while (at > text && (at[-1] == ' ' || at[-1] == '\t'))
        at--;
    return at == text || at[-1] == '\n';
}

/* Shared memory is what the launch gives, aligned as swizzles need it. */
static void check_shared(ReadBack *b)
{
    for (const char *at = b->text; (at = strstr(at, "\n.extern .shared"));) {
        const char *align = strstr(++at, ".align ");
        if (!align || align > at + strcspn(at, ";") ||
            strtol(align + 7, NULL, 10) < 1024)
            fault(b, line_number(b, at), "PTX-HEAD",
                  "dynamic shared memory must be aligned to 1024 bytes");
    }
    for (const char *at = b->text; (at = strstr(at, ".shared ")); at++)
        if (begins_line(b->text, at))
            fault(b, line_number(b, at), "PTX-HEAD",
                  "shared memory is declared beside what the launch gives");
}

/* The numbers behind a directive of the entry, multiplied; 0: it is not there.
 * *first: the first of them. */
static int64_t directive(const PtxKernel *ptx, const char *name, int64_t *first)
{
    const char *at = ptx->head ? strstr(ptx->head, name) : NULL;
    int64_t product = 1;
    *first = 0;
    if (!at || !strchr(" \t", at[strlen(name)]))
        return 0;
    for (char *end = (char *)at + strlen(name);; end++) {
        int64_t v = strtoll(end, &end, 10);
        *first = *first ? *first : v;
        product *= v;
        if (*end != ',')
            return product;
    }
}

static void check_directive(ReadBack *b, const PtxKernel *ptx, const char *name,
                            const char *attr, int64_t want)
{
    int64_t first, found = directive(ptx, name, &first);
    if (found && (found != want || first != want))
        fault(b, ptx->line, "PTX-HEAD",
              "%s says %lld, but the kernel has %s = %lld", name,
              (long long)found, attr, (long long)want);
}

/* What the entry says of its launch is what the kernel is launched with. */
static void check_launch(ReadBack *b, const PtxKernel *ptx, const Op *kernel)
{
    int64_t threads = op_attr_int(kernel, "blockDim", 0), first;
    int64_t ctas = op_attr_int(kernel, "clusterDim", 1);
    int64_t blocks = op_attr_int(kernel, "blocks_per_sm", 1);
    check_directive(b, ptx, ".maxntid", "blockDim", threads);
    check_directive(b, ptx, ".reqntid", "blockDim", threads);
    check_directive(b, ptx, ".minnctapersm", "blocks_per_sm", blocks);
    check_directive(b, ptx, ".maxclusterrank", "clusterDim", ctas);
    check_directive(b, ptx, ".reqnctapercluster", "clusterDim", ctas);
    if (directive(ptx, ".maxnreg", &first) > 65536 / (threads * blocks))
        fault(b, ptx->line, "PTX-HEAD",
              ".maxnreg is more than the kernel's threads can have");
    if (directive(ptx, ".maxntid", &first) ||
        directive(ptx, ".reqntid", &first))
        return;
    bool needed = false;
    op_walk((Op *)kernel, sets_registers, &needed);
    if (needed)
        fault(b, ptx->line, "PTX-HEAD",
              "setmaxnreg needs .maxntid %lld or .reqntid %lld",
              (long long)threads, (long long)threads);
}

static void check_dependence(ReadBack *b, Arena *a, const Op *kernel,
                             const PtxKernel *ptx)
{
    bool certain;
    const PtxInstr *in = dependent_ptx(a, kernel, ptx, &certain);
    if (in && certain)
        fault(b, in->line, "G-WAIT",
              "%s: '%s' can come before griddepcontrol.wait",
              op_attr_str(kernel, "name", ""), in->op);
    else if (in)
        b->open = arena_printf(ctx_arena(b->ctx),
                               "line %u: whether '%s' is reached without "
                               "griddepcontrol.wait depends on conditions",
                               in->line, in->op);
}

static void check_kernel(ReadBack *b, const Module *m, const Op *kernel)
{
    const char *name = op_attr_str(kernel, "name", ""), *error;
    uint32_t line;
    PtxKernel ptx;
    Arena *a = arena_new();
    if (!ptx_read(a, b->text, name, &ptx, &error, &line)) {
        if (error)
            fault(b, line, "PTX-FORM", "%s", error);
        else
            fault(b, 1, "PTX-COUNT", "there is no entry %s", name);
        arena_free(a);
        return;
    }
    const char *arch = check_target(b, kernel);
    check_abi(b, kernel);
    check_shared(b);
    check_launch(b, &ptx, kernel);
    check_params(b, a, &ptx, kernel);
    if (ptx.local_line)
        fault(b, ptx.local_line, "PTX-LOCAL", "%s declares local memory", name);
    for (uint32_t i = 0; i < ptx.n_instrs; i++)
        check_instr(b, &ptx.instrs[i]);
    PathFault f = { 0 };
    if (!b->bad)
        f = paths_compare(a, m, kernel, &ptx, arch);
    if (!b->bad && !f.code && dependent_launch(kernel))
        check_dependence(b, a, kernel, &ptx);
    if (f.code && f.unsure)
        b->open = arena_printf(ctx_arena(b->ctx),
                               "line %u, %s, if that branch is right which "
                               "an unknown instruction decides",
                               f.line, f.text);
    else if (f.code)
        fault(b, f.line, f.code, "%s: %s", name, f.text);
    arena_free(a);
}

CheckResult check_readback(Ctx *ctx, const Module *m, const Op *host,
                           uint32_t file, const char *ptx)
{
    ReadBack b = { .ctx = ctx, .file = file, .text = ptx };
    for (const Op *op = m->body->first; op; op = op->next)
        if (op->code == OP_async_kernel &&
            (!host || kernel_is_launched(host, op_attr_str(op, "name", ""))))
            check_kernel(&b, m, op);
    CheckResult r = { .check = "check-async/read-back",
                      .proc = host ? op_attr_str(host, "name", "_") : "_",
                      .version = 2 };
    r.verdict = b.bad    ? VERDICT_refuted
                : b.open ? VERDICT_unknown
                         : VERDICT_proved;
    if (!b.bad && b.open)
        r.reason = b.open;
    else if (!b.bad)
        r.scope = "all sizes";
    return r;
}
