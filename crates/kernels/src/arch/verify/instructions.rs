//! Versions by a processor's instructions for the CRC of a word of 8 bytes and of a byte, as a
//! macro: functions with a target's features are made in the file that names them.

macro_rules! instructions {
    ($arch:ident, $feature:literal, $word:expr, $byte:ident) => {
        use std::arch::$arch::*;

        use super::{Functions, each_group, together};

        /// The functions of this version.
        pub(super) const FUNCTIONS: Functions = Functions { update, pages };

        pub(super) fn update(state: u32, bytes: &[u8]) -> u32 {
            // SAFETY: this version is only offered where the feature was detected.
            let [state] = unsafe { states([bytes], [state]) };
            state
        }

        fn pages(data: &[u8], page: usize, unroll: u8, out: &mut Vec<u32>) {
            each_group!(data, page, unroll, out, |pages| group(pages));
        }

        fn group<const N: usize>(pages: [&[u8]; N]) -> [u32; N] {
            // SAFETY: this version is only offered where its features were detected.
            unsafe { states(pages, [!0; N]) }
        }

        #[target_feature(enable = $feature)]
        fn states<const N: usize>(pages: [&[u8]; N], before: [u32; N]) -> [u32; N] {
            let word = |state, word| $word(state, u64::from_le_bytes(word));
            together(pages, before, word, |state, byte| $byte(state, byte))
        }
    };
}
pub(super) use instructions;
