//! Frequencies: how often each line, word or field of a text occurs.
//!
//! Text is bytes, and a line is what ends with a newline. An execution sees a piece of a text. It
//! hands back the bytes up to the first newline and those after the last one, which belong to lines
//! that other pieces complete, and the items of the lines between them with their counts. The host
//! puts the ends together in the order of the pieces, and adds the counts ([`Join`]). Counts are
//! exact: an execution that has too many items for its memory writes those that it has, and begins
//! again, so an item may be in an answer more than once.
//!
//! Invariants: the sums do not depend on the pieces that a text was cut into; a step's work is
//! bounded, whatever the bytes are.
//!
//! Modules: `item` (what is counted, and its parameters), `extractor` (items of lines), `program`,
//! `answer` (the form of answers), `join`, `kernel`.

mod answer;
mod extractor;
mod item;
mod join;
mod kernel;
mod program;

pub use extractor::Extractor;
pub use item::Item;
pub use join::{Join, Unjoined};
pub use kernel::KERNEL;

/// Program identifier (PID) of the built-in program.
pub const PROGRAM_ID: u64 = 14;
/// Name of the kernel.
pub const NAME: &str = "frequencies";

/// Most bytes of the answer to a piece of `bytes` bytes: an item has at least two bytes in front of
/// it there, and one behind it in the text.
#[must_use]
pub const fn answer_bytes_max(bytes: u32) -> u32 {
    bytes + bytes / 2 + 4096
}
