/* Control of the test driver from a test that has it loaded. A test finds these
 * with dlsym in the library it gave to cuda_open. */
#ifndef EXO_TEST_STUB_LIBCUDA_STUB_H
#define EXO_TEST_STUB_LIBCUDA_STUB_H

#include <stddef.h>

/* Makes the call number `skip` + 1 from now of the function `name` (as printed
 * in the log, without version suffix) answer `code`. One rule at a time. */
typedef void CudaStubFail(const char *name, int skip, int code);

/* All calls so far, one line each. */
typedef const char *CudaStubLog(void);

/* Sizes of the parameters of every kernel; without them cuFuncGetParamInfo
 * answers "not supported". */
typedef void CudaStubParams(const size_t *sizes, int count);

/* Number of allocations not yet freed. */
typedef int CudaStubLive(void);

/* How many milliseconds the kernel of that name takes, from now on. */
typedef void CudaStubTakes(const char *kernel, int ms);

/* Whether streams are captured. */
typedef void CudaStubCapture(int capturing);

/* How many of the next questions for an event find it passed. */
typedef void CudaStubLate(int n);

#endif
