//! Base of all tests here: the binary, and arrays that are removed at the end.

use std::fs::{self, File};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use csd_tests::drive::LIMIT;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

/// Outcome of a command.
#[derive(Debug)]
pub(crate) struct Done {
    pub(crate) code: i32,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: String,
}

impl Done {
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned()
    }

    /// Asserts the exit code, and that every one of `words` is on standard error.
    #[track_caller]
    pub(crate) fn expect(self, code: i32, words: &[&str]) -> Self {
        assert_eq!(self.code, code, "exit code; it said: {}{}", self.text(), self.stderr);
        for word in words {
            assert!(self.stderr.contains(word), "{word:?} is not in: {}", self.stderr);
        }
        assert!(!self.stderr.contains("panicked"), "{}", self.stderr);
        self
    }

    /// Parses the one JSON object on standard output.
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.stdout).unwrap_or_else(|error| {
            panic!("{error}: {}{}", self.text(), self.stderr);
        })
    }
}

/// Array of drives in its own folder, removed on drop.
pub(crate) struct Array {
    pub(crate) folder: TempDir,
}

impl Array {
    /// Makes a folder without an array; one that is started there is removed on drop, too.
    pub(crate) fn without_drives() -> Self {
        Self { folder: TempDir::new().unwrap() }
    }

    /// Starts an array of `drives` drives in memory, of `size` each.
    pub(crate) fn up(drives: usize, size: &str) -> Self {
        let array = Self::without_drives();
        array.start(drives, size, "memory");
        array
    }

    /// Starts an array of drives on files.
    pub(crate) fn up_on_files(drives: usize, size: &str) -> Self {
        let array = Self::without_drives();
        array.start(drives, size, "file");
        array
    }

    fn start(&self, drives: usize, size: &str, media: &str) {
        let drives = drives.to_string();
        let up = ["array", "up", "--drives", &drives, "--size", size, "--media", media];
        self.csd(&up).expect(0, &[]);
    }

    /// Runs `csd` in the array's folder.
    #[track_caller]
    pub(crate) fn csd(&self, arguments: &[&str]) -> Done {
        self.csd_with(arguments, None)
    }

    /// Runs `csd` with this file as standard input.
    #[track_caller]
    pub(crate) fn csd_with(&self, arguments: &[&str], input: Option<&Path>) -> Done {
        let stdin = input.map_or_else(Stdio::null, |path| File::open(path).unwrap().into());
        finish(self.spawn(arguments, stdin))
    }

    /// Starts `csd` in the array's folder.
    pub(crate) fn spawn(&self, arguments: &[&str], stdin: Stdio) -> Running {
        self.spawn_as(Command::new(binary()), arguments, stdin)
    }

    /// Starts another command, which starts `csd`.
    pub(crate) fn spawn_as(
        &self,
        mut command: Command,
        arguments: &[&str],
        stdin: Stdio,
    ) -> Running {
        command.current_dir(self.folder.path()).env_remove("CSD_ARRAY").args(arguments);
        command.env_remove("CSD_HOST_NQN");
        let output = TempDir::new().unwrap();
        let file = |name: &str| File::create(output.path().join(name)).unwrap();
        let child = command.stdin(stdin).stdout(file("out")).stderr(file("err")).spawn().unwrap();
        Running { child, output }
    }

    /// Writes a file into the array's folder, and returns its name.
    pub(crate) fn file<'a>(&self, name: &'a str, bytes: &[u8]) -> &'a str {
        fs::write(self.path(name), bytes).unwrap();
        name
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Returns the status of every drive by `array status --json`.
    pub(crate) fn drives(&self) -> Vec<Value> {
        let status = self.csd(&["array", "status", "--json"]).json();
        status["result"]["drives"].as_array().unwrap().clone()
    }

    /// Returns a drive's URL.
    pub(crate) fn url(&self, drive: usize) -> String {
        self.drives()[drive]["url"].as_str().unwrap().to_owned()
    }

    /// Kills a drive, as a power cut of its machine would, and waits for its end.
    pub(crate) fn kill(&self, drive: usize) {
        self.end(drive, Signal::KILL);
    }

    /// Stops a drive, which makes everything that it has stored durable, and waits for its end.
    pub(crate) fn stop(&self, drive: usize) {
        self.end(drive, Signal::TERM);
    }

    fn end(&self, drive: usize, by: Signal) {
        let drive = &self.drives()[drive];
        let pid = drive["pid"].as_u64().unwrap();
        let address = address_of(drive["url"].as_str().unwrap());
        signal(u32::try_from(pid).unwrap(), by);
        wait_until("the drive is dead", || !alive(pid));
        // The kernel may close a ring's sockets after the process has ended.
        let refuses = || TcpStream::connect(address).is_err();
        wait_until("its address refuses connections", refuses);
    }
}

