/* Names of an image's variables in global and constant memory. */
#ifndef GPA_LSP_VARIABLE_NAMES_H
#define GPA_LSP_VARIABLE_NAMES_H

#include <stddef.h>
#include <stdint.h>

/* Tells the names that machine code or PTX has; a fat binary is compressed and has none. */
void list_variable_names(const unsigned char *image, size_t size, uint64_t owner,
                         void (*take)(uint64_t owner, const char *name, size_t length));

#endif
