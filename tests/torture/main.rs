//! Torture: a host of raw bytes that breaks every rule, unlike any kernel driver, against a served
//! drive. After each test the drive must still serve a host that keeps the rules.
//!
//! The host's bytes are those of the stock client, written from the specification alone.

#![allow(missing_docs, unreachable_pub, clippy::cast_possible_truncation, clippy::unwrap_used)]

mod association;
mod crowd;
mod digest;
mod harness;
mod header;
mod limits;
mod long_reads;
mod split;
mod transfer;
