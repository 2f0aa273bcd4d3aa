//! [`LongLine`]: a line that comes in several steps, each of which searches its own bytes.

use std::sync::Arc;

use regex_automata::Input;
use regex_automata::hybrid::LazyStateID;
use regex_automata::hybrid::dfa::Cache;

use super::matcher::Matcher;
use crate::program::{Cause, Failure};

/// The search of a long line, so far.
pub(super) struct LongLine {
    matcher: Arc<Matcher>,
    cache: Box<Cache>,
    state: LazyStateID,
    found: bool,
    /// True if no further byte can change what was found.
    decided: bool,
}

/// Returns the failure of an engine that gives up, which it is not asked to.
fn given_up(error: impl std::fmt::Display) -> Failure {
    Failure::new(Cause::Program, format!("the search of a long line: {error}"))
}

impl LongLine {
    /// Begins a line.
    pub(super) fn begin(matcher: &Arc<Matcher>) -> Result<Self, Failure> {
        let dfa = matcher.by_bytes();
        let mut cache = Box::new(dfa.create_cache());
        let state = dfa.start_state_forward(&mut cache, &Input::new(b"")).map_err(given_up)?;
        let matcher = Arc::clone(matcher);
        Ok(Self { matcher, cache, state, found: false, decided: false })
    }

    /// Continues with bytes of the line. Its newline comes last.
    pub(super) fn feed(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        if self.decided {
            return Ok(());
        }
        let dfa = self.matcher.by_bytes();
        for &byte in bytes {
            self.state = dfa.next_state(&mut self.cache, self.state, byte).map_err(given_up)?;
            if self.state.is_tagged() && (self.state.is_match() || self.state.is_dead()) {
                (self.found, self.decided) = (self.state.is_match(), true);
                break;
            }
        }
        Ok(())
    }

    /// Returns true if the pattern matches in the bytes so far. A match that ends with the last one
    /// is seen with the next byte.
    pub(super) fn is_found(&self) -> bool {
        self.found
    }
}
