//! [`run_within`]: a host runs a program over bytes at hand, under the limits of a drive.
//!
//! Invariant: a program is ended where a drive would end it.

use std::sync::Arc;

use csd_kernels::program::{CHUNK_BYTES, Engine, Inputs, Limits, Output, Program, Step};
use csd_reactor::{Buffer, Class};

use super::cancel::Watch;
use super::execute::ExecutionState;
use super::{CancelToken, Failure};

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
    let (inputs, output) = (Inputs::complete(streams), Output::in_chunks(CHUNK_BYTES));
    let mut state = ExecutionState { program, inputs, output, cancel };
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
