/* The LLVM printer's frame: one LLVM module for all kernels, each kernel a
 * function with its parameters, annotations and shared memory, then the
 * verifier, the pass pipeline and the NVPTX back end.
 *
 * Line information uses LLVM's third emission kind (debug directives only),
 * which the C enumeration does not name: the others turn the PTX into a debug
 * build that ptxas does not optimise. */
#include "codegen/llvm_emit.h"

#include <llvm-c/Analysis.h>
#include <llvm-c/Target.h>
#include <llvm-c/TargetMachine.h>
#include <llvm-c/Transforms/PassBuilder.h>
#include <stdio.h>
#include <string.h>

#define TRIPLE "nvptx64-nvidia-cuda"
#define FEATURES "+ptx83"
#define DEBUG_DIRECTIVES_ONLY 3

/* ---- parameters ---------------------------------------------------------- */

static LLVMTypeRef param_type(Emit *e, const AbiParam *p)
{
    switch (p->kind) {
    case ABI_control:
    case ABI_stride:
        return e->i32;
    case ABI_pointer:
        return LLVMPointerTypeInContext(e->lc, 1);
    case ABI_scalar:
        return emit_scalar_type(e, p->elem);
    default:
        return e->ptr;
    }
}

static void add_param_attribute(Emit *e, unsigned i, LLVMAttributeRef attr)
{
    LLVMAddAttributeAtIndex(e->fn, i + 1, attr);
}

static LLVMAttributeRef enum_attribute(Emit *e, const char *name, uint64_t v)
{
    unsigned kind = LLVMGetEnumAttributeKindForName(name, strlen(name));
    return LLVMCreateEnumAttribute(e->lc, kind, v);
}

/* Parameters by value in parameter space: tensor maps and constant arrays. */
static void pass_by_value(Emit *e, unsigned i, const AbiParam *p)
{
    LLVMTypeRef type =
        p->kind == ABI_map
            ? LLVMArrayType2(e->i64, 16)
            : LLVMArrayType2(emit_scalar_type(e, p->elem), (uint64_t)p->count);
    unsigned kind = LLVMGetEnumAttributeKindForName("byval", 5);
    add_param_attribute(e, i, LLVMCreateTypeAttribute(e->lc, kind, type));
    add_param_attribute(e, i, enum_attribute(e, "align", p->align));
}

static Range var_range(const Var *var)
{
    switch (var->kind) {
    case VAR_size:
        return (Range){ 1, ABI_CONTROL_LIMIT };
    case VAR_bool:
        return (Range){ 0, 1 };
    default:
        return (Range){ -ABI_CONTROL_LIMIT, ABI_CONTROL_LIMIT };
    }
}

/* Binds the kernel's block arguments to the function's parameters. */
static void bind_params(Emit *e, const AbiParamVec *params)
{
    const Block *b = e->kernel->blocks[0];
    for (size_t i = 0; i < params->len;) {
        const AbiParam *p = &params->data[i];
        const BlockArg *arg = &b->args[p->arg];
        VEC(LLVMValueRef) parts = { 0 };
        for (; i < params->len && params->data[i].arg == p->arg; i++)
            VEC_PUSH(e->arena, &parts, LLVMGetParam(e->fn, (unsigned)i));
        if (arg->value)
            emit_set_value(e, arg->value, (unsigned)parts.len, parts.data);
        else
            emit_set_var(e, arg->var, var_range(var_get(e->m->exprs, arg->var)),
                         parts.data[0]);
    }
}

/* cta, warp and lane. The warp's number is read from lane 0, so that it is
 * known to be the same in all. */
