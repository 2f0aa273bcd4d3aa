//! The simulated world: repeatable, and as unkind as asked.

use std::cell::{Cell, RefCell};
use std::io::ErrorKind;
use std::net::{Ipv4Addr, SocketAddr};
use std::rc::Rc;
use std::time::Duration;

use csd_reactor::sim::{MachineId, Stuck, StuckWhy, World, WorldConfig};
use csd_reactor::{
    Class, CoreId, Listener, Stream, call, compute_fn, now, random_u64, sleep, spawn,
    stop_requested,
};

const SERVER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
const CLIENT: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);
const HOUR: Duration = Duration::from_secs(3600);

fn addr() -> SocketAddr {
    SocketAddr::from((SERVER, 4420))
}

/// Two cores that echo: core 0 accepts, core 1 serves.
fn start_server(world: &World, machine: MachineId) {
    world.start(machine, |core| async move {
        if core == CoreId(1) {
            return stop_requested().await;
        }
        let listener = Listener::bind(addr()).expect("a free port");
        loop {
            let (stream, _) = listener.accept().await.expect("a connection");
            let stream = stream.detach();
            let serve = move || async move {
                let stream = stream.attach().expect("a live stream");
                let mut bytes = [0; 4096];
                loop {
                    match stream.try_recv(&mut bytes) {
                        Ok(Some(count)) if count > 0 => {
                            let work = move || bytes[..count].to_vec();
                            let done = compute_fn(Class::Foreground, 2000, work).await;
                            let echo = done.expect("no panic");
                            if stream.send_all(&echo).await.is_err() {
                                return;
                            }
                        }
                        Ok(None) => stream.readable().await.expect("a live stream"),
                        _ => return,
                    }
                }
            };
            drop(spawn(Class::System, call(CoreId(1), Class::Foreground, serve)));
        }
    });
}

struct Outcome {
    hash: u64,
    us: u64,
    lengths: Vec<usize>,
}

/// Three clients echo blocks of random size.
fn play(seed: u64) -> Outcome {
    let world = World::new(seed, WorldConfig::default());
    let server = world.machine("server", SERVER, 2);
    let client = world.machine("client", CLIENT, 1);
    start_server(&world, server);
    let lengths = Rc::new(RefCell::new(Vec::new()));
    let log = Rc::clone(&lengths);
    world.start(client, move |_| {
        let log = Rc::clone(&log);
        async move {
            let tasks: Vec<_> = (0..3).map(|_| spawn(Class::Foreground, echoes())).collect();
            for task in tasks {
                let lengths = task.await;
                log.borrow_mut().extend(lengths);
            }
        }
    });
    let ended = world.run_until(|world| !world.is_running(client), HOUR);
    assert_eq!(ended, Ok(()), "seed {seed}");
    let lengths = lengths.take();
    assert!(world.sends(client) >= lengths.len() as u64, "a send for each block");
    Outcome { hash: world.trace_hash(), us: world.now().us(), lengths }
}

async fn echoes() -> Vec<usize> {
    sleep(Duration::from_millis(1)).await;
    let stream = Rc::new(Stream::connect(addr()).await.expect("a listening server"));
    let mut lengths = Vec::new();
    for _ in 0..5 {
        let length = 1 + (random_u64() % 200_000) as usize;
        let byte = random_u64().to_le_bytes()[0];
        let sender = Rc::clone(&stream);
        let sending = spawn(Class::Foreground, async move {
            sender.send_all(&vec![byte; length]).await.expect("a live server");
        });
        let mut echo = vec![0; length];
        stream.recv_exact(&mut echo).await.expect("an echo");
        assert!(echo.iter().all(|other| *other == byte));
        sending.await;
        lengths.push(length);
    }
    lengths
}

#[test]
fn equal_seeds_give_equal_worlds() {
    for seed in 0..4 {
        let (one, two) = (play(seed), play(seed));
        assert_eq!((one.hash, one.us, &one.lengths), (two.hash, two.us, &two.lengths));
        let other = play(seed + 100);
        assert_ne!(one.hash, other.hash);
        assert_ne!(one.lengths, other.lengths);
    }
}

