//! Operating systems of an array that log in to each other by OpenSSH (`--os-cluster`).
//!
//! They share a pair of keys, which the array's folder has. The public one may log in to each of
//! them. Invariant: the key is the array's alone, and is deleted with it.

use std::fs;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use csd_os::config::CLUSTER;
use csd_os::network::{Cluster, Tunnel};

use super::network::{lock, read, ssh_files};
use super::target::OsTarget;
use crate::report::Failure;
use crate::target;

/// Names in the folder.
const KEY: &str = "key";
const PUBLIC: &str = "key.pub";
const KNOWN: &str = "known_hosts";

/// Returns the folder, which operating systems see as [`CLUSTER`].
fn folder(array: &Path) -> PathBuf {
    array.join("cluster")
}

/// Adds what an operating system needs to the options of its network.
pub(super) fn join(target: &OsTarget<'_>, tunnel: &mut Tunnel) -> Result<(), Failure> {
    let folder = folder(&target.ssh);
    let public = make_key(target, &folder)?;
    if let Some(keys) = &mut tunnel.keys {
        if !keys.ends_with('\n') {
            keys.push('\n');
        }
        keys.push_str(&public);
    }
    let names: Vec<_> = target.hosts.iter().map(|(_, name)| name.as_str()).collect();
    tunnel.cluster = Some(Cluster { folder, client: client(&names) });
    Ok(())
}

/// Returns the configuration of OpenSSH's client inside.
fn client(names: &[&str]) -> String {
    format!(
        "Host {}\n  User root\n  IdentityFile {CLUSTER}/{KEY}\n  IdentitiesOnly yes\n  \
         UserKnownHostsFile {CLUSTER}/{KNOWN}\n  GlobalKnownHostsFile none\n  \
         StrictHostKeyChecking yes\n",
        names.join(" ")
    )
}

/// Makes the keys, unless they are there. Returns the public one.
fn make_key(target: &OsTarget<'_>, folder: &Path) -> Result<String, Failure> {
    let os = |path: &Path, error: std::io::Error| Failure::os(path.display(), &error);
    let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(folder);
    made.map_err(|error| os(folder, error))?;
    let [known, _] = ssh_files(&target.ssh);
    // Another command may do this for another drive of the array.
    let _lock = lock(&known).map_err(|error| os(&known, error))?;
    let (key, public) = (folder.join(KEY), folder.join(PUBLIC));
    if !key.exists() {
        let new = folder.join("new");
        for path in [&new, &new.with_extension("pub")] {
            csd_os::os_folder::remove_if_there(path).map_err(|error| os(path, error))?;
        }
        let mut keygen = Command::new("ssh-keygen");
        keygen.args(["-q", "-t", "ed25519", "-N", "", "-C", "csd-cluster", "-f"]).arg(&new);
        let done = keygen.stdin(Stdio::null()).output().map_err(|error| {
            Failure::usage(format!("ssh-keygen: {error} (apt-get install openssh-client)"))
        })?;
        if !done.status.success() {
            let said = String::from_utf8_lossy(&done.stderr).trim().to_owned();
            return Err(Failure::run(format!("ssh-keygen: {said}")));
        }
        // The private one, which tells that both are there, comes last.
        for (from, to) in [(new.with_extension("pub"), &public), (new, &key)] {
            fs::rename(&from, to).map_err(|error| os(to, error))?;
        }
    }
    fs::read_to_string(&public).map_err(|error| os(&public, error))
}

/// Gives operating systems the keys of all hosts that are known, if they log in to each other.
pub(super) fn know_hosts(target: &OsTarget<'_>, wanted: bool) -> Result<(), Failure> {
    if !wanted {
        return Ok(());
    }
    let [known, _] = ssh_files(&target.ssh);
    let _lock = lock(&known).map_err(|error| Failure::os(known.display(), &error))?;
    target::replace(&folder(&target.ssh).join(KNOWN), &read(&known)?)
}

/// Deletes the keys of an array.
pub(super) fn forget(array: &Path) -> Result<(), Failure> {
    let folder = folder(array);
    match folder.is_dir() {
        true => fs::remove_dir_all(&folder).map_err(|e| Failure::os(folder.display(), &e)),
        false => Ok(()),
    }
}

#[test]
fn only_names_of_drives_take_the_key() {
    let text = client(&["d0", "d1"]);
    assert!(text.starts_with("Host d0 d1\n  User root\n  IdentityFile /run/csd/cluster/key\n"));
}
