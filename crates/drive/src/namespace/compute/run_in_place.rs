//! A program run over bytes at hand, without a drive around it: by a host, held to a drive's limits
//! ([`run_within`]), or on the spot, to measure programs and to test engines ([`run_here`]).
//!
//! Never used by a drive. Invariants: a program sees what it would see in a drive; within limits it
//! is ended where a drive would end it.

use std::sync::Arc;

use csd_nvme::execute::Output as Destination;
use csd_nvme::status::Status;
use csd_reactor::{Buffer, Class};

use super::brake::Watch;
use super::engine::{Engine, Limits};
use super::execute::Desk;
use super::inputs::{Check, Chunk};
use super::{Brake, Failure, Inputs, Output, Program, Step};

/// Steps that do nothing after which a program is given up.
const IDLE_STEPS_MAX: usize = 1 << 20;

/// All of the streams, each in chunks.
fn at_hand(streams: Vec<Vec<Buffer>>) -> Inputs {
    let mut inputs = Inputs::new(streams.len());
    for (index, chunks) in streams.into_iter().enumerate() {
        let chunk = |bytes| Chunk { bytes, skip: 0, check: Check::Nothing };
        chunks.into_iter().for_each(|bytes| inputs.push(index, chunk(bytes)));
        inputs.end(index);
    }
    inputs
}

/// An output whose bytes are wanted, however many.
fn wanted() -> Output {
    Output::new(&Destination::Memory { nsid: 0, start: 0, bytes: u32::MAX })
}

/// Runs a program of `engine` over streams in this core's compute lane; its result, and the bytes
/// that it wrote. How many these may be is the engine's to hold it to.
///
/// # Errors
/// Why it failed, or that its time was up.
///
/// # Panics
/// Outside a core.
pub async fn run_within(
    engine: Arc<dyn Engine>,
    program: Box<dyn Program>,
    limits: Limits,
    streams: Vec<Vec<Buffer>>,
) -> Result<(u64, Vec<u8>), Failure> {
    let brake = Brake::default();
    let _clock = Watch::clock(brake.clone(), limits);
    let _ticks = Watch::ticks(engine);
    let mut desk = Desk { program, inputs: at_hand(streams), output: wanted(), brake };
    let mut written = Vec::new();
    loop {
        desk.inputs.free_spent();
        let (back, step) = desk.work(Class::Foreground).await?;
        desk = back;
        let step = step?;
        let is_done = matches!(step, Step::Done { .. });
        desk.output.take(is_done).iter().for_each(|chunk| written.extend_from_slice(chunk));
        if let Step::Done { result } = step {
            return Ok((result, written));
        }
        desk.check(step)?;
    }
}

/// Runs a program over streams, each in chunks, on this thread and without limits; its result, and
/// the bytes that it wrote.
///
/// # Errors
/// Why it failed; also when it waits for what cannot come.
pub fn run_here(
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
