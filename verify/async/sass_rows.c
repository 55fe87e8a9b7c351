/* The table; a name belongs to one row. */
#include "verify/async/sass_rows.h"

#include <string.h>

const SassRow sass_rows[SASS_ROWS] = {
    { { "wgmma.mma_async" }, { "HGMMA", "IGMMA", "QGMMA", "BGMMA" }, 0 },
    { { "wgmma.wait_group" }, { "WARPGROUP.DEPBAR" }, 0 },
    { { "wgmma.fence" }, { "WARPGROUP.ARRIVE" }, 0 },
    { { "mma." }, { "HMMA", "IMMA", "QMMA", "DMMA" }, SASS_MORE | SASS_FREELY },
    { { "ldmatrix." }, { "LDSM" }, SASS_FREELY },
    { { "ld.shared::cluster" }, { "LD.E" }, SASS_FREELY },
    { { "stmatrix" }, { "STSM" }, SASS_FREELY },
    { { "cp.async.bulk.tensor.load" }, { "UTMALDG" }, SASS_ONCE },
    { { "cp.async.bulk.tensor.store" }, { "UTMASTG" }, SASS_ONCE },
    { { "cp.reduce.async.bulk.tensor" }, { "UTMAREDG" }, SASS_ONCE },
    { { "cp.async.bulk.copy" }, { "UBLKCP" }, SASS_ONCE },
    { { "cp.async.bulk.commit_group" }, { "UTMACMDFLUSH" }, SASS_ONCE },
    { { "cp.async.ca.", "cp.async.cg." }, { "LDGSTS" }, 0 },
    { { "cp.async.commit_group" }, { "LDGDEPBAR" }, SASS_MORE },
    { { "cp.async.bulk.wait_group", "cp.async.wait_" },
      { "DEPBAR" },
      SASS_MORE },
    { { "cp.async.mbarrier.arrive" }, { "ARRIVES" }, 0 },
    { { "mbarrier.init" }, { "SYNCS.EXCH" }, 0 },
    { { "mbarrier.try_wait" }, { "SYNCS.PHASECHK" }, SASS_TWICE | SASS_AGAIN },
    { { "mbarrier.expect_tx" },
      { "SYNCS.ARRIVE.TRANS64.RED.A0TR" },
      SASS_MORE | SASS_MERGED | SASS_FREELY },
    { { "mbarrier.arrive" },
      { "SYNCS.ARRIVE.TRANS64.A1T0", "SYNCS.ARRIVE.TRANS64.RED.A1T0" },
      0 },
    { { "fence.proxy.async" }, { "FENCE.VIEW.ASYNC" }, SASS_MORE },
    { { "barrier.cta.sync" }, { "BAR.SYNC" }, SASS_MORE },
    { { "barrier.cta.arrive" }, { "BAR.ARV" }, 0 },
    { { "barrier.cluster.arrive" }, { "UCGABAR_ARV" }, SASS_SKIPPED },
    { { "barrier.cluster.wait" }, { "UCGABAR_WAIT" }, SASS_SKIPPED },
    { { "setmaxnreg" }, { "USETMAXREG" }, SASS_AGAIN },
    { { "elect.sync" }, { "ELECT" }, SASS_MORE | SASS_FREELY },
    { { "griddepcontrol.wait" }, { "ACQBULK" }, 0 },
    { { "griddepcontrol.launch_dependents" }, { "PREEXIT" }, 0 },
};

static bool begins_with_one(const char *s, const char *const *stems)
{
    for (int i = 0; i < SASS_STEMS && stems[i]; i++)
        if (!strncmp(s, stems[i], strlen(stems[i])))
            return true;
    return false;
}

int sass_row_of_letter(const char *name)
{
    for (int r = 0; r < SASS_ROWS; r++)
        if (begins_with_one(name, sass_rows[r].letters))
            return r;
    return -1;
}

int sass_row_of_op(const char *mnemonic)
{
    for (int r = 0; r < SASS_ROWS; r++)
        if (begins_with_one(mnemonic, sass_rows[r].sass))
            return r;
    return -1;
}
