//! [`Successor`]: the drive that takes another one's place, until it has it.
//!
//! Invariants: a successor on this machine is listed under `joining` in the array file as soon as
//! its process runs, so that an interrupted command leaves the array as it was
//! ([`super::add::discard`]); a medium that was there before is never deleted by that.

use std::path::{Path, PathBuf};

use csd_store::array::{Array, ArrayFile, DriveIndex, DriveOptions, DriveRecord, Plan};
use csd_store::catalogue::rebuild;

use super::media::{self, Found};
use super::process::{self, ProcessState};
use super::start::{self, NewDrive};
use super::{Local, options, peers};
use crate::cli;
use crate::context::{Context, with_plan};
use crate::report::Failure;

/// A drive that serves, and is to take a place of the array.
pub(super) struct Successor {
    /// Its record under the name of the drive before.
    record: DriveRecord,
    /// True if it has a medium from before another drive took the place.
    pub(super) is_former: bool,
}

impl Successor {
    /// Starts the successor of the drive that the list has at this index, or finds it at its URL,
    /// and checks that it may take the place.
    pub(super) fn find(
        options: &cli::Replace,
        local: &mut Local,
        index: usize,
        context: &Context,
    ) -> Result<Self, Failure> {
        let before = local.file.drives[index].clone();
        let found = match (&options.url, &options.medium) {
            (Some(url), _) => elsewhere(url, &local.file, index)?,
            (None, Some(medium)) => again(medium, local, index, context)?,
            (None, None) => fresh(options, local, index, context)?,
        };
        let record = DriveRecord { name: before.name, place: before.place, ..found };
        let mut successor = Self { record, is_former: false };
        if options.url.is_some() || options.medium.is_some() {
            let (plan, place) = (successor.plan(local, index), local.file.place(index));
            successor.is_former =
                with_plan(&plan, context.options()?, async move |array: &Array| {
                    Ok(rebuild::check_vacant(array, place).await?)
                })?;
        }
        Ok(successor)
    }

    /// Returns the addresses of the array with the successor in its place.
    pub(super) fn plan(&self, local: &Local, index: usize) -> Plan {
        let mut file = local.file.clone();
        file.drives[index] = self.record.clone();
        Plan::new(&file)
    }

    /// Puts the successor into the array file, in the place of the drive before.
    pub(super) fn admit(mut self, local: &mut Local, index: usize) -> Result<String, Failure> {
        media::record(&mut self.record, &local.home)?;
        let url = self.record.url.clone();
        let mut file = local.file.clone();
        file.joining.retain(|drive| drive.nqn() != self.record.nqn());
        file.drives[index] = self.record;
        file.check().map_err(Failure::usage)?;
        local.file = file;
        local.save()?;
        peers::write(local)?;
        Ok(url)
    }
}

/// Returns the record of a drive at a URL.
fn elsewhere(url: &str, file: &ArrayFile, of: usize) -> Result<DriveRecord, Failure> {
    let address: csd_initiator::Address = url.parse().map_err(Failure::usage)?;
    let others = file.drives.iter().enumerate().filter(|(index, _)| *index != of);
    if let Some((_, same)) = others.into_iter().find(|(_, drive)| drive.nqn() == address.nqn) {
        let (nqn, name) = (address.nqn, &same.name);
        return Err(Failure::usage(format!("{nqn} is drive {name} of this array already")));
    }
    Ok(at(&file.drives[of].name, url.to_owned()))
}

/// Returns the record of a drive of which only the address is known.
fn at(name: &str, url: String) -> DriveRecord {
    let (media, media_uuid, size_bytes, cores, pid) = (None, None, None, None, None);
    let (name, options, place) = (name.to_owned(), DriveOptions::new(), None);
    DriveRecord { name, url, place, media, media_uuid, size_bytes, cores, pid, options }
}

/// Starts a new drive on this machine, with the options of the one before or of the array's last
/// one here.
fn fresh(
    options: &cli::Replace,
    local: &mut Local,
    index: usize,
    context: &Context,
) -> Result<DriveRecord, Failure> {
    let mut new = like(local, index)?;
    new.media = options.media.unwrap_or(new.media);
    new.size_bytes = options.size.unwrap_or(new.size_bytes);
    options::leave_blocks(new.size_bytes, &new.options)?;
    let (name, path) = free_name(local, index);
    let record = new.drive(&local.file.uuid, &name, &local.home.relative(&path));
    // The medium of the drive before may be served, too.
    let position = local.file.joining.len();
    local.file.joining.push(record);
    local.file.check().map_err(Failure::usage)?;
    local.save()?;
    start::start(local, |file| &mut file.joining, &[position], context)?;
    Ok(local.file.joining[position].clone())
}

