//! Builds a profile from measurements.
//!
//! Measures nothing. Invariant: a bandwidth of the device is the highest of its points over a whole
//! working set; a quantity that was not measured is left out.

use super::Overlap;
use super::plan::{Cell, Found};
use super::quantiles::Samples;
use crate::profile::{
    Device, Energy, Host, Meta, Point, Profile, Provenance, Provenances, SCHEMA, Source, Where,
};

/// Facts about the machine and its drives that are not measured here.
#[derive(Clone, Debug, Default)]
pub struct Machine {
    /// Description of the machine, for people.
    pub text: String,
    /// Day of the measurement, `YYYY-MM-DD`.
    pub date: String,
    /// Version of this program.
    pub version: String,
    /// Note for readers of the profile.
    pub note: Option<String>,
    /// Cores that a kernel can use on the host.
    pub cores: u64,
    /// Main memory of the host, bytes.
    pub dram_bytes: Option<u64>,
    /// Bytes per second that the host can take in, and their provenance.
    pub ingest_bw: Option<(u64, Provenance)>,
    /// Devices, in the order of the measured drives.
    pub devices: Vec<About>,
    /// Powers.
    pub watts: Watts,
}

/// Facts about a drive, or several of one model, that are not measured here.
#[derive(Clone, Debug, Default)]
pub struct About {
    /// Name in the profile.
    pub name: String,
    /// Address.
    pub target: Option<String>,
    /// Note on the drive.
    pub note: Option<String>,
    /// Number of cores.
    pub cores: Option<u64>,
    /// Capacity, bytes.
    pub capacity_bytes: Option<u64>,
}

/// Powers for computing energies that no counter measures, W.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Watts {
    /// Power that one working core of the host adds.
    pub core: Option<f64>,
    /// Power of the drive at rest and at work.
    pub drive: Option<(f64, f64)>,
}

/// Builds the profile of the measurements.
#[must_use]
pub fn build_profile(found: &Found, machine: &Machine) -> Profile {
    let point = found.cells.iter().filter_map(|cell| point(cell, machine)).collect();
    let devices = machine.devices.iter().enumerate();
    let devices =
        devices.map(|(subject, about)| (about.name.clone(), device(found, machine, subject)));
    Profile {
        schema: SCHEMA,
        meta: Meta {
            machine: machine.text.clone(),
            date: Some(machine.date.clone()),
            version: Some(machine.version.clone()),
            commit: None,
            source: None,
            note: machine.note.clone(),
        },
        host: host(machine),
        device: devices.collect(),
        point,
    }
}

fn host(machine: &Machine) -> Host {
    let mut prov = Provenances::from([("cores".to_owned(), Provenance::Given)]);
    if machine.dram_bytes.is_some() {
        prov.insert("dram_bytes".to_owned(), Provenance::Given);
    }
    if let Some((_, provenance)) = machine.ingest_bw {
        prov.insert("ingest_bw_Bps".to_owned(), provenance);
    }
    if machine.watts.core.is_some() {
        prov.insert("core_W".to_owned(), Provenance::Assumed);
    }
    Host {
        cores: machine.cores,
        ingest_bw_Bps: machine.ingest_bw.map(|(bandwidth, _)| bandwidth),
        dram_bytes: machine.dram_bytes,
        idle_W: None,
        core_W: machine.watts.core,
        price_usd: None,
        prov: Some(prov),
    }
}

