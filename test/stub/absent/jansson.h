/* Stands before the system's header where a build must not need it. */
#error "jansson.h is included in a build without it"
