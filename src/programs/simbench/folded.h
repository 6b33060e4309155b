/* Memory that all ranks share in truth: contents that nobody looks at need no more. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Returns null where there is no address space left. */
void* folded_memory(size_t bytes);
void free_folded_memory(void* memory);

/* From now on arrays of bytes of a megabyte and more that the runtime makes, its scratch, are folded, too. */
void fold_scratch(bool fold);

#ifdef __cplusplus
}
#endif
