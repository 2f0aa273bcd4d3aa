//! Authentication of a queue that was just connected, in both directions if this host has a secret
//! of the drive.
//!
//! [`csd_nvme::auth`] implements the protocol, and its arithmetic runs on a compute thread.
//! Invariant: a host that has a secret of the drive uses no queue on which the drive has not proven
//! that it knows it.

use std::rc::Rc;
use std::sync::Arc;

use csd_nvme::auth::host::{Host, Next};
use csd_nvme::auth::{Entropy, Keys, MESSAGE_BYTES_MAX, Offer, message};
use csd_nvme::capsule::Sqe;
use csd_reactor::{Buffer, Class, compute_fn, random_bytes};

use super::admin;
use crate::association::Association;
use crate::connection::{Connection, Reply, Request};
use crate::{Address, Error, Options};

/// Modelled cost of a step: two exponentiations in a group of 3,072 bits.
const STEP_COST_NS: u64 = 5_000_000;

/// Authenticates a queue if the drive or this host requires it.
pub(super) async fn authenticate(
    association: &Association,
    connection: &Rc<Connection>,
    (address, options): (&Address, &Options),
    (qid, required): (u16, bool),
) -> Result<(), Error> {
    let failed =
        |reason: String| Error::Authentication { drive: Arc::clone(&association.drive), reason };
    let Some(keys) = options.secrets.keys(&options.host_nqn, &address.nqn) else {
        return match required {
            true => Err(failed(format!("it wants a secret of {}", options.host_nqn))),
            false => Ok(()),
        };
    };
    if !required {
        return match keys.controller {
            // Whoever leaves the question out may be anybody.
            Some(_) => Err(failed("it does not prove who it is".to_owned())),
            None => Ok(()),
        };
    }
    prove(association, connection, keys, qid).await?.map_err(failed)
}

/// Runs the protocol; the inner error is the reason of a failure.
async fn prove(
    association: &Association,
    connection: &Rc<Connection>,
    keys: Keys,
    qid: u16,
) -> Result<Result<(), String>, Error> {
    let entropy = Entropy::draw(random_bytes);
    let mut host = Host::new(keys, Offer::default(), qid, entropy);
    let mut next = Next::Exchange(host.negotiate());
    loop {
        match next {
            Next::Exchange(text) => {
                send(association, connection, qid, &text).await?;
                let answer = receive(association, connection, qid).await?.data.to_vec();
                let stepped = compute_fn(Class::System, STEP_COST_NS, move || {
                    let next = host.receive(&answer);
                    (host, next)
                });
                match stepped.await {
                    Ok(stepped) => (host, next) = stepped,
                    Err(failed) => return Ok(Err(failed.to_string())),
                }
            }
            Next::Confirm(text) => {
                return send(association, connection, qid, &text).await.map(|_| Ok(()));
            }
            Next::Done => return Ok(Ok(())),
            Next::Refused(reason) => return Ok(Err(format!("it refused this host: {reason}"))),
            Next::Distrust { message, reason } => {
                // It is told if it still listens; this side has made up its mind.
                let _told = send(association, connection, qid, &message).await;
                return Ok(Err(format!("its proof does not hold: {reason}")));
            }
        }
    }
}

async fn send(
    association: &Association,
    connection: &Rc<Connection>,
    qid: u16,
    text: &[u8],
) -> Result<Reply, Error> {
    let sqe = message::send(u32::try_from(text.len()).expect("messages are short"));
    exchange(association, connection, qid, sqe, text, 0).await
}

async fn receive(
    association: &Association,
    connection: &Rc<Connection>,
    qid: u16,
) -> Result<Reply, Error> {
    let sqe = message::receive(MESSAGE_BYTES_MAX);
    exchange(association, connection, qid, sqe, &[], MESSAGE_BYTES_MAX).await
}

/// Sends one command. On the admin queue it waits for its turn; an I/O queue has no other user yet.
async fn exchange(
    association: &Association,
    connection: &Rc<Connection>,
    qid: u16,
    sqe: Sqe,
    data: &[u8],
    to_host: u32,
) -> Result<Reply, Error> {
    if qid == 0 {
        return admin(association, connection, sqe, data, to_host).await;
    }
    let payload = match data {
        [] => Vec::new(),
        data => vec![Buffer::from_slice(data)],
    };
    let what = "Authentication";
    let request = Request { sqe, what, payload, in_capsule: true, to_host, permit: None };
    connection.start(request)?.await.0
}
