//! Authentication: both sides against each other in memory, and against liars.

#![allow(clippy::unwrap_used)]

use csd_nvme::auth::controller::{Controller, Outcome};
use csd_nvme::auth::host::{Host, Next};
use csd_nvme::auth::{Entropy, Group, Hash, Keys, Offer, Reason, Secret};
use csd_nvme::status::Status;
use proptest::prelude::*;

const ROOM: usize = 4096;

fn secret(byte: u8) -> Secret {
    Secret::new(Some(Hash::Sha256), &[byte; 32]).unwrap()
}

fn keys(host: u8, controller: Option<u8>) -> Keys {
    Keys {
        host_nqn: "nqn.2014-08.org.nvmexpress:uuid:host".to_owned(),
        subsystem_nqn: "nqn.2026-11.io.csdstore:drive".to_owned(),
        host: secret(host),
        controller: controller.map(secret),
    }
}

fn entropy(byte: u8) -> Entropy {
    Entropy::draw(|bytes| bytes.fill(byte))
}

fn only(hash: Hash, group: Group) -> Offer {
    Offer { hashes: vec![hash], groups: vec![group] }
}

fn sides(host: Keys, drive: Keys, offer: Offer) -> (Host, Controller) {
    let controller = Controller::new(drive, Offer::default(), entropy(0xC1));
    (Host::new(host, offer, 7, entropy(0x51)), controller)
}

/// Lets both talk until the host is at its end; `tamper` may change any message on its way.
fn talk(
    host: &mut Host,
    controller: &mut Controller,
    mut tamper: impl FnMut(usize, &mut Vec<u8>),
) -> Next {
    let mut message = host.negotiate();
    for step in 0.. {
        tamper(2 * step, &mut message);
        controller.send(&message);
        let mut answer = controller.receive(ROOM).unwrap();
        tamper(2 * step + 1, &mut answer);
        // A drive may pad its answer to the host's buffer.
        answer.resize(ROOM, 0);
        match host.receive(&answer) {
            Next::Exchange(next) => message = next,
            Next::Confirm(last) => {
                controller.send(&last);
                return Next::Confirm(last);
            }
            Next::Distrust { message, reason } => {
                controller.send(&message);
                return Next::Distrust { message, reason };
            }
            end => return end,
        }
    }
    unreachable!("a host ends after three messages")
}

fn null() -> Offer {
    only(Hash::Sha256, Group::Null)
}

#[test]
fn every_hash_and_group_authenticates_one_way_and_both_ways() {
    for hash in Hash::ALL {
        for group in Group::ALL {
            // Long groups take long: each with one hash and in one direction is enough.
            let long = group.bytes() > 384;
            if long && usize::from(group.id()) % 3 + 1 != usize::from(hash.id()) {
                continue;
            }
            for mutual in [None, Some(2)] {
                if long && mutual.is_none() {
                    continue;
                }
                let (mut host, mut controller) =
                    sides(keys(1, mutual), keys(1, Some(2)), only(hash, group));
                let end = talk(&mut host, &mut controller, |_, _| ());
                assert_eq!(matches!(end, Next::Confirm(_)), mutual.is_some(), "{end:?}");
                assert_eq!(matches!(end, Next::Done), mutual.is_none());
                assert_eq!(controller.outcome(), Outcome::Authenticated, "{hash:?} {group:?}");
            }
        }
    }
}

#[test]
fn wrong_secrets_are_refused_on_either_side() {
    let (mut host, mut controller) = sides(keys(9, Some(2)), keys(1, Some(2)), null());
    let end = talk(&mut host, &mut controller, |_, _| ());
    assert_eq!(end, Next::Refused(Reason::FAILED));
    assert_eq!(controller.outcome(), Outcome::Failed);
    let (mut host, mut controller) = sides(keys(1, Some(9)), keys(1, Some(2)), null());
    let end = talk(&mut host, &mut controller, |_, _| ());
    assert!(matches!(end, Next::Distrust { reason: Reason::FAILED, .. }), "{end:?}");
    assert_eq!(controller.outcome(), Outcome::Failed, "the controller was told");
    // A drive without a secret of its own cannot prove itself.
    let (mut host, mut controller) = sides(keys(1, Some(2)), keys(1, None), null());
    assert_eq!(talk(&mut host, &mut controller, |_, _| ()), Next::Refused(Reason::FAILED));
    // And one that leaves its proof out is not believed.
    let (mut host, mut controller) = sides(keys(1, Some(2)), keys(1, Some(2)), null());
    let end = talk(&mut host, &mut controller, |step, message| {
        if step == 3 {
            message[8] = 0;
        }
    });
    assert!(matches!(end, Next::Distrust { reason: Reason::FAILED, .. }), "{end:?}");
}

