//! Source of the energies in a profile: the processor's counters, or watts given by the user.
//!
//! Invariant: the output and the note in the profile name the source, and the reason for it.

use std::sync::Arc;

use csd_store::characterize::{Counter, Meter, Subject};

use super::rapl::Rapl;
use crate::cli::characterize::Characterize;
use crate::report::Failure;
use crate::runtime::runtime;

/// The source of energies.
pub(super) struct Energies {
    /// The counters, where they can be read.
    pub(super) meter: Option<Meter>,
    /// Description of the source, for people.
    pub(super) words: String,
}

impl Energies {
    /// Looks for counters. If there are any, measures the power at rest for a second.
    pub(super) fn find(options: &Characterize, subjects: &[Subject]) -> Result<Self, Failure> {
        let given = (options.core_watts.is_some(), options.drive_watts.is_some());
        let rapl = match Rapl::find(&options.powercap) {
            Ok(rapl) => rapl,
            Err(why) => return Ok(Self { meter: None, words: without(given, &why) }),
        };
        let packages = rapl.packages();
        let counter: Counter = Arc::new(move || rapl.joules());
        let Some(meter) = Meter::new(&runtime(), counter)? else {
            let words = without(given, "the processor's counters stopped");
            return Ok(Self { meter: None, words });
        };
        let here = subjects.iter().all(|subject| subject.here);
        let words = with(packages, meter.rest_watts, here, given.1);
        Ok(Self { meter: Some(meter), words })
    }
}

fn with(packages: usize, rest_watts: f64, here: bool, drive_watts: bool) -> String {
    let whose = match (here, drive_watts) {
        (true, _) => "host and drive share the machine, and stand in both",
        (false, true) => "of the host; those of the drive are CPU seconds by the watts given",
        (false, false) => "of the host; of the drive there are none without --drive-watts",
    };
    let s = if packages == 1 { "" } else { "s" };
    format!(
        "energies: counters of {packages} processor package{s} (RAPL), less {rest_watts:.1} W at \
         rest; {whose}"
    )
}

fn without((core, drive): (bool, bool), why: &str) -> String {
    if core || drive {
        return format!(
            "energies: not measured, but CPU seconds of kernels by the watts given ({why})"
        );
    }
    format!("energies: none ({why}, and no watts were given)")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_say_who_tells_energies_and_why() {
        assert!(with(1, 7.04, true, false).contains("1 processor package (RAPL), less 7.0 W"));
        assert!(with(2, 7.0, false, true).ends_with("CPU seconds by the watts given"));
        assert!(with(2, 7.0, false, false).ends_with("none without --drive-watts"));
        assert!(without((true, false), "it is locked").contains("watts given (it is locked)"));
        assert!(without((false, false), "it is locked").contains("none (it is locked"));
    }
}
