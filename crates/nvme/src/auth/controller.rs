//! The controller's side of one authentication.
//!
//! Does no I/O and draws no random numbers. Only [`Controller::receive`] computes powers, which
//! takes milliseconds; [`Controller::power`] announces this. Invariants: every message advances the
//! exchange or ends it, and a power is computed only after all other checks of the host's messages
//! have passed, so an exchange computes at most two; a failed transaction stays failed; the host is
//! authenticated only after its response was verified and, if it demanded the controller's proof,
//! only after it accepted that.

use zeroize::Zeroizing;

use super::crypto::{self, Prover};
use super::hash::{Hash, same};
use super::message::{self, Challenge, Failure, Id, Proposal, Reason, Reply, Success1};
use super::{Entropy, Group, Keys, Offer};
use crate::status::Status;

/// State of an authentication.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// In progress.
    Pending,
    /// Success: the host has proven its identity.
    Authenticated,
    /// Failure: the connection must be closed.
    Failed,
}

/// Parameters that both sides agreed on.
#[derive(Debug)]
struct Agreed {
    transaction: u16,
    hash: Hash,
    group: Group,
    challenge: Vec<u8>,
}

/// The host's reply, after all checks that need no power.
#[derive(Debug)]
struct Proof {
    response: Vec<u8>,
    challenge: Vec<u8>,
    public: Vec<u8>,
    sequence: u32,
    mutual: bool,
}

#[derive(Debug)]
enum State {
    /// Expects Negotiate.
    Start,
    /// Holds a challenge for the host to fetch.
    Challenge(Agreed),
    /// Expects a reply.
    Reply(Agreed),
    /// Holds the verdict on the reply for the host to fetch.
    Verdict(Agreed, Proof),
    /// Expects Success2.
    Confirm(u16),
    /// Holds Failure1 for the host to fetch.
    Failure(Reason),
    Done,
    Failed,
}

/// One authentication of one queue.
#[derive(Debug)]
pub struct Controller {
    keys: Keys,
    offer: Offer,
    entropy: Entropy,
    transaction: u16,
    powers: u32,
    state: State,
}

impl Controller {
    /// Returns an authentication before its first message.
    pub fn new(keys: Keys, offer: Offer, entropy: Entropy) -> Self {
        Self { keys, offer, entropy, transaction: 0, powers: 0, state: State::Start }
    }

    /// Returns the state of the authentication.
    pub fn outcome(&self) -> Outcome {
        match self.state {
            State::Done => Outcome::Authenticated,
            State::Failed => Outcome::Failed,
            _ => Outcome::Pending,
        }
    }

    /// Returns the number of powers computed so far.
    pub fn powers(&self) -> u32 {
        self.powers
    }

    /// Takes a message of the host. The next [`Self::receive`] reports any error in it.
    pub fn send(&mut self, bytes: &[u8]) {
        let state = std::mem::replace(&mut self.state, State::Failed);
        self.state = match state {
            State::Done | State::Failed | State::Failure(_) => State::Failed,
            _ if message::failed(bytes, Id::FAILURE2).is_some() => State::Failed,
            state => self.step(state, bytes).unwrap_or_else(State::Failure),
        };
    }

    fn step(&mut self, state: State, bytes: &[u8]) -> Result<State, Reason> {
        match state {
            State::Start => self.negotiate(bytes).map(State::Challenge),
            State::Reply(agreed) => {
                let proof = self.reply(&agreed, bytes)?;
                Ok(State::Verdict(agreed, proof))
            }
            State::Confirm(transaction) => {
                message::expect(bytes, Id::SUCCESS2, transaction)?;
                message::part(bytes, 0, 16)?;
                Ok(State::Done)
            }
            _ => Err(Reason::MESSAGE),
        }
    }

    /// Returns the group in which [`Self::receive`] of `room` bytes would compute a power; `None`
    /// when it would compute none.
    pub fn power(&self, room: usize) -> Option<Group> {
        let (State::Challenge(agreed) | State::Verdict(agreed, _)) = &self.state else {
            return None;
        };
        let fits = self.next_bytes().is_some_and(|bytes| bytes <= room);
        Some(agreed.group).filter(|group| fits && *group != Group::Null)
    }

    /// Returns the length of the next message in bytes; for a verdict, the length of success.
    fn next_bytes(&self) -> Option<usize> {
        match &self.state {
            State::Challenge(agreed) => {
                Some(Challenge::SIZE + agreed.hash.bytes() + agreed.group.bytes())
            }
            State::Verdict(agreed, proof) => {
                Some(Success1::SIZE + if proof.mutual { agreed.hash.bytes() } else { 0 })
            }
            State::Failure(_) => Some(Failure::SIZE),
            _ => None,
        }
    }

    /// Returns the next message for a host that has room for `room` bytes.
    ///
    /// # Errors
    /// [`Status::COMMAND_SEQUENCE_ERROR`] if it is the host's turn, [`Status::INVALID_FIELD`] if
    /// the message is longer than the room; the authentication has then failed.
    pub fn receive(&mut self, room: usize) -> Result<Vec<u8>, Status> {
        let bytes = self.next_bytes();
        let state = std::mem::replace(&mut self.state, State::Failed);
        let bytes = bytes.ok_or(Status::COMMAND_SEQUENCE_ERROR)?;
        if bytes > room {
            return Err(Status::INVALID_FIELD);
        }
        let (message, next) = match state {
            State::Challenge(agreed) => (self.challenge(&agreed), State::Reply(agreed)),
            State::Verdict(agreed, proof) => match self.verdict(&agreed, &proof) {
                Ok(message) if proof.mutual => (message, State::Confirm(agreed.transaction)),
                Ok(message) => (message, State::Done),
                Err(reason) => (self.failure(reason), State::Failed),
            },
            State::Failure(reason) => (self.failure(reason), State::Failed),
            _ => unreachable!("nothing else has a next message"),
        };
        self.state = next;
        Ok(message)
    }

