//! The drive's services: what log page C3h says of each, and the data of feature C1h, which pauses
//! and limits one of them.
//!
//! The drive counts; this is the layout. Invariants: texts are cut between characters; no byte of
//! an order is ignored.

use super::executions::cut;
use super::log_entries;
use crate::wire::{layout, text_of};

/// Version of both layouts.
pub const VERSION: u16 = 1;
/// Most entries that a reader takes.
pub const SERVICES_MAX: usize = 32;

/// States by number; 0 is none.
pub const STATES: [&str; 3] = ["runs", "paused", "failed"];
/// Number of the state in which a service may work.
pub const RUNS: u8 = 1;
/// Number of the state in which somebody has paused it.
pub const PAUSED: u8 = 2;
/// Number of the state in which it is paused because it failed.
pub const FAILED: u8 = 3;

/// Classes by number less 1, as the metrics name them.
pub const CLASSES: [&str; 5] = ["foreground", "tunnel", "execution", "service", "system"];

/// Bit of the header's flags: few segments are free, so that cleaning is due.
pub const FLAG_LOW: u32 = 1;

layout! {
    /// Header of the log page.
    pub struct Header[64] {
        /// [`VERSION`].
        version / set_version: u16 @ 0,
        /// Size of an entry in bytes: later versions may append fields.
        entry_bytes / set_entry_bytes: u16 @ 2,
        /// Number of entries that follow.
        entries / set_entries: u32 @ 4,
        /// Segments of the key-value log.
        segments / set_segments: u32 @ 8,
        /// Those that are free.
        free_segments / set_free_segments: u32 @ 12,
        /// [`FLAG_LOW`].
        flags / set_flags: u32 @ 16,
    }
}

layout! {
    /// A service.
    pub struct Entry[512] {
        /// Name in ASCII, zero-terminated.
        name / set_name: [16] @ 0,
        /// [`RUNS`], [`PAUSED`] or [`FAILED`].
        state / set_state: u8 @ 16,
        /// Class of its work, counted from 1 in [`CLASSES`].
        class / set_class: u8 @ 17,
        /// Limit of its part of the time of all cores, 1 to 100 percent; 100 is no limit.
        share / set_share: u8 @ 18,
        /// Number of the policy that chooses the core of its steps, from 1; 0 for a service that
        /// works where its data is.
        policy / set_policy: u8 @ 19,
        /// Limit of bytes per second; 0 is none.
        rate / set_rate: u64 @ 24,
        /// Steps that it has done.
        steps / set_steps: u64 @ 32,
        /// Bytes that they read and compared, moved or wrote.
        bytes / set_bytes: u64 @ 40,
        /// Time from the beginning of each step to its end, ns.
        busy_ns / set_busy_ns: u64 @ 48,
        /// Steps that failed.
        failures / set_failures: u64 @ 56,
        /// Findings in UTF-8, cut to fit, zero-terminated.
        found / set_found: [64] @ 64,
        /// Cost of a pause, in UTF-8, cut to fit, zero-terminated.
        cost / set_cost: [128] @ 128,
        /// Reason of the failure in UTF-8, cut to fit, zero-terminated.
        reason / set_reason: [256] @ 256,
    }
}

impl Entry {
    /// Returns the name; empty if it is not UTF-8.
    pub fn name_text(&self) -> String {
        text_of(&self.name()).unwrap_or_default().to_owned()
    }

    /// Returns the state in words; `None` if it is one of a later version.
    pub fn state_text(&self) -> Option<&'static str> {
        STATES.get(usize::from(self.state().checked_sub(1)?)).copied()
    }

    /// Returns the class in words; `None` if it is one of a later version.
    pub fn class_text(&self) -> Option<&'static str> {
        CLASSES.get(usize::from(self.class().checked_sub(1)?)).copied()
    }

    /// Returns what a pause costs; empty if it is not UTF-8.
    pub fn cost_text(&self) -> String {
        text_of(&self.cost()).unwrap_or_default().to_owned()
    }

    /// Returns the reason of the failure; empty if there is none.
    pub fn reason_text(&self) -> String {
        text_of(&self.reason()).unwrap_or_default().to_owned()
    }

    /// Returns its findings; `None` if there are none.
    pub fn found_text(&self) -> Option<String> {
        text_of(&self.found()).filter(|found| !found.is_empty()).map(str::to_owned)
    }

    /// Sets its findings.
    pub fn note_found(&mut self, found: &str) -> &mut Self {
        self.set_found(&cut(found))
    }

    /// Sets name, cost of a pause and reason of the failure.
    pub fn describe(&mut self, name: &str, cost: &str, reason: &str) -> &mut Self {
        self.set_name(&cut(name)).set_cost(&cut(cost)).set_reason(&cut(reason))
    }
}

