//! Disk and page cache for one file: unsynced data is lost in a power cut.
//!
//! Writes stay in the cache as sectors of 512 bytes. A sync makes durable the data written before
//! it began. The disk may write a sector back earlier, at any time. In a cut each other sector
//! lands or not. Descriptors opened before a cut are dead after it: requests that a killed process
//! still has in progress change nothing.
//!
//! Faults are those of Linux: a failed sync removes its data from the cache's list of dirty pages,
//! readers still see it, and each descriptor reports the error once.
//!
//! Metadata is not simulated: the file's length is durable at once.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use crate::Numbers;
use crate::cache::{Cache, Landed, SECTOR_BYTES, Unsynced};
use crate::faults::{Failure, Faults, How, Once, Request, Trip};

/// Unit of direct transfers.
const PAGE_BYTES: usize = 4096;

/// Counts of events.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    pub(crate) landed: Landed,
    /// Processes killed in a request.
    pub(crate) tripped: u64,
    /// Requests that were made to fail.
    pub(crate) errors: u64,
}

struct State {
    cache: Cache,
    life: u64,
    opened: u64,
    /// Descriptors of this life, each with the number of failed syncs that it has reported.
    handles: HashMap<u64, u64>,
    failed_syncs: u64,
    held: bool,
    let_through: u64,
    faults: Faults,
    trip: Option<Trip>,
    once: Option<Once>,
    tripped: u64,
    errors: u64,
}

/// The disk.
pub(crate) struct Medium(Mutex<State>);