#[test]
fn a_replayed_reply_proves_nothing() {
    let (mut host, mut controller) = sides(keys(1, None), keys(1, None), null());
    let mut reply = Vec::new();
    let end = talk(&mut host, &mut controller, |step, message| {
        if step == 2 {
            reply = message.clone();
        }
    });
    assert_eq!(end, Next::Done);
    let mut again = Controller::new(keys(1, None), Offer::default(), entropy(0xC2));
    again.send(&host.negotiate());
    again.receive(ROOM).unwrap();
    again.send(&reply);
    assert_eq!(again.receive(ROOM).unwrap()[..2], [0x00, 0xF1], "failure1");
    assert_eq!(again.outcome(), Outcome::Failed);
}

#[test]
fn a_controllers_challenge_thrown_back_is_refused() {
    let (host, mut controller) = sides(keys(1, Some(1)), keys(1, Some(1)), null());
    controller.send(&host.negotiate());
    let challenge = controller.receive(ROOM).unwrap();
    // The host draws, by an unlikely accident or by malice, what the controller drew.
    let mut host = Host::new(keys(1, Some(1)), null(), 7, entropy(0xC1));
    let Next::Exchange(reply) = host.receive(&challenge) else { panic!("no reply") };
    controller.send(&reply);
    assert_eq!(host.receive(&controller.receive(ROOM).unwrap()), Next::Refused(Reason::PAYLOAD));
}

#[test]
fn a_changed_byte_of_any_message_authenticates_nobody() {
    let (mut host, mut controller) = sides(keys(1, Some(2)), keys(1, Some(2)), null());
    let mut lengths = [0; 4];
    talk(&mut host, &mut controller, |step, message| lengths[step] = message.len());
    // Bytes that nobody reads: reserved ones, identifiers beyond the counted ones.
    let unread = |step: usize, at: usize| match step {
        0 => at < 4 && at > 1 || at > 8 && at != 10 && at != 11 && at != 12 && at != 42,
        1 | 2 => matches!(at, 2 | 3 | 7) || step == 2 && at == 9,
        _ => matches!(at, 2 | 3 | 7 | 9..=15),
    };
    for (step, length) in lengths.into_iter().enumerate() {
        for at in (0..length).filter(|at| !unread(step, *at)) {
            let (mut host, mut controller) = sides(keys(1, Some(2)), keys(1, Some(2)), null());
            let end = talk(&mut host, &mut controller, |now, message| {
                if now == step {
                    message[at] ^= 0x40 | 1;
                }
            });
            let both =
                matches!(end, Next::Confirm(_)) && controller.outcome() == Outcome::Authenticated;
            assert!(!both, "step {step}, byte {at}");
        }
    }
}

#[test]
fn messages_out_of_turn_fail_and_room_is_asked_for() {
    let (host, mut controller) = sides(keys(1, None), keys(1, None), null());
    controller.send(&host.negotiate());
    assert_eq!(controller.receive(48).unwrap().len(), 48, "as much room as it takes");
    controller.send(&host.negotiate());
    let failure = controller.receive(ROOM).unwrap();
    assert_eq!(failure, [0, 0xF1, 0, 0, 7, 0, 1, 7], "a second negotiate is out of order");
    assert_eq!(controller.outcome(), Outcome::Failed);
    controller.send(&host.negotiate());
    assert_eq!(controller.receive(ROOM), Err(Status::COMMAND_SEQUENCE_ERROR), "it stays failed");
    let mut early = sides(keys(1, None), keys(1, None), null()).1;
    assert_eq!(early.receive(ROOM), Err(Status::COMMAND_SEQUENCE_ERROR), "the host's turn");
    assert_eq!(early.outcome(), Outcome::Failed);
}

