//! [`KeySource`]: the keys of a namespace as a source, page by page.
//!
//! Invariants: a page begins behind the last key of the one before; only a namespace whose order
//! is that of keys is listed, so that a program can take bounds for an interval.

use csd_kvlog::IndexKind;
use csd_nvme::kv::{Key, KeyList};
use csd_nvme::status::Status;
use csd_nvme::vendor::execute::Execution;
use csd_reactor::Buffer;

use super::reads::{InputPiece, values_of};
use super::{Compute, Failure};

/// Bytes of a List's data before its entries: their number.
const COUNT_BYTES: usize = 4;
/// Length of the longest entry, bytes.
const ENTRY_BYTES_MAX: usize = 20;
/// Size of the first page, bytes: a range may be short.
const PAGE_BYTES_MIN: u32 = 4 << 10;
/// Size of the longest page, bytes.
const PAGE_BYTES_MAX: u32 = 64 << 10;

/// Position in the keys of a namespace.
pub(super) struct KeySource {
    nsid: u16,
    /// Key that the next page begins at.
    from: Option<Key>,
    /// True if that key was returned.
    is_behind: bool,
    page_bytes: u32,
    /// Page that was read already.
    ahead: Option<Buffer>,
    /// True if no page follows it.
    is_over: bool,
}

impl KeySource {
    /// Begins a listing at `from`, or at the first key, for an execution.
    pub(super) fn begin(
        compute: &Compute,
        execution: &Execution,
        nsid: u32,
        from: Option<Key>,
    ) -> Result<Self, Failure> {
        if execution.serial {
            // Its length is not known before it was read.
            return Err(Failure::misuse("keys are no source of a serial execution"));
        }
        let nsid = values_of(nsid)?;
        if compute.kv.segments().index_kind(nsid) != IndexKind::Ordered {
            let reason = format!(
                "namespace {nsid} keeps its keys in the order of a hash: start the drive with \
                 --kv-index ordered"
            );
            return Err(Failure::new(Status::SOURCE_ORDER, reason));
        }
        Ok(Self {
            nsid,
            from,
            is_behind: false,
            page_bytes: PAGE_BYTES_MIN,
            ahead: None,
            is_over: false,
        })
    }

    /// Returns the entries of the next keys, and true if these are the last ones: a program that
    /// has used all input must know if more will come.
    pub(super) async fn page(&mut self, compute: &Compute) -> Result<(InputPiece, bool), Failure> {
        let page = match self.ahead.take() {
            Some(page) => page,
            None => self.fetch(compute).await?,
        };
        if !self.is_over {
            let next = self.fetch(compute).await?;
            self.ahead = (!next.is_empty()).then_some(next);
        }
        Ok((InputPiece::Inline { bytes: page }, self.ahead.is_none()))
    }

    /// Lists the next keys; none behind the last one.
    async fn fetch(&mut self, compute: &Compute) -> Result<Buffer, Failure> {
        let data = compute.kv.list(self.nsid, self.from, self.page_bytes).await?;
        let keys = KeyList::parse(&data).ok_or(Status::INTERNAL_ERROR)?;
        let mut entries = &data[COUNT_BYTES..];
        if self.is_behind && keys.first() == self.from.as_ref() {
            let first = self.from.map_or(0, |key| KeyList::entry_bytes(&key));
            entries = &entries[first..];
        }
        // A list with room for another key is the last one.
        self.is_over = data.len() + ENTRY_BYTES_MAX <= self.page_bytes as usize;
        if let Some(last) = keys.last() {
            (self.from, self.is_behind) = (Some(*last), true);
        }
        self.page_bytes = (self.page_bytes * 2).min(PAGE_BYTES_MAX);
        Ok(Buffer::from_slice(entries))
    }
}
