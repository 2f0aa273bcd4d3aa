//! Files of the results: points for `csdplan ec --points`, and a profile.
//!
//! Both have the measured times at power 1 of this project's code. The points are a contract with
//! csdplan: `docs/internals/golden/encode/` fixes their bytes.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

use csd_bench::ec::{Case, Encoder, Row};
use csd_measure::machine;
use csd_measure::profile::{
    Device, Host, Meta, Overlap, Point, Profile, Provenance, SCHEMA, Timing, Where,
};

use super::cases::is_one;
use crate::clock;
use crate::report::Failure;
use crate::target;

/// Name of the drives in a profile.
const DEVICE: &str = "drive";

/// Returns true if a case's times are a point of the files.
pub(super) fn is_point(case: &Case) -> bool {
    is_one(case.drive_power) && is_one(case.host_power)
}

/// Returns the rows that the files have, each size once.
fn of_files(rows: &[Row]) -> Vec<&Row> {
    let mut found: Vec<&Row> = Vec::new();
    for row in rows.iter().filter(|row| row.encoder == Encoder::Own && is_point(&row.case)) {
        if found.iter().all(|other| other.case.shape != row.case.shape) {
            found.push(row);
        }
    }
    found
}

/// Returns the points as CSV: blocks after encoding, MB of a block, and seconds of one encoding on
/// the host and in a drive.
pub(super) fn points(rows: &[Row]) -> String {
    let mut text = "blocks,block_MB,ssd_s,csd_s\n".to_owned();
    for row in of_files(rows) {
        let (shape, host_s, drive_s) = (row.case.shape, row.host_s, row.drive_s[1]);
        let (blocks, block_mb) = (shape.blocks(), shape.block_mb());
        let _fits = writeln!(text, "{blocks},{block_mb},{host_s:.6},{drive_s:.6}");
    }
    text
}

/// Writes a profile with a point of the host and one of the drive for each size.
pub(super) fn write_profile(path: &Path, rows: &[Row], pace: &str) -> Result<(), Failure> {
    let text = profile(rows, pace).to_toml();
    Profile::parse(&text).expect("what was measured makes a sound profile");
    target::replace(path, &text)
}

/// Describes the drives.
fn device(pace: &str) -> Device {
    let paced = match pace {
        "none" => "drives encode as fast as they can".to_owned(),
        pace => format!("drives encode at the pace of {pace}"),
    };
    Device {
        cores: Some(1),
        dram_bytes: None,
        int_read_Bps: None,
        int_write_Bps: None,
        ext_read_Bps: None,
        ext_write_Bps: None,
        link_bw_Bps: None,
        media_bw_Bps: None,
        idle_W: None,
        active_W: None,
        price_usd: None,
        capacity_bytes: None,
        target: None,
        note: Some(paced),
        prov: Some(BTreeMap::from([("cores".to_owned(), Provenance::Given)])),
    }
}

fn profile(rows: &[Row], pace: &str) -> Profile {
    let timing = |times: [f64; 3], n: usize| {
        // A transfer within memory may take less than the clock resolves.
        let [p25, median, p75] = times.map(|time| time.max(1e-9));
        Timing { median, p25: Some(p25), p75: Some(p75), n: Some(n as u64), prov: None }
    };
    let point = |row: &Row, side: Where| {
        let (load, comp, n) = match side {
            // Of its passes the fastest counts, as in the other file.
            Where::Host => (row.host_load_s, [row.host_s; 3], row.host_rounds),
            Where::Drive => (row.drive_load_s, row.drive_s, row.drive_rounds),
        };
        Point {
            kernel: row.case.shape.kernel(),
            r#where: side,
            device: DEVICE.to_owned(),
            units: 1,
            bytes: row.case.shape.data_bytes(),
            work: None,
            layout: None,
            overlap: Overlap::Serial,
            load_s: timing(load, n),
            comp_s: timing(comp, n),
            store_s: None,
            pipelined_s: None,
            energy_J: None,
            overload: None,
            prov: Provenance::Measured,
            note: None,
        }
    };
    Profile {
        schema: SCHEMA,
        meta: Meta {
            machine: machine::text(),
            date: Some(clock::utc()[..10].to_owned()),
            version: Some(env!("CARGO_PKG_VERSION").to_owned()),
            commit: None,
            source: None,
            note: Some("csd bench ec; media in memory, transfers over loopback".to_owned()),
        },
        host: Host {
            cores: machine::cores() as u64,
            ingest_bw_Bps: None,
            dram_bytes: machine::memory_bytes(),
            idle_W: None,
            core_W: None,
            price_usd: None,
            prov: None,
        },
        device: BTreeMap::from([(DEVICE.to_owned(), device(pace))]),
        point: of_files(rows)
            .into_iter()
            .flat_map(|row| [Where::Host, Where::Drive].map(|side| point(row, side)))
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use csd_bench::ec::Shape;

    use super::*;

    const GOLDEN: &str = include_str!("../../../../../docs/internals/golden/encode/points.csv");

    fn row(blocks: u64, block_mb: u64, host_s: f64, drive_s: f64) -> Row {
        let shape = Shape::new(blocks, block_mb * 1_000_000).unwrap();
        let case = Case { shape, drive_power: 1.0, host_power: 1.0, pace_ns_per_byte: None };
        Row {
            case,
            encoder: Encoder::Own,
            host_s,
            host_second_s: host_s,
            host_rounds_s: [host_s; 3],
            host_rounds: 3,
            drive_s: [drive_s; 3],
            drive_rounds: 2,
            host_load_s: [0.5; 3],
            drive_load_s: [0.0; 3],
        }
    }

    fn rows() -> Vec<Row> {
        let first = row(24, 16, 0.0125, 4.000_001);
        let more = Case { drive_power: 5.0, ..first.case };
        let less = Case { host_power: 0.5, ..first.case };
        vec![
            first,
            Row { encoder: Encoder::Isal, host_s: 9.0, ..first },
            Row { case: more, drive_s: [0.8; 3], ..first },
            Row { case: less, host_s: 0.025, ..first },
            row(48, 64, 1.0, 6.0),
            row(48, 64, 1.1, 6.1),
        ]
    }

    #[test]
    fn points_are_the_golden_bytes() {
        assert_eq!(points(&rows()), GOLDEN);
    }

    #[test]
    fn a_profile_is_sound_and_has_both_sides_of_every_size() {
        let profile = profile(&rows(), "newport-encode");
        assert_eq!(Profile::parse(&profile.to_toml()).unwrap(), profile);
        let points: Vec<_> =
            profile.point.iter().map(|p| (&*p.kernel, p.r#where, p.bytes)).collect();
        assert_eq!(
            points,
            [
                ("rs-16-8", Where::Host, 256_000_000),
                ("rs-16-8", Where::Drive, 256_000_000),
                ("rs-32-16", Where::Host, 2_048_000_000),
                ("rs-32-16", Where::Drive, 2_048_000_000),
            ]
        );
        let counts = profile.point.iter().map(|point| point.comp_s.n);
        assert_eq!(counts.collect::<Vec<_>>(), [Some(3), Some(2), Some(3), Some(2)]);
        assert!(profile.device[DEVICE].note.as_ref().unwrap().ends_with("of newport-encode"));
    }
}
