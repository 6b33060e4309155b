/* Copy and reduction bandwidth of one rank, in blocks that stride through more memory than the private caches hold.
 */
#ifndef CALIBRATE_MEMORY_H
#define CALIBRATE_MEMORY_H

#include <stdlib.h>
#include <string.h>

#include "waiting.h"

enum { WALK_BYTES = 16 << 20 };

static void add_block(float* restrict sum, const float* restrict other, size_t count) {
    for (size_t i = 0; i < count; ++i) sum[i] += other[i];
}

/* Bytes per second copied and bytes of result per second reduced, each over `seconds`; 0 if allocation fails. */
static void memory_rates(size_t block, double seconds, double rates[2]) {
    rates[0] = rates[1] = 0;
    block -= block % sizeof(float);
    if (block == 0 || block > WALK_BYTES) return;
    char *from = malloc(WALK_BYTES), *to = malloc(WALK_BYTES);
    if (from && to) {
        memset(from, 0, WALK_BYTES);
        memset(to, 0, WALK_BYTES);
        const size_t blocks = WALK_BYTES / block;
        for (int reduces = 0; reduces < 2; ++reduces) {
            double done = 0;
            const double begin_s = now_s();
            double elapsed_s = 0;
            for (size_t i = 0; elapsed_s < seconds || done == 0; i = (i + 1) % blocks) {
                if (reduces)
                    add_block((float*)(void*)(to + i * block), (const float*)(const void*)(from + i * block),
                              block / sizeof(float));
                else
                    memcpy(to + i * block, from + i * block, block);
                __asm__ volatile("" : : "r"(to) : "memory"); /* keeps the compiler from eliminating the copy */
                done += (double)block;
                elapsed_s = now_s() - begin_s;
            }
            rates[reduces] = done / elapsed_s;
        }
    }
    free(from);
    free(to);
}

#endif
