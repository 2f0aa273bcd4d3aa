//! `csd array up`, `status`, `reclaim` and `down`: an array of drives as processes of this machine.
//!
//! Never touches a process that is not a drive of the array ([`process`] checks), nor media that
//! exist. Invariant: whatever happens, the array file names every process that was started.

pub(crate) mod process;
mod reclaim;
mod status;

use std::path::{Path, PathBuf};

use csd_store::array::{ArrayFile, DriveRecord, FileError, SCHEMA};
use serde_json::json;

use crate::cli;
use crate::context::{Context, random};
use crate::report::{Failure, Report};
use process::Ended;

pub(crate) use reclaim::reclaim;
pub(crate) use status::status;

/// Drives of a new array unless the user says otherwise.
const DRIVES: u16 = 2;

/// Starts what is not running.
pub(crate) fn up(options: &cli::Up, context: &Context) -> Result<Report, Failure> {
    let path = context.array_path();
    let mut file = match ArrayFile::load(path) {
        Ok(file) => file,
        Err(FileError::Missing { .. }) => plan(options, path)?,
        Err(error) => return Err(error.into()),
    };
    if options.drives.is_some_and(|drives| usize::from(drives) != file.drives.len()) {
        return Err(Failure::usage(format!(
            "array {} has {} drives: `csd array down --delete` it first, or name another file \
             with --array",
            path.display(),
            file.drives.len()
        )));
    }
    // A file that cannot be used is the user's to repair before anything is started.
    context.secrets()?;
    let folder = file.folder.clone().unwrap_or_else(|| options.dir.clone());
    let (mut started, mut warnings) = (Vec::new(), Vec::new());
    let mut failure = None;
    for index in 0..file.drives.len() {
        let drive = &file.drives[index];
        let Some(media) = drive.media.clone() else { continue };
        if process::is_running(drive) {
            continue;
        }
        if drive.pid.is_some() && media == "memory" {
            let name = &drive.name;
            warnings.push(format!("drive {name} keeps its data in memory and came up empty"));
        }
        match process::start(drive, &folder, options.backend, context.secrets_path()) {
            Ok(child) => {
                file.drives[index].pid = Some(child.id());
                started.push((index, child));
            }
            Err(error) => failure = failure.or(Some(error)),
        }
    }
    // Before waiting: an interrupted wait must not leave processes that nobody knows.
    file.save(path)?;
    let names: Vec<_> = started.iter().map(|(i, _)| file.drives[*i].name.clone()).collect();
    for (index, child) in started {
        match process::wait_ready(&file.drives[index], &folder, child) {
            Ok(url) => file.drives[index].url = url,
            Err(error) => {
                file.drives[index].pid = None;
                failure = failure.or(Some(error));
            }
        }
    }
    file.save(path)?;
    match failure {
        Some(failure) => Err(failure),
        None => Ok(up_report(&file, context, &names).with_warnings(warnings)),
    }
}

fn up_report(file: &ArrayFile, context: &Context, started: &[String]) -> Report {
    let path = context.array_path();
    let mut text = String::new();
    for drive in &file.drives {
        let what = if started.contains(&drive.name) { "started" } else { "running" };
        text.push_str(&format!("{}  {what}  {}\n", drive.name, context.shown(&drive.url)));
    }
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

/// A new array; its folder is made, its drives are not.
fn plan(options: &cli::Up, path: &Path) -> Result<ArrayFile, Failure> {
    let made = std::fs::create_dir_all(&options.dir).and_then(|()| options.dir.canonicalize());
    let folder =
        made.map_err(|error| Failure::os(format!("folder {}", options.dir.display()), &error))?;
    let uuid: String = random::<16>()?.iter().map(|byte| format!("{byte:02x}")).collect();
    let name = path.file_stem().map_or_else(|| "array".into(), |stem| stem.to_string_lossy());
    let drives = (0..options.drives.unwrap_or(DRIVES)).map(|index| {
        let name = format!("d{index}");
        let media = match options.media {
            cli::Media::Memory => "memory".to_owned(),
            cli::Media::File => folder.join(format!("{name}.media")).to_string_lossy().into_owned(),
        };
        DriveRecord {
            url: format!("nvme+tcp://127.0.0.1:0/nqn.2026-11.io.csdstore:{uuid}:{name}"),
            name,
            media: Some(media),
            size_bytes: Some(options.size),
            cores: Some(options.cores.into()),
            pid: None,
        }
    });
    let drives = drives.collect();
    Ok(ArrayFile { schema: SCHEMA, name: name.into_owned(), uuid, folder: Some(folder), drives })
}

/// Stops what is running.
pub(crate) fn down(options: &cli::Down, context: &Context) -> Result<Report, Failure> {
    let path = context.array_path();
    let mut file = ArrayFile::load(path)?;
    let (mut text, mut warnings) = (String::new(), Vec::new());
    let running: Vec<bool> = file.drives.iter().map(process::is_running).collect();
    for (drive, _) in file.drives.iter().zip(&running).filter(|(_, running)| **running) {
        process::terminate(drive);
    }
    for (drive, running) in file.drives.iter_mut().zip(running) {
        let ended = if running { process::wait_end(drive)? } else { Ended::Before };
        let words = match ended {
            Ended::Before => "was not running",
            Ended::Stopped => "stopped",
            Ended::Killed => {
                warnings.push(format!("drive {} did not stop, and was killed", drive.name));
                "killed"
            }
        };
        text.push_str(&format!("{}  {words}\n", drive.name));
        drive.pid = None;
    }
    if options.delete {
        delete(&file, path)?;
        text.push_str(&format!("deleted {} and the drives' media\n", path.display()));
    } else {
        file.save(path)?;
    }
    let drives: Vec<_> = file.drives.iter().map(|drive| &drive.name).collect();
    let result = json!({ "drives": drives, "deleted": options.delete });
    Ok(Report::new(text, result).with_warnings(warnings))
}

/// Deletes what `up` made, and the folder if nothing else is in it.
fn delete(file: &ArrayFile, path: &Path) -> Result<(), Failure> {
    let mut doomed: Vec<PathBuf> = Vec::new();
    for drive in &file.drives {
        if let Some(media) = drive.media.as_ref().filter(|media| *media != "memory") {
            doomed.push(media.into());
        }
        if let Some(folder) = &file.folder {
            doomed.extend([process::log_path(folder, drive), process::ready_path(folder, drive)]);
        }
    }
    doomed.push(path.to_owned());
    for path in doomed {
        match std::fs::remove_file(&path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(Failure::run(format!("cannot delete {}: {error}", path.display())));
            }
            _ => {}
        }
    }
    if let Some(folder) = &file.folder {
        // Not empty: somebody else's files are in it, and stay.
        let _kept = std::fs::remove_dir(folder);
    }
    Ok(())
}
