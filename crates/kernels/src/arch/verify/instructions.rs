//! Versions that use a processor's instructions for the CRC of a word of 8 bytes and of a byte. It
//! is a macro, so that functions are compiled with the features of the module that uses them.

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
