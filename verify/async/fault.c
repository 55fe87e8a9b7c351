/* The op's name in the text, the code, what is wrong. */
#include "verify/async/fault.h"

Diag *async_vfault(Ctx *ctx, const Op *op, const char *code, const char *fmt,
                   va_list ap)
{
    StrBuf text = { 0 };
    const OpInfo *i = op_info(op->code);
    strbuf_vaddf(&text, fmt, ap);
    Diag *d = diag_error(ctx, op->loc, code, "'%s.%s': %s: %s", i->dialect,
                         i->text ? i->text : i->name, code, strbuf_text(&text));
    strbuf_free(&text);
    return d;
}

Diag *async_fault(Ctx *ctx, const Op *op, const char *code, const char *fmt,
                  ...)
{
    va_list ap;
    va_start(ap, fmt);
    Diag *d = async_vfault(ctx, op, code, fmt, ap);
    va_end(ap);
    return d;
}
