/* The box by division, last dimension first; a band of the last two by one
 * more division. */
#include "ir/task_order.h"

void task_order_at(unsigned rank, const int64_t *extent, int64_t group,
                   int64_t t, int64_t *at)
{
    unsigned d = rank;
    if (group && rank >= 2) {
        int64_t rows = extent[rank - 2], columns = extent[rank - 1];
        int64_t in_plane = t % (rows * columns);
        int64_t band = in_plane / columns / group;
        int64_t left = rows - band * group;
        int64_t height = left < group ? left : group;
        int64_t in_band = in_plane - band * group * columns;
        at[rank - 2] = band * group + in_band % height;
        at[rank - 1] = in_band / height;
        t /= rows * columns;
        d = rank - 2;
    }
    while (d-- > 0) {
        at[d] = t % extent[d];
        t /= extent[d];
    }
}
