/* Loading PTX and cubins, and finding kernels in them.
 *
 * The driver's assembler writes its remarks and errors into two buffers that
 * are handed over as options. An option's value is a pointer-sized word: sizes
 * go in, and the used sizes come out, in that same word. */
#include "runtime/cuda.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/cuda_internal.h"

/* Text without white space at its end. */
static void trim_end(char *text)
{
    size_t n = strlen(text);
    while (n > 0 && strchr(" \t\r\n", text[n - 1]))
        text[--n] = '\0';
}

/* Loads `image` into `module`; the assembler's errors go to the message. */
static bool load_image(CudaModule *module, const void *image, CudaError *err)
{
    char error_log[4096] = "";
    CUjit_option options[] = {
        CU_JIT_INFO_LOG_BUFFER,  CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES,
        CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES,
        CU_JIT_LOG_VERBOSE,
    };
    void *values[] = {
        module->log,
        (void *)(uintptr_t)(sizeof module->log - 1),
        error_log,
        (void *)(uintptr_t)(sizeof error_log - 1),
        (void *)(uintptr_t)1,
    };
    bool ok =
        CUDA_CALL(module->cuda, err, ModuleLoadDataEx, &module->handle, image,
                  sizeof options / sizeof options[0], options, values);
    trim_end(module->log);
    trim_end(error_log);
    if (!ok && error_log[0])
        cuda_error_append(err, "%s", error_log);
    return ok;
}

static bool module_load(Cuda *cuda, const void *image, CudaModule **out,
                        CudaError *err)
{
    *out = NULL;
    CudaModule *module = calloc(1, sizeof *module);
    if (!module)
        return cuda_refuse(err, "out of memory");
    module->cuda = cuda;
    if (!load_image(module, image, err)) {
        free(module);
        return false;
    }
    *out = module;
    return true;
}

bool cuda_module_load_ptx(Cuda *cuda, const char *ptx, CudaModule **out,
                          CudaError *err)
{
    return module_load(cuda, ptx, out, err);
}

/* The driver is told no size and trusts the headers of the image; a file cut
 * short must be caught here. An ELF image is long enough for its own section
 * table, a fat binary for the length in its header. */
static bool image_is_whole(const unsigned char *image, size_t size)
{
    uint64_t offset, body;
    uint16_t entry_size, entry_count;
    if (size >= 64 && memcmp(image, "\177ELF\2\1", 6) == 0) {
        memcpy(&offset, image + 40, 8);
        memcpy(&entry_size, image + 58, 2);
        memcpy(&entry_count, image + 60, 2);
        uint64_t table = (uint64_t)entry_size * entry_count;
        return offset <= size && table <= size - offset;
    }
    if (size >= 16 && memcmp(image, "\x50\xed\x55\xba", 4) == 0) {
        memcpy(&body, image + 8, 8);
        return body <= size - 16;
    }
    return false;
}

bool cuda_module_load_cubin(Cuda *cuda, const void *image, size_t size,
                            CudaModule **out, CudaError *err)
{
    *out = NULL;
    if (!image_is_whole(image, size))
        return cuda_refuse(err,
                           "expected a cubin or a fat binary, found %zu bytes "
                           "that are neither or are cut short",
                           size);
    return module_load(cuda, image, out, err);
}

const char *cuda_module_log(const CudaModule *module)
{
    return module->log;
}

void cuda_module_unload(CudaModule *module)
{
    if (!module)
        return;
    module->cuda->ModuleUnload(module->handle);
    free(module);
}

bool cuda_module_function(CudaModule *module, const char *name,
                          CudaFunction *out, CudaError *err)
{
    Cuda *cuda = module->cuda;
    CUfunction fn = NULL;
    *out = (CudaFunction){ 0 };
    snprintf(out->name, sizeof out->name, "%s", name);
    if (!CUDA_CALL(cuda, err, ModuleGetFunction, &fn, module->handle, name)) {
        cuda_error_append(err, "kernel '%s'", name);
        return false;
    }
    out->handle = fn;
    const struct {
        CUfunction_attribute attribute;
        int *field;
    } rows[] = {
        { CU_FUNC_ATTRIBUTE_NUM_REGS, &out->registers },
        { CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, &out->local_bytes },
        { CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, &out->static_shared_bytes },
        { CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, &out->max_threads },
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (!CUDA_CALL(cuda, err, FuncGetAttribute, rows[i].field,
                       rows[i].attribute, fn))
            return false;
    return true;
}

bool cuda_function_set_shared(Cuda *cuda, const CudaFunction *fn, size_t bytes,
                              CudaError *err)
{
    size_t limit = cuda->properties.shared_per_block;
    size_t fixed = (size_t)fn->static_shared_bytes;
    if (bytes > limit || fixed > limit - bytes)
        return cuda_refuse(err,
                           "kernel '%s' needs %zu bytes of shared memory "
                           "(%zu of them static), but a block of %s has at "
                           "most %zu",
                           fn->name, bytes + fixed, fixed,
                           cuda->properties.name, limit);
    return CUDA_CALL(cuda, err, FuncSetAttribute, (CUfunction)fn->handle,
                     CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                     (int)bytes);
}