/// The services of a drive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Services {
    /// Segments of the key-value log.
    pub segments: u32,
    /// Those that are free.
    pub free_segments: u32,
    /// True if few are free, so that cleaning is due.
    pub is_low: bool,
    /// Each service.
    pub entries: Vec<Entry>,
}

impl Services {
    /// Returns the data of the log page.
    pub fn encode(&self) -> Vec<u8> {
        let mut header = Header::zeroed();
        header.set_version(VERSION).set_segments(self.segments);
        header.set_entry_bytes(u16::try_from(Entry::SIZE).expect("512"));
        header.set_entries(u32::try_from(self.entries.len()).expect("a drive has few services"));
        header.set_free_segments(self.free_segments);
        header.set_flags(if self.is_low { FLAG_LOW } else { 0 });
        let mut data = header.as_bytes().to_vec();
        self.entries.iter().for_each(|entry| data.extend_from_slice(entry.as_bytes()));
        data
    }

    /// Parses the data of the log page; `None` if it has another version or is cut short.
    pub fn parse(data: &[u8]) -> Option<Self> {
        let header = Header::parse(data)?;
        if header.version() != VERSION {
            return None;
        }
        let sizes = (header.entries(), header.entry_bytes());
        let bounds = (SERVICES_MAX, Entry::SIZE);
        Some(Self {
            segments: header.segments(),
            free_segments: header.free_segments(),
            is_low: header.flags() & FLAG_LOW != 0,
            entries: log_entries::parse(data.get(Header::SIZE..), sizes, bounds, Entry::parse)?,
        })
    }
}

/// Size of the longest log page in bytes.
pub const LOG_BYTES_MAX: usize = Header::SIZE + SERVICES_MAX * Entry::SIZE;

layout! {
    /// Data of Set Features: an order to one service.
    pub struct OrderData[64] {
        /// [`VERSION`].
        version / set_version: u16 @ 0,
        /// Setting: 1 pause, 2 resume, 3 rate, 4 share, 5 policy.
        setting / set_setting: u8 @ 2,
        /// Reserved, 0.
        reserved / set_reserved: u8 @ 3,
        /// Reserved, 0.
        reserved2 / set_reserved2: u32 @ 4,
        /// Name of the service in ASCII, zero-terminated.
        name / set_name: [16] @ 8,
        /// Bytes per second, 0 for no limit; percent, 1 to 100; number of a policy; else 0.
        value / set_value: u64 @ 24,
        /// Reserved, 0.
        rest / set_rest: [32] @ 32,
    }
}

/// A new setting of a service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Setting {
    /// No further step begins.
    Pause,
    /// Steps begin again.
    Resume,
    /// Limit of bytes per second; `None` for no limit.
    Rate(Option<u64>),
    /// Limit of its part of the time, 1 to 100 percent.
    Share(u8),
    /// Number of the policy that chooses the core of its steps, from 1.
    Policy(u8),
}

/// An order to one service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Order {
    /// Name of the service.
    pub name: String,
    /// New setting.
    pub setting: Setting,
}

impl Order {
    /// Returns the data of Set Features.
    pub fn encode(&self) -> [u8; OrderData::SIZE] {
        let mut data = OrderData::zeroed();
        let (setting, value) = match self.setting {
            Setting::Pause => (1, 0),
            Setting::Resume => (2, 0),
            Setting::Rate(rate) => (3, rate.unwrap_or(0)),
            Setting::Share(percent) => (4, u64::from(percent)),
            Setting::Policy(number) => (5, u64::from(number)),
        };
        data.set_version(VERSION).set_setting(setting).set_value(value);
        *data.set_name(&cut(&self.name)).as_bytes()
    }

