//! Proof that the stripes of a protected object are code words, without their bytes.
//!
//! Every drive adds up its pieces of a range of stripes by the kernel `fingerprint`, with weights
//! of a random seed; the sums of all drives are 0 in total if the stripes are code words, and of
//! others with a probability of 2^-63. If they are not, the range is halved until stripes stand
//! alone. A result has 8 bytes: with chunks of 64 KiB or more less than a thousandth of the pieces
//! crosses the wire, because the command names each piece in 40 bytes at most.
//!
//! Writes nothing. Invariant: a stripe is proven only if every piece of it was added up.

use std::collections::BTreeSet;
use std::ops::Range;
use std::rc::Rc;

use csd_kernels::fingerprint::{self, Parameters};
use csd_nvme::vendor::execute::{CHUNKS_MAX, Output};
use csd_reactor::{Class, now, random_u64, sleep_until, spawn, transfer_time};

use super::pieces::{BATCH_BYTES, Batch, Object, Piece};
use super::{Bad, Cause, Limits, Scrubbed, current};
use crate::array::{Array, Drive};
use crate::catalogue::Entry;
use crate::in_place::{execute, program_index};
use crate::layout::Scheme;
use crate::object::Error;

/// Proof of the stripes of an object or several.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Proof {
    /// Number of stripes that are code words.
    pub proven: u64,
    /// Number of stripes of which pieces are bad, missing, or in drives that are down.
    pub unproven: u64,
    /// Bytes of the pieces read.
    pub bytes: u64,
    /// Bytes on the wire between drives and host, in both directions.
    pub crossed_bytes: u64,
    /// Stripes that are no code words.
    pub bad: Vec<Bad>,
}

impl Proof {
    /// Adds another proof.
    pub fn add(&mut self, other: Self) {
        self.proven += other.proven;
        self.unproven += other.unproven;
        self.bytes += other.bytes;
        self.crossed_bytes += other.crossed_bytes;
        self.bad.extend(other.bad);
    }
}

/// Proves the stripes of an object in which a scrub has found this. An object without parity has
/// none.
///
/// # Errors
/// A drive's answer that says nothing about a piece. A drive that is down or lost is no error.
pub async fn prove(
    array: &Array,
    entry: &Entry,
    found: &Scrubbed,
    limits: &Limits,
) -> Result<Proof, Error> {
    let Some(mut entry) = current(array, entry).await? else { return Ok(Proof::default()) };
    loop {
        let Some((protection, _)) = entry.protected() else { return Ok(Proof::default()) };
        let proof =
            Prover::new(array, &entry, protection.scheme, found, limits).await?.all().await?;
        if proof.bad.is_empty() {
            return Ok(proof);
        }
        match current(array, &entry).await? {
            None => return Ok(Proof::default()),
            // Its pieces may be others now.
            Some(changed) if changed.epoch != entry.epoch && !limits.stop.get() => entry = changed,
            Some(_) => return Ok(proof),
        }
    }
}

/// A drive with its pieces, by stripe.
struct Part {
    drive: Rc<Drive>,
    program: u16,
    pieces: Vec<Piece>,
}

/// Answer about a range of stripes.
enum Answer {
    CodeWords,
    /// At least one is none.
    Others,
    /// A piece cannot be read any more.
    Unreadable,
}

struct Prover<'a> {
    object: Object,
    scheme: Scheme,
    limits: &'a Limits,
    parts: Vec<Rc<Part>>,
    /// Stripes of which a piece cannot be added up.
    left_out: BTreeSet<u32>,
    stripes: u32,
    proof: Proof,
}

fn stripe_of(piece: &Piece) -> u32 {
    piece.name.stripe.expect("the object is protected")
}

impl<'a> Prover<'a> {
    async fn new(
        array: &Array,
        entry: &Entry,
        scheme: Scheme,
        found: &Scrubbed,
        limits: &'a Limits,
    ) -> Result<Self, Error> {
        let object = Object::new(entry);
        let bad = found.bad.iter().filter(|bad| bad.object == entry.name && !bad.repaired);
        let mut left_out: BTreeSet<u32> = bad.filter_map(|bad| bad.stripe).collect();
        let (mut parts, mut stripes) = (Vec::new(), 0);
        for index in object.drives() {
            let mut pieces = object.pieces(index);
            stripes = pieces.iter().map(|piece| stripe_of(piece) + 1).fold(stripes, u32::max);
            left_out.extend(pieces.iter().filter(|piece| piece.is_missing).map(stripe_of));
            pieces.sort_by_key(stripe_of);
            let drive = array.slot(index).and_then(|slot| slot.drive().ok());
            let program = match drive {
                Some(drive) if !pieces.is_empty() => {
                    match program_index(drive, fingerprint::PROGRAM_ID).await {
                        Ok(program) => Some((Rc::clone(drive), program)),
                        Err(error) if error.is_lost() => None,
                        Err(error) => return Err(error),
                    }
                }
                _ => None,
            };
            match program {
                Some((drive, program)) => parts.push(Rc::new(Part { drive, program, pieces })),
                None => left_out.extend(pieces.iter().map(stripe_of)),
            }
        }
        let proof = Proof { unproven: left_out.len() as u64, ..Proof::default() };
        Ok(Self { object, scheme, limits, parts, left_out, stripes, proof })
    }

