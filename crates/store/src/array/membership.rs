//! Membership: the drives whose answers about the catalogue count.
//!
//! A drive that was emptied, replaced, or put back with an older medium has forgotten entries that
//! it once acknowledged. Counted as an answer, its "no such key" would hide them. So a drive votes
//! only if it has lived through the last life that the others know of its place
//! ([`decide_votes`]), and a writer registers the lives of all voting drives before their
//! acknowledgements count ([`register`]). `catalogue::rebuild` gives a drive its vote back.
//!
//! A drive that was never registered votes too, but then readers need a majority. Not noticed: a
//! medium that is put back from a copy made while the drive was running, in the same life.

use std::rc::Rc;

use csd_nvme::kv::{Key, STORE_IF_NEWER, STORE_MENDS, VERSION_OFFSET};
use csd_nvme::status::Status;
use csd_reactor::{Buffer, Class, JoinHandle, random_u64, spawn};

use super::record::{Life, Lives, Roster, Seat, lives_key, roster_key};
use super::vote::{Held, Seen, Verdict, decide_votes};
use super::{Array, Drive, DriveIndex, Error};

/// Read size for a record, bytes: that of an array of a hundred drives.
const RECORD_BYTES: u32 = 4096;
/// No array has so many lives: no sound version is as high.
const VERSION_MAX: u64 = 1 << 62;
/// Attempts to register lives while other hosts do so too.
const ATTEMPTS: usize = 16;

/// Reads a drive's list of its lives.
///
/// # Errors
/// A failed command.
async fn read_lives(drive: &Drive) -> Result<Held<Lives>, Error> {
    Ok(held(read(drive, &lives_key()).await?, Lives::parse))
}

fn held<T>(value: Held<Buffer>, parse: impl Fn(&[u8]) -> Option<T>) -> Held<T> {
    match value {
        Held::None => Held::None,
        Held::Damaged => Held::Damaged,
        Held::Whole(bytes) => parse(&bytes).map_or(Held::Damaged, Held::Whole),
    }
}

/// Returns the version of a record that may be damaged; 0 if it has none, or an impossible one.
fn version_of(record: &Held<Buffer>) -> u64 {
    let bytes = record.whole().and_then(|bytes| bytes.get(VERSION_OFFSET..));
    let version = bytes.and_then(|bytes| Some(u64::from_le_bytes(*bytes.first_chunk()?)));
    version.filter(|version| *version < VERSION_MAX).unwrap_or(0)
}

async fn read(drive: &Drive, key: &Key) -> Result<Held<Buffer>, Error> {
    match drive.objects.retrieve(key, RECORD_BYTES).await {
        Ok(Some(value)) => Ok(Held::Whole(value)),
        Ok(None) => Ok(Held::None),
        Err(error) if error.status() == Some(Status::UNRECOVERED_ERROR) => Ok(Held::Damaged),
        Err(error) => Err(failed(drive, error)),
    }
}

/// Registers the present life of every voting drive: on the drive, and with `needed` drives
/// together. Does nothing if they are registered.
///
/// # Errors
/// A drive's error; [`Error::TooFew`]; [`Error::Vote`] if a drive has lost its vote since the array
/// was connected; [`Error::Restless`].
pub(crate) async fn register(array: &Array, needed: usize) -> Result<(), Error> {
    if !array.guards.slots || array.now().registered.get() >= needed {
        return Ok(());
    }
    for _ in 0..ATTEMPTS {
        let seen = look_at_all(array).await;
        array.require(needed)?;
        let voters = array.voters();
        let Verdict { mut roster, votes, .. } = decide_votes(&seen, array.size(), array.uuid);
        for drive in &voters {
            if let Err(why) = &votes[drive.index] {
                return Err(Error::Vote { drive: drive.name.clone(), why: why.clone() });
            }
        }
        if add_lives(&voters, &seen, &mut roster).await?
            && enroll(needed, &voters, &seen, &roster).await?
        {
            array.now().registered.set(needed);
            return Ok(());
        }
    }
    Err(Error::Restless)
}

/// Kinds of records of membership.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RecordKind {
    /// A drive's own lives.
    Lives,
    /// Its copy of the list of all drives.
    Roster,
}

/// Reads the records of all drives that are up. Returns the number of records, and those that are
/// damaged.
///
/// # Errors
/// A failed command.
pub(crate) async fn damaged(array: &Array) -> Result<(u64, Vec<(DriveIndex, RecordKind)>), Error> {
    let drives: Vec<Rc<Drive>> = array.drives().cloned().collect();
    let (mut count, mut damaged) = (0, Vec::new());
    for (index, seen) in look_at(&drives).await {
        let Seen { lives, roster, .. } = seen?;
        count += u64::from(lives != Held::None) + u64::from(roster != Held::None);
        damaged.extend((lives == Held::Damaged).then_some((index, RecordKind::Lives)));
        damaged.extend((roster == Held::Damaged).then_some((index, RecordKind::Roster)));
    }
    Ok((count, damaged))
}

