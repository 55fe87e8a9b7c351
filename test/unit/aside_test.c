/* Work shared with a process beside this one: what is done where, what is said
 * again here, and that nobody is left over. On one core all is done here, which
 * the same answers hold of. */
#define _GNU_SOURCE

#include "verify/aside.h"

#include <criterion/criterion.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

enum { N = 40 };

/* What both processes see of a list. */
typedef struct Done {
    atomic_uint here[N], beside[N];
} Done;

typedef struct Work {
    Done *done;
    unsigned odd;  /* the one about which there is something to say; N: none */
    unsigned last; /* with which the list ends here; N: none */
    bool killed;   /* the other process, at the odd one */
} Work;

static bool here(void *user, unsigned i)
{
    Work *w = user;
    atomic_fetch_add(&w->done->here[i], 1);
    return i != w->last;
}

static bool beside(void *user, unsigned i)
{
    Work *w = user;
    if (i == w->odd && w->killed)
        raise(SIGKILL);
    atomic_fetch_add(&w->done->beside[i], 1);
    return i != w->odd;
}

/* The first n were done here, once each; the others beside or not at all. */
static unsigned run(Work *w)
{
    w->done = aside_share(sizeof *w->done);
    cr_assert(w->done);
    AsideList list = { N, here, beside, w };
    unsigned n = aside_each(&list);
    for (unsigned i = 0; i < N; i++) {
        cr_assert_eq(w->done->here[i], i < n, "%u here", i);
        cr_assert_leq(w->done->beside[i], 1, "%u beside", i);
    }
    cr_assert_eq(waitpid(-1, NULL, WNOHANG), -1, "a process is left over");
    return n;
}

Test(aside, all_are_done)
{
    Work w = { .odd = N, .last = N };
    unsigned n = run(&w);
    for (unsigned i = 0; i < N; i++)
        cr_assert(w.done->here[i] || w.done->beside[i], "%u of %u", i, n);
    aside_unshare(w.done, sizeof *w.done);
}

Test(aside, what_is_to_be_said_is_said_here)
{
    for (unsigned odd = 0; odd < N; odd += 13)
        for (int killed = 0; killed < 2; killed++) {
            Work w = { .odd = odd, .last = N, .killed = killed };
            unsigned n = run(&w);
            cr_assert_gt(n, odd);
            for (unsigned i = 0; i < N; i++)
                cr_assert(w.done->here[i] || w.done->beside[i]);
            aside_unshare(w.done, sizeof *w.done);
        }
}

Test(aside, a_list_ends_here)
{
    for (unsigned last = 0; last < N; last += 13) {
        Work w = { .odd = last, .last = last };
        cr_assert_eq(run(&w), last + 1);
        aside_unshare(w.done, sizeof *w.done);
    }
}

Test(aside, short_lists)
{
    Work w = { .odd = N, .last = N, .done = aside_share(sizeof(Done)) };
    for (unsigned n = 0; n < 2; n++) {
        AsideList list = { n, here, beside, &w };
        cr_assert_eq(aside_each(&list), n);
    }
    cr_assert_eq(w.done->here[0], 1);
    aside_unshare(w.done, sizeof *w.done);
}

static bool is_killed(void *user, unsigned i)
{
    (void)user;
    (void)i;
    return raise(SIGKILL) == 0;
}

/* Would be heard if it lived on. */
static bool speaks_late(void *user, unsigned i)
{
    int *out = user;
    sleep(20);
    return write(*out, "x", 1) == 1 && i;
}

Test(aside, it_ends_with_its_maker)
{
    int ends[2], status;
    char heard;
    cr_assert_eq(pipe(ends), 0);
    pid_t maker = fork();
    if (maker == 0) {
        AsideList list = { 2, is_killed, speaks_late, &ends[1] };
        aside_each(&list);
        _exit(0);
    }
    close(ends[1]);
    cr_assert_eq(waitpid(maker, &status, 0), maker);
    cr_assert(WIFSIGNALED(status));
    cr_assert_eq(read(ends[0], &heard, 1), 0, "the copy lived on");
    close(ends[0]);
}
