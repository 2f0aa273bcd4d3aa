//! Starts drives of an array, and defines new ones.
//!
//! Invariant: the array file names a process as soon as it is started; otherwise the process is
//! killed.

use std::io::Write;
use std::path::Path;
use std::process::Child;

use csd_store::array::{ArrayFile, DriveOptions, DriveRecord, IN_MEMORY};
use csd_store::atomic_file::AtomicFile;

use super::{Local, media, options, oses, peers, process};
use crate::cli;
use crate::context::Context;
use crate::report::Failure;

/// Default size of a new drive's media, bytes.
pub(super) const SIZE_BYTES: u64 = 1 << 30;

/// Room for the small files of drives, bytes.
const ROOM_BYTES: usize = 64 << 10;

/// Properties of a new drive.
pub(super) struct NewDrive {
    pub(super) media: cli::Media,
    pub(super) size_bytes: u64,
    pub(super) cores: usize,
    pub(super) options: DriveOptions,
}

impl NewDrive {
    /// Returns the record of a drive that has never served. `media` is the name of its media file.
    pub(super) fn drive(mut self, array_uuid: &str, name: &str, media: &Path) -> DriveRecord {
        let media = match self.media {
            cli::Media::Memory => IN_MEMORY.to_owned(),
            cli::Media::File => media.to_string_lossy().into_owned(),
        };
        // The array file keeps the number of cores in another field.
        self.options.remove("cores");
        DriveRecord {
            name: name.to_owned(),
            url: format!("nvme+tcp://127.0.0.1:0/nqn.2026-11.io.csdstore:{array_uuid}:{name}"),
            media: Some(media),
            media_uuid: None,
            place: None,
            size_bytes: Some(self.size_bytes),
            cores: Some(self.cores),
            pid: None,
            options: self.options,
        }
    }
}

/// Selects the drives of an array file, or those that are joining it.
pub(super) type Which = fn(&mut ArrayFile) -> &mut Vec<DriveRecord>;

/// Starts the drives of the list `which` at these positions, waits until they serve, and records
/// their URLs. Tries all of them.
///
/// # Errors
/// The first failure. The array file then describes the drives that did start.
pub(super) fn start(
    local: &mut Local,
    which: Which,
    places: &[usize],
    context: &Context,
) -> Result<(), Failure> {
    match try_all(local, which, places, context)?.into_iter().next() {
        Some((_, failure)) => Err(failure),
        None => Ok(()),
    }
}

/// Does what [`start`] does; returns the positions of drives that did not start, with the reasons.
///
/// # Errors
/// If the folder takes no files, before anything is started; or the array file cannot be written.
pub(super) fn try_all(
    local: &mut Local,
    which: Which,
    places: &[usize],
    context: &Context,
) -> Result<Vec<(usize, Failure)>, Failure> {
    let cannot = |error| Failure::run(format!("folder {}: {error}", local.folder.display()));
    std::fs::create_dir_all(&local.folder).map_err(cannot)?;
    try_folder(&local.folder).map_err(cannot)?;
    peers::write(local)?;
    let (mut started, mut failures) = (Vec::new(), Vec::new());
    for &place in places {
        match start_one(local, which, place, context) {
            Ok(child) => started.push((place, child)),
            Err(error) => failures.push((place, error)),
        }
    }
    for (place, child) in started {
        failures.extend(serves(local, which, place, child).err().map(|error| (place, error)));
    }
    for (place, _) in &failures {
        which(&mut local.file)[*place].pid = None;
    }
    local.save()?;
    // With the ports at which they serve now.
    peers::write(local)?;
    Ok(failures)
}

/// Writes a file in the folder and deletes it, as drives write theirs: their logs say nothing on a
/// full disk.
fn try_folder(folder: &Path) -> std::io::Result<()> {
    let (_dropped_again, mut file) = AtomicFile::create(&folder.join("room"))?;
    file.write_all(&[b' '; ROOM_BYTES]).and_then(|()| file.sync_all())
}

fn start_one(
    local: &mut Local,
    which: Which,
    place: usize,
    context: &Context,
) -> Result<Child, Failure> {
    let drive = which(&mut local.file)[place].clone();
    let path = local.home.media(&drive).map_err(Failure::run)?;
    let (mut arguments, secrets) = (options::arguments(&drive)?, context.secrets_path());
    arguments.extend(oses::options_of(local, &drive.name, context)?);
    arguments.push(peers::option(&local.folder)?);
    let mut child = process::start(&drive, &local.folder, path.as_deref(), &arguments, secrets)?;
    which(&mut local.file)[place].pid = Some(child.id());
    // Saved before the next start and before waiting, so that an interrupted command leaves no
    // unrecorded process.
    local.save().inspect_err(|_| {
        let _ended = child.kill();
        let _reaped = child.wait();
    })?;
    Ok(child)
}

fn serves(local: &mut Local, which: Which, place: usize, child: Child) -> Result<(), Failure> {
    let drive = &mut which(&mut local.file)[place];
    match process::wait_ready(drive, &local.folder, child) {
        Ok(url) => {
            drive.url = url;
            media::record(drive, &local.home)
        }
        Err(error) => Err(error),
    }
}