fn device(found: &Found, machine: &Machine, subject: usize) -> Device {
    let about = &machine.devices[subject];
    let own = |cell: &&Cell| cell.subject == subject && cell.overload.is_none();
    let plain = || found.cells.iter().filter(own);
    let best = |side, samples: fn(&Cell) -> &Samples, bytes: fn(&Cell) -> u64| {
        let cells = plain().filter(|cell| cell.side == side);
        cells.filter_map(|cell| bandwidth(bytes(cell), samples(cell))).max()
    };
    let whole: fn(&Cell) -> u64 = |cell| cell.bytes;
    let device = Device {
        cores: about.cores,
        dram_bytes: None,
        int_read_Bps: best(Where::Drive, |cell| &cell.load, whole),
        int_write_Bps: best(Where::Drive, |cell| &cell.store, |cell| cell.stored_bytes),
        ext_read_Bps: best(Where::Host, |cell| &cell.load, whole),
        ext_write_Bps: found
            .written
            .get(subject)
            .and_then(|(times, bytes)| bandwidth(*bytes, times)),
        link_bw_Bps: None,
        // The drive and the host are measured one after the other, never both at once.
        media_bw_Bps: None,
        idle_W: machine.watts.drive.map(|(idle, _)| idle),
        active_W: machine.watts.drive.map(|(_, active)| active),
        price_usd: None,
        capacity_bytes: about.capacity_bytes,
        target: about.target.clone(),
        note: about.note.clone(),
        prov: None,
    };
    let known = [
        ("cores", device.cores.is_some(), Provenance::Given),
        ("int_read_Bps", device.int_read_Bps.is_some(), Provenance::Measured),
        ("int_write_Bps", device.int_write_Bps.is_some(), Provenance::Measured),
        ("ext_read_Bps", device.ext_read_Bps.is_some(), Provenance::Measured),
        ("ext_write_Bps", device.ext_write_Bps.is_some(), Provenance::Measured),
        ("capacity_bytes", device.capacity_bytes.is_some(), Provenance::Given),
        ("idle_W", device.idle_W.is_some(), Provenance::Assumed),
        ("active_W", device.active_W.is_some(), Provenance::Assumed),
    ];
    let known = known.into_iter().filter(|(_, known, _)| *known);
    let prov = known.map(|(key, _, provenance)| (key.to_owned(), provenance)).collect();
    Device { prov: Some(prov), ..device }
}

/// Returns the bytes per second at the median time; `None` without samples.
#[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss)]
pub(super) fn bandwidth(bytes: u64, samples: &Samples) -> Option<u64> {
    let quartiles = samples.quartiles()?;
    let bandwidth = (bytes as f64 / quartiles.median) as u64;
    (bandwidth > 0).then_some(bandwidth)
}

fn point(cell: &Cell, machine: &Machine) -> Option<Point> {
    Some(Point {
        kernel: cell.kernel.to_owned(),
        r#where: cell.side,
        device: machine.devices[cell.subject].name.clone(),
        units: cell.units as u64,
        bytes: cell.bytes,
        work: (cell.work > 0).then_some(cell.work),
        layout: None,
        overlap: Overlap::Serial,
        load_s: cell.load.timing()?,
        comp_s: cell.comp.timing()?,
        store_s: cell.store.timing(),
        pipelined_s: cell.pipelined.timing(),
        energy_J: energy(cell, machine),
        overload: cell.overload,
        prov: Provenance::Measured,
        note: cell.note.map(str::to_owned),
    })
}

