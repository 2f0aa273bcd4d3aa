//! Operating systems on a plain file in place of a drive, with this machine's root as their image.
//!
//! The tests are skipped, in words, without root or runc.

#![allow(missing_docs, clippy::unwrap_used)]

use std::cell::RefCell;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use csd_os::config::Limits;
use csd_os::down::{Stopped, down, forget};
use csd_os::filesystem::Fs;
use csd_os::os_folder::OsFolder;
use csd_os::record::Record;
use csd_os::status::{Container, status};
use csd_os::up::{Options, Started, up};
use csd_os::{Drive, Error, mounts, tools};
use tempfile::TempDir;

/// A file of 64 MiB that stands for a drive, and the calls that it got.
struct File {
    folder: TempDir,
    calls: RefCell<Vec<String>>,
}

impl Drive for File {
    fn reserve(&self, inside_only: bool) -> Result<(), String> {
        self.calls.borrow_mut().push(format!("reserve {inside_only}"));
        Ok(())
    }

    fn clear(&self) -> Result<(), String> {
        self.calls.borrow_mut().push("clear".to_owned());
        let file = fs::File::options().write(true).open(self.path()).unwrap();
        file.set_len(0).and_then(|()| file.set_len(64 << 20)).map_err(|error| error.to_string())
    }
}

impl File {
    /// Returns nothing, and says so, if no operating system can run here.
    fn new() -> Option<Self> {
        if let Err(why) = tools::check() {
            eprintln!("SKIPPED: {why}");
            return None;
        }
        let file = Self { folder: TempDir::new().unwrap(), calls: RefCell::default() };
        fs::File::create(file.path()).unwrap().set_len(64 << 20).unwrap();
        Some(file)
    }

    fn path(&self) -> std::path::PathBuf {
        self.folder.path().join("drive")
    }

    fn os_folder(&self) -> OsFolder {
        OsFolder::new(&self.folder.path().canonicalize().unwrap().join("os"))
    }

    /// Returns an identifier of its own.
    fn id(&self) -> String {
        let folder = self.folder.path().to_string_lossy();
        let plain = folder.chars().filter(char::is_ascii_alphanumeric);
        format!("csd-os-test-{}", plain.collect::<String>())
    }

    /// Starts it; its door is a link to the file, which a process has to serve.
    fn up(&self, limits: Limits) -> Result<Started, Error> {
        let os_folder = self.os_folder();
        let (file, blocks) = (self.path(), os_folder.blocks());
        let script = format!(
            // It may be ended as soon as it says that it is ready.
            "trap 'rm {}; exit' TERM; ln {} {}; echo ready; while :; do sleep 1000 & wait; done",
            blocks.display(),
            file.display(),
            blocks.display()
        );
        let (pipe, log) = (os_folder.log_pipe(), os_folder.log());
        let keeper =
            format!("exec 3<>{}; echo ready; exec cat <&3 >>{}", pipe.display(), log.display());
        let options = Options {
            id: self.id(),
            name: "d0".to_owned(),
            image: "/".into(),
            limits,
            fs: Fs::Ext4,
            door: ["/bin/sh", "-c", &script].map(str::to_owned).to_vec(),
            log_keeper: ["/bin/sh", "-c", &keeper].map(str::to_owned).to_vec(),
            tunnel: None,
            hosts: vec![([10, 77, 0, 3].into(), "d1".to_owned())],
        };
        up(&os_folder, &options, self)
    }

    /// Runs a script inside.
    fn sh(&self, script: &str) -> Output {
        let record = Record::load(&self.os_folder()).unwrap().unwrap();
        let mut runc = Command::new("runc");
        runc.arg("--root")
            .arg(self.os_folder().runc())
            .args(["exec", "--cwd", "/data", &record.id]);
        runc.args(["sh", "-c", script]).output().unwrap()
    }

    fn said(&self, script: &str) -> String {
        let done = self.sh(script);
        assert!(done.status.success(), "{script}: {done:?}");
        String::from_utf8(done.stdout).unwrap()
    }

