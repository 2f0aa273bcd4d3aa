//! Targets with guards: they are stored only while certain values are on their drive, also if these
//! change while the task is under way.

use csd_nvme::kv::Key;
use csd_nvme::vendor::combine::{Guard, Stored};

use super::*;

const SIZE: usize = 9_999;
/// First block of the target, and its length in bytes.
const SLBA: u64 = 100;
const WHOLE: usize = 3 * 4096;

/// Key of a unit's claim.
fn unit() -> Key {
    Key::new(&[2, 0, 0, 0, 0, 0, 0, 0, 7]).unwrap()
}

/// The claim of object `object`.
fn claim(object: u8) -> Vec<u8> {
    vec![object; 28]
}

/// A task of drive 0 that copies value 1 of drive 1 to its own blocks while object 1 has them, and
/// to value 9 of drive 1.
fn task() -> Task {
    let guard = Guard { target: 0, nsid: NSID_OBJECTS, key: unit(), value: claim(1) };
    let copy = |piece| Target { piece, factors: vec![1] };
    Task {
        sources: vec![value(1, 1, SIZE)],
        targets: vec![copy(blocks(0, SLBA, SIZE)), copy(value(1, 9, SIZE))],
        guards: vec![guard],
        peers: vec![nqn(1)],
    }
}

/// Gives the unit on drive 0 to an object, or to none.
async fn give(object: Option<u8>) {
    let kv = Kv::open(&connect(0).await, NSID_OBJECTS).unwrap();
    match object {
        Some(object) => {
            kv.store(&unit(), vec![Buffer::from_slice(&claim(object))], 0).await.unwrap();
        }
        None => drop(kv.delete(&unit()).await.unwrap()),
    }
}

async fn target() -> Vec<u8> {
    let block = Block::open(&connect(0).await, NSID_BLOCK).unwrap();
    block.read(SLBA * 4096, WHOLE).await.unwrap().to_vec()
}

#[test]
fn a_guarded_target_is_stored_only_with_the_values_that_it_names() {
    let fleet = Fleet::new(7, |_| list([None; 3]));
    fleet.on_host(|| async {
        let data = bytes(1, SIZE);
        store(1, 1, &data).await;
        let before = bytes(2, WHOLE);
        write(0, SLBA, &before).await;
        let outcomes = async || {
            let found = answers(0, &task()).await.unwrap();
            found.targets.iter().map(|(_, stored)| *stored).collect::<Vec<_>>()
        };
        let refused = Stored::Refused(Status::COMPARE_FAILURE);
        // No claim, that of another object, and a longer one. The other target has no guard.
        for object in [None, Some(2)] {
            give(object).await;
            assert_eq!(outcomes().await, [refused, Stored::Yes], "{object:?}");
        }
        let kv = Kv::open(&connect(0).await, NSID_OBJECTS).unwrap();
        let long = [claim(1), vec![0]].concat();
        kv.store(&unit(), vec![Buffer::from_slice(&long)], 0).await.unwrap();
        assert_eq!(outcomes().await, [refused, Stored::Yes]);
        assert_eq!(target().await, before, "nothing was written");
        // Without answers the status says so.
        let untold = execute(0, &task(), Output::Completion).await;
        assert_eq!(status(untold), Status::COMPARE_FAILURE);
        give(Some(1)).await;
        assert_eq!(outcomes().await, [Stored::Yes; 2]);
        assert_eq!(target().await[..SIZE], data);
        // A value can have guards, too.
        let mut of_value = task();
        of_value.targets[0].piece = value(0, 20, SIZE);
        execute(0, &of_value, Output::Completion).await.unwrap();
        assert_eq!(retrieve(0, 20).await, Some(data));
        give(Some(2)).await;
        of_value.targets[0].piece = value(0, 21, SIZE);
        let refused = execute(0, &of_value, Output::Completion).await;
        assert_eq!(status(refused), Status::COMPARE_FAILURE);
        assert_eq!(retrieve(0, 21).await, None);
    });
}

#[test]
fn blocks_that_go_to_another_object_while_a_task_is_under_way_are_its_own() {
    let fleet = Fleet::new(8, |_| list([None; 3]));
    fleet.on_host(|| async {
        store(1, 1, &bytes(1, SIZE)).await;
        give(Some(1)).await;
    });
    // The drive waits for its source.
    let ends = (fleet.drives[0].machine, fleet.drives[1].machine);
    fleet.world.partition(ends.0, ends.1);
    let told: Rc<RefCell<Option<Status>>> = Rc::default();
    let tell = Rc::clone(&told);
    fleet.world.start(fleet.host, move |_| {
        let tell = Rc::clone(&tell);
        async move {
            let running = spawn(Class::Foreground, async {
                status(execute(0, &task(), Output::Completion).await)
            });
            csd_reactor::sleep(Duration::from_secs(1)).await;
            give(None).await;
            give(Some(2)).await;
            write(0, SLBA, &bytes(2, WHOLE)).await;
            tell.replace(Some(running.await));
        }
    });
    fleet.world.run_for(Duration::from_secs(3));
    assert_eq!(*told.borrow(), None, "the task has waited");
    fleet.world.heal(ends.0, ends.1);
    let ended = fleet.world.run_until(|world| !world.is_running(fleet.host), LIMIT);
    ended.expect("the task ends");
    assert_eq!(*told.borrow(), Some(Status::COMPARE_FAILURE));
    fleet.on_host(|| async {
        assert_eq!(target().await, bytes(2, WHOLE), "they hold the other object's bytes");
        assert_eq!(retrieve(1, 9).await, Some(bytes(1, SIZE)), "the source has arrived");
    });
}