static void bind_coordinates(Emit *e)
{
    const Block *b = e->kernel->blocks[0];
    const BlockArg *coord = &b->args[b->n_args - ABI_N_COORDS];
    int64_t cluster = op_attr_int(e->kernel, "clusterDim", 1);
    int64_t threads = op_attr_int(e->kernel, "blockDim", 32);
    LLVMValueRef cta = emit_i32(e, 0);
    if (cluster > 1)
        cta = emit_intrinsic(e, "llvm.nvvm.read.ptx.sreg.cluster.ctarank", 0,
                             NULL, 0, NULL);
    LLVMValueRef tid =
        emit_intrinsic(e, "llvm.nvvm.read.ptx.sreg.tid.x", 0, NULL, 0, NULL);
    LLVMValueRef lane = LLVMBuildAnd(e->b, tid, emit_i32(e, 31), "");
    LLVMValueRef own = LLVMBuildLShr(e->b, tid, emit_i32(e, 5), "");
    LLVMValueRef shuffle[4] = { emit_i32(e, -1), own, emit_i32(e, 0),
                                emit_i32(e, 31) };
    LLVMValueRef warp =
        emit_intrinsic(e, "llvm.nvvm.shfl.sync.idx.i32", 0, NULL, 4, shuffle);
    e->cta = coord[0].var;
    emit_set_var(e, coord[0].var, (Range){ 0, cluster - 1 }, cta);
    emit_set_var(e, coord[1].var, (Range){ 0, (threads + 31) / 32 - 1 }, warp);
    emit_set_var(e, coord[2].var, (Range){ 0, 31 }, lane);
}

/* ---- annotations --------------------------------------------------------- */

static void annotate(Emit *e, const char *key, LLVMMetadataRef value)
{
    LLVMMetadataRef parts[3] = {
        LLVMValueAsMetadata(e->fn),
        LLVMMDStringInContext2(e->lc, key, strlen(key)), value
    };
    LLVMMetadataRef node = LLVMMDNodeInContext2(e->lc, parts, 3);
    LLVMAddNamedMetadataOperand(e->lm, "nvvm.annotations",
                                LLVMMetadataAsValue(e->lc, node));
}

static void annotate_int(Emit *e, const char *key, int64_t value)
{
    annotate(e, key, LLVMValueAsMetadata(emit_i32(e, value)));
}

/* Without this a tensor map would be copied to local memory. */
static void annotate_grid_constants(Emit *e, const AbiParamVec *params)
{
    VEC(LLVMMetadataRef) numbers = { 0 };
    for (size_t i = 0; i < params->len; i++)
        if (params->data[i].kind == ABI_map ||
            params->data[i].kind == ABI_array)
            VEC_PUSH(e->arena, &numbers,
                     LLVMValueAsMetadata(emit_i32(e, (int64_t)i + 1)));
    if (numbers.len)
        annotate(e, "grid_constant",
                 LLVMMDNodeInContext2(e->lc, numbers.data, numbers.len));
}

static void annotate_kernel(Emit *e, const AbiParamVec *params)
{
    int64_t cluster = op_attr_int(e->kernel, "clusterDim", 1);
    LLVMSetFunctionCallConv(e->fn, 71); /* PTX_Kernel */
    annotate_int(e, "maxntidx", op_attr_int(e->kernel, "blockDim", 32));
    annotate_int(e, "maxntidy", 1);
    annotate_int(e, "maxntidz", 1);
    annotate_int(e, "minctasm", op_attr_int(e->kernel, "blocks_per_sm", 1));
    if (cluster > 1)
        annotate_int(e, "maxclusterrank", cluster);
    annotate_grid_constants(e, params);
}

/* ---- lines --------------------------------------------------------------- */

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static void open_lines(Emit *e, Op *const *kernels, unsigned n)
{
    e->scope_file = n ? kernels[0]->loc.file : 0;
    if (e->options->no_lines || !e->scope_file)
        return;
    e->di = LLVMCreateDIBuilder(e->lm);
    const char *file = base_name(ctx_source_name(e->ctx, e->scope_file));
    LLVMMetadataRef where =
        LLVMDIBuilderCreateFile(e->di, file, strlen(file), "", 0);
    LLVMDIBuilderCreateCompileUnit(e->di, LLVMDWARFSourceLanguageC99, where,
                                   "exo", 3, true, "", 0, 0, "", 0,
                                   (LLVMDWARFEmissionKind)DEBUG_DIRECTIVES_ONLY,
                                   0, false, false, "", 0, "", 0);
    LLVMMetadataRef version =
        LLVMValueAsMetadata(emit_i32(e, (int64_t)LLVMDebugMetadataVersion()));
    LLVMAddModuleFlag(e->lm, LLVMModuleFlagBehaviorWarning,
                      "Debug Info Version", 18, version);
}

