//! CRC: the CRC-32C (Castagnoli) of stream 0, which is the result; eight bytes at a time by tables.
#![no_std]

use csd_sdk::each;

csd_sdk::program!(run);

static TABLES: [[u32; 256]; 8] = {
    let mut tables = [[0; 256]; 8];
    let mut byte = 0;
    while byte < 256 {
        let mut crc = byte as u32;
        let mut bit = 0;
        while bit < 8 {
            crc = if crc & 1 == 1 { crc >> 1 ^ 0x82F6_3B78 } else { crc >> 1 };
            bit += 1;
        }
        tables[0][byte] = crc;
        byte += 1;
    }
    let mut slice = 1;
    while slice < 8 {
        let mut byte = 0;
        while byte < 256 {
            let crc = tables[slice - 1][byte];
            tables[slice][byte] = crc >> 8 ^ tables[0][(crc & 0xFF) as usize];
            byte += 1;
        }
        slice += 1;
    }
    tables
};

fn run() -> u64 {
    let mut crc = u32::MAX;
    each(0, |bytes| {
        let (eights, rest) = bytes.as_chunks::<8>();
        for eight in eights {
            let word = u64::from_le_bytes(*eight) ^ u64::from(crc);
            crc = (0..8).fold(0, |sum, at| {
                let byte = (word >> (8 * at) & 0xFF) as usize;
                sum ^ TABLES[7 - at][byte]
            });
        }
        for byte in rest {
            crc = crc >> 8 ^ TABLES[0][((crc ^ u32::from(*byte)) & 0xFF) as usize];
        }
    });
    u64::from(!crc)
}
