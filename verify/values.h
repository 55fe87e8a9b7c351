/* The host arithmetic by the name under which verify/ includes it. */
#ifndef EXO_VERIFY_VALUES_H
#define EXO_VERIFY_VALUES_H

#include "ir/values.h"

#endif
