//! Files over io_uring and epoll, and their absence in the simulation.

use std::future::{Future, poll_fn};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use csd_reactor::{
    ALIGNMENT, BackendKind, Buffer, Config, Error, File, FileOptions, block_on, busy, sleep,
};

const READ_WRITE: FileOptions = FileOptions {
    read: true,
    write: true,
    create: true,
    create_new: false,
    truncate: false,
    direct: false,
    exclusive: false,
};

/// Runs `body` with an empty directory on a back end; false if the kernel denies it.
fn with_files<Fut>(backend: BackendKind, body: fn(PathBuf) -> Fut) -> bool
where
    Fut: Future<Output = ()> + 'static,
{
    with_config(Config { backend, ..Config::default() }, body)
}

/// Does the same with other settings.
fn with_config<Fut>(config: Config, body: fn(PathBuf) -> Fut) -> bool
where
    Fut: Future<Output = ()> + 'static,
{
    let backend = config.backend;
    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a directory");
    let path = directory.path().to_owned();
    match block_on(&config, move || body(path)) {
        Ok(()) => true,
        Err(Error::Start { source, .. }) if backend == BackendKind::Uring => {
            eprintln!("SKIPPED: io_uring is denied here: {source}");
            false
        }
        Err(error) => panic!("{error}"),
    }
}

macro_rules! on_both {
    ($($name:ident;)*) => {
        mod uring {
            $(#[test] fn $name() {
                super::with_files(csd_reactor::BackendKind::Uring, super::$name);
            })*
        }
        mod epoll {
            $(#[test] fn $name() {
                assert!(super::with_files(csd_reactor::BackendKind::Epoll, super::$name));
            })*
        }
    };
}

on_both! {
    what_is_written_is_read;
    vectored_writes_follow_each_other;
    lengths_holes_and_reservations;
    opening_fails_as_asked;
    direct_reads_stop_at_the_end;
    many_operations_at_once;
    dropped_operations_corrupt_nothing;
}

fn pattern(len: usize, seed: usize) -> Buffer {
    let mut buffer = Buffer::with_room(0, len, 0);
    for (index, byte) in buffer.iter_mut().enumerate() {
        *byte = (index * 31 + seed * 7).to_le_bytes()[0] ^ (index >> 8).to_le_bytes()[0];
    }
    buffer
}

async fn open(path: impl AsRef<Path>) -> File {
    File::open(path, &READ_WRITE).await.expect("a file")
}

async fn what_is_written_is_read(directory: PathBuf) {
    let file = open(directory.join("plain")).await;
    let (written, buffer) = file.write_at(5000, pattern(70_000, 1)).await;
    written.expect("room on the disk");
    assert_eq!(buffer.len(), 70_000);
    file.sync_data().await.expect("a sound disk");
    assert_eq!(file.len().await.expect("a length"), 75_000);

    let (count, read) = file.clone().read_at(5000, Buffer::zeroed(70_000)).await;
    assert_eq!(count.expect("a read"), 70_000);
    assert!(read[..] == pattern(70_000, 1)[..]);
    // Over the end: what there is. Beyond it: nothing. No bytes: nothing.
    let (count, read) = file.read_at(74_000, Buffer::zeroed(4096)).await;
    assert_eq!(count.expect("a read"), 1000);
    assert!(read[..1000] == pattern(70_000, 1)[69_000..]);
    assert_eq!(read.len(), 4096);
    assert_eq!(file.read_at(80_000, Buffer::zeroed(1)).await.0.expect("a read"), 0);
    assert_eq!(file.read_at(0, Buffer::default()).await.0.expect("a read"), 0);
}

async fn vectored_writes_follow_each_other(directory: PathBuf) {
    let file = open(directory.join("vectored")).await;
    // More slices than one system call takes, of odd sizes, some of them empty.
    let buffers: Vec<_> = (0..2500).map(|index| pattern(index % 13, index)).collect();
    let expected: Vec<u8> = buffers.iter().flat_map(|buffer| buffer.iter().copied()).collect();
    let (written, buffers) = file.write_vectored_at(100, buffers).await;
    written.expect("room on the disk");
    assert_eq!(buffers.len(), 2500);
    let (count, read) = file.read_at(100, Buffer::zeroed(expected.len() + 1)).await;
    assert_eq!(count.expect("a read"), expected.len());
    assert!(read[..expected.len()] == expected[..]);
    let (written, buffers) = file.write_vectored_at(0, Vec::new()).await;
    assert!(written.is_ok() && buffers.is_empty());
}

