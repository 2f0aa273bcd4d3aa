//! `csd array replace`: a new drive in the place of another one, and the repair of what it held.
//!
//! Deletes no medium, and stops no drive of another machine. Invariants: before the array file
//! names the new drive, that drive was found to hold nothing of another array, and no object loses
//! bytes unless the user said so. An interrupted command leaves an array file of which `csd array
//! up` and `csd repair` do the rest.

use std::path::PathBuf;

use csd_store::array::{Array, ArrayFile, DriveIndex, DriveOptions, DriveRecord, Plan};
use csd_store::catalogue::rebuild;
use csd_store::{object, repair as pieces};
use serde_json::{Value, json};

use super::lock::{Lock, Writers};
use super::process::ProcessState;
use super::start::{self, NewDrive};
use super::{Local, add, options, peers, process};
use crate::cli;
use crate::context::{Context, with_plan};
use crate::repair;
use crate::report::{Failure, Report};

/// Most names of objects in a message.
const NAMES_SHOWN: usize = 5;

/// Replaces a drive, and repairs all objects.
pub(crate) fn replace(options: &cli::Replace, context: &Context) -> Result<Report, Failure> {
    let replaced = exchange(options, context)?;
    let (drive, rate) = (&options.drive, options.rate);
    let all = cli::repair::Repair { names: Vec::new(), on: cli::repair::On::default(), rate };
    let repaired = repair::repair(&all, context).map_err(|failure| {
        let why = &failure.message;
        let message = format!("drive {drive} is replaced, `csd repair` does the rest: {why}");
        Failure { message, ..failure }
    })?;
    let url = context.shown(&replaced.url);
    let mut text = format!("{drive}  replaced  {url}\n");
    if let Some(medium) = &replaced.medium {
        text += &format!("its former medium is kept: {}\n", medium.display());
    }
    text += &repaired.text;
    let result = json!({
        "drive": drive,
        "url": replaced.url,
        "medium": replaced.medium,
        "repair": repaired.result,
    });
    let mut warnings = replaced.warnings;
    let degraded = repaired.degraded || !warnings.is_empty();
    warnings.extend(repaired.warnings);
    Ok(Report { text, result, warnings, degraded })
}

/// A drive that was replaced.
struct Replaced {
    url: String,
    /// Medium of the drive before, which is kept.
    medium: Option<PathBuf>,
    warnings: Vec<String>,
}

/// Puts the new drive into the array file, and starts it if it is on this machine.
fn exchange(options: &cli::Replace, context: &Context) -> Result<Replaced, Failure> {
    let path = context.array_path();
    let _lock = Lock::take(path)?;
    let _writers = Writers::exclude(path)?;
    let mut local = Local::load(path)?;
    let warnings = add::discard(&mut local)?;
    let found = local.file.drives.iter().position(|drive| drive.name == options.drive);
    let unknown = || Failure::usage(format!("the array has no drive {:?}", options.drive));
    let index = found.ok_or_else(unknown)?;
    let place = local.file.place(index);
    if local.file.os.is_some() {
        return Err(Failure::usage(
            "the drives of this array have operating systems, which a new drive would lack: its \
             drives cannot be replaced",
        ));
    }
    let mut record = match &options.url {
        Some(url) => elsewhere(url, &local.file, index)?,
        None => here(options, &local, index)?,
    };
    record.place = local.file.drives[index].place;
    check_objects(options, &local.file, place, context)?;
    let mut file = local.file.clone();
    let before = std::mem::replace(&mut file.drives[index], record);
    file.check().map_err(Failure::usage)?;
    if options.url.is_some() {
        with_plan(&Plan::new(&file), context.options()?, async move |array: &Array| {
            Ok(rebuild::check_vacant(array, place).await?)
        })?;
    }
    stop(&local, &before)?;
    let medium = local.home.media(&before).map_err(Failure::run)?.filter(|path| path.exists());
    local.file = file;
    local.save()?;
    match options.url {
        Some(_) => drop(peers::write(&local)?),
        None => {
            let started = start::start(&mut local, |file| &mut file.drives, &[index], context);
            started.map_err(|failure| {
                let why = &failure.message;
                let advice = "`csd array up` starts it, `csd repair` does the rest";
                let message = format!("drive {} is replaced, {advice}: {why}", before.name);
                Failure { message, ..failure }
            })?;
        }
    }
    Ok(Replaced { url: local.file.drives[index].url.clone(), medium, warnings })
}

