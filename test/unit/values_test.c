/* Fingerprints: what equal and different multisets of values look like, and
 * that made inputs keep sums exact and roundings visible. */
#include "verify/async/values.h"

#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

static Tensor *made(ScalarType t, int64_t n, uint64_t seed)
{
    Tensor *x = tensor_new("x", t, 1, &n);
    cr_assert(x);
    values_fill(x, seed);
    return x;
}

/* Of a loose digest, in the block around; of an exact one NULL. */
#define SUMS(loose) ((loose) ? &(LooseSums){ 0 } : NULL)

static Digest of(const float *x, int64_t n, int64_t place, LooseSums *sums)
{
    Digest d = { .loose = sums };
    for (int64_t i = 0; i < n; i++)
        digest_add(&d, TY_f32, (const unsigned char *)&x[i], 1,
                   place < 0 ? -1 : place + i);
    return d;
}

Test(values, digests_know_the_multiset)
{
    float a[3] = { 1.0f, 2.0f, 2.0f }, b[3] = { 2.0f, 1.0f, 2.0f };
    float c[3] = { 1.0f, 1.0f, 2.0f };
    for (int loose = 0; loose < 2; loose++) {
        Digest x = of(a, 3, -1, SUMS(loose)), y = of(b, 3, -1, SUMS(loose));
        Digest z = of(c, 3, -1, SUMS(loose)), two = of(a, 2, -1, SUMS(loose));
        cr_assert(digest_same(&x, &y));
        cr_assert_not(digest_same(&x, &z));
        cr_assert_not(digest_same(&x, &two));
        /* with places the order counts */
        x = of(a, 3, 5, SUMS(loose));
        y = of(b, 3, 5, SUMS(loose));
        z = of(a, 3, 6, SUMS(loose));
        cr_assert_not(digest_same(&x, &y));
        cr_assert_not(digest_same(&x, &z));
        /* parts add up to the whole */
        Digest part = of(a, 1, 5, SUMS(loose)),
               rest = of(a + 1, 2, 6, SUMS(loose));
        digest_join(&part, &rest);
        cr_assert(digest_same(&x, &part));
    }
}

Test(values, loose_digests_allow_roundings)
{
    float a[64], b[64];
    for (int i = 0; i < 64; i++) {
        a[i] = 1.0f + (float)i / 64.0f;
        b[i] = nextafterf(a[i], i % 2 ? 0.0f : 8.0f);
    }
    Digest x = of(a, 64, 0, SUMS(true)), y = of(b, 64, 0, SUMS(true));
    Digest exact = of(a, 64, 0, NULL), other = of(b, 64, 0, NULL);
    cr_assert(digest_same(&x, &y));
    cr_assert_not(digest_same(&exact, &other));
    b[17] = 1.0f;
    y = of(b, 64, 0, SUMS(true));
    cr_assert_not(digest_same(&x, &y));
    b[17] = NAN;
    a[17] = NAN;
    x = of(a, 64, 0, SUMS(true));
    y = of(b, 64, 0, SUMS(true));
    cr_assert(digest_same(&x, &y));
    a[17] = INFINITY;
    x = of(a, 64, 0, SUMS(true));
    cr_assert_not(digest_same(&x, &y));
}

Test(values, a_view_is_its_elements)
{
    int64_t extent[2] = { 4, 6 };
    Tensor *t = tensor_new("t", TY_f32, 2, extent);
    values_fill(t, 3);
    View all = view_of(t), box;
    ViewDim dims[2] = { { true, 1, 2 }, { true, 2, 3 } };
    unsigned bad;
    cr_assert(view_window(&all, dims, &box, &bad));
    Digest x = { 0 }, y = { 0 };
    digest_view(&x, &box, true, true);
    for (int64_t i = 1; i < 3; i++)
        digest_add(&y, TY_f32, t->bytes + (6 * i + 2) * 4, 3, 6 * i + 2);
    cr_assert_eq(x.n, 6);
    cr_assert(digest_same(&x, &y));
    tensor_free(t);
}

/* Sums of products of 16-bit inputs are exact, and their own last digits lost
 * in a 16-bit type; tf32 loses digits of 32-bit ones. */
Test(values, inputs_show_roundings)
{
    Tensor *a = made(TY_bf16, 512, 1), *b = made(TY_bf16, 512, 2);
    Tensor *w = made(TY_f32, 512, 1);
    double exact = 0.0;
    float sum = 0.0f;
    int coarse = 0;
    for (int64_t i = 0; i < 512; i++) {
        exact += tensor_get(a, i) * tensor_get(b, i);
        sum += (float)tensor_get(a, i) * (float)tensor_get(b, i);
        float x = (float)tensor_get(w, i);
        coarse += scalar_tf32_truncate(x) != x;
        cr_assert_neq(tensor_get(a, i), 0.0);
    }
    cr_assert_eq((double)sum, exact);
    cr_assert_eq(coarse, 512);
    cr_assert_neq(values_differ(a, b, false), -1);
    tensor_free(a);
    tensor_free(b);
    tensor_free(w);
}

Test(values, results_differ_where_they_do)
{
    Tensor *a = made(TY_f32, 64, 1), *b = made(TY_f32, 64, 1);
    cr_assert_eq(values_differ(a, b, false), -1);
    tensor_set(b, 9, nextafterf((float)tensor_get(b, 9), 9.0f));
    cr_assert_eq(values_differ(a, b, false), 9);
    cr_assert_eq(values_differ(a, b, true), -1);
    tensor_set(b, 40, tensor_get(b, 40) + 1.0);
    cr_assert_eq(values_differ(a, b, true), 40);
    tensor_free(a);
    tensor_free(b);
}
