//! [`Guest`]: one execution of a module.
//!
//! The guest runs in a future that is polled once per step. It borrows the streams during a step.
//! Invariant: it borrows nothing between steps.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use csd_kernels::program::{Cause, Failure, Inputs, Limits, Output, Program, Step};
use wasmtime::{Error, InstancePre, Store, Trap};

use crate::exports::Entry;
use crate::host::{Borrowed, State, Suspend, lock};
use crate::resources::Resources;

/// One execution of a module.
pub(crate) struct Guest {
    borrowed: Arc<Mutex<Borrowed>>,
    run: Pin<Box<dyn Future<Output = Result<u64, Failure>> + Send>>,
}

impl Guest {
    pub(crate) fn new(
        module: InstancePre<State>,
        entry: Entry,
        parameters: Vec<u8>,
        limits: &Limits,
    ) -> Self {
        let borrowed = Arc::<Mutex<Borrowed>>::default();
        let memory_bytes = usize::try_from(limits.memory_bytes).unwrap_or(usize::MAX);
        let state = State {
            borrowed: Arc::clone(&borrowed),
            parameters,
            output_bytes_max: limits.output_bytes,
            resources: Resources::new(memory_bytes),
            memory: None,
        };
        Self { borrowed, run: Box::pin(run(module, entry, state)) }
    }
}

impl Program for Guest {
    fn step(&mut self, inputs: &mut Inputs, output: &mut Output) -> Result<Step, Failure> {
        let swap = |borrowed: &mut Borrowed, inputs: &mut Inputs, output: &mut Output| {
            std::mem::swap(&mut borrowed.inputs, inputs);
            std::mem::swap(&mut borrowed.output, output);
        };
        swap(&mut lock(&self.borrowed), inputs, output);
        let polled = self.run.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        let mut borrowed = lock(&self.borrowed);
        swap(&mut borrowed, inputs, output);
        match (polled, borrowed.suspend.take()) {
            (Poll::Ready(ended), _) => ended.map(|result| Step::Done { result }),
            (Poll::Pending, Some(Suspend::Input(stream))) => Ok(Step::Starved { stream }),
            (Poll::Pending, Some(Suspend::Room)) => Ok(Step::Full),
            // Its time slice is over.
            (Poll::Pending, None) => Ok(Step::More),
        }
    }
}

async fn run(module: InstancePre<State>, entry: Entry, state: State) -> Result<u64, Failure> {
    let mut store = Store::new(module.module().engine(), state);
    store.limiter(|state| &mut state.resources);
    // It yields at the next tick, and at every tick after that.
    store.set_epoch_deadline(1);
    store.epoch_deadline_async_yield_and_update(1);
    let instance = module.instantiate_async(&mut store).await.map_err(why)?;
    let entry = instance.get_typed_func::<(), u64>(&mut store, entry.name()).map_err(why)?;
    entry.call_async(&mut store, ()).await.map_err(why)
}

/// Returns the reason why an execution ended, in words.
#[allow(clippy::needless_pass_by_value)] // as map_err hands it over
fn why(error: Error) -> Failure {
    if let Some(failure) = error.downcast_ref::<Failure>() {
        return failure.clone();
    }
    let reason = match error.downcast_ref::<Trap>() {
        Some(trap) => format!("the program trapped: {trap}"),
        None => format!("{:#}", error.root_cause()),
    };
    Failure::new(Cause::Program, reason)
}