async fn lengths_holes_and_reservations(directory: PathBuf) {
    let file = open(directory.join("holes")).await;
    file.allocate(0, 1 << 20).await.expect("room on the disk");
    assert_eq!(file.len().await.expect("a length"), 1 << 20);
    file.write_at(0, pattern(1 << 20, 3)).await.0.expect("room on the disk");
    file.punch_hole(4096, 8192).await.expect("a file system that has holes");
    let (count, read) = file.read_at(0, Buffer::zeroed(16384)).await;
    assert_eq!(count.expect("a read"), 16384);
    assert!(read[4096..12288].iter().all(|byte| *byte == 0));
    assert!(read[..4096] == pattern(4096, 3)[..]);
    file.set_len(10).await.expect("a cut");
    assert_eq!(file.len().await.expect("a length"), 10);
    assert!(file.allocate(u64::MAX, 1).await.is_err());
}

async fn opening_fails_as_asked(directory: PathBuf) {
    let missing = FileOptions { read: true, ..FileOptions::default() };
    let error = File::open(directory.join("none"), &missing).await.err();
    assert_eq!(error.map(|error| error.kind()), Some(ErrorKind::NotFound));
    drop(open(directory.join("there")).await);
    let mode = std::fs::metadata(directory.join("there")).expect("a file").permissions().mode();
    assert_eq!(mode & 0o777, 0o600, "a new file is for its user alone");
    let new = FileOptions { create_new: true, ..READ_WRITE };
    let error = File::open(directory.join("there"), &new).await.err();
    assert_eq!(error.map(|error| error.kind()), Some(ErrorKind::AlreadyExists));
    let file = File::open(directory.join("there"), &missing).await.expect("a file");
    let (refused, buffer) = file.write_at(0, pattern(10, 0)).await;
    assert!(refused.is_err());
    assert_eq!(buffer.len(), 10, "the buffer comes back");
}

async fn direct_reads_stop_at_the_end(directory: PathBuf) {
    let path = directory.join("direct");
    open(&path).await.write_at(0, pattern(10_000, 5)).await.0.expect("room on the disk");
    let options = FileOptions { direct: true, ..READ_WRITE };
    let file = match File::open(&path, &options).await {
        Ok(file) => file,
        Err(error) => return eprintln!("SKIPPED: no direct I/O here: {error}"),
    };
    assert!(file.is_direct());
    let (count, read) = file.read_at(0, Buffer::zeroed(4 * ALIGNMENT)).await;
    assert_eq!(count.expect("a read"), 10_000);
    assert!(read[..10_000] == pattern(10_000, 5)[..]);
}

async fn many_operations_at_once(directory: PathBuf) {
    let file = open(directory.join("many")).await;
    let tasks: Vec<_> = (0..600_usize)
        .map(|index| {
            let file = file.clone();
            csd_reactor::spawn(csd_reactor::Class::Foreground, async move {
                let offset = index as u64 * 4096;
                file.write_at(offset, pattern(4096, index)).await.0.expect("room on the disk");
                let (count, read) = file.read_at(offset, Buffer::zeroed(4096)).await;
                assert_eq!(count.expect("a read"), 4096);
                assert!(read[..] == pattern(4096, index)[..]);
            })
        })
        .collect();
    for task in tasks {
        task.await;
    }
}

/// Polls a future once and drops it.
async fn start_and_drop(future: impl Future) {
    let mut future = pin!(future);
    poll_fn(|cx| {
        let _pending = future.as_mut().poll(cx);
        Poll::Ready(())
    })
    .await;
}

