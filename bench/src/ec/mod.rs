//! Erasure coding on a host and in drives: section IV.2 of Byun et al., "Provisioning CSD-based
//! Storage Systems with Erasure-coding Offloaded to the CSD".
//!
//! The host encodes with one thread, a drive with its program `encode`. Times are those of one
//! (n, k) encoding: n blocks of data, which are in memory on both sides. Both sides take turns in
//! rounds. A block longer than [`WINDOW_BYTES`] is encoded in passes over the same memory; of the
//! host's passes in a round the fastest counts.
//!
//! Modules: [`shape`] is the size of an encoding, `host` and `drives` are the two sides, [`row`] is
//! the result. Invariant: both sides, and libisal, give the same parity, or there is no result.

mod drives;
mod host;
pub mod row;
pub mod shape;

use crate::frame::{Step, Stop};
use crate::report::quartiles;
use crate::serve::{Launch, Options};
use crate::{Error, isal};
use drives::{Drives, Encoded};
use host::{Host, ROUND_S};
pub use row::{Encoder, Row};
use row::{fastest_two, is_confirmed};
pub use shape::{CELL_BYTES, Shape, WINDOW_BYTES};

/// Expected time of a drive without a pace, ns for each byte.
const DRIVE_NS_PER_BYTE: f64 = 0.4;
/// Most rounds of the host, a multiple of those of the plan: more are measured while its fastest
/// round stands alone.
const ROUNDS_FACTOR_MAX: usize = 4;
/// Expected time until both sides have the data, seconds.
const START_S: f64 = 0.5;

/// An encoding, and the powers of the two sides.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Case {
    /// Its size.
    pub shape: Shape,
    /// Computational power of the drives, a multiple of their pace.
    pub drive_power: f64,
    /// Computational power of the host: the share of this machine's thread that it uses, at most 1.
    pub host_power: f64,
    /// Time that a drive of power 1 takes for a byte of data, ns; `None`: as fast as it can.
    pub pace_ns_per_byte: Option<f64>,
}

impl Case {
    /// Returns the time that a drive takes for a byte of data, ns.
    fn ns_per_byte(&self) -> Option<f64> {
        self.pace_ns_per_byte.map(|time| time / self.drive_power)
    }

    /// Returns the time that a drive takes by its pace, seconds.
    fn paced_s(&self) -> Option<f64> {
        self.ns_per_byte().map(|ns| ns * self.shape.data_bytes() as f64 / 1e9)
    }

    /// Returns the number of times that drives encode in so many rounds of the host. The time of a
    /// paced drive is its model's: to take it again would only make the measurement long.
    fn drive_rounds(&self, rounds: usize) -> usize {
        if self.pace_ns_per_byte.is_some() { 1 } else { rounds }
    }

    /// Returns the time that the case is expected to take in so many rounds, seconds.
    pub fn expected_s(&self, rounds: usize) -> f64 {
        let unpaced_s = self.shape.data_bytes() as f64 * DRIVE_NS_PER_BYTE / 1e9;
        let drive_s = self.paced_s().unwrap_or(unpaced_s);
        START_S
            + rounds as f64 * 2.0 * ROUND_S / self.host_power
            + self.drive_rounds(rounds) as f64 * drive_s
    }
}

/// A measurement to do.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Encodings, each with its powers.
    pub cases: Vec<Case>,
    /// Number of rounds. A paced drive encodes once; the host has up to four times as many rounds
    /// while its fastest one stands alone.
    pub rounds: usize,
    /// Number of drives that encode a block each at the same time.
    pub drives: usize,
    /// libisal, if it is measured on the host as well.
    pub isal: Option<isal::Erasure>,
    /// Options of the drives.
    pub options: Options,
    /// Words that start a drive.
    pub launch: Launch,
}

/// Times of one case by round, seconds.
#[derive(Default)]
struct Times {
    own: Vec<f64>,
    isal: Vec<f64>,
    drives: Vec<Encoded>,
    host_load: Vec<f64>,
}

