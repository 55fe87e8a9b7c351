/* The op table, made from the rows. */
#include "ir/ir.h"

#include <string.h>

static const OpInfo op_table[OP_count] = {
#define OP(d, n, ...) \
    [OP_##d##_##n] = { .dialect = #d, .name = #n, __VA_ARGS__ },
#include "ir/ops.def"
#undef OP
};

const OpInfo *op_info(OpCode code)
{
    if (code <= OP_none || code >= OP_count)
        panic("op_info: no op %d", (int)code);
    return &op_table[code];
}

OpCode op_code_from_name(const char *name)
{
    const char *dot = strchr(name, '.');
    if (!dot)
        return OP_none;
    size_t n = (size_t)(dot - name);
    for (int c = OP_none + 1; c < OP_count; c++) {
        const OpInfo *row = &op_table[c];
        if (strlen(row->dialect) == n && !strncmp(row->dialect, name, n) &&
            !strcmp(row->text ? row->text : row->name, dot + 1))
            return (OpCode)c;
    }
    return OP_none;
}
