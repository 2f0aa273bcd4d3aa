//! Groups of many records of one shard, torn at every sector, over several starts: each start finds
//! the acknowledged data or data requested since, and the next one finds the same.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;

use csd_drive::drive::Core;
use csd_kvlog::media::Losses;

use crate::lives::{Lives, NSID, SMALL, content, find, keys_of, stop, store, together};
use crate::model::Model;
use crate::seeds;

/// Number of starts after the cut.
const STARTS: usize = 3;
const SHARD: usize = 5;

/// Acknowledges a value, then tears a group of two records so that only its first `sectors` land:
/// a short one of another key, and a long one that replaces the value.
fn torn_group(sectors: u64, (short, long): (usize, usize)) -> Result<(), String> {
    let mut lives = Lives::new(7, 1, SMALL);
    let keys: Vec<_> = keys_of(SHARD).take(3).collect();
    let (other, key, first) = (keys[0], keys[1], keys[2]);
    let before = content(1, 500);
    let acknowledged = before.clone();
    lives.live(move |core| async move { store(&core, key, &acknowledged).await })?.unwrap();
    lives.cut(|| 1);

    let is_begun = Rc::new(Cell::new(false));
    let told = Rc::clone(&is_begun);
    let group =
        lives.begin(move |core| async move {
            // The segment's header is durable then: the group is the only write that can tear.
            store(&core, first, &content(3, 100)).await.unwrap();
            told.set(true);
            let stores = [(Rc::clone(&core), other, short), (core, key, long)];
            together(stores.map(|(core, key, bytes)| async move {
                store(&core, key, &content(2, bytes)).await
            }))
            .await
        });
    let written = || is_begun.get() && lives.disk.pending_bytes() >= (short + long) as u64;
    let waited = lives.world.run_until(|_| written() || group.borrow().is_some(), LIMIT);
    waited.map_err(|stuck| stuck.to_string())?;
    assert!(group.borrow().is_none(), "the group is not to be durable yet");
    let (mut asked, mut mode_is_next) = (0, true);
    lives.cut(|| {
        // The first draw is the way that a write lands; the next ones decide for each of its
        // sectors.
        if std::mem::take(&mut mode_is_next) {
            return 2;
        }
        asked += 1;
        u64::from(asked > sectors)
    });
    let losses = lives.disk.losses();
    assert_eq!(losses.torn_writes, u64::from(sectors > 0 && losses.lost_sectors > 0), "{losses:?}");

    let mut found = None;
    for start in 0..STARTS {
        let now = lives.live(move |core| async move {
            let now = (find(&core, key).await, find(&core, other).await);
            stop(&core).await;
            now
        })?;
        let value = now.0.clone().map_err(|status| format!("start {start}: {status}"))?;
        if value.as_ref() != Some(&before) && value != Some(content(2, long)) {
            return Err(format!("start {start}: the acknowledged value is gone"));
        }
        if *found.get_or_insert_with(|| now.clone()) != now {
            return Err(format!("start {start} finds something else than the one before"));
        }
        lives.cut(|| 1);
    }
    Ok(())
}

const LIMIT: Duration = Duration::from_secs(10);

#[test]
fn a_group_torn_at_any_sector_leaves_what_was_acknowledged() {
    for sizes in [(40, 3_000), (40, 30_000), (3_000, 6_000)] {
        for sectors in 0..=(sizes.0 + sizes.1) as u64 / 512 + 2 {
            let result = torn_group(sectors, sizes);
            assert_eq!(result, Ok(()), "a group of {sizes:?} bytes, {sectors} sectors landed");
        }
    }
}

#[test]
fn records_whose_segment_header_was_lost_stay_lost() {
    let mut lives = Lives::new(3, 1, SMALL);
    let lost: Vec<_> = keys_of(SHARD).take(2).collect();
    let (first, second) = (lost[0], lost[1]);
    // The second record of the group begins a page.
    let group = lives.begin(move |core| async move {
        let one = Rc::clone(&core);
        together(
            [(one, first), (core, second)]
                .map(|(core, key)| async move { store(&core, key, &content(1, 4096 - 64)).await }),
        )
        .await
    });
    let written = || lives.disk.pending_bytes() >= 3 * 4096;
    lives.world.run_until(|_| written() || group.borrow().is_some(), LIMIT).unwrap();
    assert!(group.borrow().is_none(), "the group is not to be durable yet");
    // The header's write is the first one: it is lost, and the group lands.
    let mut asked = 0;
    lives.cut(|| {
        asked += 1;
        u64::from(asked == 1)
    });
    // Another shard takes the segment, and fills no more than its first page.
    let other = keys_of(SHARD + 1).next().unwrap();
    lives
        .live(move |core| async move { store(&core, other, &content(2, 100)).await })
        .unwrap()
        .unwrap();
    lives.cut(|| 1);
    let listed = lives.live(move |core| async move { core.kv.list(NSID, None, 4096).await });
    let count = listed.unwrap().unwrap();
    assert_eq!(u32::from_le_bytes(count[..4].try_into().unwrap()), 1, "only the other key exists");
}

