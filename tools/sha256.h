/* SHA-256 (FIPS 180-4), for the hashes that a certificate holds. */
#ifndef EXO_TOOLS_SHA256_H
#define EXO_TOOLS_SHA256_H

#include <stddef.h>

/* The digest of n bytes as 64 lower-case hexadecimal digits. */
void sha256_hex(const void *data, size_t n, char out[65]);

#endif