    /// Parses the data of Set Features; `None` if anything in it is unknown or out of range.
    pub fn parse(data: &[u8]) -> Option<Self> {
        let data = OrderData::parse(data)?;
        let reserved = (data.reserved(), data.reserved2(), data.rest());
        let setting = match (data.setting(), data.value()) {
            (1, 0) => Setting::Pause,
            (2, 0) => Setting::Resume,
            (3, rate) => Setting::Rate(Some(rate).filter(|rate| *rate > 0)),
            (4, percent @ 1..=100) => Setting::Share(u8::try_from(percent).ok()?),
            (5, number @ 1..=255) => Setting::Policy(u8::try_from(number).ok()?),
            _ => return None,
        };
        let name = text_of(&data.name())?.to_owned();
        let order = Self { name, setting };
        // Also bytes behind the end of the name.
        let is_whole = data.version() == VERSION
            && reserved == (0, 0, [0; 32])
            && !order.name.is_empty()
            && order.encode() == *data.as_bytes();
        is_whole.then_some(order)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(name: &str) -> Entry {
        let mut entry = Entry::zeroed();
        entry
            .note_found("7 of them")
            .set_state(FAILED)
            .set_class(4)
            .set_share(25)
            .set_rate(20 << 20)
            .set_steps(7);
        *entry.describe(name, &"ä".repeat(80), "no")
    }

    #[test]
    fn a_log_round_trips_and_short_ones_are_refused() {
        let entries = vec![entry("clean"), entry("scrub")];
        let services = Services { segments: 60, free_segments: 3, is_low: true, entries };
        let data = services.encode();
        assert_eq!(Services::parse(&data).as_ref(), Some(&services));
        let last = &services.entries[1];
        let words = (last.state_text(), last.class_text());
        assert_eq!(words, (Some("failed"), Some("service")));
        assert_eq!((last.name_text(), last.reason_text()), ("scrub".into(), "no".into()));
        assert_eq!(last.found_text().as_deref(), Some("7 of them"));
        assert_eq!(last.cost_text(), "ä".repeat(63), "cut between characters");
        let none = Entry::zeroed();
        assert_eq!((none.state_text(), none.class_text()), (None, None));
        for length in 0..data.len() {
            assert_eq!(Services::parse(&data[..length]), None, "cut to {length}");
        }
        for (at, value) in [(0, 2), (2, 1), (4, 33), (7, 1)] {
            let mut wrong = data.clone();
            wrong[at] = value;
            assert_eq!(Services::parse(&wrong), None, "byte {at}");
        }
    }

    #[test]
    fn an_order_round_trips_and_every_other_byte_is_refused() {
        let settings = [Setting::Pause, Setting::Resume, Setting::Rate(None)];
        let limits = [Setting::Rate(Some(u64::MAX)), Setting::Share(1), Setting::Share(100)];
        let policies = [Setting::Policy(1), Setting::Policy(255)];
        for setting in settings.into_iter().chain(limits).chain(policies) {
            let order = Order { name: "checkpoint".into(), setting };
            let data = order.encode();
            assert_eq!(Order::parse(&data), Some(order));
            assert_eq!(Order::parse(&data[..63]), None);
            for at in (0..2).chain(3..8).chain(19..24).chain(32..64) {
                let mut wrong = data;
                wrong[at] ^= 0x80;
                assert_eq!(Order::parse(&wrong), None, "{setting:?}, byte {at}");
            }
        }
        for (setting, value) in [(0, 0), (1, 1), (2, 1), (4, 0), (4, 101), (5, 0), (5, 256), (6, 0)]
        {
            let mut data = OrderData::zeroed();
            data.set_version(VERSION).set_name(&cut("scrub"));
            data.set_setting(setting).set_value(value);
            assert_eq!(Order::parse(data.as_bytes()), None, "{setting}, {value}");
        }
        let nameless = Order { name: String::new(), setting: Setting::Pause };
        assert_eq!(Order::parse(&nameless.encode()), None);
    }
}