    fn failure(&self, reason: Reason) -> Vec<u8> {
        message::failure(Id::FAILURE1, self.transaction, reason)
    }

    fn negotiate(&mut self, bytes: &[u8]) -> Result<Agreed, Reason> {
        if let Some(head) = message::Head::parse(bytes) {
            self.transaction = head.transaction();
        }
        let proposal = Proposal::parse(bytes)?;
        let hash = self.offer.hashes.iter().find(|hash| proposal.hashes.contains(hash));
        let hash = *hash.ok_or(Reason::HASH)?;
        let group = self.offer.groups.iter().find(|group| proposal.groups.contains(group));
        let group = *group.ok_or(Reason::GROUP)?;
        let challenge = self.entropy.challenge(hash);
        Ok(Agreed { transaction: proposal.transaction, hash, group, challenge })
    }

    fn challenge(&mut self, agreed: &Agreed) -> Vec<u8> {
        self.powers += u32::from(agreed.group != Group::Null);
        let public = agreed.group.public(self.entropy.exponent());
        let mut fixed = Challenge::zeroed();
        fixed.set_hash_bytes(length(agreed.hash.bytes()));
        fixed.set_hash(agreed.hash.id()).set_group(agreed.group.id());
        fixed.set_public_bytes(length(public.len())).set_sequence(self.entropy.sequence());
        let parts: [&[u8]; 2] = [&agreed.challenge, &public];
        message::compose(Id::CHALLENGE, agreed.transaction, fixed.as_bytes(), &parts)
    }

    /// Parses a reply and makes every check but that of its response.
    fn reply(&self, agreed: &Agreed, bytes: &[u8]) -> Result<Proof, Reason> {
        message::expect(bytes, Id::REPLY, agreed.transaction)?;
        let reply = Reply::parse(bytes).ok_or(Reason::PAYLOAD)?;
        let (size, public_bytes) = (agreed.hash.bytes(), usize::from(reply.public_bytes()));
        if usize::from(reply.hash_bytes()) != size || public_bytes != agreed.group.bytes() {
            return Err(Reason::PAYLOAD);
        }
        let response = message::part(bytes, Reply::SIZE, size)?.to_vec();
        let challenge = message::part(bytes, Reply::SIZE + size, size)?.to_vec();
        let public = message::part(bytes, Reply::SIZE + 2 * size, public_bytes)?.to_vec();
        if agreed.group != Group::Null && !agreed.group.accepts(&public) {
            return Err(Reason::PAYLOAD);
        }
        let mutual = reply.challenges() & 1 == 1;
        // A challenge of the host that is ours, or none, would prove nothing.
        if mutual && (reply.sequence() == 0 || challenge == agreed.challenge) {
            return Err(Reason::PAYLOAD);
        }
        if mutual && self.keys.controller.is_none() {
            return Err(Reason::FAILED);
        }
        Ok(Proof { response, challenge, public, sequence: reply.sequence(), mutual })
    }

    /// Verifies the host's response; returns Success1, with the controller's own proof if the host
    /// wants it, or the reason of the failure.
    fn verdict(&mut self, agreed: &Agreed, proof: &Proof) -> Result<Vec<u8>, Reason> {
        let (hash, keys) = (agreed.hash, &self.keys);
        let mut shared = None;
        if agreed.group != Group::Null {
            self.powers += 1;
            let power = agreed.group.shared(self.entropy.exponent(), &proof.public);
            shared = Some(power.ok_or(Reason::PAYLOAD)?);
        }
        let mine = crypto::Challenge {
            hash,
            value: &agreed.challenge,
            sequence: self.entropy.sequence(),
            transaction: agreed.transaction,
            secure_channel: 0,
            shared: shared.as_ref().map(|shared| shared.as_slice()),
        };
        let right = mine.response(Prover::Host, &keys.host, &keys.host_nqn, &keys.subsystem_nqn);
        if !same(&right, &proof.response) {
            return Err(Reason::FAILED);
        }
        let mut fixed = Success1::zeroed();
        fixed.set_hash_bytes(length(hash.bytes()));
        let mut ours = Zeroizing::new(Vec::new());
        if proof.mutual {
            let secret = keys.controller.as_ref().ok_or(Reason::FAILED)?;
            let (value, sequence) = (&proof.challenge[..], proof.sequence);
            let theirs = crypto::Challenge { value, sequence, ..mine };
            let (me, peer) = (&keys.subsystem_nqn, &keys.host_nqn);
            ours = theirs.response(Prover::Controller, secret, me, peer);
            fixed.set_responds(1);
        }
        Ok(message::compose(Id::SUCCESS1, agreed.transaction, fixed.as_bytes(), &[&ours]))
    }
}

/// Returns a length that fits its field: at most 1,024.
pub(super) fn length<T: TryFrom<usize>>(bytes: usize) -> T {
    T::try_from(bytes).unwrap_or_else(|_| unreachable!("hash and group values are short"))
}
