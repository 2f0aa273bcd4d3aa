//! A connection through the tunnel outlives what carries it: the link, the drive, and the process
//! of either end. The connection is a small reliable protocol over the packets of two devices; the
//! ends are those of `csd tunnel up`.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::rc::Rc;
use std::time::Duration;

use csd_client::{Gate, Packets, TunnelEnd, TunnelError, TunnelPort};
use csd_initiator::{Address, Options};
use csd_nvme::vendor::tunnel::VIRTIO_NET_BYTES;
use csd_reactor::{Class, JoinHandle, now, sleep, spawn};

use crate::inside::{Doors, inside, memory, outside};
use crate::tunnel::{GUEST, HOST, doors};

const HOST_IP: [u8; 4] = [10, 77, 0, 1];
const GUEST_IP: [u8; 4] = [10, 77, 0, 2];
/// Segments of the connection, and those that are sent ahead of their acknowledgement.
const SEGMENTS: u32 = 1500;
const WINDOW: u32 = 32;
/// Bytes of a segment.
const SEGMENT_BYTES: usize = 1400;
/// Packets that a device holds; more are dropped.
const DEVICE_PACKETS: usize = 64;
const TICK: Duration = Duration::from_millis(1);
const LIMIT: Duration = Duration::from_secs(120);

/// Device of packets whose other side is a kernel.
#[derive(Default)]
struct Device {
    /// Packets that the kernel sends.
    from_kernel: RefCell<VecDeque<Vec<u8>>>,
    /// Packets that it receives.
    to_kernel: RefCell<VecDeque<Vec<u8>>>,
}

impl Device {
    /// Sends a packet of this number as the kernel.
    fn send(&self, (source, destination): ([u8; 4], [u8; 4]), number: u32, bytes: usize) {
        let mut queue = self.from_kernel.borrow_mut();
        if queue.len() < DEVICE_PACKETS {
            let mut packet = vec![number.to_le_bytes()[0]; VIRTIO_NET_BYTES + 24 + bytes];
            packet[..VIRTIO_NET_BYTES + 24].fill(0);
            let ip = &mut packet[VIRTIO_NET_BYTES..];
            ip[0] = 0x45;
            ip[12..16].copy_from_slice(&source);
            ip[16..20].copy_from_slice(&destination);
            ip[20..24].copy_from_slice(&number.to_le_bytes());
            queue.push_back(packet);
        }
    }

    /// Receives a packet as the kernel: its number, and its bytes.
    fn receive(&self) -> Option<(u32, Vec<u8>)> {
        let packet = self.to_kernel.borrow_mut().pop_front()?;
        let ip = &packet[VIRTIO_NET_BYTES..];
        Some((u32::from_le_bytes(ip[20..24].try_into().unwrap()), ip[24..].to_vec()))
    }
}

/// The side of a device that `csd tunnel up` has.
struct Plug(Rc<Device>);

impl Packets for Plug {
    fn try_read(&self, into: &mut [u8]) -> io::Result<Option<usize>> {
        let packet = self.0.from_kernel.borrow_mut().pop_front();
        let Some(packet) = packet else { return Ok(None) };
        into[..packet.len()].copy_from_slice(&packet);
        Ok(Some(packet.len()))
    }

    fn try_write(&self, parts: &[IoSlice<'_>]) -> io::Result<Option<usize>> {
        let packet = parts.iter().flat_map(|part| part.iter().copied()).collect::<Vec<_>>();
        let mut queue = self.0.to_kernel.borrow_mut();
        let length = packet.len();
        if queue.len() < DEVICE_PACKETS {
            queue.push_back(packet);
        }
        Ok(Some(length))
    }

    async fn readable(&self) -> io::Result<()> {
        while self.0.from_kernel.borrow().is_empty() {
            sleep(TICK).await;
        }
        Ok(())
    }

    async fn writable(&self) -> io::Result<()> {
        Ok(())
    }
}

/// The connection, and what is asked of the ends' processes.
#[derive(Default)]
struct Scene {
    devices: [Rc<Device>; 2],
    /// Segments that the guest has received in order.
    received: Cell<u32>,
    /// Segments whose acknowledgement the host has received.
    acknowledged: Cell<u32>,
    /// Number of times that the process of each end was started.
    starts: [Cell<u32>; 2],
    /// Number of times that it should have been.
    wanted: [Cell<u32>; 2],
}

impl Scene {
    /// Runs the process of an end, and starts it again when that is wanted.
    async fn keep(self: Rc<Self>, side: usize) {
        let mut process: Option<JoinHandle<()>> = None;
        loop {
            if process.is_none() || self.starts[side].get() < self.wanted[side].get() {
                if let Some(process) = process.take() {
                    // The device goes with its process.
                    process.abort();
                    self.devices[side].from_kernel.borrow_mut().clear();
                    sleep(Duration::from_millis(300)).await;
                }
                self.starts[side].set(self.starts[side].get() + 1);
                process = Some(spawn(Class::Foreground, up(Rc::clone(&self.devices[side]), side)));
            }
            sleep(TICK).await;
        }
    }

    /// Sends all segments from the host, and those again that are not acknowledged in time.
    async fn send(&self) {
        let (device, mut next, mut moved) = (&self.devices[0], 0, now());
        while self.acknowledged.get() < SEGMENTS {
            while let Some((number, _)) = device.receive() {
                if number > self.acknowledged.get() {
                    self.acknowledged.set(number);
                    moved = now();
                }
            }
            let first = self.acknowledged.get();
            if moved.elapsed() > Duration::from_millis(200) {
                (next, moved) = (first, now());
            }
            while next < SEGMENTS.min(first + WINDOW) {
                device.send((HOST_IP, GUEST_IP), next, SEGMENT_BYTES);
                next += 1;
            }
            next = next.max(first);
            sleep(TICK).await;
        }
    }

