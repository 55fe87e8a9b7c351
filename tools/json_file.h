/* Reading a JSON file that a tool is given. Only where EXO_WITH_JSON. */
#ifndef EXO_TOOLS_JSON_FILE_H
#define EXO_TOOLS_JSON_FILE_H

#include "ir/diag.h"

#include <jansson.h>

/* The value in a file, whose source number goes to *file; the caller's, to be
 * given back by json_decref. NULL after an error of that code at its line. */
json_t *json_file_read(Ctx *ctx, const char *path, const char *code,
                       uint32_t *file);

#endif
