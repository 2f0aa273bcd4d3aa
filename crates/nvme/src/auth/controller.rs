//! The controller's side of one authentication.
//!
//! Never: I/O or random numbers; a step may exponentiate, which takes milliseconds. Invariants: a
//! transaction that failed stays failed; the host is authenticated only after its response was
//! verified and, when it demanded the controller's proof, only after it has accepted that.

use zeroize::Zeroizing;

use super::crypto::{self, Hash, Prover, same};
use super::message::{self, Challenge, Id, Proposal, Reason, Reply, Success1};
use super::{Entropy, Group, Keys, Offer};
use crate::status::Status;

/// How far an authentication has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It goes on.
    Pending,
    /// The host has proven who it is.
    Authenticated,
    /// It failed: the connection is to be closed.
    Failed,
}

/// What was agreed on.
#[derive(Debug)]
struct Agreed {
    transaction: u16,
    hash: Hash,
    group: Group,
    challenge: Vec<u8>,
}

#[derive(Debug)]
enum State {
    /// Negotiate may come.
    Start,
    /// A challenge waits to be fetched.
    Challenge(Agreed),
    /// A reply may come.
    Reply(Agreed),
    /// Success1 waits to be fetched.
    Success {
        transaction: u16,
        message: Vec<u8>,
        mutual: bool,
    },
    /// Success2 may come.
    Confirm(u16),
    /// Failure1 waits to be fetched.
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
    state: State,
}

impl Controller {
    /// Before anything was said.
    pub fn new(keys: Keys, offer: Offer, entropy: Entropy) -> Self {
        Self { keys, offer, entropy, transaction: 0, state: State::Start }
    }

    /// How far it has come.
    pub fn outcome(&self) -> Outcome {
        match self.state {
            State::Done => Outcome::Authenticated,
            State::Failed => Outcome::Failed,
            _ => Outcome::Pending,
        }
    }

    /// Takes a message of the host. What is wrong with it is told by the next [`Self::receive`].
    pub fn send(&mut self, bytes: &[u8]) {
        let state = std::mem::replace(&mut self.state, State::Failed);
        self.state = match state {
            State::Done | State::Failed => State::Failed,
            _ if message::failed(bytes, Id::FAILURE2).is_some() => State::Failed,
            state => self.step(state, bytes).unwrap_or_else(State::Failure),
        };
    }

    fn step(&mut self, state: State, bytes: &[u8]) -> Result<State, Reason> {
        match state {
            State::Start => self.negotiate(bytes).map(State::Challenge),
            State::Reply(agreed) => self.reply(&agreed, bytes),
            State::Confirm(transaction) => {
                message::expect(bytes, Id::SUCCESS2, transaction)?;
                message::part(bytes, 0, 16)?;
                Ok(State::Done)
            }
            _ => Err(Reason::MESSAGE),
        }
    }

    /// The next message for a host that has room for `room` bytes.
    ///
    /// # Errors
    /// [`Status::COMMAND_SEQUENCE_ERROR`] when it is the host's turn, [`Status::INVALID_FIELD`]
    /// when the message is longer than the room; nothing has changed then.
    pub fn receive(&mut self, room: usize) -> Result<Vec<u8>, Status> {
        let message = match &self.state {
            State::Challenge(agreed) => self.challenge(agreed),
            State::Success { message, .. } => message.clone(),
            State::Failure(reason) => message::failure(Id::FAILURE1, self.transaction, *reason),
            _ => return Err(Status::COMMAND_SEQUENCE_ERROR),
        };
        if message.len() > room {
            return Err(Status::INVALID_FIELD);
        }
        self.state = match std::mem::replace(&mut self.state, State::Failed) {
            State::Challenge(agreed) => State::Reply(agreed),
            State::Success { transaction, mutual: true, .. } => State::Confirm(transaction),
            State::Success { .. } => State::Done,
            _ => State::Failed,
        };
        Ok(message)
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

    fn challenge(&self, agreed: &Agreed) -> Vec<u8> {
        let public = agreed.group.public(self.entropy.exponent());
        let mut fixed = Challenge::zeroed();
        fixed.set_hash_bytes(length(agreed.hash.bytes()));
        fixed.set_hash(agreed.hash.id()).set_group(agreed.group.id());
        fixed.set_public_bytes(length(public.len())).set_sequence(self.entropy.sequence());
        let parts: [&[u8]; 2] = [&agreed.challenge, &public];
        message::compose(Id::CHALLENGE, agreed.transaction, fixed.as_bytes(), &parts)
    }

    fn reply(&self, agreed: &Agreed, bytes: &[u8]) -> Result<State, Reason> {
        message::expect(bytes, Id::REPLY, agreed.transaction)?;
        let reply = Reply::parse(bytes).ok_or(Reason::PAYLOAD)?;
        let (hash, size) = (agreed.hash, agreed.hash.bytes());
        let public_bytes = usize::from(reply.public_bytes());
        if usize::from(reply.hash_bytes()) != size || public_bytes != agreed.group.bytes() {
            return Err(Reason::PAYLOAD);
        }
        let response = message::part(bytes, Reply::SIZE, size)?;
        let challenge = message::part(bytes, Reply::SIZE + size, size)?;
        let public = message::part(bytes, Reply::SIZE + 2 * size, public_bytes)?;
        let shared = self.shared(agreed.group, public)?;
        let keys = &self.keys;
        let mine = crypto::Challenge {
            hash,
            value: &agreed.challenge,
            sequence: self.entropy.sequence(),
            transaction: agreed.transaction,
            secure_channel: 0,
            shared: shared.as_ref().map(|shared| shared.as_slice()),
        };
        let right = mine.response(Prover::Host, &keys.host, &keys.host_nqn, &keys.subsystem_nqn);
        if !same(&right, response) {
            return Err(Reason::FAILED);
        }
        let mut fixed = Success1::zeroed();
        fixed.set_hash_bytes(length(size));
        let mutual = reply.challenges() & 1 == 1;
        let mut proof = Zeroizing::new(Vec::new());
        if mutual {
            // A challenge of the host that is ours, or none, would prove nothing.
            if reply.sequence() == 0 || challenge == agreed.challenge {
                return Err(Reason::PAYLOAD);
            }
            let secret = keys.controller.as_ref().ok_or(Reason::FAILED)?;
            let theirs = crypto::Challenge { value: challenge, sequence: reply.sequence(), ..mine };
            let (me, peer) = (&keys.subsystem_nqn, &keys.host_nqn);
            proof = theirs.response(Prover::Controller, secret, me, peer);
            fixed.set_responds(1);
        }
        let transaction = agreed.transaction;
        let message = message::compose(Id::SUCCESS1, transaction, fixed.as_bytes(), &[&proof]);
        Ok(State::Success { transaction, message, mutual })
    }

    fn shared(&self, group: Group, public: &[u8]) -> Result<Option<Zeroizing<Vec<u8>>>, Reason> {
        if group == Group::Null {
            return Ok(None);
        }
        let shared = group.shared(self.entropy.exponent(), public);
        shared.map(Some).ok_or(Reason::PAYLOAD)
    }
}

/// A length that fits its field: at most 1,024.
pub(super) fn length<T: TryFrom<usize>>(bytes: usize) -> T {
    T::try_from(bytes).unwrap_or_else(|_| unreachable!("hash and group values are short"))
}
