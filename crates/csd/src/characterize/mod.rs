//! `csd characterize`: measures, prints a table, and writes a profile.
//!
//! Finds or starts the drive, and asks the library; the measuring is [`csd_store::characterize`].
//! Invariant: a drive that was started for this is stopped, and its media are gone, whatever
//! happens.

mod cgroup;
mod limited;
mod machine;
mod objects;
mod started;
mod table;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use csd_initiator::Address;
use csd_store::characterize::kernel::{self, Kernel};
use csd_store::characterize::region::Region;
use csd_store::characterize::{
    self, Error, Machine, Options, Overloaded, Place, Survey, Watts, compose, survey,
};
use csd_store::profile::{Overload, OverloadKind, Profile, Provenance};
use serde_json::json;

use crate::cli::characterize::{Burden, Characterize};
use crate::clock;
use crate::context::{Context, runtime};
use crate::progress::Steps;
use crate::report::{Class, Failure, Report};
use objects::Objects;
use started::Started;

/// Measures what was asked for, and writes the profile.
pub(crate) fn characterize(options: &Characterize, context: &Context) -> Result<Report, Failure> {
    if options.limited {
        return limited::work(&context.options()?);
    }
    let kernels = kernels(&options.kernels)?;
    check_output(&options.output)?;
    let target = Target::find(options, &kernels, context)?;
    let surveyed = survey(&runtime(), &target.address, &context.options()?)?;
    let mut warnings = Vec::new();
    let kernels = target.fit(kernels, &mut warnings);
    let machine_cores = machine::cores();
    let counts = match &options.cores {
        Some(counts) => counts.0.clone(),
        None => (1..=machine_cores).collect(),
    };
    if let Some(most) = counts.iter().max().filter(|most| **most > machine_cores) {
        warnings.push(format!("{most} cores asked for, this machine has {machine_cores}"));
    }
    let measured = Options {
        runtime: runtime(),
        connection: context.options()?,
        address: target.address.clone(),
        place: target.place(&surveyed, &options.size, &kernels)?,
        compute_nsid: surveyed.compute_nsid,
        kernels,
        sizes: sorted(&options.size),
        host_units: counts.clone(),
        drive_units: counts,
        repeat: options.repeat.into(),
        overloads: overloads(options, &target)?,
    };
    let bar = Steps::new(context);
    let found = characterize::characterize(&measured, &|step| bar.show(step))?;
    drop(bar);
    warnings.extend(found.warnings.iter().cloned());
    let machine = describe(options, &target, &surveyed, &measured)?;
    target.end()?;
    let profile = compose(&found, &machine);
    write(&profile, &options.output)?;
    let text = table::text(&found, &profile, &options.output);
    let result = json!({
        "profile": profile,
        "file": options.output,
        "cells": table::cells(&found),
    });
    Ok(Report { warnings, ..Report::new(text, result) })
}

/// The kernels by name.
fn kernels(names: &[String]) -> Result<Vec<Arc<dyn Kernel>>, Failure> {
    let known = || kernel::all().iter().map(|kernel| kernel.name()).collect::<Vec<_>>().join(", ");
    let named = |name: &String| {
        let kernel = kernel::named(name.trim()).map(Arc::from);
        kernel.ok_or_else(|| Failure::usage(format!("there is no kernel {name:?}: {}", known())))
    };
    names.iter().map(named).collect()
}

fn sorted(sizes: &[u64]) -> Vec<u64> {
    let mut sizes = sizes.to_vec();
    sizes.sort_unstable();
    sizes.dedup();
    sizes
}

/// What cannot be written at the end is said before minutes of measuring.
fn check_output(path: &Path) -> Result<(), Failure> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    match folder {
        Some(folder) if !folder.is_dir() => {
            Err(Failure::usage(format!("there is no folder {}", folder.display())))
        }
        _ if path.is_dir() => Err(Failure::usage(format!("{} is a folder", path.display()))),
        _ => Ok(()),
    }
}

