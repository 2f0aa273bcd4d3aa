//! Challenge and response: the formulas of DH-HMAC-CHAP.
//!
//! Source: NVMe Base Specification, "DH-HMAC-CHAP Protocol". Messages are in `message`.

use zeroize::Zeroizing;

use super::{Hash, Secret};

/// The side that answers a challenge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Prover {
    /// The host.
    Host,
    /// The controller.
    Controller,
}

/// Inputs of a response, in one direction of one transaction.
#[derive(Clone, Copy, Debug)]
pub struct Challenge<'a> {
    /// Hash function agreed on.
    pub hash: Hash,
    /// Challenge value (C).
    pub value: &'a [u8],
    /// Sequence number (SEQNUM).
    pub sequence: u32,
    /// Transaction identifier (T_ID).
    pub transaction: u16,
    /// Secure channel concatenation (SC_C), as negotiated.
    pub secure_channel: u8,
    /// Diffie-Hellman shared secret; `None` with the null group.
    pub shared: Option<&'a [u8]>,
}

impl Challenge<'_> {
    /// Returns the response of `prover`, with its NQN and secret, to `peer`.
    pub fn response(
        &self,
        prover: Prover,
        secret: &Secret,
        nqn: &str,
        peer: &str,
    ) -> Zeroizing<Vec<u8>> {
        let augmented = match self.shared {
            Some(shared) => self.hash.hmac(&self.hash.digest(shared), &[self.value]),
            None => Zeroizing::new(self.value.to_vec()),
        };
        let label: &[u8] = match prover {
            Prover::Host => b"HostHost",
            Prover::Controller => b"Controller",
        };
        let parts: [&[u8]; 8] = [
            &augmented,
            &self.sequence.to_le_bytes(),
            &self.transaction.to_le_bytes(),
            &[self.secure_channel],
            label,
            nqn.as_bytes(),
            &[0],
            peer.as_bytes(),
        ];
        self.hash.hmac(&secret.transformed(nqn), &parts)
    }
}
