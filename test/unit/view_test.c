/* Runs of elements: what view_run says against view_element, one by one. */
#include "verify/tensor.h"

#include <criterion/criterion.h>

enum { MOST = 64 };

/* Are the elements that a run counts as it says, and is the next one not? A run
 * may end early outside of a map, and where the last dimension is not dense. */
static void check_run(const View *v, const int64_t *index, int64_t n)
{
    int64_t at[TENSOR_MAX_RANK];
    unsigned bad, last = v->rank - 1;
    int64_t run = view_run(v, index, n);
    cr_assert(run >= 1 && run <= n, "%lld of %lld", (long long)run,
              (long long)n);
    for (unsigned d = 0; d < v->rank; d++)
        at[d] = index[d];
    int64_t first = view_element(v, at, &bad);
    for (int64_t i = 1; i < n && first != VIEW_OUT_OF_BOUNDS; i++) {
        at[last] = index[last] + i;
        int64_t here = view_element(v, at, &bad);
        bool follows = first < 0 ? here == first : here == first + i;
        cr_assert(i >= run || follows, "element %lld", (long long)i);
        cr_assert(v->stride[last] != 1 || first < 0 || i != run || !follows,
                  "ends early at %lld", (long long)i);
    }
}

static void check_all(const View *v, int64_t lo, int64_t hi)
{
    int64_t index[TENSOR_MAX_RANK] = { 0 };
    for (index[0] = lo; index[0] < hi; index[0]++)
        for (index[1] = lo; index[1] < hi; index[1]++)
            for (int64_t n = 1; n < 12; n++)
                check_run(v, index, n);
}

Test(view, runs_end_with_the_row)
{
    Tensor *t = tensor_new("t", TY_f32, 2, (int64_t[]){ 4, 7 });
    View v = view_of(t);
    int64_t index[] = { 1, 2 };
    cr_assert_eq(view_run(&v, index, MOST), 5);
    cr_assert_eq(view_run(&v, index, 3), 3);
    for (index[0] = 0; index[0] < 4; index[0]++)
        for (index[1] = 0; index[1] < 7; index[1]++)
            check_run(&v, index, 7 - index[1]);
    tensor_free(t);
}

Test(view, runs_of_a_map_end_at_its_edges)
{
    Tensor *t = tensor_new("t", TY_bf16, 2, (int64_t[]){ 4, 7 });
    View v = view_of(t);
    view_make_map(&v);
    cr_assert_eq(view_run(&v, (int64_t[]){ 1, -3 }, MOST), 3);
    cr_assert_eq(view_run(&v, (int64_t[]){ 1, 0 }, MOST), 7);
    cr_assert_eq(view_run(&v, (int64_t[]){ 1, 7 }, MOST), MOST);
    check_all(&v, -3, 9);
    tensor_free(t);
}

Test(view, a_column_has_no_runs)
{
    Tensor *t = tensor_new("t", TY_f32, 2, (int64_t[]){ 4, 7 });
    View v = view_of(t), column;
    unsigned bad;
    ViewDim dims[] = { { .interval = true, .len = 4 }, { .lo = 3 } };
    cr_assert(view_window(&v, dims, &column, &bad));
    cr_assert_eq(view_run(&column, (int64_t[]){ 0 }, 4), 1);
    tensor_free(t);
}
