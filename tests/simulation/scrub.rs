//! Scrub: bits that flip at rest while drives serve are found by object, chunk and drive, and
//! nothing else is reported.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::rc::Rc;
use std::sync::Arc;

use csd_drive::Resources;
use csd_drive::drive;
use csd_drive::format::Split;
use csd_drive::media::{Media, Memory};
use csd_drive::transport::accept;
use csd_initiator::Options;
use csd_kernels::ElementType;
use csd_reactor::sim::{MachineId, World, WorldConfig};
use csd_reactor::{CoreId, Listener};
use csd_store::array::{Array, ArrayFile, Plan};
use csd_store::object::{self, Arrange, On, PutOptions};
use csd_store::scrub::{self, Cause, Limits, Scrubbed};
use csd_store::source::Source;

use crate::{DRIVE_BYTES, LIMIT, seeds};

const DRIVES: usize = 3;
const CHUNK_BYTES: usize = 8192;
/// Objects: name, placement, bytes. The last chunk of each is short.
const OBJECTS: [(&str, On, usize); 2] =
    [("b", On::Block, 30 * CHUNK_BYTES + 1000), ("v", On::Kv, 40 * CHUNK_BYTES + 77)];
const SPLIT: Split = Split { kv_percent: 60, reserve_percent: 5, block_bytes: 4096 };

fn ip(index: usize) -> Ipv4Addr {
    Ipv4Addr::new(10, 0, 0, u8::try_from(index + 1).unwrap())
}

fn plan() -> Plan {
    let mut text = "schema = 1\nname = \"a\"\n".to_owned();
    text += "uuid = \"0123456789abcdef0123456789abcdef\"\n";
    for index in 0..DRIVES {
        let url = format!("nvme+tcp://{}:4420/nqn.2026-11.io.csdstore:d{index}", ip(index));
        text += &format!("[[drives]]\nname = \"d{index}\"\nurl = \"{url}\"\n");
    }
    Plan::new(&ArrayFile::parse(&text).unwrap())
}

/// Returns the bytes of an object; no two chunks begin alike.
fn content(object: usize) -> Vec<u8> {
    let word = |index: u64| (index << 8 | object as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let words = (1..).flat_map(|index| word(index).to_le_bytes());
    words.take(OBJECTS[object].2).collect()
}

struct Lane {
    world: World,
    media: Vec<Arc<Memory>>,
    host: MachineId,
}

impl Lane {
    fn new(seed: u64) -> Self {
        let world = World::new(seed, WorldConfig::default());
        let media: Vec<_> = (0..DRIVES).map(|_| Arc::new(Memory::new(DRIVE_BYTES))).collect();
        let up = Rc::new(Cell::new(0));
        for (index, medium) in media.iter().enumerate() {
            let machine = world.machine("drive", ip(index), 1);
            let (media, up) = (Media::Memory(Arc::clone(medium)), Rc::clone(&up));
            world.start(machine, move |core| {
                let (media, up) = (media.clone(), Rc::clone(&up));
                async move {
                    if core == CoreId(0) {
                        let name = format!("nqn.2026-11.io.csdstore:d{index}");
                        let resources = Resources::default();
                        let shared = drive::open(media, true, &name, &SPLIT, &resources);
                        let shared = shared.await.expect("opens");
                        drive::start_all(&shared).await.expect("starts");
                        let listener = Listener::bind(SocketAddr::from((ip(index), 4420))).unwrap();
                        up.set(up.get() + 1);
                        accept::accept(listener, shared).await;
                    }
                    std::future::pending().await
                }
            });
        }
        let host = world.machine("host", ip(20), 1);
        world.run_until(|_| up.get() == DRIVES, LIMIT).expect("the drives serve");
        Self { world, media, host }
    }

    /// Runs a host's main to its end.
    fn on_host<F: Future<Output = ()> + 'static>(&self, main: impl Fn() -> F + 'static) {
        self.world.start(self.host, move |_| main());
        let ended = self.world.run_until(|world| !world.is_running(self.host), LIMIT);
        ended.expect("the host ends");
    }

    fn draw(&self, below: usize) -> usize {
        usize::try_from(self.world.random_u64() % below as u64).unwrap()
    }

    fn scrub(&self) -> Scrubbed {
        let whole: Rc<RefCell<Scrubbed>> = Rc::default();
        let found = Rc::clone(&whole);
        self.on_host(move || {
            let found = Rc::clone(&found);
            async move {
                let array = Array::connect(&plan(), &Options::default()).await;
                let progress = Arc::new(|_| {}) as object::Progress;
                let limits = Limits { bytes_per_s: None, stop: Rc::default(), progress };
                for (name, ..) in OBJECTS {
                    let entry = object::lookup(&array, name).await.expect("it is there");
                    let one = scrub::scrub(&array, &entry, &limits).await.expect("scrubbed");
                    found.borrow_mut().add(one);
                }
            }
        });
        whole.take()
    }

    /// Flips a bit of a chunk; returns the index of its drive.
    fn flip(&self, object: usize, chunk: usize) -> usize {
        let bytes = content(object);
        let chunk = bytes.chunks(CHUNK_BYTES).nth(chunk).unwrap();
        for (index, medium) in self.media.iter().enumerate() {
            let mut stored = vec![0; usize::try_from(DRIVE_BYTES).unwrap()];
            medium.read(0, &mut stored);
            // Values and blocks begin at multiples of 64.
            let found = stored.chunks(64).position(|piece| piece == &chunk[..64]);
            let Some(place) = found else { continue };
            let at = place * 64 + self.draw(chunk.len());
            medium.write(at as u64, &[stored[at] ^ 1 << self.draw(8)]);
            return index;
        }
        panic!("no medium has the chunk");
    }
}

