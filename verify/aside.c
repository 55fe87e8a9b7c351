/* Both processes take from one counter until all has been taken. The copy
 * writes nothing: it ends without flushing what it was handed of buffered
 * output. It ends with the process that made it, too: whoever kills that one
 * and waits for the end of its output waits for nobody else. */
#define _GNU_SOURCE /* MAP_ANONYMOUS, CPU_COUNT */

#include "verify/aside.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif
#include <sys/wait.h>
#include <unistd.h>

void *aside_share(size_t n)
{
    void *p = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
                   -1, 0);
    return p == MAP_FAILED ? NULL : p;
}

void aside_unshare(void *p, size_t n)
{
    munmap(p, n);
}

/* Is there another one to take? */
static bool take(const AsideList *list, atomic_uint *taken)
{
    return atomic_fetch_add(taken, 1) < list->n;
}

static bool all_clean(const AsideList *list, atomic_uint *taken)
{
    for (unsigned i = list->n; i-- > 0 && take(list, taken);)
        if (!list->beside(list->user, i))
            return false;
    return true;
}

/* May this process use more than one core? */
static bool has_second_core(void)
{
#ifdef __linux__
    cpu_set_t cores;
    if (sched_getaffinity(0, sizeof cores, &cores) == 0)
        return CPU_COUNT(&cores) > 1;
#endif
    return sysconf(_SC_NPROCESSORS_ONLN) > 1;
}

/* Lets this process end with the one that made it. */
static void end_with(pid_t maker)
{
#ifdef __linux__
    prctl(PR_SET_PDEATHSIG, SIGKILL);
#endif
    if (getppid() != maker)
        _exit(1);
}

/* The other process; 0: there is no second core, or no process. */
static pid_t begin(const AsideList *list, atomic_uint *taken)
{
    if (!has_second_core())
        return 0;
    pid_t here = getpid(), pid = fork();
    if (pid == 0) {
        end_with(here);
        _exit(all_clean(list, taken) ? 0 : 1);
    }
    return pid > 0 ? pid : 0;
}

/* Waits for the answer; false also when the process came to no end. */
static bool answer(pid_t pid)
{
    int status = 0;
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return false;
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static void drop(pid_t pid)
{
    kill(pid, SIGKILL);
    answer(pid);
}

unsigned aside_each(const AsideList *list)
{
    unsigned i = 0;
    bool more = true;
    atomic_uint *taken = list->n > 1 ? aside_share(sizeof *taken) : NULL;
    pid_t other = taken ? begin(list, taken) : 0;
    while (more && i < list->n && (!other || take(list, taken)))
        more = list->here(list->user, i++);
    if (other && !more)
        drop(other);
    else if (other && !answer(other))
        while (more && i < list->n)
            more = list->here(list->user, i++);
    if (taken)
        aside_unshare(taken, sizeof *taken);
    return i;
}