static void open_scope(Emit *e, const char *name)
{
    e->scope = NULL;
    if (!e->di)
        return;
    const char *file = base_name(ctx_source_name(e->ctx, e->scope_file));
    LLVMMetadataRef where =
        LLVMDIBuilderCreateFile(e->di, file, strlen(file), "", 0);
    LLVMMetadataRef type = LLVMDIBuilderCreateSubroutineType(e->di, where, NULL,
                                                             0, LLVMDIFlagZero);
    e->scope = LLVMDIBuilderCreateFunction(
        e->di, where, name, strlen(name), name, strlen(name), where,
        e->kernel->loc.line, type, false, true, e->kernel->loc.line,
        LLVMDIFlagZero, true);
    LLVMSetSubprogram(e->fn, e->scope);
    LLVMMetadataRef at = LLVMDIBuilderCreateDebugLocation(
        e->lc, e->kernel->loc.line, e->kernel->loc.col, e->scope, NULL);
    LLVMSetCurrentDebugLocation2(e->b, at);
}

/* ---- kernels ------------------------------------------------------------- */

/* The dynamic shared memory: one array without a size for all kernels. */
static void declare_smem(Emit *e)
{
    if (!e->smem) {
        LLVMTypeRef type = LLVMArrayType2(e->i8, 0);
        e->smem = LLVMAddGlobalInAddressSpace(e->lm, type, "exo_smem", 3);
        LLVMSetAlignment(e->smem, 1024);
    }
    e->smem_base = LLVMConstPtrToInt(e->smem, e->i32);
}

/* PTX names: letters, digits, _ and $. */
static bool is_ptx_name(const char *s)
{
    if (!*s || (*s >= '0' && *s <= '9'))
        return false;
    for (; *s; s++)
        if (!(*s >= 'a' && *s <= 'z') && !(*s >= 'A' && *s <= 'Z') &&
            !(*s >= '0' && *s <= '9') && *s != '_')
            return false;
    return true;
}

static bool check_kernel(Emit *e, const Op *op, const char *name)
{
    int64_t threads = op_attr_int(op, "blockDim", 0);
    int64_t cluster = op_attr_int(op, "clusterDim", 0);
    int64_t smem = op_attr_int(op, "smem_bytes", -1);
    if (op->code != OP_async_kernel)
        return emit_error(e, op, "is no kernel");
    if (!is_ptx_name(name) || LLVMGetNamedFunction(e->lm, name))
        return emit_error(e, op,
                          "must have a name of its own of letters, "
                          "digits and _, but has '%s'",
                          name);
    if (threads < 32 || threads > 1024 || threads % 32 || cluster < 1 ||
        cluster > 16 || smem < 0 || smem > 232448)
        return emit_error(e, op,
                          "must have 32 to 1024 threads in whole warps, "
                          "clusters of 1 to 16 and at most 232448 bytes of "
                          "shared memory, but has %lld, %lld and %lld",
                          (long long)threads, (long long)cluster,
                          (long long)smem);
    return true;
}

