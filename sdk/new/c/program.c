/* Counts the newlines of an object: an example to replace by your own. */
#include "csd.h"

/* Each chunk of an object is one run. The results are added, unless CSD_FOLD merges them.
 * CSD_LINES keeps lines whole, csd_parameters reads what --parameter gave, and csd_emit writes bytes
 * for --output. */
CSD_PROGRAM(run) {
    static char bytes[8192];
    uint64_t lines = 0;
    for (uint32_t count; (count = csd_next(0, bytes, sizeof bytes));)
        for (uint32_t at = 0; at < count; at++)
            lines += bytes[at] == '\n';
    return lines;
}
