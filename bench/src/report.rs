//! Summaries of pairs of runs: medians, quartiles and verdicts.

use std::fmt;
use std::time::Duration;

use serde_json::{Value, json};

use crate::Error;

/// Largest inter-quartile range over median of ratios in a conclusive result.
pub const SPREAD_MAX: f64 = 0.15;

/// One run of one side.
#[derive(Clone, Copy, Debug)]
pub struct Run {
    rate: f64,
    cpu_us: Option<f64>,
}

impl Run {
    /// Computes rate and CPU time per operation; the CPU time of a server elsewhere is unknown.
    #[allow(clippy::cast_precision_loss)] // counts are far below 2^53
    pub fn new(operations: u64, elapsed: Duration, cpu_us: Option<u64>) -> Self {
        let count = operations.max(1) as f64;
        let cpu_us = cpu_us.map(|cpu_us| cpu_us as f64 / count);
        Self { rate: count / elapsed.as_secs_f64(), cpu_us }
    }

    /// Operations per second.
    pub fn per_s(&self) -> f64 {
        self.rate
    }
}

/// Pairs of figures, summarized.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Comparison {
    /// Median of the first side.
    pub first: f64,
    /// Median of the second side.
    pub second: f64,
    /// Quartiles of the ratios of the pairs, second side over first.
    pub ratio: [f64; 3],
}

impl Comparison {
    /// Summarizes pairs (first side, second side).
    ///
    /// # Errors
    /// [`Error::Usage`] without pairs.
    pub fn of(pairs: &[(f64, f64)]) -> Result<Self, Error> {
        let of = |pick: fn(&(f64, f64)) -> f64| quartiles(pairs.iter().map(pick).collect());
        Ok(Self {
            first: of(|pair| pair.0)?[1],
            second: of(|pair| pair.1)?[1],
            ratio: of(|pair| pair.1 / pair.0)?,
        })
    }

    /// Returns true if the ratios scatter by more than [`SPREAD_MAX`].
    pub fn is_inconclusive(&self) -> bool {
        let [low, median, high] = self.ratio;
        let spread = (high - low) / median;
        spread.is_nan() || spread > SPREAD_MAX
    }

    /// Returns the median of the ratios, their quartiles, and the mark of a table's row.
    pub fn ratio_text(&self) -> String {
        let [low, median, high] = self.ratio;
        format!("ratio {median:.2} ({low:.2}-{high:.2}){}", self.mark())
    }

    /// Returns the mark of a table's row.
    fn mark(&self) -> &'static str {
        if self.is_inconclusive() { "  inconclusive" } else { "" }
    }
}

/// Pairs of runs of floor and drive, summarized: a row of the table.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// Name of the workload.
    pub name: &'static str,
    /// Operations per second of the floor and of the drive.
    pub rates: Comparison,
    /// Median CPU time of an operation at floor and drive, us.
    pub cpu_us: [Option<f64>; 2],
}

impl Row {
    /// Summarizes the pairs (floor, drive) of one workload.
    ///
    /// # Errors
    /// [`Error::Usage`] without pairs.
    pub fn of(name: &'static str, pairs: &[(Run, Run)]) -> Result<Self, Error> {
        let rates: Vec<(f64, f64)> =
            pairs.iter().map(|(floor, drive)| (floor.rate, drive.rate)).collect();
        let cpu = |pick: fn(&(Run, Run)) -> Option<f64>| {
            let all: Option<Vec<f64>> = pairs.iter().map(pick).collect();
            all.and_then(|all| Some(quartiles(all).ok()?[1]))
        };
        let cpu_us = [cpu(|pair| pair.0.cpu_us), cpu(|pair| pair.1.cpu_us)];
        Ok(Self { name, rates: Comparison::of(&rates)?, cpu_us })
    }

    /// Returns the table's header line; `floor` names the first side.
    pub fn head_of(floor: &str) -> String {
        let floor = format!("{floor} I/O/s");
        format!(
            "{:30} {floor:>11} {:>11} {:>7} {:>15} {:>17}",
            "workload", "drive I/O/s", "ratio", "quartiles", "CPU us/I/O f, d"
        )
    }
}

impl Describe for Row {
    fn head() -> String {
        Self::head_of("floor")
    }

    fn describe(&self) -> Value {
        json!({
            "workload": self.name,
            "floor_per_s": self.rates.first,
            "drive_per_s": self.rates.second,
            "ratio_quartiles": self.rates.ratio,
            "cpu_us_per_io": {"floor": self.cpu_us[0], "drive": self.cpu_us[1]},
            "inconclusive": self.rates.is_inconclusive(),
        })
    }

    fn inconclusive(&self) -> Option<String> {
        self.rates.is_inconclusive().then(|| self.name.to_owned())
    }
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Comparison { first, second, ratio: [low, median, high] } = self.rates;
        write!(
            f,
            "{:30} {first:>11.0} {second:>11.0} {median:>7.2} {low:>7.2}-{high:<7.2}",
            self.name,
        )?;
        for cpu_us in self.cpu_us {
            match cpu_us {
                Some(us) => write!(f, " {us:>8.2}")?,
                None => write!(f, " {:>8}", "?")?,
            }
        }
        f.write_str(self.rates.mark())
    }
}

