//! Versions that use a processor's instructions for the CRC of a word of 8 bytes and of a byte. A
//! macro makes them, so that they are compiled with the features of the module that calls it.

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
