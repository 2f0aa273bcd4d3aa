//! Profiles: what a host and its drives were measured, or published, to do. Schema 1.
//!
//! The contract is `docs/internals/profile.md`; its golden files are this module's tests. Never
//! takes an absent number for 0, and never stops at the first fault. Invariant: a profile that is
//! read keeps every rule of the contract.

mod keys;
mod read;
mod write;

use std::collections::BTreeMap;
use std::fmt;

/// Version of the contract.
pub const SCHEMA: i64 = 1;

/// Where a number comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Provenance {
    /// Printed in a source.
    Given,
    /// Measured.
    Measured,
    /// Solved from other numbers.
    Inferred,
    /// Chosen.
    Assumed,
}

/// Who computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Where {
    /// The host.
    Host,
    /// The drive.
    Drive,
}

/// How the data lay.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Layout {
    /// Dealt over drives.
    Spread,
    /// Split by value.
    Range,
    /// On one drive.
    Whole,
}

/// Whether loading ended before computing began.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Overlap {
    /// It did.
    Serial,
    /// Both went on at once.
    Pipelined,
}

/// Who says what a run's energy was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Source {
    /// The processor's own counters.
    Rapl,
    /// A meter outside.
    Meter,
    /// Nobody: CPU time by the watts of the profile.
    CpuSeconds,
}

/// What a host was short of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum OverloadKind {
    /// Memory.
    Memory,
    /// Time on its cores.
    Cpu,
    /// The drives' bandwidth.
    Io,
}

/// Provenance of the numbers of a table, by key.
pub type Provenances = BTreeMap<String, Provenance>;

/// A profile.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Profile {
    /// [`SCHEMA`].
    pub schema: i64,
    /// Where the numbers come from.
    pub meta: Meta,
    /// The machine that uses the drives.
    pub host: Host,
    /// Models of drives, by name.
    pub device: BTreeMap<String, Device>,
    /// Measurements.
    pub point: Vec<Point>,
}

