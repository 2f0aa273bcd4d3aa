//! What a drive says of itself while it serves: events with fields, to a sink of the caller's.
//!
//! Never a clock, a file or a format: those are the sink's. Never an event for a command that went
//! well. Invariant: what a host or a medium can cause again and again goes through
//! [`Log::write_rated`], and all of that together takes at most [`BYTES_MAX`] in an hour.

mod rate_limiter;

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use csd_reactor::now;

pub use rate_limiter::BYTES_MAX;
use rate_limiter::RateLimiter;

/// How much an event matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Something is lost or refused that should not be.
    Error,
    /// A peer or the surroundings misbehave.
    Warn,
    /// The drive's and its hosts' coming and going.
    Info,
}

impl Level {
    /// Its name, in small letters.
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
    /// How much it matters.
    pub level: Level,
    /// What happened.
    pub event: &'static str,
    /// To whom, where and why.
    pub fields: &'a [(&'static str, String)],
    /// Others can cause it as often as they like; it is held back when they do.
    pub rated: bool,
}

impl Record<'_> {
    /// Most bytes of its line, in whatever form a sink writes it: with a time, names in quotes, and
    /// what is not plain ASCII escaped.
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

/// Most characters of a field of an event that is rated; the rest is cut off.
const FIELD_CHARS_MAX: usize = 300;

type Sink = dyn Fn(&Record<'_>) + Send + Sync;

struct Inner {
    most: Level,
    sink: Box<Sink>,
    rate_limiter: Mutex<RateLimiter>,
}

/// Where events go; clones go to the same place, and share what is allowed.
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
    /// Gives `sink` the events up to `level`. It is called on a drive's core and must not block.
    pub fn new(level: Level, sink: impl Fn(&Record<'_>) + Send + Sync + 'static) -> Self {
        let (sink, rate_limiter) = (Box::new(sink), Mutex::default());
        Self { inner: Some(Arc::new(Inner { most: level, sink, rate_limiter })) }
    }

    /// Tells of an event that the drive itself or who runs it gave rise to.
    pub fn write(&self, level: Level, event: &'static str, fields: &[(&'static str, String)]) {
        if let Some(inner) = self.listening(level) {
            (inner.sink)(&Record { level, event, fields, rated: false });
        }
    }

    /// Tells of an event that a peer can cause again and again, or a medium. What is too much is
    /// held back and counted; the next event of its name says how many there were (`more`), or
    /// [`Self::summarise`]. Events of other names do not suffer.
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
        // With room for the number of those held back.
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

    /// Tells how many events were held back that nothing has told of yet: as far as is allowed, or
    /// all because the drive stops, which is a line for each name at most.
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
