//! Host functions that a guest may call, all in the module `csd`.
//!
//! | function | what it does |
//! |---|---|
//! | `streams() -> i32` | number of streams |
//! | `next(stream, at, room) -> i32` | copies bytes to `at`; their number, 0 at its end |
//! | `emit(at, length)` | appends bytes to the output |
//! | `parameters(at, room) -> i32` | copies the parameters to `at`; the length of all |
//! | `work(i64)` | counts work done |
//! | `fail(at, length)` | ends the execution with these words |
//!
//! Invariants: an address outside of the guest's memory ends the execution; a guest that has to
//! wait yields, and tries again when it runs next.

use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;

use csd_kernels::program::{Cause, Failure, Inputs, Output};
use wasmtime::{Caller, Error, Extern, Linker, Memory};

use crate::exports::MEMORY;
use crate::resources::Resources;

/// Limit of a guest's failure message, bytes.
const WORDS_BYTES_MAX: u32 = 256;

/// State that a guest's host functions work on.
pub(crate) struct State {
    pub(crate) borrowed: Arc<Mutex<Borrowed>>,
    pub(crate) parameters: Vec<u8>,
    pub(crate) output_bytes_max: u64,
    pub(crate) resources: Resources,
    /// The guest's memory, after its first lookup.
    pub(crate) memory: Option<Memory>,
}

/// Streams that the guest borrows for a step, and the reason why it waits at the end of it.
#[derive(Default)]
pub(crate) struct Borrowed {
    pub(crate) inputs: Inputs,
    pub(crate) output: Output,
    pub(crate) suspend: Option<Suspend>,
}

/// Reason why a guest waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Suspend {
    /// Bytes of a stream.
    Input(usize),
    /// Room in the output.
    Room,
}

pub(crate) fn lock(borrowed: &Mutex<Borrowed>) -> MutexGuard<'_, Borrowed> {
    borrowed.lock().unwrap_or_else(PoisonError::into_inner)
}

fn failure(reason: impl std::fmt::Display) -> Error {
    Error::new(Failure::new(Cause::Program, reason))
}

/// Returns a guest's memory and the rest of its state.
fn memory<'a>(caller: &'a mut Caller<'_, State>) -> Result<(&'a mut [u8], &'a mut State), Error> {
    let memory = match caller.data().memory {
        Some(memory) => memory,
        None => {
            let found = caller.get_export(MEMORY).and_then(Extern::into_memory);
            let found = found.ok_or_else(|| failure("it has no memory yet"))?;
            caller.data_mut().memory = Some(found);
            found
        }
    };
    Ok(memory.data_and_store_mut(caller))
}

/// Returns a range of a guest's memory.
fn place<'a>(memory: &'a mut [u8], at: u32, length: u32, who: &str) -> Result<&'a mut [u8], Error> {
    let start = at as usize;
    let bytes = memory.len();
    let found = memory.get_mut(start..).and_then(|rest| rest.get_mut(..length as usize));
    found.ok_or_else(|| {
        failure(format!("{who} of {length} bytes at {at}: its memory has {bytes} bytes"))
    })
}

/// Defines the functions.
pub(crate) fn define(linker: &mut Linker<State>) -> Result<(), Error> {
    linker.func_wrap("csd", "streams", |caller: Caller<'_, State>| {
        u32::try_from(lock(&caller.data().borrowed).inputs.streams()).unwrap_or(u32::MAX)
    })?;
    linker.func_wrap_async(
        "csd",
        "next",
        |mut caller: Caller<'_, State>, (stream, at, room): (u32, u32, u32)| {
            Box::new(async move { next(&mut caller, stream as usize, at, room).await })
        },
    )?;
    linker.func_wrap_async(
        "csd",
        "emit",
        |mut caller: Caller<'_, State>, (at, length): (u32, u32)| {
            Box::new(async move { emit(&mut caller, at, length).await })
        },
    )?;
    linker.func_wrap(
        "csd",
        "parameters",
        |mut caller: Caller<'_, State>, at: u32, room: u32| -> Result<u32, Error> {
            let (memory, state) = memory(&mut caller)?;
            let all = &state.parameters;
            let count = all.len().min(room as usize);
            let length = u32::try_from(count).expect("at most the room");
            place(memory, at, length, "parameters")?.copy_from_slice(&all[..count]);
            Ok(u32::try_from(all.len()).unwrap_or(u32::MAX))
        },
    )?;
    linker.func_wrap("csd", "work", |caller: Caller<'_, State>, work: u64| {
        lock(&caller.data().borrowed).output.count_work(work);
    })?;
    linker.func_wrap(
        "csd",
        "fail",
        |mut caller: Caller<'_, State>, at: u32, length: u32| -> Result<(), Error> {
            let (memory, _) = memory(&mut caller)?;
            let words = place(memory, at, length.min(WORDS_BYTES_MAX), "fail")?;
            let words = String::from_utf8_lossy(words);
            let words: String = words.chars().filter(|word| !word.is_control()).collect();
            Err(failure(format!("the program says: {words}")))
        },
    )?;
    Ok(())
}

/// Copies the next bytes of a stream.
async fn next(
    caller: &mut Caller<'_, State>,
    stream: usize,
    at: u32,
    room: u32,
) -> Result<u32, Error> {
    let (memory, state) = memory(caller)?;
    let target = place(memory, at, room, "next")?;
    if target.is_empty() {
        return Err(failure("next without room"));
    }
    poll_fn(|_| {
        let mut borrowed = lock(&state.borrowed);
        let count = borrowed.inputs.peek(stream).len().min(target.len());
        if count > 0 {
            target[..count].copy_from_slice(&borrowed.inputs.peek(stream)[..count]);
            borrowed.inputs.consume(stream, count);
            return Poll::Ready(Ok(u32::try_from(count).expect("at most the room")));
        }
        if borrowed.inputs.is_over(stream) {
            return Poll::Ready(Ok(0));
        }
        borrowed.suspend = Some(Suspend::Input(stream));
        Poll::Pending
    })
    .await
}

/// Number of bytes appended between two checks if the output is full.
const EMIT_BYTES: usize = 1 << 20;

/// Appends to the output.
async fn emit(caller: &mut Caller<'_, State>, at: u32, length: u32) -> Result<(), Error> {
    let (memory, state) = memory(caller)?;
    let mut bytes = &*place(memory, at, length, "emit")?;
    poll_fn(|_| {
        let mut borrowed = lock(&state.borrowed);
        loop {
            if borrowed.output.is_full() {
                borrowed.suspend = Some(Suspend::Room);
                return Poll::Pending;
            }
            if borrowed.output.written() + bytes.len() as u64 > state.output_bytes_max {
                let most = state.output_bytes_max;
                let reason = format!("it writes more than the {most} bytes that it may");
                return Poll::Ready(Err(failure(reason)));
            }
            let (part, rest) = bytes.split_at(bytes.len().min(EMIT_BYTES));
            borrowed.output.append(part);
            bytes = rest;
            if bytes.is_empty() {
                return Poll::Ready(Ok(()));
            }
        }
    })
    .await
}
