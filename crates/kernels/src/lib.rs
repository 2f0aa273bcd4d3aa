//! Data-parallel kernels: slices in, slices out.
//!
//! The same code runs on the host, over chunks that crossed the wire, and inside a drive, over
//! chunks that did not: so both give the same answer, bit for bit.
//!
//! Never: I/O, a clock, threads. `unsafe` stands in modules of `arch` alone. Invariants: every
//! version of a kernel equals its scalar reference on all inputs, at any alignment; a kernel counts
//! the work it did.
//!
//! Modules:
//! - `element`: the types that elements have ([`ElementType`])
//! - `value`: one element's value, as a user types it ([`Scalar`])
//! - [`count`]: how many elements equal a value
//! - `arch`: versions for this machine's vectors, chosen once at run time

mod arch;
pub mod array_merge;
pub mod count;
mod element;
mod numeric;
pub mod page_rank;
mod value;
pub mod vector_add;

pub use element::{ElementType, UnknownElementType};
pub use numeric::{Malformed, Misaligned, NotNumeric, Numeric};
pub use value::{ParseError, Scalar};
