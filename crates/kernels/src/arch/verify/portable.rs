//! Version for every processor: tables, 8 bytes per turn.

use super::{Functions, POLYNOMIAL, each_group, together};

/// The functions of this version.
pub(super) const FUNCTIONS: Functions = Functions { update, pages };

/// Effect of each of eight bytes on the state, the last byte's table first.
static TABLES: [[u32; 256]; 8] = {
    let mut tables = [[0; 256]; 8];
    let mut byte = 0u32;
    while byte < 256 {
        let mut state = byte;
        let mut table = 0;
        while table < 8 {
            let mut bit = 0;
            while bit < 8 {
                state = (state >> 1) ^ (POLYNOMIAL * (state & 1));
                bit += 1;
            }
            tables[table][byte as usize] = state;
            table += 1;
        }
        byte += 1;
    }
    tables
};

#[inline(always)]
fn word(state: u32, word: [u8; 8]) -> u32 {
    let bytes = (u64::from_le_bytes(word) ^ u64::from(state)).to_le_bytes();
    let each = bytes.iter().zip(TABLES.iter().rev());
    each.fold(0, |state, (byte, table)| state ^ table[usize::from(*byte)])
}

#[inline(always)]
fn byte(state: u32, byte: u8) -> u32 {
    (state >> 8) ^ TABLES[0][usize::from(state.to_le_bytes()[0] ^ byte)]
}

fn update(state: u32, bytes: &[u8]) -> u32 {
    together([bytes], [state], word, byte)[0]
}

fn pages(data: &[u8], page: usize, unroll: u8, out: &mut Vec<u32>) {
    each_group!(data, page, unroll, out, |pages| together(pages, [!0; _], word, byte));
}
