/* How a tool's process holds memory. */
#ifndef EXO_TOOLS_MEMORY_H
#define EXO_TOOLS_MEMORY_H

/* Keeps memory that was given back for what asks next. The checks make and drop
 * arenas and tensors for each run; handing their pages to the system and having
 * them cleared again would be most of its part of the time. Once, at the
 * beginning of main. */
void memory_keep(void);

#endif
