//! Commands of a peer are work of an execution: the drive's cores spend no foreground time on them,
//! also where another core has the key, and on the same commands of another host nothing else.

use csd_reactor::{BusyTimes, Class, CoreId, busy, call, core_count, sleep};

use super::*;
use crate::inside::{Doors, memory, outside};
use crate::{DRIVE, HOST};

/// More than there are shards, so that both cores have some of the keys.
const COMMANDS: u32 = 40;

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
    for number in 0..COMMANDS {
        kv.store(&chunk_key(&PREFIX, number), vec![Buffer::from_slice(&[7; 4096])], 0)
            .await
            .unwrap();
    }
    step.set(Step::Connected);
    until(step, Step::Noted).await;
    for number in 0..COMMANDS {
        let data = vec![Buffer::from_slice(&[7; 4096])];
        let at = u64::from(number) * 4096;
        block.write(at, data, true).await.unwrap();
        assert_eq!(block.read(at, 4096).await.unwrap()[..], [7; 4096]);
        assert!(kv.retrieve(&chunk_key(&PREFIX, number), 4096).await.unwrap().is_some());
    }
    step.set(Step::Done);
    std::future::pending::<()>().await;
}

/// Returns the times of the drive's cores.
async fn times() -> Vec<BusyTimes> {
    let mut times = Vec::new();
    for core in 0..core_count() {
        times.push(call(CoreId(core), Class::System, || async { busy() }).await.unwrap());
    }
    times
}

/// Returns the times of both cores of a drive during the commands of a host of this name. The drive
/// has the names of [`list`] as peers.
fn spent_on(host_nqn: &str) -> Vec<BusyTimes> {
    let world = World::new(1, WorldConfig::default());
    let (drive, host) = (world.machine("drive", DRIVE, 2), world.machine("host", HOST, 1));
    let peers = Some(Directory::fixed(list([None; 3])));
    let doors =
        Doors { world, drive, host, resources: Resources { peers, ..Resources::default() } };
    let (step, spent) = (Rc::new(Cell::new(Step::Connecting)), Rc::new(RefCell::new(None)));
    let (seen, slot) = (Rc::clone(&step), Rc::clone(&spent));
    doors.serve((&memory(), true), None, move |_| {
        let (step, slot) = (Rc::clone(&seen), Rc::clone(&slot));
        async move {
            until(&step, Step::Connected).await;
            // The store's own work ends before.
            sleep(Duration::from_secs(1)).await;
            let before = times().await;
            step.set(Step::Noted);
            until(&step, Step::Done).await;
            let now = times().await;
            let spent = now.iter().zip(&before).map(|(now, before)| now.since(before));
            slot.replace(Some(spent.collect()));
        }
    });
    let host_nqn = host_nqn.to_owned();
    doors.world.start(doors.host, move |_| {
        let (step, host_nqn) = (Rc::clone(&step), host_nqn.clone());
        async move { work(host_nqn, &step).await }
    });
    doors.world.run_until(|_| spent.borrow().is_some(), LIMIT).expect("the host is served");
    spent.take().expect("it has been noted")
}

#[test]
fn commands_of_a_peer_take_time_of_executions_and_those_of_a_host_foreground_time() {
    for core in spent_on(&nqn(1)) {
        assert_eq!(core.foreground_ns, 0, "{core:?}");
        assert!(core.execution_ns > 0, "{core:?}");
        assert_eq!(core.service_ns, 0, "{core:?}");
    }
    for core in spent_on("nqn.2026-11.io.csdstore:host") {
        assert_eq!((core.execution_ns, core.service_ns), (0, 0), "{core:?}");
        assert!(core.foreground_ns > 0, "{core:?}");
    }
}
