//! Requests to cores from other threads: every one is answered exactly once, whatever ends first.

use std::fs::File;
use std::io::Read;
use std::net::Ipv4Addr;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Barrier, Mutex, mpsc};
use std::time::Duration;

use csd_reactor::sim::{World, WorldConfig};
use csd_reactor::{
    Completions, Config, CoreId, Door, Hosted, Unanswered, core_id, interruptible, sleep, yield_now,
};

const CORE: CoreId = CoreId(0);
/// Limit of waits that only end tests that hang.
const LIMIT: Duration = Duration::from_secs(600);

fn hosted(cores: usize, capacity: usize) -> Hosted {
    let config = Config { cores, spin_us: 0, ..Config::default() };
    Hosted::start(&config, capacity).expect("a runtime")
}

#[test]
fn many_threads_get_their_own_answers_and_the_queue_is_bounded() {
    const CAPACITY: usize = 16;
    let hosted = hosted(2, CAPACITY);
    let (now, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    std::thread::scope(|scope| {
        for thread in 0..8_usize {
            let (door, now, most) = (hosted.door().clone(), Arc::clone(&now), Arc::clone(&most));
            scope.spawn(move || {
                let mut pending = Vec::new();
                for number in 0..500_usize {
                    let (now, most) = (Arc::clone(&now), Arc::clone(&most));
                    let core = CoreId(number % 2);
                    let request = move || async move {
                        most.fetch_max(now.fetch_add(1, SeqCst) + 1, SeqCst);
                        yield_now().await;
                        now.fetch_sub(1, SeqCst);
                        (thread, number, core_id())
                    };
                    pending.push((number, core, door.submit(core, request).expect("room")));
                }
                for (number, core, answer) in pending {
                    assert_eq!(answer.wait(), Ok((thread, number, core)));
                }
            });
        }
    });
    let most = most.load(SeqCst);
    assert!((1..=CAPACITY).contains(&most), "{most} at a time");
    hosted.close().expect("an orderly end");
}

#[test]
fn closing_answers_what_is_under_way_and_what_waits_for_room() {
    let hosted = Arc::new(hosted(1, 8));
    let (answers, answered) = mpsc::channel();
    for number in 0..8 {
        let answers = answers.clone();
        let deliver = move |answer: Result<(), Unanswered>| answers.send((number, answer)).unwrap();
        hosted.door().try_submit(CORE, std::future::pending::<()>, deliver).expect("room");
    }
    let refused = hosted.door().try_submit(CORE, || async {}, |_| panic!("it was refused"));
    assert_eq!(refused, Err(Unanswered::Full));
    let waiting = std::thread::spawn({
        let hosted = Arc::clone(&hosted);
        move || hosted.door().call(CORE, || async { 1 })
    });
    hosted.close().expect("an orderly end");
    assert_eq!(waiting.join().unwrap(), Err(Unanswered::Closed));
    drop(answers);
    let mut all: Vec<_> = answered.into_iter().collect();
    all.sort_by_key(|(number, _)| *number);
    let expected: Vec<_> = (0..8).map(|number| (number, Err(Unanswered::Closed))).collect();
    assert_eq!(all, expected, "each once");
    assert_eq!(hosted.door().call(CORE, || async { 2 }), Err(Unanswered::Closed));
    hosted.close().expect("closing twice has no effect");
}

#[test]
fn closing_while_threads_submit_loses_and_repeats_no_answer() {
    for round in 0..20 {
        let hosted = Arc::new(hosted(2, 4));
        let (submitted, answered) = (AtomicUsize::new(0), Arc::new(AtomicUsize::new(0)));
        let start = Barrier::new(4);
        std::thread::scope(|scope| {
            for thread in 0..3_usize {
                let (hosted, submitted, start) = (&hosted, &submitted, &start);
                let answered = &answered;
                scope.spawn(move || {
                    start.wait();
                    loop {
                        let count = Arc::clone(answered);
                        let ended = hosted.door().submit_with(
                            CoreId((thread + submitted.load(SeqCst)) % 2),
                            yield_now,
                            move |_| {
                                count.fetch_add(1, SeqCst);
                            },
                        );
                        assert_eq!(ended, Ok(()));
                        submitted.fetch_add(1, SeqCst);
                        if hosted.door().call(CORE, || async {}).is_err() {
                            return;
                        }
                    }
                });
            }
            start.wait();
            for _ in 0..round {
                std::thread::yield_now();
            }
            hosted.close().expect("an orderly end");
        });
        assert_eq!(answered.load(SeqCst), submitted.load(SeqCst));
    }
}

#[test]
fn a_panic_on_a_core_answers_everyone() {
    let hosted = hosted(2, 64);
    let stuck: Vec<_> = (0..2)
        .map(|core| hosted.door().submit(CoreId(core), std::future::pending::<()>).unwrap())
        .collect();
    let panicking = hosted.door().call(CORE, || async { panic!("on purpose") });
    assert_eq!(panicking, Err::<(), _>(Unanswered::Closed));
    for answer in stuck {
        assert_eq!(answer.wait(), Err(Unanswered::Closed));
    }
    assert!(hosted.close().unwrap_err().to_string().contains("on purpose"));
}

#[test]
fn a_callback_may_submit_and_panic_but_not_wait() {
    let hosted = hosted(1, 1);
    let (door, (send, receive)) = (hosted.door().clone(), mpsc::channel());
    let deliver = move |_| {
        // Its own permit is free again.
        let sent = send.clone();
        door.try_submit(CORE, || async { 7 }, move |answer| sent.send(answer).unwrap()).unwrap();
        send.send(door.call(CORE, || async { 8 })).unwrap();
        panic!("caught");
    };
    hosted.door().submit_with(CORE, || async {}, deliver).expect("room");
    let mut answers =
        [receive.recv_timeout(LIMIT), receive.recv_timeout(LIMIT)].map(Result::unwrap);
    answers.sort_by_key(Result::is_err);
    assert_eq!(answers, [Ok(7), Err(Unanswered::OnCore)]);
    assert_eq!(hosted.door().call(CORE, || async { 9 }), Ok(9), "the core lives");
}

#[test]
fn handles_may_be_dropped_while_requests_are_under_way() {
    let (ran, runs) = mpsc::channel();
    let hosted = hosted(1, 8);
    drop(hosted.door().submit(CORE, move || async move {
        sleep(Duration::from_millis(1)).await;
        ran.send(()).unwrap();
    }));
    runs.recv_timeout(LIMIT).expect("it ran on");
    let completions = Completions::new().unwrap();
    let into = completions.clone();
    let request = || async { sleep(Duration::from_millis(1)).await };
    hosted.door().submit_with(CORE, request, move |answer| into.push(answer)).unwrap();
    drop(completions);
    let door = hosted.door().clone();
    let late = door.submit(CORE, std::future::pending::<()>).unwrap();
    drop(hosted);
    assert_eq!(late.wait(), Err(Unanswered::Closed));
    assert_eq!(door.call(CoreId(5), || async {}), Err(Unanswered::Closed));
}

#[test]
fn a_queue_is_readable_while_it_holds_answers() {
    let hosted = hosted(1, 64);
    let done = Completions::new().unwrap();
    let event = done.as_fd().try_clone_to_owned().unwrap();
    let mut event = File::from(event);
    let mut readable = move || event.read(&mut [0; 8]).is_ok();
    assert!(!readable());
    for tag in 0..50_usize {
        let into = done.clone();
        let deliver = move |answer: Result<usize, _>| into.push((tag, answer));
        hosted.door().submit_with(CORE, move || async move { tag * 2 }, deliver).unwrap();
    }
    hosted.close().expect("an orderly end");
    assert!(readable());
    let first = done.drain(20).unwrap();
    assert_eq!(first.len(), 20);
    let all: Vec<_> = first.into_iter().chain(done.drain(usize::MAX).unwrap()).collect();
    let tags: Vec<usize> = all.iter().map(|(tag, _)| *tag).collect();
    assert_eq!(tags, (0..50).collect::<Vec<_>>(), "each once, in order");
    done.push((50, Ok(0)));
    assert_eq!(done.drain(1).unwrap(), [(50, Ok(0))]);
    assert!(!readable(), "it is clear once drained");
}

/// The simulation's twin of other threads is its own thread, between two steps of the world.
#[test]
fn a_world_answers_between_its_steps_and_after_a_crash() {
    let hash = |seed| {
        let world = World::new(seed, WorldConfig::default());
        let machine = world.machine("m", Ipv4Addr::new(10, 0, 0, 1), 2);
        let door = Arc::new(Mutex::new(None));
        let slot = Arc::clone(&door);
        world.start(machine, move |_| {
            slot.lock().unwrap().get_or_insert_with(|| Door::new(4));
            std::future::pending()
        });
        let door = door.lock().unwrap().take().expect("made on a core");
        let log = Arc::new(Mutex::new(Vec::new()));
        let submit = |number: u64, core| {
            let into = Arc::clone(&log);
            let request = move || async move {
                sleep(Duration::from_millis(number)).await;
                number
            };
            let deliver = move |answer| into.lock().unwrap().push((number, answer));
            door.try_submit(CoreId(core), request, deliver)
        };
        for number in 0..4 {
            submit(number, usize::try_from(number % 2).unwrap()).expect("room");
        }
        assert_eq!(submit(4, 0), Err(Unanswered::Full));
        world.run_until(|_| log.lock().unwrap().len() == 4, LIMIT).expect("answers");
        let later = door.submit(CoreId(1), std::future::pending::<()>).expect("room");
        let later = later.try_take().expect_err("no answer yet");
        submit(1, 0).expect("room");
        world.crash(machine);
        assert_eq!(later.try_take().ok(), Some(Err(Unanswered::Closed)));
        submit(2, 0).expect("it is answered, not refused");
        let log = log.lock().unwrap();
        let closed = Err(Unanswered::Closed);
        let answers = [(0, Ok(0)), (1, Ok(1)), (2, Ok(2)), (3, Ok(3)), (1, closed), (2, closed)];
        assert_eq!(log[..], answers);
        world.trace_hash()
    };
    assert_eq!(hash(7), hash(7));
}

/// Waits for an answer, and for room, end when the thread is interrupted; the request goes on.
#[test]
fn an_interrupted_wait_ends_and_its_request_does_not() {
    thread_local! {
        static ASKED: std::cell::Cell<u32> = const { std::cell::Cell::new(0) };
    }
    fn third_time() -> bool {
        ASKED.set(ASKED.get() + 1);
        ASKED.get().is_multiple_of(3)
    }
    let hosted = hosted(1, 1);
    let (go, gone) = (Arc::new(Mutex::new(false)), Arc::new(AtomicUsize::new(0)));
    let waits = {
        let (go, gone) = (Arc::clone(&go), Arc::clone(&gone));
        move || async move {
            while !*go.lock().unwrap() {
                sleep(Duration::from_millis(1)).await;
            }
            gone.fetch_add(1, SeqCst)
        }
    };
    let door = hosted.door();
    for request in 1..=2 {
        // The second one waits for room.
        let answer = interruptible(third_time, || door.call(CORE, waits.clone()));
        assert_eq!(answer, Err(Unanswered::Interrupted));
        assert_eq!(ASKED.get(), 3 * request);
    }
    *go.lock().unwrap() = true;
    assert_eq!(door.call(CORE, waits), Ok(1), "the first one went on, the second never began");
    assert_eq!(ASKED.get(), 6, "nothing is asked outside");
    hosted.close().expect("an orderly end");
}