impl Medium {
    /// Returns an empty file on a disk with room for `bytes`.
    pub(crate) fn new(bytes: usize, numbers: Numbers) -> Self {
        Self(Mutex::new(State {
            cache: Cache::new(bytes, numbers),
            life: 0,
            opened: 0,
            handles: HashMap::new(),
            failed_syncs: 0,
            held: false,
            let_through: 0,
            faults: Faults::default(),
            trip: None,
            once: None,
            tripped: 0,
            errors: 0,
        }))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn length(&self) -> u64 {
        self.state().cache.length
    }

    /// Returns the number of power cuts so far: the file is another one after each.
    pub(crate) fn life(&self) -> u64 {
        self.state().life
    }

    pub(crate) fn counts(&self) -> Counts {
        let state = self.state();
        Counts { landed: state.cache.landed, tripped: state.tripped, errors: state.errors }
    }

    pub(crate) fn set_faults(&self, faults: Faults) {
        self.state().faults = faults;
    }

    /// Sets a later request that kills a process, or none.
    pub(crate) fn set_trip(&self, trip: Option<Trip>) {
        self.state().trip = trip;
    }

    /// Sets a later request that fails, or none.
    pub(crate) fn set_once(&self, once: Option<Once>) {
        self.state().once = once;
    }

    /// Holds syncs from now on, except for the next `through`; or lets all continue.
    pub(crate) fn hold_syncs(&self, held: bool, through: u64) {
        let mut state = self.state();
        (state.held, state.let_through) = (held, through);
    }

    /// Returns the number of syncs in progress.
    pub(crate) fn syncing(&self) -> u64 {
        self.state().cache.syncing
    }

    /// Returns the number of sectors that are not on the disk, by number of their write.
    pub(crate) fn unsynced_writes(&self) -> BTreeMap<u64, u64> {
        self.state().cache.unsynced_writes()
    }

    /// Opens the file; returns the descriptor.
    pub(crate) fn open(&self) -> u64 {
        let mut state = self.state();
        state.opened += 1;
        let (handle, failed) = (state.opened, state.failed_syncs);
        state.handles.insert(handle, failed);
        handle
    }

    pub(crate) fn close(&self, handle: u64) {
        self.state().handles.remove(&handle);
    }

    /// Reads up to `length` bytes; fewer at the end of the file.
    pub(crate) fn read(&self, handle: u64, at: u64, length: usize) -> Result<Vec<u8>, Failure> {
        let mut state = self.state();
        state.alive(handle)?;
        state.count(Request::Read);
        if state.fails(Request::Read).is_some() {
            return Err(Failure::Io);
        }
        let left = state.cache.length.saturating_sub(at);
        let length = length.min(usize::try_from(left).expect("fits in memory"));
        Ok(state.cache.content(at, length))
    }

    /// Writes into the cache; returns the number of bytes.
    pub(crate) fn write(&self, handle: u64, at: u64, bytes: &[u8]) -> Result<usize, Failure> {
        let mut state = self.state();
        state.alive(handle)?;
        let faults = state.faults;
        if at + bytes.len() as u64 > state.cache.room() {
            return Err(Failure::NoSpace);
        }
        if state.cache.happens(faults.no_space_in) {
            state.errors += 1;
            return Err(Failure::NoSpace);
        }
        if state.cache.happens(faults.write_error_in) {
            state.errors += 1;
            let sectors = state.cache.draw((bytes.len() / SECTOR_BYTES) as u64 + 1);
            let part = usize::try_from(sectors).expect("fits in memory") * SECTOR_BYTES;
            state.cache.write(at, &bytes[..part]);
            return Err(Failure::Io);
        }
        let mut length = bytes.len();
        match state.fails(Request::Write) {
            Some(How::Error) => return Err(Failure::Io),
            Some(How::NoSpace) => return Err(Failure::NoSpace),
            Some(How::WrittenError) => {
                state.cache.write(at, bytes);
                return Err(Failure::Io);
            }
            // Direct transfers are whole pages.
            Some(How::Short) if length > PAGE_BYTES => {
                let pages = state.cache.draw((length / PAGE_BYTES) as u64 - 1) + 1;
                length = usize::try_from(pages).expect("fits in memory") * PAGE_BYTES;
            }
            Some(How::Short) | None => {}
        }
        let bytes = &bytes[..length];
        state.cache.write(at, bytes);
        state.count(Request::Write);
        if faults.lands_and_fails.is_some_and(|head| bytes.starts_with(head)) {
            state.faults.lands_and_fails = None;
            state.errors += 1;
            return Err(Failure::Io);
        }
        Ok(bytes.len())
    }

    /// Extends the file to this length, if it is shorter.
    pub(crate) fn allocate(&self, handle: u64, end: u64) -> Result<(), Failure> {
        let mut state = self.state();
        state.alive(handle)?;
        if end > state.cache.room() {
            return Err(Failure::NoSpace);
        }
        state.cache.length = state.cache.length.max(end);
        Ok(())
    }

    /// Deallocates a range, which then reads as zeros.
    pub(crate) fn punch(&self, handle: u64, range: Range<u64>) -> Result<(), Failure> {
        let mut state = self.state();
        state.alive(handle)?;
        let bytes = range.end.min(state.cache.length).saturating_sub(range.start);
        if state.fails(Request::Write).is_some() {
            return Err(Failure::Io);
        }
        let zeros = vec![0; usize::try_from(bytes).expect("fits in memory")];
        state.cache.write(range.start, &zeros);
        state.count(Request::Write);
        Ok(())
    }

    /// Cuts or lengthens the file.
    pub(crate) fn set_length(&self, length: u64) -> Result<(), Failure> {
        let mut state = self.state();
        if length > state.cache.room() {
            return Err(Failure::NoSpace);
        }
        state.cache.set_length(length);
        Ok(())
    }

    /// Makes durable the data written before.
    pub(crate) fn sync(&self, handle: u64) -> Result<(), Failure> {
        let (covered, delay_us) = {
            let mut state = self.state();
            state.alive(handle)?;
            state.count(Request::Sync);
            state.cache.syncing += 1;
            let most = state.faults.sync_delay_us + 1;
            (state.cache.writes, state.cache.draw(most))
        };
        std::thread::sleep(Duration::from_micros(delay_us));
        while self.state().is_held(handle) {
            std::thread::sleep(Duration::from_millis(1));
        }
        let mut state = self.state();
        state.cache.syncing -= 1;
        state.alive(handle)?;
        let failing = state.faults.sync_error_in;
        let is_chosen = state.fails(Request::Sync).is_some();
        if is_chosen || state.cache.is_dirty() && state.cache.happens(failing) {
            state.cache.drop_dirty(covered);
            state.failed_syncs += 1;
            state.errors += 1;
        } else {
            state.cache.land(covered);
        }
        let failed = state.failed_syncs;
        match state.handles.insert(handle, failed) {
            Some(told) if told == failed => Ok(()),
            _ => Err(Failure::Io),
        }
    }

    /// Cuts the power and restores it: a sector that was not synced is on the disk afterwards if
    /// `lands` returns true for it.
    pub(crate) fn cut(&self, lands: impl FnMut(&Unsynced) -> bool) {
        let mut state = self.state();
        state.cache.cut(lands);
        state.begin_life();
    }

    /// Cuts the power; each write lands, vanishes, or tears at one place or at any, at random.
    pub(crate) fn cut_at_random(&self) {
        let mut state = self.state();
        state.cache.cut_at_random();
        state.begin_life();
    }
}

impl State {
    fn begin_life(&mut self) {
        self.life += 1;
        self.handles.clear();
        (self.held, self.trip, self.once) = (false, None, None);
    }

