/* The numbering of tasks: every task once, in bands where there is a group. */
#include "ir/task_order.h"

#include <criterion/criterion.h>

#include <string.h>

enum { ROWS = 7, COLUMNS = 5, PLANES = 2, TASKS = PLANES * ROWS * COLUMNS };

static void check_order(int64_t group)
{
    const int64_t extent[] = { PLANES, ROWS, COLUMNS };
    bool seen[PLANES][ROWS][COLUMNS];
    int64_t band = 0, plane = 0;
    memset(seen, 0, sizeof seen);
    for (int64_t t = 0; t < TASKS; t++) {
        int64_t at[3];
        task_order_at(3, extent, group, t, at);
        for (int d = 0; d < 3; d++)
            cr_assert(at[d] >= 0 && at[d] < extent[d], "task %d", (int)t);
        cr_assert_not(seen[at[0]][at[1]][at[2]], "task %d comes twice", (int)t);
        seen[at[0]][at[1]][at[2]] = true;
        cr_assert(at[0] >= plane);
        band = at[0] > plane ? 0 : band;
        plane = at[0];
        if (group) {
            cr_assert(at[1] / group >= band, "a band is left for good");
            band = at[1] / group;
        }
    }
}

Test(task_order, every_task_once)
{
    for (int64_t group = 0; group <= ROWS + 1; group++)
        check_order(group);
}

Test(task_order, last_dimension_fastest_without_a_group)
{
    const int64_t extent[] = { ROWS, COLUMNS };
    for (int64_t t = 0; t < ROWS * COLUMNS; t++) {
        int64_t at[2];
        task_order_at(2, extent, 0, t, at);
        cr_assert_eq(at[0] * COLUMNS + at[1], t);
    }
}

/* 3 rows by 2 columns in bands of 2: down the columns of the first band, then
 * the row that is left. */
Test(task_order, bands)
{
    static const int64_t want[6][2] = { { 0, 0 }, { 1, 0 }, { 0, 1 },
                                        { 1, 1 }, { 2, 0 }, { 2, 1 } };
    const int64_t extent[] = { 3, 2 };
    for (int64_t t = 0; t < 6; t++) {
        int64_t at[2];
        task_order_at(2, extent, 2, t, at);
        cr_assert_arr_eq(at, want[t], sizeof at);
    }
}