/// Measures every case. Progress is in seconds that the cases are expected to take.
///
/// # Errors
/// The first error of a drive; [`Error::Usage`] without rounds or drives; [`Error::Server`] if
/// parities differ; [`Error::Interrupted`].
pub fn measure(plan: &Plan, stop: &Stop, progress: &dyn Fn(Step<'_>)) -> Result<Vec<Row>, Error> {
    if plan.rounds == 0 || plan.drives == 0 {
        return Err(Error::Usage("at least one round and one drive are needed".to_owned()));
    }
    let expected_s = |cases: &[Case]| {
        whole_s(cases.iter().map(|case| case.expected_s(plan.rounds)).sum::<f64>())
    };
    let (mut measured, of) = (Vec::new(), expected_s(&plan.cases));
    for (index, case) in plan.cases.iter().enumerate() {
        let what = case.shape.to_string();
        progress(Step { done: expected_s(&plan.cases[..index]), of, what: &what });
        measured.push((*case, times(plan, case, stop)?));
    }
    progress(Step { done: of, of, what: "" });
    let rows = measured.iter().map(|(case, times)| times.rows(*case, &alike(&measured, case)));
    Ok(rows.collect::<Result<Vec<_>, _>>()?.concat())
}

/// Returns the times of the cases with the same work of the host, which does not depend on the
/// power of drives.
fn alike<'a>(measured: &'a [(Case, Times)], case: &Case) -> Vec<&'a Times> {
    let is_alike = |other: &Case| {
        other.shape == case.shape && other.host_power.total_cmp(&case.host_power).is_eq()
    };
    measured.iter().filter(|(other, _)| is_alike(other)).map(|(_, times)| times).collect()
}

/// Measures a case.
fn times(plan: &Plan, case: &Case, stop: &Stop) -> Result<Times, Error> {
    let mut host = Host::new(case.shape, plan.isal)?;
    let drives = Drives::start(plan, case, stop)?;
    drives.check(&host)?;
    let mut times = Times::default();
    for round in 0..plan.rounds * ROUNDS_FACTOR_MAX {
        if round >= plan.rounds && times.is_confirmed() {
            break;
        }
        let (own, isal) = host.round(case.host_power, stop)?;
        times.own.push(own);
        times.isal.extend(isal);
        times.host_load.push(drives.load()?);
        if round < case.drive_rounds(plan.rounds) {
            times.drives.push(drives.encode(stop)?);
        }
    }
    Ok(times)
}

/// Returns a time in whole seconds.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // positive and far below 2^53
fn whole_s(seconds: f64) -> usize {
    seconds.round() as usize
}

impl Times {
    /// Returns true if every encoder of the host has a second round near its fastest one.
    fn is_confirmed(&self) -> bool {
        [&self.own, &self.isal].into_iter().filter(|times| !times.is_empty()).all(|times| {
            let (fastest_s, second_s) = fastest_two(times);
            is_confirmed(fastest_s, second_s)
        })
    }

    /// Returns a row for each encoder of the host, whose times are those of all cases `alike`.
    fn rows(&self, case: Case, alike: &[&Self]) -> Result<Vec<Row>, Error> {
        // A paced drive answers when its model would; that of another is its own computing.
        let encoding = |times: &Encoded| match case.pace_ns_per_byte {
            Some(_) => times.total_s,
            None => times.comp_s,
        };
        let drive_s = quartiles(self.drives.iter().map(encoding).collect())?;
        let drive_load_s = quartiles(self.drives.iter().map(|times| times.load_s).collect())?;
        let host_load_s = quartiles(self.host_load.clone())?;
        let pooled = |times: fn(&Self) -> &[f64]| -> Vec<f64> {
            alike.iter().flat_map(|of| times(of).iter().copied()).collect()
        };
        let sides = [
            (Encoder::Own, pooled(|times| &times.own)),
            (Encoder::Isal, pooled(|times| &times.isal)),
        ];
        let measured = sides.into_iter().filter(|(_, times)| !times.is_empty());
        measured
            .map(|(encoder, times)| {
                let (host_s, host_second_s) = fastest_two(&times);
                Ok(Row {
                    case,
                    encoder,
                    host_s,
                    host_second_s,
                    host_rounds: times.len(),
                    host_rounds_s: quartiles(times)?,
                    drive_s,
                    drive_rounds: self.drives.len(),
                    host_load_s,
                    drive_load_s,
                })
            })
            .collect()
    }
}
