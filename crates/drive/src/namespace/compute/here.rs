//! [`run_within`]: a host runs a program over bytes at hand, under the limits of a drive.
//!
//! Invariant: a program is ended where a drive would end it.

use std::sync::Arc;

use csd_kernels::program::{Engine, Inputs, Limits, Output, Program, Step};
use csd_reactor::{Buffer, Class};

use super::brake::Watch;
use super::execute::Desk;
use super::{Brake, Failure};

/// Size of the chunks in which output is gathered, bytes.
const CHUNK_BYTES: usize = 1 << 20;

/// All of the streams, each in chunks.
fn at_hand(streams: Vec<Vec<Buffer>>) -> Inputs {
    let mut inputs = Inputs::new(streams.len());
    for (index, chunks) in streams.into_iter().enumerate() {
        chunks.into_iter().for_each(|bytes| inputs.push(index, bytes.into()));
        inputs.end(index);
    }
    inputs
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
    let output = Output::in_chunks(CHUNK_BYTES);
    let mut desk = Desk { program, inputs: at_hand(streams), output, brake };
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
