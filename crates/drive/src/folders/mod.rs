//! List Folder: what lies directly below a folder of objects' names.
//!
//! The first core keeps the folders of all names in memory ([`FolderIndex`]), from the first such
//! command on, and brings them up to date before each answer: it reads the entries whose keys
//! changed, and no others. So an answer costs what it returns, and what changed since the one
//! before. The entries that it returns are in memory as far as they fit, and are read from the
//! medium else. Invariant: an answer has every object whose entry was there, complete and readable,
//! when the command came, and stayed.

mod index;
mod read;

use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap};
use std::rc::Rc;

use csd_kvlog::Kv;
use csd_kvlog::format::SHARDS;
use csd_kvlog::near::Position;
use csd_kvlog::watch::KeyKind;
use csd_nvme::kv::{KEY_BYTES_MAX, Key};
use csd_nvme::status::Status;
use csd_nvme::vendor::NSID_OBJECTS;
pub(crate) use csd_nvme::vendor::folders::Request;
use csd_nvme::vendor::folders::{self, Answer, Child};
use csd_reactor::{
    CoreId, Semaphore, call, class, core_id, core_local, set_core_local, worked, yield_now,
};

use index::{FolderIndex, Held, Object};
use read::{Seen, read_each};

/// Most names in memory, at about 150 bytes each, without entries. A drive with more of them
/// refuses the command, and hosts read all entries.
const NAMES_MAX: usize = 1 << 20;
/// Entries that are read together.
const TOGETHER: usize = 256;
/// Entries that are read together for an answer, which may have room for few.
const ANSWERED_TOGETHER: usize = 32;
/// Keys that are noted before their entries are read. The more, the more of them lie together.
const NOTED_MAX: usize = 1 << 16;
/// Children that are looked at between two yields.
const LOOKS_MAX: usize = 256;

/// Keys of entries.
fn entries() -> KeyKind {
    let nsid = u16::try_from(NSID_OBJECTS).expect("3");
    KeyKind { nsid, first: folders::KEY_PREFIX, length: KEY_BYTES_MAX.into() }
}

/// The folders of a drive's names.
pub(crate) struct Folders {
    kv: Rc<Kv>,
    index: RefCell<FolderIndex>,
    // Keys that changed, and whose entries were not read since, in the order of the log.
    changed: RefCell<BTreeSet<Position>>,
    // Held while entries are read.
    reading: Semaphore,
}

/// Lets the first core answer List Folder.
pub(crate) fn start(kv: &Rc<Kv>) {
    if core_id() == CoreId(0) {
        let (kv, reading) = (Rc::clone(kv), Semaphore::new(1));
        let (index, changed) = (RefCell::default(), RefCell::default());
        set_core_local(Rc::new(Folders { kv, index, changed, reading }));
    }
}

/// Returns the data of an answer.
///
/// # Errors
/// The status to answer with: [`Status::CAPACITY_EXCEEDED`] with too many names.
pub(crate) async fn list(request: Request) -> Result<Vec<u8>, Status> {
    let here = async move || {
        let folders = core_local::<Folders>().ok_or(Status::NAMESPACE_NOT_READY)?;
        folders.list(request).await
    };
    if core_id() == CoreId(0) {
        return here().await;
    }
    call(CoreId(0), class(), here).await.unwrap_or(Err(Status::INTERNAL_ERROR))
}

impl Folders {
    async fn list(&self, request: Request) -> Result<Vec<u8>, Status> {
        let answer = Answer::new(request.size)?;
        self.read_changed().await?;
        match request.folder {
            Some(folder) => self.children(&folder, &request, answer).await,
            None => self.unreadable(&request, answer),
        }
    }

    /// Reads the entries whose keys changed.
    async fn read_changed(&self) -> Result<(), Status> {
        let _reading = self.reading.acquire(1).await;
        for shard in 0..SHARDS as usize {
            loop {
                let changed = self.kv.changed(shard, entries(), LOOKS_MAX).await?;
                let is_last = changed.len() < LOOKS_MAX;
                self.note(changed).await?;
                // A command that is given up leaves the others for the next one.
                if is_last || self.changed.borrow().len() >= NOTED_MAX {
                    self.read_noted().await?;
                }
                if is_last {
                    break;
                }
            }
        }
        let again: Vec<Key> = self.index.borrow().unreadable().copied().collect();
        for keys in again.chunks(LOOKS_MAX) {
            self.note(keys.to_vec()).await?;
        }
        self.read_noted().await
    }