    fn alive(&self, handle: u64) -> Result<(), Failure> {
        if self.handles.contains_key(&handle) { Ok(()) } else { Err(Failure::Io) }
    }

    fn is_held(&mut self, handle: u64) -> bool {
        let waits = self.held && self.handles.contains_key(&handle);
        if waits && self.let_through > 0 {
            self.let_through -= 1;
            return false;
        }
        waits
    }

    /// Counts a request, and returns how it fails if it is the one that does.
    fn fails(&mut self, request: Request) -> Option<How> {
        let once = self.once.as_mut().filter(|once| once.at == request)?;
        once.after = once.after.saturating_sub(1);
        if once.after > 0 {
            return None;
        }
        self.errors += 1;
        self.once.take().map(|once| once.how)
    }

    /// Counts a request, and kills the process in it if that is set.
    fn count(&mut self, request: Request) {
        let Some(trip) = &mut self.trip else { return };
        if trip.at != request && trip.at != Request::Read {
            return;
        }
        trip.after = trip.after.saturating_sub(1);
        if trip.after > 0 {
            return;
        }
        let pid = Pid::from_raw(i32::try_from(trip.pid).expect("a pid")).expect("a pid");
        kill_process(pid, Signal::KILL).expect("not waited for yet");
        self.trip = None;
        self.tripped += 1;
    }
}

#[test]
fn the_medium_forgets_what_was_not_synced_and_nothing_else() {
    let medium = Medium::new(1 << 20, crate::seeded(1));
    let handle = medium.open();
    medium.allocate(handle, 1 << 20).unwrap();
    medium.write(handle, 100, &[1; 2000]).unwrap();
    medium.sync(handle).unwrap();
    medium.write(handle, 512, &[2; 1024]).unwrap();
    assert_eq!(medium.read(handle, 511, 2).unwrap(), [1, 2]);
    medium.cut(|unsynced| unsynced.index == 1);
    assert_eq!(medium.write(handle, 0, &[3]), Err(Failure::Io), "a descriptor before the cut");
    let handle = medium.open();
    assert_eq!(medium.read(handle, 1023, 2).unwrap(), [1, 2], "the second sector landed");
    assert_eq!(medium.counts().landed.lost, 1);
}

#[test]
fn a_failed_sync_is_told_once_and_its_sectors_are_never_written() {
    let medium = Medium::new(1 << 20, crate::seeded(2));
    let handle = medium.open();
    medium.write(handle, 0, &[1; 64 * 512]).unwrap();
    medium.set_faults(Faults { sync_error_in: 1, ..Faults::default() });
    assert_eq!(medium.sync(handle), Err(Failure::Io));
    medium.set_faults(Faults::default());
    assert_eq!(medium.sync(handle), Ok(()), "the second sync does not tell");
    assert_eq!(medium.read(handle, 0, 64 * 512).unwrap(), [1; 64 * 512]);
    medium.cut(|_| true);
    assert!(medium.read(medium.open(), 0, 64 * 512).unwrap().contains(&0));
}
