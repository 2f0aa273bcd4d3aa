//! Receiving, as both sides do it: headers for their owner to judge, and data with its place.
//!
//! Never: what a header means. Invariant: data has the place that was begun with its header, and
//! offsets count on from there.

use super::decoder::{Decoder, Header, Item, Side};
use super::{Digests, Fatal};

/// What was received; `P` is where data belongs.
#[derive(Debug)]
pub(super) enum Received<'a, P> {
    /// A header: with data behind it, [`Receiver::begin`] says where that belongs.
    Header(Header),
    /// Data.
    Data {
        /// Where it belongs.
        place: P,
        /// Offset in bytes within the command's buffer.
        offset: u32,
        /// The bytes.
        bytes: &'a [u8],
    },
    /// The data of one PDU is complete.
    End {
        /// Where it belongs.
        place: P,
        /// False when the data digest did not match.
        digest_matches: bool,
    },
}

/// One side's incoming stream.
#[derive(Debug)]
pub(super) struct Receiver<P> {
    decoder: Decoder,
    // Where the data of the current PDU belongs, and the offset of its next byte.
    current: Option<(P, u32)>,
}

impl<P: Copy> Receiver<P> {
    /// Returns a stream of which nothing was received.
    pub(super) fn new(side: Side) -> Self {
        Self { decoder: Decoder::new(side), current: None }
    }

    /// Digests that PDUs have from now on.
    pub(super) fn set_digests(&mut self, digests: Digests) {
        self.decoder.set_digests(digests);
    }

    /// Returns the next of the front of `input`; `None` when more input is needed.
    ///
    /// # Errors
    /// [`Fatal`], once and for all.
    pub(super) fn next<'a>(
        &mut self,
        input: &mut &'a [u8],
    ) -> Result<Option<Received<'a, P>>, Fatal> {
        let Some(item) = self.decoder.next(input)? else { return Ok(None) };
        Ok(Some(match item {
            Item::Header(header) => Received::Header(header),
            Item::Data(bytes) => {
                let (place, offset) = self.advance(bytes.len());
                Received::Data { place, offset, bytes }
            }
            Item::End { digest_matches } => {
                let (place, _) = self.current.take().expect("data has a place");
                Received::End { place, digest_matches }
            }
        }))
    }

    /// Returns the data behind the last header belongs to `place`, from `offset` of its buffer on.
    pub(super) fn begin(&mut self, place: P, offset: u32) {
        self.current = Some((place, offset));
    }

    /// What its owner made of a header: an error is the stream's end.
    pub(super) fn judged<T>(&mut self, event: Result<T, Fatal>) -> Result<Option<T>, Fatal> {
        if event.is_err() {
            self.decoder.fail();
        }
        event.map(Some)
    }

    /// Where the next bytes of the stream belong when they are data: place, offset in the
    /// command's buffer, number of bytes.
    pub(super) fn data_wanted(&self) -> Option<(P, u32, usize)> {
        let left = self.decoder.data_left();
        let (place, offset) = self.current.filter(|_| left > 0)?;
        Some((place, offset, left))
    }

    /// Reports bytes that were received as [`Self::data_wanted`] asked.
    pub(super) fn data_received(&mut self, bytes: &[u8]) {
        self.decoder.data_received(bytes);
        self.advance(bytes.len());
    }

    /// Returns the bytes of the current PDU's data that have not been handed on.
    pub(super) fn data_coming(&self) -> usize {
        self.decoder.data_coming()
    }

    fn advance(&mut self, count: usize) -> (P, u32) {
        let (place, next) = self.current.as_mut().expect("data has a place");
        let offset = *next;
        *next += u32::try_from(count).expect("a PDU is shorter than 4 GiB");
        (*place, offset)
    }
}
