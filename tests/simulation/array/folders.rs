//! Lists by folder, which drives answer from an index in their memory, and lists of all entries.
//!
//! A host stores, replaces and removes objects in folders. Drives die and start again, are cut off
//! while names change, so that they have older entries than others, come back empty, and have bits
//! of entries flipped. Rules: once the writer rests, a list by prefix, the children of a folder and
//! the question whether there is such a folder say what the entries of all drives say; while it
//! writes, a list has every object that it does not touch, and none that it never stored.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::time::Duration;

use csd_kernels::ElementType;
use csd_store::array::{Array, DriveIndex, GUARDED};
use csd_store::catalogue::rebuild;
use csd_store::object::{self, Error, On, Progress, PutOptions};
use csd_store::source::Source;

use super::Lane;
use super::damaged::unreadable::flip_copies;
use super::pace::{ask, begin, empty_drive, options_of};
use crate::seeds;

/// Steps of a run, each of some changes and a fault.
const STEPS: u64 = 6;
/// Paths of the folders, and objects in each of them.
const FOLDERS: [&str; 7] = ["", "a/", "a/b/", "a/b/c/d/", "a//", "with a long component/", "w/"];
const NAMES: u64 = 4;
/// Prefixes that are asked for.
const PREFIXES: [&str; 9] =
    ["", "a", "a/", "a/b", "a/b/c/", "a/x1", "wi", "with a long c", "none/"];

/// Number of events of each kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Counts {
    stored: u64,
    removed: u64,
    lists: u64,
    listed: u64,
    busy_lists: u64,
    restarts: u64,
    absences: u64,
    emptied: u64,
    flips: u64,
}

/// Change of a name.
#[derive(Clone, Debug)]
enum Change {
    Store(String),
    Remove(String),
}

fn options(name: &str) -> PutOptions {
    PutOptions { on: On::Kv, protect: None, chunk_bytes: Some(4096), ..options_of(name) }
}

async fn change(array: &Array, change: &Change) -> Result<(), Error> {
    match change {
        Change::Store(name) => {
            let bytes = Box::new(io::Cursor::new(name.as_bytes().to_vec()));
            let source = Source::raw("bytes", bytes, ElementType::Bytes);
            object::replace(array, source, &options(name), &Progress::none()).await.map(drop)
        }
        Change::Remove(name) => object::remove(array, name).await.map(drop),
    }
}

/// Draws changes of names, in the folder `within` alone if there is one.
fn draw_changes(lane: &Lane, known: &BTreeSet<String>, within: Option<&str>) -> Vec<Change> {
    let draw = |below: usize| usize::try_from(lane.draw(0..below as u64)).unwrap();
    let mut known = known.clone();
    let count = lane.draw(4..16);
    let mut changes = Vec::new();
    for _ in 0..count {
        let folder = within.unwrap_or_else(|| FOLDERS[draw(FOLDERS.len() - 1)]);
        let name = format!("{folder}x{}", lane.draw(0..NAMES));
        changes.push(match known.contains(&name) && lane.draw(0..2) == 0 {
            true => {
                known.remove(&name);
                Change::Remove(name)
            }
            false => {
                known.insert(name.clone());
                Change::Store(name)
            }
        });
    }
    changes
}

/// Compares the lists by folder with all entries. Returns the number of lists, and of names.
async fn compare(array: &Array, seed: u64) -> (u64, u64) {
    let all = object::list(array).await.expect("lists all");
    assert_eq!(all.damaged, 0, "seed {seed}");
    let names: Vec<&str> = all.sealed.iter().map(|entry| &*entry.name).collect();
    let mut lists = 0;
    for prefix in PREFIXES {
        let (found, damaged) = object::list_under(array, prefix).await.expect("lists");
        let wanted = all.sealed.iter().filter(|entry| entry.name.starts_with(prefix));
        let wanted: Vec<_> = wanted.cloned().collect();
        assert!(found == wanted, "seed {seed}, {prefix:?}: {found:#?} of {wanted:#?}");
        assert_eq!(damaged, 0);
        lists += 1;
    }
    for path in FOLDERS.into_iter().chain(["a/b/c/", "none/"]) {
        let found = object::children(array, path).await.expect("lists");
        let below = names.iter().filter_map(|name| name.strip_prefix(path));
        let (mut objects, mut folders) = (Vec::new(), BTreeSet::new());
        for rest in below.clone() {
            match rest.split_once('/') {
                Some((component, _)) => drop(folders.insert(format!("{path}{component}/"))),
                None => objects.push(format!("{path}{rest}")),
            }
        }
        let told: Vec<_> = found.objects.into_keys().collect();
        assert_eq!(told, objects, "seed {seed}: objects in {path:?}");
        // A drive that was away may know a folder that is empty by now.
        assert!(found.folders.is_superset(&folders), "seed {seed}: {:?}", found.folders);
        let is_folder = object::is_folder(array, path).await.expect("asks");
        assert_eq!(is_folder, below.count() > 0, "seed {seed}: {path:?}");
        lists += 2;
    }
    (lists, names.len() as u64)
}

