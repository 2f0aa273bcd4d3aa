//! A peer that is connected and falls silent, at any moment of a task: its connection does not end,
//! and nothing comes from it. The drive gives the peer up after its time, as it does one that is
//! lost, and works with it again once it answers.

use csd_nvme::vendor::combine::Stored;

use super::*;

/// Time after which a drive gives up a command to a silent peer.
const COMMAND: Duration = Duration::from_secs(10);
/// Time between two moments at which the peer falls silent.
const STEP: Duration = Duration::from_micros(200);
/// Longer than a connection takes at once.
const SIZE: usize = 200_000;
/// Time in which everything that was held back has arrived.
const LATE: Duration = Duration::from_secs(1);

/// A task of drive 0, which gets its source from drive 1 or sends it there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    From,
    To,
}

impl Way {
    /// Returns a task whose targets have this number.
    fn task(self, number: u32) -> Task {
        let (source, targets): (u8, &[u8]) = match self {
            Self::From => (1, &[0]),
            Self::To => (0, &[1, 2]),
        };
        let copy = |peer: &u8| Target { piece: value(*peer, number, SIZE), factors: vec![1] };
        Task {
            sources: vec![value(source, 1, SIZE)],
            targets: targets.iter().map(copy).collect(),
            guards: Vec::new(),
            peers: vec![nqn(1), nqn(2)],
        }
    }

    /// Checks the answers of a task whose peer has fallen silent.
    fn check_silent(self, told: Result<Answers, Error>) {
        match self {
            Self::From => assert_eq!(status(told), Status::PEER_FAILED),
            Self::To => assert_eq!(outcomes(told), [Stored::Lost, Stored::Yes]),
        }
    }
}

fn outcomes(told: Result<Answers, Error>) -> Vec<Stored> {
    told.expect("executes").targets.iter().map(|(_, stored)| *stored).collect()
}

/// Has drive 0, which is connected to drive 1, execute a task, and parts them after this time until
/// the task ends. Returns its answers, and how long they were parted.
fn parted(fleet: &Fleet, task: &Task, after: Duration) -> (Result<Answers, Error>, Duration) {
    let connecting = Way::From.task(2);
    let (told, is_connected) = (Rc::new(RefCell::new(None)), Rc::new(Cell::new(false)));
    let (slot, connected, task) = (Rc::clone(&told), Rc::clone(&is_connected), task.clone());
    fleet.world.start(fleet.host, move |_| {
        let (slot, task, connecting) = (Rc::clone(&slot), task.clone(), connecting.clone());
        let connected = Rc::clone(&connected);
        async move {
            execute(0, &connecting, Output::Completion).await.expect("executes");
            connected.set(true);
            let done = answers(0, &task).await;
            slot.replace(Some(done));
        }
    });
    fleet.world.run_until(|_| is_connected.get(), LIMIT).expect("the drives connect");
    fleet.world.run_for(after);
    let ends = (fleet.drives[0].machine, fleet.drives[1].machine);
    fleet.world.partition(ends.0, ends.1);
    let begun = fleet.world.now();
    let ended = fleet.world.run_until(|world| !world.is_running(fleet.host), LIMIT);
    ended.expect("the task ends");
    let went_on = fleet.world.now().since(begun);
    fleet.world.heal(ends.0, ends.1);
    (told.take().expect("the host has its answer"), went_on)
}

#[test]
fn a_peer_that_falls_silent_at_any_moment_of_a_task_is_given_up_after_its_time() {
    for way in [Way::From, Way::To] {
        let fleet = Fleet::new(9, |_| list([None; 3]));
        fleet.on_host(|| async {
            store(0, 1, &bytes(1, SIZE)).await;
            store(1, 1, &bytes(1, SIZE)).await;
        });
        let mut silent = 0;
        for number in 10.. {
            let (told, went_on) = parted(&fleet, &way.task(number), STEP * (number - 10));
            if went_on < COMMAND / 2 {
                assert!(outcomes(told).iter().all(|stored| *stored == Stored::Yes));
                break;
            }
            silent += 1;
            assert!(went_on.abs_diff(COMMAND) < COMMAND / 10, "{way:?} {number}: {went_on:?}");
            way.check_silent(told);
            fleet.world.run_for(LATE);
            let found = fleet.on_host(move || retrieve(1, number));
            assert!(found.is_none_or(|found| found == bytes(1, SIZE)), "{way:?} {number}");
        }
        assert!(silent > 10, "{way:?}: hardly any moment of the task was met: {silent}");
    }
}
