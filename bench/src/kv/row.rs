//! [`KvRow`]: rates and latencies of one workload and floor, and the verdict on all of them.

use hdrhistogram::Histogram;
use serde_json::{Value, json};

use crate::report::{Describe, Row};

/// Longest time of an operation of the loopback floor in a valid result: this, ns ...
const FLOOR_NS: f64 = 16_700.0;
/// ... and this for each byte, ns.
const FLOOR_NS_A_BYTE: f64 = 1.0;
/// Percentiles of latencies in a result, with their names.
const PERCENTILES: [(&str, f64); 4] =
    [("p50", 50.0), ("p90", 90.0), ("p99", 99.0), ("p99_9", 99.9)];

/// Bound that a row is compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Floor {
    /// The same bytes over bare loopback TCP.
    Loopback,
    /// The same bytes in a plain file: written with an fdatasync for every group in flight, or read
    /// past the page cache.
    File,
}

impl Floor {
    /// Returns its name in results.
    pub fn name(self) -> &'static str {
        match self {
            Self::Loopback => "loopback",
            Self::File => "file",
        }
    }
}

/// Rates and latencies of a workload.
#[derive(Clone, Debug)]
pub struct KvRow {
    /// Rates of floor and drive.
    pub row: Row,
    /// The bound.
    pub floor: Floor,
    /// Length of a value in bytes; of another's values, their mean.
    pub value_bytes: u64,
    /// Latencies of the drive, ns.
    pub latencies: Histogram<u64>,
}

impl KvRow {
    /// Returns bytes of values per second of the drive.
    #[allow(clippy::cast_precision_loss)] // far below 2^53
    pub fn bytes_per_s(&self) -> f64 {
        self.row.rates.second * self.value_bytes as f64
    }

    /// Returns a percentile of the drive's latencies, us.
    #[allow(clippy::cast_precision_loss)] // far below 2^53
    pub fn latency_us(&self, percentile: f64) -> f64 {
        self.latencies.value_at_percentile(percentile) as f64 / 1e3
    }
}

impl Describe for KvRow {
    fn head() -> String {
        let head = Row::head();
        format!("{:9} {head} {:>9} {:>9} {:>9}", "floor", "MB/s", "p50 us", "p99 us")
    }

    fn describe(&self) -> Value {
        let mut row = self.row.describe();
        row["floor"] = self.floor.name().into();
        row["value_bytes"] = self.value_bytes.into();
        row["drive_bytes_per_s"] = self.bytes_per_s().into();
        let mut latency = json!({ "max": self.latency_us(100.0) });
        for (name, percentile) in PERCENTILES {
            latency[name] = self.latency_us(percentile).into();
        }
        row["latency_us"] = latency;
        row
    }

    fn inconclusive(&self) -> Option<String> {
        self.row.inconclusive().map(|name| format!("{name}, {}", self.floor.name()))
    }
}

impl std::fmt::Display for KvRow {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let [p50, p99] = [self.latency_us(50.0), self.latency_us(99.0)];
        let rate = self.bytes_per_s() / 1e6;
        write!(f, "{:9} {} {rate:>9.1} {p50:>9.1} {p99:>9.1}", self.floor.name(), self.row)
    }
}

/// Judges by the loopback floor if the machine was fast enough; returns it in words, too.
#[allow(clippy::cast_precision_loss)] // far below 2^53
pub(super) fn validity(rows: &[KvRow]) -> (bool, String) {
    let slow = rows.iter().filter(|row| row.floor == Floor::Loopback).find_map(|row| {
        let wanted = 1e9 / (FLOOR_NS + FLOOR_NS_A_BYTE * row.value_bytes as f64);
        (row.row.rates.first < wanted).then_some((row, wanted))
    });
    match slow {
        None => (true, "valid: the floor is high enough".to_owned()),
        Some((row, wanted)) => {
            let (name, rate) = (row.row.name, row.row.rates.first);
            let rates = format!("{rate:.0}/s in \"{name}\" (wants {wanted:.0})");
            (false, format!("NOT VALID: the floor does {rates}: the machine is busy or slow"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::histogram;
    use crate::report::Comparison;

    #[test]
    fn a_result_is_valid_only_if_the_loopback_floor_is_high() {
        let row = |floor, first| KvRow {
            row: Row {
                name: "x",
                rates: Comparison { first, second: 1.0, ratio: [1.0; 3] },
                cpu_us: [None; 2],
            },
            floor,
            value_bytes: 1 << 20,
            latencies: histogram(),
        };
        for (rows, valid) in [
            (vec![row(Floor::Loopback, 939.0), row(Floor::File, 1.0)], true),
            (vec![row(Floor::Loopback, 938.0)], false),
            (vec![row(Floor::Loopback, 2000.0), row(Floor::Loopback, 10.0)], false),
        ] {
            let (found, text) = validity(&rows);
            assert_eq!((found, text.starts_with("valid")), (valid, valid), "{text}");
        }
    }
}
