//! The program of word count: stream 0 holds a piece of a text; the result is its [`Counts`].

use super::{Counts, NAME};
use crate::numeric::Malformed;
use crate::program::{Cause, Failure, Inputs, Output, Program, STEP_BYTES, Step};

struct Counting(Counts);

pub(super) fn start(parameters: &[u8]) -> Result<Box<dyn Program>, Failure> {
    match parameters {
        [] => Ok(Box::new(Counting(Counts::default()))),
        _ => Err(Failure::parameters(Malformed { kernel: NAME, reason: "it takes none" })),
    }
}

impl Program for Counting {
    fn step(&mut self, inputs: &mut Inputs, output: &mut Output) -> Result<Step, Failure> {
        let bytes = inputs.peek(0);
        let bytes = &bytes[..bytes.len().min(STEP_BYTES)];
        self.0 = self.0.then(Counts::of(bytes));
        let count = bytes.len();
        output.count_work(count as u64);
        inputs.consume(0, count);
        if !inputs.is_over(0) {
            return Ok(Step::after(inputs, 0));
        }
        let room = || Failure::new(Cause::InputType, "more lines or words than a result can hold");
        Ok(Step::Done { result: self.0.to_result().ok_or_else(room)? })
    }
}
