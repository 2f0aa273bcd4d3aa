//! A whole drive in a simulated world, and a host with the fuzzer's bytes, on an admin queue or an
//! I/O queue; afterwards the drive must still accept another host.

#![no_main]

use std::cell::Cell;
use std::net::{Ipv4Addr, SocketAddr};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use csd_drive::Resources;
use csd_drive::drive;
use csd_kvlog::format::Split;
use csd_kvlog::media::{Media, Memory};
use csd_drive::transport::accept;
use csd_reactor::sim::{World, WorldConfig};
use csd_reactor::{CoreId, Listener, Stream, sleep, timeout};
use libfuzzer_sys::fuzz_target;

const DRIVE: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
const HOST: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);
const SPLIT: Split = Split { kv_percent: 60, reserve_percent: 5, block_bytes: 4096 };
const WAIT: Duration = Duration::from_millis(20);

async fn open() -> Stream {
    Stream::connect(SocketAddr::from((DRIVE, 4420))).await.expect("the drive listens")
}

/// Receives until no more bytes come; returns their number.
async fn drain(stream: &Stream) -> usize {
    let (mut bytes, mut total) = (vec![0; 64 << 10], 0);
    loop {
        match stream.try_recv(&mut bytes) {
            Ok(Some(0)) | Err(_) => return total,
            Ok(Some(count)) => total += count,
            Ok(None) => match timeout(WAIT, stream.readable()).await {
                Ok(Ok(())) => {}
                _ => return total,
            },
        }
    }
}

async fn greet() -> Stream {
    let stream = open().await;
    stream.send_all(&csd_fuzz::initialise()).await.expect("greets");
    stream
}

async fn host(on_io_queue: bool, bytes: Vec<u8>) {
    let admin = greet().await;
    let _ = admin.send_all(&csd_fuzz::connect(0, 0xFFFF)).await;
    let _ = admin.send_all(&csd_fuzz::enable()).await;
    drain(&admin).await;
    let stream = if on_io_queue {
        let io = greet().await;
        let _ = io.send_all(&csd_fuzz::connect(1, 1)).await;
        assert_eq!(drain(&io).await, 128 + 24, "connected");
        io
    } else {
        greet().await
    };
    for part in bytes.chunks(60_000) {
        let _ = timeout(WAIT, stream.send_all(part)).await;
        drain(&stream).await;
    }
    drop((stream, admin));
    sleep(WAIT).await;
    assert_eq!(drain(&greet().await).await, 128, "the drive serves the next host");
}

fuzz_target!(|data: &[u8]| {
    let Some((choice, rest)) = data.split_first() else { return };
    let (on_io_queue, bytes) = (choice & 1 == 1, csd_fuzz::stream(rest));
    let world = World::new(u64::from(*choice), WorldConfig::default());
    let (there, here) = (world.machine("drive", DRIVE, 2), world.machine("host", HOST, 1));
    let ready = Rc::new(Cell::new(false));
    let told = Rc::clone(&ready);
    world.start(there, move |core| {
        let told = Rc::clone(&told);
        async move {
            if core == CoreId(0) {
                let media = Media::Memory(Arc::new(Memory::new(128 << 20)));
                let (nqn, resources) = (csd_fuzz::NQN, Resources::default());
                let opened = drive::open(media, true, nqn, &SPLIT, &resources).await;
                let shared = opened.expect("opens");
                csd_drive::life::start_all(&shared).await.expect("starts");
                let listener = Listener::bind(SocketAddr::from((DRIVE, 4420))).expect("free");
                told.set(true);
                accept::accept(listener, shared).await;
            }
            std::future::pending::<()>().await;
        }
    });
    let limit = Duration::from_secs(100);
    world.run_until(|_| ready.get(), limit).unwrap_or_else(|stuck| panic!("start: {stuck}"));
    world.start(here, move |_| host(on_io_queue, bytes.clone()));
    let ended = world.run_until(|world| !world.is_running(here), limit);
    ended.unwrap_or_else(|stuck| panic!("the host: {stuck}"));
});
