//! Code that the test crates share.
#![allow(clippy::cast_possible_truncation, clippy::unwrap_used, reason = "as in tests")]

pub mod drive;
pub mod proxy;
pub mod wire;
