//! SSE4.2: an instruction takes 8 bytes.
#![allow(unsafe_code)]

use super::instructions::instructions;

instructions!(
    x86_64,
    "sse4.2",
    |state, word| {
        let state = _mm_crc32_u64(u64::from(state), word);
        u32::try_from(state).expect("the instruction gives 32 bits")
    },
    _mm_crc32_u8
);
