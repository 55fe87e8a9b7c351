/* The tables of ir/timelines.def, looked up by name. */
#include "ir/lib.h"

#include <string.h>

enum {
#define QUAL(name, convergent) BIT_##name,
#include "ir/timelines.def"
    N_QUALS
};

#define Q(name) (UINT32_C(1) << BIT_##name)
#define GENERIC \
    (Q(cuda_in_order_rmem) | Q(cuda_in_order_ram) | Q(cuda_mbarrier))
#define WGMMA_REGS (Q(wgmma_async_rmem_a) | Q(wgmma_async_rmem_d))
#define RETIRED Q(cuda_async_proxy_retired)

_Static_assert(N_QUALS <= 32, "a set of qualitative timelines is 32 bits");

static const QualTimeline quals[] = {
#define QUAL(name, convergent) { #name, convergent },
#include "ir/timelines.def"
};

static const SyncTimeline syncs[] = {
#define SYNC(name, full, temporal_only) \
    { #name, full, (full) | (temporal_only) },
#include "ir/timelines.def"
};

static const char *const instrs[] = {
#define INSTR(name) #name,
#include "ir/timelines.def"
};

static const struct {
    const char *family, *instr;
    uint32_t initial, further;
} families[] = {
#define FAMILY(family, instr, initial, further) \
    { #family, #instr, Q(initial), further },
#include "ir/timelines.def"
};

const QualTimeline *qual_timeline(unsigned bit)
{
    return bit < N_QUALS ? &quals[bit] : NULL;
}

const SyncTimeline *sync_timeline_find(const char *name)
{
    for (size_t i = 0; i < sizeof syncs / sizeof *syncs; i++)
        if (strcmp(syncs[i].name, name) == 0)
            return &syncs[i];
    return NULL;
}

bool sync_timeline_includes(const SyncTimeline *a, const SyncTimeline *b)
{
    return (b->full & ~a->full) == 0 && (b->temporal & ~a->temporal) == 0;
}

bool barrier_awaits_reads(BarrierKind kind, const SyncTimeline *second)
{
    return kind == BARRIER_bulk_group && second &&
           sync_timeline_includes(sync_timeline_find("cuda_temporal"), second);
}

bool instr_timeline_known(const char *name)
{
    for (size_t i = 0; i < sizeof instrs / sizeof *instrs; i++)
        if (strcmp(instrs[i], name) == 0)
            return true;
    return false;
}

/* Does a row of `row` speak for memory family `family`? Register tiles of
 * wgmma have what plain registers have, and a row of their own. */
static bool family_is(const char *family, const char *row)
{
    return strcmp(family, row) == 0 ||
           (strcmp(row, "rmem") == 0 && strncmp(family, "rmem_", 5) == 0);
}

bool qual_family_lookup(const char *family, const char *instr,
                        uint32_t *initial, uint32_t *extended)
{
    for (size_t i = 0; i < sizeof families / sizeof *families; i++)
        if (strcmp(families[i].instr, instr) == 0 &&
            family_is(family, families[i].family)) {
            *initial = families[i].initial;
            *extended = families[i].initial | families[i].further;
            return true;
        }
    return false;
}

uint32_t qual_family_mask(const char *family)
{
    uint32_t mask = 0;
    for (size_t i = 0; i < sizeof families / sizeof *families; i++)
        if (family_is(family, families[i].family))
            mask |= families[i].initial | families[i].further;
    return mask;
}
