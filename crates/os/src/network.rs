//! Network of an operating system: both ends of its drive's tunnel, and OpenSSH.
//!
//! Files inside belong to programs that may be hostile. They are opened below the root alone, and
//! only as files.

use std::fs::{self, File};
use std::io::Read;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use rustix::fs::{FileType, Mode, OFlags, ResolveFlags, fstat, open, openat2};

use crate::keep::keep;
use crate::os_folder::OsFolder;
use crate::process::{last_line, start_time};
use crate::record::{HOST_END, Record, TUNNEL};
use crate::{Error, mounts};

/// Path of the host's public key, below the root.
const HOST_KEY: &str = "etc/ssh/csd_host_key.pub";
/// Longest public key that is read, bytes.
const KEY_BYTES_MAX: u64 = 4096;
/// Programs of OpenSSH that an operating system runs.
const PROGRAMS: [&str; 2] = ["usr/sbin/sshd", "usr/bin/ssh-keygen"];
/// Port 22 and the state of sockets that listen, as /proc/net/tcp shows them.
const PORT: &str = ":0016";
const LISTENS: &str = "0A";
/// Looks for OpenSSH, a moment apart.
const LOOKS: usize = 15_000;

/// Network of an operating system.
#[derive(Clone, Debug)]
pub struct Tunnel {
    /// Command line that makes the drive's end; the path of a network namespace is added to it.
    pub inside: Vec<String>,
    /// Command line that makes the host's end, if this machine is the host.
    pub outside: Option<Vec<String>>,
    /// Address of the drive's end.
    pub address: IpAddr,
    /// Public keys that may log in by OpenSSH, in its form; without them OpenSSH does not run.
    pub keys: Option<String>,
    /// Folder with which operating systems log in to each other, if they do.
    pub cluster: Option<Cluster>,
}

/// Files by which operating systems log in to each other, the same for all of an array.
#[derive(Clone, Debug)]
pub struct Cluster {
    /// Folder that is [`crate::config::CLUSTER`] inside.
    pub folder: PathBuf,
    /// Configuration of OpenSSH's client that names its files.
    pub client: String,
}

impl Tunnel {
    /// Returns the address at which OpenSSH listens, if it runs.
    #[must_use]
    pub fn ssh(&self) -> Option<IpAddr> {
        self.keys.is_some().then_some(self.address)
    }

    /// Makes the ends of the tunnel that do not run, or run with other words. `pid` is a process of
    /// the operating system.
    pub(crate) fn join(
        &self,
        os_folder: &OsFolder,
        record: &mut Record,
        pid: u32,
    ) -> Result<(), Error> {
        let inside = [&self.inside[..], &[format!("/proc/{pid}/ns/net")]].concat();
        keep(os_folder, record, TUNNEL, &inside, &os_folder.tunnel_log())?;
        match &self.outside {
            Some(outside) => keep(os_folder, record, HOST_END, outside, &os_folder.host_log()),
            None => Ok(()),
        }
    }
}

/// Checks that an image, below what the operating system changed of it, has OpenSSH.
pub(crate) fn check_programs(root: &Path, image: &Path) -> Result<(), Error> {
    match PROGRAMS.iter().find(|path| root.join(path).symlink_metadata().is_err()) {
        None => Ok(()),
        Some(path) => Err(Error::Usage(format!(
            "{} has no OpenSSH server ({path}): install it, or take the image of `make os-image`",
            image.display()
        ))),
    }
}

/// Waits until OpenSSH listens, and returns its public key. `pid` is the first process.
pub(crate) fn wait_for_ssh(os_folder: &OsFolder, pid: u32) -> Result<String, Error> {
    for _ in 0..LOOKS {
        if listens(pid)
            && let Some(key) = host_key(&os_folder.root())
        {
            return Ok(key);
        }
        if start_time(pid).is_none() {
            break;
        }
        mounts::pause();
    }
    let why = last_line(&os_folder.log()).unwrap_or_else(|| "it says nothing".to_owned());
    Err(Error::Failed(format!("OpenSSH does not run: {why}")))
}

