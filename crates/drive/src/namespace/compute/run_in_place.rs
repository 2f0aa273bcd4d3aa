//! Runs of a program without a drive: by a host within a drive's limits ([`run_within`]), or on the
//! caller's thread, to measure programs and to test engines ([`run_in_place`]).
//!
//! Invariants: a program sees the same inputs as in a drive; within limits it is ended where a
//! drive would end it.

use std::sync::Arc;

use csd_nvme::execute::Output as Destination;
use csd_nvme::status::Status;
use csd_reactor::{Buffer, Class};

use super::cancel::Watch;
use super::engine::{Engine, Limits};
use super::execute::ExecutionState;
use super::inputs::{Check, Chunk};
use super::{CancelToken, Failure, Inputs, Output, Program, Step};

/// Most steps without progress before a program is given up.
const IDLE_STEPS_MAX: usize = 1 << 20;

/// Makes inputs of streams, each in chunks.
fn at_hand(streams: Vec<Vec<Buffer>>) -> Inputs {
    let mut inputs = Inputs::new(streams.len());
    for (index, chunks) in streams.into_iter().enumerate() {
        let chunk = |bytes| Chunk { bytes, skip: 0, check: Check::Nothing };
        chunks.into_iter().for_each(|bytes| inputs.push(index, chunk(bytes)));
        inputs.end(index);
    }
    inputs
}

/// Makes an output that takes any number of bytes.
fn wanted() -> Output {
    Output::new(&Destination::Memory { nsid: 0, start: 0, bytes: u32::MAX })
}

/// Runs a program of `engine` over streams on this core's compute thread. Returns its result, and
/// the bytes that it wrote. The engine limits their number.
///
/// # Errors
/// The failure of the program, or that its time was up.
///
/// # Panics
/// Outside a core.
pub async fn run_within(
    engine: Arc<dyn Engine>,
    program: Box<dyn Program>,
    limits: Limits,
    streams: Vec<Vec<Buffer>>,
) -> Result<(u64, Vec<u8>), Failure> {
    let cancel = CancelToken::default();
    let _clock = Watch::clock(cancel.clone(), limits);
    let _ticks = Watch::ticks(engine);
    let mut state = ExecutionState { program, inputs: at_hand(streams), output: wanted(), cancel };
    let mut written = Vec::new();
    loop {
        state.inputs.free_spent();
        let (back, step) = state.work(Class::Foreground).await?;
        state = back;
        let step = step?;
        let is_done = matches!(step, Step::Done { .. });
        state.output.take(is_done).iter().for_each(|chunk| written.extend_from_slice(chunk));
        if let Step::Done { result } = step {
            return Ok((result, written));
        }
        state.check(step)?;
    }
}

/// Runs a program over streams, each in chunks, on this thread and without limits. Returns its
/// result, and the bytes that it wrote.
///
/// # Errors
/// The failure of the program, also when it waits for input of a stream that has ended.
pub fn run_in_place(
    mut program: Box<dyn Program>,
    streams: Vec<Vec<Buffer>>,
) -> Result<(u64, Vec<u8>), Failure> {
    let (mut inputs, mut output) = (at_hand(streams), wanted());
    let mut written = Vec::new();
    for _ in 0..IDLE_STEPS_MAX {
        inputs.free_spent();
        inputs.admit()?;
        match program.step(&mut inputs, &mut output)? {
            Step::Done { result } => {
                output.take(true).iter().for_each(|chunk| written.extend_from_slice(chunk));
                return Ok((result, written));
            }
            Step::Starved { stream } if !inputs.has_unseen(stream) => break,
            Step::Full => {
                output.take(false).iter().for_each(|chunk| written.extend_from_slice(chunk));
            }
            Step::Starved { .. } | Step::More => {}
        }
    }
    Err(Failure::new(Status::PROGRAM_FAILED, "it waits for what cannot come"))
}
