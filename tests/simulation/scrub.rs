//! Scrub: bits that flip at rest while drives serve are found by object, piece, page and drive, and
//! nothing else is reported.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use csd_drive::Resources;
use csd_drive::drive::{self, Core};
use csd_drive::transport::accept;
use csd_initiator::Options;
use csd_kernels::ElementType;
use csd_kernels::erasure::{Code, scalar};
use csd_kvlog::format::Split;
use csd_kvlog::media::{Media, Memory};
use csd_kvlog::scrub::Damage;
use csd_reactor::sim::{MachineId, World, WorldConfig};
use csd_reactor::{Class, CoreId, Listener, core_local, spawn};
use csd_store::array::{Array, ArrayFile, Plan};
use csd_store::layout::Scheme;
use csd_store::object::{self, On, PutOptions};
use csd_store::scrub::{self, Bad, Cause, Limits, Proof, Scrubbed};
use csd_store::source::Source;

use crate::places::places;
use crate::{DRIVE_BYTES, LIMIT, seeds};

/// Time in which drives read their media at least once.
const PASSES: Duration = Duration::from_secs(4);
const DRIVES: usize = 3;
const CHUNK_BYTES: usize = 8192;
/// An object; its last chunk is short.
struct Object {
    name: &'static str,
    on: On,
    bytes: usize,
    /// True if it has the code rs:2+1.
    is_protected: bool,
}

const OBJECTS: [Object; 4] = [
    Object { name: "b", on: On::Block, bytes: 30 * CHUNK_BYTES + 1000, is_protected: false },
    Object { name: "p", on: On::Block, bytes: 20 * CHUNK_BYTES + 5, is_protected: true },
    Object { name: "q", on: On::Kv, bytes: 17 * CHUNK_BYTES + 4097, is_protected: true },
    Object { name: "v", on: On::Kv, bytes: 40 * CHUNK_BYTES + 77, is_protected: false },
];
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

