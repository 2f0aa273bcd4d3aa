//! Commands of the tunnel that wait: for packets, for room, for a paced link; and their early ends.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use csd_drive::life::drain;
use csd_drive::metrics;
use csd_drive::throttle::{Bandwidths, Model};
use csd_drive::tunnel::QUEUE_BYTES;
use csd_nvme::capsule::Sqe;
use csd_nvme::opcode::Admin;
use csd_nvme::status::Status;
use csd_nvme::vendor::tunnel::FRAME_BYTES_MAX;
use csd_reactor::{now, sleep};

use crate::inside::{inside, memory, outside};
use crate::tunnel::{
    GUEST, HOST, Line, connected, doors, frames, log, numbers, packet, until_inside,
};

/// Lists of one longest packet that fill a queue.
const LISTS: usize = QUEUE_BYTES / FRAME_BYTES_MAX as usize;

fn list(number: usize) -> Vec<u8> {
    frames([&packet(u32::try_from(number).unwrap(), 65_535)])
}

#[test]
fn a_send_waits_while_the_queue_is_full_and_for_a_paced_link() {
    let doors = doors(5);
    let model = Model {
        outside: Bandwidths { write_bytes_per_s: Some(10_000_000), ..Bandwidths::default() },
        ..Model::default()
    };
    let go = Rc::new(Cell::new(false));
    let told = Rc::clone(&go);
    doors.serve((&memory(), true), Some(model), move |_| {
        let go = Rc::clone(&told);
        async move {
            let guest = connected(&inside(), GUEST).await;
            let mut line = Line::default();
            // It joins, and takes nothing for a while.
            line.send(&guest, frames([&packet(0, 40)])).await;
            line.next().await.unwrap();
            while !go.get() {
                sleep(Duration::from_millis(1)).await;
            }
            let mut got = Vec::new();
            while got.len() < LISTS + 2 {
                line.receive(&guest).await;
                got.extend(numbers(&line.next().await.unwrap()));
            }
            assert!(got.iter().map(|number| *number as usize).eq(0..LISTS + 2), "{got:?}");
        }
    });
    let told = Rc::clone(&go);
    doors.host(move || {
        let go = Rc::clone(&told);
        async move {
            let host = connected(&outside(), HOST).await;
            until_inside(&host).await;
            let (mut line, begun) = (Line::default(), now());
            for number in 0..LISTS {
                line.send(&host, list(number)).await;
                line.next().await.unwrap();
            }
            let took = begun.elapsed();
            assert!(took >= Duration::from_millis(98), "983 KB at 10 MB/s took {took:?}");
            for number in LISTS..LISTS + 2 {
                line.send(&host, list(number)).await;
            }
            sleep(Duration::from_secs(10)).await;
            let queued = log(&host).await[1].queued();
            assert_eq!(queued, LISTS as u64 * u64::from(FRAME_BYTES_MAX), "two Sends wait");
            go.set(true);
            for _ in 0..2 {
                line.next().await.unwrap();
            }
        }
    });
}

#[test]
fn a_receive_of_the_host_waits_for_a_paced_link() {
    let doors = doors(12);
    let model = Model {
        outside: Bandwidths { read_bytes_per_s: Some(10_000_000), ..Bandwidths::default() },
        ..Model::default()
    };
    doors.serve((&memory(), true), Some(model), |_| async {
        let guest = connected(&inside(), GUEST).await;
        while log(&guest).await[0].present() == 0 {
            sleep(Duration::from_millis(1)).await;
        }
        let (mut line, begun) = (Line::default(), now());
        for number in 0..LISTS {
            line.send(&guest, list(number)).await;
            line.next().await.unwrap();
        }
        let took = begun.elapsed();
        assert!(took < Duration::from_millis(98), "the inside pays nothing: {took:?}");
    });
    doors.host(|| async {
        let host = connected(&outside(), HOST).await;
        let mut line = Line::default();
        line.send(&host, list(0)).await;
        line.next().await.unwrap();
        while log(&host).await[0].queued() < LISTS as u64 * u64::from(FRAME_BYTES_MAX) {
            sleep(Duration::from_millis(1)).await;
        }
        let (mut got, begun) = (Vec::new(), now());
        while got.len() < LISTS {
            line.receive(&host).await;
            got.extend(numbers(&line.next().await.unwrap()));
        }
        let took = begun.elapsed();
        assert!(got.iter().map(|number| *number as usize).eq(0..LISTS), "{got:?}");
        assert!(took >= Duration::from_millis(98), "983 KB at 10 MB/s took {took:?}");
    });
}

#[test]
fn packets_for_an_end_that_is_not_there_are_dropped_and_counted() {
    let doors = doors(6);
    doors.serve((&memory(), true), None, |_| async {});
    doors.host(|| async {
        let host = connected(&outside(), HOST).await;
        let mut line = Line::default();
        for number in 0..2 * LISTS {
            line.send(&host, list(number)).await;
            line.next().await.unwrap();
        }
        let ends = log(&host).await;
        assert_eq!((ends[1].present(), ends[1].queued()), (0, 0));
        assert_eq!(ends[1].dropped_packets(), 2 * LISTS as u64);
    });
}

