//! The program of vector add: writes stream 0 plus stream 1; the result is the number of elements.

use super::{NAME, Parameters, VectorAdd};
use crate::kernel::Wanted;
use crate::program::{Cause, Failure, Inputs, Output, Program, STEP_BYTES, Step};

struct Adding {
    add: VectorAdd,
    element_bytes: usize,
}

pub(super) fn start(parameters: &[u8], wanted: Wanted) -> Result<Box<dyn Program>, Failure> {
    let parameters = Parameters::parse(NAME, parameters).map_err(Failure::parameters)?;
    let element_bytes = parameters.element.bytes();
    wanted.require_elements(NAME, element_bytes)?;
    Ok(Box::new(Adding { add: VectorAdd::new(parameters), element_bytes }))
}

/// Makes the failure of streams that should be equally long, and are not.
fn unequal(stream: usize) -> Failure {
    Failure::new(Cause::InputType, format!("stream {stream} ended before the other"))
}

impl Program for Adding {
    fn step(&mut self, inputs: &mut Inputs, output: &mut Output) -> Result<Step, Failure> {
        let over = [inputs.is_over(0), inputs.is_over(1)];
        if over == [true, true] {
            return Ok(Step::Done { result: self.add.elements() });
        }
        if output.is_full() {
            return Ok(Step::Full);
        }
        let (left, right) = (inputs.peek(0), inputs.peek(1));
        let both = left.len().min(right.len());
        if both == 0 {
            return match over {
                [true, _] if !right.is_empty() => Err(unequal(0)),
                [_, true] if !left.is_empty() => Err(unequal(1)),
                _ => Ok(Step::after(inputs, usize::from(over[0] || !left.is_empty()))),
            };
        }
        // The bytes at hand end where a value or a block source ends.
        let whole = both - both % self.element_bytes;
        if whole == 0 {
            let reason = format!("a source ends within an element of {} bytes", self.element_bytes);
            return Err(Failure::new(Cause::InputType, reason));
        }
        let sum = output.space(whole.min(STEP_BYTES));
        let count = sum.len();
        let added = self.add.feed(&left[..count], &right[..count], sum);
        added.map_err(|error| Failure::new(Cause::InputType, error))?;
        output.commit(count);
        output.count_work((count / self.element_bytes) as u64);
        inputs.consume(0, count);
        inputs.consume(1, count);
        Ok(Step::More)
    }
}