/// Stores the roster again on voting drives whose copy is damaged or older.
///
/// # Errors
/// As [`register`].
pub(crate) async fn mend(array: &Array) -> Result<(), Error> {
    array.now().registered.set(0);
    register(array, array.quorum().write()).await
}

/// Reads the records of every voting drive. One that fails has no vote on this connection any more.
async fn look_at_all(array: &Array) -> Vec<Option<Seen>> {
    let mut seen: Vec<Option<Seen>> = vec![None; array.slots().len()];
    for (index, look) in look_at(&array.voters()).await {
        match look {
            Ok(found) => seen[index] = Some(found),
            Err(_) => array.silence(index),
        }
    }
    seen
}

/// Reads the records of these drives; returns them by index.
///
/// All rosters are read before any list of lives. A writer that registers a life adds it to the
/// drive's own list first, so a list that is read later has every life that a roster names, unless
/// the drive has forgotten it.
pub(super) async fn look_at(drives: &[Rc<Drive>]) -> Vec<(DriveIndex, Result<Seen, Error>)> {
    let mut rosters = Vec::with_capacity(drives.len());
    let reading = on_each(drives, |drive| async move { read(&drive, &roster_key()).await });
    for (_, roster) in reading {
        rosters.push(roster.await.map(|roster| {
            let version = version_of(&roster);
            (held(roster, Roster::parse), version)
        }));
    }
    let mut seen = Vec::with_capacity(drives.len());
    let reading = on_each(drives, |drive| async move { read_lives(&drive).await });
    for ((drive, lives), roster) in reading.into_iter().zip(rosters) {
        let found = lives.await.and_then(|lives| Ok((lives, roster?)));
        let nguid = drive.nguid;
        let found = found.map(|(lives, (roster, version))| {
            let damaged_version = if roster == Held::Damaged { version } else { 0 };
            Seen { nguid, lives, roster, damaged_version }
        });
        seen.push((drive.index, found));
    }
    seen
}

/// Adds the present life of each drive to its own record if it is missing there, and to the roster.
/// Returns false if another host came in between.
async fn add_lives(
    voters: &[Rc<Drive>],
    seen: &[Option<Seen>],
    roster: &mut Roster,
) -> Result<bool, Error> {
    for drive in voters {
        let seen = seen[drive.index].as_ref().expect("every voter was looked at");
        let mut lives = match &seen.lives {
            Held::Whole(lives) => lives.clone(),
            _ => Lives { array: roster.array, slot: drive.index, lives: Vec::new() },
        };
        // A later life makes a version of the roster that the drive takes in place of damage.
        let missing = match seen.damaged_version {
            0 => 0,
            version => (version + 1).saturating_sub(roster.version()),
        };
        if lives.last().number != drive.life || missing > 0 {
            let known = roster.seat(drive.index).unwrap_or_default().life.ordinal;
            let ordinal = lives.last().ordinal.max(known) + missing.max(1);
            lives.push(Life { ordinal, number: drive.life });
            if !store(drive, &lives_key(), lives.encode(), 0).await? {
                return Ok(false);
            }
        }
        roster.set(drive.index, Seat { nguid: drive.nguid, life: lives.last() });
    }
    Ok(true)
}

/// Stores the roster on every voting drive that has another one. Returns false if another host has
/// stored a different one meanwhile, or fewer than `needed` drives hold it.
async fn enroll(
    needed: usize,
    voters: &[Rc<Drive>],
    seen: &[Option<Seen>],
    roster: &Roster,
) -> Result<bool, Error> {
    let value = roster.encode();
    let behind: Vec<Rc<Drive>> = voters
        .iter()
        .filter(|drive| {
            let held = seen[drive.index].as_ref().and_then(|seen| seen.roster.whole());
            held != Some(roster)
        })
        .cloned()
        .collect();
    let (mut holders, mut failed) = (voters.len() - behind.len(), None);
    let stores = on_each(&behind, |drive| {
        let value = value.clone();
        async move { store(&drive, &roster_key(), value, STORE_MENDS).await }
    });
    for (_, stored) in stores {
        match stored.await {
            Ok(true) => holders += 1,
            Ok(false) => return Ok(false),
            Err(error) => failed = Some(error),
        }
    }
    match failed {
        // Every voter's acknowledgements will count, so all must be known to a quorum.
        Some(error) if holders < needed => Err(error),
        _ => Ok(holders >= needed),
    }
}