impl Drop for Array {
    fn drop(&mut self) {
        let down = self.csd(&["array", "down", "--delete", "--yes"]);
        if !std::thread::panicking() {
            assert!(down.code == 0 || down.code == 2, "{}", down.stderr);
        }
    }
}

/// Command that has not ended.
pub(crate) struct Running {
    pub(crate) child: Child,
    pub(crate) output: TempDir,
}

/// Waits for a command's end, at most [`LIMIT`].
#[track_caller]
pub(crate) fn finish(mut running: Running) -> Done {
    let start = Instant::now();
    let status = loop {
        match running.child.try_wait().unwrap() {
            Some(status) => break status,
            None if start.elapsed() > LIMIT => {
                running.child.kill().unwrap();
                panic!("a command hangs");
            }
            None => std::thread::sleep(Duration::from_millis(2)),
        }
    };
    let read = |name: &str| fs::read(running.output.path().join(name)).unwrap();
    let stderr = String::from_utf8_lossy(&read("err")).into_owned();
    // A command that a signal ended has no exit code; no test expects -1.
    Done { code: status.code().unwrap_or(-1), stdout: read("out"), stderr }
}

impl Running {
    /// Waits until `begun`, and sends the command a signal, unless it ends before.
    #[track_caller]
    pub(crate) fn signal_once(&mut self, mut begun: impl FnMut() -> bool, by: Signal) {
        wait_until("it has begun", || self.child.try_wait().unwrap().is_some() || begun());
        // The number of one that has ended belongs to no process any more, or to another one.
        if self.child.try_wait().unwrap().is_none() {
            signal(self.child.id(), by);
        }
    }

    /// Waits until the drive that was started so has written its `--ready-file`; returns its URL.
    #[track_caller]
    pub(crate) fn serves(&mut self, ready: &Path) -> String {
        wait_until("the drive serves", || {
            if let Some(status) = self.child.try_wait().unwrap() {
                let error = fs::read_to_string(self.output.path().join("err")).unwrap();
                panic!("the drive ended ({status}): {error}");
            }
            ready.exists()
        });
        fs::read_to_string(ready).unwrap()
    }
}

/// Polls until `condition` holds, at most for [`LIMIT`].
#[track_caller]
pub(crate) fn wait_until(what: &str, mut condition: impl FnMut() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < LIMIT, "never: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

pub(crate) fn signal(pid: u32, signal: Signal) {
    let pid = Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
    kill_process(pid, signal).unwrap();
}

pub(crate) fn alive(pid: u64) -> bool {
    // The first thread may have ended while others still hold sockets.
    let threads = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    threads.map(|thread| thread.path().join("stat")).any(|stat| {
        let stat = fs::read_to_string(stat).unwrap_or_default();
        stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
    })
}

/// Returns the socket address in a drive's URL.
pub(crate) fn address_of(url: &str) -> SocketAddr {
    url.strip_prefix("nvme+tcp://").unwrap().split('/').next().unwrap().parse().unwrap()
}

/// Returns a path of this repository.
pub(crate) fn root(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)
}

/// Returns the `csd` binary of this build.
pub(crate) fn binary() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_csd"))
}

/// Returns the path of a built example of the SDK.
pub(crate) fn built(name: &str) -> String {
    root(&format!("sdk/built/{name}.wasm")).to_str().unwrap().to_owned()
}
