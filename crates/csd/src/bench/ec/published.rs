//! Times and break-even points that the paper prints, from the file that csdplan reads.

use csd_bench::ec::row::devices;
use serde_json::{Value, json};

/// Source of the points, for people.
pub(super) const SOURCE: &str = "Byun et al., 2023, section IV.2, Newport, ISA-L on both sides";

const TEXT: &str = include_str!("../../../../../python/src/csdplan/published/encode.toml");

/// One encoding.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Point {
    /// Blocks after encoding.
    pub(super) blocks: u32,
    /// Size of a block, MB.
    pub(super) block_mb: f64,
    /// Time on the host, seconds.
    pub(super) ssd_s: f64,
    /// Time in a drive, seconds.
    pub(super) csd_s: f64,
}

impl Point {
    /// Returns the break-even point, which the paper prints as well.
    pub(super) fn devices(&self) -> u64 {
        devices(self.ssd_s, self.csd_s)
    }

    /// Returns the point as JSON output has it.
    pub(super) fn describe(&self) -> Value {
        json!({
            "blocks": self.blocks,
            "block_MB": self.block_mb,
            "host_s": self.ssd_s,
            "drive_s": self.csd_s,
            "devices": self.devices(),
            "source": SOURCE,
        })
    }
}

/// Returns the points in the file's order.
pub(super) fn points() -> Vec<Point> {
    let tables = TEXT.split("[[encode]]").skip(1);
    tables
        .map(|table| Point {
            blocks: number(table, "blocks"),
            block_mb: number(table, "block_MB"),
            ssd_s: number(table, "ssd_s"),
            csd_s: number(table, "csd_s"),
        })
        .collect()
}

/// Returns the number of a key.
fn number<T: std::str::FromStr>(table: &str, key: &str) -> T {
    let value = table.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(" = "));
    value.and_then(|value| value.trim().parse().ok()).expect("our own file has every number")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn break_even_points_are_the_printed_ones() {
        let found: Vec<(u32, f64, u64)> =
            points().iter().map(|point| (point.blocks, point.block_mb, point.devices())).collect();
        assert_eq!(found, [(24, 16.0, 2), (24, 128.0, 3), (12, 64.0, 2), (48, 64.0, 5)]);
    }
}
