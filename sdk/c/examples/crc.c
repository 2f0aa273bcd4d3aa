/* CRC: the CRC-32C (Castagnoli) of stream 0, which is the result. */
#include "../csd.h"

static uint8_t piece[256 << 10];
static uint32_t table[256];

CSD_PROGRAM(run) {
    for (uint32_t byte = 0; byte < 256; byte++) {
        uint32_t crc = byte;
        for (int bit = 0; bit < 8; bit++) crc = crc & 1 ? crc >> 1 ^ 0x82F63B78u : crc >> 1;
        table[byte] = crc;
    }
    uint32_t crc = ~0u;
    for (;;) {
        uint32_t length = csd_next(0, piece, sizeof piece);
        if (length == 0) return ~crc;
        for (uint32_t at = 0; at < length; at++)
            crc = crc >> 8 ^ table[(crc ^ piece[at]) & 0xFF];
    }
}
