//! `csd array add`: more drives for an array that has objects.
//!
//! Moves no object unless `--rebalance` says so. Invariants: a new drive is listed under `drives`
//! in the array file only after it holds every name ([`csd_store::catalogue::grow`]); before, it is
//! listed under `joining`. An interrupted command leaves the old array, which stays usable.

use std::path::PathBuf;

use csd_store::array::{ArrayFile, DriveOptions, DriveRecord, Plan};
use csd_store::catalogue;
use serde_json::json;

use super::lock::{Lock, Writers};
use super::start::{self, NewDrive};
use super::{Local, media, options, peers, process, rebalance};
use crate::cli;
use crate::context::{Context, with_plan};
use crate::report::{Failure, Report};
use crate::units::counted;

/// Adds drives, and moves objects to them if that was asked for.
pub(crate) fn add(options: &cli::Add, context: &Context) -> Result<Report, Failure> {
    let mut report = join_all(options, context)?;
    if options.rebalance {
        let all = cli::Rebalance { names: Vec::new(), rate: None };
        let moved = rebalance::rebalance(&all, context).map_err(|failure| {
            let why = &failure.message;
            let message =
                format!("the drives are added, `csd array rebalance` does the rest: {why}");
            Failure { message, ..failure }
        })?;
        report.text += &moved.text;
        report.result["rebalance"] = moved.result;
        report.degraded |= moved.degraded;
        report.warnings.extend(moved.warnings);
    }
    Ok(report)
}

fn join_all(options: &cli::Add, context: &Context) -> Result<Report, Failure> {
    let path = context.array_path();
    let _lock = Lock::take(path)?;
    let _writers = Writers::exclude(path)?;
    let mut local = Local::load(path)?;
    let warnings = discard(&mut local)?;
    // Every drive must answer, so that every name ever written is found.
    with_plan(&Plan::new(&local.file), context.options()?, async |array| {
        Ok(catalogue::grow::all_up(array)?)
    })?;
    let (before, places) = (local.file.drives.len(), local.file.places());
    local.file.joining = match options.drives {
        Some(drives) => planned(options, &local, drives)?,
        None => given(options, &local.file)?,
    };
    // Checks names and the number of drives.
    local.file.check().map_err(Failure::usage)?;
    local.save()?;
    let names = match join(options, &mut local, places, context) {
        Ok(names) => names,
        Err(failure) => {
            let left = discard(&mut local);
            let but = left.err().map_or_else(String::new, |error| format!("; {}", error.message));
            let message = format!("the array is as it was: {}{but}", failure.message);
            return Err(Failure { message, ..failure });
        }
    };
    local.file.admit();
    local.save()?;
    peers::write(&local)?;
    Ok(report(&local, context, before, names).with_warnings(warnings))
}

/// Returns records for `count` new drives on this machine.
fn planned(options: &cli::Add, local: &Local, count: u16) -> Result<Vec<DriveRecord>, Failure> {
    let like = local.file.drives.iter().rev().find(|drive| drive.media.is_some());
    let in_memory = like.is_some_and(DriveRecord::is_in_memory);
    let media = if in_memory { cli::Media::Memory } else { cli::Media::File };
    let size_bytes = options.size.or(like.and_then(|drive| drive.size_bytes));
    let cores_given = options.drive.given.contains_key("cores");
    let cores = like.and_then(|drive| drive.cores).filter(|_| !cores_given);
    let mut drives = Vec::new();
    for (index, name) in free_names(&local.file).take(usize::from(count)).enumerate() {
        let new = NewDrive {
            media: options.media.unwrap_or(media),
            size_bytes: size_bytes.unwrap_or(start::SIZE_BYTES),
            cores: cores.unwrap_or(options.drive.tuning.cores.into()),
            options: options::of_new(&options.drive.given, like, index)?,
        };
        options::leave_blocks(new.size_bytes, &new.options)?;
        let path: PathBuf = local.folder.join(format!("{name}.media"));
        if new.media == cli::Media::File && path.symlink_metadata().is_ok() {
            let path = path.display();
            return Err(Failure::run(format!("{path} is there already: move it away")));
        }
        drives.push(new.drive(&local.file.uuid, &name, &local.home.relative(&path)));
    }
    Ok(drives)
}