/// The drive that is measured.
struct Target {
    address: Address,
    url: String,
    kind: Kind,
}

enum Kind {
    /// Started for this.
    Started(Started),
    /// An array's first drive, with an object for each kernel and size.
    Array(Objects),
    /// Named by the user; may it be overwritten?
    Named { write: bool },
}

impl Target {
    fn find(
        options: &Characterize,
        kernels: &[Arc<dyn Kernel>],
        context: &Context,
    ) -> Result<Self, Failure> {
        let (url, kind) = if let Some(url) = &options.drive {
            (url.clone(), Kind::Named { write: options.allow_write })
        } else if context.array_is_named {
            let objects = Objects::put(context, kernels, &sorted(&options.size))?;
            (objects.url.clone(), Kind::Array(objects))
        } else {
            let started = Started::new(options, kernels)?;
            (started.url.clone(), Kind::Started(started))
        };
        let address = url.parse().map_err(|why| Failure::usage(format!("{url}: {why}")))?;
        Ok(Self { address, url, kind })
    }

    /// Whether the drive may be overwritten.
    fn writes(&self) -> bool {
        match self.kind {
            Kind::Started(_) => true,
            Kind::Named { write } => write,
            Kind::Array(_) => false,
        }
    }

    /// The kernels that this drive can be measured with: what lies on a drive that must not be
    /// written is no sorted array.
    fn fit(
        &self,
        kernels: Vec<Arc<dyn Kernel>>,
        warnings: &mut Vec<String>,
    ) -> Vec<Arc<dyn Kernel>> {
        if !matches!(self.kind, Kind::Named { write: false }) {
            return kernels;
        }
        let (fit, not): (Vec<_>, Vec<_>) =
            kernels.into_iter().partition(|kernel| kernel.takes_any_bytes());
        warnings.extend(not.iter().map(|kernel| {
            format!("{} needs data of its own, and the drive is not written", kernel.name())
        }));
        fit
    }

    /// Where working sets lie.
    fn place(
        &self,
        surveyed: &Survey,
        sizes: &[u64],
        kernels: &[Arc<dyn Kernel>],
    ) -> Result<Place, Failure> {
        if kernels.is_empty() {
            return Err(Failure::usage("no kernel is left that this drive can be measured with"));
        }
        let (nsid, bytes, _) = surveyed.block;
        let largest = sizes.iter().copied().max().unwrap_or(0);
        let stores = self.writes() && kernels.iter().any(|kernel| kernel.stores());
        let needed = if stores { 2 * largest } else { largest };
        if needed > bytes {
            return Err(Failure::usage(format!(
                "namespace {nsid} of the drive has {bytes} bytes, {needed} are needed"
            )));
        }
        let regions = match &self.kind {
            Kind::Array(objects) => objects.regions.clone(),
            _ => Vec::new(),
        };
        let region = Region::new(nsid, vec![(0, needed)]);
        let stores_values = self.writes() || matches!(self.kind, Kind::Array(_));
        let values_nsid = surveyed.values_nsid.filter(|_| stores_values);
        Ok(Place { region, regions, values_nsid, write: self.writes() })
    }

    /// Ends what was begun for this.
    fn end(self) -> Result<(), Failure> {
        match self.kind {
            Kind::Array(objects) => objects.remove(),
            Kind::Started(_) | Kind::Named { .. } => Ok(()),
        }
    }
}