    /// Notes keys, whose entries [`Self::read_noted`] reads.
    async fn note(&self, keys: Vec<Key>) -> Result<(), Status> {
        self.changed.borrow_mut().extend(keys.iter().map(|key| (None, *key)));
        for (position, key) in self.kv.positions(entries().nsid, keys).await? {
            let mut changed = self.changed.borrow_mut();
            changed.remove(&(None, key));
            changed.insert((position, key));
        }
        Ok(())
    }

    /// Reads the entries of the keys that are noted: those that were stored together are read
    /// together.
    async fn read_noted(&self) -> Result<(), Status> {
        loop {
            let next: Vec<Position> =
                self.changed.borrow().iter().take(TOGETHER).copied().collect();
            if next.is_empty() {
                return Ok(());
            }
            let keys = next.iter().map(|(_, key)| *key).collect();
            for (key, seen) in read_each(&self.kv, keys).await? {
                let mut index = self.index.borrow_mut();
                index.set(&key, seen.object());
                if index.len() > NAMES_MAX {
                    return Err(Status::CAPACITY_EXCEEDED);
                }
            }
            for position in next {
                self.changed.borrow_mut().remove(&position);
            }
            yield_now().await;
        }
    }

    /// Returns the children of a folder.
    async fn children(
        &self,
        folder: &Key,
        request: &Request,
        mut answer: Answer,
    ) -> Result<Vec<u8>, Status> {
        let mut from = Some(request.from);
        while let Some(first) = from {
            let page = self.index.borrow().page(folder, first, &request.beginning, LOOKS_MAX);
            worked(page.looks);
            for children in page.children.chunks(ANSWERED_TOGETHER) {
                let unkept = children.iter().filter(|(_, held)| *held == Held::Object(None));
                let keys = unkept.map(|(key, _)| *key).collect();
                let mut entries: HashMap<Key, Seen> =
                    read_each(&self.kv, keys).await?.into_iter().collect();
                for (key, held) in children {
                    let fits = match held {
                        Held::Folder(component) => answer.push(key, Child::Folder(component)),
                        Held::Object(Some(entry)) => answer.push(key, Child::Object(entry)),
                        Held::Object(None) => {
                            let seen = entries.remove(key).expect("one for each key");
                            seen.child().is_none_or(|child| answer.push(key, child))
                        }
                    };
                    if !fits {
                        return answer.finish(None, self.unreadable_count());
                    }
                }
                yield_now().await;
            }
            from = page.next;
        }
        answer.finish(None, self.unreadable_count())
    }

    /// Returns the keys whose entries cannot be read.
    fn unreadable(&self, request: &Request, mut answer: Answer) -> Result<Vec<u8>, Status> {
        for key in self.index.borrow().unreadable() {
            if folders::order(key) >= request.from && !answer.push(key, Child::Key) {
                break;
            }
        }
        answer.finish(None, self.unreadable_count())
    }

    fn unreadable_count(&self) -> u64 {
        self.index.borrow().unreadable().len() as u64
    }
}

impl Seen {
    /// Returns what the index holds of it: a complete object, or that it is unreadable.
    fn object(&self) -> Result<Option<Object<'_>>, ()> {
        match self {
            Self::Entry { name: Some(name), bytes } => {
                Ok(Some(Object { name, entry: bytes.as_deref() }))
            }
            Self::None | Self::Entry { name: None, .. } => Ok(None),
            Self::Unreadable => Err(()),
        }
    }

    /// Returns what is answered; `None` if the object is not there or not complete any more.
    fn child(&self) -> Option<Child<'_>> {
        match self {
            Self::None | Self::Entry { name: None, .. } => None,
            Self::Entry { bytes: Some(bytes), .. } => Some(Child::Object(bytes)),
            Self::Entry { .. } | Self::Unreadable => Some(Child::Key),
        }
    }
}
