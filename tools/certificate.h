/* What a translation may say of itself: the checks that ran with what verdict
 * and scope, those that did not run, and hashes of what they ran on.
 *
 * Filled by exo-translate as it goes. The JSON has sorted keys and neither
 * time nor path, so that the same program gives the same bytes; its summary is
 * one line of the PTX. */
#ifndef EXO_TOOLS_CERTIFICATE_H
#define EXO_TOOLS_CERTIFICATE_H

#include "passes/pass.h"
#include "tools/schedule.h"

typedef struct CertText {
    const char *name; /* "seq", "par", "async", "ptx", "cubin" */
    char sha256[65];
} CertText;

typedef struct CertKernel {
    const char *name;
    uint64_t abi;
    int64_t smem_bytes, registers; /* registers: -1 where ptxas did not run */
} CertKernel;

typedef struct Certificate {
    Ctx *ctx;
    const char *arch;               /* NULL: nothing for a target was made */
    const ToolScheduled *scheduled; /* NULL, or not given: by no schedule */
    const char *sizes; /* that sync-check was given, "M=1,N=2"; or NULL */
    VEC(PassFinding) findings;
    VEC(CertText) texts;
    VEC(CertKernel) kernels;
} Certificate;

/* "async" with a kernel in it; "par" with a loop mode, a memory other than the
 * host's, or an op of that level; else "seq". */
const char *module_level(const Module *m);

/* Can this build write one? It needs jansson. */
bool certificate_available(void);
/* Records the hash of the module's printed form under its level. */
void certificate_add_module(Certificate *c, const Module *m);
void certificate_add_text(Certificate *c, const char *name, const char *text,
                          size_t n);
void certificate_add_findings(Certificate *c, const PassManager *pm);
/* A finding that does not come from a pass: the ptxas gate. */
void certificate_add_finding(Certificate *c, PassFinding f);
void certificate_add_kernel(Certificate *c, const Op *kernel);

/* One line: `check-par proved; not run: sync-check, check-async`. */
void certificate_summary(const Certificate *c, StrBuf *out);
/* Appends the JSON text; nothing in a build without jansson. */
void certificate_print(const Certificate *c, StrBuf *out);

#endif
