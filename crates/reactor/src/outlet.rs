//! [`Outlet`]: lines on their way to a writer that may block, such as standard error.
//!
//! A thread of its own writes them, so that whoever has something to say never waits. Does not
//! format lines. Invariants: what waits is bounded; a line that finds no room is dropped and
//! counted, and the count is written as soon as the writer takes lines again; nobody waits for the
//! thread longer than is said.

use std::io::{self, Write};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// What waits, and what did not find room.
#[derive(Default)]
struct State {
    waiting: Vec<u8>,
    dropped: u64,
    /// The thread writes what it took.
    writing: bool,
    closed: bool,
}

#[derive(Default)]
struct Common {
    state: Mutex<State>,
    /// There is something to write, or nothing will come any more.
    more: Condvar,
    /// All that was there is written.
    idle: Condvar,
}

impl Common {
    /// Nothing that may panic runs under the lock.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn write_all(&self, mut writer: impl Write, tell: impl Fn(u64) -> String) {
        let mut state = self.lock();
        loop {
            while state.waiting.is_empty() && state.dropped == 0 {
                state.writing = false;
                self.idle.notify_all();
                if state.closed {
                    return;
                }
                state = self.more.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
            state.writing = true;
            let mut lines = std::mem::take(&mut state.waiting);
            // They found no room behind these lines, so they come after them.
            let dropped = std::mem::take(&mut state.dropped);
            drop(state);
            if dropped > 0 {
                lines.extend_from_slice(tell(dropped).as_bytes());
                lines.push(b'\n');
            }
            // A reader that has gone away wants nothing more.
            let _gone = writer.write_all(&lines).and_then(|()| writer.flush());
            state = self.lock();
        }
    }
}

/// Takes lines without ever blocking.
pub struct Outlet {
    common: Arc<Common>,
    bytes_max: usize,
}

impl Outlet {
    /// Starts the thread. At most `bytes_max` bytes wait, and as many are being written; `tell`
    /// makes the line that says how many lines were dropped.
    ///
    /// # Errors
    /// When no thread can be started.
    pub fn new(
        bytes_max: usize,
        writer: impl Write + Send + 'static,
        tell: impl Fn(u64) -> String + Send + 'static,
    ) -> io::Result<Self> {
        let common = Arc::<Common>::default();
        let theirs = Arc::clone(&common);
        let builder = std::thread::Builder::new().name("outlet".to_owned());
        // Not joined: it may be blocked for ever.
        builder.spawn(move || theirs.write_all(writer, tell))?;
        Ok(Self { common, bytes_max })
    }

    /// Has a line written, which has no line feed at its end. Those that are `urgent` find room
    /// for as many bytes again when there is none for others.
    pub fn put(&self, line: &str, urgent: bool) {
        let most = if urgent { self.bytes_max * 2 } else { self.bytes_max };
        let mut state = self.common.lock();
        if state.waiting.len() + line.len() + 1 > most {
            state.dropped += 1;
            return;
        }
        state.waiting.extend_from_slice(line.as_bytes());
        state.waiting.push(b'\n');
        drop(state);
        self.common.more.notify_one();
    }

    /// Waits until everything is written, but no longer than `limit`; whether it is.
    pub fn flush(&self, limit: Duration) -> bool {
        let until = Instant::now() + limit;
        let mut state = self.common.lock();
        while state.writing || !state.waiting.is_empty() || state.dropped > 0 {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            let waited = self.common.idle.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        true
    }
}

impl Drop for Outlet {
    fn drop(&mut self) {
        self.common.lock().closed = true;
        self.common.more.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, Sender, channel};

    use super::*;

    /// Says what it is given, and blocks until it is let go on.
    struct Blocking(Sender<String>, Receiver<()>);

    impl Write for Blocking {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.send(String::from_utf8_lossy(bytes).into_owned()).unwrap();
            self.1.recv().map_err(io::Error::other)?;
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn nobody_waits_for_a_writer_and_what_was_dropped_is_counted() {
        let ((told, said), (go_on, gate)) = (channel(), channel());
        let tell = |count| format!("{count} dropped");
        let outlet = Outlet::new(100, Blocking(told, gate), tell).unwrap();
        outlet.put("first", false);
        assert_eq!(said.recv().unwrap(), "first\n");
        // The writer is blocked now: ten lines of ten bytes find room, and ten urgent ones.
        (0..30).for_each(|i| outlet.put(&format!("line {i:04}"), false));
        (0..30).for_each(|i| outlet.put(&format!("must {i:04}"), true));
        assert!(!outlet.flush(Duration::ZERO), "it is blocked");
        go_on.send(()).unwrap();
        let lines = said.recv().unwrap();
        let lines: Vec<&str> = lines.lines().collect();
        assert_eq!(lines.len(), 21);
        assert_eq!((lines[9], lines[19], lines[20]), ("line 0009", "must 0009", "40 dropped"));
        outlet.put("last", false);
        go_on.send(()).unwrap();
        assert_eq!(said.recv().unwrap(), "last\n");
        go_on.send(()).unwrap();
        assert!(outlet.flush(Duration::from_secs(60)));
    }
}
