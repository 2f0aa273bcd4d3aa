//! A drive whose medium fails a single access, chosen in turn over all phases and structures: hosts
//! repeat what failed, and go on. Then the drive is stopped, killed or loses its power. The next
//! start serves everything acknowledged, its figures are right, and the check finds nothing.

mod cut;
mod every;
mod formatting;
mod kinds;
mod work;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use csd_drive::life::drain;
use csd_kvlog::check::check;
use csd_kvlog::format::{self, SHARDS};
use csd_kvlog::media::{Fault, Faulty, Media, Operation, Volatile};
use csd_kvlog::recover::survey;
use csd_nvme::feature::FeatureId;

use crate::lives::{Lives, SMALL, segments_of, together};
use crate::seeds;
use kinds::{Kind, Phase, structure};
use work::{KEYS, Known, Shared, change, compare_figures, verify, work};

const BURSTS: u64 = 8;
/// Free segments that are left before the life with a fault: soon it has to clean.
const LEFT_FREE: usize = 12;

/// End of the life with the fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Stop,
    Kill,
    PowerCut,
}

/// Counts of what the runs have met.
#[derive(Debug, Default)]
struct Met {
    faults: BTreeMap<String, u64>,
    by_fault: BTreeMap<Fault, u64>,
    refused_starts: u64,
    failed_changes: u64,
    failed_stops: u64,
    read_only: u64,
    cleaned: u64,
    checkpoints: u64,
}

/// A medium on which few segments are free, and what is on it.
struct Base {
    seed: u64,
    disk: Arc<Volatile>,
    known: Known,
}

impl Base {
    fn new(seed: u64) -> Self {
        let known = Shared::default();
        let mut lives = Lives::new(seed, 1, SMALL);
        let filled = Rc::clone(&known);
        let lived = lives.live(move |core| async move {
            let failed = Rc::default();
            while core.shared.segments.free_count() > LEFT_FREE {
                let parts = || (Rc::clone(&core), Rc::clone(&filled), Rc::clone(&failed));
                together((0..KEYS).map(|number| {
                    let (core, known, failed) = parts();
                    change(core, number, 200_000, known, failed)
                }))
                .await;
            }
            if seed.is_multiple_of(2) {
                drain(&core.shared, Duration::from_secs(10)).await.expect("stopped");
            }
        });
        lived.expect("opens");
        lives.cut(|| 0);
        let known = known.borrow().clone();
        Self { seed, disk: Arc::clone(&lives.disk), known }
    }

    fn is_cached(&self) -> bool {
        self.seed % 3 == 2
    }

    /// Returns a copy of the medium, which a drive with the seed's options will serve.
    fn lives(&self) -> (Lives, Arc<Faulty>) {
        let cores = 1 + usize::try_from(self.seed / 2 % 2).unwrap();
        let mut lives = Lives::new(self.seed, cores, SMALL);
        let disk = Arc::new(self.disk.copied());
        lives.disk = Arc::clone(&disk);
        let faulty = Arc::new(Faulty::new(Media::Volatile(disk), self.seed));
        let medium = Arc::clone(&faulty);
        lives = lives.on(move |_| Media::Faulty(medium));
        lives.is_formatted();
        lives.with_cache(self.is_cached());
        (lives, faulty)
    }

    /// Runs the life without a fault; returns the kinds of its accesses, each with the numbers of
    /// those of that kind.
    fn kinds(&self, bursts: u64) -> BTreeMap<Kind, Vec<usize>> {
        let (mut lives, faulty) = self.lives();
        let known = Rc::new(RefCell::new(self.known.clone()));
        let medium = Arc::clone(&faulty);
        let lived = lives.live(move |core| async move {
            let started = medium.begun().len();
            work(&core, bursts, &known, &Rc::default()).await;
            let worked = medium.begun().len();
            drain(&core.shared, Duration::from_secs(10)).await.expect("stopped");
            (started, worked)
        });
        let (started, worked) = lived.expect("opens");
        lives.cut(|| 0);
        let superblock =
            lives.inspect(|media| async move { format::open(&media).await.expect("a drive") });
        let mut kinds: BTreeMap<Kind, Vec<usize>> = BTreeMap::new();
        for (number, access) in faulty.begun().iter().enumerate() {
            let phase = match number {
                _ if number < started => Phase::Start,
                _ if number < worked => Phase::Work,
                _ => Phase::Stop,
            };
            let structure = structure(&superblock, access);
            let kind = Kind { phase, operation: access.operation, structure };
            kinds.entry(kind).or_default().push(number);
        }
        kinds
    }

