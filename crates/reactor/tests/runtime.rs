//! Starting, failing and stopping of real runtimes, and what an idle one costs.

use std::net::{Ipv4Addr, SocketAddr};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

use csd_reactor::{
    BackendKind, Class, Config, CoreId, Error, Listener, Stream, block_on, busy, core_count, run,
    sleep, spawn, stop_requested,
};

#[test]
fn results_come_in_core_order() {
    let config = Config { cores: 4, pin: true, ..Config::default() };
    let results = run(&config, |core| async move {
        sleep(Duration::from_millis(4 - core.0 as u64)).await;
        (core, core_count())
    });
    let expected: Vec<_> = (0..4).map(|core| (CoreId(core), 4)).collect();
    assert_eq!(results.expect("a runtime"), expected);
}

#[test]
fn a_panic_takes_the_runtime_down_and_is_told() {
    for backend in [BackendKind::Auto, BackendKind::Epoll] {
        let config = Config { backend, cores: 3, ..Config::default() };
        let error = run(&config, |core| async move {
            if core == CoreId(1) {
                drop(spawn(Class::Foreground, async { panic!("number {}", 7) }));
            }
            std::future::pending::<()>().await;
        });
        match error {
            Err(Error::Panicked { core: CoreId(1), message }) => assert_eq!(message, "number 7"),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn no_core_is_no_runtime() {
    let config = Config { cores: 0, ..Config::default() };
    assert!(matches!(run(&config, |_| async {}), Err(Error::Start { .. })));
}

#[test]
fn back_ends_have_names() {
    for kind in [BackendKind::Auto, BackendKind::Uring, BackendKind::Epoll] {
        assert_eq!(kind.to_string().parse(), Ok(kind));
    }
    assert!("kqueue".parse::<BackendKind>().is_err());
    let config = Config { backend: BackendKind::Epoll, ..Config::default() };
    let name = block_on(&config, || async { csd_reactor::backend_name() });
    assert_eq!(name.expect("a runtime"), "epoll");
}

#[test]
fn a_signal_reaches_every_core() {
    // Cores that have seen that nobody asks them to stop before the signal.
    static LOOKED: AtomicUsize = AtomicUsize::new(0);
    let config = Config { cores: 2, ..Config::default() };
    let results = run(&config, |core| async move {
        let waiting = spawn(Class::System, stop_requested());
        sleep(Duration::from_millis(20)).await;
        assert!(!waiting.is_finished());
        LOOKED.fetch_add(1, SeqCst);
        if core == CoreId(1) {
            while LOOKED.load(SeqCst) < 2 {
                sleep(Duration::from_millis(1)).await;
            }
            let own = std::process::id().to_string();
            let sent = Command::new("kill").args(["-TERM", &own]).status().expect("kill runs");
            assert!(sent.success());
        }
        waiting.await;
        stop_requested().await;
    });
    assert!(results.is_ok());
}

#[test]
fn sixty_four_idle_connections_cost_nothing() {
    for backend in [BackendKind::Auto, BackendKind::Epoll] {
        let config = Config { backend, ..Config::default() };
        let spent = block_on(&config, || async {
            let local = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
            let listener = Listener::bind(local).expect("a free port");
            let addr = listener.local_addr().expect("a bound socket");
            for _ in 0..64 {
                let client = Stream::connect(addr).await.expect("a listening server");
                let (server, _) = listener.accept().await.expect("a connection");
                for stream in [client, server] {
                    drop(spawn(Class::Foreground, async move {
                        let _never = stream.readable().await;
                    }));
                }
            }
            sleep(Duration::from_millis(50)).await;
            let before = busy();
            sleep(Duration::from_secs(2)).await;
            busy().since(&before)
        });
        let spent = spent.expect("a runtime");
        // The timer polls this task. A core that never slept would have spun all the time.
        assert!(spent.sleeps > 0 && spent.polls == 1, "{spent:?}");
        // Each time that something wakes the core, the loop turns.
        assert!(spent.turns <= 3 && spent.sleeps <= 3, "{spent:?}");
    }
}
