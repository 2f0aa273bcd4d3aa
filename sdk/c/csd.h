/* Programs in C for computational storage drives.
 *
 * A program reads streams, front to back, and ends with a number; it may write bytes besides. It
 * exports csd_run:
 *
 *     #include "csd.h"
 *     CSD_PROGRAM(run) { ... return result; }
 *
 * clang --target=wasm32 -O3 -msimd128 -nostdlib -Wl,--no-entry -o program.wasm program.c
 *
 * There is no C library. docs/guide/programs.md describes these functions. */
#ifndef CSD_H
#define CSD_H

#include <stddef.h>
#include <stdint.h>

#define CSD_IMPORT(name) __attribute__((import_module("csd"), import_name(name))) extern

/* Number of streams. */
CSD_IMPORT("streams") uint32_t csd_streams(void);
/* Copies the next bytes of a stream to `at`, at most `room`; returns their number, 0 at the end. */
CSD_IMPORT("next") uint32_t csd_next(uint32_t stream, void *at, uint32_t room);
/* Appends bytes to the output. */
CSD_IMPORT("emit") void csd_emit(const void *at, uint32_t length);
/* Copies the first `room` bytes of the parameters to `at`; returns the length of all. */
CSD_IMPORT("parameters") uint32_t csd_parameters(void *at, uint32_t room);
/* Counts work done: elements, edges or bytes. */
CSD_IMPORT("work") void csd_work(uint64_t work);
/* Ends the execution with these words; does not return. */
CSD_IMPORT("fail") void csd_fail(const char *words, uint32_t length);

#define CSD_FAIL(words)                        \
    do {                                       \
        csd_fail((words), sizeof(words) - 1);  \
        __builtin_unreachable();               \
    } while (0)

/* Reads a partial answer in a fold: its result, then the bytes that the program wrote, which are
 * copied to `at`. Fails if they are longer than `room`; returns their length. */
static inline uint32_t csd_part(uint32_t stream, uint64_t *result, void *at, uint32_t room) {
    uint32_t length = 0, count, filled = 0;
    for (; filled < 8 && (count = csd_next(stream, (char *)result + filled, 8 - filled)); )
        filled += count;
    if (filled < 8) CSD_FAIL("there is no partial answer");
    while (length < room && (count = csd_next(stream, (char *)at + length, room - length)))
        length += count;
    char more;
    if (csd_next(stream, &more, 1)) CSD_FAIL("a partial answer is too long");
    return length;
}

/* Declares that the program's records are lines, so that none of them is cut at the end of a chunk.
 * Without it, records are elements of the object's type. */
#define CSD_LINES \
    __attribute__((export_name("csd_records"))) uint64_t csd_records_(void) { return 1; }

/* Begins the function that merges two partial answers, those of earlier and of later chunks:
 * streams 0 and 1, which csd_part reads. Without a fold, the outputs of chunks are concatenated,
 * and their results added. */
#define CSD_FOLD(name)                                                  \
    static uint64_t name(void);                                         \
    __attribute__((export_name("csd_fold"))) uint64_t csd_fold_(void) { \
        return name();                                                  \
    }                                                                   \
    static uint64_t name(void)

/* Begins the function that is the program. */
#define CSD_PROGRAM(name)                                             \
    static uint64_t name(void);                                       \
    __attribute__((export_name("csd_run"))) uint64_t csd_run_(void) { \
        return name();                                                \
    }                                                                 \
    static uint64_t name(void)

#endif
