/* Classes of tasks and conflicts between tasks, held against running every task
 * and comparing what each touches of global memory element by element; and the
 * verdicts that sync_check makes of them. */
#include "ir/exo.h"
#include "verify/sync/tasks.h"
#include "verify/sync_check.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* y is read or written at a position made of these. */
typedef struct Shape {
    int block, thread, offset; /* y[block * b + thread * t + offset] */
    int guard;                 /* if block * b + t < guard */
    int extent, tasks;
    const char *by_task; /* how the task enters: b, b / 2, b % 3 */
} Shape;

static void program_text(StrBuf *s, const Shape *write, const Shape *read)
{
    strbuf_addf(s,
                "def p(y: f32[%d] @ CudaGmemLinear, z: f32[%d] @ "
                "CudaGmemLinear):\n"
                "    with CudaDeviceFunction(blockDim=32):\n"
                "        for b in cuda_tasks(0, %d):\n"
                "            for t in cuda_threads(0, 32, unit=cuda_thread):\n",
                write->extent, write->extent, write->tasks);
    strbuf_addf(s,
                "                if %d * b + t < %d:\n"
                "                    y[%d * (%s) + %d * t + %d] = 1.0\n",
                write->block, write->guard, write->block, write->by_task,
                write->thread, write->offset);
    if (read->tasks)
        strbuf_addf(s,
                    "                if %d * b + t < %d:\n"
                    "                    z[%d * b + t] = y[%d * b + t]\n",
                    read->block, read->guard, read->block, read->block);
}

/* ---- the oracle --------------------------------------------------------- */

enum { MOST_ELEMENTS = 4096 };

typedef struct Touched {
    SyncSink sink;
    const SyncProgram *p;
    unsigned char how[2][MOST_ELEMENTS]; /* this task's, by tensor */
} Touched;

static bool note_event(SyncSink *self, const SyncEvent *e)
{
    Touched *t = (Touched *)self;
    if (e->node->kind != SYNC_access ||
        t->p->tensors[e->node->tensor].space != SYNC_global)
        return true;
    for (int64_t i = e->lo[0]; i < e->hi[0]; i++)
        t->how[e->node->tensor][i] |= e->node->flags & SYNC_MUTATE ? 2 : 1;
    return true;
}

/* Does any pair of tasks conflict, or any task by itself? */
static bool oracle(SyncRun *run, int64_t tasks)
{
    static unsigned char before[2][MOST_ELEMENTS];
    bool bad = false;
    int64_t **grains = sync_grains(run->arena, run);
    VarId v = run->device->task_vars[0];
    memset(before, 0, sizeof before);
    run->known[v] = true;
    for (int64_t b = 0; b < tasks; b++) {
        Touched t = { .sink = { .event = note_event }, .p = run->program };
        run->vars[v] = b;
        sync_run_task(run, &t.sink);
        SyncMachine *m = sync_machine_new(run->arena, run, grains);
        sync_run_task(run, &m->sink);
        bad = bad || m->fault.kind != FAULT_none;
        for (unsigned k = 0; k < 2; k++)
            for (unsigned i = 0; i < MOST_ELEMENTS; i++) {
                unsigned a = before[k][i], c = t.how[k][i];
                bad = bad || ((a | c) & 2 && a && c);
                before[k][i] |= t.how[k][i];
            }
    }
    return bad;
}

/* ---- comparing ---------------------------------------------------------- */

typedef struct Verdicts {
    unsigned right, wrong;
    uint64_t tasks, classes;
} Verdicts;

static void compare(const Shape *write, const Shape *read, Verdicts *v)
{
    Ctx *ctx = ctx_new();
    Lib *lib = lib_new(ctx);
    cr_assert(lib_load_dir(lib, EXO_SOURCE_DIR "/lib"));
    StrBuf s = { 0 };
    program_text(&s, write, read);
    Module *m =
        exo_parse(ctx, ctx_add_source(ctx, "p.exo", s.data, s.len), lib, NULL);
    cr_assert(m, "%s", s.data);
    Arena *arena = arena_new();
    SyncProgram *p = sync_program_build(ctx, m, module_symbol(m, "p"), arena);
    cr_assert(p && !p->unknown, "%s", s.data);
    unsigned n = var_count(m->exprs) + 1;
    SyncOutcome out;
    SyncRun *run =
        sync_run_new(arena, p, p->devices, ARENA_ARRAY(arena, int64_t, n),
                     ARENA_ARRAY(arena, bool, n));
    sync_tasks_check(arena, run, &out);
    cr_assert(!out.unknown, "%s: %s", out.unknown, s.data);
    run = sync_run_new(arena, p, p->devices, ARENA_ARRAY(arena, int64_t, n),
                       ARENA_ARRAY(arena, bool, n));
    bool bad = oracle(run, write->tasks);
    cr_assert_eq(out.fault.kind != FAULT_none, bad, "found %d, oracle %d:\n%s",
                 out.fault.kind, bad, s.data);
    v->right += !bad;
    v->wrong += bad;
    v->tasks += out.n_tasks;
    v->classes += out.n_classes;
    if (out.kept)
        arena_free(out.kept);
    arena_free(arena);
    strbuf_free(&s);
    module_free(m);
    ctx_free(ctx);
}

