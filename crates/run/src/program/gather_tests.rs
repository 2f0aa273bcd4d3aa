//! Tests with answers in any order, of a program whose fold shows the order.

use std::cell::Cell;
use std::net::Ipv4Addr;
use std::ops::ControlFlow;
use std::pin::pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use csd_reactor::sim::{World, WorldConfig};
use csd_reactor::{now, spawn};
use csd_store::catalogue::{Entry, ObjectId, State as EntryState};

use super::*;
use crate::program::{Records, Running, Sandbox};

/// Program whose fold writes `(BEFORE AFTER)`.
struct Brackets {
    folds: bool,
}

impl Sandbox for Brackets {
    fn type_name(&self) -> &'static str {
        "brackets"
    }

    fn module(&self) -> &[u8] {
        &[]
    }

    fn records(&self) -> Records {
        Records::Elements
    }

    fn folds(&self) -> bool {
        self.folds
    }

    fn emits(&self) -> bool {
        true
    }

    fn run(
        &self,
        function: Function,
        streams: Vec<Vec<Buffer>>,
        parameters: &[u8],
        _: Limits,
    ) -> Running<'_> {
        assert_eq!((function, parameters), (Function::Fold, &b"p"[..]));
        let streams: Vec<Vec<u8>> = streams.iter().map(|all| all.concat_bytes()).collect();
        let result = |stream: &[u8]| u64::from_le_bytes(*stream.first_chunk().unwrap());
        let (before, after) = (&streams[0], &streams[1]);
        let output = [b"(", &before[8..], b" ", &after[8..], b")"].concat();
        let result = 10 * result(before) + result(after);
        Box::pin(std::future::ready(Ok(Answer { result, output })))
    }
}

trait Concat {
    fn concat_bytes(&self) -> Vec<u8>;
}

impl Concat for Vec<Buffer> {
    fn concat_bytes(&self) -> Vec<u8> {
        self.iter().flat_map(|chunk| chunk.to_vec()).collect()
    }
}

fn gather(folds: bool) -> Gather {
    Gather::new(&Arc::new(task(folds)))
}

fn task(folds: bool) -> Task {
    let entry = Entry {
        epoch: 1,
        shape: vec![5 * 4096],
        bytes: 5 * 4096,
        ..Entry::empty("x", ObjectId([0x81; 12]), EntryState::Sealed)
    };
    let sandbox = Arc::new(Brackets { folds });
    Task::new(vec![entry], sandbox, b"p".to_vec(), (1, 1), None).unwrap()
}

/// Returns the output of a future that does not wait.
fn at_once<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => output,
        Poll::Pending => panic!("it waits"),
    }
}

/// Returns the answer after adding five chunks in this order; chunk 2 has none.
fn in_order(gather: &Gather, order: [u32; 5]) -> Answer {
    for chunk in order {
        let output = format!("{chunk}").into_bytes();
        let answer = Answer { result: chunk.into(), output };
        at_once(gather.add(chunk, (chunk != 2).then_some(answer))).unwrap();
    }
    gather.take().unwrap()
}

#[test]
fn the_order_of_folding_is_that_of_the_chunks() {
    let orders = [[0, 1, 2, 3, 4], [4, 3, 2, 1, 0], [2, 0, 4, 1, 3], [3, 4, 1, 0, 2]];
    for order in orders {
        let folded = in_order(&gather(true), order);
        assert_eq!((folded.result, &folded.output[..]), (134, &b"(((0 1) 3) 4)"[..]));
        let joined = in_order(&gather(false), order);
        assert_eq!((joined.result, &joined.output[..]), (8, &b"0134"[..]));
    }
}

/// Consumer that keeps results, and has enough after some.
struct Kept {
    results: Mutex<Vec<u64>>,
    most: usize,
}