    /// Proves all stripes, or those before it was asked to stop.
    async fn all(mut self) -> Result<Proof, Error> {
        let traffic = |part: &Rc<Part>| {
            let traffic = part.drive.controller.traffic();
            traffic.wire_to_host + traffic.wire_to_drive
        };
        let before: u64 = self.parts.iter().map(traffic).sum();
        let most =
            u64::from(CHUNKS_MAX).min(BATCH_BYTES / u64::from(self.object.entry.chunk_bytes));
        let step = u32::try_from(most.max(1)).expect("at most 256");
        let ranges = (0..self.stripes).step_by(step as usize);
        let mut left: Vec<Range<u32>> =
            ranges.map(|start| start..self.stripes.min(start + step)).collect();
        left.reverse();
        while let Some(range) = left.pop().filter(|_| !self.limits.stop.get()) {
            let count = u64::from(range.end - range.start)
                - self.left_out.range(range.clone()).count() as u64;
            if count == 0 {
                continue;
            }
            let answer = match self.sums_up(&range).await {
                Err(error) if error.is_lost() => {
                    // The drive may hold a piece of any stripe.
                    let rest = [range].into_iter().chain(left);
                    let rest = rest.flatten().filter(|stripe| !self.left_out.contains(stripe));
                    self.proof.unproven += rest.count() as u64;
                    break;
                }
                answer => answer?,
            };
            match answer {
                Answer::CodeWords => self.proof.proven += count,
                _ if range.end - range.start > 1 => {
                    let middle = range.start.midpoint(range.end);
                    left.extend([middle..range.end, range.start..middle]);
                }
                Answer::Others => {
                    let (object, stripe) = (self.object.entry.name.clone(), Some(range.start));
                    let (cause, repaired) = (Cause::NoCodeWord, false);
                    let (piece, page, drive) = (None, None, None);
                    self.proof.bad.push(Bad {
                        object,
                        stripe,
                        piece,
                        page,
                        drive,
                        cause,
                        repaired,
                    });
                }
                Answer::Unreadable => self.proof.unproven += 1,
            }
        }
        let after: u64 = self.parts.iter().map(traffic).sum();
        self.proof.crossed_bytes = after - before;
        Ok(self.proof)
    }

    /// Lets the drives add up their pieces of a range.
    async fn sums_up(&mut self, range: &Range<u32>) -> Result<Answer, Error> {
        let (begin, seed) = (now(), [random_u64(), random_u64()]);
        let (mut tasks, mut longest, mut all) = (Vec::new(), 0, 0);
        for part in &self.parts {
            let first = part.pieces.partition_point(|piece| stripe_of(piece) < range.start);
            let of_range =
                part.pieces[first..].iter().take_while(|piece| stripe_of(piece) < range.end);
            let pieces: Vec<Piece> = of_range
                .filter(|piece| !self.left_out.contains(&stripe_of(piece)))
                .cloned()
                .collect();
            let bytes = pieces.iter().map(|piece| u64::from(piece.bytes)).sum();
            longest = longest.max(bytes);
            all += bytes;
            let chunk_bytes = self.object.entry.chunk_bytes;
            let (part, scheme) = (Rc::clone(part), self.scheme);
            tasks.push(spawn(Class::Foreground, async move {
                part.sums(pieces, chunk_bytes, scheme, seed).await
            }));
        }
        let (mut sums, mut is_readable, mut failed) = (0, true, None);
        for task in tasks {
            match task.await {
                Ok(Ok(of_part)) => sums ^= of_part,
                Ok(Err(_)) => is_readable = false,
                Err(error) => failed = failed.or(Some(error)),
            }
        }
        if let Some(error) = failed {
            return Err(error);
        }
        self.proof.bytes += all;
        self.limits.progress.add(all);
        if let Some(rate) = self.limits.bytes_per_s {
            sleep_until(begin + transfer_time(longest, rate)).await;
        }
        Ok(match (is_readable, sums) {
            (false, _) => Answer::Unreadable,
            (true, 0) => Answer::CodeWords,
            (true, _) => Answer::Others,
        })
    }
}

impl Part {
    /// Returns the sums of pieces, or the cause for which one cannot be read.
    async fn sums(
        &self,
        pieces: Vec<Piece>,
        piece_bytes: u32,
        scheme: Scheme,
        seed: [u64; 2],
    ) -> Result<Result<u64, Cause>, Error> {
        let small = |number: usize| u8::try_from(number).expect("at most 48 pieces");
        let name = |piece: &Piece| fingerprint::Piece {
            stripe: stripe_of(piece),
            piece: small(piece.name.piece as usize),
        };
        let (data, parity) = (small(scheme.data()), small(scheme.parity()));
        let mut sums = 0;
        for batch in Batch::all(pieces, piece_bytes) {
            let pieces = batch.pieces.iter().map(name).collect();
            let parameters = Parameters { data, parity, piece_bytes, seed, pieces }.encode();
            let program = (self.program, fingerprint::PROGRAM_ID);
            let sources = batch.sources(self.drive.block.block_bytes());
            match execute(&self.drive, program, sources, parameters, Output::Completion).await? {
                Ok(of_batch) => sums ^= of_batch,
                Err(why) => return Ok(Err(why.into())),
            }
        }
        Ok(Ok(sums))
    }
}
