/* Grep: emits the lines of stream 0 that hold the parameter, 1 to 256 bytes; the result is their
 * number. A line has at most 64 KiB. */
#include <wasm_simd128.h>

#include "../csd.h"

enum { LINE_BYTES_MAX = 64 << 10 };

CSD_LINES

/* Buffer of lines: the beginning of one, and the bytes fetched at once. */
static char text[3 * LINE_BYTES_MAX], word[256];
static uint32_t length;

static int holds(const char *at) {
    for (uint32_t byte = 0; byte < length; byte++)
        if (at[byte] != word[byte]) return 0;
    return 1;
}

/* Where the word is first, or the end: 16 places at once are looked at for its first and its last
 * byte. */
static const char *find(const char *at, const char *end) {
    const v128_t first = wasm_i8x16_splat(word[0]), last = wasm_i8x16_splat(word[length - 1]);
    for (; at + length + 15 <= end; at += 16) {
        v128_t is_first = wasm_i8x16_eq(wasm_v128_load(at), first);
        v128_t is_last = wasm_i8x16_eq(wasm_v128_load(at + length - 1), last);
        uint32_t places = wasm_i8x16_bitmask(wasm_v128_and(is_first, is_last));
        for (; places; places &= places - 1)
            if (holds(at + __builtin_ctz(places))) return at + __builtin_ctz(places);
    }
    for (; at + length <= end; at++)
        if (holds(at)) return at;
    return end;
}

/* Emits those of whole lines that hold the word; their number. */
static uint64_t grep(const char *lines, const char *end) {
    uint64_t found = 0;
    while (lines < end) {
        const char *hit = find(lines, end), *start = hit, *stop = hit;
        if (hit == end) break;
        while (start > lines && start[-1] != '\n') start--;
        while (stop < end && *stop != '\n') stop++;
        if (stop - start > LINE_BYTES_MAX) CSD_FAIL("a line is longer than 64 KiB");
        csd_emit(start, stop - start);
        csd_emit("\n", 1);
        found++;
        lines = stop + 1;
    }
    return found;
}

CSD_PROGRAM(run) {
    length = csd_parameters(word, sizeof word);
    if (length > sizeof word) CSD_FAIL("the parameters are too long");
    for (uint32_t at = 0; at < length; at++)
        if (word[at] == '\n') length = 0;
    if (length == 0) CSD_FAIL("the parameter is what to look for in a line");
    uint64_t found = 0;
    uint32_t kept = 0, count;
    while ((count = csd_next(0, text + kept, sizeof text - kept))) {
        uint32_t filled = kept + count, end = filled;
        while (end > kept && text[end - 1] != '\n') end--;
        if (end == kept) end = 0;
        found += grep(text, text + end);
        kept = 0;
        while (end + kept < filled) {
            text[kept] = text[end + kept];
            kept++;
        }
        if (kept > LINE_BYTES_MAX) CSD_FAIL("a line is longer than 64 KiB");
    }
    return found + grep(text, text + kept);
}
