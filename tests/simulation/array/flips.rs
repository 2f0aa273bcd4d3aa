//! Bits that flip at rest, once hosts and other faults have ended: in chunks as values and on
//! blocks, in parity, in page lists, and in entries of the catalogue with their digests. (Those
//! that flip before are in `flips_at_work.rs`.)
//!
//! Rules: a reader gets the right bytes; a scrub names exactly the pieces, pages and drives; after
//! a repair everything is as before. At most one piece of a stripe and one copy of an entry are
//! damaged, which every code and quorum of the lane allows.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;

use csd_kvlog::media::{Memory, Volatile};
use csd_store::array::{Array, DriveIndex, GUARDED, Plan, Quorum};
use csd_store::catalogue::{self, Entry, Placement, rebuild};
use csd_store::object;
use csd_store::repair;
use csd_store::scrub::{self, Bad, Cause, Limits};

use super::history::Told;
use super::host::{self, Known};
use super::medium::AtRest;
use super::pieces::Sound;
use super::repair::no_limits;
use super::{DRIVES, Lane, NAMES, plan};
use crate::places::places;

const PAGE_BYTES: usize = 4096;

/// Number of flipped bits of each kind, and of what was found and made again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flips {
    pub values: u64,
    pub blocks: u64,
    pub parity: u64,
    pub lists: u64,
    pub entries: u64,
    /// Pages that were named.
    pub pages: u64,
    pub repaired: u64,
}

impl Flips {
    pub fn add(&mut self, other: Self) {
        self.values += other.values;
        self.blocks += other.blocks;
        self.parity += other.parity;
        self.lists += other.lists;
        self.entries += other.entries;
        self.pages += other.pages;
        self.repaired += other.repaired;
    }

    /// Returns the number of the rarest kind.
    pub fn fewest(&self) -> u64 {
        let Self { values, blocks, parity, lists, entries, pages, repaired } = *self;
        [values, blocks, parity, lists, entries, pages, repaired]
            .into_iter()
            .fold(u64::MAX, u64::min)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Value,
    Block,
    Parity,
    List,
    Entry,
}

/// Stored bytes of an object in which a bit may flip.
#[derive(Clone, Debug)]
struct Target {
    object: String,
    drive: usize,
    kind: Kind,
    /// Stripe and number of a piece.
    piece: Option<(u32, u32)>,
    bytes: Vec<u8>,
    /// The byte that is flipped, and what it is then.
    byte: usize,
    flipped: u8,
    /// Places of the byte on the medium: a moved value has several.
    places: Vec<u64>,
}

/// Returns everything that may be flipped; `None` if a drive cannot be reached.
async fn targets(array: &Array, known: &Known) -> Option<Vec<Target>> {
    let sealed = object::list(array).await.ok()?.sealed;
    let (media, mut all) = (known.borrow().media_at_rest(), Vec::new());
    for entry in sealed {
        let target = |drive, kind, piece, bytes: Vec<u8>| {
            let object = entry.name.clone();
            Target { object, drive, kind, piece, bytes, byte: 0, flipped: 0, places: Vec::new() }
        };
        if let Some(sound) = Sound::at_rest(&media, &entry).filter(Sound::is_full) {
            let data = sound.stripes.scheme().data();
            for (stripe, piece, bytes) in &sound.pieces {
                let drive = usize::from(sound.stripes.drive(*stripe, *piece)?);
                let kind = match &entry.placement {
                    _ if *piece >= data => Kind::Parity,
                    Placement::Kv => Kind::Value,
                    Placement::Block(_) => Kind::Block,
                };
                let name = (*stripe, u32::try_from(*piece).unwrap());
                all.push(target(drive, kind, Some(name), bytes.clone()));
            }
        }
        // A protect or a move that was interrupted has left lists that are not looked at.
        let parity = entry.protected().and_then(|_| entry.parity_id());
        let ids: Vec<_> = [Some(entry.id), parity].into_iter().flatten().collect();
        let mut copies = Vec::new();
        for (drive, medium) in media.iter().enumerate() {
            for key in ids.iter().flat_map(|id| medium.keys(&id.0)) {
                if key.as_bytes().len() == csd_nvme::vendor::pages::KEY_BYTES {
                    all.push(target(drive, Kind::List, None, medium.value(key)?));
                }
            }
            let held = medium.value(&catalogue::key(&entry.name));
            let is_newest = |held: &[u8]| Entry::parse(held).is_ok_and(|held| held == entry);
            copies.extend(held.filter(|held| is_newest(held)).map(|held| (drive, held)));
        }
        // One less is a quorum still.
        if copies.len() > Quorum::new(DRIVES, entry.losses()).write() {
            let of_copy = |(drive, held)| target(drive, Kind::Entry, None, held);
            all.extend(copies.into_iter().map(of_copy));
        }
    }
    Some(all)
}

/// Flips a bit of each target, in all its copies on the medium, and returns those that it found.
fn flip(memory: &Memory, targets: Vec<Target>, draw: &dyn Fn(usize) -> usize) -> Vec<Target> {
    let values: Vec<&[u8]> = targets.iter().map(|target| &target.bytes[..]).collect();
    let (held, mut flipped) = (places(memory, &values), Vec::new());
    for (mut target, held) in targets.into_iter().zip(held) {
        target.byte = draw(target.bytes.len());
        target.flipped = target.bytes[target.byte] ^ 1 << draw(8);
        target.places = held.into_iter().map(|at| at + target.byte as u64).collect();
        target.places.iter().for_each(|place| memory.write(*place, &[target.flipped]));
        flipped.extend(Some(target).filter(|target| !target.places.is_empty()));
    }
    flipped
}

/// Flips a bit of a byte of a disk.
pub(super) fn flip_bit(disk: &Volatile, at: u64, bit: u64) {
    disk.at_rest(|memory| {
        let mut byte = [0];
        memory.read(at, &mut byte);
        memory.write(at, &[byte[0] ^ 1 << bit]);
    });
}

/// Returns true if a later write has brought a target's byte back: a drive writes a page with the
/// sectors that it has in memory.
fn is_undone(memory: &Memory, target: &Target) -> bool {
    let mut byte = [0];
    target.places.iter().any(|place| {
        memory.read(*place, &mut byte);
        byte[0] != target.flipped
    })
}

impl Lane {
    /// Runs a look of a host to its end, and returns what it returns.
    pub(super) fn ask<T: 'static, F: Future<Output = T> + 'static>(
        &self,
        work: impl Fn(Array) -> F + Clone + 'static,
    ) -> T {
        self.ask_of(plan(), work)
    }

