//! Makes a table of pairs of runs: medians, quartiles, and a verdict on the run's validity.

use std::fmt;
use std::time::Duration;

use serde_json::json;

use crate::client::Workload;

/// Least rate of the floor at depth 1, 4 KiB read, operations per second.
const FLOOR_DEPTH_1: f64 = 60e3;
/// Least rate of the floor at depth 32, 4 KiB read, operations per second.
const FLOOR_DEPTH_32: f64 = 450e3;
/// Largest inter-quartile range over median of ratios in a conclusive result.
pub const SPREAD_MAX: f64 = 0.15;

/// One run of one side.
#[derive(Clone, Copy, Debug)]
pub struct Run {
    rate: f64,
    cpu_us: f64,
}

impl Run {
    /// Computes rate and CPU time per operation.
    #[allow(clippy::cast_precision_loss)] // counts are far below 2^53
    pub fn new(operations: u64, elapsed: Duration, cpu_us: u64) -> Self {
        let count = operations.max(1) as f64;
        Self { rate: count / elapsed.as_secs_f64(), cpu_us: cpu_us as f64 / count }
    }

    /// Operations per second.
    pub fn per_s(&self) -> f64 {
        self.rate
    }
}

/// A row of the table.
pub struct Row {
    workload: Workload,
    floor: f64,
    drive: f64,
    ratio: [f64; 3],
    cpu_us: [f64; 2],
}

impl Row {
    /// Summarizes the pairs (floor, drive) of one workload.
    pub fn of(workload: Workload, pairs: &[(Run, Run)]) -> Self {
        let of = |pick: fn(&(Run, Run)) -> f64| quartiles(pairs.iter().map(pick).collect());
        Self {
            workload,
            floor: of(|pair| pair.0.rate)[1],
            drive: of(|pair| pair.1.rate)[1],
            ratio: of(|pair| pair.1.rate / pair.0.rate),
            cpu_us: [of(|pair| pair.0.cpu_us)[1], of(|pair| pair.1.cpu_us)[1]],
        }
    }

    /// Returns the table's header line.
    pub fn head() -> String {
        format!(
            "{:30} {:>11} {:>11} {:>7} {:>15} {:>17}",
            "workload", "floor I/O/s", "drive I/O/s", "ratio", "quartiles", "CPU us/I/O f, d"
        )
    }

    fn spread(&self) -> f64 {
        (self.ratio[2] - self.ratio[0]) / self.ratio[1]
    }
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [low, median, high] = self.ratio;
        write!(
            f,
            "{:30} {:>11.0} {:>11.0} {:>7.2} {:>7.2}-{:<7.2} {:>8.2} {:>8.2}{}",
            self.workload.name,
            self.floor,
            self.drive,
            median,
            low,
            high,
            self.cpu_us[0],
            self.cpu_us[1],
            if self.spread() > SPREAD_MAX { "  inconclusive" } else { "" }
        )
    }
}

/// Returns the first quartile, median and third quartile.
///
/// # Panics
/// If `values` is empty.
pub fn quartiles(mut values: Vec<f64>) -> [f64; 3] {
    values.sort_by(f64::total_cmp);
    let at = |quarter: usize| values[(values.len() - 1) * quarter / 4];
    [at(1), at(2), at(3)]
}

/// Describes the machine: processor, load, pinning.
pub fn machine() -> String {
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = info.lines().find_map(|line| line.strip_prefix("model name")).unwrap_or("");
    let model = model.trim_start_matches(['\t', ' ', ':']);
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load = load.split(' ').next().unwrap_or("?");
    let pinned = if crate::serve::pinned() { "servers pinned" } else { "not pinned" };
    format!("{model}, load {load}, {pinned}")
}

/// Returns in words if the machine was fast enough, judged by the floor's rates at 4 KiB.
pub fn validity(rows: &[Row]) -> String {
    let floor = |depth: u16| {
        let row = rows.iter().find(|row| row.workload.depth == depth && row.workload.read);
        row.map_or(0.0, |row| row.floor)
    };
    let (one, many) = (floor(1), floor(32));
    if one >= FLOOR_DEPTH_1 && many >= FLOOR_DEPTH_32 {
        return "valid: the floor is high enough".into();
    }
    format!(
        "NOT VALID: the floor does {one:.0}/s at depth 1 (wants {FLOOR_DEPTH_1:.0}) and \
         {many:.0}/s at depth 32 (wants {FLOOR_DEPTH_32:.0}): the machine is busy or slow"
    )
}

/// Appends the rows to a file as JSON objects, one a line.
///
/// # Panics
/// If the file cannot be written.
pub fn record(path: &std::path::Path, validity: &str, rows: &[Row]) {
    for row in rows {
        let line = json!({
            "workload": row.workload.name,
            "floor_per_s": row.floor,
            "drive_per_s": row.drive,
            "ratio_quartiles": row.ratio,
            "cpu_us_per_io": {"floor": row.cpu_us[0], "drive": row.cpu_us[1]},
            "inconclusive": row.spread() > SPREAD_MAX,
            "validity": validity,
        });
        append(path, line);
    }
}

/// Appends one JSON object to a file, with the machine and the arguments of this program.
///
/// # Panics
/// If the file cannot be written, or `line` is not an object.
pub fn append(path: &std::path::Path, mut line: serde_json::Value) {
    use std::io::Write;
    let file = std::fs::OpenOptions::new().create(true).append(true).open(path);
    let mut file = file.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    line["machine"] = machine().into();
    line["arguments"] = std::env::args().skip(1).collect::<Vec<_>>().into();
    writeln!(file, "{line}").expect("the record can be written");
}
