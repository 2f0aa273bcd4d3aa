//! The last comparison of a run: the hosts' answers, and what the media themselves hold.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::Arc;

use csd_nvme::kv::Key;
use csd_store::array::{GUARDED, Quorum};
use csd_store::catalogue::{self, Entry, KEY_PREFIX, ObjectId, State};
use csd_store::object;

use super::history::{CHUNK_BYTES, Told, bytes_of};
use super::host::{Shared, name_of, put};
use super::medium::AtRest;
use super::pieces::{Place, Sound, of_none};
use super::{DRIVES, Lane, NAMES, rot};

/// Copies of entries on all media, by key.
type Copies = BTreeMap<Key, Vec<Entry>>;

/// Compares the answers of the last reads, by name, with the media. `is_repaired` says that all
/// objects were repaired before.
pub fn compare(answers: &[Told], is_repaired: bool, known: &mut Shared) {
    let media = known.media_at_rest();
    let copies = copies(&media);
    let newest: BTreeMap<&Key, &Entry> =
        copies.iter().map(|(key, held)| (key, newest(held))).collect();
    let mut wrong = Vec::new();
    for (name, told) in answers.iter().enumerate() {
        let entry = newest.get(&catalogue::key(&name_of(name))).copied();
        let entry = entry.filter(|entry| entry.state == State::Sealed);
        let is_there = match told {
            Told::Bytes(_) => entry.is_some(),
            Told::Missing => entry.is_none(),
            _ => true,
        };
        if !is_there {
            wrong.push(format!("{}: {told:?}, and the media hold {entry:?}", name_of(name)));
        }
        let Some(entry) = entry else { continue };
        let sound = Sound::at_rest(&media, entry);
        known.compared += u64::from(sound.is_some());
        wrong.extend(differences(&media, entry, sound.as_ref(), *told));
        if sound.is_some_and(|sound| is_repaired && sound.is_enough() && !sound.is_full()) {
            wrong.push(format!("{}: the media lack pieces after the last repair", name_of(name)));
        }
    }
    if !known.was_mend_cut() {
        wrong.extend(lacking_copies(&copies, known));
    }
    if known.mending {
        wrong.extend(rot::damaged(&media));
    }
    let exists = newest.into_values().filter(|entry| entry.state != State::Deleted);
    let ids: BTreeSet<ObjectId> = exists.flat_map(Entry::ids).collect();
    for (drive, medium) in media.iter().enumerate() {
        wrong.extend(of_none(drive, medium.keys(&[]), &ids));
    }
    known.history.violations.extend(wrong);
}

/// Returns all entries.
pub fn copies(media: &[AtRest]) -> Copies {
    let mut copies = Copies::new();
    for medium in media {
        for key in medium.keys(&[KEY_PREFIX]) {
            let entry = medium.value(key).and_then(|value| Entry::parse(&value).ok());
            copies.entry(*key).or_default().extend(entry);
        }
    }
    copies.retain(|_, held| !held.is_empty());
    copies
}

/// Returns the newest entry of every name that is an object's.
pub fn sealed(media: &[AtRest]) -> Vec<Entry> {
    let copies = copies(media);
    let newest = copies.values().map(|held| newest(held));
    newest.filter(|entry| entry.state == State::Sealed).cloned().collect()
}

/// Returns the entry that counts: of the highest epoch, and sealed if one of these is.
fn newest(held: &[Entry]) -> &Entry {
    let newest = held.iter().max_by_key(|entry| (entry.epoch, entry.state == State::Sealed));
    newest.expect("there is a copy")
}

/// Compares the pieces of an object with the answer that its reader got; any n pieces of a stripe
/// that are equal to the code's give all others.
fn differences(media: &[AtRest], entry: &Entry, sound: Option<&Sound>, told: Told) -> Vec<String> {
    let Told::Bytes(content) = told else {
        let could_be_read = sound.is_some_and(Sound::is_enough);
        return Vec::from_iter(
            could_be_read.then(|| format!("{told:?}: {:?} could be read", entry.name)),
        );
    };
    let bytes = bytes_of(content);
    if let Some(sound) = sound {
        let mut wrong = sound.differences(entry, &bytes);
        if !sound.is_enough() {
            wrong.push(format!("{:?} was read, and the media lack pieces of it", entry.name));
        }
        return wrong;
    }
    let chunks = bytes.chunks(usize::try_from(CHUNK_BYTES).unwrap());
    let is_other = |(chunk, bytes): &(u32, &[u8])| {
        let place = Place::of_chunk(entry, *chunk);
        media[place.drive].piece(&place).is_none_or(|held| held != *bytes)
    };
    let others = (0..).zip(chunks).filter(is_other);
    others.map(|(chunk, _)| format!("{:?}: chunk {chunk} is another one", entry.name)).collect()
}

/// Returns the names whose last change was acknowledged and whose newest entry too few media hold.
fn lacking_copies(copies: &Copies, known: &Shared) -> Vec<String> {
    let mut lacking = Vec::new();
    for name in (0..NAMES).filter(|name| known.history.is_settled(*name)) {
        let held = copies.get(&catalogue::key(&name_of(name)));
        let held: &[Entry] = held.map_or(&[], |held| held);
        let newest = held.iter().map(|entry| (entry.epoch, entry.losses())).max();
        let (epoch, losses) = newest.unwrap_or_default();
        let count = held.iter().filter(|entry| entry.epoch == epoch).count();
        if count < Quorum::new(DRIVES, losses).write() {
            lacking.push(format!("{}: only {count} copies of epoch {epoch}", name_of(name)));
        }
    }
    lacking
}

#[test]
fn what_a_drive_answers_and_its_medium_lacks_is_seen() {
    // As values and on blocks, protected.
    for content in [17, 5] {
        let lane = Lane::new(1, GUARDED);
        lane.start_drives();
        let before: Vec<_> =
            lane.drives.iter().map(|drive| Arc::new(drive.disk.copied())).collect();
        let known = Rc::clone(&lane.known);
        let entry = lane.ask(move |array| {
            let known = Rc::clone(&known);
            async move {
                assert_eq!(put(&array, 0, content, &known).await, Told::Done);
                object::lookup(&array, &name_of(0)).await.expect("it is there")
            }
        });
        lane.read_back();
        let seen = || std::mem::take(&mut lane.known.borrow_mut().history.violations);
        assert_eq!(seen(), [""; 0]);
        // The drive answers as before.
        let drive = usize::from(entry.members[0]);
        lane.known.borrow_mut().disks[drive] = Arc::clone(&before[drive]);
        lane.read_back();
        let found = seen();
        assert!(found.iter().any(|found| found.contains("lack pieces")), "{found:?}");
    }
}
