//! Events of a drive with fields, for a sink of the caller's.
//!
//! The sink adds time and format, and writes the file. Commands that succeed cause no event.
//! Invariant: events that a host or a medium can cause repeatedly go through [`Log::write_rated`],
//! and all of them together take at most [`BYTES_MAX`] in an hour.

mod rate_limiter;

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use csd_reactor::now;

pub use rate_limiter::BYTES_MAX;
use rate_limiter::RateLimiter;

/// Severity of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Something is lost or refused that should not be.
    Error,
    /// A peer or the surroundings misbehave.
    Warn,
    /// A start or stop of the drive, or a connection of a host.
    Info,
}

impl Level {
    /// Returns its name in lower case.
    pub fn name(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warn => "warn",
            Self::Info => "info",
        }
    }
}

/// One event.
#[derive(Clone, Copy, Debug)]
pub struct Record<'a> {
    /// Severity.
    pub level: Level,
    /// Event.
    pub event: &'static str,
    /// Details.
    pub fields: &'a [(&'static str, String)],
    /// True if peers can cause it repeatedly, so that it is rate limited.
    pub rated: bool,
}

impl Record<'_> {
    /// Returns the most bytes of its line in any form that a sink writes: with a time, names in
    /// quotes, and characters other than plain ASCII escaped.
    pub fn bytes_max(&self) -> u64 {
        const FRAME: usize = 80;
        const FIELD: usize = 6;
        let escaped = |c: char| match c {
            '"' | '\\' => 2,
            ' '..='~' => 1,
            _ => 10,
        };
        let field = |(name, value): &(&str, String)| {
            FIELD + name.len() + value.chars().map(escaped).sum::<usize>()
        };
        (FRAME + self.event.len() + self.fields.iter().map(field).sum::<usize>()) as u64
    }
}

/// Most characters of a field of a rate limited event; the rest is cut off.
const FIELD_CHARS_MAX: usize = 300;

type Sink = dyn Fn(&Record<'_>) + Send + Sync;

struct Inner {
    most: Level,
    sink: Box<Sink>,
    rate_limiter: Mutex<RateLimiter>,
}

/// Log of events. Clones share the sink and the rate limit.
#[derive(Clone, Default)]
pub struct Log {
    inner: Option<Arc<Inner>>,
}

impl fmt::Debug for Log {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Log({:?})", self.inner.as_ref().map(|inner| inner.most))
    }
}

impl Log {
    /// Makes a log that passes events up to `level` to `sink`, which runs on a drive's core and
    /// must not block.
    pub fn new(level: Level, sink: impl Fn(&Record<'_>) + Send + Sync + 'static) -> Self {
        let (sink, rate_limiter) = (Box::new(sink), Mutex::default());
        Self { inner: Some(Arc::new(Inner { most: level, sink, rate_limiter })) }
    }

    /// Logs an event that the drive itself or its user caused.
    pub fn write(&self, level: Level, event: &'static str, fields: &[(&'static str, String)]) {
        if let Some(inner) = self.listening(level) {
            (inner.sink)(&Record { level, event, fields, rated: false });
        }
    }

    /// Logs an event that a peer or a medium can cause repeatedly. Events beyond the limit are held
    /// back and counted; the next event of the same name has their number (`more`), or
    /// [`Self::summarise`]. Each name has its own limit.
    ///
    /// # Panics
    /// Outside a core.
    pub fn write_rated(
        &self,
        level: Level,
        event: &'static str,
        fields: &[(&'static str, String)],
    ) {
        let Some(inner) = self.listening(level) else { return };
        let cut = |(name, value): &(&'static str, String)| {
            let end = value.char_indices().nth(FIELD_CHARS_MAX).map_or(value.len(), |(end, _)| end);
            (*name, value[..end].to_owned())
        };
        let mut fields: Vec<_> = fields.iter().map(cut).collect();
        // With space for the number of events held back.
        fields.push(("more", u64::MAX.to_string()));
        let bytes = Record { level, event, fields: &fields, rated: true }.bytes_max();
        let Some(more) = inner.rate_limiter().try_acquire(level, event, bytes, now().ns()) else {
            return;
        };
        fields.pop();
        if more > 0 {
            fields.push(("more", more.to_string()));
        }
        (inner.sink)(&Record { level, event, fields: &fields, rated: true });
    }

    /// Logs the numbers of events held back that no later event has reported: as far as the limit
    /// allows, or all of them because the drive stops (at most one line for each name).
    ///
    /// # Panics
    /// Outside a core.
    pub fn summarise(&self, is_last: bool) {
        let Some(inner) = &self.inner else { return };
        let fields = |of: &str, more: u64| [("of", of.to_owned()), ("more", more.to_string())];
        let event = "events held back";
        let bytes = |of: &str| {
            let fields = &fields(of, u64::MAX);
            let record = Record { level: Level::Info, event, fields, rated: true };
            if is_last { 0 } else { record.bytes_max() }
        };
        let held_back = inner.rate_limiter().held_back(bytes, now().ns());
        for (level, of, more) in held_back {
            (inner.sink)(&Record { level, event, fields: &fields(of, more), rated: true });
        }
    }

    fn listening(&self, level: Level) -> Option<&Inner> {
        self.inner.as_deref().filter(|inner| level <= inner.most)
    }
}

impl Inner {
    fn rate_limiter(&self) -> MutexGuard<'_, RateLimiter> {
        self.rate_limiter.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
