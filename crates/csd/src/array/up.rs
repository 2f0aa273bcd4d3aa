//! `csd array up`.
//!
//! Invariants: no drive is started before the media of all drives are checked. Missing media of an
//! array that may hold objects are not created again unless the user asks for it; the other drives
//! are started. A first start that fails leaves nothing: no drive, medium or array file.

use std::path::{Path, PathBuf};

use csd_nvme::controller::connect::is_nqn;
use csd_os::os_folder::remove_if_there;
use csd_store::array::{
    ArrayFile, ArrayFolder, DEFAULT_FOLDER, DriveRecord, FileError, Plan, SCHEMA,
};
use serde_json::json;

use super::lock::Lock;
use super::media::{self, Found};
use super::options::{self, Requested};
use super::process::{self, ProcessState};
use super::replace::stop;
use super::start::{self, NewDrive};
use super::{Local, add, home, oses, peers, rebuild};
use crate::cli;
use crate::context::Context;
use crate::report::{Failure, Report};
use crate::runtime::random;
use crate::units::hex;

/// Default number of drives of a new array.
const DRIVES: u16 = 2;

/// Starts all drives that are not running.
pub(crate) fn up(options: &cli::Up, context: &Context) -> Result<Report, Failure> {
    let path = context.array_path();
    let _lock = Lock::take(path)?;
    let home = home(path)?;
    let (mut file, is_new) = match ArrayFile::load(path) {
        Ok(file) => (file, false),
        Err(FileError::Missing { .. }) => (plan(options, path, &home)?, true),
        Err(error) => return Err(error.into()),
    };
    check_number(options, &file, path)?;
    redefine(options, &mut file, &home)?;
    let (size, media, given) = (options.size, options.media, &options.drive.given);
    options::check(&Requested { size, media, given }, &file, path)?;
    // An invalid secrets file is reported before anything is started.
    context.secrets()?;
    let mut local = Local::new(path, home, file)?;
    let mut warnings = add::discard(&mut local)?;
    let Stopped { places, absent, running } = stopped(options, &mut local)?;
    oses::choose(options, &mut local, places.len())?;
    for &place in &places {
        let drive = &local.file.drives[place];
        if drive.pid.is_some() && drive.is_in_memory() {
            let name = &drive.name;
            warnings.push(format!("drive {name} keeps its data in memory and came up empty"));
        }
    }
    let made = if is_new { media::missing(&local) } else { Vec::new() };
    let tried = start::try_all(&mut local, |file| &mut file.drives, &places, context);
    let is_all = |failures: &Vec<_>| running == 0 && failures.len() == places.len();
    let failures = match tried {
        Ok(failures) if failures.is_empty() || !(is_new || is_all(&failures)) => failures,
        failed => {
            undo(&mut local, &places, is_new.then_some(&made))?;
            return Err(failed.map_or_else(|failure| failure, |mut all| all.swap_remove(0).1));
        }
    };
    warnings.extend(absent);
    for (place, failure) in &failures {
        let (name, why) = (&local.file.drives[*place].name, &failure.message);
        warnings.push(format!("{why}; {}", replacement(name)));
    }
    if failures.len() < places.len() {
        warnings.extend(rebuild::after_start(&Plan::new(&local.file), context)?);
    }
    let oses = oses::start(&local, context)?;
    let started = places.iter().filter(|place| failures.iter().all(|(failed, _)| failed != *place));
    let names: Vec<String> = started.map(|place| local.file.drives[*place].name.clone()).collect();
    Ok(report(&local.file, context, &names, &oses).with_warnings(warnings))
}

/// Returns how to go on without a drive's medium.
fn replacement(drive: &str) -> String {
    format!("`csd array replace {drive}` puts a new drive in its place, with what can be had of it")
}

/// Stops the drives at these positions, and deletes what was made of a new array: these media,
/// and the array file.
fn undo(local: &mut Local, places: &[usize], made: Option<&Vec<PathBuf>>) -> Result<(), Failure> {
    for &place in places {
        stop(local, &local.file.drives[place])?;
        local.file.drives[place].pid = None;
    }
    let Some(made) = made else { return local.save() };
    for path in made.iter().chain([&local.path]) {
        remove_if_there(path).map_err(|error| Failure::os(path.display(), &error))?;
    }
    peers::remove(local)?;
    media::delete(&[], &local.file.drives, &local.folder)
}

/// Gives drives of an earlier start that failed the size that is asked for now: they have no medium
/// yet.
fn redefine(options: &cli::Up, file: &mut ArrayFile, home: &ArrayFolder) -> Result<(), Failure> {
    let Some(size_bytes) = options.size else { return Ok(()) };
    for drive in file.drives.iter_mut().filter(|drive| drive.is_unborn()) {
        let Some(path) = home.media(drive).map_err(Failure::run)? else { continue };
        if matches!(media::look(drive, &path)?, Found::Missing | Found::Blank) {
            drive.size_bytes = Some(size_bytes);
            options::leave_blocks(size_bytes, &drive.options)?;
        }
    }
    Ok(())
}

fn check_number(options: &cli::Up, file: &ArrayFile, path: &Path) -> Result<(), Failure> {
    let has = file.drives.len();
    let wanted = options.drives.map_or(has, usize::from);
    if wanted == has {
        return Ok(());
    }
    let path = path.display();
    Err(Failure::usage(match wanted.checked_sub(has) {
        Some(more) => format!(
            "array {path} has {has} drives: `csd array add --drives {more}` adds to them, and \
             --array names the file of another array"
        ),
        None => format!(
            "array {path} has {has} drives: `csd array remove` takes one out of it; --array names \
             the file of another array"
        ),
    }))
}

