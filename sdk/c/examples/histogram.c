/* Histogram: emits the count of every byte value in stream 0 as 256 u64; the result is the number
 * of bytes. The fold adds the counts of two answers. */
#include "../csd.h"

static uint8_t piece[256 << 10];
static uint64_t counts[256], others[256];

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

CSD_FOLD(fold) {
    uint64_t before, after;
    if (csd_part(0, &before, counts, sizeof counts) != sizeof counts ||
        csd_part(1, &after, others, sizeof others) != sizeof others)
        CSD_FAIL("this is no histogram");
    for (int value = 0; value < 256; value++) counts[value] += others[value];
    csd_emit(counts, sizeof counts);
    return before + after;
}
