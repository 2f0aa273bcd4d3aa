//! Retries of commands over objects whose inputs were moved to other drives meanwhile.

use csd_store::array::{Array, Plan};
use csd_store::catalogue::Entry;
use csd_store::object;

use crate::context::{Context, with_plan};
use crate::report::Failure;

/// Most times that a command begins.
const ATTEMPTS: usize = 8;

/// Repeats `attempt`, which looks up its inputs, until it does not return `None`.
///
/// # Errors
/// Those of an attempt; run if the inputs are moved again and again.
pub(crate) fn until_in_place<T>(
    mut attempt: impl FnMut() -> Result<Option<T>, Failure>,
) -> Result<T, Failure> {
    for _ in 0..ATTEMPTS {
        if let Some(done) = attempt()? {
            return Ok(done);
        }
    }
    Err(Failure::run("its inputs are moved to other drives again and again: try again later"))
}

/// Returns the result of an attempt over these inputs; `None` if it has failed and one of them was
/// moved meanwhile.
///
/// # Errors
/// The failure, if none was moved.
pub(crate) fn unless_moved<T>(
    (context, plan): (&Context, &Plan),
    inputs: &[Entry],
    attempt: Result<T, Failure>,
) -> Result<Option<T>, Failure> {
    let failure = match attempt {
        Ok(done) => return Ok(Some(done)),
        Err(failure) => failure,
    };
    let inputs = inputs.to_vec();
    let is_moved = with_plan(plan, context.options()?, async move |array: &Array| {
        for entry in &inputs {
            if object::moved(array, entry).await.is_some() {
                return Ok(true);
            }
        }
        Ok(false)
    });
    if is_moved.unwrap_or(false) { Ok(None) } else { Err(failure) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Class;

    #[test]
    fn attempts_end_with_a_result_a_failure_or_at_their_limit() {
        let mut begun = 0;
        let third = until_in_place(|| {
            begun += 1;
            Ok((begun == 3).then_some(begun))
        });
        assert_eq!((third.unwrap(), begun), (3, 3));
        let failed: Result<(), _> = until_in_place(|| Err(Failure::usage("wrong")));
        assert_eq!(failed.unwrap_err().class, Class::Usage);
        let mut begun = 0;
        let always: Result<(), _> = until_in_place(|| {
            begun += 1;
            Ok(None)
        });
        assert_eq!((always.unwrap_err().class, begun), (Class::Run, ATTEMPTS));
    }
}