/// Drives of the array on this machine.
struct Stopped {
    /// Positions of those that do not run, and can be started.
    places: Vec<usize>,
    /// Those whose media are not there, each with the reason and a remedy.
    absent: Vec<String>,
    /// Number of those that run.
    running: usize,
}

/// Looks which drives run, and which can be started.
fn stopped(options: &cli::Up, local: &mut Local) -> Result<Stopped, Failure> {
    let (mut places, mut absent, mut running) = (Vec::new(), Vec::new(), 0);
    for (place, drive) in local.file.drives.iter_mut().enumerate() {
        if drive.media.is_none() {
            continue;
        }
        if process::state(drive, &local.folder) == ProcessState::Runs {
            // An interrupted `up` may have left the drive before it served.
            if let Some(url) = process::served_url(drive, &local.folder)? {
                drive.url = url;
            }
            media::record(drive, &local.home)?;
            running += 1;
            continue;
        }
        if !is_nqn(drive.nqn()) {
            // The process is identified by its NQN later.
            let (name, url) = (&drive.name, &drive.url);
            let why = format!("nothing was started: drive {name}: there is no NQN in {url:?}");
            return Err(Failure::usage(why));
        }
        options::arguments(drive)?;
        if let Some(path) = local.home.media(drive).map_err(Failure::run)?
            && let Verdict::Absent(why) = judge(options, drive, &path)?
        {
            absent.push(format!("drive {}: {why}; {}", drive.name, replacement(&drive.name)));
            drive.pid = None;
            continue;
        }
        places.push(place);
    }
    if places.is_empty() && running == 0 && !absent.is_empty() {
        return Err(Failure::run(format!("nothing was started: {}", absent.join("; "))));
    }
    Ok(Stopped { places, absent, running })
}

enum Verdict {
    Start,
    /// The medium is not there, for this reason.
    Absent(String),
}

fn judge(options: &cli::Up, drive: &mut DriveRecord, path: &Path) -> Result<Verdict, Failure> {
    let shown = path.display();
    let found = media::look(drive, path)?;
    match found {
        Found::Missing | Found::Blank if drive.is_unborn() || options.recreate => {
            media::clear(drive, path)?;
            drive.media_uuid = None;
            Ok(Verdict::Start)
        }
        Found::Missing | Found::Blank => {
            let is_empty = path.metadata().is_ok_and(|meta| meta.len() == 0);
            let what = match found {
                Found::Blank if !is_empty => "has nothing but zeros where a medium begins",
                _ => "is gone",
            };
            Ok(Verdict::Absent(format!(
                "its medium {shown} {what}, and objects of this array may be on it: put it back, \
                 or say --recreate to go on with a new, empty one"
            )))
        }
        Found::Unknown if drive.is_unborn() && !options.adopt => Err(Failure::run(format!(
            "nothing was started: drive {}: {shown} is the medium of an array that was here \
             before: name another folder with --dir, or say --adopt if it is to be this array's",
            drive.name
        ))),
        Found::Foreign if drive.media_uuid.is_some() => Ok(Verdict::Absent(format!(
            "{shown} is not the medium that this array was made with, or is damaged (`csd drive \
             check` tells): put the right one back"
        ))),
        // The drive itself refuses a file that is no medium.
        Found::Own | Found::Unknown | Found::Foreign => Ok(Verdict::Start),
    }
}

/// Returns the array file of a new array, without creating anything.
fn plan(options: &cli::Up, path: &Path, home: &ArrayFolder) -> Result<ArrayFile, Failure> {
    let folder = match &options.dir {
        None => PathBuf::from(DEFAULT_FOLDER),
        Some(dir) => std::path::absolute(dir).map_err(Failure::usage)?,
    };
    let folder = home.own(&folder).map_err(|why| {
        Failure::usage(format!("--dir: {why}; name an array file in that folder with --array"))
    })?;
    let uuid = hex(&random::<16>()?);
    let name = path.file_stem().map_or_else(|| "array".into(), |stem| stem.to_string_lossy());
    let size_bytes = options.size.unwrap_or(start::SIZE_BYTES);
    let folder = home.relative(&folder);
    let mut drives = Vec::new();
    for index in 0..usize::from(options.drives.unwrap_or(DRIVES)) {
        let name = format!("d{index}");
        let new = NewDrive {
            media: options.media.unwrap_or(cli::Media::File),
            size_bytes,
            cores: options.drive.tuning.cores.into(),
            options: options::of_new(&options.drive.given, None, index)?,
        };
        options::leave_blocks(size_bytes, &new.options)?;
        drives.push(new.drive(&uuid, &name, &folder.join(format!("{name}.media"))));
    }
    let (name, folder, joining) = (name.into_owned(), Some(folder), Vec::new());
    Ok(ArrayFile { schema: SCHEMA, name, uuid, folder, os: None, places: None, drives, joining })
}

fn report(file: &ArrayFile, context: &Context, started: &[String], oses: &[String]) -> Report {
    let path = context.array_path();
    let mut text = String::new();
    for drive in &file.drives {
        let what = match started.contains(&drive.name) {
            true => "started",
            false if drive.media.is_none() => "not of this machine",
            false if drive.pid.is_none() => "not started",
            false => "running",
        };
        text.push_str(&format!("{}  {what}  {}\n", drive.name, context.shown(&drive.url)));
    }
    oses.iter().for_each(|line| text.push_str(line));
    text.push_str(&format!("array file: {}\n", path.display()));
    let drives: Vec<_> = file
        .drives
        .iter()
        .map(|drive| {
            json!({
                "name": drive.name,
                "url": drive.url,
                "pid": drive.pid,
                "started": started.contains(&drive.name),
            })
        })
        .collect();
    Report::new(text, json!({ "array_file": path, "uuid": file.uuid, "drives": drives }))
}
