//! `csd array down`.

use csd_os::os_folder::remove_if_there;
use csd_store::array::DriveRecord;
use serde_json::json;

use super::lock::Lock;
use super::process::{self, Ended, ProcessState};
use super::{Local, media, oses, peers};
use crate::cli;
use crate::confirm::confirm;
use crate::context::Context;
use crate::report::{Failure, Report};

/// Stops the array's drives. With `--delete`, also deletes media, logs and the array file.
pub(crate) fn down(options: &cli::Down, context: &Context) -> Result<Report, Failure> {
    let path = context.array_path();
    let _lock = Lock::take(path)?;
    let mut local = Local::load(path)?;
    if options.delete && !options.yes {
        let (path, what) = (local.path.display(), "its media and all objects on them");
        let question = format!("delete {path}, {what}?");
        let without = format!("--delete deletes {path}, {what}");
        confirm(&question, &without, "nothing was deleted, nothing was stopped")?;
    }
    let states = look(&mut local)?;
    let mut left = oses::stop(&local, context)?;
    if options.delete {
        // Blocks that hosts cannot write go with their media.
        left.clear();
    }
    let (text, warnings) = match options.delete {
        true => stop_and_delete(&mut local, &states)?,
        false => stop(&mut local, &states)?,
    };
    left.extend(warnings);
    let drives: Vec<_> = local.file.drives.iter().map(|drive| &drive.name).collect();
    let result = json!({ "drives": drives, "deleted": options.delete });
    Ok(Report::new(text, result).with_warnings(left))
}

/// Returns the state of each drive's process, and records the media of running drives. A drive of
/// an earlier version can prove its medium only while it runs.
fn look(local: &mut Local) -> Result<Vec<ProcessState>, Failure> {
    let mut states = Vec::new();
    for drive in local.file.drives.iter_mut().chain(&mut local.file.joining) {
        let state = process::state(drive, &local.folder);
        if state == ProcessState::Runs {
            media::record(drive, &local.home)?;
        }
        states.push(state);
    }
    Ok(states)
}

/// Stops every running drive of this array. Returns the outcome of each as text, and warnings.
fn stop(local: &mut Local, states: &[ProcessState]) -> Result<(String, Vec<String>), Failure> {
    let folder = &local.folder;
    for drive in local.file.all() {
        process::terminate(drive, folder);
    }
    let (mut text, mut warnings) = (String::new(), Vec::new());
    let drives = local.file.drives.iter_mut().chain(&mut local.file.joining);
    for (drive, state) in drives.zip(states) {
        let words = match state {
            ProcessState::Elsewhere => "runs for another folder: left alone",
            ProcessState::Gone if drive.media.is_none() => "not started by array up: left alone",
            ProcessState::Gone => "was not running",
            ProcessState::Runs => match process::wait_end(drive, folder)? {
                Ended::Stopped => "stopped",
                Ended::Killed => {
                    warnings.push(format!("drive {} did not stop, and was killed", drive.name));
                    "killed"
                }
            },
        };
        text.push_str(&format!("{}  {words}\n", drive.name));
        drive.pid = None;
    }
    local.save()?;
    Ok((text, warnings))
}

fn stop_and_delete(
    local: &mut Local,
    states: &[ProcessState],
) -> Result<(String, Vec<String>), Failure> {
    let of = |local: &Local, runs: bool| -> Vec<DriveRecord> {
        let drives = local.file.all().cloned().zip(states);
        let drives = drives.filter(|(_, state)| (**state == ProcessState::Runs) == runs);
        drives.map(|(drive, _)| drive).collect()
    };
    // Finds as many errors as possible before it stops anything.
    let mut media = media::deletable(&of(local, false), &local.home, true)?;
    media::deletable(&of(local, true), &local.home, false)?;
    let (text, warnings) = stop(local, states)?;
    media.extend(media::deletable(&of(local, true), &local.home, true)?);
    let drives: Vec<DriveRecord> = local.file.all().cloned().collect();
    oses::forget(local)?;
    peers::remove(local)?;
    media::delete(&media, &drives, &local.folder)?;
    let shown = local.path.display();
    remove_if_there(&local.path)
        .map_err(|error| Failure::run(format!("cannot delete {shown}: {error}")))?;
    Ok((format!("{text}deleted {shown} and the drives' media\n"), warnings))
}