async fn dropped_operations_corrupt_nothing(directory: PathBuf) {
    let file = open(directory.join("dropped")).await;
    file.write_at(0, pattern(1 << 20, 9)).await.0.expect("room on the disk");
    for _ in 0..50 {
        start_and_drop(file.read_at(0, Buffer::zeroed(1 << 20))).await;
        // Were the block free while the read goes on, this would get it.
        let mine = Buffer::zeroed(1 << 20);
        sleep(Duration::from_micros(300)).await;
        assert!(mine.iter().all(|byte| *byte == 0));
    }
    let (count, read) = file.read_at(0, Buffer::zeroed(1 << 20)).await;
    assert_eq!(count.expect("a read"), 1 << 20);
    assert!(read[..] == pattern(1 << 20, 9)[..]);
}

/// A named pipe: a read of it waits in the ring until somebody writes.
fn pipe(directory: &Path) -> PathBuf {
    let path = directory.join("pipe");
    let made = std::process::Command::new("mkfifo").arg(&path).status().expect("mkfifo runs");
    assert!(made.success());
    path
}

#[test]
fn the_ring_keeps_a_dropped_operations_buffer_until_it_answers() {
    with_files(BackendKind::Uring, |directory| async move {
        let path = pipe(&directory);
        let file = open(&path).await;
        let buffer = Buffer::zeroed(3 * ALIGNMENT);
        let held = buffer.as_ptr();
        start_and_drop(file.read_at(0, buffer)).await;
        sleep(Duration::from_millis(5)).await;
        let others: Vec<_> = (0..20).map(|_| Buffer::zeroed(3 * ALIGNMENT)).collect();
        assert!(others.iter().all(|other| other.as_ptr() != held), "freed while in flight");
        let mut writer = std::fs::File::options().write(true).open(&path).expect("a pipe");
        // All that was asked for, so that the operation is complete.
        writer.write_all(&[9; 3 * ALIGNMENT]).expect("a reader");
        loop {
            let next = Buffer::with_room(0, 3 * ALIGNMENT, 0);
            if next.as_ptr() == held {
                assert!(next.iter().all(|byte| *byte == 9), "the ring wrote it while it was held");
                return;
            }
            // The free list gives the latest first: ours must not go back on top.
            drop(next);
            sleep(Duration::from_millis(1)).await;
        }
    });
}

#[test]
fn a_core_ends_with_operations_in_flight() {
    // It hangs unless the ring is asked to give up.
    with_files(BackendKind::Uring, |directory| async move {
        let file = open(pipe(&directory)).await;
        for _ in 0..10 {
            start_and_drop(file.read_at(0, Buffer::zeroed(ALIGNMENT))).await;
        }
        sleep(Duration::from_millis(5)).await;
    });
}

#[test]
fn a_simulated_machine_has_no_files() {
    let world = csd_reactor::sim::World::new(1, Default::default());
    let machine = world.machine("one", std::net::Ipv4Addr::new(10, 0, 0, 1), 1);
    world.start(machine, |_| async {
        let error = File::open("/dev/null", &READ_WRITE).await.err();
        assert_eq!(error.map(|error| error.kind()), Some(ErrorKind::Unsupported));
    });
    let ended = world.run_until(|world| !world.is_running(machine), Duration::from_secs(1));
    assert_eq!(ended, Ok(()));
}

/// Syncs a file while the core would rather spin, because each wait so far was a short one.
async fn sync_between_short_waits(directory: PathBuf) {
    let file = File::open(&directory.join("file"), &READ_WRITE).await.expect("opens");
    for _ in 0..20 {
        sleep(Duration::from_micros(10)).await;
    }
    assert!(busy().spin_ns > 0, "short waits make a core spin");
    for _ in 0..20 {
        let before = busy();
        file.write_at(0, Buffer::from_slice(b"text")).await.0.expect("is written");
        file.sync_data().await.expect("is synced");
        let spent = busy().since(&before);
        assert_eq!(spent.spin_ns, 0, "{spent:?}");
    }
}

/// A kernel thread that syncs may be bound to the core's CPU: a core that spins for 1 ms keeps it
/// from that for as long.
#[test]
fn a_core_does_not_spin_while_a_thread_works_on_a_file() {
    for backend in [BackendKind::Uring, BackendKind::Epoll] {
        // As good as for ever, so that no wait is a long one.
        let config = Config { backend, spin_us: 1_000_000_000, ..Config::default() };
        with_config(config, sync_between_short_waits);
    }
}
