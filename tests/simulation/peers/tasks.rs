//! Tasks one by one: sums, digests, unknown peers, secrets, circles, and peers out of reach.

use csd_kernels::erasure::{Code, scalar};
use csd_nvme::kv::Key;
use csd_nvme::vendor::combine::Stored;
use csd_reactor::now;

use super::*;

/// Stores four pieces on three drives. Returns them, and the sources as drive 0 names them.
async fn four_pieces() -> (Vec<Vec<u8>>, Vec<Piece>) {
    let data: Vec<Vec<u8>> =
        [10_000, 10_000, 9_999, 1].iter().zip(0..).map(|(len, seed)| bytes(seed, *len)).collect();
    store(0, 0, &data[0]).await;
    store(1, 1, &data[1]).await;
    write(2, 7, &data[2]).await;
    store(1, 3, &data[3]).await;
    let sources = vec![
        value(0, 0, 10_000),
        expecting(value(1, 1, 10_000), &data[1]),
        blocks(2, 7, 9_999),
        value(1, 3, 1),
    ];
    (data, sources)
}

/// Names of the peers of drive 0.
fn peers_of_0() -> Vec<String> {
    vec![nqn(1), nqn(2)]
}

#[test]
fn one_drive_gathers_encodes_and_sends_and_another_decodes() {
    for secrets in [[None; 3], [Some(1), Some(2), Some(3)]] {
        let fleet = Fleet::new(1, |_| list(secrets));
        fleet.on_host(|| async {
            let (data, sources) = four_pieces().await;
            let code = Code::new(4, 2).unwrap();
            let slices: Vec<&[u8]> = data.iter().map(|piece| &piece[..]).collect();
            let parity = [0, 1].map(|number| scalar::parity(&code, number, &slices));
            let factors = |piece| (0..4).map(|column| code.coefficient(piece, column)).collect();
            let targets = vec![
                Target { piece: value(1, 10, 10_000), factors: factors(4) },
                Target { piece: value(0, 11, 10_000), factors: factors(5) },
                Target { piece: blocks(2, 100, 10_000), factors: factors(1) },
                Target { piece: value(2, 12, 9_999), factors: factors(2) },
            ];
            let task = Task { sources, targets, guards: Vec::new(), peers: peers_of_0() };
            let found = answers(0, &task).await.unwrap();
            let sums: Vec<u32> = data.iter().map(|piece| crc32c::crc32c(piece)).collect();
            assert_eq!(found.sources, sums);
            let wanted = [&parity[0], &parity[1], &data[1], &data[2]];
            let stored = wanted.map(|bytes| (crc32c::crc32c(bytes), Stored::Yes));
            assert_eq!(found.targets, stored);
            assert_eq!(retrieve(1, 10).await.as_ref(), Some(&parity[0]));
            assert_eq!(retrieve(0, 11).await.as_ref(), Some(&parity[1]));
            assert_eq!(retrieve(2, 12).await.as_ref(), Some(&data[2]));
            let block = Block::open(&connect(2).await, NSID_BLOCK).unwrap();
            let written = block.read(100 * 4096, 3 * 4096).await.unwrap();
            assert_eq!(&written[..10_000], &data[1][..]);
            assert!(written[10_000..].iter().all(|byte| *byte == 0), "the last block is padded");

            // Drive 2 has lost nothing, and repairs piece 1 of drive 1 onto itself.
            let decoder = code.decoder(&[0, 2, 3, 4], &[1]).unwrap();
            let sources = vec![
                value(1, 0, 10_000),
                blocks(0, 7, 9_999),
                value(2, 3, 1),
                value(2, 10, 10_000),
            ];
            let piece = expecting(value(0, 20, 10_000), &data[1]);
            let targets = vec![Target { piece, factors: decoder.factors(0).to_vec() }];
            let peers = vec![nqn(0), nqn(1)];
            let task = Task { sources, targets, guards: Vec::new(), peers };
            let result = execute(2, &task, Output::Completion).await;
            let expected = 1 << 32 | u64::from(crc32c::crc32c(&data[1]));
            assert_eq!(result.unwrap(), expected);
            assert_eq!(retrieve(2, 20).await.as_ref(), Some(&data[1]));
        });
    }
}