/// Changes names; a fault may come meanwhile. Returns the drive that has lost its vote.
fn work(lane: &mut Lane, known: &mut BTreeSet<String>, counts: &mut Counts) -> Option<usize> {
    let changes = draw_changes(lane, known, None);
    for change in &changes {
        match change {
            Change::Store(name) => {
                known.insert(name.clone());
                counts.stored += 1;
            }
            Change::Remove(name) => {
                known.remove(name);
                counts.removed += 1;
            }
        }
    }
    let struck = lane.draw_drive();
    let fault = lane.draw(0..5);
    if fault == 0 {
        // It has older entries afterwards.
        lane.world.partition(lane.hosts[0], lane.drives[struck].machine);
        counts.absences += 1;
    }
    ask(lane, 0, async move |array| {
        for one in &changes {
            change(&array, one).await.unwrap_or_else(|error| panic!("{one:?}: {error}"));
        }
    });
    match fault {
        0 => lane.world.heal(lane.hosts[0], lane.drives[struck].machine),
        1 => {
            lane.world.crash(lane.drives[struck].machine);
            lane.drives[struck].disk.power_cut(|| lane.world.random_u64());
            lane.drives[struck].disk.power_on();
            lane.start_drive(struck);
            lane.world.run_for(Duration::from_secs(2));
            counts.restarts += 1;
        }
        2 => {
            empty_drive(lane, struck);
            counts.emptied += 1;
            return Some(struck);
        }
        3 => {
            let names: Vec<&String> = known.iter().collect();
            if let Some(name) = names.get(usize::try_from(lane.draw(0..20)).unwrap()) {
                counts.flips += flip_copies(lane, name, &[struck]);
            }
        }
        _ => {}
    }
    None
}

/// Lists while another host writes below `w/`. Returns the number of lists.
fn list_beside_a_writer(lane: &Lane, known: &BTreeSet<String>) -> u64 {
    let changes = draw_changes(lane, &BTreeSet::new(), Some("w/"));
    let writer = begin(lane, 0, async move |array| {
        for one in &changes {
            change(&array, one).await.unwrap_or_else(|error| panic!("{one:?}: {error}"));
        }
        for name in 0..NAMES {
            let _removed = object::remove(&array, &format!("w/x{name}")).await;
        }
    });
    let quiet = known.clone();
    let lists = ask(lane, 1, async move |array| {
        let mut lists = 0;
        for _ in 0..10 {
            let (found, _) = object::list_under(&array, "").await.expect("lists");
            let mut found: BTreeMap<_, _> =
                found.into_iter().map(|entry| (entry.name, entry.bytes)).collect();
            found.retain(|name, _| !name.starts_with("w/"));
            assert_eq!(found.into_keys().collect::<BTreeSet<_>>(), quiet);
            lists += 1;
        }
        lists
    });
    lane.wait("the writer", || !lane.world.is_running(lane.hosts[0]));
    writer.take().expect("it has ended");
    lists
}

fn run(seed: u64) -> Counts {
    let (mut lane, mut counts) = (Lane::new(seed, GUARDED), Counts::default());
    let mut known = BTreeSet::new();
    lane.start_drives();
    for _ in 0..STEPS {
        let forgetful = work(&mut lane, &mut known, &mut counts);
        let wanted = known.clone();
        let (lists, listed) = ask(&lane, 1, async move |array| {
            let told = compare(&array, seed).await;
            let (found, _) = object::list_under(&array, "").await.expect("lists");
            let found: BTreeSet<_> = found.into_iter().map(|entry| entry.name).collect();
            assert_eq!(found, wanted, "seed {seed}");
            told
        });
        (counts.lists, counts.listed) = (counts.lists + lists, counts.listed + listed);
        counts.busy_lists += list_beside_a_writer(&lane, &known);
        if let Some(drive) = forgetful {
            ask(&lane, 0, async move |array| {
                rebuild::rebuild(&array, DriveIndex::new(drive)).await.expect("rebuilds")
            });
        }
    }
    counts
}

#[test]
fn lists_by_folder_say_what_all_entries_say() {
    let mut all = Counts::default();
    for counts in seeds::each(seeds(), run) {
        all.stored += counts.stored;
        all.removed += counts.removed;
        all.lists += counts.lists;
        all.listed += counts.listed;
        all.busy_lists += counts.busy_lists;
        all.restarts += counts.restarts;
        all.absences += counts.absences;
        all.emptied += counts.emptied;
        all.flips += counts.flips;
    }
    let count = seeds().count();
    println!("array, folders: {count} seeds, {all:?}");
    let faults = all.restarts.min(all.absences).min(all.emptied).min(all.flips);
    assert!(count < 50 || faults > 0 && all.removed > 0 && all.listed > 0, "{all:?}");
}
