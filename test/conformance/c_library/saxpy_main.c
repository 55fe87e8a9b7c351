/* Checks of the C library printed from kernels/saxpy.exo. */
#include "saxpy.h"

#include "driver.h"

#include <pthread.h>

#define LAST_ERROR saxpy_last_error

static _Alignas(16) char x[4096], y[4096];

static void refuses_arguments(void)
{
    CHECK_ERROR(saxpy(0, 2, x, y, NULL), EXO_ERROR_ARGUMENT, "N must be");
    CHECK_ERROR(saxpy(-5, 2, x, y, NULL), EXO_ERROR_ARGUMENT, "is -5");
    CHECK_ERROR(saxpy(INT64_C(1) << 40, 2, x, y, NULL), EXO_ERROR_ARGUMENT,
                "N must be");
    CHECK_ERROR(saxpy(100, 2, NULL, y, NULL), EXO_ERROR_ARGUMENT, "x is NULL");
    CHECK_ERROR(saxpy(100, 2, x, NULL, NULL), EXO_ERROR_ARGUMENT, "y is NULL");
    CHECK_ERROR(saxpy(100, 2, x, y + 2, NULL), EXO_ERROR_ARGUMENT,
                "address of y must be a multiple of 4");
    CHECK(log_count("cu") == 0);
    CHECK(strcmp(saxpy_error_string(EXO_OK), "no error") == 0);
    CHECK(strstr(saxpy_error_string(EXO_ERROR_ARGUMENT), "argument"));
    CHECK(strcmp(saxpy_error_string(12345), "unknown error") == 0);
}

static void needs_a_context(void)
{
    CHECK_ERROR(saxpy(100, 2, x, y, NULL), EXO_ERROR_NO_CONTEXT,
                "no CUDA context");
    CHECK_ERROR(saxpy_load(), EXO_ERROR_NO_CONTEXT, "saxpy_load: ");
    use_device(0);
    CHECK(saxpy(100, 2, x, y, NULL) == EXO_OK);
}

static void launches(void)
{
    void *stream = NULL;
    use_device(0);
    CHECK(cuStreamCreate(&stream, 0) == 0);
    CHECK(saxpy(1000, 2, x, y, stream) == EXO_OK);
    CHECK(strstr(cuda_stub_log(), "grid=4,1,1 block=256,1,1 cluster=1,1,1 "
                                  "attributes=0 shared=0 stream=own"));
    CHECK(saxpy(1000000, 2, x, y, NULL) == EXO_OK);
    CHECK(strstr(cuda_stub_log(), "grid=264,1,1 block=256,1,1 cluster=1,1,1 "
                                  "attributes=0 shared=0 stream=default"));
    CHECK(log_count("cuModuleLoadDataEx") == 1);
    CHECK(log_count("cuLaunchKernelEx saxpy") == 2);
}

static void *load_in_thread(void *barrier)
{
    use_device(0);
    pthread_barrier_wait(barrier);
    for (int i = 0; i < 20; i++)
        CHECK(saxpy(1000, 2, x, y, NULL) == EXO_OK);
    CHECK_ERROR(saxpy(0, 2, x, y, NULL), EXO_ERROR_ARGUMENT, "N must be");
    return NULL;
}

/* Several threads come first at once: one load; a second context: another. */
static void loads_once_a_context(void)
{
    enum { N = 4 };
    pthread_t threads[N];
    pthread_barrier_t barrier;
    CHECK(pthread_barrier_init(&barrier, NULL, N) == 0);
    for (int i = 0; i < N; i++)
        CHECK(pthread_create(&threads[i], NULL, load_in_thread, &barrier) == 0);
    for (int i = 0; i < N; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    CHECK(log_count("cuModuleLoadDataEx") == 1);
    CHECK(log_count("cuLaunchKernelEx") == 20 * N);
    CHECK(saxpy_last_error()[0] == '\0');
    use_device(1);
    CHECK(saxpy_load() == EXO_OK);
    CHECK(log_count("cuModuleLoadDataEx") == 2);
    use_device(0);
    CHECK(saxpy_load() == EXO_OK);
    CHECK(log_count("cuModuleLoadDataEx") == 2);
}

static void reports_the_driver(void)
{
    use_device(0);
    cuda_stub_fail("cuModuleLoadDataEx", 0, 218);
    CHECK_ERROR(saxpy(100, 2, x, y, NULL), EXO_ERROR_DRIVER,
                "CUDA_ERROR_INVALID_PTX");
    cuda_stub_fail("cuModuleGetFunction", 0, 500);
    CHECK_ERROR(saxpy(100, 2, x, y, NULL), EXO_ERROR_DRIVER,
                "cuModuleGetFunction");
    CHECK(log_count("cuModuleUnload") == 1);
    CHECK(saxpy(100, 2, x, y, NULL) == EXO_OK);
    cuda_stub_fail("cuLaunchKernelEx", 0, 2);
    CHECK_ERROR(saxpy(100, 2, x, y, NULL), EXO_ERROR_DRIVER,
                "CUDA_ERROR_OUT_OF_MEMORY (2)");
    CHECK(saxpy(100, 2, x, y, NULL) == EXO_OK);
}

static void unloads(void)
{
    use_device(0);
    CHECK(saxpy_unload() == EXO_OK);
    CHECK(log_count("cuModuleUnload") == 0);
    CHECK(saxpy_load() == EXO_OK);
    CHECK(saxpy_unload() == EXO_OK);
    CHECK(log_count("cuModuleUnload") == 1);
    CHECK(saxpy(100, 2, x, y, NULL) == EXO_OK);
    CHECK(log_count("cuModuleLoadDataEx") == 2);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(void);
    } groups[] = {
        { "arguments", refuses_arguments }, { "context", needs_a_context },
        { "launches", launches },           { "threads", loads_once_a_context },
        { "driver", reports_the_driver },   { "unload", unloads },
    };
    const char *wanted = argc > 1 ? argv[1] : "";
    bool found = false;
    for (size_t i = 0; i < sizeof groups / sizeof *groups; i++)
        if (!strcmp(groups[i].name, wanted)) {
            groups[i].run();
            found = true;
        }
    CHECK(found);
    return failures != 0;
}