#[test]
fn what_differs_from_its_digest_is_neither_used_nor_stored() {
    let fleet = Fleet::new(2, |_| list([None; 3]));
    fleet.on_host(|| async {
        let (data, sources) = four_pieces().await;
        let target = |piece| Target { piece, factors: vec![1, 2, 3, 4] };
        let task = |sources: &[Piece], piece| Task {
            sources: sources.to_vec(),
            targets: vec![target(piece)],
            guards: Vec::new(),
            peers: peers_of_0(),
        };
        // A peer that lies, or has another version of the piece.
        for (at, wrong) in [(1, &data[0]), (0, &data[1])] {
            let mut lying = sources.clone();
            lying[at] = expecting(lying[at], wrong);
            let refused = execute(0, &task(&lying, value(1, 10, 9)), Output::Completion).await;
            assert_eq!(status(refused), Status::UNRECOVERED_ERROR);
        }
        let unlike = expecting(value(1, 10, 10_000), &data[0]);
        let refused = execute(0, &task(&sources, unlike), Output::Completion).await;
        assert_eq!(status(refused), Status::UNRECOVERED_ERROR);
        // Missing ones, and ones of another length, here and there.
        for wrong in [value(0, 1, 10_000), value(1, 0, 10_000), value(0, 0, 9_999), value(1, 1, 5)]
        {
            let mut lacking = sources.clone();
            lacking[1] = wrong;
            let refused = execute(0, &task(&lacking, value(1, 10, 9)), Output::Completion).await;
            assert_eq!(status(refused), Status::SOURCE_MISSING, "{wrong:?}");
        }
        assert_eq!(retrieve(1, 10).await, None, "nothing was stored");
    });
}

#[test]
fn a_drive_goes_nowhere_but_to_its_peers_and_serves_no_execution_of_theirs() {
    let fleet = Fleet::new(3, |_| list([None; 3]));
    fleet.on_host(|| async {
        store(STRANGER, 1, b"a").await;
        let factors = vec![1];
        let task = |peer: u8, name: usize| Task {
            sources: vec![value(peer, 1, 1)],
            targets: vec![Target { piece: value(0, 2, 1), factors: factors.clone() }],
            guards: Vec::new(),
            peers: vec![nqn(name)],
        };
        let unknown = execute(0, &task(1, STRANGER), Output::Completion).await;
        assert_eq!(status(unknown), Status::PEER_UNKNOWN);
        // A peer that is named and not used must be known, too.
        let unused = execute(0, &task(0, STRANGER), Output::Completion).await;
        assert_eq!(status(unused), Status::PEER_UNKNOWN);
        // Its own name is its own place.
        store(0, 1, b"a").await;
        execute(0, &task(1, 0), Output::Completion).await.unwrap();
        // A host that has the name of a peer may not execute.
        let options = Options { host_nqn: nqn(1), ..options() };
        let peer = Controller::connect(&address(0), &options).await.unwrap();
        let compute = Compute::open(&peer, NSID_COMPUTE).unwrap();
        let refused = compute.execute(COMBINE, &task(0, 1).execution(Output::Completion)).await;
        assert_eq!(status(refused), Status::OPERATION_DENIED);
        let kv = Kv::open(&peer, NSID_OBJECTS).unwrap();
        assert!(kv.exist(&Key::new(&key(1)).unwrap()).await.unwrap());
    });
}