/// Returns the record of a drive at a URL.
fn elsewhere(url: &str, file: &ArrayFile, of: usize) -> Result<DriveRecord, Failure> {
    let address: csd_initiator::Address = url.parse().map_err(Failure::usage)?;
    let others = file.drives.iter().enumerate().filter(|(index, _)| *index != of);
    if let Some((_, same)) = others.into_iter().find(|(_, drive)| drive.nqn() == address.nqn) {
        let (nqn, name) = (address.nqn, &same.name);
        return Err(Failure::usage(format!("{nqn} is drive {name} of this array already")));
    }
    let (name, url) = (file.drives[of].name.clone(), url.to_owned());
    let (media, media_uuid, size_bytes, cores, pid) = (None, None, None, None, None);
    let options = DriveOptions::new();
    let place = None;
    Ok(DriveRecord { name, url, place, media, media_uuid, size_bytes, cores, pid, options })
}

/// Returns the record of a new drive on this machine, with the options of the one before or of the
/// array's last one here.
fn here(options: &cli::Replace, local: &Local, index: usize) -> Result<DriveRecord, Failure> {
    let before = &local.file.drives[index];
    let last = local.file.drives.iter().rev().find(|drive| drive.media.is_some());
    let like = Some(before).filter(|drive| drive.media.is_some()).or(last);
    let in_memory = like.is_some_and(DriveRecord::is_in_memory);
    let media = if in_memory { cli::Media::Memory } else { cli::Media::File };
    let size_bytes = options.size.or(like.and_then(|drive| drive.size_bytes));
    let new = NewDrive {
        media: options.media.unwrap_or(media),
        size_bytes: size_bytes.unwrap_or(start::SIZE_BYTES),
        cores: like.and_then(|drive| drive.cores).unwrap_or(1),
        options: options::of_new(&DriveOptions::new(), like, 0)?,
    };
    options::leave_blocks(new.size_bytes, &new.options)?;
    let free = |path: &PathBuf| path.symlink_metadata().is_err();
    let names = (0..).map(|number: u32| match number {
        0 => format!("{}.media", before.name),
        number => format!("{}-{number}.media", before.name),
    });
    let mut paths = names.map(|name| local.folder.join(name));
    let path = paths.find(free).expect("one of all numbers is free");
    Ok(new.drive(&local.file.uuid, &before.name, &local.home.relative(&path)))
}

/// Checks that no object loses bytes without the drive, unless the user has said that it may.
fn check_objects(
    options: &cli::Replace,
    file: &ArrayFile,
    place: DriveIndex,
    context: &Context,
) -> Result<(), Failure> {
    if options.lossy {
        return Ok(());
    }
    let names = with_plan(&Plan::new(file), context.options()?, async move |array: &Array| {
        let listed = object::list(array).await?;
        Ok(pieces::endangered(array, &listed.sealed, place).await)
    })?;
    refuse_losses(&options.drive, names)
}

/// Refuses to go on without a drive if objects would lose bytes by that.
pub(super) fn refuse_losses(drive: &str, names: Vec<String>) -> Result<(), Failure> {
    if names.is_empty() {
        return Ok(());
    }
    let message = format!(
        "without drive {drive} bytes of these objects would be lost: {}; protect, repair or \
         remove them first, or say --lossy",
        shown(&names)
    );
    let detail = Value::from(names);
    Err(Failure { detail: json!({ "objects": detail }), ..Failure::usage(message) })
}

/// Returns the first of these names for a message.
pub(super) fn shown(names: &[String]) -> String {
    let mut shown: Vec<String> =
        names.iter().take(NAMES_SHOWN).map(|name| format!("{name:?}")).collect();
    if let Some(more) = names.len().checked_sub(NAMES_SHOWN).filter(|more| *more > 0) {
        shown.push(format!("{more} more"));
    }
    shown.join(", ")
}

/// Stops a drive that this array has started.
pub(super) fn stop(local: &Local, drive: &DriveRecord) -> Result<(), Failure> {
    if process::state(drive, &local.folder) == ProcessState::Runs {
        process::terminate(drive, &local.folder);
        process::wait_end(drive, &local.folder)?;
    }
    Ok(())
}
