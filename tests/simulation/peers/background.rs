//! Commands of a peer are background work of the drive: its core spends no foreground time on them,
//! and on the same commands of another host nothing else.

use csd_reactor::{BusyTimes, busy, sleep};

use super::*;
use crate::inside::{Doors, memory, outside};
use crate::{DRIVE, HOST};

const COMMANDS: u64 = 20;

/// Step of a host, which it and the drive wait for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Step {
    Connecting,
    Connected,
    /// The drive has noted its core's times.
    Noted,
    Done,
}

async fn until(step: &Cell<Step>, wanted: Step) {
    while step.get() != wanted {
        sleep(Duration::from_millis(1)).await;
    }
}

/// Reads and writes values and blocks with this name.
async fn work(host_nqn: String, step: &Cell<Step>) {
    let options = Options { host_nqn, ..options() };
    let controller = Controller::connect(&outside(), &options).await.unwrap();
    let kv = Kv::open(&controller, NSID_OBJECTS).unwrap();
    let block = Block::open(&controller, NSID_BLOCK).unwrap();
    kv.store(&chunk_key(&PREFIX, 1), vec![Buffer::from_slice(&[7; 4096])], 0).await.unwrap();
    step.set(Step::Connected);
    until(step, Step::Noted).await;
    for number in 0..COMMANDS {
        let data = vec![Buffer::from_slice(&[7; 4096])];
        block.write(number * 4096, data, true).await.unwrap();
        assert_eq!(block.read(number * 4096, 4096).await.unwrap()[..], [7; 4096]);
        assert!(kv.retrieve(&chunk_key(&PREFIX, 1), 4096).await.unwrap().is_some());
    }
    step.set(Step::Done);
    std::future::pending::<()>().await;
}

/// Returns the times of a drive's only core during the commands of a host of this name. The drive
/// has the names of [`list`] as peers.
fn spent_on(host_nqn: &str) -> BusyTimes {
    let world = World::new(1, WorldConfig::default());
    let (drive, host) = (world.machine("drive", DRIVE, 1), world.machine("host", HOST, 1));
    let peers = Some(Directory::fixed(list([None; 3])));
    let doors =
        Doors { world, drive, host, resources: Resources { peers, ..Resources::default() } };
    let (step, spent) = (Rc::new(Cell::new(Step::Connecting)), Rc::new(Cell::new(None)));
    let (seen, slot) = (Rc::clone(&step), Rc::clone(&spent));
    doors.serve((&memory(), true), None, move |_| {
        let (step, slot) = (Rc::clone(&seen), Rc::clone(&slot));
        async move {
            until(&step, Step::Connected).await;
            // The store's own work ends before.
            sleep(Duration::from_secs(1)).await;
            let before = busy();
            step.set(Step::Noted);
            until(&step, Step::Done).await;
            slot.set(Some(busy().since(&before)));
        }
    });
    let host_nqn = host_nqn.to_owned();
    doors.world.start(doors.host, move |_| {
        let (step, host_nqn) = (Rc::clone(&step), host_nqn.clone());
        async move { work(host_nqn, &step).await }
    });
    doors.world.run_until(|_| spent.get().is_some(), LIMIT).expect("the host is served");
    spent.get().expect("it has been noted")
}

#[test]
fn commands_of_a_peer_take_background_time_and_those_of_a_host_foreground_time() {
    let of_peer = spent_on(&nqn(1));
    assert_eq!(of_peer.foreground_ns, 0, "{of_peer:?}");
    assert!(of_peer.background_ns > 0, "{of_peer:?}");
    let of_host = spent_on("nqn.2026-11.io.csdstore:host");
    assert_eq!(of_host.background_ns, 0, "{of_host:?}");
    assert!(of_host.foreground_ns > 0, "{of_host:?}");
}