/// Returns records for the drives at the given URLs.
fn given(options: &cli::Add, file: &ArrayFile) -> Result<Vec<DriveRecord>, Failure> {
    if let Some(option) = options.drive.given.keys().next() {
        let why = format!("--{option} is for new drives on this machine: say --drives");
        return Err(Failure::usage(why));
    }
    let mut drives: Vec<DriveRecord> = Vec::new();
    for (name, url) in free_names(file).zip(&options.urls) {
        let address: csd_initiator::Address = url.parse().map_err(Failure::usage)?;
        let mut known = file.drives.iter().chain(&drives);
        if let Some(same) = known.find(|drive| drive.nqn() == address.nqn) {
            let (nqn, name) = (address.nqn, &same.name);
            return Err(Failure::usage(format!("{nqn} is drive {name} of this array already")));
        }
        let url = url.clone();
        let (media, media_uuid, size_bytes, cores, pid) = (None, None, None, None, None);
        let options = DriveOptions::new();
        let place = None;
        let record =
            DriveRecord { name, url, place, media, media_uuid, size_bytes, cores, pid, options };
        drives.push(record);
    }
    Ok(drives)
}

fn free_names(file: &ArrayFile) -> impl Iterator<Item = String> {
    let names = (file.places()..).map(|number| format!("d{number}"));
    names.filter(|name| file.all().all(|drive| drive.name != *name))
}

/// Starts the joining drives if they are on this machine, and copies every name to all of them.
/// Returns the number of names.
fn join(
    options: &cli::Add,
    local: &mut Local,
    before: usize,
    context: &Context,
) -> Result<usize, Failure> {
    if options.drives.is_some() {
        let places: Vec<usize> = (0..local.file.joining.len()).collect();
        start::start(local, |file| &mut file.joining, &places, context)?;
    }
    let mut grown = local.file.clone();
    grown.admit();
    with_plan(&Plan::new(&grown), context.options()?, async move |array| {
        Ok(catalogue::grow::spread(array, before).await?)
    })
}

/// Stops and removes the drives that an interrupted `add` left. They are not part of the array and
/// hold only copies of names. Returns warnings about media that are not deleted.
pub(super) fn discard(local: &mut Local) -> Result<Vec<String>, Failure> {
    let joining = std::mem::take(&mut local.file.joining);
    if joining.is_empty() {
        return Ok(Vec::new());
    }
    let mut warnings = Vec::new();
    for drive in &joining {
        process::terminate(drive, &local.folder);
    }
    for drive in &joining {
        let mut drive = drive.clone();
        if process::is_running(&drive, &local.folder) {
            media::record(&mut drive, &local.home)?;
            process::wait_end(&drive, &local.folder)?;
        }
        match media::deletable(&[drive.clone()], &local.home, true) {
            Ok(found) => media::delete(&found, &[drive], &local.folder)?,
            Err(failure) => warnings.push(failure.message),
        }
    }
    local.save()?;
    Ok(warnings)
}

fn report(local: &Local, context: &Context, before: usize, names: usize) -> Report {
    let added = &local.file.drives[before..];
    let mut text = String::new();
    for drive in added {
        text.push_str(&format!("{}  added  {}\n", drive.name, context.shown(&drive.url)));
    }
    text.push_str(&format!(
        "{} copied to each; the array has {} now, and new objects use all\n",
        counted(names as u64, "name"),
        counted(local.file.drives.len() as u64, "drive")
    ));
    let drives: Vec<_> = added
        .iter()
        .map(|drive| json!({ "name": drive.name, "url": drive.url, "pid": drive.pid }))
        .collect();
    Report::new(text, json!({ "added": drives, "names": names }))
}