#[test]
fn secrets_that_differ_keep_drives_apart() {
    // Drive 1 knows another secret of drive 0 than drive 0 itself.
    let lists = |index: usize| list([Some(if index == 1 { 9 } else { 1 }), Some(2), Some(3)]);
    let fleet = Fleet::new(4, lists);
    fleet.on_host(|| async {
        store(1, 1, b"a").await;
        store(2, 1, b"a").await;
        let copy = |to| Target { piece: value(0, to, 1), factors: vec![1] };
        let from = |name: usize, to| Task {
            sources: vec![value(1, 1, 1)],
            targets: vec![copy(to)],
            guards: Vec::new(),
            peers: vec![nqn(name)],
        };
        let refused = execute(0, &from(1, 2), Output::Completion).await;
        assert_eq!(status(refused), Status::PEER_FAILED);
        execute(0, &from(2, 3), Output::Completion).await.unwrap();
        assert_eq!((retrieve(0, 2).await, retrieve(0, 3).await), (None, Some(b"a".to_vec())));
        // A host that only has the name of a drive is not served.
        let options = Options { host_nqn: nqn(2), ..options() };
        assert!(Controller::connect(&address(0), &options).await.is_err());
    });
}

#[test]
fn drives_that_gather_from_each_other_do_not_wait_in_a_circle() {
    let fleet = Fleet::new(5, |_| list([None; 3]));
    fleet.on_host(|| async {
        const SIZE: usize = 200_000;
        for drive in 0..3 {
            store(drive, 1, &bytes(drive as u64, SIZE)).await;
        }
        let mut running = Vec::new();
        for round in 0..8 {
            for drive in 0..3usize {
                let others: Vec<usize> = (0..3).filter(|other| *other != drive).collect();
                let number = 100 + round;
                let target = |peer, factors| Target { piece: value(peer, number, SIZE), factors };
                let task = Task {
                    sources: vec![value(0, 1, SIZE), value(1, 1, SIZE), value(2, 1, SIZE)],
                    targets: vec![target(0, vec![1, 1, 1])],
                    guards: Vec::new(),
                    peers: others.iter().map(|other| nqn(*other)).collect(),
                };
                running.push(spawn(Class::Foreground, async move {
                    execute(drive, &task, Output::Completion).await
                }));
            }
        }
        let mut results = Vec::new();
        for one in running {
            results.push(one.await.unwrap());
        }
        assert!(results.iter().all(|result| *result == results[0]), "one sum in any order");
        assert!(now().ns() < 20_000_000_000, "no command waited for a limit of time");
    });
}

#[test]
fn a_peer_that_cannot_be_reached_costs_its_pieces_only() {
    let fleet = Fleet::new(6, |_| list([None; 3]));
    fleet.on_host(|| async {
        store(0, 1, b"abc").await;
        store(1, 1, b"xyz").await;
    });
    fleet.world.partition(fleet.drives[0].machine, fleet.drives[1].machine);
    let began = fleet.world.now();
    fleet.on_host(|| async {
        let targets = [1, 2, 0].map(|peer| Target { piece: value(peer, 2, 3), factors: vec![1] });
        let sources = vec![value(0, 1, 3)];
        let task =
            Task { sources, targets: targets.to_vec(), guards: Vec::new(), peers: peers_of_0() };
        let found = answers(0, &task).await.unwrap();
        let outcomes: Vec<Stored> = found.targets.iter().map(|(_, stored)| *stored).collect();
        assert_eq!(outcomes, [Stored::Lost, Stored::Yes, Stored::Yes]);
        // Without answers a piece that is not stored is a failure.
        let untold = execute(0, &task, Output::Completion).await;
        assert_eq!(status(untold), Status::PEER_FAILED);
        // A source cannot be done without.
        let task = Task { sources: vec![value(1, 1, 3)], ..task };
        assert_eq!(status(answers(0, &task).await), Status::PEER_FAILED);
    });
    let took = fleet.world.now().since(began);
    assert!(took < Duration::from_secs(25), "a host would have given up: {took:?}");
    fleet.world.heal(fleet.drives[0].machine, fleet.drives[1].machine);
    fleet.on_host(|| async {
        let targets = vec![Target { piece: value(0, 3, 3), factors: vec![1] }];
        let task = Task {
            sources: vec![value(1, 1, 3)],
            targets,
            guards: Vec::new(),
            peers: peers_of_0(),
        };
        execute(0, &task, Output::Completion).await.unwrap();
        assert_eq!(retrieve(0, 3).await, Some(b"xyz".to_vec()));
    });
}
