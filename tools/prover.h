/* The prover that a tool hands to passes and checks: layer 1, and behind it Z3
 * where the build has it, started at the first question that layer 1 leaves. */
#ifndef EXO_TOOLS_PROVER_H
#define EXO_TOOLS_PROVER_H

#include "passes/prove.h"
#include "tools/options.h"

typedef struct ToolProver ToolProver;

/* Lives in the arena; tool_prover_close before it goes. By --solver-limit,
 * --save-queries and --save-queries-of. */
ToolProver *tool_prover_open(Arena *arena, Ctx *ctx, const Options *o);
Prover *tool_prover(ToolProver *tp);
/* What its first layer, which needs no solver, was asked. */
const ProverStats *tool_prover_layer1(const ToolProver *tp);
/* What the next questions are about, for saved ones; a text that lives on. */
void tool_prover_about(ToolProver *tp, const char *what);
/* For --timing: questions and answers by layer. */
void tool_prover_report(const ToolProver *tp, StrBuf *out);
void tool_prover_close(ToolProver *tp);

#endif
