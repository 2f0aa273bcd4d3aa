//! Stores and deletes that fail because the medium fails: a host that reads the key afterwards, or
//! lists it, gets an error or one of the two states, and does not get the other one later, even
//! after restarts.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use csd_drive::drive::Core;
use csd_kvlog::media::{FaultConfig, Faulty, Media};
use csd_nvme::kv::KeyList;
use csd_nvme::status::Status;
use csd_reactor::random_u64;

use crate::injected::Injections;
use crate::lives::{Lives, NSID, SMALL, content, find, keys_of, store, together};
use crate::model::{Model, State};
use crate::seeds;

const SHARDS: usize = 2;
const KEYS_PER_SHARD: u64 = 5;

/// States that may be found, and whether a list had the key since its last change.
#[derive(Default)]
struct Asked {
    model: Model<u64>,
    listed: BTreeMap<u64, bool>,
}

impl Asked {
    fn found(&mut self, number: u64, found: State) -> Result<(), String> {
        let listed = self.listed.get(&number);
        if listed.is_some_and(|listed| *listed != found.is_some()) {
            return Err(format!("{number}: listed {listed:?}, found {}", found.is_some()));
        }
        self.model.recovered(number, found)
    }
}

type Known = Rc<RefCell<Asked>>;

/// Counts of outcomes.
#[derive(Clone, Copy, Debug, Default)]
struct Met {
    injected: Injections,
    failed_changes: u64,
    failed_reads: u64,
    failed_lists: u64,
    reads_after_failures: u64,
}

fn key(number: u64) -> csd_nvme::kv::Key {
    let (shard, index) = (number / KEYS_PER_SHARD, number % KEYS_PER_SHARD);
    keys_of(usize::try_from(shard).unwrap()).nth(usize::try_from(index).unwrap()).unwrap()
}

/// Changes a key; after a failure reads it: every reader gets the same from then on.
async fn change(core: Rc<Core>, number: u64, known: Known, met: Rc<RefCell<Met>>) {
    let draw = random_u64();
    let bytes = [40, 3_000, 30_000][usize::try_from(draw % 3).unwrap()];
    let state = (!draw.is_multiple_of(5)).then(|| content(draw, bytes));
    known.borrow_mut().listed.remove(&number);
    known.borrow_mut().model.asked(number, state.clone());
    let result = match &state {
        Some(value) => store(&core, key(number), value).await,
        None => core.kv.delete(NSID, key(number)).await,
    };
    if result.is_ok() {
        let model = &mut known.borrow_mut().model;
        model.acknowledged(number, state.clone());
        model.durable(number, state);
        return;
    }
    met.borrow_mut().failed_changes += 1;
    list(&core, number, &known, &met).await;
    for _ in 0..2 {
        match find(&core, key(number)).await {
            Ok(found) => {
                met.borrow_mut().reads_after_failures += 1;
                known.borrow_mut().found(number, found).expect("after a failure");
            }
            Err(status) => {
                assert_eq!(status, Status::UNRECOVERED_ERROR);
                met.borrow_mut().failed_reads += 1;
            }
        }
    }
}

/// Lists all keys after a change of one of them failed.
async fn list(core: &Core, number: u64, known: &Known, met: &Rc<RefCell<Met>>) {
    match core.kv.list(NSID, None, 4096).await {
        Ok(data) => {
            let keys = KeyList::parse(&data).expect("a list of keys");
            known.borrow_mut().listed.insert(number, keys.contains(&key(number)));
        }
        Err(status) => {
            assert_eq!(status, Status::UNRECOVERED_ERROR);
            met.borrow_mut().failed_lists += 1;
        }
    }
}

async fn verify(core: &Core, known: &Known) {
    let numbers = known.borrow().model.keys();
    for number in numbers {
        let found = find(core, key(number)).await.expect("the medium works again");
        known.borrow_mut().found(number, found).expect("after a restart");
    }
}

fn run(seed: u64, met: &Rc<RefCell<Met>>) {
    let slot: Rc<RefCell<Option<Arc<Faulty>>>> = Rc::default();
    let known = Known::default();
    let cores = 1 + usize::try_from(seed % 2).unwrap();
    let mut lives = Lives::new(seed, cores, SMALL);
    for _ in 0..4 {
        // A new one for each life: the medium comes back with the power.
        let place = Rc::clone(&slot);
        lives = lives.on(|disk| {
            let inner = match &disk {
                Media::Faulty(_) => place.borrow().as_ref().expect("wrapped").inner().clone(),
                _ => disk,
            };
            let faulty = Arc::new(Faulty::new(inner, seed));
            *place.borrow_mut() = Some(Arc::clone(&faulty));
            Media::Faulty(faulty)
        });
        let faulty = slot.borrow().clone().expect("just made");
        let (known, met) = (Rc::clone(&known), Rc::clone(met));
        let faults = FaultConfig {
            failed_writes_ppm: 20_000,
            torn_writes_ppm: 60_000,
            failed_syncs_ppm: if seed.is_multiple_of(3) { 10_000 } else { 0 },
            ..FaultConfig::default()
        };
        let lived = lives.live(move |core| async move {
            verify(&core, &known).await;
            faulty.set(faults);
            for _ in 0..30 {
                let draw = random_u64();
                let numbers = 0..SHARDS as u64 * KEYS_PER_SHARD;
                let changes = numbers.filter(|number| draw >> number & 1 == 1).map(|number| {
                    change(Rc::clone(&core), number, Rc::clone(&known), Rc::clone(&met))
                });
                together(changes.collect::<Vec<_>>()).await;
            }
            met.borrow_mut().injected.add(&faulty.injected);
        });
        assert_eq!(lived, Ok(()));
        lives.cut_at_random();
    }
}

#[test]
fn a_change_that_failed_is_there_or_not_once_and_for_all() {
    let met = Rc::new(RefCell::new(Met::default()));
    for seed in seeds() {
        let run = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| run(seed, &met)));
        run.unwrap_or_else(|_| panic!("CSD_SIM_SEEDS={seed}..{} repeats it", seed + 1));
    }
    let met = *met.borrow();
    println!("uncertain: {} seeds, {met:?}", seeds().count());
    assert!(met.injected.torn_writes > 0 && met.injected.failed_writes > 0, "{met:?}");
    assert!(met.failed_changes > 100 && met.failed_reads > 0 && met.reads_after_failures > 50);
}
