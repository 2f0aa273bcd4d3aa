//! [`Kernel`]: everything that drives, hosts, measurements and the command line know of a built-in
//! kernel.
//!
//! The built-in kernels are listed in [`crate::registry`]. A kernel starts [`Program`]s, says how
//! their executions are split and their answers combined, how it is run over objects, on which data
//! it is measured, and how its answer is shown. Invariant: the answer of a run does not depend on
//! how its inputs were divided among executions, drives and hosts.
//!
//! Modules: `answer` combines partial answers, `plan` fits a kernel to objects, `usage` describes
//! its options, `sample` generates the data that it is measured on.

mod answer;
mod plan;
mod sample;
mod usage;

use std::ops::Range;

use csd_buffer::Buffer;

pub use answer::{Answer, Description, Field, Position, Value};
pub use plan::{AnswerForm, Input, Layout, Pairing, Plan, Unit, Writes};
pub use sample::{Sample, fill_i32, mix};
pub use usage::{Arguments, Choice, Kind, ObjectName, OutputUse, Usage};

use crate::Numeric;
use crate::numeric::NotNumeric;
use crate::program::{CHUNK_BYTES, Execution, Failure, Inputs, Output, Program, SplitRule};

/// Output that the caller of a program asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// The result alone.
    Result,
    /// Bytes in one sequence.
    Bytes,
    /// Bytes in chunks of this size, bytes.
    Chunks(u32),
}

impl Wanted {
    /// Returns the size of the chunks in which bytes are gathered; `None` if none are wanted.
    #[must_use]
    pub fn chunk_bytes(self) -> Option<usize> {
        match self {
            Self::Result => None,
            Self::Bytes => Some(CHUNK_BYTES),
            Self::Chunks(bytes) => Some(bytes as usize),
        }
    }

    /// Returns an empty output that gathers the bytes wanted.
    #[must_use]
    pub fn output(self) -> Output {
        self.chunk_bytes().map_or_else(Output::default, Output::in_chunks)
    }

    /// Checks that bytes are wanted, in chunks of whole elements of `element_bytes` bytes.
    ///
    /// # Errors
    /// [`Failure`] of cause parameters.
    pub fn require_elements(self, kernel: &str, element_bytes: usize) -> Result<(), Failure> {
        match self {
            Self::Result => Err(Failure::parameters(format!("{kernel} needs an output"))),
            Self::Chunks(bytes) if !(bytes as usize).is_multiple_of(element_bytes) => {
                Err(Failure::parameters(format!(
                    "chunks of {bytes} bytes cut elements of {element_bytes} bytes"
                )))
            }
            Self::Chunks(_) | Self::Bytes => Ok(()),
        }
    }
}

/// A built-in kernel.
pub trait Kernel: Sync + std::fmt::Debug {
    /// Returns the name, as in commands and profiles.
    fn name(&self) -> &'static str;

    /// Returns the program identifier (PID) of the built-in program.
    fn program_id(&self) -> u64;

    /// Starts a program.
    ///
    /// # Errors
    /// [`Failure`] of cause parameters if it does not take these parameters or this output.
    fn start(&self, parameters: &[u8], wanted: Wanted) -> Result<Box<dyn Program>, Failure>;

    /// Returns where the inputs of an execution may be split; `None` if they may not.
    fn split(&self, _parameters: &[u8], _wanted: Wanted) -> Option<SplitRule> {
        None
    }

    /// Returns the result of an execution from those of its parts, each with the bytes of the split
    /// streams that it covered, in order.
    fn join(&self, _parameters: &[u8], parts: &[(Range<u64>, u64)]) -> u64 {
        parts.iter().map(|(_, result)| result).sum()
    }

    /// Returns the size of the inputs that a program keeps in memory as a whole, bytes.
    fn kept_bytes(&self, _parameters: &[u8]) -> u64 {
        0
    }

    /// Returns the command-line options; `None` if the kernel has a command of its own.
    fn usage(&self) -> Option<&'static Usage> {
        None
    }

    /// Fits the kernel to objects.
    ///
    /// # Errors
    /// The reason why it cannot run over them, and the remedy, in words.
    fn plan(&self, inputs: &[Input<'_>], arguments: &Arguments) -> Result<Plan, String>;

    /// Replaces the parameters of a plan by one of its [`Self::alternatives`].
    fn replan(&self, plan: &Plan, parameters: Vec<u8>) -> Plan {
        Plan { parameters, ..plan.clone() }
    }

    /// Returns the parameters of an execution over items at `position` of the whole.
    fn parameters_at(&self, parameters: &[u8], _position: &Position) -> Vec<u8> {
        parameters.to_vec()
    }

    /// Converts the answer of an execution over items at `position` to a form in which answers
    /// combine in any order.
    fn place(&self, _position: &Position, answer: Answer) -> Answer {
        answer
    }

    /// Adds another placed answer to `whole`, which may be empty. The order of answers does not
    /// matter.
    fn combine(&self, whole: &mut Answer, other: Answer) {
        whole.result += other.result;
    }

    /// Returns the answer to show from the combined answer of `items` items.
    fn describe(&self, _parameters: &[u8], answer: &Answer, items: u64) -> Description;

    /// Returns the settings that parameters stand for, to be shown with the answer.
    fn settings(&self, _parameters: &[u8]) -> Vec<Field> {
        Vec::new()
    }

    /// Returns the settings in words, to be shown after they were tuned.
    fn settings_in_words(&self, _parameters: &[u8]) -> String {
        String::new()
    }

    /// Returns other parameters that give the same answer and may be faster.
    fn alternatives(&self, parameters: &[u8], _executions_max: u16) -> Vec<Vec<u8>> {
        vec![parameters.to_vec()]
    }

    /// Returns parameters that leave the division of the work to the drive, which changes it while
    /// it works; `None` if the kernel has none.
    fn adaptive(&self, _parameters: &[u8]) -> Option<Vec<u8>> {
        None
    }

    /// Returns the parameters of a part with this unrolling; `None` if the parameters do not leave
    /// the choice to the drive.
    fn adapted(&self, _parameters: &[u8], _unroll: u8) -> Option<Vec<u8>> {
        None
    }

    /// Returns the data on which the kernel is measured.
    fn sample(&self) -> Sample;

    /// Starts the program of the sample. The stream that every execution reads whole is there.
    ///
    /// # Errors
    /// [`Failure`] of [`Self::start`].
    fn start_sample(&self) -> Result<Execution, Failure> {
        let sample = self.sample();
        let wanted = if sample.stores { Wanted::Bytes } else { Wanted::Result };
        let program = self.start(&sample.parameters, wanted)?;
        let mut inputs = Inputs::new(sample.streams + usize::from(sample.resident.is_some()));
        if let Some(resident) = &sample.resident {
            inputs.push(sample.streams, Buffer::from_slice(resident).into());
            inputs.end(sample.streams);
        }
        Ok(Execution::new(program, inputs, wanted.output()))
    }
}

/// Returns the one numeric type of two inputs.
///
/// # Errors
/// The difference, in words.
pub fn one_type(left: &Input<'_>, right: &Input<'_>) -> Result<Numeric, String> {
    if left.element != right.element {
        return Err(format!(
            "{:?} is of type {} and {:?} of type {}: put one of them again with the other's type",
            left.name, left.element, right.name, right.element
        ));
    }
    let numeric = Numeric::try_from(left.element);
    numeric.map_err(|error: NotNumeric| format!("{:?}: {error}", left.name))
}
