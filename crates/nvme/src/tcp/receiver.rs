//! Receiving, common to both sides: headers for the owner to judge, and data with its destination.
//!
//! The owner interprets headers. Invariant: data has the destination that was begun with its
//! header, and offsets count on from there.

use super::decoder::{Decoder, Header, Item, Side};
use super::{Digests, Fatal};

/// Item received; `P` is the type of a data's destination.
#[derive(Debug)]
pub(super) enum Received<'a, P> {
    /// A header: if data follows, [`Receiver::begin`] sets the destination.
    Header(Header),
    /// Data.
    Data {
        /// Destination.
        destination: P,
        /// Offset in bytes within the command's buffer.
        offset: u32,
        /// The bytes.
        bytes: &'a [u8],
    },
    /// The data of one PDU is complete.
    End {
        /// Destination.
        destination: P,
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

    /// Sets the digests of all further PDUs.
    pub(super) fn set_digests(&mut self, digests: Digests) {
        self.decoder.set_digests(digests);
    }

    /// Returns the next item of the front of `input`; `None` when more input is needed.
    ///
    /// # Errors
    /// [`Fatal`], after which nothing more is received.
    pub(super) fn next<'a>(
        &mut self,
        input: &mut &'a [u8],
    ) -> Result<Option<Received<'a, P>>, Fatal> {
        let Some(item) = self.decoder.next(input)? else { return Ok(None) };
        Ok(Some(match item {
            Item::Header(header) => Received::Header(header),
            Item::Data(bytes) => {
                let (destination, offset) = self.advance(bytes.len());
                Received::Data { destination, offset, bytes }
            }
            Item::End { digest_matches } => {
                let (destination, _) = self.current.take().expect("data has a destination");
                Received::End { destination, digest_matches }
            }
        }))
    }

    /// Sets the destination of the data behind the last header: `destination`, from `offset` of its
    /// buffer on.
    pub(super) fn begin(&mut self, destination: P, offset: u32) {
        self.current = Some((destination, offset));
    }

    /// Passes on the owner's verdict on a header; an error ends the stream.
    pub(super) fn judged<T>(&mut self, event: Result<T, Fatal>) -> Result<Option<T>, Fatal> {
        if event.is_err() {
            self.decoder.fail();
        }
        event.map(Some)
    }

    /// Returns the destination of the next bytes of the stream if they are data: destination,
    /// offset in the command's buffer, number of bytes.
    pub(super) fn data_wanted(&self) -> Option<(P, u32, usize)> {
        let left = self.decoder.data_left();
        let (destination, offset) = self.current.filter(|_| left > 0)?;
        Some((destination, offset, left))
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
        let (destination, next) = self.current.as_mut().expect("data has a destination");
        let offset = *next;
        *next += u32::try_from(count).expect("a PDU is shorter than 4 GiB");
        (*destination, offset)
    }
}
