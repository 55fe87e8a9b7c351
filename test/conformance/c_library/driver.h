/* What the test programs of printed C share: the driver's functions that a
 * user of the library calls himself, the test driver's controls, and checks.
 * A program is linked with the test driver and run with the name of a group of
 * checks; it ends with status 1 when one failed. */
#ifndef EXO_TEST_C_LIBRARY_DRIVER_H
#define EXO_TEST_C_LIBRARY_DRIVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

int cuInit(unsigned flags);
int cuDevicePrimaryCtxRetain(void **context, int device);
int cuCtxSetCurrent(void *context);
int cuStreamCreate(void **stream, unsigned flags);

void cuda_stub_fail(const char *name, int skip, int code);
const char *cuda_stub_log(void);
int cuda_stub_live(void);

static int failures;

#define CHECK(claim)                                                   \
    do {                                                               \
        if (!(claim)) {                                                \
            printf("%s:%d: not so: %s\n", __FILE__, __LINE__, #claim); \
            failures++;                                                \
        }                                                              \
    } while (0)

/* A call answers `code` and its message has `text`. */
#define CHECK_ERROR(call, code, text)                                        \
    do {                                                                     \
        int found_ = (call);                                                 \
        if (found_ != (code) || !strstr(LAST_ERROR(), (text))) {             \
            printf("%s:%d: %s answers %d \"%s\", not %d \"%s\"\n", __FILE__, \
                   __LINE__, #call, found_, LAST_ERROR(), (int)(code),       \
                   (text));                                                  \
            failures++;                                                      \
        }                                                                    \
    } while (0)

/* How many lines of the log begin with `call`. */
static inline int log_count(const char *call)
{
    int n = 0;
    for (const char *line = cuda_stub_log(); line && *line;) {
        n += strncmp(line, call, strlen(call)) == 0;
        line = strchr(line, '\n');
        line = line ? line + 1 : NULL;
    }
    return n;
}

/* Makes the context of a device current in this thread. */
static inline void use_device(int device)
{
    void *context = NULL;
    CHECK(cuInit(0) == 0);
    CHECK(cuDevicePrimaryCtxRetain(&context, device) == 0);
    CHECK(cuCtxSetCurrent(context) == 0);
}

#endif
