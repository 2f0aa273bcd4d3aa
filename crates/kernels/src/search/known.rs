//! Compiled patterns that are kept: the executions of a run have one pattern, and compiling it
//! takes as long as searching some hundred kilobytes.
//!
//! Invariant: at most [`KEPT`] patterns are kept, each with bounded memory.

use std::sync::{Arc, Mutex, PoisonError};

use super::matcher::Matcher;
use super::pattern::Refused;

/// Number of patterns that are kept.
const KEPT: usize = 4;

struct Known {
    pattern: String,
    ignore_case: bool,
    matcher: Arc<Matcher>,
}

/// The last patterns, the latest first.
static ALL: Mutex<Vec<Known>> = Mutex::new(Vec::new());

/// Returns a compiled pattern.
///
/// # Errors
/// [`Refused`], as [`Matcher::new`].
pub(super) fn matcher(pattern: &str, ignore_case: bool) -> Result<Arc<Matcher>, Refused> {
    let taken = {
        let mut all = ALL.lock().unwrap_or_else(PoisonError::into_inner);
        let is_it = |known: &Known| known.ignore_case == ignore_case && known.pattern == pattern;
        let at = all.iter().position(is_it);
        at.map(|at| {
            all[..=at].rotate_right(1);
            Arc::clone(&all[0].matcher)
        })
    };
    if let Some(matcher) = taken {
        return Ok(matcher);
    }
    // Without the lock: others need not wait. Two may compile the same.
    let matcher = Arc::new(Matcher::new(pattern, ignore_case)?);
    let known = Known { pattern: pattern.to_owned(), ignore_case, matcher: Arc::clone(&matcher) };
    let mut all = ALL.lock().unwrap_or_else(PoisonError::into_inner);
    all.truncate(KEPT - 1);
    all.insert(0, known);
    Ok(matcher)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_is_compiled_once_and_few_are_kept() {
        let first = matcher("known.first", false).unwrap();
        assert!(Arc::ptr_eq(&first, &matcher("known.first", false).unwrap()));
        assert!(!Arc::ptr_eq(&first, &matcher("known.first", true).unwrap()));
        assert!(matcher("known(", false).is_err());
        for other in 0..2 * KEPT {
            matcher(&format!("known.{other}"), false).unwrap();
        }
        assert!(ALL.lock().unwrap().len() <= KEPT);
        assert!(!Arc::ptr_eq(&first, &matcher("known.first", false).unwrap()));
    }
}