/// A host that repeats messages causes no further computation: each message advances the exchange
/// or ends it.
#[test]
fn an_exchange_computes_two_powers_at_most() {
    let begun = || {
        let offer = only(Hash::Sha256, Group::Ffdhe2048);
        let (host, mut controller) = sides(keys(1, None), keys(1, None), offer);
        controller.send(&host.negotiate());
        (host, controller)
    };
    let (_, mut controller) = begun();
    assert_eq!((controller.power(ROOM), controller.powers()), (Some(Group::Ffdhe2048), 0));
    for room in [4, 303, ROOM] {
        assert!(controller.receive(room).is_err(), "no room, and then it is over");
    }
    assert_eq!((controller.powers(), controller.outcome()), (0, Outcome::Failed));
    // A reply is looked at as far as that is cheap before anything is computed for it.
    let challenged = || {
        let (mut host, mut controller) = begun();
        let challenge = controller.receive(16 + 32 + 256).unwrap();
        assert_eq!((controller.powers(), controller.power(ROOM)), (1, None), "the host's turn");
        let Next::Exchange(reply) = host.receive(&challenge) else { panic!("no reply") };
        (controller, reply)
    };
    let cheap: [fn(&mut Vec<u8>); 5] = [
        |reply| reply[6] = 48,
        |reply| reply.truncate(300),
        |reply| reply[80..].fill(0),
        |reply| reply[80..].fill(0xFF),
        |reply| (reply[8], reply[12]) = (1, 1),
    ];
    for change in cheap {
        let (mut controller, mut reply) = challenged();
        change(&mut reply);
        controller.send(&reply);
        assert_eq!(controller.power(ROOM), None);
        assert_eq!(controller.receive(ROOM).unwrap()[..2], [0x00, 0xF1], "failure1");
        assert_eq!((controller.powers(), controller.outcome()), (1, Outcome::Failed));
    }
    let (mut controller, mut reply) = challenged();
    reply[16] ^= 1;
    controller.send(&reply);
    assert_eq!(controller.power(8), None, "no room");
    assert_eq!(controller.power(ROOM), Some(Group::Ffdhe2048));
    assert_eq!(controller.receive(ROOM).unwrap()[..2], [0x00, 0xF1]);
    for _ in 0..9 {
        controller.send(&reply);
        assert!(controller.receive(ROOM).is_err());
    }
    assert_eq!((controller.powers(), controller.outcome()), (2, Outcome::Failed));
}

#[test]
fn what_is_not_in_common_is_said() {
    let refused = |change: &dyn Fn(&mut Vec<u8>)| {
        let (mut host, mut controller) = sides(keys(1, None), keys(1, None), null());
        match talk(&mut host, &mut controller, |step, message| {
            if step == 0 {
                change(message);
            }
        }) {
            Next::Refused(reason) => reason,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(refused(&|message| message[12] = 77), Reason::HASH);
    assert_eq!(refused(&|message| message[42] = 77), Reason::GROUP);
    assert_eq!(refused(&|message| message[8] = 2), Reason::PROTOCOL);
    assert_eq!(refused(&|message| message[7] = 0), Reason::PROTOCOL);
    assert_eq!(refused(&|message| message[6] = 1), Reason::SECURE_CHANNEL);
    assert_eq!(refused(&|message| message[7] = 2), Reason::PAYLOAD);
    assert_eq!(refused(&|message| message[10] = 31), Reason::PAYLOAD);
    assert_eq!(refused(&|message| message.truncate(20)), Reason::PAYLOAD);
    assert_eq!(refused(&|message| message[1] = 2), Reason::MESSAGE);
}

/// Messages with a true head, so that they reach what reads their lengths.
fn noise() -> impl Strategy<Value = Vec<u8>> {
    let id = prop_oneof![Just(0u8), Just(1), Just(2), Just(3), Just(4), Just(0xF0), Just(0xF1)];
    (0..2u8, id, prop::collection::vec(any::<u8>(), 0..200)).prop_map(|(kind, id, mut bytes)| {
        let head = [kind, id, 0, 0, 7, 0];
        let count = bytes.len().min(head.len());
        bytes[..count].copy_from_slice(&head[..count]);
        bytes
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, ..Default::default() })]

    #[test]
    fn noise_neither_panics_nor_authenticates(
        messages in prop::collection::vec(noise(), 1..6),
        cut in 0..200usize,
        from in 0..3usize,
    ) {
        let (mut host, mut controller) = sides(keys(1, Some(2)), keys(1, Some(2)), null());
        if from > 0 {
            controller.send(&host.negotiate());
            let challenge = controller.receive(ROOM).unwrap();
            let next = host.receive(&challenge[..challenge.len().min(cut)]);
            if let (Next::Exchange(reply), 2) = (next, from) {
                controller.send(&reply[..reply.len().min(cut)]);
            }
        }
        for message in messages {
            controller.send(&message);
            let _ = controller.receive(ROOM);
            prop_assert_ne!(controller.outcome(), Outcome::Authenticated);
            let next = host.receive(&message);
            prop_assert!(!matches!(next, Next::Done | Next::Confirm(_)), "{:?}", next);
        }
    }
}