Test(sync_tasks, agrees_with_every_task_run)
{
    static const char *const forms[] = { "b", "b", "b / 2", "b % 3" };
    Verdicts v = { 0 };
    unsigned n = getenv("EXO_LONG") ? 2000 : 120;
    uint64_t x = 88172645463325252u;
    for (unsigned i = 0; i < n; i++) {
        int r[8];
        for (unsigned k = 0; k < 8; k++) {
            x ^= x << 13;
            x ^= x >> 7;
            x ^= x << 17;
            r[k] = (int)((x >> 33) % 1000);
        }
        Shape w = { .block = 24 + r[0] % 4 * 4,
                    .thread = 1 + r[1] % 8 / 7,
                    .offset = r[2] % 3 * 8,
                    .tasks = 1 + r[3] % 8,
                    .by_task = forms[r[4] % 4] };
        w.extent = w.block * w.tasks + r[5] % 64 + 1;
        w.guard = r[6] % 2 ? w.extent : w.extent - 40;
        Shape rd = w;
        rd.tasks = r[7] % 3 == 0;
        compare(&w, &rd, &v);
    }
    cr_assert_gt(v.right, n / 10, "%u right", v.right);
    cr_assert_gt(v.wrong, n / 10, "%u wrong", v.wrong);
    cr_assert_lt(v.classes, v.tasks, "no classes");
}

/* ---- classes ------------------------------------------------------------ */

typedef struct Checked {
    Verdict verdict;
    char scope[256];
} Checked;

static Checked check(const char *path, unsigned n, const SyncSize *sizes)
{
    Checked c = { 0 };
    Ctx *ctx = ctx_new();
    Lib *lib = lib_new(ctx);
    cr_assert(lib_load_dir(lib, EXO_SOURCE_DIR "/lib"));
    Module *m = exo_parse(ctx, ctx_read_source(ctx, path), lib, NULL);
    cr_assert(m, "%s", path);
    for (Op *op = m->body->first; op; op = op->next)
        if (op->code == OP_ctl_proc && !op_attr_int(op, "imported", 0)) {
            CheckResult r = sync_check(
                ctx, m, op, &(SyncAsk){ .n_sizes = n, .sizes = sizes }, NULL);
            c.verdict = r.verdict;
            const char *text = r.scope ? r.scope : r.reason ? r.reason : "";
            snprintf(c.scope, sizeof c.scope, "%s", text);
        }
    module_free(m);
    ctx_free(ctx);
    return c;
}

Test(sync_tasks, large_grids_are_few_classes)
{
    SyncSize sizes[] = { { "M", 4096 }, { "N", 4096 }, { "K", 4096 } };
    const char *path = EXO_SOURCE_DIR "/kernels/gemm_sm90_bf16.exo";
    Checked c = check(path, 3, sizes);
    cr_assert_eq(c.verdict, VERDICT_proved, "%s", c.scope);
    cr_assert(strstr(c.scope, "1 of 256 tasks run"), "%s", c.scope);
    sizes[0].value = sizes[1].value = 4104;
    c = check(path, 3, sizes);
    cr_assert_eq(c.verdict, VERDICT_proved, "%s", c.scope);
    cr_assert(strstr(c.scope, "4 of 289 tasks run"), "%s", c.scope);
}

Test(sync_tasks, sizes_are_asked_for_or_derived)
{
    const char *path = EXO_SOURCE_DIR "/test/examples/scale_pipelined.exo";
    SyncSize sizes[] = { { "T", 3 }, { "M", 4 } };
    Checked c = check(path, 2, sizes);
    cr_assert_eq(c.verdict, VERDICT_unknown);
    cr_assert(strstr(c.scope, "break the assert"), "%s", c.scope);
    c = check(path, 1, sizes);
    cr_assert_eq(c.verdict, VERDICT_unknown);
    cr_assert(strstr(c.scope, "no value is given for M"), "%s", c.scope);
    c = check(path, 0, NULL);
    cr_assert_eq(c.verdict, VERDICT_proved);
    cr_assert(strstr(c.scope, "T=6, M=6"), "%s", c.scope);
}
