//! Operating systems of an array's drives: their options, and their start and stop with the drives.
//!
//! Invariant: they start after the drives and stop before them, so that their file systems are
//! whole.

use std::path::{Path, PathBuf};

use csd_os::filesystem::Fs;
use csd_os::os_folder::{OsFolder, remove_if_there};
use csd_store::array::OsRecord;

use super::Local;
use crate::cli;
use crate::cli::attach::RETRY;
use crate::context::Context;
use crate::os::{self, Addresses, OsTarget, Wanted};
use crate::report::Failure;
use crate::tunnel;

/// Takes over the wanted operating systems into the array file. `stopped` drives of the array will
/// be started.
pub(super) fn choose(options: &cli::Up, local: &mut Local, stopped: usize) -> Result<(), Failure> {
    let given = &options.os;
    if let Some(root) = &given.os {
        let root = std::path::absolute(root).map_err(Failure::usage)?;
        let absolute = |key: &PathBuf| std::path::absolute(key).map_err(Failure::usage);
        let wanted = OsRecord {
            fs: given.os_fs.filter(|fs| *fs != Fs::Ext4).map(|fs| fs.to_string()),
            key: given.os_key.as_ref().map(absolute).transpose()?,
            network: given.os_network.map(|(address, bits)| format!("{address}/{bits}")),
            cluster: given.os_cluster,
            ..os::record(root, given.os_cpus, given.os_memory, given.os_pids)
        };
        let here = local.file.drives.iter().filter(|drive| drive.media.is_some()).count();
        if local.file.os.as_ref() != Some(&wanted) && stopped < here {
            return Err(Failure::usage(
                "drives of the array run without these operating systems: `csd array down` first",
            ));
        }
        local.file.os = Some(wanted);
    }
    if let Some(record) = &local.file.os {
        // Found out before a drive is started.
        csd_os::tools::check()?;
        let wanted = Wanted::of_record(record, RETRY)?;
        wanted.limits.check()?;
        if wanted.fs == Fs::Ocfs2 {
            csd_os::ocfs2::check()?;
        }
        if Addresses::of(&local.file)?.is_some() {
            tunnel::check()?;
        }
    }
    Ok(())
}

/// Returns the options with which a drive serves its operating system.
pub(super) fn options_of(
    local: &Local,
    name: &str,
    context: &Context,
) -> Result<Vec<String>, Failure> {
    if local.file.os.is_none() {
        return Ok(Vec::new());
    }
    let mut options = vec![inside(&local.folder, name)?];
    if let Some(addresses) = Addresses::of(&local.file)? {
        options.push(format!("--tunnel-host={}", context.options()?.host_nqn));
        options.extend(addresses.options(name));
    }
    Ok(options)
}

fn inside(folder: &Path, name: &str) -> Result<String, Failure> {
    let folder = folder.canonicalize().map_err(|error| Failure::os(folder.display(), &error))?;
    Ok(format!("--inside={}", os::inside_path(&folder, name)?.display()))
}

/// Starts the operating systems that do not run; returns a line for each.
pub(super) fn start(local: &Local, context: &Context) -> Result<Vec<String>, Failure> {
    let Some(record) = &local.file.os else { return Ok(Vec::new()) };
    let wanted = Wanted::of_record(record, RETRY)?;
    let mut lines = Vec::new();
    for target in targets(local, context)? {
        let (line, _) = os::start(&target, &wanted)?;
        lines.push(format!("os of {line}"));
    }
    Ok(lines)
}

/// Stops the operating systems of all drives; returns warnings.
pub(super) fn stop(local: &Local, context: &Context) -> Result<Vec<String>, Failure> {
    let mut warnings = Vec::new();
    if !local.folder.join("os").is_dir() {
        return Ok(warnings);
    }
    for target in targets(local, context)?.iter().filter(|one| one.os_folder.record().exists()) {
        warnings.extend(os::stop(target)?.1);
    }
    Ok(warnings)
}

/// Returns the drives of the array on this machine.
fn targets<'a>(local: &Local, context: &'a Context) -> Result<Vec<OsTarget<'a>>, Failure> {
    let folder = &local.folder;
    let folder = folder.canonicalize().map_err(|error| Failure::os(folder.display(), &error))?;
    let drives = local.file.all().filter(|drive| drive.media.is_some());
    drives.map(|drive| OsTarget::of_array(&local.file, drive, &folder, context)).collect()
}

/// Deletes the folders of operating systems that have been stopped. Their drives' media are deleted
/// next, so nothing needs to be written.
pub(super) fn forget(local: &Local) -> Result<(), Failure> {
    let folder = local.folder.join("os");
    for drive in local.file.all() {
        let os_folder = OsFolder::new(&folder.join(&drive.name));
        if os_folder.folder().is_dir() {
            remove_if_there(&os_folder.record()).map_err(Failure::run)?;
            csd_os::down::forget(&os_folder)?;
        }
        let socket = local.folder.join(format!("{}.inside", drive.name));
        remove_if_there(&socket).map_err(Failure::run)?;
    }
    os::forget_network(&local.folder)?;
    // It stays if it has other files.
    let _kept = std::fs::remove_dir(folder);
    Ok(())
}