/// Result of a measurement in rows.
#[derive(Clone, Debug)]
pub struct Outcome<R> {
    /// A row for each workload that was measured, and each of its floors.
    pub rows: Vec<R>,
    /// True if the floor was fast enough.
    pub valid: bool,
    /// The verdict in words.
    pub validity: String,
    /// Workloads that were left out, with the reason.
    pub left_out: Vec<String>,
}

/// A row of a table, as text ([`fmt::Display`]) and as JSON.
pub trait Describe: fmt::Display {
    /// Returns the table's header line.
    fn head() -> String;

    /// Returns the row as records have it, without the verdict on the whole run.
    fn describe(&self) -> Value;

    /// Returns the row as records have it, with the verdict on the whole run.
    fn recorded(&self, validity: &str) -> Value {
        let mut line = self.describe();
        line["validity"] = validity.into();
        line
    }

    /// Returns the name of a row whose ratios scatter by more than [`SPREAD_MAX`].
    fn inconclusive(&self) -> Option<String>;
}

/// Returns the median of each column of rounds. NaN stands for a figure that a round has not.
///
/// # Errors
/// [`Error::Usage`] if a column is empty.
pub fn medians<const N: usize>(
    rounds: impl IntoIterator<Item = [f64; N]>,
) -> Result<[f64; N], Error> {
    let rounds: Vec<[f64; N]> = rounds.into_iter().collect();
    let mut medians = [0.0; N];
    for (column, median) in medians.iter_mut().enumerate() {
        let values = rounds.iter().map(|round| round[column]).filter(|value| !value.is_nan());
        *median = quartiles(values.collect())?[1];
    }
    Ok(medians)
}

/// Returns the first quartile, median and third quartile.
///
/// # Errors
/// [`Error::Usage`] if `values` is empty.
pub fn quartiles(mut values: Vec<f64>) -> Result<[f64; 3], Error> {
    if values.is_empty() {
        return Err(Error::Usage("there is nothing to summarize: measure a pair".to_owned()));
    }
    values.sort_by(f64::total_cmp);
    let at = |quarter: usize| values[(values.len() - 1) * quarter / 4];
    Ok([at(1), at(2), at(3)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quartiles_are_of_the_sorted_values() {
        for (values, expected) in [
            (vec![7.0], [7.0, 7.0, 7.0]),
            (vec![2.0, 1.0], [1.0, 1.0, 1.0]),
            (vec![5.0, 1.0, 4.0, 2.0, 3.0], [2.0, 3.0, 4.0]),
            (vec![9.0, 8.0, 7.0, 6.0, 5.0, 4.0, 3.0, 2.0, 1.0], [3.0, 5.0, 7.0]),
        ] {
            assert_eq!(quartiles(values).unwrap(), expected);
        }
        assert!(matches!(quartiles(Vec::new()), Err(Error::Usage(_))));
    }

    #[test]
    fn medians_are_of_columns_and_leave_out_what_is_not_a_number() {
        let rounds = [[3.0, f64::NAN], [1.0, 7.0], [2.0, f64::NAN]];
        assert_eq!(medians(rounds).unwrap(), [2.0, 7.0]);
        assert!(medians([[f64::NAN]]).is_err());
    }

    #[test]
    fn ratios_are_of_pairs_and_not_of_medians() {
        // The machine's speed doubles from pair to pair; the ratio does not change.
        let steady = Comparison::of(&[(1.0, 0.5), (2.0, 1.0), (4.0, 2.0)]).unwrap();
        assert_eq!(steady, Comparison { first: 2.0, second: 1.0, ratio: [0.5, 0.5, 0.5] });
        assert!(!steady.is_inconclusive());
    }

    #[test]
    fn a_result_whose_ratios_scatter_is_inconclusive() {
        for (high, inconclusive) in [(1.14, false), (1.16, true), (f64::NAN, true)] {
            let scattered = Comparison { first: 1.0, second: 1.0, ratio: [1.0, 1.0, high] };
            assert_eq!(scattered.is_inconclusive(), inconclusive, "{high}");
        }
    }

    #[test]
    fn cpu_time_of_a_server_elsewhere_is_unknown() {
        let second = Duration::from_secs(1);
        let pair = (Run::new(10, second, Some(50)), Run::new(5, second, None));
        let row = Row::of("x", &[pair]).unwrap();
        assert_eq!(row.cpu_us, [Some(5.0), None]);
        assert_eq!(row.rates.ratio[1], 0.5);
        assert!(row.to_string().contains("5.00        ?"), "{row}");
    }

    #[test]
    fn kept_records_have_the_fields_that_are_written() {
        let run = Run::new(1, Duration::from_secs(1), Some(1));
        let mut written = Row::of("x", &[(run, run)]).unwrap().recorded("valid");
        written["machine"] = "x".into();
        written["arguments"] = json!([]);
        let fields = |line: &Value| line.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
        let kept = include_str!("../records/block.jsonl");
        let file = include_str!("../records/file.jsonl");
        for line in kept.lines().chain(file.lines()) {
            let line: Value = serde_json::from_str(line).unwrap();
            assert_eq!(fields(&line), fields(&written), "{line}");
        }
    }
}
