//! [`OtherWork`]: work of the machine next to a drive that the drive has no part in. Its cost for
//! foreground I/O is compared with that of a service that does the same kind of work.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use csd_reactor::{Buffer, Config, File, FileOptions, block_on};

use crate::Error;

/// Bytes that are read or written at once: four windows of a scrub, a batch of cleaning.
pub const WINDOW_BYTES: u64 = 256 << 10;

/// Work that goes on until it is ended or dropped.
pub struct OtherWork(Kind);

enum Kind {
    Process(Child),
    OfFile { stop: Arc<AtomicBool>, thread: Option<JoinHandle<Result<(), Error>>> },
}

impl OtherWork {
    /// Hashes zeros in a process that runs on idle time only, as a drive's computation does.
    ///
    /// # Errors
    /// If `chrt` of util-linux or `sha1sum` is missing.
    pub fn hash() -> Result<Self, Error> {
        let mut hash = Command::new("chrt");
        hash.args(["--idle", "0", "sha1sum", "/dev/zero"]);
        hash.stdin(Stdio::null()).stdout(Stdio::null());
        let started = hash.spawn().map_err(Error::system("cannot start chrt"))?;
        Ok(Self(Kind::Process(started)))
    }

    /// Reads a file from its begin to its end, again and again, past the page cache: so many
    /// windows of [`WINDOW_BYTES`] a second, or one after the other.
    ///
    /// # Errors
    /// If the thread cannot be started; a failed read ends the work, see [`OtherWork::end`].
    pub fn read(path: &Path, windows_per_s: Option<u32>) -> Result<Self, Error> {
        let options = FileOptions { read: true, direct: true, ..FileOptions::default() };
        Self::of_file(path, options, windows_per_s)
    }

    /// Reads windows of a file, writes them to where they were and syncs, past the page cache: so
    /// many windows of [`WINDOW_BYTES`] a second.
    ///
    /// # Errors
    /// If the thread cannot be started; a failed read or write ends the work, see
    /// [`OtherWork::end`].
    pub fn rewrite(path: &Path, windows_per_s: u32) -> Result<Self, Error> {
        let options =
            FileOptions { read: true, write: true, direct: true, ..FileOptions::default() };
        Self::of_file(path, options, Some(windows_per_s))
    }

    fn of_file(path: &Path, options: FileOptions, per_s: Option<u32>) -> Result<Self, Error> {
        let (path, stop) = (path.to_owned(), Arc::new(AtomicBool::new(false)));
        let pause = per_s.map_or(Duration::ZERO, |count| Duration::from_secs(1) / count);
        let seen = Arc::clone(&stop);
        let run = move || {
            let work = move || go_on(path, options, pause, seen);
            let done = block_on(&Config::default(), work);
            done.map_err(csd_client::Error::from)?.map_err(Error::system("a file next to a drive"))
        };
        let thread = std::thread::Builder::new().name("other-work".to_owned()).spawn(run);
        let thread = Some(thread.map_err(Error::system("cannot start a thread"))?);
        Ok(Self(Kind::OfFile { stop, thread }))
    }

    /// Ends it.
    ///
    /// # Errors
    /// If it had ended before.
    pub fn end(mut self) -> Result<(), Error> {
        match &mut self.0 {
            Kind::Process(child) => match child.try_wait() {
                Ok(None) => Ok(()),
                Ok(Some(status)) => Err(Error::Server(format!("sha1sum has ended: {status}"))),
                Err(error) => Err(Error::system("a process")(error)),
            },
            Kind::OfFile { stop, thread } => {
                stop.store(true, Ordering::Relaxed);
                let ended = thread.take().expect("it is ended once").join();
                ended.unwrap_or_else(|_| Err(Error::Server("work on a file panicked".to_owned())))
            }
        }
    }
}

impl Drop for OtherWork {
    fn drop(&mut self) {
        match &mut self.0 {
            // An error says that it has ended already.
            Kind::Process(child) => drop(child.kill().and_then(|()| child.wait())),
            Kind::OfFile { stop, .. } => stop.store(true, Ordering::Relaxed),
        }
    }
}

/// Reads a file, and writes it if the options say so, with a pause from one window to the next.
async fn go_on(
    path: PathBuf,
    options: FileOptions,
    pause: Duration,
    stop: Arc<AtomicBool>,
) -> std::io::Result<()> {
    let file = File::open(&path, &options).await?;
    let window = usize::try_from(WINDOW_BYTES).expect("a window");
    let windows = file.len().await? / WINDOW_BYTES;
    let (mut buffer, mut due) = (Buffer::zeroed(window), Instant::now());
    for number in (0..windows).cycle() {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        let at = number * WINDOW_BYTES;
        let (read, back) = file.read_at(at, buffer).await;
        (buffer, _) = (back, read?);
        if options.write {
            let (written, back) = file.write_at(at, buffer).await;
            (buffer, _) = (back, written?);
            file.sync_data().await?;
        }
        due += pause;
        csd_reactor::sleep(due.saturating_duration_since(Instant::now())).await;
    }
    Ok(())
}
