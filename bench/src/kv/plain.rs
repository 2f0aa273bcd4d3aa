//! The floor in a plain file: the bytes of a run, next to the medium, on the same disk.
//!
//! Invariant: the file is new, and is deleted when a run ends, also by an error.

use std::cell::Cell;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Instant;

use csd_reactor::{Buffer, Class, Config, CoreId, File as DirectFile, FileOptions, Hosted, spawn};
use rustix::fs::{FallocateFlags, fallocate};

use crate::frame::Stop;
use crate::report::Run;
use crate::serve::SPIN_US;
use crate::{Error, random};

/// Alignment of direct reads, bytes.
const BLOCK_BYTES: usize = 4096;

/// Runs over a plain file.
pub(super) struct Plain {
    /// Path of the file.
    pub(super) path: PathBuf,
    /// Number of values.
    pub(super) keys: u32,
    /// Length of a value, bytes.
    pub(super) value_bytes: u32,
    /// Number of operations in flight.
    pub(super) depth: usize,
}

impl Plain {
    /// Writes the values one after the other, and syncs them after every group that a drive would
    /// have in flight.
    pub(super) fn fill(&self, stop: &Stop) -> Result<Run, Error> {
        let (mut file, _removed) = self.create(self.value_bytes as usize)?;
        let value = random::bytes(self.value_bytes as usize, 1);
        let mut left = self.keys as usize;
        let start = Instant::now();
        while left > 0 {
            stop.check()?;
            let now = left.min(self.depth);
            for _ in 0..now {
                file.write_all(&value).map_err(self.failed())?;
            }
            file.sync_data().map_err(self.failed())?;
            left -= now;
        }
        Ok(Run::new(self.keys.into(), start.elapsed(), None))
    }

    /// Reads values of whole blocks past the page cache, in order or at random, `depth` at a time.
    pub(super) fn read(&self, random: bool, stop: &Stop) -> Result<Run, Error> {
        let bytes = (self.value_bytes as usize).next_multiple_of(BLOCK_BYTES);
        let (mut file, _removed) = self.create(bytes)?;
        let value = random::bytes(bytes, 1);
        for _ in 0..self.keys {
            stop.check()?;
            file.write_all(&value).map_err(self.failed())?;
        }
        file.sync_all().map_err(self.failed())?;
        let mut order: Vec<u32> = (0..self.keys).collect();
        if random {
            random::shuffle(&mut order);
        }
        let config = Config { name: "plain".to_owned(), spin_us: SPIN_US, ..Config::default() };
        let hosted = Hosted::start(&config, 1).map_err(csd_client::Error::from)?;
        let (path, depth, stop) = (self.path.clone(), self.depth, stop.clone());
        let read = hosted.door().call(CoreId(0), move || async move {
            let file = open(&path).await.map_err(Error::at(&path))?;
            let start = Instant::now();
            read_all(&file, order, (bytes, depth), &stop).await.map_err(Error::at(&path))?;
            stop.check()?;
            Ok::<_, Error>(start.elapsed())
        });
        let elapsed = read.map_err(csd_client::Error::from)??;
        Ok(Run::new(self.keys.into(), elapsed, None))
    }

    /// Creates the file with room for values of this length, as the medium's room is reserved.
    fn create(&self, bytes: usize) -> Result<(File, Removed), Error> {
        let file = OpenOptions::new().write(true).create_new(true).open(&self.path);
        let file = file.map_err(self.failed())?;
        let removed = Removed(self.path.clone());
        // Some file systems cannot.
        let _reserved =
            fallocate(&file, FallocateFlags::empty(), 0, u64::from(self.keys) * bytes as u64);
        file.sync_all().map_err(self.failed())?;
        Ok((file, removed))
    }

    fn failed(&self) -> impl FnOnce(std::io::Error) -> Error + use<> {
        Error::at(&self.path)
    }
}

/// Opens a file past the page cache, where its file system takes that.
async fn open(path: &Path) -> std::io::Result<DirectFile> {
    let options = FileOptions { read: true, ..FileOptions::default() };
    match DirectFile::open(path, &FileOptions { direct: true, ..options }).await {
        Err(error) if error.kind() == std::io::ErrorKind::InvalidInput => {
            DirectFile::open(path, &options).await
        }
        opened => opened,
    }
}

/// Reads values of `bytes` bytes, `depth` at a time, until all were read or the run must end.
async fn read_all(
    file: &DirectFile,
    order: Vec<u32>,
    (bytes, depth): (usize, usize),
    stop: &Stop,
) -> std::io::Result<()> {
    let (order, next) = (Rc::new(order), Rc::new(Cell::new(0)));
    let task = |_| {
        let (file, order, next) = (file.clone(), Rc::clone(&order), Rc::clone(&next));
        let stop = stop.clone();
        spawn(Class::System, async move {
            let mut buffer = Buffer::with_room(0, bytes, 0);
            while let Some(value) = order.get(next.get()).filter(|_| stop.check().is_ok()) {
                next.set(next.get() + 1);
                let (read, back) = file.read_at(u64::from(*value) * bytes as u64, buffer).await;
                if read? < bytes {
                    return Err(std::io::ErrorKind::UnexpectedEof.into());
                }
                buffer = back;
            }
            Ok(())
        })
    };
    let mut outcome = Ok(());
    for task in (0..depth).map(task).collect::<Vec<_>>() {
        outcome = outcome.and(task.await);
    }
    outcome
}

/// A file that is deleted when this is dropped.
pub(super) struct Removed(pub(super) PathBuf);

impl Drop for Removed {
    fn drop(&mut self) {
        // It may not have been created.
        let _gone = std::fs::remove_file::<&Path>(self.0.as_ref());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_floor_leaves_no_file_and_overwrites_none() {
        // A folder whose file system takes direct reads, unlike that of temporary files.
        let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../target/plain-floor");
        let plain = Plain { path: path.clone(), keys: 20, value_bytes: 5000, depth: 4 };
        let stop = Stop::default();
        plain.fill(&stop).expect("room");
        for random in [false, true] {
            plain.read(random, &stop).expect("room");
        }
        assert!(!path.exists());
        std::fs::write(&path, b"precious").expect("room");
        assert!(plain.fill(&stop).is_err() && plain.read(false, &stop).is_err());
        assert_eq!(std::fs::read(&path).expect("still there"), b"precious");
        std::fs::remove_file(&path).expect("ours");
        stop.set();
        assert!(matches!(plain.read(false, &stop), Err(Error::Interrupted)));
        assert!(!path.exists());
    }
}
