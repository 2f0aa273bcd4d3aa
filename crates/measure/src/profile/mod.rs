//! Profiles: measured or published performance of a host and its drives. Schema 1.
//!
//! `docs/internals/profile.md` is the contract; its golden files are this module's tests. An absent
//! number does not count as 0, and reading continues after the first fault. Invariant: a profile
//! that is read follows every rule of the contract.
//!
//! Modules: `table` declares a table's struct, reader and writer at once, from the lists of keys
//! below; `keys` reads single values, `rules` judges several keys together, `read` and `write` are
//! for whole files.

mod keys;
mod read;
mod rules;
mod table;
mod write;

use std::collections::BTreeMap;

use keys::Keys;
use table::{table, words};

/// Version of the contract.
pub const SCHEMA: i64 = 1;

words! {
    /// Provenance of a number.
    Provenance {
        /// Printed in a source.
        Given = "given",
        /// Measured.
        Measured = "measured",
        /// Solved from other numbers.
        Inferred = "inferred",
        /// Chosen.
        Assumed = "assumed",
    }
}

words! {
    /// Side that computes.
    Where {
        /// The host.
        Host = "host",
        /// The drive.
        Drive = "drive",
    }
}

words! {
    /// Layout of the data.
    Layout {
        /// Spread over the drives.
        Spread = "spread",
        /// Split by value.
        Range = "range",
        /// On one drive.
        Whole = "whole",
    }
}

words! {
    /// Overlap of loading and computing.
    Overlap {
        /// Computing begins after loading has ended.
        Serial = "serial",
        /// Both run concurrently.
        Pipelined = "pipelined",
    }
}

words! {
    /// Source of a run's energy.
    Source {
        /// Counters of the processor.
        Rapl = "rapl",
        /// An external meter.
        Meter = "meter",
        /// No meter: CPU time by the profile's power.
        CpuSeconds = "cpu-seconds",
    }
}

words! {
    /// Scarce resource of a host.
    OverloadKind {
        /// Memory.
        Memory = "memory",
        /// CPU time.
        Cpu = "cpu",
        /// The drives' bandwidth.
        Io = "io",
    }
}

/// Provenance of the numbers of a table, by key.
pub type Provenances = BTreeMap<String, Provenance>;

/// A profile.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Profile {
    /// [`SCHEMA`].
    pub schema: i64,
    /// Description of the profile.
    pub meta: Meta,
    /// Machine that uses the drives.
    pub host: Host,
    /// Models of drives, by name.
    pub device: BTreeMap<String, Device>,
    /// Measurements.
    pub point: Vec<Point>,
}

table! {
    /// Description of a profile.
    Meta {
        /// Description of the measured systems, for people.
        machine: String,
        /// Day of measurement or publication, `YYYY-MM-DD`.
        date: Option<String> = Keys::date,
        /// Version of the program that measured.
        version: Option<String>,
        /// Commit of the program.
        commit: Option<String>,
        /// DOI or address of a published profile.
        source: Option<String>,
        /// Free text.
        note: Option<String>,
    }
}

table! {
    /// The machine that uses the drives.
    Host {
        /// Cores that a kernel can use.
        cores: u64,
        /// Ingest bandwidth from all drives together, bytes per second.
        ingest_bw_Bps: Option<u64>,
        /// Main memory, bytes.
        dram_bytes: Option<u64>,
        /// Power of the idle machine without drives, W.
        idle_W: Option<f64>,
        /// Power that one working core adds, W.
        core_W: Option<f64>,
        /// Price without drives, US dollars.
        price_usd: Option<f64>,
        /// Provenance of the numbers above.
        prov: Option<Provenances>,
    }
}

