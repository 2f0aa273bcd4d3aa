//! Writers on a drive that may have a volatile cache: each changes keys of its own and flushes
//! until the drive is gone. The simulation lane and the crash lane run them.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use csd_initiator::{Address, Controller, Error, Kv, Options};
use csd_reactor::{Buffer, Class, sleep, spawn};

use super::order::Order;
use super::words::words;
use super::workload::key;
// The lane's random numbers, as in `workload`.
use crate::random_u64;

const CONNECTIONS: u64 = 3;
const WRITERS: u64 = 5;
const KEYS_PER_WRITER: u64 = 7;

/// Load of one life of the drive.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    /// True if the drive has a volatile cache.
    pub is_cached: bool,
    /// True for values so long that segments are sealed and cleaned.
    pub is_heavy: bool,
    /// One command of so many is a Flush.
    pub flushes: u64,
}

/// The changes of all writers.
pub type Changes = Rc<RefCell<Order>>;

/// Returns bytes that differ from those of another number.
pub fn content(number: u64, bytes: usize) -> Vec<u8> {
    words(number << 24, bytes)
}

/// Writes over several connections until the drive is gone; calls `answered` after each command
/// that succeeds. Returns the first error with which the drive answered, if it answered with one.
pub async fn write_until_lost(
    address: Address,
    load: Load,
    order: Changes,
    answered: impl Fn() + Clone + 'static,
) -> Option<Error> {
    let mut writers = Vec::new();
    for connection in 0..CONNECTIONS {
        let controller = Controller::connect(&address, &Options::default()).await;
        let Ok(controller) = controller else { return None };
        for writer in 0..WRITERS {
            let kv = Kv::open(&controller, 2).expect("a kv namespace");
            let writer = connection * WRITERS + writer;
            let write = write(kv, writer, load, Rc::clone(&order), answered.clone());
            writers.push(spawn(Class::Foreground, write));
        }
    }
    let mut refused = None;
    for writer in writers {
        let error = writer.await;
        refused = refused.or(error.status().is_some().then_some(error));
    }
    refused
}

/// Writes until a command fails; calls `answered` after each that succeeds, and returns the error.
///
/// The tasks of a host learn of answers in any order, so only the order of an answer and of what is
/// sent later is noted here; the lane `marked` compares the order of answers.
async fn write(kv: Kv, writer: u64, load: Load, order: Changes, answered: impl Fn()) -> Error {
    loop {
        let draw = random_u64();
        if draw.is_multiple_of(load.flushes) {
            let before = order.borrow_mut().now();
            if let Err(error) = kv.flush().await {
                return error;
            }
            order.borrow_mut().flushed(before);
            answered();
            continue;
        }
        let number = writer * KEYS_PER_WRITER + (draw >> 8) % KEYS_PER_WRITER;
        let bytes = match (draw >> 16) % 8 {
            _ if load.is_heavy => (draw >> 20) % (200 << 10),
            0 => 0,
            1..6 => 1 + (draw >> 20) % 300,
            6 => (draw >> 20) % 9_000,
            _ => (draw >> 20) % 60_000,
        };
        let bytes = usize::try_from(bytes).unwrap();
        let state = (!(draw >> 40).is_multiple_of(5)).then(|| content(draw >> 30, bytes));
        let change = order.borrow_mut().sent(number, state.clone(), None);
        let done = match &state {
            Some(value) => kv.store(&key(number), vec![Buffer::from_slice(value)], 0).await,
            None => kv.delete(&key(number)).await.map(drop),
        };
        if let Err(error) = done {
            return error;
        }
        order.borrow_mut().answered(change);
        if !load.is_cached {
            order.borrow_mut().durable(change);
        }
        answered();
        if draw >> 60 == 0 {
            sleep(Duration::from_micros(random_u64() % 3_000)).await;
        }
    }
}

/// Reads every key that was ever changed, and compares what is found.
///
/// # Errors
/// The violation, or the command that failed, in words.
pub async fn compare(kv: &Kv, order: &Changes) -> Result<(), String> {
    let keys = order.borrow().keys();
    let mut found = BTreeMap::new();
    for number in keys {
        let value = kv.retrieve(&key(number), 1 << 20).await;
        let value = value.map_err(|error| format!("key {number} cannot be read: {error}"))?;
        found.insert(number, value.map(|value| value.to_vec()));
    }
    order.borrow_mut().check(&found)
}
