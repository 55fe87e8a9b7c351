/* Limits of the hardware that more than one layer must know: compute capability
 * 9.0, by the CUDA programming guide and the PTX ISA. */
#ifndef EXO_IR_LIMITS_H
#define EXO_IR_LIMITS_H

enum {
    THREADS_A_CTA = 1024,
    CTAS_A_CLUSTER = 16,
    SHARED_MEMORY_LIMIT = 227 * 1024, /* bytes of dynamic memory a CTA */
    KERNEL_PARAMETER_BYTES = 32764,   /* of all parameters, from PTX 8.1 on */
    NAMED_BARRIERS = 16, /* ids of barrier.cta; 0 is the whole CTA's */
    REGISTERS_A_MULTIPROCESSOR = 64 * 1024,
    CTAS_A_MULTIPROCESSOR = 32,
    THREADS_A_MULTIPROCESSOR = 2048,
    /* of which the system takes some for each CTA */
    SHARED_MEMORY_A_MULTIPROCESSOR = 228 * 1024,
    SHARED_MEMORY_TAKEN = 1024
};

#endif
