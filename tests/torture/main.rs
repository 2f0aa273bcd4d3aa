//! What no kernel's driver sends: a host of raw bytes that breaks every rule, against a served
//! drive. After each test the drive must still serve a host that keeps the rules.
//!
//! The host's bytes are those of the stock client, written from the facts of the standard alone.

#![allow(missing_docs, unreachable_pub, clippy::cast_possible_truncation, clippy::unwrap_used)]

#[allow(dead_code)] // the stock client uses what is left
#[path = "../stock_client/wire.rs"]
mod wire;

mod association;
mod crowd;
mod digest;
mod harness;
mod header;
mod limits;
mod split;
mod transfer;