macro_rules! optional_struct {
    ($(#[$doc:meta])* $name:ident { $($(#[$field_doc:meta])* $field:ident: $kind:ty),* $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, serde::Serialize)]
        #[allow(non_snake_case)] // the contract's names end in units, as physics writes them
        pub struct $name {
            $(
                $(#[$field_doc])*
                #[serde(skip_serializing_if = "Absent::absent")]
                pub $field: $kind,
            )*
        }
    };
}

optional_struct! {
    /// Where the numbers come from.
    Meta {
        /// What was measured, for people.
        machine: String,
        /// Day of measurement or publication, `YYYY-MM-DD`.
        date: Option<String>,
        /// Version of the program that measured.
        version: Option<String>,
        /// Its commit.
        commit: Option<String>,
        /// DOI or address of a published profile.
        source: Option<String>,
        /// Anything else.
        note: Option<String>,
    }
}

optional_struct! {
    /// The machine that uses the drives.
    Host {
        /// Cores that a kernel can use.
        cores: u64,
        /// Bytes per second that it can take in from all drives together.
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

optional_struct! {
    /// A model of drive.
    Device {
        /// Cores or compute units that a kernel can use inside.
        cores: Option<u64>,
        /// Memory for kernels inside, bytes.
        dram_bytes: Option<u64>,
        /// Media to the drive's own memory, bytes per second.
        int_read_Bps: Option<u64>,
        /// The drive's own memory to media, bytes per second.
        int_write_Bps: Option<u64>,
        /// Media to the host, bytes per second.
        ext_read_Bps: Option<u64>,
        /// Host to media, bytes per second.
        ext_write_Bps: Option<u64>,
        /// What its link takes of the host's ingest bandwidth, bytes per second.
        link_bw_Bps: Option<u64>,
        /// Power at rest, W.
        idle_W: Option<f64>,
        /// Power at work, W.
        active_W: Option<f64>,
        /// Price, US dollars.
        price_usd: Option<f64>,
        /// Capacity, bytes.
        capacity_bytes: Option<u64>,
        /// Address of the drive that was measured.
        target: Option<String>,
        /// Anything else.
        note: Option<String>,
        /// Provenance of the numbers above.
        prov: Option<Provenances>,
    }
}

optional_struct! {
    /// One kernel on one system.
    Point {
        /// Name of the kernel.
        kernel: String,
        /// Who computes.
        r#where: Where,
        /// The drive that computes, or whose bytes the host loads.
        device: String,
        /// Host cores, or cores or compute units of the drive, at work.
        units: u64,
        /// Working set, bytes.
        bytes: u64,
        /// Units of work that the kernel counts.
        work: Option<u64>,
        /// How the data lay.
        layout: Option<Layout>,
        /// Whether loading ended before computing began.
        overlap: Overlap,
        /// Transfer time, T_tx.
        load_s: Timing,
        /// Compute time, T_comp.
        comp_s: Timing,
        /// Time to write the result back.
        store_s: Option<Timing>,
        /// Time of a whole run that loads and computes at once, storing aside.
        pipelined_s: Option<Timing>,
        /// Energy of a whole run, beyond what stands idle.
        energy_J: Option<Energy>,
        /// What the host had to bear meanwhile.
        overload: Option<Overload>,
        /// Provenance of the times.
        prov: Provenance,
        /// Anything else.
        note: Option<String>,
    }
}

optional_struct! {
    /// A time, and how it spread over runs.
    Timing {
        /// Median, seconds.
        median: f64,
        /// First quartile, seconds.
        p25: Option<f64>,
        /// Third quartile, seconds.
        p75: Option<f64>,
        /// Number of runs.
        n: Option<u64>,
        /// Provenance, when it is not the point's.
        prov: Option<Provenance>,
    }
}

optional_struct! {
    /// Energy of a run, and how it spread over runs.
    Energy {
        /// Median, joules.
        median: f64,
        /// First quartile, joules.
        p25: Option<f64>,
        /// Third quartile, joules.
        p75: Option<f64>,
        /// Number of runs.
        n: Option<u64>,
        /// Who says so.
        source: Source,
    }
}

/// What a host lacked while a point was measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize)]
pub struct Overload {
    /// What was short.
    pub kind: OverloadKind,
    /// Memory that the kernel could use, bytes: for [`OverloadKind::Memory`] only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
    /// Busy threads, or readers of the same drives: for the other kinds only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rivals: Option<u64>,
}

/// Whether a key is left out of the normal form.
trait Absent {
    fn absent(&self) -> bool {
        false
    }
}

impl<T> Absent for Option<T> {
    fn absent(&self) -> bool {
        self.is_none()
    }
}

impl Absent for String {}
impl Absent for u64 {}
impl Absent for f64 {}
impl Absent for Where {}
impl Absent for Overlap {}
impl Absent for Provenance {}
impl Absent for Timing {}
impl Absent for Source {}

/// A fault of a profile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FaultAt {
    /// Path of the key, such as `point[3].load_s.median`.
    pub path: String,
    /// What stands there and what was expected.
    pub why: String,
}

/// All faults of a profile: the user's file is at fault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Faults(pub Vec<FaultAt>);

impl fmt::Display for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, fault) in self.0.iter().enumerate() {
            let newline = if index == 0 { "" } else { "\n" };
            write!(f, "{newline}{}: {}", fault.path, fault.why)?;
        }
        Ok(())
    }
}

impl std::error::Error for Faults {}

impl Profile {
    /// Reads a profile.
    ///
    /// # Errors
    /// Every fault found, in the order of the file's tables; never empty.
    pub fn parse(text: &str) -> Result<Self, Faults> {
        read::profile(text).map_err(Faults)
    }

    /// The profile as a TOML file's text.
    #[must_use]
    pub fn to_toml(&self) -> String {
        write::profile(self)
    }
}

#[cfg(test)]
mod tests;
