//! The file of peers of an array's drives: they may work with each other.
//!
//! It has a line for every drive of the array. Drives on this machine have a secret there, which
//! they keep for as long as the file exists. Drives elsewhere are listed without one: they must
//! have a file of their own. Invariant: only its owner may read it.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use csd_drive::peers::PeerList;
use csd_nvme::auth::{Hash, Secret};
use csd_os::os_folder::remove_if_there;
use csd_store::array::DriveRecord;
use csd_store::atomic_file::AtomicFile;

use super::Local;
use crate::report::Failure;
use crate::runtime::random;

/// Returns the path of the file.
pub(super) fn path(folder: &Path) -> PathBuf {
    folder.join("peers")
}

/// Returns the option that gives a drive the file of a folder.
///
/// # Errors
/// If the path is no UTF-8: options of drives are kept as text.
pub(super) fn option(folder: &Path) -> Result<String, Failure> {
    let path = std::path::absolute(path(folder)).map_err(Failure::run)?;
    let text = path.to_str().ok_or_else(|| {
        Failure::usage(format!("{}: the path is no UTF-8, as an array's must be", path.display()))
    })?;
    Ok(format!("--peers={text}"))
}

/// Writes the file for the drives that the array has now, if any is on this machine.
pub(super) fn write(local: &Local) -> Result<(), Failure> {
    if local.file.all().all(|drive| drive.media.is_none()) {
        return Ok(());
    }
    let path = path(&local.folder);
    let cannot = |error: std::io::Error| Failure::os(path.display(), &error);
    let before = match fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
        Err(error) => return Err(cannot(error)),
    };
    // A file with a mistake gives way: drives on this machine read the new one.
    let known = PeerList::parse(&before).unwrap_or_default();
    let mut text = format!("# Drives of the array {:?}. Written by `csd`.\n", local.file.name);
    for drive in local.file.all() {
        text.push_str(&line(drive, &known)?);
    }
    if text == before {
        return Ok(());
    }
    let (whole, mut file) = AtomicFile::create_private(&path).map_err(cannot)?;
    file.write_all(text.as_bytes()).map_err(cannot)?;
    whole.finish().map_err(cannot)
}

/// Deletes the file.
pub(super) fn remove(local: &Local) -> Result<(), Failure> {
    let path = path(&local.folder);
    remove_if_there(&path).map_err(|error| Failure::os(path.display(), &error))
}

/// Returns the line of a drive: its URL and, if it is on this machine, its secret.
fn line(drive: &DriveRecord, known: &PeerList) -> Result<String, Failure> {
    let url = &drive.url;
    if drive.media.is_none() {
        return Ok(format!("peer {url}\n"));
    }
    let secret = match known.get(drive.nqn()).and_then(|peer| peer.secret.clone()) {
        Some(secret) => secret,
        None => Secret::new(Some(Hash::Sha256), &random::<32>()?).expect("32 bytes"),
    };
    Ok(format!("peer {url} {}\n", *secret.to_text()))
}
