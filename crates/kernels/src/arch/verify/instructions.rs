//! Versions by a processor's instructions for the CRC of a word of 8 bytes and of a byte, as a
//! macro: functions with a target's features are made in the file that names them.

macro_rules! instructions {
    ($arch:ident, $feature:literal, $word:expr, $byte:ident) => {
        use std::arch::$arch::*;

        use super::{functions, together};

        functions!();

        #[target_feature(enable = $feature)]
        fn states<const N: usize>(pages: [&[u8]; N], before: [u32; N]) -> [u32; N] {
            let word = |state, word| $word(state, u64::from_le_bytes(word));
            together(pages, before, word, |state, byte| $byte(state, byte))
        }
    };
}
pub(super) use instructions;
