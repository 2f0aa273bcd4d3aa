//! The program of array merge: writes the elements of the sorted streams 0 and 1 in order, every
//! value once; the result is the number of elements written.

use super::{ArrayMerge, Error, NAME, Parameters, Piece};
use crate::kernel::Wanted;
use crate::program::{Cause, Failure, Inputs, Output, Program, STEP_BYTES, Step};

/// Bytes of each stream in a step.
const PIECE_BYTES: usize = STEP_BYTES / 2;

struct Merging {
    merge: ArrayMerge,
    element_bytes: usize,
}

pub(super) fn start(parameters: &[u8], wanted: Wanted) -> Result<Box<dyn Program>, Failure> {
    let parameters = Parameters::parse(NAME, parameters).map_err(Failure::parameters)?;
    let element_bytes = parameters.element.bytes();
    wanted.require_elements(NAME, element_bytes)?;
    Ok(Box::new(Merging { merge: ArrayMerge::new(parameters), element_bytes }))
}

impl Program for Merging {
    fn step(&mut self, inputs: &mut Inputs, output: &mut Output) -> Result<Step, Failure> {
        if output.is_full() {
            return Ok(Step::Full);
        }
        let before = self.merge.elements();
        let [left, right] = [0, 1].map(|stream| {
            let bytes = inputs.peek(stream);
            let piece = &bytes[..bytes.len().min(PIECE_BYTES)];
            Piece { bytes: piece, last: inputs.is_last(stream) && piece.len() == bytes.len() }
        });
        let ends = left.last && right.last;
        let shown = (left.bytes.len(), right.bytes.len());
        let taken = self.merge.feed(left, right, |bytes| output.append(bytes)).map_err(refused)?;
        output.count_work(self.merge.elements() - before);
        inputs.consume(0, taken.left);
        inputs.consume(1, taken.right);
        if ends && (taken.left, taken.right) == shown {
            return Ok(Step::Done { result: output.written() / self.element_bytes as u64 });
        }
        if taken.left + taken.right > 0 {
            return Ok(Step::More);
        }
        // The merge waits for the stream that is used up but not over.
        let stream = usize::from(!inputs.peek(0).is_empty() || inputs.is_over(0));
        Ok(Step::after(inputs, stream))
    }
}

fn refused(error: Error) -> Failure {
    let cause = match error {
        Error::NotSorted { .. } | Error::Nan { .. } => Cause::InputOrder,
        _ => Cause::InputType,
    };
    Failure::new(cause, error)
}
