//! Reference for all other versions of verify, and the paper's sequential unit: page after page,
//! byte after byte, with one table.

use super::Plan;

/// Effect of a byte on the state.
const TABLE: [u32; 256] = {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut state = byte;
        let mut bit = 0;
        while bit < 8 {
            state = (state >> 1) ^ (0x82F6_3B78 * (state & 1));
            bit += 1;
        }
        table[byte as usize] = state;
        byte += 1;
    }
    table
};

/// Returns the checksums of all pages of `bytes`, the last one possibly short.
#[must_use]
pub fn checksums(plan: Plan, bytes: &[u8]) -> Vec<u32> {
    let page = |page: &[u8]| {
        let next = |state: u32, byte: &u8| {
            (state >> 8) ^ TABLE[usize::from(state.to_le_bytes()[0] ^ byte)]
        };
        !page.iter().fold(!0, next)
    };
    bytes.chunks(plan.page_bytes() as usize).map(page).collect()
}
