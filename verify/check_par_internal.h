/* What the files of check-par share; nobody else includes it. */
#ifndef EXO_VERIFY_CHECK_PAR_INTERNAL_H
#define EXO_VERIFY_CHECK_PAR_INTERNAL_H

#include "passes/analysis/par_info.h"
#include "passes/analysis/par_text.h"
#include "passes/analysis/ptr_map.h"
#include "verify/check_par.h"

typedef struct ParCheck {
    Ctx *ctx;
    Module *m;
    Op *proc;
    ParInfo *pi;
    bool ok;
} ParCheck;

/* Reports and marks the procedure as refuted. */
Diag *pc_error(ParCheck *c, const Op *at, const char *code, const char *fmt,
               ...) EXO_PRINTF(4, 5);

/* Does op stand in a device function? */
bool pc_on_device(const Op *op);
/* The memory of v's root; NULL when unknown, which is reported elsewhere. */
const Mem *pc_mem(const ParCheck *c, Value *v);

/* The last statement of an allocation's block in which it is used, through
 * windows too; the allocation itself when there is none. */
const Op *pc_last_use(const Op *alloc);

/* check_par_scope.c: permissions, units, scopes of statements. */
void check_par_scopes(ParCheck *c);
/* check_par_memory.c: shapes, rings, packed dimensions. */
void check_par_memories(ParCheck *c);
/* check_par_ring.c: how managed rings are indexed. */
void check_par_rings(ParCheck *c);
/* check_par_map.c: tensor maps. */
void check_par_maps(ParCheck *c);
/* check_par_args.c: arguments of instructions and calls. */
void check_par_args(ParCheck *c);
/* check_par_layout.c: tiles in shared memory that engines read or write. */
void check_par_layouts(ParCheck *c);
/* check_par_barrier.c: how each barrier is used. */
void check_par_barriers(ParCheck *c);
/* check_par_sync.c: what Fence, Arrive and Await can be lowered to. */
void check_par_syncs(ParCheck *c);
/* check_par_solitary.c: barriers that share one hidden counter. */
void check_par_solitary(ParCheck *c);

#endif
