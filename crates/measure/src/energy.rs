//! Source of the energies in a profile: the processor's counters, or watts given by the user.
//!
//! Invariant: the output and the note in the profile name the source, and the reason for it.

use std::path::Path;
use std::sync::Arc;

use crate::characterize::{Counter, Error, Meter, Subject};
use crate::rapl::Rapl;

/// True for each side whose watts the user gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Given {
    /// Watts of a core of the host.
    pub core_watts: bool,
    /// Watts of a core of the drive.
    pub drive_watts: bool,
}

/// The source of energies.
pub struct Energies {
    /// The counters, where they can be read.
    pub meter: Option<Meter>,
    /// Description of the source, for people.
    pub words: String,
}

impl Energies {
    /// Looks for counters below the folder `powercap` of the kernel. If there are any, measures the
    /// power at rest for a second.
    ///
    /// # Errors
    /// [`Error::Runtime`].
    pub fn find(
        runtime: &csd_reactor::Config,
        powercap: &Path,
        given: Given,
        subjects: &[Subject],
    ) -> Result<Self, Error> {
        let rapl = match Rapl::find(powercap) {
            Ok(rapl) => rapl,
            Err(why) => return Ok(Self { meter: None, words: without(given, &why) }),
        };
        let packages = rapl.packages();
        let counter: Counter = Arc::new(move || rapl.joules());
        let Some(meter) = Meter::new(runtime, counter)? else {
            let words = without(given, "the processor's counters stopped");
            return Ok(Self { meter: None, words });
        };
        let here = subjects.iter().all(|subject| subject.here);
        let words = with(packages, meter.rest_watts, here, given.drive_watts);
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

fn without(given: Given, why: &str) -> String {
    if given.core_watts || given.drive_watts {
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
        let given = |core_watts| Given { core_watts, drive_watts: false };
        assert!(without(given(true), "it is locked").contains("watts given (it is locked)"));
        assert!(without(given(false), "it is locked").contains("none (it is locked"));
    }
}