    fn down(&self) -> Stopped {
        let stopped = down(&self.os_folder(), self).unwrap();
        assert_eq!(mounts::below(self.os_folder().folder()).unwrap(), []);
        stopped
    }
}

impl Drop for File {
    fn drop(&mut self) {
        let stopped = down(&self.os_folder(), self);
        if !std::thread::panicking() {
            stopped.unwrap();
        }
    }
}

const LIMITS: Limits = Limits { cpus: 0.5, memory_bytes: 128 << 20, pids: 64 };

#[test]
fn a_file_system_is_made_once_and_outlives_the_operating_system() {
    let Some(file) = File::new() else { return };
    assert!(status(&file.os_folder()).unwrap().is_none());
    let started = file.up(LIMITS).unwrap();
    assert!(started.is_new && started.is_formatted && started.host_key.is_none());
    assert_eq!(
        file.said("hostname; pwd; id -u; cat /etc/hosts | tail -n 1"),
        "d0\n/data\n0\n10.77.0.3 d1\n"
    );
    file.said("echo kept > a; echo changed > /opt/csd-test");
    assert!(!Path::new("/opt/csd-test").exists());
    let state = status(&file.os_folder()).unwrap().unwrap();
    assert!(state.is_up(), "{state:?}");
    assert!(state.usage.pids > 0 && state.usage.cpu_s > 0.0 && state.usage.memory_bytes > 0);
    assert!(state.data.is_some_and(|data| data.bytes > 40 << 20 && !data.is_read_only));
    assert!(!file.up(LIMITS).unwrap().is_new);
    assert!(file.down().was_there && !file.down().was_there);
    assert_eq!(fs::read_dir(file.os_folder().folder()).unwrap().count(), 4, "lock and three logs");
    assert!(!file.up(LIMITS).unwrap().is_formatted);
    assert_eq!(file.said("cat a /opt/csd-test"), "kept\nchanged\n");
    assert!(forget(&file.os_folder()).is_err(), "it runs");
    file.down();
    forget(&file.os_folder()).unwrap();
    assert!(!file.os_folder().folder().exists());
    assert_eq!(file.calls.borrow().last().unwrap(), "reserve false");
    assert!(!file.calls.borrow().contains(&"clear".to_owned()));
}

#[test]
fn rests_of_a_killed_one_are_removed_by_down_and_by_up() {
    let Some(file) = File::new() else { return };
    file.up(LIMITS).unwrap();
    let state = status(&file.os_folder()).unwrap().unwrap();
    let Container::Running(pid) = state.container else { panic!("{state:?}") };
    let kill = |pid: u32| {
        let killed = Command::new("kill").args(["-9", &pid.to_string()]).status().unwrap();
        assert!(killed.success());
    };
    kill(pid);
    kill(state.record.processes[0].pid);
    let faults = || status(&file.os_folder()).unwrap().unwrap().faults.len();
    while faults() < 2 {}
    fs::remove_file(file.os_folder().blocks()).unwrap();
    file.down();
    let started = file.up(LIMITS).unwrap();
    assert!(started.is_new && !started.is_formatted);
    // A file system that was begun.
    file.down();
    let mut record = state.record.clone();
    (record.formatting, record.processes) = (true, Vec::new());
    record.save(&file.os_folder()).unwrap();
    assert!(file.up(LIMITS).unwrap().is_formatted);
    assert!(file.calls.borrow().contains(&"clear".to_owned()));
}

#[test]
fn a_namespace_with_anything_in_it_is_left_as_it_is() {
    let Some(file) = File::new() else { return };
    let mut bytes = vec![0; 64 << 20];
    bytes[5_000_000] = 1;
    fs::write(file.path(), &bytes).unwrap();
    let refused = file.up(LIMITS).unwrap_err();
    assert!(matches!(&refused, Error::Usage(why) if why.contains("byte 5000000")), "{refused}");
    assert!(fs::read(file.path()).unwrap() == bytes);
    assert_eq!(*file.calls.borrow(), ["reserve true", "reserve false"]);
    assert!(Record::load(&file.os_folder()).unwrap().is_none());
}
