//! The host's side of one authentication.
//!
//! Does no I/O and draws no random numbers. A step may exponentiate, which takes milliseconds.
//! Invariant: a host that has a secret of the controller is done only after the controller has
//! proven that it knows it.

use zeroize::Zeroizing;

use super::controller::length;
use super::crypto::{self, Prover};
use super::hash::{Hash, same};
use super::message::{self, Challenge, Id, Proposal, Reason, Reply, Success1};
use super::{Entropy, Group, Keys, Offer};

/// Next action of the host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next {
    /// Send this message, then receive.
    Exchange(Vec<u8>),
    /// Send this last message: both sides are authenticated.
    Confirm(Vec<u8>),
    /// Nothing: the host is authenticated, and the controller's proof was not requested.
    Done,
    /// The controller refused, for this reason; the exchange is over.
    Refused(Reason),
    /// The controller failed its proof: send it this message, and close the connection.
    Distrust {
        /// The message for it.
        message: Vec<u8>,
        /// Reason.
        reason: Reason,
    },
}

#[derive(Debug)]
enum State {
    /// Expects a challenge.
    Challenge,
    /// Expects Success1, with this response if the controller was challenged.
    Success {
        hash: Hash,
        expected: Option<Zeroizing<Vec<u8>>>,
    },
    Ended,
}

/// One authentication of one queue.
#[derive(Debug)]
pub struct Host {
    keys: Keys,
    offer: Offer,
    entropy: Entropy,
    transaction: u16,
    state: State,
}

impl Host {
    /// Returns an authentication before its first message; `transaction` numbers this host's
    /// authentications.
    pub fn new(keys: Keys, offer: Offer, transaction: u16, entropy: Entropy) -> Self {
        Self { keys, offer, entropy, transaction, state: State::Challenge }
    }

    /// Returns the first message to send.
    pub fn negotiate(&self) -> Vec<u8> {
        let (hashes, groups) = (self.offer.hashes.clone(), self.offer.groups.clone());
        Proposal { transaction: self.transaction, hashes, groups }.encode()
    }

    /// Takes a message of the controller.
    pub fn receive(&mut self, bytes: &[u8]) -> Next {
        if let Some(reason) = message::failed(bytes, Id::FAILURE1) {
            self.state = State::Ended;
            return Next::Refused(reason);
        }
        let next = match std::mem::replace(&mut self.state, State::Ended) {
            State::Challenge => self.challenge(bytes).map(Next::Exchange),
            State::Success { hash, expected } => self.success(hash, expected.as_deref(), bytes),
            State::Ended => Err(Reason::MESSAGE),
        };
        next.unwrap_or_else(|reason| {
            self.state = State::Ended;
            let message = message::failure(Id::FAILURE2, self.transaction, reason);
            Next::Distrust { message, reason }
        })
    }

    fn challenge(&mut self, bytes: &[u8]) -> Result<Vec<u8>, Reason> {
        message::expect(bytes, Id::CHALLENGE, self.transaction)?;
        let challenge = Challenge::parse(bytes).ok_or(Reason::PAYLOAD)?;
        let hash = Hash::from_id(challenge.hash());
        let hash = hash.filter(|hash| self.offer.hashes.contains(hash)).ok_or(Reason::HASH)?;
        let group = Group::from_id(challenge.group());
        let group = group.filter(|group| self.offer.groups.contains(group));
        let group = group.ok_or(Reason::GROUP)?;
        let (size, public_bytes) = (hash.bytes(), usize::from(challenge.public_bytes()));
        if usize::from(challenge.hash_bytes()) != size || public_bytes != group.bytes() {
            return Err(Reason::PAYLOAD);
        }
        let value = message::part(bytes, Challenge::SIZE, size)?;
        let peer = message::part(bytes, Challenge::SIZE + size, public_bytes)?;
        let exponent = self.entropy.exponent();
        let shared = match group {
            Group::Null => None,
            _ => Some(group.shared(exponent, peer).ok_or(Reason::PAYLOAD)?),
        };
        let (keys, sequence) = (&self.keys, challenge.sequence());
        let theirs = crypto::Challenge {
            hash,
            value,
            sequence,
            transaction: self.transaction,
            secure_channel: 0,
            shared: shared.as_ref().map(|shared| shared.as_slice()),
        };
        let (me, drive) = (&keys.host_nqn, &keys.subsystem_nqn);
        let response = theirs.response(Prover::Host, &keys.host, me, drive);
        let mut fixed = Reply::zeroed();
        let public = group.public(exponent);
        fixed.set_hash_bytes(length(size)).set_public_bytes(length(public.len()));
        let mut mine = vec![0; size];
        let mut expected = None;
        if let Some(secret) = &keys.controller {
            mine = self.entropy.challenge(hash);
            let sequence = self.entropy.sequence();
            fixed.set_challenges(1).set_sequence(sequence);
            let mine = crypto::Challenge { value: &mine, sequence, ..theirs };
            expected = Some(mine.response(Prover::Controller, secret, drive, me));
        }
        self.state = State::Success { hash, expected };
        let parts: [&[u8]; 3] = [&response, &mine, &public];
        Ok(message::compose(Id::REPLY, self.transaction, fixed.as_bytes(), &parts))
    }

    fn success(
        &self,
        hash: Hash,
        expected: Option<&Vec<u8>>,
        bytes: &[u8],
    ) -> Result<Next, Reason> {
        message::expect(bytes, Id::SUCCESS1, self.transaction)?;
        let success = Success1::parse(bytes).ok_or(Reason::PAYLOAD)?;
        if usize::from(success.hash_bytes()) != hash.bytes() {
            return Err(Reason::PAYLOAD);
        }
        let Some(expected) = expected else { return Ok(Next::Done) };
        if success.responds() & 1 == 0 {
            return Err(Reason::FAILED);
        }
        let response = message::part(bytes, Success1::SIZE, hash.bytes())?;
        if !same(expected, response) {
            return Err(Reason::FAILED);
        }
        Ok(Next::Confirm(message::compose(Id::SUCCESS2, self.transaction, &[0; 16], &[])))
    }
}