static bool emit_kernel(Emit *e, Op *op)
{
    AbiParamVec params = { 0 };
    const char *name = op_attr_str(op, "name", "");
    e->kernel = op;
    if (!check_kernel(e, op, name) ||
        !kernel_abi(e->ctx, op, e->arena, &params))
        return false;
    unsigned n = (unsigned)params.len;
    LLVMTypeRef *types = ARENA_ARRAY(e->arena, LLVMTypeRef, n + 1);
    for (unsigned i = 0; i < n; i++)
        types[i] = param_type(e, &params.data[i]);
    LLVMTypeRef type = LLVMFunctionType(e->void_type, types, n, false);
    e->fn = LLVMAddFunction(e->lm, name, type);
    for (unsigned i = 0; i < n; i++)
        if (params.data[i].kind == ABI_map || params.data[i].kind == ABI_array)
            pass_by_value(e, i, &params.data[i]);
    LLVMAddAttributeAtIndex(e->fn, LLVMAttributeFunctionIndex,
                            enum_attribute(e, "nounwind", 0));
    annotate_kernel(e, &params);
    open_scope(e, name);
    LLVMPositionBuilderAtEnd(
        e->b, LLVMAppendBasicBlockInContext(e->lc, e->fn, "entry"));
    declare_smem(e);
    bind_params(e, &params);
    bind_coordinates(e);
    if (!emit_block(e, op->blocks[0]))
        return false;
    LLVMBuildRetVoid(e->b);
    return true;
}

/* ---- LLVM ---------------------------------------------------------------- */

/* Quotes a message that LLVM allocated, and frees it. */
static bool report(Ctx *ctx, const char *what, TAKES char *message)
{
    Loc nowhere = { 0 };
    diag_error(ctx, nowhere, "llvm", "%s: %s", what,
               message ? message : "no message");
    LLVMDisposeMessage(message);
    return false;
}

/* Errors that LLVM finds while it selects code, as of inline asm, arrive here
 * instead of ending the process. */
static void on_llvm_diagnostic(LLVMDiagnosticInfoRef info, void *user)
{
    Emit *e = user;
    if (LLVMGetDiagInfoSeverity(info) == LLVMDSError)
        report(e->ctx, "LLVM", LLVMGetDiagInfoDescription(info));
}

static LLVMTargetMachineRef make_machine(Emit *e)
{
    LLVMTargetRef target;
    char *message = NULL;
    LLVMInitializeNVPTXTargetInfo();
    LLVMInitializeNVPTXTarget();
    LLVMInitializeNVPTXTargetMC();
    LLVMInitializeNVPTXAsmPrinter();
    if (LLVMGetTargetFromTriple(TRIPLE, &target, &message)) {
        report(e->ctx, "LLVM has no NVPTX back end", message);
        return NULL;
    }
    const char *arch = e->options->arch ? e->options->arch : "sm_90a";
    return LLVMCreateTargetMachine(target, TRIPLE, arch, FEATURES,
                                   LLVMCodeGenLevelAggressive, LLVMRelocDefault,
                                   LLVMCodeModelDefault);
}

static bool verify(Emit *e)
{
    char *message = NULL;
    if (LLVMVerifyModule(e->lm, LLVMReturnStatusAction, &message))
        return report(e->ctx, "the LLVM IR does not verify", message);
    LLVMDisposeMessage(message);
    return true;
}

/* Nothing is unrolled unless a loop asks for it, nothing is vectorised. */
static bool optimise(Emit *e, LLVMTargetMachineRef machine)
{
    LLVMPassBuilderOptionsRef options = LLVMCreatePassBuilderOptions();
    LLVMPassBuilderOptionsSetLoopUnrolling(options, false);
    LLVMPassBuilderOptionsSetLoopInterleaving(options, false);
    LLVMPassBuilderOptionsSetLoopVectorization(options, false);
    LLVMPassBuilderOptionsSetSLPVectorization(options, false);
    LLVMErrorRef error = LLVMRunPasses(e->lm, "default<O3>", machine, options);
    LLVMDisposePassBuilderOptions(options);
    if (!error)
        return true;
    char *message = LLVMGetErrorMessage(error);
    Loc nowhere = { 0 };
    diag_error(e->ctx, nowhere, "llvm", "LLVM's passes failed: %s", message);
    LLVMDisposeErrorMessage(message);
    return false;
}