    /// Receives segments in the guest, and acknowledges them.
    async fn receive(&self) {
        let device = &self.devices[1];
        loop {
            while let Some((number, bytes)) = device.receive() {
                let mark = number.to_le_bytes()[0];
                assert!(bytes.len() == SEGMENT_BYTES && bytes.iter().all(|byte| *byte == mark));
                if number == self.received.get() {
                    self.received.set(number + 1);
                }
                device.send((GUEST_IP, HOST_IP), self.received.get(), 0);
            }
            sleep(TICK).await;
        }
    }
}

/// Does what `csd tunnel up` does, from its start on.
async fn up(device: Rc<Device>, side: usize) {
    let (address, host): (Address, _) = [(outside(), HOST), (inside(), GUEST)][side].clone();
    let options = Options { host_nqn: host.to_owned(), ..Options::default() };
    let gate = Gate { drive: GUEST_IP.into(), network: (HOST_IP.into(), 24) };
    let gate = (side == 0).then_some(gate);
    let port = TunnelPort { device: Plug(device), gate, counts: Cell::default() };
    loop {
        // Its user starts it again while the drive is away.
        if let Ok(end) = open(&address, &options).await {
            assert_eq!(end.side(), side);
            let ended = end.keep(&port, |_| ()).await;
            panic!("the end gave up: {ended}");
        }
        sleep(Duration::from_millis(50)).await;
    }
}

async fn open(address: &Address, options: &Options) -> Result<TunnelEnd, TunnelError> {
    let mut end = TunnelEnd::connect(address, options).await?;
    end.join().await.map(|()| end)
}

fn serve(doors: &Doors, scene: &Rc<Scene>, media: &csd_kvlog::media::Media, is_new: bool) {
    let scene = Rc::clone(scene);
    doors.serve((media, is_new), None, move |_| {
        let scene = Rc::clone(&scene);
        async move {
            drop(spawn(Class::Foreground, Rc::clone(&scene).keep(1)));
            scene.receive().await;
        }
    });
}

#[test]
fn a_connection_outlives_a_cut_link_a_killed_drive_and_restarted_ends() {
    for seed in 0..12 {
        let (doors, scene, media) = (doors(seed), Rc::<Scene>::default(), memory());
        serve(&doors, &scene, &media, true);
        let kernel = Rc::clone(&scene);
        doors.world.start(doors.host, move |_| {
            let scene = Rc::clone(&kernel);
            async move {
                drop(spawn(Class::Foreground, Rc::clone(&scene).keep(0)));
                scene.send().await;
                std::future::pending().await
            }
        });
        let reach = |fifths: u32| {
            let wanted = SEGMENTS * fifths / 5;
            let reached = doors.world.run_until(|_| scene.received.get() >= wanted, LIMIT);
            reached.unwrap_or_else(|stuck| panic!("seed {seed}, {fifths} fifths: {stuck}"));
        };
        reach(1);
        doors.world.partition(doors.host, doors.drive);
        doors.world.run_for(Duration::from_secs(10));
        doors.world.heal(doors.host, doors.drive);
        assert!(scene.received.get() <= SEGMENTS / 5 + WINDOW, "nothing crosses a cut link");
        reach(2);
        doors.world.crash(doors.drive);
        doors.world.run_for(Duration::from_secs(2));
        serve(&doors, &scene, &media, false);
        for (side, fifths) in [(0, 3), (1, 4)] {
            reach(fifths);
            scene.wanted[side].set(scene.starts[side].get() + 1);
        }
        reach(5);
        let done = doors.world.run_until(|_| scene.acknowledged.get() == SEGMENTS, LIMIT);
        done.unwrap_or_else(|stuck| panic!("seed {seed}: {stuck}"));
        assert!(scene.starts[0].get() == 2, "the host's end was started {:?}", scene.starts[0]);
        // Once with each start of the drive's machine.
        assert!(scene.starts[1].get() == 3, "the guest's end was started {:?}", scene.starts[1]);
    }
}

#[test]
fn hosts_that_may_not_have_an_end_are_refused_by_name() {
    let doors = doors(9);
    doors.serve((&memory(), true), None, |_| async {});
    doors.host(|| async {
        let options = |host: &str| Options { host_nqn: host.to_owned(), ..Options::default() };
        let open = |host: &'static str| async move {
            let opened = open(&outside(), &options(host)).await;
            opened.map_err(|error| error.to_string())
        };
        let stranger = "nqn.2026-11.io.csdstore:stranger";
        let why = loop {
            // The drive may not serve yet.
            match open(stranger).await {
                Err(why) if why.contains(stranger) => break why,
                Err(_) => sleep(Duration::from_millis(5)).await,
                Ok(_) => panic!("a stranger has an end"),
            }
        };
        assert!(why.contains("may not use its tunnel: name it with --tunnel-host"), "{why}");
        let first = open(HOST).await.expect("the host has its end");
        assert!(open(stranger).await.is_err_and(|why| why.contains(HOST)));
        // The same host connects again: its first connection ends with the reason.
        let second = open(HOST).await.expect("the host has its end again");
        let device = Plug(Rc::default());
        let port = TunnelPort { device, gate: None, counts: Cell::default() };
        let why = first.keep(&port, |_| ()).await.to_string();
        assert!(why.contains("a later connection of this host has taken its tunnel over"), "{why}");
        drop(second);
    });
}
