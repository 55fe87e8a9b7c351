/* Fixed text of the printed C, 1: arithmetic, checks, host memory.
 *
 * Each piece is one or two static functions, printed when some body needs it;
 * together the pieces are an ordinary C file, to be read as such. They are
 * string literals of less than 4096 bytes, which is what C17 promises. */
#include "codegen/c_support.h"

static const char text_fail[] =
    "static _Thread_local char exo_message[2048];\n"
    "\n"
    "#if defined(__GNUC__)\n"
    "__attribute__((format(printf, 3, 4)))\n"
    "#endif\n"
    "static int exo_fail(const char *procedure, int code, const char "
    "*format, ...)\n"
    "{\n"
    "    int n = snprintf(exo_message, sizeof exo_message, \"%s: \", "
    "procedure);\n"
    "    va_list args;\n"
    "    va_start(args, format);\n"
    "    if (n >= 0 && (size_t)n < sizeof exo_message)\n"
    "        vsnprintf(exo_message + n, sizeof exo_message - (size_t)n, "
    "format,\n"
    "                  args);\n"
    "    va_end(args);\n"
    "    return code;\n"
    "}\n"
    "\n";

static const char text_limit[] =
    "static int exo_overflow(const char *procedure)\n"
    "{\n"
    "    return exo_fail(procedure, EXO_ERROR_ARGUMENT,\n"
    "                    \"the arguments give a size beyond 64 bits\");\n"
    "}\n"
    "\n";

static const char text_floordiv[] =
    "static int64_t exo_floordiv(int64_t a, int64_t b)\n"
    "{\n"
    "    return a / b - (a % b < 0);\n"
    "}\n"
    "\n";

static const char text_mod[] = "static int64_t exo_mod(int64_t a, int64_t b)\n"
                               "{\n"
                               "    return a % b + (a % b < 0 ? b : 0);\n"
                               "}\n"
                               "\n";

static const char text_add[] =
    "static int64_t exo_add(bool *overflow, int64_t a, int64_t b)\n"
    "{\n"
    "    if (b > 0 ? a > INT64_MAX - b : a < INT64_MIN - b) {\n"
    "        *overflow = true;\n"
    "        return 0;\n"
    "    }\n"
    "    return a + b;\n"
    "}\n"
    "\n";

static const char text_mul[] =
    "static int64_t exo_mul(bool *overflow, int64_t a, int64_t b)\n"
    "{\n"
    "    uint64_t x = a < 0 ? 0 - (uint64_t)a : (uint64_t)a;\n"
    "    uint64_t y = b < 0 ? 0 - (uint64_t)b : (uint64_t)b;\n"
    "    if (x != 0 && y > (uint64_t)INT64_MAX / x) {\n"
    "        *overflow = true;\n"
    "        return 0;\n"
    "    }\n"
    "    return a * b;\n"
    "}\n"
    "\n";

static const char text_control[] =
    "#define EXO_CONTROL_LIMIT (INT64_C(1) << 30)\n"
    "\n"
    "static int exo_check_control(const char *procedure, const char "
    "*argument,\n"
    "                             int64_t value, int64_t least)\n"
    "{\n"
    "    if (value >= least && value <= EXO_CONTROL_LIMIT)\n"
    "        return EXO_OK;\n"
    "    return exo_fail(procedure, EXO_ERROR_ARGUMENT,\n"
    "                    \"%s must be between %lld and %lld, but is %lld\", "
    "argument,\n"
    "                    (long long)least, (long long)EXO_CONTROL_LIMIT,\n"
    "                    (long long)value);\n"
    "}\n"
    "\n";

static const char text_align[] =
    "static int exo_check_align(const char *procedure, uint64_t address,\n"
    "                           uint64_t bytes, const char *message)\n"
    "{\n"
    "    if (address % bytes == 0)\n"
    "        return EXO_OK;\n"
    "    return exo_fail(procedure, EXO_ERROR_ARGUMENT, \"%s (it is "
    "0x%llx)\",\n"
    "                    message, (unsigned long long)address);\n"
    "}\n"
    "\n";

static const char text_pointer[] =
    "static int exo_check_pointer(const char *procedure, const char "
    "*argument,\n"
    "                             const void *pointer, unsigned align)\n"
    "{\n"
    "    if (!pointer)\n"
    "        return exo_fail(procedure, EXO_ERROR_ARGUMENT, \"%s is NULL\", "
    "argument);\n"
    "    if ((uintptr_t)pointer % align == 0)\n"
    "        return EXO_OK;\n"
    "    return exo_fail(procedure, EXO_ERROR_ARGUMENT,\n"
    "                    \"the address of %s must be a multiple of %u bytes, "
    "but is \"\n"
    "                    \"%p\", argument, align, pointer);\n"
    "}\n"
    "\n";

static const char text_extent[] =
    "static int exo_check_extent(const char *procedure, const char *argument,\n"
    "                            int64_t bytes, int rank, const int64_t "
    "*extents)\n"
    "{\n"
    "    for (int i = 0; i < rank; i++) {\n"
    "        if (extents[i] < 0)\n"
    "            return exo_fail(procedure, EXO_ERROR_ARGUMENT,\n"
    "                            \"dimension %d of %s would have %lld "
    "elements\", i,\n"
    "                            argument, (long long)extents[i]);\n"
    "        if (extents[i] > 0 && bytes >= (INT64_C(1) << 47) / extents[i])\n"
    "            return exo_fail(procedure, EXO_ERROR_ARGUMENT,\n"
    "                            \"%s would have 2^47 bytes or more\", "
    "argument);\n"
    "        bytes *= extents[i];\n"
    "    }\n"
    "    return EXO_OK;\n"
    "}\n"
    "\n";

static const char text_hostalloc[] =
    "static void *exo_host_alloc(int64_t count, size_t bytes)\n"
    "{\n"
    "    if (count < 1)\n"
    "        count = 1;\n"
    "    return (uint64_t)count > SIZE_MAX / bytes ? NULL\n"
    "                                              : calloc((size_t)count, "
    "bytes);\n"
    "}\n"
    "\n"
    "static void exo_host_free(void *pointer)\n"
    "{\n"
    "    free(pointer);\n"
    "}\n"
    "\n";

const CPiece c_check_pieces[] = {
    { 0, text_fail },
    { NEED_limit, text_limit },
    { NEED_floordiv, text_floordiv },
    { NEED_mod, text_mod },
    { NEED_add, text_add },
    { NEED_mul, text_mul },
    { NEED_control, text_control },
    { NEED_align, text_align },
    { NEED_pointer, text_pointer },
    { NEED_extent, text_extent },
    { NEED_host_alloc, text_hostalloc },
    { 0, NULL },
};