static bool print_ptx(Emit *e, LLVMTargetMachineRef machine, unsigned n,
                      Op *const *kernels, StrBuf *out)
{
    LLVMMemoryBufferRef buffer = NULL;
    char *message = NULL;
    unsigned errors = ctx_error_count(e->ctx);
    if (LLVMTargetMachineEmitToMemoryBuffer(machine, e->lm, LLVMAssemblyFile,
                                            &message, &buffer))
        return report(e->ctx, "LLVM makes no PTX", message);
    if (ctx_error_count(e->ctx) == errors) {
        for (unsigned i = 0; i < n; i++)
            strbuf_addf(out, "// exo-abi: %016llx %s\n",
                        (unsigned long long)kernel_abi_hash(e->ctx, kernels[i]),
                        op_attr_str(kernels[i], "name", ""));
        if (e->options->summary)
            strbuf_addf(out, "// exo-certificate: %s\n", e->options->summary);
        strbuf_addn(out, LLVMGetBufferStart(buffer), LLVMGetBufferSize(buffer));
    }
    LLVMDisposeMemoryBuffer(buffer);
    return ctx_error_count(e->ctx) == errors;
}

static void open_emit(Emit *e)
{
    e->arena = arena_new();
    e->lc = LLVMContextCreate();
    LLVMContextSetDiagnosticHandler(e->lc, on_llvm_diagnostic, e);
    e->lm = LLVMModuleCreateWithNameInContext("exo", e->lc);
    e->b = LLVMCreateBuilderInContext(e->lc);
    e->void_type = LLVMVoidTypeInContext(e->lc);
    e->i1 = LLVMInt1TypeInContext(e->lc);
    e->i8 = LLVMInt8TypeInContext(e->lc);
    e->i16 = LLVMInt16TypeInContext(e->lc);
    e->i32 = LLVMInt32TypeInContext(e->lc);
    e->i64 = LLVMInt64TypeInContext(e->lc);
    e->ptr = LLVMPointerTypeInContext(e->lc, 0);
    e->n_values = e->m->next_value + 1;
    e->n_vars = var_count(e->m->exprs) + 1;
    e->values = ARENA_ARRAY(e->arena, EmitValue, e->n_values);
    e->vars = ARENA_ARRAY(e->arena, EmitVar, e->n_vars);
}

static void close_emit(Emit *e)
{
    if (e->di)
        LLVMDisposeDIBuilder(e->di);
    LLVMDisposeBuilder(e->b);
    LLVMDisposeModule(e->lm);
    LLVMContextDispose(e->lc);
    arena_free(e->arena);
}

static void set_target(Emit *e, LLVMTargetMachineRef machine)
{
    LLVMTargetDataRef layout = LLVMCreateTargetDataLayout(machine);
    LLVMSetModuleDataLayout(e->lm, layout);
    LLVMDisposeTargetData(layout);
    LLVMSetTarget(e->lm, TRIPLE);
}

/* Builds the module's text from the kernels. */
static bool build(Emit *e, unsigned n, Op *const *kernels)
{
    open_lines(e, kernels, n);
    bool ok = true;
    for (unsigned i = 0; i < n; i++)
        ok = emit_kernel(e, kernels[i]) && ok;
    if (e->di)
        LLVMDIBuilderFinalize(e->di);
    return ok;
}

static void print_ir(Emit *e, StrBuf *out)
{
    char *text = LLVMPrintModuleToString(e->lm);
    strbuf_add(out, text);
    LLVMDisposeMessage(text);
}

bool llvm_emit_kernels(Ctx *ctx, Module *m, unsigned n, Op *const *kernels,
                       const LlvmOptions *options, StrBuf *ir, StrBuf *ptx)
{
    static const LlvmOptions no_options = { 0 };
    Emit e = { .ctx = ctx, .m = m, .options = options ? options : &no_options };
    open_emit(&e);
    LLVMTargetMachineRef machine = make_machine(&e);
    bool ok = machine != NULL;
    if (ok) {
        set_target(&e, machine);
        ok = build(&e, n, kernels) && verify(&e);
    }
    if (ok && ir)
        print_ir(&e, ir);
    if (ok && ptx)
        ok = optimise(&e, machine) && print_ptx(&e, machine, n, kernels, ptx);
    if (machine)
        LLVMDisposeTargetMachine(machine);
    close_emit(&e);
    return ok;
}
