//! Operating systems of drives, and what is left of them.
//!
//! The image is the folder of $CSD_OS_ROOT (`make os` sets it), or else this machine's own root.

use std::fs;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use csd_tests::wire::Command as Sqe;
use serde_json::Value;

use crate::support::drive::Drive;
use crate::support::harness::{Done, Running, finish, wait_until};

/// Returns true, and says so, if no operating system can run here.
pub(crate) fn skipped() -> bool {
    let has =
        |tool: &str| ["/usr/sbin", "/usr/bin"].iter().any(|f| Path::new(f).join(tool).exists());
    let missing = ["runc", "losetup", "mke2fs"].into_iter().find(|tool| !has(tool));
    let why = match missing {
        _ if !rustix::process::geteuid().is_root() => "csd os needs root".to_owned(),
        Some(tool) => format!("no {tool}"),
        None if !Path::new("/dev/fuse").exists() => "no /dev/fuse".to_owned(),
        None => return false,
    };
    eprintln!("SKIPPED: {why}");
    true
}

/// Returns the root folder of the image.
pub(crate) fn image() -> String {
    std::env::var("CSD_OS_ROOT").unwrap_or_else(|_| "/".to_owned())
}

/// A drive with an operating system, which is stopped on drop.
pub(crate) struct Guest {
    pub(crate) drive: Drive,
    pub(crate) url: String,
}

impl Guest {
    /// Serves a drive of these media, without an operating system.
    pub(crate) fn drive(media: &str) -> Self {
        let drive = Drive::serve(media, &OPTIONS);
        let url = drive.inside_url("d0.inside");
        Self { drive, url }
    }

    /// Serves a drive in memory, and starts its operating system with these additional options.
    pub(crate) fn up(options: &[&str]) -> Self {
        let guest = Self::drive("memory");
        guest.start(options).expect(0, &[]);
        guest
    }

    pub(crate) fn start(&self, options: &[&str]) -> Done {
        let image = image();
        let up = ["os", "up", &self.url, "--root", &image];
        self.drive.array.csd(&[&up[..], options].concat())
    }

    pub(crate) fn down(&self) -> Done {
        self.drive.array.csd(&["os", "down", &self.url])
    }

    /// Runs a program inside.
    pub(crate) fn exec(&self, program: &[&str]) -> Done {
        finish(self.spawn(program))
    }

    /// Starts a program inside.
    pub(crate) fn spawn(&self, program: &[&str]) -> Running {
        let exec = [&["os", "exec", &self.url, "--"], program].concat();
        self.drive.array.spawn(&exec, Stdio::null())
    }

    /// Runs a script inside.
    pub(crate) fn sh(&self, script: &str) -> Done {
        self.exec(&["sh", "-c", script])
    }

    pub(crate) fn status(&self) -> Value {
        let done = self.drive.array.csd(&["os", "status", &self.url, "--json"]);
        done.json()["result"]["drives"][0].clone()
    }

    /// Returns the folder of the operating system.
    pub(crate) fn folder(&self) -> PathBuf {
        self.drive.array.path("d0.inside.os").canonicalize().unwrap()
    }

    /// Returns true if the drive says that only the inside may change blocks.
    pub(crate) fn is_inside_only(&self) -> bool {
        let (mut admin, _io) = self.drive.connect();
        let feature = admin.command(Sqe::new(0x0A, 1).dword(10, 0xC0), &[], 0);
        assert_eq!(feature.status, 0);
        feature.result == 1
    }

    /// Returns the status of a write of a host.
    pub(crate) fn write_outside(&self, slba: u32) -> u16 {
        let (_admin, mut io) = self.drive.connect();
        let write = Sqe::new(0x01, 1).dword(10, slba);
        io.command(write, &[7; 4096], 0).status
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        let down = self.down();
        if !std::thread::panicking() && !skipped_quietly() {
            assert!(matches!(down.code, 0 | 4), "{}", down.stderr);
        }
    }
}

fn skipped_quietly() -> bool {
    !rustix::process::geteuid().is_root()
}

/// Options of a drive with an inside.
pub(crate) const OPTIONS: [&str; 4] = ["--inside", "d0.inside", "--kv", "20%"];

/// Asserts that nothing of an operating system is left on this machine: the record's identifier
/// names its control groups.
#[track_caller]
pub(crate) fn nothing_left(folder: &Path, id: &str) {
    let text = folder.to_str().unwrap();
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
    assert!(!mounts.contains(text), "a mount is left: {mounts}");
    for device in fs::read_dir("/sys/block").unwrap().flatten() {
        let file = fs::read_to_string(device.path().join("loop/backing_file")).unwrap_or_default();
        assert!(!file.starts_with(text), "{:?} is left", device.path());
    }
    let mut groups: Vec<PathBuf> = vec!["/sys/fs/cgroup".into()];
    groups.extend(fs::read_dir("/sys/fs/cgroup").unwrap().flatten().map(|entry| entry.path()));
    for group in groups {
        assert!(!group.join(id).exists(), "{} is left", group.join(id).display());
    }
    for process in fs::read_dir("/proc").unwrap().flatten() {
        let line = fs::read(process.path().join("cmdline")).unwrap_or_default();
        let line = String::from_utf8_lossy(&line).into_owned();
        assert!(!line.contains(text), "{:?} is left: {line}", process.path());
    }
}

/// Returns the identifier of an operating system.
pub(crate) fn id(folder: &Path) -> String {
    let record = fs::read(folder.join("record.json")).unwrap();
    serde_json::from_slice::<Value>(&record).unwrap()["id"].as_str().unwrap().to_owned()
}

/// Kills the drive, and waits until nothing of it answers.
pub(crate) fn kill_drive(guest: &mut Guest) {
    guest.drive.kill();
    // The kernel may close a ring's sockets after the process has ended.
    let socket = guest.drive.array.path("d0.inside");
    wait_until("its socket refuses connections", || UnixStream::connect(&socket).is_err());
}

/// Returns the processes of a record.
pub(crate) fn processes(folder: &Path) -> Vec<u32> {
    let record: Value =
        serde_json::from_slice(&fs::read(folder.join("record.json")).unwrap()).unwrap();
    let all = record["processes"].as_array().unwrap();
    all.iter().map(|process| u32::try_from(process["pid"].as_u64().unwrap()).unwrap()).collect()
}
