/* Library entries: instructions, memories and units, read from .exo text.
 *
 * What the compiler knows of an instruction stands in its entry and nowhere
 * else: body (a seq procedure that is its meaning), unit, timeline, accesses,
 * PTX or the name of a hook. instr_instance(..) fixes an entry's template
 * parameters and memoises the result; everybody reads the instance. Entries
 * and instances belong to the Lib, which lives as long as its Ctx allows:
 * modules share one Lib by pointer, module_clone keeps it.
 *
 * Notation by example, and its grammar: docs/adding-an-instruction.md. */
#ifndef EXO_IR_LIB_H
#define EXO_IR_LIB_H

#include "ir/ir.h"

/* ---- memories ------------------------------------------------------------ */

/* Which permissions hold (reference 4.1) and where the bytes are. */
typedef enum MemFamily {
    MEMF_cpu,           /* DRAM: host only */
    MEMF_grid_constant, /* copied into the kernel's parameters */
    MEMF_global,        /* CudaGmemLinear */
    MEMF_shared,
    MEMF_register,
    MEMF_barrier, /* a barrier mechanism */
    MEMF_map      /* Sm90_tensorMap, Sm90_tensorMapTf32 */
} MemFamily;

typedef enum BarrierKind {
    BARRIER_none,
    BARRIER_mbarrier,
    BARRIER_cp_async_group,
    BARRIER_bulk_group,
    BARRIER_wgmma_group,
    BARRIER_cluster
} BarrierKind;

/* A memory with its parameters fixed. */
typedef struct Mem {
    const MemRef *ref;
    MemFamily family;
    const UnitRef *native_unit; /* NULL: not distributed over threads */
    const UnitRef *mutate_unit; /* of plain statements; NULL: cannot write */
    bool scalar_read, scalar_write;
    bool sync_exempt, persistent;
    bool rounds_tf32;   /* a tensor map: loads give tf32_rn of what they read */
    unsigned alignment; /* bytes, at least; 0: the element's own */
    unsigned swizzle;   /* bytes of span: 0, 32, 64, 128 (design: section 9) */
    unsigned packed;    /* so many trailing dimensions are opaque to windows */
    const int64_t *packed_shape; /* their extents, or NULL: any */
    unsigned fills; /* bits that the packed part has; 0: any number */
    /* Register tiles: element (index of the packed dims) -> thread of the
     * native unit, and slot among the thread's `n_slots` registers. Variables
     * 1 .. packed of map_exprs stand for the indices. NULL: not a tile. */
    ExprCtx *map_exprs;
    const Affine *map_thread, *map_slot;
    int64_t n_slots; /* by thread, for the packed part */
    /* So many threads have each element: the map's, and others that far on. */
    int64_t n_copies, copy_pitch;
    ScalarType elems[12];
    unsigned n_elems;        /* 0: any element type */
    const char *qual_family; /* row of reference 4.5: "ram", "rmem", .. */
    BarrierKind barrier;
    int64_t pre_arrive; /* CudaMbarrierPreArrive(n) */
    unsigned n_parents; /* memories it may stand for as an argument */
    const MemRef *const *parents;
} Mem;

/* NULL and a diagnostic when there is no such memory or its parameters do not
 * fit it. */
const Mem *lib_mem(Lib *lib, Loc loc, const MemRef *ref);
/* Silent variant: NULL when unknown. */
const Mem *lib_mem_find(Lib *lib, const MemRef *ref);
/* Do loads through a tensor map of this memory round? lib, ref: may be NULL. */
bool lib_rounds_tf32(Lib *lib, const MemRef *ref);
bool mem_is_a(Lib *lib, const MemRef *sub, const MemRef *super);
/* May a tensor of such elements be in it? */
bool mem_holds(const Mem *mem, ScalarType elem);

/* ---- units --------------------------------------------------------------- */

/* One entry of a unit's domain or box: num / den * product of the named
 * dimensions (each 0 or more times); agnostic: the box says nothing. */
typedef struct UnitExtent {
    int64_t num, den;
    unsigned block_dim, cluster_dim; /* powers of blockDim and clusterDim */
    bool agnostic;
} UnitExtent;

typedef struct Unit {
    const UnitRef *ref;
    unsigned n;
    const UnitExtent *domain, *box; /* box: scaled already */
    int scaled_dim;                 /* -1: cannot be scaled */
} Unit;

const Unit *lib_unit(Lib *lib, Loc loc, const UnitRef *ref);

/* ---- timelines ----------------------------------------------------------- */

/* ir/timelines.def: qualitative timelines (reference 5.2), synchronisation
 * timelines with their full and temporal sets as bit masks (5.3), instruction
 * timelines (5.1). */
typedef struct SyncTimeline {
    const char *name;
    uint32_t full, temporal; /* temporal includes full */
} SyncTimeline;
const SyncTimeline *sync_timeline_find(const char *name);
/* Does a do all that b does? (reference 5.3, "implements") */
bool sync_timeline_includes(const SyncTimeline *a, const SyncTimeline *b);
/* Is an Await of such a barrier with this second timeline over when the reads
 * are, `cp.async.bulk.wait_group.read`? Then what is read may be written, and
 * nothing is known of what is written. */