    /// Lives with one fault, ends so, and starts twice more.
    fn run(&self, case: Case, met: &mut Met) -> Result<(), String> {
        let Case { number, fault, end, bursts } = case;
        let (mut lives, faulty) = self.lives();
        faulty.fail_once(number, fault);
        let known = Rc::new(RefCell::new(self.known.clone()));
        let failed: Rc<RefCell<u64>> = Rc::default();
        let (in_work, failures) = (Rc::clone(&known), Rc::clone(&failed));
        let lived = lives.live(move |core| async move {
            work(&core, bursts, &in_work, &failures).await;
            let segments = &core.shared.segments;
            let is_read_only = core.shared.media().is_read_only();
            if !is_read_only {
                compare_figures(&core, &in_work.borrow());
            }
            let stopped = match end {
                End::Stop => Some(drain(&core.shared, Duration::from_secs(10)).await.is_ok()),
                End::Kill | End::PowerCut => None,
            };
            if stopped == Some(true) && !core.shared.media().is_read_only() {
                in_work.borrow_mut().flushed();
            }
            (is_read_only, stopped, segments.cleaned_count(), segments.checkpoint_count())
        });
        let was_stopped = matches!(lived, Ok((_, Some(_), ..)));
        match lived {
            Ok((is_read_only, stopped, cleaned, checkpoints)) => {
                met.read_only += u64::from(is_read_only);
                met.failed_stops += u64::from(stopped == Some(false));
                met.cleaned += cleaned;
                met.checkpoints += checkpoints;
            }
            Err(_) => met.refused_starts += 1,
        }
        met.failed_changes += *failed.borrow();
        is_told(&faulty, number, fault)?;
        match end {
            End::Stop | End::Kill => lives.cut(|| 0),
            End::PowerCut => lives.cut_at_random(),
        }
        let disk = Media::Volatile(Arc::clone(&lives.disk));
        lives = lives.on(move |_| disk);
        let open = lives.inspect(unsealed);
        if was_stopped && !faulty.is_read_only() && open.len() > 1 {
            return Err(format!("one access failed, and the stop left shards {open:?} open"));
        }
        serves_on(&mut lives, &known)
    }
}

/// Starts the drive twice more: each time its medium is sound, and it serves everything.
fn serves_on(lives: &mut Lives, known: &Shared) -> Result<(), String> {
    for start in ["the next start", "the start after it"] {
        let report = lives.inspect(|media| async move { check(&media).await.expect("checked") });
        if !report.damage.is_empty() {
            return Err(format!("before {start}: {}", report.damage.join("; ")));
        }
        let known = Rc::clone(known);
        let served = lives.live(move |core| async move {
            verify(&core, &known).await?;
            work(&core, 2, &known, &Rc::default()).await;
            drain(&core.shared, Duration::from_secs(10)).await.map_err(|it| it.to_string())?;
            known.borrow_mut().flushed();
            Ok::<(), String>(())
        });
        let served = served.and_then(|verified| verified);
        served.map_err(|error| format!("{start}: {error}"))?;
        lives.cut(|| 0);
    }
    Ok(())
}

/// A life with a fault.
#[derive(Clone, Copy, Debug)]
struct Case {
    /// Number of the access that fails.
    number: usize,
    fault: Fault,
    end: End,
    /// Bursts of work.
    bursts: u64,
}

/// Returns a fault of an operation, another one in each turn.
fn fault_of(operation: Operation, turn: usize) -> Fault {
    match operation {
        Operation::Write => [Fault::Io, Fault::Full, Fault::Short, Fault::Whole][turn % 4],
        _ => Fault::Io,
    }
}

/// Checks that the medium has counted the fault, and tells where it was, and why.
fn is_told(faulty: &Faulty, number: usize, fault: Fault) -> Result<(), String> {
    let Some(access) = faulty.begun().get(number).copied() else { return Ok(()) };
    let (count, last) = (faulty.failures().count(), faulty.failures().last());
    let told = last.as_ref().map(|last| (last.operation, last.offset, last.bytes));
    let word = if fault == Fault::Full { "os error 28" } else { "os error 5" };
    let is_told = told == Some((access.operation, access.offset, access.bytes))
        && last.is_some_and(|last| last.reason.contains(word));
    match is_told && count == 1 {
        true => Ok(()),
        false => Err(format!("{count} failures, the last {told:?}, for {access:?}")),
    }
}