/// The burdens, each with how it is measured.
fn overloads(options: &Characterize, target: &Target) -> Result<Vec<Overloaded>, Failure> {
    let mut all = Vec::new();
    let rivals = |kind, count| Overloaded {
        overload: Overload { kind, memory_bytes: None, rivals: Some(count) },
        limited: None,
    };
    for burden in &options.overload {
        match burden {
            Burden::Cpu(count) => {
                let count = count.unwrap_or(machine::cores() as u64);
                all.push(rivals(OverloadKind::Cpu, count));
            }
            Burden::Io(count) => all.push(rivals(OverloadKind::Io, *count)),
            Burden::Memory(sizes) => {
                let measure = limited::measure(&scratch_folder(options), &target.url)?;
                all.extend(sizes.iter().map(|bytes| Overloaded {
                    overload: Overload {
                        kind: OverloadKind::Memory,
                        memory_bytes: Some(*bytes),
                        rivals: None,
                    },
                    limited: Some(Arc::clone(&measure)),
                }));
            }
        }
    }
    Ok(all)
}

/// Folder for media and scratch files.
fn scratch_folder(options: &Characterize) -> PathBuf {
    options.dir.clone().unwrap_or_else(std::env::temp_dir)
}

/// What the profile says beside the measurements.
fn describe(
    options: &Characterize,
    target: &Target,
    surveyed: &Survey,
    measured: &Options,
) -> Result<Machine, Failure> {
    let mut notes = vec![
        "wall clock; drive and host take turns in each repetition".to_owned(),
        match (options.core_watts, options.drive_watts) {
            (None, None) => "no energies: no watts were given",
            _ => "energies are not measured, but CPU seconds of kernels by the watts given",
        }
        .to_owned(),
    ];
    let mut ingest_bw = options.ingest_bw.map(|bandwidth| (bandwidth, Provenance::Given));
    let (mut device_cores, mut device_note) = (None, format!("{}; 1 MiB pieces", surveyed.model));
    match &target.kind {
        Kind::Started(started) => {
            device_cores = Some(started.cores as u64);
            device_note = format!("{device_note}; media: {}", started.media);
            notes.push("drive and host share this machine's cores".to_owned());
            if ingest_bw.is_none() {
                let bandwidth = started::ingest_bandwidth(options, measured)?;
                ingest_bw = Some((bandwidth, Provenance::Measured));
                notes.push(
                    "ingest_bw_Bps: all host cores reading a drive in memory over loopback, which \
                     takes cores, too"
                        .to_owned(),
                );
            }
        }
        Kind::Array(_) => notes.push("one drive of the array, data spread over all".to_owned()),
        Kind::Named { write: false } => notes.push("data as it lay on the drive".to_owned()),
        Kind::Named { write: true } => {}
    }
    Ok(Machine {
        text: machine::text(),
        date: clock::utc()[..10].to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        note: Some(notes.join("; ")),
        cores: machine::cores() as u64,
        dram_bytes: machine::memory_bytes(),
        ingest_bw,
        device: options.device.clone(),
        target: match target.kind {
            // Gone when this ends: nobody can go there.
            Kind::Started(_) => None,
            Kind::Array(_) | Kind::Named { .. } => Some(target.url.clone()),
        },
        device_note: Some(device_note),
        device_cores,
        capacity_bytes: match target.kind {
            // Made as large as the working sets need.
            Kind::Started(_) => None,
            Kind::Array(_) | Kind::Named { .. } => Some(surveyed.block.1),
        },
        watts: Watts { core: options.core_watts, drive: options.drive_watts },
    })
}

/// Writes the profile as a whole, after reading it as everybody else will.
fn write(profile: &Profile, path: &Path) -> Result<(), Failure> {
    let text = profile.to_toml();
    Profile::parse(&text).expect("what was measured makes a sound profile");
    let beside = path.with_extension("new");
    let written = std::fs::write(&beside, text).and_then(|()| std::fs::rename(&beside, path));
    written.map_err(|error| Failure::run(format!("cannot write {}: {error}", path.display())))
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        match error {
            Error::Unable(_) => Self::usage(error),
            Error::Differ(_) => Self {
                class: Class::Differ,
                message: error.to_string(),
                detail: serde_json::Value::Null,
            },
            _ => Self::run(error),
        }
    }
}
