/* Histogram: how often every byte value is in stream 0, emitted as 256 u64; the result is the number
 * of bytes. */
#include "../csd.h"

static uint8_t piece[256 << 10];
static uint64_t counts[256];

CSD_PROGRAM(run) {
    uint64_t all = 0;
    for (;;) {
        uint32_t length = csd_next(0, piece, sizeof piece);
        if (length == 0) break;
        for (uint32_t at = 0; at < length; at++) counts[piece[at]]++;
        all += length;
    }
    csd_emit(counts, sizeof counts);
    return all;
}
