//! [`Settings`] that the drive keeps over restarts: saved features and write protection.
//!
//! Two pages in the medium's head are written in turn, so that a torn write leaves the other one
//! whole (`docs/internals/format.md`). Invariants: of two whole pages the one with the higher
//! sequence counts; a Set Features that saves is answered when its page is durable; protection
//! "until power cycle" is not on the medium.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use csd_kvlog::error::MediaError;
use csd_kvlog::format::SETTINGS_OFFSETS;
use csd_kvlog::media::{Media, Syncer};
use csd_kvlog::segments::Segments;
use csd_nvme::feature::{EDNEK, FeatureId, PROTECT, PROTECT_UNTIL_POWER_CYCLE};
use csd_nvme::layout;
use csd_nvme::opcode::Kv;
use csd_nvme::vendor::{NSID_BLOCK, NSID_KV, NSID_MEMORY, NSID_OBJECTS};
use csd_nvme::{memory, nvm};
use csd_reactor::{Buffer, Class, sleep, spawn};

use crate::error::Error;

/// "CSDSETS\0".
const MAGIC: u64 = u64::from_le_bytes(*b"CSDSETS\0");
const VERSION: u32 = 1;
/// Offset of the first entry, behind the header. Entries have 16 bytes.
const ENTRIES_OFFSET: usize = 64;
const ENTRIES_MAX: usize = (Page::SIZE - ENTRIES_OFFSET) / Entry::SIZE;
/// Pause while another core writes its page.
const PAUSE: Duration = Duration::from_micros(50);

layout! {
    /// Head of a settings page.
    struct Page[4096] {
        /// "CSDSETS\0".
        magic / set_magic: u64 @ 0,
        /// Version of the page.
        version / set_version: u32 @ 8,
        /// CRC-32C of all 4,096 bytes with this field zero.
        checksum / set_checksum: u32 @ 12,
        /// Identifier of the drive.
        uuid / set_uuid: [16] @ 16,
        /// Sequence number of the write.
        sequence / set_sequence: u64 @ 32,
        /// Number of entries.
        count / set_count: u32 @ 40,
    }
}

layout! {
    /// One saved value.
    struct Entry[16] {
        /// Feature Identifier.
        fid / set_fid: u8 @ 0,
        /// Namespace, 0 for none.
        nsid / set_nsid: u32 @ 4,
        /// The value.
        value / set_value: u32 @ 8,
    }
}

type Values = BTreeMap<(u8, u32), u32>;

#[derive(Debug, Default)]
struct State {
    saved: Values,
    // Values that last until the drive stops.
    until_power_cycle: Values,
    sequence: u64,
    dirty: bool,
}

/// Settings of one drive, shared by its cores.
#[derive(Debug)]
pub struct Settings {
    uuid: [u8; 16],
    state: Mutex<State>,
    // Bit n is set if namespace n is write protected. Commands read it.
    protected: AtomicU64,
    writing: AtomicBool,
}

impl Settings {
    /// Reads the settings of a medium. A new one has none.
    ///
    /// # Errors
    /// When the medium cannot be read.
    pub async fn open(media: &Media, uuid: [u8; 16]) -> Result<Self, Error> {
        let mut state = State::default();
        for offset in SETTINGS_OFFSETS {
            let (result, page) = media.read(offset, Buffer::zeroed(Page::SIZE)).await;
            result?;
            if let Some((sequence, saved)) = parse(&page, uuid)
                && sequence > state.sequence
            {
                (state.sequence, state.saved) = (sequence, saved);
            }
        }
        let protected = state.saved.iter().filter(|((fid, _), value)| {
            *fid == FeatureId::WRITE_PROTECTION.0 && **value == PROTECT
        });
        let protected = protected.fold(0, |mask, ((_, nsid), _)| mask | bit(*nsid));
        let (protected, writing) = (AtomicU64::new(protected), AtomicBool::new(false));
        Ok(Self { uuid, state: Mutex::new(state), protected, writing })
    }

    /// Applies saved settings to the kv namespaces.
    pub fn apply(&self, segments: &Segments) {
        for ((fid, nsid), value) in &self.state().saved {
            let namespace = u16::try_from(*nsid).ok().and_then(|nsid| segments.namespace(nsid));
            if let (Some(namespace), true) =
                (namespace, *fid == FeatureId::KEY_VALUE_CONFIGURATION.0)
            {
                namespace.absent_delete_is_error.store(value & EDNEK != 0, SeqCst);
            }
        }
    }

    /// Returns a saved value.
    pub fn saved(&self, id: FeatureId, nsid: u32) -> Option<u32> {
        self.state().saved.get(&(id.0, nsid)).copied()
    }

    /// Saves a value. It is durable after [`Self::persist`].
    pub fn save(&self, id: FeatureId, nsid: u32, value: u32) {
        let mut state = self.state();
        if state.saved.len() < ENTRIES_MAX || state.saved.contains_key(&(id.0, nsid)) {
            state.dirty |= state.saved.insert((id.0, nsid), value) != Some(value);
        }
    }

