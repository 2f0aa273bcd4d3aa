//! The hosts of the array lane: they put, protect, move, get and remove objects, and rebuild drives
//! that have lost their vote. The warden: reads the drives' media with plain commands, and swaps
//! chunks.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use csd_initiator::{Block, Controller, Kv, Options};
use csd_kernels::ElementType;
use csd_kvlog::media::Volatile;
use csd_nvme::kv::Key;
use csd_reactor::{Buffer, now, random_u64, sleep};
use csd_store::array::{Array, BLOCK_NSID, DriveIndex, Guards, OBJECTS_NSID, Plan};
use csd_store::catalogue::{self, Entry, KEY_PREFIX};
use csd_store::error::{NameError, ProtectionError};
use csd_store::extent::UNIT_BYTES;
use csd_store::layout::Scheme;
use csd_store::object::{self, Arrange, Encode, Error, Form, GetOptions, On, PutOptions};
use csd_store::source::Source;

use super::history::{Ask, CHUNK_BYTES, Content, History, Told, bytes_of};
use super::medium::AtRest;
use super::{DRIVES, Lane, NAMES, address, at_rest, rebalance, repair, rot};

/// State that the lane, its hosts and the warden share.
#[derive(Default)]
pub struct Shared {
    pub history: History,
    /// True if hosts repair objects, and put some on blocks.
    pub repairing: bool,
    /// True if hosts protect objects from the loss of four drives as well.
    pub codes: bool,
    /// Names that were looked up while four drives were out of reach.
    pub found_by_two: u64,
    /// Names that could not be looked up meanwhile.
    pub unfound: Vec<usize>,
    /// True if hosts mend the catalogue.
    pub mending: bool,
    /// Copies of names and records that they have mended, and mends that have not ended.
    pub mended: u64,
    pub mends_open: u64,
    /// True if a mend has said that a user must decide, and the number of names so decided.
    pub undecidable: bool,
    pub accepted: u64,
    /// True when the hosts shall end.
    pub stopping: bool,
    /// By drive: the disk, and the number of the medium, a new one whenever it was emptied or put
    /// back.
    pub disks: Vec<Arc<Volatile>>,
    pub media: [u64; DRIVES],
    /// By drive: the medium that a host has seen vote.
    pub voting: [u64; DRIVES],
    pub rebuilt: u64,
    pub swapped: u64,
    /// Number of pieces that were lost or replaced: a repair may have seen them before.
    pub losses: u64,
    /// Repairs after which no piece was missing, and pieces that repairs have made.
    pub repaired: u64,
    pub rebuilt_pieces: u64,
    /// Objects that were moved to other drives.
    pub moved: u64,
    /// Chunks of these that went from drive to drive.
    pub fetched: u64,
    /// Pieces that drives have rebuilt, without the host.
    pub by_drives: u64,
    /// Pieces that page lists were found to name rightly at the end.
    pub listed: u64,
    pub scanned: u64,
    /// Protects that succeeded, and protected objects whose pieces were compared at the end.
    pub protected: u64,
    pub compared: u64,
    /// Highest epoch that the warden has seen, by drive, medium and key.
    pub epochs: BTreeMap<(usize, u64, Key), u64>,
}

pub type Known = Rc<RefCell<Shared>>;

impl Shared {
    /// Reads all media as they are at this moment, not through the drives.
    pub fn media_at_rest(&self) -> Vec<AtRest> {
        self.disks.iter().map(AtRest::of).collect()
    }
}

impl Lane {
    /// Reads all media as they are at this moment, not through the drives.
    pub fn media_at_rest(&self) -> Vec<AtRest> {
        self.known.borrow().media_at_rest()
    }
}

/// Settings under which a drive that does not answer is given up soon.
pub fn options() -> Options {
    Options {
        keep_alive: Duration::from_secs(2),
        connect_timeout: Duration::from_millis(300),
        command_timeout: Duration::from_secs(1),
        ..Options::default()
    }
}

/// Works until the lane stops.
pub async fn work(host: usize, plan: Plan, guards: Guards, known: Known) {
    while !known.borrow().stopping {
        let media = known.borrow().media;
        let array = Array::connect_with(&plan, &options(), guards).await;
        let array = array.with_patience(Duration::from_millis(300));
        note_votes(&array, media, &known).await;
        for _ in 0..1 + random_u64() % 5 {
            operate(host, &array, &known).await;
            if known.borrow().mending && random_u64().is_multiple_of(4) {
                rot::mend(&array, &known).await;
            }
            sleep(Duration::from_millis(random_u64() % 100)).await;
        }
        drop(array);
        sleep(Duration::from_millis(random_u64() % 200)).await;
    }
}

/// Notes which drives vote, and sometimes rebuilds those that do not.
async fn note_votes(array: &Array, media: [u64; DRIVES], known: &Known) {
    for (index, slot) in array.slots().iter().enumerate() {
        if slot.drive().is_err() {
            continue;
        }
        if slot.vote().is_ok() {
            known.borrow_mut().voting[index] = media[index];
        } else if !random_u64().is_multiple_of(4)
            && catalogue::rebuild::rebuild(array, DriveIndex::new(index)).await.is_ok()
        {
            known.borrow_mut().rebuilt += 1;
        }
    }
}

