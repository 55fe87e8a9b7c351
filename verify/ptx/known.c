/* PTX ISA 8.3, chapter 9 "Instruction Set" (the instructions, in its order of
 * groups) and 10 "Special Registers". */
#include "verify/ptx/known.h"

#include <string.h>

/* ANY operands: from none to as many as there are. A typed one's mnemonic ends
 * in a type. */
enum { ANY = 255 };

typedef struct Known {
    const char *name;
    unsigned char least, most;
    bool typed;
} Known;

static const Known known[] = {
    /* arithmetic */
    { "add", 3, 3, true },
    { "sub", 3, 3, true },
    { "mul", 3, 3, true },
    { "mad", 4, 4, true },
    { "mul24", 3, 3, true },
    { "mad24", 4, 4, true },
    { "sad", 4, 4, true },
    { "div", 3, 3, true },
    { "rem", 3, 3, true },
    { "abs", 2, 2, true },
    { "neg", 2, 2, true },
    { "min", 3, 4, true },
    { "max", 3, 4, true },
    { "popc", 2, 2, true },
    { "clz", 2, 2, true },
    { "bfind", 2, 2, true },
    { "fns", 4, 4, true },
    { "brev", 2, 2, true },
    { "bfe", 4, 4, true },
    { "bfi", 5, 5, true },
    { "bmsk", 3, 3, true },
    { "szext", 3, 3, true },
    { "dp4a", 4, 4, true },
    { "dp2a", 4, 4, true },
    { "addc", 3, 3, true },
    { "subc", 3, 3, true },
    { "madc", 4, 4, true },
    { "testp", 2, 2, true },
    { "copysign", 3, 3, true },
    { "fma", 4, 4, true },
    { "rcp", 2, 2, true },
    { "sqrt", 2, 2, true },
    { "rsqrt", 2, 2, true },
    { "sin", 2, 2, true },
    { "cos", 2, 2, true },
    { "lg2", 2, 2, true },
    { "ex2", 2, 2, true },
    { "tanh", 2, 2, true },
    /* comparison, logic, shifts */
    { "set", 3, 4, true },
    { "setp", 3, 4, true },
    { "selp", 4, 4, true },
    { "slct", 4, 4, true },
    { "and", 3, 3, true },
    { "or", 3, 3, true },
    { "xor", 3, 3, true },
    { "not", 2, 2, true },
    { "cnot", 2, 2, true },
    { "lop3", 5, 6, true },
    { "shf", 4, 4, true },
    { "shl", 3, 3, true },
    { "shr", 3, 3, true },
    /* moves, memory */
    { "mov", 2, 2, true },
    { "shfl", 4, 5, true },
    { "prmt", 4, 4, false },
    { "ld", 2, 3, true },
    { "ldu", 2, 2, true },
    { "st", 2, 4, true },
    { "multimem", 2, 3, true },
    { "prefetch", 1, 1, false },
    { "prefetchu", 1, 1, false },
    { "applypriority", 2, 2, false },
    { "discard", 2, 2, false },
    { "createpolicy", 2, 4, false },
    { "isspacep", 2, 2, false },
    { "cvta", 2, 2, true },
    { "cvt", 2, 4, true },
    { "mapa", 3, 3, true },
    { "getctarank", 2, 2, true },
    { "cp", 0, ANY, false },
    { "tensormap", 1, 3, false },
    { "wmma", 2, 5, false },
    { "mma", 4, ANY, true },
    { "ldmatrix", 2, 2, true },
    { "stmatrix", 2, 2, true },
    { "movmatrix", 2, 2, true },
    { "wgmma", 0, ANY, false },
    /* textures and surfaces */
    { "tex", 2, 4, true },
    { "tld4", 2, 4, true },
    { "txq", 2, 3, true },
    { "istypep", 2, 2, false },
    { "suld", 2, 2, true },
    { "sust", 2, 2, true },
    { "sured", 2, 2, true },
    { "suq", 2, 2, true },
    /* control */
    { "bra", 0, 1, false },
    { "brx", 0, 2, false },
    { "call", 1, ANY, false },
    { "ret", 0, 0, false },
    { "exit", 0, 0, false },
    /* synchronisation */
    { "bar", 1, 4, false },
    { "barrier", 0, 4, false },
    { "membar", 0, 0, false },
    { "fence", 0, 2, false },
    { "atom", 3, 5, true },
    { "red", 2, 4, true },
    { "vote", 2, 3, true },
    { "match", 3, 3, true },
    { "activemask", 1, 1, true },
    { "redux", 3, 3, true },
    { "griddepcontrol", 0, 0, false },
    { "elect", 2, 2, false },
    { "mbarrier", 1, 4, true },
    { "setmaxnreg", 1, 1, true },
    /* others */
    { "brkpt", 0, 0, false },
    { "nanosleep", 1, 1, true },
    { "pmevent", 1, 1, false },
    { "trap", 0, 0, false },
    { "alloca", 2, 3, true },
    { "stacksave", 1, 1, true },
    { "stackrestore", 1, 1, true },
    /* video */
    { "vadd", 3, 4, false },
    { "vsub", 3, 4, false },
    { "vabsdiff", 3, 4, false },
    { "vmin", 3, 4, false },
    { "vmax", 3, 4, false },
    { "vshl", 3, 4, false },
    { "vshr", 3, 4, false },
    { "vmad", 4, 4, false },
    { "vset", 3, 4, false },
};