table! {
    /// A model of drives.
    Device {
        /// Number of cores or compute units for kernels inside.
        cores: Option<u64>,
        /// Memory for kernels inside, bytes.
        dram_bytes: Option<u64>,
        /// Bandwidth from the media to the drive's own memory, bytes per second.
        int_read_Bps: Option<u64>,
        /// Bandwidth from the drive's own memory to the media, bytes per second.
        int_write_Bps: Option<u64>,
        /// Bandwidth from the media to the host, bytes per second.
        ext_read_Bps: Option<u64>,
        /// Bandwidth from the host to the media, bytes per second.
        ext_write_Bps: Option<u64>,
        /// Part of the host's ingest bandwidth that its link occupies, bytes per second.
        link_bw_Bps: Option<u64>,
        /// Read bandwidth of the media, to the drive and to hosts together, bytes per second.
        media_bw_Bps: Option<u64>,
        /// Power at rest, W.
        idle_W: Option<f64>,
        /// Power at work, W.
        active_W: Option<f64>,
        /// Price, US dollars.
        price_usd: Option<f64>,
        /// Capacity, bytes.
        capacity_bytes: Option<u64>,
        /// Address of the measured drive.
        target: Option<String>,
        /// Free text.
        note: Option<String>,
        /// Provenance of the numbers above.
        prov: Option<Provenances>,
    }
    obeys rules::device
}

table! {
    /// Measurements of one kernel on one system.
    Point {
        /// Name of the kernel.
        kernel: String = Keys::name,
        /// Side that computes.
        r#where: Where,
        /// Drive that computes, or whose data the host loads.
        device: String = Keys::name,
        /// Number of host cores, or of cores or compute units of the drive, at work.
        units: u64,
        /// Size of the working set, bytes.
        bytes: u64,
        /// Number of units of work that the kernel counts.
        work: Option<u64>,
        /// Layout of the data.
        layout: Option<Layout>,
        /// Overlap of loading and computing.
        overlap: Overlap,
        /// Transfer time, T_tx.
        load_s: Timing,
        /// Compute time, T_comp.
        comp_s: Timing,
        /// Time to write the result back.
        store_s: Option<Timing>,
        /// Time of a whole run that loads and computes concurrently, without storing.
        pipelined_s: Option<Timing>,
        /// Energy of a whole run above that of the idle system.
        energy_J: Option<Energy>,
        /// Burden of the host during the measurement.
        overload: Option<Overload>,
        /// Provenance of the times.
        prov: Provenance,
        /// Free text.
        note: Option<String>,
    }
}

table! {
    /// A time, and its distribution over runs.
    Timing {
        /// Median, seconds.
        median: f64,
        /// First quartile, seconds.
        p25: Option<f64>,
        /// Third quartile, seconds.
        p75: Option<f64>,
        /// Number of runs.
        n: Option<u64>,
        /// Provenance, if it differs from the point's.
        prov: Option<Provenance>,
    }
    obeys rules::timing
}

table! {
    /// Energy of a run, and its distribution over runs.
    Energy {
        /// Median, joules.
        median: f64,
        /// First quartile, joules.
        p25: Option<f64>,
        /// Third quartile, joules.
        p75: Option<f64>,
        /// Number of runs.
        n: Option<u64>,
        /// Source of the energy.
        source: Source,
    }
    obeys rules::energy
}

table! {
    /// A resource that a host lacked while a point was measured.
    #[derive(Copy, Eq, Hash)]
    Overload {
        /// Scarce resource.
        kind: OverloadKind,
        /// Memory available to the kernel, bytes; for [`OverloadKind::Memory`] only.
        memory_bytes: Option<u64>,
        /// Number of busy threads, or of readers of the same drives; for the other kinds only.
        rivals: Option<u64>,
    }
    obeys rules::overload
}

/// A fault of a profile.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{path}: {why}")]
pub struct FaultAt {
    /// Path of the key, such as `point[3].load_s.median`.
    pub path: String,
    /// The value found and the one expected.
    pub why: String,
}

/// All faults of a profile; the user's file is at fault.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", one_a_line(.0))]
pub struct Faults(pub Vec<FaultAt>);

fn one_a_line(faults: &[FaultAt]) -> String {
    let lines: Vec<String> = faults.iter().map(FaultAt::to_string).collect();
    lines.join("\n")
}

impl Profile {
    /// Reads a profile.
    ///
    /// # Errors
    /// Every fault found, in the order of the file's tables; never empty.
    pub fn parse(text: &str) -> Result<Self, Faults> {
        read::profile(text).map_err(Faults)
    }

    /// Returns the profile as the text of a TOML file.
    #[must_use]
    pub fn to_toml(&self) -> String {
        write::profile(self)
    }
}

#[cfg(test)]
mod tests;