/// Registers the present lives of all drives, and a life of a vacant place that its former drive
/// has not lived through: it has no vote if it comes back, with an array file of before or none.
///
/// # Errors
/// As [`register`].
pub(crate) async fn vacate(array: &Array, index: DriveIndex) -> Result<(), Error> {
    register(array, array.size()).await?;
    for _ in 0..ATTEMPTS {
        let seen = look_at_all(array).await;
        array.require(array.size())?;
        let mut roster = decide_votes(&seen, array.size(), array.uuid).roster;
        let Seat { nguid, life } = roster.seat(index).unwrap_or_default();
        let life = Life { ordinal: life.ordinal + 1, number: random_u64() };
        roster.set(index, Seat { nguid, life });
        if enroll(array.size(), &array.voters(), &seen, &roster).await? {
            return Ok(());
        }
    }
    Err(Error::Restless)
}

/// Gives a drive whose catalogue was rebuilt its vote: as the next life of its place, which
/// `needed` others know.
///
/// # Errors
/// As [`register`].
pub(crate) async fn readmit(array: &Array, drive: &Rc<Drive>, needed: usize) -> Result<(), Error> {
    for _ in 0..ATTEMPTS {
        let seen = look_at_all(array).await;
        let voters = array.voters();
        let mut roster = decide_votes(&seen, array.size(), array.uuid).roster;
        let before = roster.seat(drive.index).unwrap_or_default().life;
        let own = read_lives(drive).await?;
        let is_right = |lives: &&Lives| {
            let follows = before.ordinal == 0 || lives.has(before);
            follows && lives.array == roster.array && lives.last().number == drive.life
        };
        let life = match own.whole().filter(is_right) {
            Some(lives) => lives.last(),
            None => {
                let last = own.whole().map_or(0, |lives| lives.last().ordinal);
                let life = Life { ordinal: before.ordinal.max(last) + 1, number: drive.life };
                // It has everything that its place has ever acknowledged.
                let lives = if before.ordinal > 0 { vec![before, life] } else { vec![life] };
                let lives = Lives { array: roster.array, slot: drive.index, lives };
                if !store(drive, &lives_key(), lives.encode(), STORE_MENDS).await? {
                    continue;
                }
                life
            }
        };
        roster.set(drive.index, Seat { nguid: drive.nguid, life });
        // Its own copy is the last of the quorum.
        if enroll(needed, &voters, &seen, &roster).await?
            && store(drive, &roster_key(), roster.encode(), STORE_MENDS).await?
        {
            return Ok(());
        }
    }
    Err(Error::Restless)
}

/// Origin of a drive without a vote.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// It stood in its place before, and has an older or damaged record of that; or a rebuild
    /// was interrupted between its own record and those of the others.
    Own,
    /// It stood in its place before another drive took that: its medium was kept.
    Former,
    /// It has no record of any array.
    Unknown,
    /// It belongs to another array, or to another place.
    Foreign,
}

/// Returns the origin of a drive without a vote.
///
/// # Errors
/// A failed command.
pub(crate) async fn origin(array: &Array, drive: &Drive) -> Result<Origin, Error> {
    let roster = decide_votes(&look_at_all(array).await, array.size(), array.uuid).roster;
    let seat = roster.seat(drive.index);
    let is_same = seat.is_none_or(|seat| seat.nguid == drive.nguid);
    // Only a rebuild gives a new drive the life that the others know of its place.
    let is_own = |lives: &Lives| is_same || seat.is_some_and(|seat| lives.has(seat.life));
    Ok(match read_lives(drive).await? {
        Held::None => Origin::Unknown,
        Held::Damaged if is_same => Origin::Own,
        Held::Whole(lives) if lives.array == roster.array && lives.slot == drive.index => {
            if is_own(&lives) { Origin::Own } else { Origin::Former }
        }
        Held::Damaged | Held::Whole(_) => Origin::Foreign,
    })
}

/// Stores a record by its version; returns false if the drive has this version or a later one.
async fn store(drive: &Drive, key: &Key, value: Vec<u8>, options: u8) -> Result<bool, Error> {
    let value = vec![Buffer::from_slice(&value)];
    match drive.objects.store(key, value, STORE_IF_NEWER | options).await {
        Ok(()) => Ok(true),
        Err(error) if error.status() == Some(Status::NOT_NEWER) => Ok(false),
        Err(error) => Err(failed(drive, error)),
    }
}

fn failed(drive: &Drive, source: csd_initiator::Error) -> Error {
    Error::Command { drive: drive.name.clone(), url: drive.url.clone(), source }
}

fn on_each<T: 'static, F: Future<Output = T> + 'static>(
    drives: &[Rc<Drive>],
    ask: impl Fn(Rc<Drive>) -> F,
) -> Vec<(Rc<Drive>, JoinHandle<T>)> {
    let begin =
        |drive: &Rc<Drive>| (Rc::clone(drive), spawn(Class::Foreground, ask(Rc::clone(drive))));
    drives.iter().map(begin).collect()
}
