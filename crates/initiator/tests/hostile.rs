//! Hosts and drives that break the rules: nothing panics, nothing hangs, every command in flight
//! ends at once with an error that says what happened, and what may go on goes on.

#![allow(clippy::unwrap_used)]

mod common;

use std::time::Duration;

use common::drive::{BLOCK_NSID, Behaviour, Fault, KV_NSID};
use common::{everywhere, in_worlds, on_loopback};
use csd_initiator::{Address, Block, Controller, Digests, Error, Kv, Options};
use csd_nvme::kv::Key;
use csd_nvme::status::Status;
use csd_reactor::{Buffer, Class, now, spawn};

fn faulty(fault: Fault) -> Behaviour {
    Behaviour { fault: Some(fault), ..Behaviour::default() }
}

fn options() -> Options {
    Options {
        digests: Digests { header: true, data: true },
        // They only end tests that hang.
        command_timeout: Duration::from_secs(250),
        connect_timeout: Duration::from_secs(250),
        ..Options::default()
    }
}

/// Reads while another command is in flight on the same controller, and returns both errors: the
/// fault must end the controller for both.
async fn read_against(controller: &Controller) -> [Error; 2] {
    let block = Block::open(controller, BLOCK_NSID).unwrap();
    let other = block.clone();
    let other = spawn(Class::Foreground, async move { other.read(512, 4096).await });
    let error = block.read(0, 65_536).await.unwrap_err();
    let others = other.await.unwrap_err();
    assert!(controller.closed().is_some(), "the controller is closed");
    let kv = Kv::open(controller, KV_NSID).unwrap();
    let key = Key::new(b"k").unwrap();
    assert!(kv.exist(&key).await.is_err(), "and stays so");
    [error, others]
}

macro_rules! ends_the_controller {
    ($($name:ident: $fault:expr, $pattern:pat, $words:expr;)*) => { $(
        #[test]
        fn $name() {
            everywhere(&faulty($fault), |address, _| Box::pin(async move {
                let controller = Controller::connect(&address, &options()).await.unwrap();
                for error in read_against(&controller).await {
                    let text = error.to_string();
                    assert!(matches!(error, $pattern), "{error:?}");
                    assert!(text.contains($words), "{text}");
                    assert!(text.contains(&address.to_string()), "{text}");
                }
            }));
        }
    )* };
}

ends_the_controller! {
    an_answer_to_no_command: Fault::WrongCid, Error::Protocol { .. }, "Invalid PDU Header Field";
    more_data_than_asked_for: Fault::TooMuchData, Error::Protocol { .. }, "Out of Range";
    data_at_the_wrong_place: Fault::WrongOffset, Error::Protocol { .. }, "Out of Range";
    bytes_that_are_no_pdu: Fault::Garbage, Error::Protocol { .. }, "transport error";
    a_terminate_request: Fault::Terminate, Error::Protocol { .. }, "Limit Exceeded";
    an_early_end: Fault::Close, Error::Lost { .. }, "connection was lost";
}

#[test]
fn a_second_answer_to_a_command_ends_the_controller() {
    everywhere(&faulty(Fault::AnswerTwice), |address, _| {
        Box::pin(async move {
            let controller = Controller::connect(&address, &options()).await.unwrap();
            let block = Block::open(&controller, BLOCK_NSID).unwrap();
            block.read(0, 4096).await.unwrap(); // the first answer is lawful
            while controller.closed().is_none() {
                csd_reactor::sleep(Duration::from_millis(1)).await;
            }
            let error = block.read(0, 4096).await.unwrap_err();
            assert!(matches!(error, Error::Protocol { .. }), "{error:?}");
        })
    });
}

/// Sends reads that stay unanswered; returns the time until they fail.
async fn silence(address: &Address) -> Duration {
    let options = Options { command_timeout: Duration::from_millis(300), ..options() };
    let controller = Controller::connect(address, &options).await.unwrap();
    let begun = now();
    for error in read_against(&controller).await {
        assert!(matches!(error, Error::Timeout { what: "Read", .. }), "{error:?}");
    }
    let took = begun.elapsed();
    assert!(took >= Duration::from_millis(300), "{took:?}");
    took
}

#[test]
fn silence_ends_in_a_timeout() {
    on_loopback(&faulty(Fault::Silence), |address, _| {
        Box::pin(async move {
            silence(&address).await;
        })
    });
    in_worlds(&faulty(Fault::Silence), |address, _| {
        Box::pin(async move {
            let took = silence(&address).await;
            assert!(took < Duration::from_millis(900), "both wait at once: {took:?}");
        })
    });
}

/// Writes more than one request's worth of data; the error.
async fn write_against(controller: &Controller) -> Error {
    let block = Block::open(controller, BLOCK_NSID).unwrap();
    block.write(0, vec![Buffer::zeroed(512 << 10)], false).await.unwrap_err()
}