bool barrier_awaits_reads(BarrierKind kind, const SyncTimeline *second);
bool instr_timeline_known(const char *name); /* with _instr */
/* Why what this name of Exo-GPU stands for, a timeline, memory or instruction,
 * cannot be supported; NULL: it can, or nobody knows it. */
const char *lib_unsupported(const char *name);

/* A qualitative timeline, by its bit in the masks. */
typedef struct QualTimeline {
    const char *name;
    bool convergent; /* an access counts as made by all its threads at once */
} QualTimeline;
const QualTimeline *qual_timeline(unsigned bit); /* NULL past the last */
/* The timelines of an access (reference 4.5) of memory family Mem.qual_family
 * by an instruction timeline: a new record's one, and all that permit it.
 * False: no access of that kind. */
bool qual_family_lookup(const char *family, const char *instr,
                        uint32_t *initial, uint32_t *extended);
/* Every timeline that the family's records may hold. */
uint32_t qual_family_mask(const char *family);

/* ---- instructions -------------------------------------------------------- */

/* One runtime parameter of an instance. */
typedef struct InstrParam {
    const char *name;
    bool is_index; /* a control value: VarId in the body */
    ScalarType elem;
    unsigned rank;
    const int64_t *shape; /* template sizes put in; -1: depends on runtime */
    const MemRef *mem;    /* what the actual's memory must be (a subtype of) */
    unsigned flags;       /* ACC_READ, ACC_WRITE, ACC_REDUCE: from the body;
                             ACC_ATOMIC */
    bool write_only;      /* every element written before any read */
    bool out_of_order, allow_out_of_bounds;
    bool scattered; /* one unit is distributed, and each CTA's next dimension
                       falls into equal parts, one for each barrier that the
                       trailing expression names */
    unsigned n_distributed; /* leading interval dims spread over threads: */
    const UnitRef *const *distributed_units;
    int64_t bytes; /* moved per call, from shape and elem */
} InstrParam;

/* A piece of PTX: literal text, or an operand of the instance. */
typedef struct PtxPiece {
    const char *text; /* NULL: an operand */
    unsigned param;   /* index into params */
    int64_t reg;      /* a register of a register operand; -1: its address or
                         value; -2: all its registers, comma separated */
} PtxPiece;
typedef struct Ptx {
    const char *arch; /* least target: "sm_80" */
    unsigned n;
    const PtxPiece *pieces;
} Ptx;

typedef struct Instr {
    const char *name;
    Loc loc;
    unsigned n_targs;
    const Param *targs; /* by name, in the entry's order, defaults put in */
    unsigned n_params;
    const InstrParam *params;
    Module *module; /* holds body; shared by all instances of a Lib */
    Op *body;       /* ctl.proc, closed: template parameters are constants */
    const UnitRef *unit;
    const char *timeline;             /* "cuda_in_order_instr", .. */
    const MemRef *trailing_mechanism; /* NULL: takes no trailing barrier */
    unsigned n_trailing_units;
    const UnitRef *const *trailing_units;
    const char *hook; /* lowering hook, or NULL when ptx says it all */
    unsigned n_ptx;
    const Ptx *ptx;    /* first whose condition and target hold is used */
    const char *scope; /* "cuda" or "cpu": where it may be called */
} Instr;

/* The first PTX whose target is at most arch ("sm_90a"), or NULL. */
const Ptx *instr_ptx_for(const Instr *in, const char *arch);

/* The instance, or NULL and a diagnostic at loc (unknown entry, a template
 * argument missing, unknown or of the wrong kind, a where clause broken: its
 * message is quoted with the values). */
const Instr *instr_instance(Lib *lib, Loc loc, const char *name,
                            unsigned n_targs, const Param *targs);
bool lib_has_instr(const Lib *lib, const char *name);
/* A targ of an instance as an integer; panics when absent. */
int64_t instr_targ_int(const Instr *in, const char *name);
/* The position of a runtime parameter; panics when absent. */
unsigned instr_param(const Instr *in, const char *name);
/* Is the instance lowered to additions or multiplications in another order than
 * its body's, which may round otherwise? */
bool instr_reorders(const Instr *in);
/* The bytes that a thread moves at once to or from the memory of a parameter,
 * which begin at a multiple of them; 0: no more than elements. */
int64_t instr_piece(const Lib *lib, const Instr *in, unsigned param);
/* The instance of a par.instr or async.instr op. */
const Instr *op_instr(const Module *m, const Op *op);

/* ---- the library itself -------------------------------------------------- */

/* A library that sees the entries of lib_dir's *.exo files (read now; errors
 * are reported). The Lib belongs to ctx. */
Lib *lib_new(Ctx *ctx);
bool lib_load_dir(Lib *lib, const char *dir);
/* Adds the entries of one text; a later entry of the same name wins when
 * `override`, and is an error otherwise. Defined with the .exo parser. */
bool lib_load_text(Lib *lib, uint32_t file, bool override);
Ctx *lib_ctx(Lib *lib);
Module *lib_module(Lib *lib);
/* All entries' names by kind ("instr", "memory", "unit"), for listings. */
void lib_list(const Lib *lib,
              void (*fn)(const char *kind, const char *name, void *user),
              void *user);
/* The page on the instructions, docs/instructions.md. */
void lib_print_page(const Lib *lib, StrBuf *out);

#endif