/// Puts the objects.
async fn put_all() {
    let array = Array::connect(&plan(), &Options::default()).await;
    for (object, (name, on, _)) in OBJECTS.into_iter().enumerate() {
        let bytes = Box::new(io::Cursor::new(content(object)));
        let options = PutOptions {
            protect: None,
            name: name.to_owned(),
            on,
            chunk_bytes: Some(CHUNK_BYTES as u64),
            arrange: Arrange::Spread,
            align: None,
        };
        let source = Source::raw("bytes", bytes, ElementType::Bytes);
        let progress = Arc::new(|_| {}) as object::Progress;
        object::put(&array, source, &options, &progress).await.expect("put");
    }
}

#[test]
fn flipped_bits_are_found_by_chunk_and_nothing_else_is_reported() {
    let mut flipped = 0;
    // Each seed searches all media: a tenth of the lane's seeds are enough.
    for seed in seeds().step_by(10) {
        let lane = Lane::new(seed);
        lane.on_host(put_all);
        let clean = lane.scrub();
        let bytes: usize = OBJECTS.iter().map(|(.., bytes)| bytes).sum();
        let counted = (clean.chunks, clean.bytes, clean.unknown);
        assert_eq!(counted, (72, bytes as u64, 0), "seed {seed}: {clean:?}");
        assert_eq!((clean.bad, clean.unread), (vec![], vec![]), "seed {seed}");
        let mut expected: BTreeSet<(&str, u32, String, Cause)> = BTreeSet::new();
        for _ in 0..lane.draw(8) {
            let object = lane.draw(OBJECTS.len());
            let (name, on, bytes) = OBJECTS[object];
            let chunk = lane.draw(bytes.div_ceil(CHUNK_BYTES));
            let number = u32::try_from(chunk).unwrap();
            let cause = if on == On::Kv { Cause::Unreadable } else { Cause::Differs };
            if expected.iter().all(|(other, at, ..)| (*other, *at) != (name, number)) {
                let drive = format!("d{}", lane.flip(object, chunk));
                expected.insert((name, number, drive, cause));
            }
        }
        let found = lane.scrub();
        let bad = found.bad.iter();
        let bad = bad.map(|bad| (&*bad.object, bad.chunk, bad.drive.clone(), bad.cause));
        assert_eq!(bad.collect::<BTreeSet<_>>(), expected, "seed {seed}");
        assert_eq!(found.bad.len(), expected.len(), "seed {seed}");
        assert_eq!((found.chunks, found.bytes), (72, bytes as u64), "seed {seed}");
        flipped += expected.len();
    }
    assert!(flipped > 0, "no bit was flipped");
}