/// Asks for something, at random, and notes the answer.
pub async fn operate(host: usize, array: &Array, known: &Known) {
    let name = usize::try_from(random_u64()).unwrap() % NAMES;
    let asks = if known.borrow().repairing { 10 } else { 7 };
    let ask = match random_u64() % asks {
        0 | 1 => Ask::Put(known.borrow_mut().history.new_content()),
        2 => Ask::Remove,
        3 => Ask::Protect,
        7 | 8 => Ask::Repair,
        9 => Ask::Rebalance,
        _ => Ask::Get,
    };
    let operation = known.borrow_mut().history.begin(host, name, ask, now().ns());
    let told = match ask {
        Ask::Put(content) => put(array, name, content, known).await,
        Ask::Remove => match object::remove(array, &name_of(name)).await {
            Ok(_) => Told::Done,
            Err(error) => refused(&error),
        },
        Ask::Protect => protect(array, name, known).await,
        Ask::Repair => repair::one(array, &name_of(name), known).await,
        Ask::Rebalance => rebalance::one(array, &name_of(name), known).await,
        Ask::Get => {
            if random_u64().is_multiple_of(8) {
                remove_staged(array, name).await;
            }
            get(array, name, known).await
        }
    };
    known.borrow_mut().history.end(operation, now().ns(), told);
}

/// Removes what a put has left that seems to be cut off. One that still runs fails by it; one that
/// has ended meanwhile keeps its object.
async fn remove_staged(array: &Array, name: usize) {
    let Ok(listed) = object::list(array).await else { return };
    sleep(Duration::from_millis(random_u64() % 300)).await;
    for entry in listed.staged.iter().filter(|entry| entry.name == name_of(name)) {
        let _ended = object::remove_staged(array, entry).await;
    }
}

async fn protect(array: &Array, name: usize, known: &Known) -> Told {
    let progress = object::Progress::none();
    let is_strong = known.borrow().codes && random_u64().is_multiple_of(2);
    let code = if is_strong { scheme(2, 4) } else { scheme(4, 2) };
    let encode = if random_u64().is_multiple_of(3) { Encode::Host } else { Encode::Drives };
    match object::protect(array, &name_of(name), code, encode, &progress).await {
        Ok(_) => {
            known.borrow_mut().protected += 1;
            Told::Done
        }
        // It is protected, or more drives are needed.
        Err(Error::Protection(ProtectionError::Impossible { .. })) => Told::Exists,
        Err(error) => refused(&error),
    }
}

/// Repairs everything, reads every name once, as hosts do, and compares the answers with the media
/// themselves. Returns false if a drive cannot be reached or does not vote.
pub async fn read_all(host: usize, plan: Plan, guards: Guards, known: Known) -> bool {
    let media = known.borrow().media;
    let array = Array::connect_with(&plan, &options(), guards).await;
    note_votes(&array, media, &known).await;
    if !array.down().is_empty() {
        return false;
    }
    if known.borrow().mending && !rot::mend(&array, &known).await {
        rot::accept_undecidable(&array, &known).await;
        return false;
    }
    if repair::hides_nothing(guards) && !repair::all(&array, &known).await {
        return false;
    }
    let mut answers = Vec::new();
    for name in 0..NAMES {
        let operation = known.borrow_mut().history.begin(host, name, Ask::Get, now().ns());
        let told = get(&array, name, &known).await;
        known.borrow_mut().history.end(operation, now().ns(), told);
        answers.push(told);
    }
    if object::reclaim(&array).await.is_err() {
        return false;
    }
    at_rest::compare(&answers, repair::hides_nothing(guards), &mut known.borrow_mut());
    true
}

pub fn name_of(name: usize) -> String {
    format!("object {name}")
}

pub fn refused(error: &Error) -> Told {
    match error {
        Error::Name(NameError::Exists { .. }) => Told::Exists,
        Error::Name(NameError::Missing { .. }) => Told::Missing,
        _ => Told::Unknown,
    }
}

fn scheme(data: usize, parity: usize) -> Scheme {
    Scheme::new(data, parity).unwrap()
}

pub async fn put(array: &Array, name: usize, content: Content, known: &Known) -> Told {
    let repairing = known.borrow().repairing;
    let on_block = repairing && content.is_multiple_of(5);
    let on_some = repairing && random_u64().is_multiple_of(3);
    let bytes = bytes_of(content);
    let source = Source::raw("bytes", Box::new(io::Cursor::new(bytes)), ElementType::Bytes);
    let options = PutOptions {
        on: if on_block { On::Block } else { On::Kv },
        chunk_bytes: Some(CHUNK_BYTES),
        // Without protection at first; a protect spreads it.
        arrange: if repairing && content % 4 == 2 { Arrange::Whole } else { Arrange::Spread },
        align: if on_some { rebalance::on_some(array) } else { None },
        page_bytes: Some(object::PAGE_BYTES),
        protect: match content % 4 {
            0 => Some(scheme(4, 2)),
            1 => Some(scheme(2, 2)),
            3 if known.borrow().codes => Some(scheme(2, 4)),
            _ => None,
        },
        ..PutOptions::new(name_of(name))
    };
    match object::put(array, source, &options, &object::Progress::none()).await {
        Ok(_) => Told::Done,
        Err(error) => refused(&error),
    }
}

