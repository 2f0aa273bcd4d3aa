//! [`Row`]: the times of an encoding, and the break-even point that follows from them.

use serde_json::{Value, json};

use super::Case;
use crate::report::SPREAD_MAX;

/// Share by which a drive may take longer than its pace.
const BEHIND_MAX: f64 = 0.05;

/// Encoder of the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoder {
    /// This project's.
    Own,
    /// libisal.
    Isal,
}

impl Encoder {
    /// Returns the name, as in JSON output.
    pub fn name(self) -> &'static str {
        match self {
            Self::Own => "csd",
            Self::Isal => "isal",
        }
    }
}

/// Times of one encoding, seconds; those of drives and of transfers in quartiles over the rounds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Row {
    /// The encoding, and the powers of both sides.
    pub case: Case,
    /// Encoder of the host; the drives have this project's.
    pub encoder: Encoder,
    /// Encoding on the host at the rate of the fastest pass, T_SSD(1)-ec, seconds: of all rounds
    /// of the cases with this size and this power of the host.
    pub host_s: f64,
    /// The same at the rate of the fastest pass of the round that comes next.
    pub host_second_s: f64,
    /// The same at the rates of each round's fastest pass, in quartiles.
    pub host_rounds_s: [f64; 3],
    /// Number of those rounds.
    pub host_rounds: usize,
    /// Encoding in a drive, T_CSD-ec; of several drives at once, the slowest one's.
    pub drive_s: [f64; 3],
    /// Number of times that drives encoded.
    pub drive_rounds: usize,
    /// Transfer of the data from a drive to the host, T_SSD-tx.
    pub host_load_s: [f64; 3],
    /// Transfer of the data from the drive's media to its own memory, T_CSD-tx.
    pub drive_load_s: [f64; 3],
}

impl Row {
    /// Returns the number of blocks, each on a drive of its own, from which on the drives are
    /// faster than the host.
    pub fn devices(&self) -> u64 {
        devices(self.host_s, self.drive_s[1])
    }

    /// Returns true if no second round of the host confirms the fastest one, or the times of the
    /// drive scatter by more than [`SPREAD_MAX`].
    pub fn is_inconclusive(&self) -> bool {
        let [low, median, high] = self.drive_s;
        !is_confirmed(self.host_s, self.host_second_s) || (high - low) / median > SPREAD_MAX
    }

    /// Returns true if a drive took longer than its pace, so that the time is this machine's.
    pub fn is_behind(&self) -> bool {
        self.case.paced_s().is_some_and(|paced_s| self.drive_s[1] > paced_s * (1.0 + BEHIND_MAX))
    }

    /// Returns the row as records and JSON output have it.
    pub fn describe(&self) -> Value {
        let shape = self.case.shape;
        json!({
            "blocks": shape.blocks(),
            "data": shape.data(),
            "parity": shape.parity(),
            "block_MB": shape.block_mb(),
            "encoder": self.encoder.name(),
            "drive_power": self.case.drive_power,
            "host_power": self.case.host_power,
            "host_s": self.host_s,
            "host_second_s": self.host_second_s,
            "host_s_quartiles": self.host_rounds_s,
            "host_rounds": self.host_rounds,
            "drive_s_quartiles": self.drive_s,
            "host_load_s": self.host_load_s[1],
            "drive_load_s": self.drive_load_s[1],
            "devices": self.devices(),
            "behind": self.is_behind(),
            "inconclusive": self.is_inconclusive(),
        })
    }
}

/// Returns the two shortest of some times, each infinite if there is none.
pub(super) fn fastest_two(times: &[f64]) -> (f64, f64) {
    let mut two = (f64::INFINITY, f64::INFINITY);
    for &time in times {
        if time < two.0 {
            two = (time, two.0);
        } else {
            two.1 = two.1.min(time);
        }
    }
    two
}

/// Returns true if the second time lies within [`SPREAD_MAX`] of the fastest one.
pub(super) fn is_confirmed(fastest_s: f64, second_s: f64) -> bool {
    second_s <= fastest_s * (1.0 + SPREAD_MAX)
}

/// Returns the smallest number of blocks that drives encode faster, one each, than the host does
/// one after another: equation 8, where a tie is no win.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // positive and far below 2^53
pub fn devices(host_s: f64, drive_s: f64) -> u64 {
    (drive_s / host_s).floor() as u64 + 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ec::Shape;

    #[test]
    fn a_tie_is_no_win() {
        for (host_s, drive_s, found) in
            [(4.0, 10.0, 3), (1.0, 6.0, 7), (4.8, 22.3, 5), (2.0, 1.0, 1)]
        {
            assert_eq!(devices(host_s, drive_s), found, "{host_s} {drive_s}");
        }
    }

    #[test]
    fn a_drive_that_cannot_keep_its_pace_is_said_to_be_behind() {
        let case = Case {
            shape: Shape::new(3, 1_000_000).unwrap(),
            drive_power: 2.0,
            host_power: 1.0,
            pace_ns_per_byte: Some(1000.0),
        };
        let row = |drive_s: f64| Row {
            case,
            encoder: Encoder::Own,
            host_s: 0.1,
            host_second_s: 0.1,
            host_rounds_s: [0.1; 3],
            host_rounds: 2,
            drive_s: [drive_s; 3],
            drive_rounds: 1,
            host_load_s: [0.1; 3],
            drive_load_s: [0.1; 3],
        };
        // 2 MB at 500 ns a byte are a second.
        assert!(!row(1.04).is_behind() && row(1.06).is_behind());
        let unpaced = Row { case: Case { pace_ns_per_byte: None, ..case }, ..row(9.0) };
        assert!(!unpaced.is_behind());
        assert!(!row(1.0).is_inconclusive());
        assert!(Row { drive_s: [1.0, 1.0, 1.2], ..row(1.0) }.is_inconclusive());
        assert!(!Row { host_second_s: 0.114, ..row(1.0) }.is_inconclusive());
        assert!(Row { host_second_s: 0.116, ..row(1.0) }.is_inconclusive());
    }

    #[test]
    fn the_fastest_round_needs_a_second_one_near_it() {
        let none = f64::INFINITY;
        for (times, two, confirmed) in [
            (&[][..], (none, none), false),
            (&[2.0], (2.0, none), false),
            (&[3.0, 2.0], (2.0, 3.0), false),
            (&[2.0, 4.0, 2.2, 3.0], (2.0, 2.2), true),
            (&[2.0, 2.0], (2.0, 2.0), true),
        ] {
            assert_eq!(fastest_two(times), two, "{times:?}");
            // Without a time nothing is confirmed, though both are infinite.
            let is = !times.is_empty() && is_confirmed(two.0, two.1);
            assert_eq!(is, confirmed, "{times:?}");
        }
    }
}
