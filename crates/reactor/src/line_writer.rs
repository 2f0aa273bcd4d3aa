//! [`LineWriter`]: an asynchronous line writer for destinations that may block, such as standard
//! error.
//!
//! A thread of its own writes, so callers never wait. Lines arrive formatted. Invariants: the queue
//! is bounded; a line that does not fit, or is refused such as by a full disk, is dropped and
//! counted, and the count is written with the next lines that the destination takes; no line begins
//! within another one; waits for the thread have a limit.

use std::io::{self, Write};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The queue, and the number of dropped lines.
#[derive(Default)]
struct State {
    waiting: Vec<u8>,
    dropped: u64,
    /// True while the thread writes the lines it took.
    writing: bool,
    closed: bool,
}

#[derive(Default)]
struct Common {
    state: Mutex<State>,
    /// Signalled when there is something to write, or the writer closes.
    more: Condvar,
    /// Signalled when all queued lines are written.
    idle: Condvar,
}

impl Common {
    /// Locks the state. No code under this lock can panic, so a poisoned one is still consistent.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn write_all(&self, mut writer: impl Write, tell: impl Fn(u64) -> String) {
        // Lines that were refused, and whether the last one was cut.
        let (mut refused, mut is_cut) = (0, false);
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
            let lines = std::mem::take(&mut state.waiting);
            let dropped = std::mem::take(&mut state.dropped);
            drop(state);
            let told = |count| if count > 0 { tell(count) + "\n" } else { String::new() };
            let before = if is_cut { "\n".to_owned() } else { String::new() } + &told(refused);
            // Those that were dropped found no room behind these lines, so they come after them.
            let all = [before.as_bytes(), &lines, told(dropped).as_bytes()].concat();
            let written = write(&mut writer, &all);
            if written > 0 {
                is_cut = all[written - 1] != b'\n';
            }
            if written >= before.len() {
                refused = 0;
            }
            if written < all.len() {
                let kept = lines.len().min(written.saturating_sub(before.len()));
                refused += dropped + count(&lines[kept..]);
            }
            state = self.lock();
        }
    }
}

/// Returns the number of lines that end in these bytes.
fn count(bytes: &[u8]) -> u64 {
    bytes.iter().filter(|byte| **byte == b'\n').count() as u64
}

/// Writes as much as the writer takes, and returns how many bytes that is.
fn write(writer: &mut impl Write, bytes: &[u8]) -> usize {
    let mut written = 0;
    while written < bytes.len() {
        match writer.write(&bytes[written..]) {
            Ok(0) => break,
            Ok(count) => written += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            // A reader that has gone away wants nothing more.
            Err(_) => break,
        }
    }
    let _gone = writer.flush();
    written
}

/// Line writer that never blocks its callers.
pub struct LineWriter {
    common: Arc<Common>,
    bytes_max: usize,
}

impl LineWriter {
    /// Starts the thread. At most `bytes_max` bytes wait, and as many are being written; `tell`
    /// formats the line that reports the number of dropped lines.
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
        let builder = std::thread::Builder::new().name("line-writer".to_owned());
        // Not joined: it may be blocked for ever.
        builder.spawn(move || theirs.write_all(writer, tell))?;
        Ok(Self { common, bytes_max })
    }

    /// Queues a line without its line feed. `urgent` lines may use as many bytes again when the
    /// queue is full for others.
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

    /// Waits up to `limit` until everything is written; returns true if it is.
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

impl Drop for LineWriter {
    fn drop(&mut self) {
        self.common.lock().closed = true;
        self.common.more.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, Sender, channel};

    use super::*;

    /// Writer that reports each write, and blocks until it may continue.
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

    /// Disk with room for so many bytes, and what is on it.
    #[derive(Clone, Default)]
    struct Disk(Arc<Mutex<(usize, Vec<u8>)>>);

    impl Write for Disk {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let (room, content) = &mut *self.0.lock().unwrap();
            let count = bytes.len().min(*room);
            *room -= count;
            content.extend_from_slice(&bytes[..count]);
            if count > 0 { Ok(count) } else { Err(io::ErrorKind::StorageFull.into()) }
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_full_disk_loses_lines_that_are_counted_once_it_has_room() {
        let disk = Disk::default();
        let tell = |count| format!("{count} dropped");
        let writer = LineWriter::new(100, disk.clone(), tell).unwrap();
        for (room, line) in
            [(6, "first"), (3, "second"), (0, "third"), (1, "fourth"), (99, "fifth"), (99, "last")]
        {
            disk.0.lock().unwrap().0 = room;
            writer.put(line, false);
            assert!(writer.flush(Duration::from_secs(60)));
        }
        let content = disk.0.lock().unwrap().1.clone();
        assert_eq!(String::from_utf8(content).unwrap(), "first\nsec\n3 dropped\nfifth\nlast\n");
    }

    #[test]
    fn no_caller_waits_for_a_writer_and_dropped_lines_are_counted() {
        let ((written, said), (go_on, gate)) = (channel(), channel());
        let tell = |count| format!("{count} dropped");
        let writer = LineWriter::new(100, Blocking(written, gate), tell).unwrap();
        writer.put("first", false);
        assert_eq!(said.recv().unwrap(), "first\n");
        // The writer is blocked now: ten lines of ten bytes find room, and ten urgent ones.
        (0..30).for_each(|i| writer.put(&format!("line {i:04}"), false));
        (0..30).for_each(|i| writer.put(&format!("must {i:04}"), true));
        assert!(!writer.flush(Duration::ZERO), "it is blocked");
        go_on.send(()).unwrap();
        let lines = said.recv().unwrap();
        let lines: Vec<&str> = lines.lines().collect();
        assert_eq!(lines.len(), 21);
        assert_eq!((lines[9], lines[19], lines[20]), ("line 0009", "must 0009", "40 dropped"));
        writer.put("last", false);
        go_on.send(()).unwrap();
        assert_eq!(said.recv().unwrap(), "last\n");
        go_on.send(()).unwrap();
        assert!(writer.flush(Duration::from_secs(60)));
    }
}
