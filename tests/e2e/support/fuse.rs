//! Commands that mount a file system of their own.

use std::fs::OpenOptions;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use rustix::mount::{UnmountFlags, unmount};

use super::harness::{Array, Done, Running, finish, wait_until};

/// Returns true, and says so, if this machine cannot mount.
pub(crate) fn skipped() -> bool {
    let device = OpenOptions::new().read(true).write(true).open("/dev/fuse");
    let why = match device {
        _ if !rustix::process::geteuid().is_root() => "mounting takes root".to_owned(),
        Err(error) => format!("/dev/fuse: {error}"),
        Ok(_) => return false,
    };
    eprintln!("SKIPPED: {why}");
    true
}

/// A command that runs, and the folder on which it mounts; unmounted on drop.
pub(crate) struct Mounting {
    pub(crate) folder: PathBuf,
    pub(crate) running: Option<Running>,
}

impl Mounting {
    /// Starts a command with the folder of this name between its words, and waits until what it
    /// shows is there.
    pub(crate) fn start(
        array: &Array,
        (before, name, behind): (&[&str], &str, &[&str]),
        is_there: impl Fn(&Path) -> bool,
    ) -> Self {
        let folder = array.path(name);
        // It may be there already, as the mount of a process that was killed.
        let _there = std::fs::create_dir(&folder);
        let arguments = [before, &[folder.to_str().unwrap()], behind].concat();
        let running = Some(array.spawn(&arguments, Stdio::null()));
        let mut mounting = Self { folder, running };
        wait_until("it is mounted", || {
            let child = &mut mounting.running.as_mut().unwrap().child;
            assert!(child.try_wait().unwrap().is_none(), "{:?}", mounting.end());
            is_there(&mounting.folder)
        });
        mounting
    }

    /// Waits for the command's end.
    pub(crate) fn end(&mut self) -> Done {
        finish(self.running.take().unwrap())
    }
}

impl Drop for Mounting {
    fn drop(&mut self) {
        if let Some(mut running) = self.running.take() {
            let _gone = running.child.kill();
            let _reaped = running.child.wait();
            let _unmounted = unmount(&self.folder, UnmountFlags::DETACH);
        }
    }
}
