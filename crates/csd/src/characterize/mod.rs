//! `csd characterize`: measures, prints a table, and writes a profile.
//!
//! Finds or starts the drives; [`csd_measure::characterize`] measures. Invariant: a drive that this
//! command started is stopped and its media are deleted, whatever happens.

mod intake;
mod limited;
mod machine_and_devices;
mod objects;
mod started;
mod table;
mod target;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use csd_kernels::kernel::Kernel;
use csd_kernels::registry::{self, BUILTIN};
use csd_measure::characterize::{self, Error, Options, Overloaded, build_profile};
use csd_measure::energy::{Energies, Given};
use csd_measure::machine;
use csd_measure::profile::{Overload, OverloadKind, Profile};
use serde_json::json;

use crate::cli::characterize::{Burden, Characterize};
use crate::context::Context;
use crate::progress::Steps;
use crate::report::{Class, Failure, Report};
use crate::runtime::runtime;
use crate::silences::Silences;
use intake::HostIngest;
use target::Target;

/// Measures the requested kernels and writes the profile.
pub(crate) fn characterize(options: &Characterize, context: &Context) -> Result<Report, Failure> {
    if options.limited {
        return limited::work(&context.options()?);
    }
    let kernels = kernels(&options.kernels)?;
    crate::target::check(&options.output)?;
    let target = Target::find(options, &kernels, context)?;
    let mut warnings = target.left_out();
    let kernels = target.fit(kernels, &mut warnings);
    let subjects = target.subjects(&options.size, &kernels)?;
    let counts = counts(options, &mut warnings);
    if let Some(limits) = machine::limits_text() {
        warnings.push(format!("this process is {limits}: the profile is of that share"));
    }
    let given = Given {
        core_watts: options.core_watts.is_some(),
        drive_watts: options.drive_watts.is_some(),
    };
    let energies = Energies::find(&runtime(), &options.powercap, given, &subjects)?;
    let measured = Options {
        runtime: runtime(),
        connection: context.options()?,
        subjects,
        kernels,
        sizes: sorted(&options.size),
        host_units: counts.clone(),
        drive_units: counts,
        repeat: options.repeat.into(),
        overloads: overloads(options, context)?,
        meter: energies.meter.clone(),
        interrupted: target.interrupted(),
    };
    let silences = Silences::watch(target.named(), &measured.connection)?;
    let bar = Steps::new(context);
    let mut found = characterize::characterize(&measured, &|step| bar.show(step))?;
    drop(bar);
    warnings.extend(found.warnings.iter().cloned());
    let ingest = HostIngest::measure(options, &target, &measured, &found, context)?;
    let silences = silences.end()?;
    let merged = found.merge();
    let mut machine = machine_and_devices::machine(options, &target, merged, &ingest, &energies);
    machine.note =
        Some(machine.note.iter().chain(&silences).cloned().collect::<Vec<_>>().join("; "));
    target.end()?;
    let profile = build_profile(&found, &machine);
    write(&profile, &options.output)?;
    let mut text = table::text(&found, &profile, &machine.devices);
    for line in [ingest.text(), Some(energies.words.clone())].into_iter().flatten() {
        text.push_str(&format!("{line}\n"));
    }
    text.push_str(&format!("profile: {}\n", options.output.display()));
    let result = json!({
        "profile": profile,
        "file": options.output,
        "cells": table::cells(&found, &machine.devices),
        "intake": ingest.json(),
        "energy": energies.words,
    });
    let mut report = Report { warnings, ..Report::new(text, result) };
    silences.into_iter().for_each(|silence| report.warn(silence));
    Ok(report)
}

/// Returns the numbers of cores to measure with.
fn counts(options: &Characterize, warnings: &mut Vec<String>) -> Vec<usize> {
    let machine_cores = machine::cores();
    let counts = match &options.cores {
        Some(counts) => counts.0.clone(),
        None => (1..=machine_cores).collect(),
    };
    if let Some(most) = counts.iter().max().filter(|most| **most > machine_cores) {
        warnings.push(format!("{most} cores asked for, this process may use {machine_cores}"));
    }
    counts
}

/// Returns the kernels with these names.
fn kernels(names: &[String]) -> Result<Vec<&'static dyn Kernel>, Failure> {
    let known = || BUILTIN.iter().map(|kernel| kernel.name()).collect::<Vec<_>>().join(", ");
    let named = |name: &String| {
        let kernel = registry::by_name(name.trim());
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

/// Returns the overloads, each with the function that measures it if it limits memory.
fn overloads(options: &Characterize, context: &Context) -> Result<Vec<Overloaded>, Failure> {
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
                let measure = limited::measure(&scratch_folder(options), context.secrets_path())?;
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

/// Returns the folder for media and scratch files.
fn scratch_folder(options: &Characterize) -> PathBuf {
    options.dir.clone().unwrap_or_else(std::env::temp_dir)
}

/// Writes the profile atomically, after checking that it parses.
fn write(profile: &Profile, path: &Path) -> Result<(), Failure> {
    let text = profile.to_toml();
    Profile::parse(&text).expect("what was measured makes a sound profile");
    crate::target::replace(path, &text)
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        match error {
            Error::Unable(_) => Self::usage(error),
            Error::Differ(_) => Self::new(Class::Differ, error),
            _ => Self::run(error),
        }
    }
}