/// Bursts of changes of one shard's keys, until the power is cut.
struct Bursts {
    lives: Lives,
    model: Rc<RefCell<Model<u64>>>,
}

async fn burst(core: Rc<Core>, numbers: Vec<u64>, model: Rc<RefCell<Model<u64>>>) {
    together(numbers.into_iter().map(|number| {
        let (core, model) = (Rc::clone(&core), Rc::clone(&model));
        async move {
            let key = keys_of(SHARD).nth(usize::try_from(number).unwrap()).unwrap();
            let draw = csd_reactor::random_u64();
            let bytes = [0, 40, 300, 3_000, 30_000][usize::try_from(draw % 5).unwrap()];
            let state = (!draw.is_multiple_of(7)).then(|| content(draw, bytes));
            model.borrow_mut().asked(number, state.clone());
            match &state {
                Some(value) => store(&core, key, value).await.expect("stored"),
                None => core.kv.delete(NSID, key).await.expect("deleted"),
            }
            model.borrow_mut().acknowledged(number, state.clone());
            model.borrow_mut().durable(number, state);
        }
    }))
    .await;
}

impl Bursts {
    /// Lives once: verifies, works, and ends in a clean stop or a cut at a random moment.
    fn live(&mut self) -> Result<(), String> {
        let model = Rc::clone(&self.model);
        let verified = Rc::new(RefCell::new(None));
        let (slot, is_clean) = (Rc::clone(&verified), self.lives.draw(3) == 0);
        let life = self.lives.begin(move |core| async move {
            let mut result = Ok(());
            let numbers = model.borrow().keys();
            for number in numbers {
                let key = keys_of(SHARD).nth(usize::try_from(number).unwrap()).unwrap();
                let found = find(&core, key).await.map_err(|status| format!("{number}: {status}"));
                result =
                    result.and(found.and_then(|found| model.borrow_mut().recovered(number, found)));
            }
            *slot.borrow_mut() = Some(result);
            for _ in 0..20 {
                let draw = csd_reactor::random_u64();
                let numbers = (0..24).filter(|number| draw >> number & 1 == 1).collect();
                burst(Rc::clone(&core), numbers, Rc::clone(&model)).await;
            }
            if is_clean {
                stop(&core).await;
            }
        });
        let begun = || verified.borrow().is_some() || life.borrow().is_some();
        self.lives.world.run_until(|_| begun(), LIMIT).map_err(|stuck| stuck.to_string())?;
        if let Some(Err(text)) = &*life.borrow() {
            return Err(text.clone());
        }
        verified.borrow_mut().take().expect("just seen")?;
        if is_clean {
            self.lives.end(&life)?;
        } else {
            self.lives.world.run_for(Duration::from_micros(self.lives.draw(40_000)));
        }
        self.lives.cut_at_random();
        Ok(())
    }
}

#[test]
fn bursts_of_one_shard_survive_cuts_and_stops() {
    let mut losses = Losses::default();
    for seed in seeds() {
        let lives = Lives::new(seed, 1 + usize::try_from(seed % 2).unwrap(), SMALL);
        let mut bursts = Bursts { lives, model: Rc::default() };
        for life in 0..5 {
            let (result, again) = (bursts.live(), seed + 1);
            assert_eq!(result, Ok(()), "life {life}: CSD_SIM_SEEDS={seed}..{again} repeats it");
        }
        losses.add(bursts.lives.disk.losses());
    }
    println!("bursts of one shard: {} seeds, {losses:?}", seeds().count());
    assert!(losses.torn_writes > 0 || seeds().count() < 50, "no cut tore a group");
}