#[test]
fn a_request_beyond_the_data_ends_the_controller() {
    everywhere(&faulty(Fault::R2tBeyond), |address, _| {
        Box::pin(async move {
            let controller = Controller::connect(&address, &options()).await.unwrap();
            let error = write_against(&controller).await;
            assert!(error.to_string().contains("Out of Range"), "{error}");
            assert!(matches!(controller.closed(), Some(Error::Protocol { .. })));
        })
    });
}

#[test]
fn two_requests_at_once_end_the_controller() {
    everywhere(&faulty(Fault::R2tTwice), |address, _| {
        Box::pin(async move {
            let controller = Controller::connect(&address, &options()).await.unwrap();
            let error = write_against(&controller).await;
            assert!(error.to_string().contains("R2T Limit Exceeded"), "{error}");
        })
    });
}

#[test]
fn a_write_that_fails_early_keeps_the_connection() {
    everywhere(&faulty(Fault::AnswerEarly), |address, _| {
        Box::pin(async move {
            let controller = Controller::connect(&address, &options()).await.unwrap();
            for _ in 0..5 {
                let error = write_against(&controller).await;
                assert_eq!(error.status(), Some(Status::WRITE_FAULT), "{error}");
                let kv = Kv::open(&controller, KV_NSID).unwrap();
                let (key, value) = (Key::new(b"k").unwrap(), vec![3; 50_000]);
                kv.store(&key, vec![Buffer::from_slice(&value)], 0).await.unwrap();
                assert_eq!(*kv.retrieve(&key, 50_000).await.unwrap().unwrap(), value[..]);
            }
        })
    });
}

#[test]
fn damaged_data_fails_its_command_alone() {
    everywhere(&faulty(Fault::BadDigest), |address, _| {
        Box::pin(async move {
            let controller = Controller::connect(&address, &options()).await.unwrap();
            let block = Block::open(&controller, BLOCK_NSID).unwrap();
            for len in [512, 65_536] {
                let error = block.read(0, len).await.unwrap_err();
                assert!(matches!(error, Error::Damaged { what: "Read", .. }), "{error:?}");
            }
            block.flush().await.unwrap();
        })
    });
}

#[test]
fn a_read_that_is_too_short_is_not_passed_on() {
    everywhere(&faulty(Fault::ShortData), |address, _| {
        Box::pin(async move {
            let controller = Controller::connect(&address, &options()).await.unwrap();
            let block = Block::open(&controller, BLOCK_NSID).unwrap();
            let error = block.read(0, 4096).await.unwrap_err();
            assert!(error.to_string().contains("not as long as asked for"), "{error}");
        })
    });
}

#[test]
fn connecting_to_a_mute_drive_times_out() {
    everywhere(&faulty(Fault::Mute), |address, _| {
        Box::pin(async move {
            let short = Duration::from_millis(300);
            let options = Options { connect_timeout: short, ..options() };
            let error = Controller::connect(&address, &options).await.unwrap_err();
            assert!(matches!(error, Error::Timeout { what: "the connection", .. }), "{error:?}");
        })
    });
}

#[test]
fn a_refused_connect_says_why() {
    everywhere(&faulty(Fault::Refuse), |address, drive| {
        Box::pin(async move {
            let error = Controller::connect(&address, &options()).await.unwrap_err();
            assert_eq!(error.status(), Some(Status::CONNECT_INVALID_HOST));
            while drive.sessions.get() != (1, 1) {
                csd_reactor::sleep(Duration::from_millis(1)).await;
            }
        })
    });
}

#[test]
fn a_drive_that_does_not_initialise_is_refused() {
    everywhere(&faulty(Fault::NoIcResp), |address, _| {
        Box::pin(async move {
            let error = Controller::connect(&address, &options()).await.unwrap_err();
            assert!(matches!(error, Error::Protocol { .. }), "{error:?}");
        })
    });
}

#[test]
fn another_subsystem_and_a_closed_port_are_told_apart() {
    everywhere(&Behaviour::default(), |address, _| {
        Box::pin(async move {
            let mut other = address.clone();
            other.nqn.push('x');
            let error = Controller::connect(&other, &options()).await.unwrap_err();
            assert_eq!(error.status(), Some(Status::CONNECT_INVALID_PARAMETERS), "{error:?}");
            let mut nowhere = address.clone();
            nowhere.socket = std::net::SocketAddr::from(([127, 0, 0, 1], 1)).into();
            let error = Controller::connect(&nowhere, &options()).await.unwrap_err();
            assert!(matches!(error, Error::Unreachable { .. }), "{error:?}");
        })
    });
}
