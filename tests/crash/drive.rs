//! The drive: the real program as a process, on the medium.

use std::fs;
use std::process::Stdio;
use std::sync::Arc;
use std::time::{Duration, Instant};

use csd_initiator::Address;
use csd_reactor::sleep;
use rustix::process::Signal;
use tempfile::TempDir;

use crate::harness::{Array, Done, Running, finish, signal};
use crate::medium::Medium;
use crate::mount::Mount;
use crate::{Numbers, seeded};

/// Size of the medium: the smallest drive, whose log is filled and cleaned soonest.
const MEDIUM_BYTES: usize = 128 << 20;
/// Longest that a start may take.
const LIMIT: Duration = Duration::from_secs(600);
const LOOK_EVERY: Duration = Duration::from_millis(2);

/// Outcome of a start.
pub(crate) enum Start {
    Serves(Address),
    Ended(Done),
}

/// Medium, and at most one process that serves it. Both are removed on drop.
pub(crate) struct Drive {
    running: Option<Running>,
    options: Vec<String>,
    /// True if the next start gets `--volatile-cache`.
    pub(crate) volatile_cache: bool,
    // A folder, and a way to run the program in it; it contains no array.
    folder: Array,
    mount: Mount,
    pub(crate) medium: Arc<Medium>,
}

impl Drive {
    /// Makes an empty medium; every start of the process gets these additional `options`.
    pub(crate) fn new(options: &[&str], numbers: &mut Numbers) -> Self {
        let seed = numbers.next().expect("endless");
        let medium = Arc::new(Medium::new(MEDIUM_BYTES, seeded(seed)));
        let mount = Mount::new(Arc::clone(&medium)).expect("mounts");
        let path = mount.path().to_str().expect("a plain name").to_owned();
        let size = MEDIUM_BYTES.to_string();
        let serve = ["drive", "serve", "--media", &path, "--size", &size];
        let told = ["--listen", "127.0.0.1:0", "--ready-file", "ready"];
        let options = [&serve[..], &told[..], options].concat();
        let options = options.into_iter().map(str::to_owned).collect();
        let folder = Array { folder: TempDir::new().expect("a folder") };
        Self { running: None, options, volatile_cache: false, folder, mount, medium }
    }

    /// Starts the process; returns its pid.
    pub(crate) fn spawn(&mut self) -> u32 {
        let _ = fs::remove_file(self.folder.path("ready"));
        let mut options: Vec<&str> = self.options.iter().map(String::as_str).collect();
        options.extend(self.volatile_cache.then_some("--volatile-cache"));
        let running = self.folder.spawn(&options, Stdio::null());
        self.running.insert(running).child.id()
    }

    pub(crate) fn pid(&self) -> u32 {
        self.running.as_ref().expect("spawned").child.id()
    }

    /// Waits until the process serves, or has ended.
    pub(crate) async fn started(&mut self) -> Start {
        let begun = Instant::now();
        loop {
            let running = self.running.as_mut().expect("spawned");
            if running.child.try_wait().expect("a child").is_some() {
                return Start::Ended(finish(self.running.take().expect("spawned")));
            }
            if let Ok(url) = fs::read_to_string(self.folder.path("ready")) {
                return Start::Serves(url.parse().expect("a drive's URL"));
            }
            assert!(begun.elapsed() < LIMIT, "a start hangs");
            sleep(LOOK_EVERY).await;
        }
    }

    /// Starts the process, and fails unless it serves.
    pub(crate) async fn serve(&mut self) -> Result<Address, String> {
        self.spawn();
        match self.started().await {
            Start::Serves(address) => Ok(address),
            Start::Ended(done) => Err(format!("it did not start: {}", done.stderr)),
        }
    }

    /// Kills the process, if something else has not done so already, and waits for its end.
    pub(crate) fn kill(&mut self) -> Result<(), String> {
        let mut running = self.running.take().expect("spawned");
        running.child.kill().expect("a child that is not waited for");
        let done = finish(running);
        // It was killed, so it has no exit code.
        if done.code == -1 { Ok(()) } else { Err(format!("it ended by itself: {}", done.stderr)) }
    }

    /// Waits for the clean end of a process that was asked to stop.
    pub(crate) fn stopped(&mut self) -> Result<(), String> {
        let done = finish(self.running.take().expect("spawned"));
        match done.code {
            0 => Ok(()),
            code => Err(format!("a stop ended with {code}: {}", done.stderr)),
        }
    }

    /// Asks the process to stop, and waits.
    pub(crate) fn stop(&mut self) -> Result<(), String> {
        signal(self.pid(), Signal::TERM);
        self.stopped()
    }

    /// Returns what the program prints of the state of the drive, which serves.
    pub(crate) fn status(&self) -> String {
        let url = fs::read_to_string(self.folder.path("ready")).expect("it serves");
        self.folder.csd(&["drive", "status", url.trim()]).text()
    }

    /// Runs the program's check for damage.
    pub(crate) fn check(&self) -> Result<(), String> {
        let path = self.mount.path();
        let done = self.folder.csd(&["drive", "check", path.to_str().expect("a plain name")]);
        match done.code {
            0 => Ok(()),
            _ => Err(format!("check found damage: {}{}", done.text(), done.stderr)),
        }
    }
}

impl Drop for Drive {
    fn drop(&mut self) {
        self.medium.set_trip(None);
        self.medium.hold_syncs(false, 0);
        if let Some(mut running) = self.running.take() {
            let _gone = running.child.kill();
            let _reaped = running.child.wait();
        }
    }
}