/// Returns the energy by a counter; else CPU time by the power that a working core, or the drive,
/// adds.
fn energy(cell: &Cell, machine: &Machine) -> Option<Energy> {
    if let Some(energy) = cell.joules.energy(Source::Rapl) {
        return Some(energy);
    }
    let watts = match cell.side {
        Where::Host => machine.watts.core?,
        Where::Drive => machine.watts.drive.map(|(idle, active)| active - idle)?,
    };
    let quartiles = cell.cpu.quartiles()?;
    Some(Energy {
        median: quartiles.median * watts,
        p25: Some(quartiles.p25 * watts),
        p75: Some(quartiles.p75 * watts),
        n: Some(quartiles.n),
        source: Source::CpuSeconds,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::{Overload, OverloadKind};
    use csd_kernels::registry;

    fn samples(values: [f64; 3]) -> Samples {
        let mut samples = Samples::default();
        values.iter().for_each(|value| samples.push(*value));
        samples
    }

    fn found() -> Found {
        let kernel = registry::by_name("vector-add").unwrap();
        let cell = |side, units| {
            let mut cell = Cell::new(kernel, (0, side), units, 2 << 20);
            (cell.load, cell.comp) = (samples([0.3, 0.1, 0.2]), samples([0.02, 0.01, 0.03]));
            (cell.pipelined, cell.cpu) = (samples([0.21; 3]), samples([0.2; 3]));
            cell.work = 1 << 18;
            cell
        };
        let mut drive = cell(Where::Drive, 2);
        (drive.store, drive.stored_bytes) = (samples([0.5; 3]), 1 << 20);
        let mut overloaded = cell(Where::Host, 1);
        let kind = OverloadKind::Memory;
        overloaded.overload = Some(Overload { kind, memory_bytes: Some(1 << 20), rivals: None });
        let cells = vec![cell(Where::Host, 1), drive, overloaded];
        Found { cells, written: vec![(samples([0.25; 3]), 1 << 20)], warnings: Vec::new() }
    }

    fn machine() -> Machine {
        Machine {
            text: "a box".to_owned(),
            date: "2026-11-21".to_owned(),
            version: "0.1.0".to_owned(),
            cores: 2,
            devices: vec![About { name: "drive".to_owned(), ..About::default() }],
            watts: Watts { core: Some(10.0), drive: Some((2.0, 7.0)) },
            ..Machine::default()
        }
    }

    #[test]
    fn a_profile_is_sound_and_says_where_its_numbers_come_from() {
        let profile = build_profile(&found(), &machine());
        let again = Profile::parse(&profile.to_toml());
        assert_eq!(again.unwrap_or_else(|faults| panic!("{faults}")), profile);
        let device = &profile.device["drive"];
        assert_eq!(
            (device.ext_read_Bps, device.int_read_Bps),
            (Some(10_485_760), Some(10_485_760))
        );
        let mebibytes = |bandwidth: Option<u64>| bandwidth.map(|bandwidth| bandwidth >> 20);
        assert_eq!(
            (mebibytes(device.ext_write_Bps), mebibytes(device.int_write_Bps)),
            (Some(4), Some(2))
        );
        let prov = device.prov.as_ref().unwrap();
        assert_eq!(prov["int_write_Bps"], Provenance::Measured);
        assert!(!prov.contains_key("link_bw_Bps"));
        let point = &profile.point[1];
        assert_eq!((point.load_s.median, point.load_s.n), (0.2, Some(3)));
        assert_eq!(point.energy_J.as_ref().unwrap().source, Source::CpuSeconds);
        assert!((point.energy_J.as_ref().unwrap().median - 1.0).abs() < 1e-12);
        assert!(profile.point[2].overload.is_some());
    }

    #[test]
    fn what_a_counter_measured_stands_before_watts() {
        let mut found = found();
        found.cells[0].joules = samples([4.0, 3.0, 5.0]);
        let profile = build_profile(&found, &machine());
        let energy = profile.point[0].energy_J.as_ref().unwrap();
        assert_eq!((energy.source, energy.median, energy.n), (Source::Rapl, 4.0, Some(3)));
        let other = profile.point[1].energy_J.as_ref().unwrap();
        assert_eq!(other.source, Source::CpuSeconds);
        Profile::parse(&profile.to_toml()).unwrap_or_else(|faults| panic!("{faults}"));
    }

    #[test]
    fn drives_that_differ_are_devices_of_their_own() {
        let mut found = found();
        let mut other = found.cells[0].clone();
        (other.subject, other.load) = (1, samples([0.4; 3]));
        found.cells.push(other);
        let mut machine = machine();
        machine.devices.push(About { name: "slow".to_owned(), ..About::default() });
        let profile = build_profile(&found, &machine);
        Profile::parse(&profile.to_toml()).unwrap_or_else(|faults| panic!("{faults}"));
        assert_eq!(profile.device["drive"].ext_read_Bps, Some(10_485_760));
        assert_eq!(profile.device["slow"].ext_read_Bps, Some(5_242_880));
        assert_eq!(profile.device["slow"].ext_write_Bps, None, "not measured");
        let devices: Vec<_> = profile.point.iter().map(|point| point.device.as_str()).collect();
        assert_eq!(devices, ["drive", "drive", "drive", "slow"]);
    }

    #[test]
    fn what_was_not_measured_is_left_out() {
        let machine = Machine { watts: Watts::default(), ..machine() };
        let mut found = found();
        found.cells.truncate(1);
        found.written.clear();
        let profile = build_profile(&found, &machine);
        let device = &profile.device["drive"];
        assert_eq!((device.int_read_Bps, device.ext_write_Bps), (None, None));
        assert_eq!((profile.host.core_W, profile.host.ingest_bw_Bps), (None, None));
        assert!(profile.point[0].energy_J.is_none() && profile.point[0].store_s.is_none());
    }
}