#[test]
fn a_crash_resets_peers_and_the_machine_comes_back() {
    let world = World::new(3, WorldConfig::default());
    let server = world.machine("server", SERVER, 2);
    let client = world.machine("client", CLIENT, 1);
    start_server(&world, server);
    let seen = Rc::new(RefCell::new(Vec::new()));
    let log = Rc::clone(&seen);
    world.start(client, move |_| {
        let log = Rc::clone(&log);
        async move {
            sleep(Duration::from_millis(1)).await;
            for _ in 0..2 {
                let stream = Stream::connect(addr()).await.expect("a listening server");
                stream.send_all(b"x").await.expect("a live server");
                let mut byte = [0];
                stream.recv_exact(&mut byte).await.expect("an echo");
                let end = stream.recv_exact(&mut byte).await.err().map(|error| error.kind());
                log.borrow_mut().push(end);
                let refused = Stream::connect(addr()).await.err().map(|error| error.kind());
                log.borrow_mut().push(refused);
                sleep(Duration::from_secs(1)).await;
            }
        }
    });
    world.run_for(Duration::from_millis(100));
    world.crash(server);
    assert!(!world.is_running(server));
    world.run_for(Duration::from_millis(100));
    start_server(&world, server);
    world.run_for(Duration::from_secs(2));
    world.crash(server);
    assert_eq!(world.run_until(|world| !world.is_running(client), HOUR), Ok(()));
    let (reset, refused) = (Some(ErrorKind::ConnectionReset), Some(ErrorKind::ConnectionRefused));
    assert_eq!(*seen.borrow(), [reset, refused, reset, refused]);
}

#[test]
fn disconnecting_resets_both_ends_and_nothing_else() {
    let world = World::new(4, WorldConfig::default());
    let server = world.machine("server", SERVER, 2);
    let client = world.machine("client", CLIENT, 1);
    start_server(&world, server);
    let resets = Rc::new(Cell::new(0));
    let count = Rc::clone(&resets);
    world.start(client, move |_| {
        let count = Rc::clone(&count);
        async move {
            loop {
                sleep(Duration::from_millis(1)).await;
                let stream = Stream::connect(addr()).await.expect("a server that still listens");
                let end = stream.recv_exact(&mut [0]).await.err().map(|error| error.kind());
                assert_eq!(end, Some(ErrorKind::ConnectionReset));
                count.set(count.get() + 1);
            }
        }
    });
    for round in 1..=3 {
        world.run_for(Duration::from_millis(50));
        world.disconnect(client, server);
        world.run_for(Duration::from_millis(50));
        assert_eq!(resets.get(), round);
    }
}

#[test]
fn a_partition_holds_everything_between_two_machines_and_then_delivers_it_in_order() {
    let world = World::new(6, WorldConfig::default());
    let server = world.machine("server", SERVER, 2);
    let client = world.machine("client", CLIENT, 1);
    start_server(&world, server);
    let connected = Rc::new(Cell::new(0));
    let count = Rc::clone(&connected);
    world.start(client, move |_| {
        let count = Rc::clone(&count);
        async move {
            loop {
                sleep(Duration::from_millis(1)).await;
                drop(Stream::connect(addr()).await.expect("silence, and no reset"));
                count.set(count.get() + 1);
            }
        }
    });
    world.run_for(Duration::from_millis(50));
    world.partition(client, server);
    world.run_for(Duration::from_millis(1));
    let before = connected.get();
    world.run_for(Duration::from_secs(5));
    assert_eq!(connected.get(), before, "nothing crosses");
    world.heal(server, client);
    world.run_for(Duration::from_millis(50));
    assert!(before > 0 && connected.get() > before, "{before} to {}", connected.get());
}

#[test]
fn deadlocks_and_limits_are_told() {
    let world = World::new(5, WorldConfig::default());
    let machine = world.machine("one", SERVER, 1);
    world.start(machine, |_| std::future::pending());
    let stuck = world.run_until(|_| false, HOUR);
    assert!(matches!(stuck, Err(Stuck { why: StuckWhy::Deadlock, .. })));
    world.crash(machine);
    world.start(machine, |_| async {
        loop {
            sleep(Duration::from_secs(1)).await;
        }
    });
    let before = world.now();
    let stuck = world.run_until(|_| false, HOUR).expect_err("it never ends");
    assert_eq!((stuck.why, stuck.at), (StuckWhy::TimeLimit, before + HOUR));
}

#[test]
fn computing_takes_its_cost_and_stops_are_requested() {
    let world = World::new(6, WorldConfig::default());
    let machine = world.machine("one", SERVER, 1);
    let took = Rc::new(Cell::new(Duration::ZERO));
    let log = Rc::clone(&took);
    world.start(machine, move |_| {
        let log = Rc::clone(&log);
        async move {
            let began = now();
            let job = |cost_ns| compute_fn(Class::Execution, cost_ns, || ());
            let (one, two) = (job(3_000_000), job(4_000_000));
            two.await.expect("no panic");
            one.await.expect("no panic");
            log.set(began.elapsed());
            stop_requested().await;
        }
    });
    world.run_for(Duration::from_secs(1));
    assert!(world.is_running(machine));
    assert!(took.get() >= Duration::from_millis(7), "a compute thread runs one job at a time");
    assert!(took.get() < Duration::from_millis(8));
    world.request_stop(machine);
    assert_eq!(world.run_until(|world| !world.is_running(machine), HOUR), Ok(()));
}