/// Returns the bytes of an object; no two pieces begin alike.
fn content(object: usize) -> Vec<u8> {
    let word = |index: u64| (index << 8 | object as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let words = (1..).flat_map(|index| word(index).to_le_bytes());
    words.take(OBJECTS[object].bytes).collect()
}

/// A piece as a scrub names it, with its bytes.
struct Piece {
    stripe: Option<u32>,
    piece: u32,
    is_value: bool,
    bytes: Vec<u8>,
}

/// Returns all pieces of an object.
fn pieces(object: usize) -> Vec<Piece> {
    let (Object { on, is_protected, .. }, bytes) = (&OBJECTS[object], content(object));
    let chunks: Vec<&[u8]> = bytes.chunks(CHUNK_BYTES).collect();
    let (is_value, width) = (*on == On::Kv, if *is_protected { 2 } else { chunks.len() });
    let mut pieces = Vec::new();
    for (stripe, data) in (0..).zip(chunks.chunks(width)) {
        let stripe = is_protected.then_some(stripe);
        let of = |(piece, bytes): (u32, &&[u8])| Piece {
            stripe,
            piece,
            is_value,
            bytes: bytes.to_vec(),
        };
        pieces.extend((0..).zip(data).map(of));
        if *is_protected {
            let bytes = scalar::parity(&Code::new(2, 1).unwrap(), 0, data);
            pieces.push(Piece { stripe, piece: 2, is_value: true, bytes });
        }
    }
    pieces
}

/// Damage that drives have found on their own: index of the drive, and the words.
type Own = Rc<RefCell<BTreeSet<(usize, String)>>>;

struct Lane {
    world: World,
    media: Vec<Arc<Memory>>,
    host: MachineId,
    own: Own,
}

impl Lane {
    fn new(seed: u64) -> Self {
        let world = World::new(seed, WorldConfig::default());
        let media: Vec<_> = (0..DRIVES).map(|_| Arc::new(Memory::new(DRIVE_BYTES))).collect();
        let (up, own) = (Rc::new(Cell::new(0)), Own::default());
        for (index, medium) in media.iter().enumerate() {
            let machine = world.machine("drive", ip(index), 1);
            let media = Media::Memory(Arc::clone(medium));
            let (up, own) = (Rc::clone(&up), Rc::clone(&own));
            world.start(machine, move |core| {
                let (media, up, own) = (media.clone(), Rc::clone(&up), Rc::clone(&own));
                async move {
                    if core == CoreId(0) {
                        let name = format!("nqn.2026-11.io.csdstore:d{index}");
                        let resources = Resources::default();
                        let shared = drive::open(media, true, &name, &SPLIT, &resources);
                        let shared = shared.await.expect("opens");
                        csd_drive::life::start_all(&shared).await.expect("starts");
                        let listener = Listener::bind(SocketAddr::from((ip(index), 4420))).unwrap();
                        up.set(up.get() + 1);
                        drop(spawn(Class::Service, async move {
                            let core = core_local::<Core>().expect("it is started");
                            let report = |damage: &Damage| {
                                own.borrow_mut().insert((index, format!("{damage:?}")));
                            };
                            csd_drive::scrub::run(&core, 1 << 30, report).await;
                        }));
                        accept::accept(listener, shared).await;
                    }
                    std::future::pending().await
                }
            });
        }
        let host = world.machine("host", ip(20), 1);
        world.run_until(|_| up.get() == DRIVES, LIMIT).expect("the drives serve");
        Self { world, media, host, own }
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

    fn scrub(&self) -> (Scrubbed, Proof) {
        let whole: Rc<RefCell<(Scrubbed, Proof)>> = Rc::default();
        let found = Rc::clone(&whole);
        self.on_host(move || {
            let found = Rc::clone(&found);
            async move {
                let array = Array::connect(&plan(), &Options::default()).await;
                let progress = object::Progress::none();
                let limits = Limits { bytes_per_s: None, stop: Rc::default(), progress };
                for object in OBJECTS {
                    let entry = object::lookup(&array, object.name).await.expect("it is there");
                    let one = scrub::scrub(&array, &entry, &limits).await.expect("scrubbed");
                    let proof = scrub::prove(&array, &entry, &one, &limits).await.expect("proven");
                    found.borrow_mut().0.add(one);
                    found.borrow_mut().1.add(proof);
                }
            }
        });
        whole.take()
    }

    /// Flips a bit of a piece; returns the index of its drive, and the byte.
    fn flip(&self, piece: &[u8]) -> (usize, usize) {
        for (index, medium) in self.media.iter().enumerate() {
            let found = places(medium, &[piece]);
            let Some(place) = found[0].first() else { continue };
            let byte = self.draw(piece.len());
            medium.write(place + byte as u64, &[piece[byte] ^ 1 << self.draw(8)]);
            return (index, byte);
        }
        panic!("no medium has the piece");
    }
}

/// Puts the objects.
async fn put_all() {
    let array = Array::connect(&plan(), &Options::default()).await;
    for (object, Object { name, on, is_protected, .. }) in OBJECTS.into_iter().enumerate() {
        let bytes = Box::new(io::Cursor::new(content(object)));
        let options = PutOptions {
            page_bytes: Some(object::PAGE_BYTES),
            protect: is_protected.then(|| Scheme::new(2, 1).unwrap()),
            on,
            chunk_bytes: Some(CHUNK_BYTES as u64),
            ..PutOptions::new(name.to_owned())
        };
        let source = Source::raw("bytes", bytes, ElementType::Bytes);
        let progress = object::Progress::none();
        object::put(&array, source, &options, &progress).await.expect("put");
    }
}

#[test]
fn flipped_bits_are_found_by_page_and_nothing_else_is_reported() {
    let (mut on_blocks, mut in_values, mut lanes) = (0, 0, 0);
    let all: Vec<(usize, Piece)> = (0..OBJECTS.len())
        .flat_map(|object| pieces(object).into_iter().map(move |piece| (object, piece)))
        .collect();
    let bytes: usize = all.iter().map(|(_, piece)| piece.bytes.len()).sum();
    // Each seed searches all media: a tenth of the lane's seeds are enough.
    for seed in seeds().step_by(10) {
        let lane = Lane::new(seed);
        lane.on_host(put_all);
        let (clean, proof) = lane.scrub();
        let counted = (clean.chunks, clean.parity, clean.bytes, clean.unknown);
        assert_eq!(counted, (111, 20, bytes as u64, 0), "seed {seed}: {clean:?}");
        assert_eq!((clean.bad, clean.unread), (vec![], vec![]), "seed {seed}");
        assert_eq!((proof.proven, proof.unproven, proof.bad), (20, 0, vec![]), "seed {seed}");
        let mut expected: BTreeSet<Bad> = BTreeSet::new();
        lane.world.run_for(PASSES);
        assert_eq!(*lane.own.borrow(), BTreeSet::new(), "seed {seed}");
        let mut seen_alone = 0;
        for _ in 0..lane.draw(8) {
            let (object, Piece { stripe, piece, is_value, bytes }) = &all[lane.draw(all.len())];
            let (object, stripe, piece) = (OBJECTS[*object].name.to_owned(), *stripe, *piece);
            let is_it =
                |bad: &Bad| (&bad.object, bad.stripe, bad.piece) == (&object, stripe, Some(piece));
            // A piece short enough to be found twice is left alone.
            if bytes.len() >= 64 && !expected.iter().any(is_it) {
                let (drive, byte) = lane.flip(bytes);
                // A piece of one page has no list.
                let page = (bytes.len() > 4096).then(|| u32::try_from(byte / 4096).unwrap());
                let (drive, piece) = (Some(format!("d{drive}")), Some(piece));
                let cause = if *is_value { Cause::Unreadable } else { Cause::Differs };
                // A drive has no checksum of blocks without a list.
                seen_alone += usize::from(*is_value || page.is_some());
                let repaired = false;
                expected.insert(Bad { object, stripe, piece, page, drive, cause, repaired });
            }
        }
        let (found, proof) = lane.scrub();
        assert_eq!(found.bad, expected.iter().cloned().collect::<Vec<_>>(), "seed {seed}");
        assert_eq!((found.chunks, found.bytes), (111, bytes as u64), "seed {seed}");
        lane.world.run_for(PASSES);
        assert_eq!(lane.own.borrow().len(), seen_alone, "seed {seed}: {:?}", lane.own.borrow());
        // Exactly the damaged stripes are left out.
        let of_stripe = |bad: &Bad| Some((bad.object.clone(), bad.stripe?));
        let damaged: BTreeSet<_> = expected.iter().filter_map(of_stripe).collect();
        let left_out = damaged.len() as u64;
        assert_eq!((proof.proven, proof.unproven), (20 - left_out, left_out), "seed {seed}");
        assert_eq!(proof.bad, [], "seed {seed}");
        let blocks = expected.iter().filter(|bad| bad.cause == Cause::Differs).count();
        on_blocks += blocks;
        in_values += expected.len() - blocks;
        lanes += 1;
    }
    println!(
        "scrub: {lanes} seeds, flipped bits: {on_blocks} in chunks on blocks, {in_values} in values"
    );
    assert!(on_blocks + in_values > 0 || lanes < 5, "no bit was flipped");
}
