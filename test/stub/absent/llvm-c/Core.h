/* Stands before the system's header where a build must not need it. */
#error "llvm-c/Core.h is included in a build without it"