/// Returns the properties of a drive like the one before, or like the array's last one here.
fn like(local: &Local, index: usize) -> Result<NewDrive, Failure> {
    let before = &local.file.drives[index];
    let last = local.file.drives.iter().rev().find(|drive| drive.media.is_some());
    let like = Some(before).filter(|drive| drive.media.is_some()).or(last);
    let in_memory = like.is_some_and(DriveRecord::is_in_memory);
    Ok(NewDrive {
        media: if in_memory { cli::Media::Memory } else { cli::Media::File },
        size_bytes: like.and_then(|drive| drive.size_bytes).unwrap_or(start::SIZE_BYTES),
        cores: like.and_then(|drive| drive.cores).unwrap_or(1),
        options: options::of_new(&DriveOptions::new(), like, 0)?,
    })
}

/// Returns the name of the drive before with a number, of which no drive, process or medium here
/// is, and the path of a medium of that name.
fn free_name(local: &Local, index: usize) -> (String, PathBuf) {
    let before = &local.file.drives[index];
    let is_free = |(name, path): &(String, PathBuf)| {
        let is_used = |other: &DriveRecord| other.name == *name || process::stem(other) == name;
        path.symlink_metadata().is_err() && !local.file.all().any(is_used)
    };
    let mut named = (1..).map(|number: u32| {
        let name = format!("{}-{number}", before.name);
        let path = local.folder.join(format!("{name}.media"));
        (name, path)
    });
    named.find(is_free).expect("one of all numbers is free")
}

/// Serves a medium in the array's folder that was there before.
fn again(
    medium: &Path,
    local: &mut Local,
    index: usize,
    context: &Context,
) -> Result<DriveRecord, Failure> {
    let given = std::path::absolute(medium).map_err(Failure::usage)?;
    let path = local.home.own(&given).map_err(Failure::usage)?;
    let name = local.home.relative(&path).to_string_lossy().into_owned();
    if let Some(user) = local.file.all().find(|drive| drive.media.as_deref() == Some(&name)) {
        let user = &user.name;
        return Err(Failure::usage(format!("{name} is the medium of drive {user} of this array")));
    }
    let bytes = path.metadata().map_err(|error| Failure::os(path.display(), &error))?.len();
    let (tag, _) = free_name(local, index);
    let new = NewDrive { media: cli::Media::File, size_bytes: bytes, ..like(local, index)? };
    let mut record = new.drive(&local.file.uuid, &tag, Path::new(&name));
    if media::look(&record, &path)? != Found::Unknown {
        return Err(Failure::usage(format!("{} is no medium of a drive", path.display())));
    }
    let mut arguments = options::arguments(&record)?;
    arguments.push(peers::option(&local.folder)?);
    let url = start_apart(local, &record, (&path, &arguments), context)?;
    let pid = local.file.joining.last().and_then(|drive| drive.pid);
    (record.url, record.pid) = (url, pid);
    Ok(record)
}

/// Serves the medium of a drive that does not run, for reading alone: what is whole of it, if it
/// is damaged. Returns the address; `None` if there is no such medium, or it cannot be served.
pub(super) fn salvage(
    local: &mut Local,
    index: usize,
    context: &Context,
) -> Result<Option<String>, Failure> {
    let before = local.file.drives[index].clone();
    let Some(path) = local.home.media(&before).map_err(Failure::run)? else { return Ok(None) };
    let is_its_own = matches!(media::look(&before, &path), Ok(Found::Own | Found::Unknown));
    if !is_its_own || process::state(&before, &local.folder) == ProcessState::Runs {
        return Ok(None);
    }
    let name = format!("{}-former", before.name);
    let url = format!("nvme+tcp://127.0.0.1:0/nqn.2026-11.io.csdstore:{}:{name}", local.file.uuid);
    let record = DriveRecord { options: before.options, ..at(&name, url) };
    let mut arguments = options::arguments(&record)?;
    arguments.push("--salvage".to_owned());
    Ok(start_apart(local, &record, (&path, &arguments), context).ok())
}

/// Starts a drive whose medium must be kept whatever happens: the array file names its process,
/// and not its medium. Returns its URL.
fn start_apart(
    local: &mut Local,
    record: &DriveRecord,
    (medium, arguments): (&Path, &[String]),
    context: &Context,
) -> Result<String, Failure> {
    let secrets = context.secrets_path();
    let mut child = process::start(record, &local.folder, Some(medium), arguments, secrets)?;
    let joining = DriveRecord { pid: Some(child.id()), ..at(&record.name, record.url.clone()) };
    local.file.joining.push(joining);
    local.save().inspect_err(|_| {
        let _ended = child.kill();
        let _reaped = child.wait();
    })?;
    let url = process::wait_ready(record, &local.folder, child)?;
    if let Some(joining) = local.file.joining.last_mut() {
        joining.url.clone_from(&url);
    }
    Ok(url)
}

/// Returns true if the drive at this place answers.
pub(super) fn answers(
    local: &Local,
    place: DriveIndex,
    context: &Context,
) -> Result<bool, Failure> {
    with_plan(&Plan::new(&local.file), context.options()?, async move |array: &Array| {
        Ok(array.drive(place).is_ok())
    })
}
