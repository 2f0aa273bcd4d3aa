//! Verify: the CRC-32C (Castagnoli) of every page.
//!
//! A page's checksum is that of RFC 3720: polynomial 1EDC6F41h reflected, begun and ended with all
//! ones. A [`Plan`] divides the work as the paper "Performance characterization of CSDs" does: page
//! size, pages that a unit takes at a time, units, and the number of pages that advance together in
//! one stream of instructions. Work is counted in pages and bytes.
//!
//! Starts no threads: a plan gives each unit its share, and the caller runs the units on its cores.
//! Invariant: checksums depend neither on the plan, except for its page size, nor on the pieces
//! that the data was cut into.

mod adaptive;
mod digest;
mod kernel;
mod plan;
mod program;
pub mod scalar;

pub use adaptive::{Adaptive, PARTS_AHEAD, Setting};
pub use digest::{Digest, Spacing, Whole};
pub use kernel::KERNEL;
pub use plan::{Batch, COMBINATIONS, Plan, UNROLL_MAX};

use crate::arch;
use crate::numeric::{Malformed, PARAMETER_BYTES};

/// Program identifier (PID) of the built-in program.
pub const PROGRAM_ID: u64 = 5;
/// Name of the kernel.
pub const NAME: &str = "verify";

/// Parameters: the plan's bytes, then optionally those of the spacing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parameters {
    /// Division of the work.
    pub plan: Plan,
    /// Positions of the pages among those of the whole.
    pub spacing: Spacing,
}

impl Parameters {
    /// Encodes the parameters.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let spacing = (self.spacing != Spacing::default()).then(|| self.spacing.encode());
        [self.plan.encode(), spacing.unwrap_or_default()].concat()
    }

    /// Parses parameters: 16 bytes, or 32 with a spacing that is not 0.
    ///
    /// # Errors
    /// [`Malformed`] with the reason.
    pub fn parse(data: &[u8]) -> Result<Self, Malformed> {
        let (plan, spacing) = data.split_at(data.len().min(PARAMETER_BYTES));
        let plan = Plan::parse(plan)?;
        if spacing.is_empty() {
            return Ok(Self { plan, spacing: Spacing::default() });
        }
        let spacing = Spacing::parse(spacing)?;
        if spacing == Spacing::default() {
            return Err(Malformed { kernel: NAME, reason: "a spacing without gaps" });
        }
        Ok(Self { plan, spacing })
    }
}

/// Verification in progress.
#[derive(Clone, Copy, Debug)]
pub struct Verify {
    plan: Plan,
    version: Version,
    /// State of the page that the last piece's end cut, and the number of its bytes.
    cut: (u32, usize),
    digest: u32,
    pages: u64,
    bytes: u64,
}

impl Verify {
    /// Starts a verification.
    #[must_use]
    pub fn new(plan: Plan) -> Self {
        Self::with(plan, arch::verify::best())
    }

    fn with(plan: Plan, version: Version) -> Self {
        Self { plan, version, cut: (!0, 0), digest: !0, pages: 0, bytes: 0 }
    }

    /// Takes the next bytes, and appends the checksums of the pages that end in them.
    pub fn feed(&mut self, bytes: &[u8], checksums: &mut Vec<u32>) {
        let page_bytes = self.plan.page_bytes() as usize;
        let first = checksums.len();
        self.bytes += bytes.len() as u64;
        let mut rest = bytes;
        if self.cut.1 > 0 {
            let (front, after) = rest.split_at(rest.len().min(page_bytes - self.cut.1));
            self.cut = (self.version.run.update(self.cut.0, front), self.cut.1 + front.len());
            if self.cut.1 == page_bytes {
                checksums.push(!self.cut.0);
                self.cut = (!0, 0);
            }
            rest = after;
        }
        let (whole, tail) = rest.split_at(rest.len() / page_bytes * page_bytes);
        let unroll = self.plan.adapted(self.version.unroll()).unwrap_or(self.plan).unroll();
        self.version.run.pages(whole, page_bytes, unroll, checksums);
        if !tail.is_empty() {
            self.cut = (self.version.run.update(!0, tail), tail.len());
        }
        self.count(&checksums[first..]);
    }

    /// Ends the data: a short last page gets its checksum.
    pub fn finish(&mut self, checksums: &mut Vec<u32>) {
        if self.cut.1 > 0 {
            checksums.push(!self.cut.0);
            self.cut = (!0, 0);
            self.count(&checksums[checksums.len() - 1..]);
        }
    }

    fn count(&mut self, checksums: &[u32]) {
        self.pages += checksums.len() as u64;
        self.digest = digest::add(self.version, self.digest, checksums);
    }

    /// Returns the CRC-32C of all checksums so far, little-endian and in order: one number by which
    /// a drive and a host compare all pages.
    #[must_use]
    pub fn digest(&self) -> u32 {
        !self.digest
    }

    /// Returns the number of pages whose checksums are done.
    #[must_use]
    pub fn pages(&self) -> u64 {
        self.pages
    }

    /// Returns the number of bytes seen: the work done.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }
}

/// Returns the checksums of all pages of `bytes`, the last one possibly short, by the fastest
/// version that this machine runs.
#[must_use]
pub fn checksums(plan: Plan, bytes: &[u8]) -> Vec<u32> {
    whole(Verify::new(plan), bytes)
}

fn whole(mut verify: Verify, bytes: &[u8]) -> Vec<u32> {
    let mut checksums = Vec::with_capacity(bytes.len() / verify.plan.page_bytes() as usize + 1);
    verify.feed(bytes, &mut checksums);
    verify.finish(&mut checksums);
    checksums
}

/// Compiled version of the kernel that this machine can run.
pub type Version = arch::Version<arch::verify::Functions>;

impl Version {
    /// Returns every version that this machine can run, the one that [`Verify`] uses first.
    pub fn available() -> impl Iterator<Item = Self> {
        arch::verify::versions()
    }

    /// Returns the unrolling that is fastest with data in the cache, as measured.
    #[must_use]
    pub fn unroll(self) -> u8 {
        match self.name() {
            // Its products of one page do not wait for each other.
            "avx512" => 1,
            // The instruction takes three cycles, and one begins in each.
            "sse4.2" | "crc" => 4,
            _ => 3,
        }
    }

    /// Starts a verification with this version.
    #[must_use]
    pub fn start(self, plan: Plan) -> Verify {
        Verify::with(plan, self)
    }

    /// Returns checksums as [`checksums`] does.
    #[must_use]
    pub fn checksums(self, plan: Plan, bytes: &[u8]) -> Vec<u32> {
        whole(self.start(plan), bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_is_that_of_the_standard() {
        // RFC 3720, B.4, and the check value of the polynomial.
        let one = Plan::new(64, 1, 1, 1).unwrap();
        for (bytes, expected) in [
            (vec![0u8; 32], 0x8A91_36AA),
            (vec![0xFF; 32], 0x62A8_AB43),
            ((0..32).collect(), 0x46DD_794E),
            (b"123456789".to_vec(), 0xE306_9283),
        ] {
            assert_eq!(checksums(one, &bytes), [expected]);
            assert_eq!(scalar::checksums(one, &bytes), [expected]);
        }
        let mut verify = Verify::new(one);
        let mut found = Vec::new();
        verify.feed(&[0; 65], &mut found);
        verify.finish(&mut found);
        let bytes: Vec<u8> = found.iter().flat_map(|sum| sum.to_le_bytes()).collect();
        assert_eq!((verify.pages(), verify.bytes(), found.len()), (2, 65, 2));
        assert_eq!(checksums(one, &bytes), [verify.digest()]);
    }
}
