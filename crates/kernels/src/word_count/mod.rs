//! Word count: the lines and words of a text, as `wc` counts them in the C locale.
//!
//! Lines are newlines. A word is a row of bytes between white space: space, tab, newline, carriage
//! return, vertical tab, form feed. Any other byte belongs to a word, also one that is not printed.
//!
//! Invariant: the counts of pieces, joined in order, are those of the whole, wherever it was cut.

mod counter;
mod kernel;
mod program;

pub use counter::Counts;
pub(crate) use counter::is_space;
pub use kernel::KERNEL;

/// Program identifier (PID) of the built-in program.
pub const PROGRAM_ID: u64 = 13;
/// Name of the kernel.
pub const NAME: &str = "wc";