    /// Runs a look of a host that has this plan of the array.
    pub(super) fn ask_of<T: 'static, F: Future<Output = T> + 'static>(
        &self,
        plan: Plan,
        work: impl Fn(Array) -> F + Clone + 'static,
    ) -> T {
        let told: Rc<RefCell<Option<T>>> = Rc::default();
        let (result, guards) = (Rc::clone(&told), self.guards);
        self.world.start(self.hosts[0], move |_| {
            let (result, work, plan) = (Rc::clone(&result), work.clone(), plan.clone());
            async move {
                let array = Array::connect_with(&plan, &host::options(), guards).await;
                *result.borrow_mut() = Some(work(array).await);
            }
        });
        self.wait("a look", || !self.world.is_running(self.hosts[0]));
        told.take().expect("the host has ended")
    }

    /// Flips bits, and lets a host read, scrub and repair everything, if all guards are on.
    pub fn flip_and_repair(&self) -> Flips {
        if self.guards != GUARDED {
            return Flips::default();
        }
        let known = Rc::clone(&self.known);
        let all = self.ask(move |array| {
            let known = Rc::clone(&known);
            async move { targets(&array, &known).await }
        });
        let all = all.expect("nothing fails any more");
        let draw = |below: usize| usize::try_from(self.draw(0..below as u64)).unwrap();
        let (mut taken, mut chosen) = (BTreeSet::new(), vec![Vec::new(); DRIVES]);
        for _ in 0..all.len() {
            let target = &all[draw(all.len())];
            let once = match target.kind {
                Kind::List => (target.object.clone(), Some(u32::MAX), target.drive),
                Kind::Entry => (target.object.clone(), None, DRIVES),
                _ => (target.object.clone(), target.piece.map(|(stripe, _)| stripe), DRIVES),
            };
            if target.bytes.len() >= 64 && draw(3) == 0 && taken.insert(once) {
                chosen[target.drive].push(target.clone());
            }
        }
        let mut flipped = Vec::new();
        for (drive, targets) in self.drives.iter().zip(chosen) {
            if !targets.is_empty() {
                flipped.extend(drive.disk.at_rest(|memory| flip(memory, targets, &draw)));
            }
        }
        let count =
            |kind| flipped.iter().filter(|target: &&Target| target.kind == kind).count() as u64;
        let mut flips = Flips {
            values: count(Kind::Value),
            blocks: count(Kind::Block),
            parity: count(Kind::Parity),
            lists: count(Kind::List),
            entries: count(Kind::Entry),
            ..Flips::default()
        };
        let (targets, known) = (Rc::new(flipped), Rc::clone(&self.known));
        let flipped = Rc::clone(&targets);
        let looked = self.ask(move |array| {
            let (flipped, known) = (Rc::clone(&flipped), Rc::clone(&known));
            async move { look(&array, &flipped, &known).await }
        });
        let mut looked = looked.unwrap_or_else(|| panic!("a drive is away"));
        (flips.pages, flips.repaired) = (looked.pages, looked.repaired);
        for target in looked.lacking.into_iter().map(|index| &targets[index]) {
            let disk = &self.drives[target.drive].disk;
            if !disk.at_rest(|memory| is_undone(memory, target)) {
                let Target { kind, piece, object, .. } = target;
                looked.wrong.push(format!("not found: {kind:?} {piece:?} of {object}"));
            }
        }
        self.known.borrow_mut().history.violations.extend(looked.wrong);
        flips
    }
}

/// Findings of a look.
#[derive(Default)]
struct Looked {
    /// Number of pages that were named, and of pieces and lists that were repaired.
    pages: u64,
    repaired: u64,
    /// Targets that were not found, by index.
    lacking: Vec<usize>,
    /// Contradictions of the rules.
    wrong: Vec<String>,
}

/// Reads, scrubs and repairs all objects; `None` if a drive cannot be reached.
async fn look(array: &Array, flipped: &[Target], known: &Known) -> Option<Looked> {
    let mut looked = Looked::default();
    let wrong = &mut looked.wrong;
    for name in 0..NAMES {
        let told = host::get(array, name, known).await;
        let is_hit = |of: &Target| of.object == host::name_of(name) && of.piece.is_some();
        if flipped.iter().any(is_hit) && !matches!(told, Told::Bytes(_)) {
            wrong.push(format!("{} was not read: {told:?}", host::name_of(name)));
        }
    }
    let limits =
        Limits { bytes_per_s: None, stop: Rc::default(), progress: object::Progress::none() };
    for entry in object::list(array).await.ok()?.sealed {
        let found = scrub::scrub(array, &entry, &limits).await.ok()?;
        if !found.unread.is_empty() {
            return None;
        }
        let mut bad = found.bad;
        looked.pages += bad.iter().filter(|bad| bad.page.is_some()).count() as u64;
        let is_lacking = |(_, target): &(usize, &Target)| {
            let is_named = || bad.iter().any(|bad| is_of(bad, target));
            target.object == entry.name && target.kind != Kind::Entry && !is_named()
        };
        let lacking = flipped.iter().enumerate().filter(is_lacking);
        looked.lacking.extend(lacking.map(|(index, _)| index));
        wrong.extend(surplus(&entry, &bad, flipped));
        if bad.is_empty() {
            continue;
        }
        let of_repair = no_limits(repair::On::default());
        repair::repair(array, std::slice::from_ref(&entry), &of_repair).await;
        scrub::mark_repaired(array, &entry, &mut bad, &limits).await.ok()?;
        scrub::replace_page_lists(array, &entry, &mut bad, &limits).await.ok()?;
        let is_target = |bad: &&Bad| flipped.iter().any(|target| is_of(bad, target));
        let left = bad.iter().filter(is_target).find(|bad| !bad.repaired);
        wrong.extend(left.map(|bad| format!("not repaired: {bad:?}")));
        looked.repaired += bad.iter().filter(|bad| bad.repaired).count() as u64;
        let again = scrub::scrub(array, &entry, &limits).await.ok()?.bad;
        let left = again.iter().find(|bad| is_target(bad));
        wrong.extend(left.map(|bad| format!("bad after a repair: {bad:?}")));
    }
    let hit = flipped.iter().filter(|target| target.kind == Kind::Entry);
    for drive in hit.map(|target| target.drive).collect::<BTreeSet<_>>() {
        rebuild::rebuild(array, DriveIndex::new(drive)).await.ok()?;
    }
    let sealed = object::list(array).await.ok()?.sealed;
    wrong.extend(left(&sealed, flipped, &known.borrow().media_at_rest()));
    Some(looked)
}

/// Returns what the media still lack of what was flipped, and is repaired.
fn left(sealed: &[Entry], flipped: &[Target], media: &[AtRest]) -> Vec<String> {
    let mut left = Vec::new();
    for Target { object, drive, kind, piece, .. } in flipped {
        if *kind == Kind::Entry {
            let held = media[*drive].value(&catalogue::key(object));
            if held.is_none_or(|held| Entry::parse(&held).is_err()) {
                left.push(format!("{object} is still damaged on d{drive}"));
            }
        }
        let entry = sealed.iter().find(|entry| piece.is_some() && entry.name == *object);
        let sound = entry.and_then(|entry| Sound::at_rest(media, entry));
        if piece.is_some() && !sound.is_some_and(|sound| sound.is_full()) {
            left.push(format!("{object} lacks pieces after {kind:?} {piece:?} was repaired"));
        }
    }
    left
}

/// Returns true if a finding is a target's.
fn is_of(bad: &Bad, target: &Target) -> bool {
    let piece = bad.stripe.zip(bad.piece);
    let cause = match target.kind {
        Kind::Value | Kind::Parity => Cause::Unreadable,
        Kind::Block => Cause::Differs,
        Kind::List => Cause::PageList,
        Kind::Entry => return false,
    };
    let drive = format!("d{}", target.drive);
    (&bad.object, piece, bad.cause) == (&target.object, target.piece, cause)
        && bad.drive == Some(drive)
        && bad.page.is_none_or(|page| page as usize == target.byte / PAGE_BYTES)
}

/// Returns the findings in a protected object, or in the page lists of any, that were not flipped.
fn surplus(entry: &Entry, bad: &[Bad], flipped: &[Target]) -> Vec<String> {
    let was_whole = flipped.iter().any(|of| of.object == entry.name && of.piece.is_some());
    // What was lost before stays bad, and its object has no flipped piece.
    let more = bad.iter().filter(|bad| was_whole || bad.cause == Cause::PageList);
    let more = more.filter(|bad| !flipped.iter().any(|target| is_of(bad, target)));
    more.map(|bad| format!("found, and not flipped: {bad:?}")).collect()
}
