/* A map from interned strings to pointers, keyed by the string's address. Used
 * for scopes by the .eir parser and printer, and by module_wellformed. */
#ifndef EXO_IR_NAME_MAP_H
#define EXO_IR_NAME_MAP_H

#include "ir/support.h"

typedef struct NameMap NameMap;

/* An empty map; it lives in the arena. */
NameMap *name_map_new(Arena *a);
/* What was last set for the name, or NULL. */
void *name_map_get(const NameMap *map, const char *interned);
/* NULL takes the name out. */
void name_map_set(NameMap *map, const char *interned, void *what);

#endif