impl Consumer for Kept {
    fn take(&self, answer: Answer) -> ControlFlow<()> {
        let mut results = self.results.lock().unwrap();
        results.push(answer.result);
        if results.len() == self.most { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

/// Returns the results that a consumer was given which wants this many, and whether it has enough.
fn consumed(order: [u32; 5], most: usize) -> (Vec<u64>, bool) {
    let kept = Arc::new(Kept { results: Mutex::default(), most });
    let (consumer, world) = (Arc::<Kept>::clone(&kept), World::new(1, WorldConfig::default()));
    let machine = world.machine("host", Ipv4Addr::LOCALHOST, 1);
    let ended = Rc::new(Cell::new(None));
    let enough = Rc::clone(&ended);
    world.start(machine, move |_| {
        let task = task(false).with_consumer(Arc::<Kept>::clone(&consumer));
        let (gather, enough) = (Gather::new(&Arc::new(task)), Rc::clone(&enough));
        async move {
            for chunk in order {
                let answer = Answer { result: chunk.into(), output: vec![0; 9] };
                gather.add(chunk, (chunk != 2).then_some(answer)).await.unwrap();
            }
            assert_eq!(gather.take(), None);
            enough.set(Some(gather.is_enough()));
        }
    });
    world.run_until(|_| ended.get().is_some(), Duration::from_secs(1)).unwrap();
    let results = kept.results.lock().unwrap().clone();
    (results, ended.get().unwrap())
}

#[test]
fn a_consumer_takes_answers_in_order_until_it_has_enough() {
    for order in [[0, 1, 2, 3, 4], [4, 3, 2, 1, 0], [2, 0, 4, 1, 3]] {
        assert_eq!(consumed(order, 9), (vec![0, 1, 3, 4], false));
        assert_eq!(consumed(order, 2), (vec![0, 1], true));
    }
}

/// Returns the time, ms, at which answers of chunks 1 and 2 were taken, which are more bytes than
/// may wait. That of chunk 0 is computed for 10 ms meanwhile, or not at all.
fn taken_ms(first_is_under_way: bool) -> u128 {
    let kept = Arc::new(Kept { results: Mutex::default(), most: 9 });
    let world = World::new(1, WorldConfig::default());
    let machine = world.machine("host", Ipv4Addr::LOCALHOST, 1);
    let taken = Rc::new(Cell::new(None));
    let then = Rc::clone(&taken);
    world.start(machine, move |_| {
        let task = Arc::new(task(false).with_consumer(Arc::<Kept>::clone(&kept)));
        let (gather, then) = (Rc::new(Gather::new(&task)), Rc::clone(&then));
        let answer = |bytes| Some(Answer { result: 7, output: vec![0; bytes] });
        async move {
            let begin = now();
            if first_is_under_way {
                let gather = Rc::clone(&gather);
                drop(spawn(Class::Foreground, async move {
                    let _under_way = gather.begin(0);
                    sleep(Duration::from_millis(10)).await;
                    gather.add(0, answer(1)).await.unwrap();
                }));
                sleep(LOOK).await;
            }
            for chunk in [1, 2] {
                let _under_way = gather.begin(chunk);
                gather.add(chunk, answer(AHEAD_BYTES_MAX + 1)).await.unwrap();
            }
            then.set(Some(now().since(begin).as_millis()));
        }
    });
    world.run_until(|_| taken.get().is_some(), Duration::from_secs(1)).unwrap();
    taken.get().unwrap()
}

#[test]
fn answers_that_are_far_ahead_wait_for_an_earlier_one_that_is_under_way() {
    assert!(taken_ms(true) >= 10);
    assert!(taken_ms(false) < 10);
}

#[test]
fn answers_that_come_to_too_much_are_refused() {
    let small = Gather { held_bytes_max: 1 << 20, ..gather(false) };
    let answer = |bytes: usize| Some(Answer { result: 0, output: vec![0; bytes] });
    at_once(small.add(3, answer(1 << 19))).unwrap();
    at_once(small.add(0, answer(1 << 19))).unwrap();
    let error = at_once(small.add(1, answer(1))).unwrap_err();
    assert!(error.to_string().contains("more than 1 MiB"), "{error}");
}

#[test]
fn a_program_of_no_chunk_has_no_answer() {
    assert_eq!(gather(true).take(), None);
}
