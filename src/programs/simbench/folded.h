/* Folded memory (SMPI_SHARED_MALLOC): buffers whose contents are never read alias the same physical pages. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Returns null where there is no address space left. */
void* folded_memory(size_t bytes);
void free_folded_memory(void* memory);

/* Whether the runtime's scratch, byte arrays of a megabyte and more, is folded, too, from now on. */
void fold_scratch(bool fold);

#ifdef __cplusplus
}
#endif