    /// Returns the write protection state of a namespace.
    pub fn protection(&self, nsid: u32) -> u32 {
        let (state, key) = (self.state(), (FeatureId::WRITE_PROTECTION.0, nsid));
        state.until_power_cycle.get(&key).or_else(|| state.saved.get(&key)).copied().unwrap_or(0)
    }

    /// Sets the write protection state of a namespace.
    pub fn set_protection(&self, nsid: u32, value: u32) {
        if value == PROTECT_UNTIL_POWER_CYCLE {
            self.state().until_power_cycle.insert((FeatureId::WRITE_PROTECTION.0, nsid), value);
        } else {
            self.save(FeatureId::WRITE_PROTECTION, nsid, value);
        }
        match value {
            0 => self.protected.fetch_and(!bit(nsid), SeqCst),
            _ => self.protected.fetch_or(bit(nsid), SeqCst),
        };
    }

    /// Returns true when the namespace is write protected and the command would change it.
    pub fn refuses(&self, nsid: u32, opcode: u8) -> bool {
        let changes = match nsid {
            NSID_BLOCK => nvm::Command::changes(opcode),
            NSID_KV | NSID_OBJECTS => {
                matches!(Kv(opcode), Kv::STORE | Kv::STORE_NEWER | Kv::DELETE)
            }
            NSID_MEMORY => memory::Command::changes(opcode),
            _ => false,
        };
        changes && self.protected.load(SeqCst) & bit(nsid) != 0
    }

    /// Makes saved values durable. Runs to its end even if the caller is dropped.
    ///
    /// # Errors
    /// When the medium fails.
    pub async fn persist(self: &Arc<Self>, syncer: &Syncer) -> Result<(), MediaError> {
        // A page that another core is writing may have the value of this caller.
        if !self.state().dirty && !self.writing.load(SeqCst) {
            return Ok(());
        }
        let (this, syncer) = (Arc::clone(self), syncer.clone());
        let task = spawn(Class::System, async move {
            while this.writing.swap(true, SeqCst) {
                sleep(PAUSE).await;
            }
            let dirty = std::mem::take(&mut this.state().dirty);
            let result = if dirty { this.write(&syncer).await } else { Ok(()) };
            if result.is_err() {
                // The next one writes the values of this one to the same page: the other is whole.
                let mut state = this.state();
                state.sequence -= 1;
                state.dirty = true;
            }
            this.writing.store(false, SeqCst);
            result
        });
        task.await
    }

    async fn write(&self, syncer: &Syncer) -> Result<(), MediaError> {
        let (page, offset) = {
            let mut state = self.state();
            state.sequence += 1;
            let slot = usize::from(state.sequence.is_multiple_of(2));
            (encode(self.uuid, state.sequence, &state.saved), SETTINGS_OFFSETS[slot])
        };
        let (result, _) = syncer.media().write(offset, vec![Buffer::from_slice(&page)]).await;
        result?;
        syncer.sync().await
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn bit(nsid: u32) -> u64 {
    1u64.checked_shl(nsid).unwrap_or(0)
}

fn encode(uuid: [u8; 16], sequence: u64, values: &Values) -> [u8; Page::SIZE] {
    let mut head = Page::zeroed();
    let count = u32::try_from(values.len()).expect("at most a page's");
    head.set_magic(MAGIC).set_version(VERSION).set_uuid(&uuid);
    head.set_sequence(sequence).set_count(count);
    let mut bytes = *head.as_bytes();
    for (slot, ((fid, nsid), value)) in values.iter().enumerate() {
        let mut entry = Entry::zeroed();
        entry.set_fid(*fid).set_nsid(*nsid).set_value(*value);
        let at = ENTRIES_OFFSET + slot * Entry::SIZE;
        bytes[at..at + Entry::SIZE].copy_from_slice(entry.as_bytes());
    }
    let mut page = Page::from_bytes(bytes);
    page.set_checksum(crc32c::crc32c(&bytes));
    *page.as_bytes()
}

fn parse(bytes: &[u8], uuid: [u8; 16]) -> Option<(u64, Values)> {
    let page = Page::parse(bytes)?;
    let mut clear = page;
    clear.set_checksum(0);
    let whole = page.magic() == MAGIC
        && page.version() == VERSION
        && page.uuid() == uuid
        && page.checksum() == crc32c::crc32c(clear.as_bytes())
        && page.count() as usize <= ENTRIES_MAX;
    let entries = bytes.get(ENTRIES_OFFSET..)?.as_chunks::<16>().0;
    let entries = entries.iter().take(page.count() as usize).map(|bytes| Entry::from_bytes(*bytes));
    whole.then(|| {
        let values = entries.map(|entry| ((entry.fid(), entry.nsid()), entry.value())).collect();
        (page.sequence(), values)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_reads_back_and_any_damage_voids_it() {
        let values: Values = [((0x84, 1), 1), ((0x20, 2), 1), ((4, 0), 300)].into();
        let page = encode([7; 16], 9, &values);
        assert_eq!(parse(&page, [7; 16]), Some((9, values)));
        assert_eq!(parse(&page, [8; 16]), None, "another drive's");
        for index in (0..128).chain([4095]) {
            let mut damaged = page;
            damaged[index] ^= 1;
            assert_eq!(parse(&damaged, [7; 16]), None, "byte {index}");
        }
    }
}
