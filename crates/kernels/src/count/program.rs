//! The program of count: stream 0 holds the elements; the result is the number of elements that
//! equal the value.

use super::{Count, Parameters};
use crate::program::{Cause, Failure, Inputs, Output, Program, STEP_BYTES, Step};

struct Counting(Count);

pub(super) fn start(parameters: &[u8]) -> Result<Box<dyn Program>, Failure> {
    let parameters = Parameters::parse(parameters).map_err(Failure::parameters)?;
    Ok(Box::new(Counting(Count::new(parameters))))
}

impl Program for Counting {
    fn step(&mut self, inputs: &mut Inputs, output: &mut Output) -> Result<Step, Failure> {
        let bytes = inputs.peek(0);
        let bytes = &bytes[..bytes.len().min(STEP_BYTES)];
        let before = self.0.elements();
        self.0.feed(bytes).map_err(|error| Failure::new(Cause::InputType, error))?;
        output.count_work(self.0.elements() - before);
        let count = bytes.len();
        inputs.consume(0, count);
        if inputs.is_over(0) {
            return Ok(Step::Done { result: self.0.result() });
        }
        Ok(Step::after(inputs, 0))
    }
}
