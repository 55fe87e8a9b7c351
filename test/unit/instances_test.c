/* Instances by the values of their iterators: found by these and no others,
 * whatever the order and the distance in which they come. */
#include "verify/async/instances.h"

#include <criterion/criterion.h>
#include <string.h>

enum { N = 5 };

Test(instances, are_found_by_all_their_iterators)
{
    Arena *arena = arena_new();
    InstanceTree t = { .depth = 3 };
    int64_t at[3], back[4];
    uint32_t n = 0;
    for (int64_t launch = 0; launch < 2; launch++)
        for (at[0] = 7; at[0] < 7 + N; at[0]++)
            for (at[1] = -2; at[1] < N; at[1] += 3)
                for (at[2] = at[0]; at[2] < 4 * N; at[2]++)
                    cr_assert(instances_add(arena, &t, launch, at, n++) ==
                              INSTANCE_new);
    uint32_t seen = 0;
    for (int64_t launch = -1; launch < 3; launch++)
        for (at[0] = 5; at[0] < 9 + N; at[0]++)
            for (at[1] = -4; at[1] < N + 2; at[1]++)
                for (at[2] = 0; at[2] < 5 * N; at[2]++) {
                    bool there = launch >= 0 && launch < 2 && at[0] >= 7 &&
                                 at[0] < 7 + N && at[1] >= -2 && at[1] < N &&
                                 (at[1] + 2) % 3 == 0 && at[2] >= at[0] &&
                                 at[2] < 4 * N;
                    uint32_t found = instances_find(&t, launch, at);
                    cr_assert_eq(found, there ? seen : NO_INSTANCE);
                    seen += there;
                }
    cr_assert_eq(seen, n);
    at[0] = 8, at[1] = 1, at[2] = 11;
    cr_assert(instances_values(&t, instances_find(&t, 1, at), back));
    cr_assert_eq(back[0], 1);
    cr_assert_eq(memcmp(back + 1, at, sizeof at), 0);
    cr_assert_not(instances_values(&t, n, back));
    arena_free(arena);
}

Test(instances, have_one_number_each)
{
    Arena *arena = arena_new();
    InstanceTree none = { 0 }, t = { .depth = 1 };
    int64_t up = 40, down = 3, far = INT64_MAX, low = INT64_MIN;
    cr_assert(instances_add(arena, &none, 0, NULL, 4) == INSTANCE_new);
    cr_assert(instances_add(arena, &none, 0, NULL, 5) == INSTANCE_known);
    cr_assert_eq(instances_find(&none, 0, NULL), 4);
    cr_assert_eq(instances_find(&none, 1, NULL), NO_INSTANCE);
    /* a smaller one after a greater one */
    cr_assert(instances_add(arena, &t, 0, &up, 0) == INSTANCE_new);
    cr_assert(instances_add(arena, &t, 0, &down, 1) == INSTANCE_new);
    cr_assert(instances_add(arena, &t, 0, &up, 2) == INSTANCE_known);
    cr_assert_eq(instances_find(&t, 0, &up), 0);
    cr_assert_eq(instances_find(&t, 0, &down), 1);
    /* there is no room for all between */
    cr_assert(instances_add(arena, &t, 0, &far, 3) == INSTANCE_far);
    cr_assert(instances_add(arena, &t, 0, &low, 3) == INSTANCE_far);
    cr_assert_eq(instances_find(&t, 0, &far), NO_INSTANCE);
    cr_assert_eq(instances_find(&t, 0, &low), NO_INSTANCE);
    arena_free(arena);
}