/// Returns the shards whose newest segment has no seal.
async fn unsealed(media: Media) -> Vec<u32> {
    let found = survey(&media, &segments_of(&media).await, SHARDS, 0).await.expect("whole");
    let newest: BTreeMap<u32, bool> =
        found.iter().map(|segment| (segment.shard, segment.seal.is_some())).collect();
    newest.into_iter().filter(|(_, is_sealed)| !is_sealed).map(|(shard, _)| shard).collect()
}

/// Prints the fault that a panic followed.
struct Told(String);

impl Drop for Told {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("{}", self.0);
        }
    }
}

/// Fails one access of each kind, another one in each seed.
fn run(seed: u64) -> Met {
    let (base, mut met) = (Base::new(seed), Met::default());
    for (index, (kind, numbers)) in (seed..).zip(base.kinds(BURSTS)) {
        let turn = usize::try_from(index).unwrap();
        // Spread over all of the kind as seeds go on.
        let number = numbers[turn.wrapping_mul(0x9E37_79B1) % numbers.len()];
        let fault = fault_of(kind.operation, turn);
        let end = [End::Stop, End::Kill, End::Stop, End::PowerCut][turn / 4 % 4];
        let told = Told(format!("access {number} ({kind}) fails with {fault:?}, then {end:?}"));
        if let Err(text) = base.run(Case { number, fault, end, bursts: BURSTS }, &mut met) {
            panic!("{text}");
        }
        drop(told);
        *met.faults.entry(kind.to_string()).or_default() += 1;
        *met.by_fault.entry(fault).or_default() += 1;
    }
    met
}

#[test]
fn a_single_failed_access_loses_nothing_and_keeps_no_start_from_serving() {
    let mut all = Met::default();
    for met in seeds::each(seeds::seeds(), run) {
        met.faults
            .iter()
            .for_each(|(kind, count)| *all.faults.entry(kind.clone()).or_default() += count);
        met.by_fault
            .iter()
            .for_each(|(fault, count)| *all.by_fault.entry(*fault).or_default() += count);
        all.refused_starts += met.refused_starts;
        all.failed_changes += met.failed_changes;
        all.failed_stops += met.failed_stops;
        all.read_only += met.read_only;
        all.cleaned += met.cleaned;
        all.checkpoints += met.checkpoints;
    }
    let count = seeds::seeds().count();
    println!("single faults: {count} seeds, {all:#?}");
    let counts =
        [all.refused_starts, all.failed_changes, all.failed_stops, all.read_only, all.cleaned];
    assert!(counts.iter().all(|count| *count > 0) || count < 20, "{all:?}");
    for part in ["a header", "a header to free", "a seal or hint", "records", "the mark"] {
        let is_met = all.faults.keys().any(|kind| kind.ends_with(&format!("write of {part}")));
        assert!(is_met || count < 20, "no write of {part} failed");
    }
}

#[test]
fn a_setting_whose_page_could_not_be_written_is_saved_by_the_next_try() {
    let mut lives = Lives::new(9, 1, SMALL);
    let faulty = Arc::new(Faulty::new(Media::Volatile(Arc::clone(&lives.disk)), 9));
    let medium = Arc::clone(&faulty);
    lives = lives.on(move |_| Media::Faulty(medium));
    let saved = lives.live(move |core| async move {
        let (settings, syncer) = (&core.shared.settings, &core.shared.syncer);
        let save = async |value| {
            settings.save(FeatureId::TEMPERATURE_THRESHOLD, 0, value);
            settings.persist(syncer).await
        };
        assert_eq!(save(7).await, Ok(()));
        for fault in [Fault::Io, Fault::Short, Fault::Whole] {
            faulty.fail_once(faulty.begun().len(), fault);
            assert!(save(8).await.is_err(), "{fault:?}");
        }
        save(8).await
    });
    assert_eq!(saved, Ok(Ok(())));
    lives.cut_at_random();
    let found = lives.live(|core| async move {
        core.shared.settings.saved(FeatureId::TEMPERATURE_THRESHOLD, 0)
    });
    assert_eq!(found, Ok(Some(8)), "it was acknowledged");
}
