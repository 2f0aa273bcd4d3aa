//! `csd array up`.
//!
//! Invariants: no drive is started before the media of all drives are checked. Missing media of an
//! array that may hold objects are not created again unless the user asks for it.

use std::path::{Path, PathBuf};

use csd_nvme::controller::connect::is_nqn;
use csd_store::array::{
    ArrayFile, ArrayFolder, DEFAULT_FOLDER, DriveRecord, FileError, Plan, SCHEMA,
};
use serde_json::json;

use super::lock::Lock;
use super::media::{self, Found};
use super::options::{self, Requested};
use super::process::{self, ProcessState};
use super::start::{self, NewDrive};
use super::{Local, add, home, oses, rebuild};
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
    let file = match ArrayFile::load(path) {
        Ok(file) => file,
        Err(FileError::Missing { .. }) => plan(options, path, &home)?,
        Err(error) => return Err(error.into()),
    };
    check_number(options, &file, path)?;
    let (size, media, given) = (options.size, options.media, &options.drive.given);
    options::check(&Requested { size, media, given }, &file, path)?;
    // An invalid secrets file is reported before anything is started.
    context.secrets()?;
    let mut local = Local::new(path, home, file)?;
    let mut warnings = add::discard(&mut local)?;
    let places = stopped(options, &mut local)?;
    oses::choose(options, &mut local, places.len())?;
    for &place in &places {
        let drive = &local.file.drives[place];
        if drive.pid.is_some() && drive.is_in_memory() {
            let name = &drive.name;
            warnings.push(format!("drive {name} keeps its data in memory and came up empty"));
        }
    }
    start::start(&mut local, |file| &mut file.drives, &places, context)?;
    if !places.is_empty() {
        warnings.extend(rebuild::after_start(&Plan::new(&local.file), context)?);
    }
    let oses = oses::start(&local, context)?;
    let name = |place: &usize| local.file.drives[*place].name.clone();
    let names: Vec<String> = places.iter().map(name).collect();
    Ok(report(&local.file, context, &names, &oses).with_warnings(warnings))
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

/// Returns the positions of drives that do not run, if all of them may be started.
fn stopped(options: &cli::Up, local: &mut Local) -> Result<Vec<usize>, Failure> {
    let (mut places, mut gone) = (Vec::new(), Vec::new());
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
            continue;
        }
        if !is_nqn(drive.nqn()) {
            // The process is identified by its NQN later.
            let (name, url) = (&drive.name, &drive.url);
            let why = format!("nothing was started: drive {name}: there is no NQN in {url:?}");
            return Err(Failure::usage(why));
        }
        options::arguments(drive)?;
        if let Some(path) = local.home.media(drive).map_err(Failure::run)? {
            match judge(options, drive, &path)? {
                Verdict::Start => {}
                Verdict::Gone => gone.push(path),
            }
        }
        places.push(place);
    }
    if gone.is_empty() {
        return Ok(places);
    }
    let list: Vec<String> = gone.iter().map(|path| path.display().to_string()).collect();
    Err(Failure::run(format!(
        "nothing was started: {} gone, and the objects of this array may be on what is missing: \
         put it back, or say --recreate to go on with new, empty media",
        match list.as_slice() {
            [one] => format!("the medium {one} is"),
            all => format!("the media {} are", all.join(", ")),
        }
    )))
}

enum Verdict {
    Start,
    Gone,
}

fn judge(options: &cli::Up, drive: &mut DriveRecord, path: &Path) -> Result<Verdict, Failure> {
    let refuse = |why: String| {
        let (name, path) = (&drive.name, path.display());
        Err(Failure::run(format!("nothing was started: drive {name}: {path} {why}")))
    };
    match media::look(drive, path)? {
        Found::Missing | Found::Blank if drive.is_unborn() => Ok(Verdict::Start),
        Found::Missing | Found::Blank if options.recreate => {
            drive.media_uuid = None;
            Ok(Verdict::Start)
        }
        Found::Missing | Found::Blank => Ok(Verdict::Gone),
        Found::Unknown if drive.is_unborn() && !options.adopt => refuse(
            "is the medium of an array that was here before: name another folder with --dir, or \
             say --adopt if it is to be this array's"
                .to_owned(),
        ),
        Found::Foreign if drive.media_uuid.is_some() => refuse(
            "is not the medium that this array was made with, or is damaged (`csd drive check` \
             tells): put the right one back"
                .to_owned(),
        ),
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