/// A sink that its reader can look into.
#[derive(Clone, Default)]
struct Sink(Arc<Mutex<Vec<u8>>>);

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

pub async fn get(array: &Array, name: usize, known: &Known) -> Told {
    let entry = match object::lookup(array, &name_of(name)).await {
        Ok(entry) => entry,
        Err(error) => return refused(&error),
    };
    let (found, done) = read(array, entry).await;
    let content = known.borrow_mut().history.recognise(&found, done.is_ok());
    match done {
        Ok(()) => Told::Bytes(content),
        Err(Error::Name(NameError::Removed { .. })) => Told::Missing,
        Err(_) => Told::Unknown,
    }
}

/// Reads an object. Returns its bytes; with an error, those that were read before it.
pub async fn read(array: &Array, entry: Entry) -> (Vec<u8>, Result<(), Error>) {
    let (sink, progress) = (Sink::default(), object::Progress::none());
    let options = GetOptions::whole(Form::Raw);
    let done = object::get(array, entry, options, Box::new(sink.clone()), &progress).await;
    let found = sink.0.lock().unwrap().clone();
    (found, done.map(|_| ()))
}

/// Watches one drive after the other: no drive's epoch of a name ever falls.
pub async fn watch(known: Known) {
    loop {
        sleep(Duration::from_millis(50 + random_u64() % 300)).await;
        let index = usize::try_from(random_u64()).unwrap() % DRIVES;
        let medium = known.borrow().media[index];
        let connected = Controller::connect(&address(index), &options()).await;
        let Ok(controller) = connected else { continue };
        let Ok(kv) = Kv::open(&controller, OBJECTS_NSID) else { continue };
        if let Some(entries) = entries_on(&kv).await {
            note_epochs(index, medium, &entries, &known);
        }
        match random_u64() % 16 {
            0 | 1 if swap(&kv, &known).await == Some(true) => known.borrow_mut().swapped += 1,
            2 => drop(overwrite(&controller, &known).await),
            _ => {}
        }
    }
}

/// Returns the catalogue of a drive as its media hold it; `None` if the drive fails.
async fn entries_on(kv: &Kv) -> Option<Vec<(Key, Entry)>> {
    let mut entries = Vec::new();
    for key in kv.list_all(&[KEY_PREFIX]).await.ok()? {
        let value = kv.retrieve(&key, 4096).await.ok()?;
        if let Some(entry) = value.and_then(|value| Entry::parse(&value).ok()) {
            entries.push((key, entry));
        }
    }
    Some(entries)
}

fn note_epochs(index: usize, medium: u64, entries: &[(Key, Entry)], known: &Known) {
    let mut known = known.borrow_mut();
    if known.media[index] != medium {
        return;
    }
    known.scanned += 1;
    for (key, entry) in entries {
        let seen = known.epochs.entry((index, medium, *key)).or_default();
        let before = std::mem::replace(seen, entry.epoch);
        if entry.epoch < before {
            let text = format!("drive {index}: {:?} fell from {before} to {entry:?}", entry.name);
            known.history.violations.push(text);
        }
    }
}

/// Replaces a chunk by another one of the drive: a sound value in the wrong place.
async fn swap(kv: &Kv, known: &Known) -> Option<bool> {
    let mut chunks = kv.list_all(&[]).await.ok()?;
    chunks.retain(|key| key.as_bytes().len() == 16 && key.as_bytes()[0] >= 0x80);
    if chunks.len() < 2 {
        return Some(false);
    }
    let draw = || chunks[usize::try_from(random_u64()).unwrap() % chunks.len()];
    let (from, to) = (draw(), draw());
    let bytes = u32::try_from(CHUNK_BYTES).unwrap();
    let (one, other) = (kv.retrieve(&from, bytes).await.ok()??, kv.retrieve(&to, bytes).await);
    if one.len() != other.ok()??.len() || from == to {
        return Some(false);
    }
    known.borrow_mut().losses += 1;
    let stored = kv.store(&to, vec![Buffer::from_slice(&one)], csd_nvme::kv::STORE_IF_EXISTS);
    let stored = stored.await.is_ok();
    known.borrow_mut().losses += 1;
    Some(stored)
}

/// Overwrites the first chunk of a unit of blocks.
async fn overwrite(controller: &Controller, known: &Known) -> Option<()> {
    let block = Block::open(controller, BLOCK_NSID).ok()?;
    let unit = random_u64() % (block.bytes() / UNIT_BYTES);
    let other = Buffer::from_slice(&vec![7; usize::try_from(CHUNK_BYTES).unwrap()]);
    known.borrow_mut().losses += 1;
    let written = block.write(unit * UNIT_BYTES, vec![other], true).await;
    known.borrow_mut().losses += 1;
    written.ok()
}