#[test]
fn abort_ends_a_receive_that_waits_and_counts_nowhere() {
    let doors = doors(7);
    let page = Rc::new(std::cell::RefCell::new(String::new()));
    let (slot, go) = (Rc::clone(&page), Rc::new(Cell::new(false)));
    let told = Rc::clone(&go);
    doors.serve((&memory(), true), None, move |shared| {
        let (slot, go) = (Rc::clone(&slot), Rc::clone(&told));
        async move {
            shared.metrics.measure();
            while !go.get() {
                sleep(Duration::from_millis(1)).await;
            }
            *slot.borrow_mut() = metrics::render(&shared).await;
        }
    });
    let (done, told) = (Rc::clone(&page), Rc::clone(&go));
    doors.host(move || {
        let (page, go) = (Rc::clone(&done), Rc::clone(&told));
        async move {
            let host = connected(&outside(), HOST).await;
            let mut line = Line::default();
            line.receive(&host).await;
            while log(&host).await[0].waiting() == 0 {
                sleep(Duration::from_millis(1)).await;
            }
            let begun = now();
            let mut aborted = 0;
            for cid in 0..128_u32 {
                let mut abort = Sqe::new(Admin::ABORT.0, 0);
                abort.set_cdw10(1 | cid << 16);
                let reply = host.admin(abort, &[], 0).await.unwrap();
                aborted += u32::from(reply.result & 1 == 0);
            }
            assert_eq!(aborted, 1);
            let status = line.next().await.unwrap_err().status();
            assert_eq!(status, Some(Status::ABORT_REQUESTED));
            assert!(begun.elapsed() < Duration::from_secs(4));
            line.receive(&host).await;
            assert_eq!(line.next().await.unwrap(), [], "one that ends by itself");
            go.set(true);
            while page.borrow().is_empty() {
                sleep(Duration::from_millis(1)).await;
            }
        }
    });
    let page = page.borrow();
    let labels = "namespace=\"compute\",op=\"tunnel_receive\",side=\"outside\"";
    assert!(page.contains(&format!("csd_commands_total{{{labels}}} 1\n")));
    assert!(page.contains(&format!("csd_command_seconds_count{{{labels}}} 0\n")));
    assert!(!page.contains("csd_command_errors_total{code=\"007h\""));
    // Its connection's time is not that of hosts' commands.
    let of_tunnel = |line: &&str| line.contains("class=\"tunnel\"") && !line.ends_with(" 0");
    assert_eq!(page.lines().filter(of_tunnel).count(), 1, "one core has the connection: {page}");
}

#[test]
fn a_drive_that_stops_ends_receives_at_once() {
    let doors = doors(8);
    doors.serve((&memory(), true), None, |shared| async move {
        sleep(Duration::from_secs(1)).await;
        let begun = now();
        drain(&shared, Duration::from_secs(30)).await.unwrap();
        let took = begun.elapsed();
        assert!(took < Duration::from_secs(2), "the stop took {took:?}");
    });
    doors.host(|| async {
        let host = connected(&outside(), HOST).await;
        let mut line = Line::default();
        for _ in 0..3 {
            line.receive(&host).await;
        }
        let begun = now();
        for _ in 0..3 {
            assert_eq!(line.next().await.unwrap(), [], "answered before the connection ends");
        }
        assert!(begun.elapsed() < Duration::from_secs(2));
    });
}

#[test]
fn receives_end_at_once_with_the_connection_that_they_wait_on() {
    for is_cut in [false, true] {
        let doors = doors(9);
        let (waiting, ended) = (Rc::new(Cell::new(false)), Rc::new(Cell::new(None)));
        let told = (Rc::clone(&waiting), Rc::clone(&ended));
        doors.serve((&memory(), true), None, move |_| {
            let (waiting, ended) = told.clone();
            async move {
                let guest = connected(&inside(), GUEST).await;
                let is = async |number| {
                    while log(&guest).await[0].waiting() != number {
                        sleep(Duration::from_millis(1)).await;
                    }
                };
                is(3).await;
                waiting.set(true);
                let begun = now();
                is(0).await;
                ended.set(Some(begun.elapsed()));
            }
        });
        let told = Rc::clone(&waiting);
        doors.world.start(doors.host, move |_| {
            let waiting = Rc::clone(&told);
            async move {
                let host = connected(&outside(), HOST).await;
                let mut line = Line::default();
                for _ in 0..3 {
                    line.receive(&host).await;
                }
                while is_cut || !waiting.get() {
                    sleep(Duration::from_millis(1)).await;
                }
                // The last clones of the controller: its connections close.
                drop((line, host));
                std::future::pending().await
            }
        });
        let limit = Duration::from_secs(60);
        doors.world.run_until(|_| waiting.get(), limit).expect("three Receives wait");
        if is_cut {
            doors.world.disconnect(doors.host, doors.drive);
        }
        doors.world.run_until(|_| ended.get().is_some(), limit).expect("none waits any more");
        let took = ended.get().unwrap_or_default();
        assert!(took < Duration::from_secs(1), "cut {is_cut}: they ended after {took:?}");
    }
}
