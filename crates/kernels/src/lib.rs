//! Data-parallel kernels: slices in, slices out.
//!
//! The same code runs on the host, over chunks that crossed the wire, and in a drive, over chunks
//! that did not. So both give the same answer, bit for bit.
//!
//! Kernels perform no I/O, read no clock and start no threads; only modules of `arch` contain
//! `unsafe`. Invariants: every version of a kernel equals its scalar reference on all inputs, at
//! any alignment; a kernel counts the work it did.
//!
//! Modules:
//! - `element`: the types that elements have ([`ElementType`])
//! - `value`: one element's value, as a user types it ([`Scalar`])
//! - `numeric`: the types that kernels compute with ([`Numeric`]), and what parameters share
//! - [`kernel`]: the interface of the built-in kernels
//! - [`registry`]: their list
//! - [`program`]: computations in bounded steps, as drives and hosts run them
//! - [`count`]: how many elements equal a value
//! - [`vector_add`]: the sum of two arrays, element by element
//! - [`array_merge`]: two sorted arrays as one, every value once
//! - [`page_rank`]: products of dense and sparse rows with a vector, and the iteration around them
//! - [`key_range`]: the keys of a key-value namespace between two bounds
//! - [`summarize`]: count, exact sum, least and greatest element
//! - [`verify`](mod@verify): the CRC-32C of every page
//! - [`erasure`]: Reed-Solomon parity of pieces, and lost pieces from the others
//! - [`encode`]: the parity of bytes that lie in rows of cells, by that code
//! - [`search`]: the lines in which a regular expression matches
//! - [`word_count`]: how many lines and words
//! - [`frequencies`]: how often each line, word or field occurs
//! - `text_piece`: pieces of a text, which begin and end within a line
//! - [`fingerprint`]: sums over pieces of that code, which tell code words from others
//! - `arch`: versions for this machine's vectors, chosen once at run time

mod arch;
pub mod array_merge;
pub mod count;
mod element;
pub mod encode;
pub mod erasure;
pub mod fingerprint;
pub mod frequencies;
pub mod kernel;
pub mod key_range;
mod numeric;
pub mod page_rank;
pub mod program;
pub mod registry;
pub mod search;
pub mod summarize;
mod text_piece;
mod value;
mod varint;
pub mod vector_add;
pub mod verify;
pub mod word_count;

pub use element::{ElementType, UnknownElementType};
pub use numeric::{ElementParameters, Malformed, Misaligned, NotNumeric, Numeric};
pub use value::{ParseError, Scalar};