static const char *const types[] = {
    "b1",  "b8",    "b16",  "b32",    "b64",    "b128",   "u4",   "u8",
    "u16", "u16x2", "u32",  "u64",    "s4",     "s8",     "s16",  "s16x2",
    "s32", "s64",   "f16",  "f16x2",  "bf16",   "bf16x2", "tf32", "f32",
    "f64", "e4m3",  "e5m2", "e4m3x2", "e5m2x2", "pred",   "v2",   "noftz",
};

static bool is_type(const char *s, size_t n)
{
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (!strncmp(types[i], s, n) && !types[i][n])
            return true;
    return false;
}

static bool has_type(const char *op)
{
    for (const char *dot = strchr(op, '.'); dot; dot = strchr(dot + 1, '.'))
        if (is_type(dot + 1, strcspn(dot + 1, ".:")))
            return true;
    return false;
}

const char *ptx_malformed(const PtxInstr *in)
{
    size_t n = strcspn(in->op, ".:");
    const Known *k = NULL;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (!strncmp(known[i].name, in->op, n) && !known[i].name[n])
            k = &known[i];
    if (!k)
        return "is no instruction of PTX";
    if (in->n_operands < k->least ||
        (k->most != ANY && in->n_operands > k->most))
        return "does not take so many operands";
    if (k->typed && !has_type(in->op))
        return "names no type of PTX";
    return NULL;
}

bool ptx_special_register(const char *name)
{
    static const char *const special[] = {
        "tid",
        "ntid",
        "laneid",
        "warpid",
        "nwarpid",
        "ctaid",
        "nctaid",
        "smid",
        "nsmid",
        "gridid",
        "clusterid",
        "nclusterid",
        "cluster_ctaid",
        "cluster_nctaid",
        "cluster_ctarank",
        "cluster_nctarank",
        "is_explicit_cluster",
        "lanemask_eq",
        "lanemask_le",
        "lanemask_lt",
        "lanemask_ge",
        "lanemask_gt",
        "clock",
        "clock_hi",
        "clock64",
        "pm",
        "envreg",
        "globaltimer",
        "globaltimer_lo",
        "globaltimer_hi",
        "reserved_smem_offset_begin",
        "reserved_smem_offset_end",
        "reserved_smem_offset_cap",
        "total_smem_size",
        "aggr_smem_size",
        "dynamic_smem_size",
        "current_graph_exec",
    };
    size_t n = name[0] == '%' ? strcspn(name + 1, ".0123456789") : 0;
    if (n && !strncmp(name + 1, "clock64", 7))
        n = 7;
    for (size_t i = 0; n && i < sizeof special / sizeof *special; i++)
        if (!strncmp(special[i], name + 1, n) && !special[i][n])
            return true;
    return false;
}