/// Returns true if a program of the process's network listens at OpenSSH's port.
fn listens(pid: u32) -> bool {
    let lists = ["tcp", "tcp6"].map(|list| fs::read_to_string(format!("/proc/{pid}/net/{list}")));
    lists.iter().flatten().any(|list| has_listener(list))
}

/// Looks for a socket that listens at OpenSSH's port. The fields of a line: number, address and
/// port, the far ones, state.
fn has_listener(list: &str) -> bool {
    list.lines().skip(1).any(|line| {
        let mut words = line.split_whitespace().skip(1);
        words.next().is_some_and(|local| local.ends_with(PORT)) && words.nth(1) == Some(LISTENS)
    })
}

/// Returns the public key of the OpenSSH below `root`: its kind and itself.
fn host_key(root: &Path) -> Option<String> {
    let folder = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let root = open(root, folder, Mode::empty()).ok()?;
    // A pipe of that name does not hold up this process, and a link does not lead out of the root.
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let within = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
    let file = openat2(&root, HOST_KEY, flags, Mode::empty(), within).ok()?;
    let kind = FileType::from_raw_mode(fstat(&file).ok()?.st_mode);
    if kind != FileType::RegularFile {
        return None;
    }
    let mut text = String::new();
    File::from(file).take(KEY_BYTES_MAX).read_to_string(&mut text).ok()?;
    let mut words = text.split_whitespace();
    let (name, key) = (words.next()?, words.next()?);
    let is_base64 = |c: char| c.is_ascii_alphanumeric() || "+/=".contains(c);
    let is_key = name == "ssh-ed25519" && key.chars().all(is_base64);
    is_key.then(|| format!("{name} {key}"))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn keys_are_read_below_the_root_alone() {
        let folder = tempfile::tempdir().unwrap();
        let (root, outside) = (folder.path().join("root"), folder.path().join("outside"));
        fs::create_dir_all(root.join("etc/ssh")).unwrap();
        let path = root.join(HOST_KEY);
        assert_eq!(host_key(&root), None);
        fs::write(&path, "ssh-ed25519 AAAA+/= d0\n").unwrap();
        assert_eq!(host_key(&root).as_deref(), Some("ssh-ed25519 AAAA+/="));
        for wrong in ["", "ssh-ed25519", "root:$6$:1", "ssh-rsa AAAA", "ssh-ed25519 A,B"] {
            fs::write(&path, wrong).unwrap();
            assert_eq!(host_key(&root), None, "{wrong}");
        }
        // A link that leads out of the root, from a folder or the file.
        fs::write(&outside, "ssh-ed25519 BBBB x").unwrap();
        fs::remove_file(&path).unwrap();
        for target in [outside.clone(), "../../../outside".into()] {
            symlink(target, &path).unwrap();
            assert_eq!(host_key(&root), None);
            fs::remove_file(&path).unwrap();
        }
        rustix::fs::mknodat(rustix::fs::CWD, &path, FileType::Fifo, Mode::RUSR, 0).unwrap();
        assert_eq!(host_key(&root), None, "a pipe");
    }

    #[test]
    fn a_socket_that_listens_is_told_from_others() {
        let list =
            |lines: &[&str]| format!("  sl  local_address rem_address st\n{}", lines.join("\n"));
        let listens = "   0: 02004D0A:0016 00000000:0000 0A 00000000:00000000 00:00000000";
        let other = "   1: 02004D0A:1F90 00000000:0000 0A 00000000:00000000 00:00000000";
        let open = "   2: 02004D0A:0016 01004D0A:C350 01 00000000:00000000 00:00000000";
        assert!(has_listener(&list(&[other, open, listens])));
        assert!(!has_listener(&list(&[other, open])));
        assert!(!has_listener(""));
    }

    #[test]
    fn an_image_without_openssh_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        fs::create_dir_all(root.join("usr/sbin")).unwrap();
        fs::create_dir_all(root.join("usr/bin")).unwrap();
        fs::write(root.join("usr/bin/ssh-keygen"), "").unwrap();
        let refused = check_programs(root, Path::new("/image")).unwrap_err().to_string();
        assert!(refused.contains("/image has no OpenSSH server (usr/sbin/sshd)"), "{refused}");
        fs::write(root.join("usr/sbin/sshd"), "").unwrap();
        check_programs(root, root).unwrap();
    }
}
