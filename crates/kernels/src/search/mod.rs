//! Search: the lines in which a regular expression matches, as grep finds them.
//!
//! Text is bytes, and a line is what ends with a newline. An execution sees a piece of a text,
//! which begins and ends anywhere: the bytes up to its first newline, and those after its last one,
//! belong to lines that other pieces complete, and are handed back as they are ([`Piece`]). The
//! host puts them together in the order of the pieces, and searches them itself ([`Join`]).
//!
//! Invariants: no match contains a newline, so a whole buffer is searched at once and gives the
//! lines that a search of each line gives; the answer does not depend on the pieces that a text
//! was cut into; a step's work is bounded, whatever pattern and bytes are.
//!
//! Modules: `parameters`, `pattern` (from text to an expression without newlines), `matcher` (its
//! engines, compiled), `known` (compiled ones that are kept), `select` (the lines of a buffer),
//! `long_line` (a line that comes in several steps), `program`, `piece` (the form of answers),
//! `join`, `kernel`.

mod join;
mod kernel;
mod known;
mod long_line;
mod matcher;
mod parameters;
mod pattern;
mod piece;
mod program;
mod select;

pub use join::{Found, Join, Unjoined};
pub use kernel::KERNEL;
pub use matcher::Matcher;
pub use parameters::{Parameters, Wants};
pub use pattern::{PATTERN_BYTES_MAX, Refused, literal};
pub use piece::{Piece, Run};

/// Program identifier (PID) of the built-in program.
pub const PROGRAM_ID: u64 = 12;
/// Name of the kernel.
pub const NAME: &str = "grep";

/// Most bytes of the answer to a piece of `bytes` bytes: a run of lines has a few bytes in front of
/// it, and at least one byte of another line before it.
#[must_use]
pub const fn answer_bytes_max(bytes: u32) -> u32 {
    bytes + bytes / 2 + 4096
}
