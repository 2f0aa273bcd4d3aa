//! [`TextRun`]: a built-in kernel over the bytes of objects, one object after the other, whose
//! answers a consumer takes in the order of the chunks.

use std::sync::Arc;

use csd_run::program::{self, Consumer, Native, Outcome, Task};
use csd_run::{Error, Failed};
use csd_store::ElementType;
use csd_store::array::Plan;
use csd_store::catalogue::Entry;
use serde_json::{Value, json};

use crate::cli::search::Place;
use crate::context::Context;
use crate::progress::Bar;
use crate::report::{Class, Failure, places, print_error};
use crate::run::look_up;
use crate::run::retry_if_moved::{unless_moved, until_in_place};
use crate::runtime::runtime;

/// Time in which an execution must be done to be one of several, ms: as of programs over objects.
const TIME_MS: u32 = 20_000;
/// Times that a run begins again because another one has the drives' memory. Each waits some
/// seconds.
const BUSY_MAX: u32 = 24;

/// A kernel that is run over texts.
pub(crate) struct TextRun<'a> {
    pub(crate) context: &'a Context,
    pub(crate) place: Place,
    pub(crate) native: Native,
    pub(crate) parameters: Vec<u8>,
    /// Most bytes of the answer to a chunk of so many bytes.
    pub(crate) room_bytes: fn(u32) -> u32,
}

impl TextRun<'_> {
    /// Runs the kernel over an object, and gives the answers to what `begin` returns; begins again
    /// if the object is moved meanwhile. Returns the consumer, the object's bytes, and warnings.
    ///
    /// # Errors
    /// Usage: the object is no text, or is not there. Run: a drive failed, or `begin`'s.
    pub(crate) fn over<C: Consumer + 'static>(
        &self,
        name: &str,
        begin: impl Fn() -> Result<Arc<C>, Failure>,
    ) -> Result<(Arc<C>, u64, Vec<String>), Failure> {
        until_in_place(|| {
            let (plan, mut entries, mut warnings) = look_up(self.context, vec![name.to_owned()])?;
            let entry = entries.pop().expect("one was asked for");
            let done = self.unless_busy(&plan, &entry, &begin);
            let bytes = entry.bytes;
            let done = unless_moved((self.context, &plan), &[entry], done)?;
            Ok(done.map(|(consumer, more)| {
                warnings.extend(more);
                (consumer, bytes, warnings)
            }))
        })
    }

    /// Runs the kernel, again while another run has the drives' memory.
    fn unless_busy<C: Consumer + 'static>(
        &self,
        plan: &Plan,
        entry: &Entry,
        begin: &impl Fn() -> Result<Arc<C>, Failure>,
    ) -> Result<(Arc<C>, Vec<String>), Failure> {
        let mut tries = 1;
        loop {
            let consumer = begin()?;
            match self.attempt((plan, entry.clone()), Arc::<C>::clone(&consumer))? {
                Err(Failed::Run(Error::MemoryBusy { .. })) if tries < BUSY_MAX => tries += 1,
                Err(Failed::Run(Error::Interrupted { .. })) => {
                    return Err(Failure::run("interrupted"));
                }
                done => return Ok((consumer, done?.warnings)),
            }
        }
    }

    fn attempt(
        &self,
        (plan, entry): (&Plan, Entry),
        consumer: Arc<dyn Consumer>,
    ) -> Result<Result<Outcome, Failed>, Failure> {
        let name = entry.name.clone();
        if entry.element != ElementType::Bytes {
            return Err(Failure::usage(format!(
                "{name:?} holds elements of type {}, and no text: put text with --type bytes",
                entry.element
            )));
        }
        let room = (self.room_bytes)(entry.chunk_bytes);
        let (sandbox, limits) = (Arc::new(self.native), (TIME_MS, 0));
        let task = Task::new(vec![entry], sandbox, self.parameters.clone(), limits, Some(room))?;
        let task = Arc::new(task.with_consumer(consumer));
        let bar = Bar::new(self.context, &name, Some(task.bytes()));
        let options = program::RunOptions {
            mode: self.place.on.into(),
            cores: usize::from(self.place.cores.unwrap_or(1)),
            progress: bar.progress.clone(),
        };
        Ok(program::run(&runtime(), plan, &self.context.options()?, &task, &options))
    }
}

/// Objects that have failed, each named at once.
#[derive(Default)]
pub(crate) struct Failures {
    failed: Vec<Value>,
    /// The class of all of them together.
    class: Option<Class>,
}

impl Failures {
    /// Adds a failure; the others are done all the same.
    ///
    /// # Errors
    /// The failure, if the object is the only one.
    pub(crate) fn add(
        &mut self,
        (name, names): (&str, &[String]),
        failure: Failure,
        context: &Context,
    ) -> Result<(), Failure> {
        if names.len() == 1 {
            return Err(failure);
        }
        if !context.json {
            print_error(&places(&format!("error: {}", failure.message)));
        }
        self.failed.push(json!({ "item": name, "message": failure.message }));
        self.class = Some(failure.class.with(self.class));
        Ok(())
    }

    /// Returns the failure of a command over these objects; `None` if none has failed.
    pub(crate) fn of(self, names: &[String], done: &[Value]) -> Option<Failure> {
        let class = self.class?;
        let message = format!("{} of {} objects failed", self.failed.len(), names.len());
        let detail = json!({ "objects": done, "failed": self.failed });
        Some(Failure { detail, ..Failure::new(class, message) })
    }
}
