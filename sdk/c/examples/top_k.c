/* Top k: emits the k largest f32 of stream 0, largest first; the parameter k is a u32, at most 1024.
 * The result is their number. NaN is no number and left out. The fold emits the k largest of two
 * answers. */
#include "../csd.h"

enum { MOST = 1024 };

static float values[MOST], piece[16 << 10];
static uint32_t count, wanted;

static void begin(void) {
    if (csd_parameters(&wanted, sizeof wanted) != sizeof wanted)
        CSD_FAIL("the parameter is a u32");
    if (wanted == 0 || wanted > MOST) CSD_FAIL("k is 1 to 1024");
}

/* Keeps the values falling, and those of equal size in the order in which they came. */
static void add(float value) {
    if (value != value || (count == wanted && value <= values[count - 1])) return;
    if (count < wanted) count++;
    uint32_t at = count - 1;
    for (; at > 0 && values[at - 1] < value; at--) values[at] = values[at - 1];
    values[at] = value;
}

static uint64_t end(void) {
    csd_emit(values, count * sizeof *values);
    return count;
}

CSD_PROGRAM(run) {
    begin();
    for (uint32_t kept = 0, length;; kept = length % sizeof *piece) {
        length = csd_next(0, (char *)piece + kept, sizeof piece - kept);
        if (length == 0) {
            if (kept) CSD_FAIL("the stream ends within an element");
            return end();
        }
        length += kept;
        uint32_t whole = length / sizeof *piece;
        for (uint32_t at = 0; at < whole; at++) add(piece[at]);
        for (uint32_t at = 0; at < length % sizeof *piece; at++)
            ((char *)piece)[at] = ((char *)(piece + whole))[at];
    }
}

CSD_FOLD(fold) {
    begin();
    for (uint32_t stream = 0; stream < 2; stream++) {
        uint64_t result;
        uint32_t length = csd_part(stream, &result, piece, MOST * sizeof *piece);
        for (uint32_t at = 0; at < length / sizeof *piece; at++) add(piece[at]);
    }
    return end();
}
