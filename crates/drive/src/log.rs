//! What a drive says of itself while it serves: events with fields, to a sink of the caller's.
//!
//! Never a clock, a file or a format: those are the sink's. Never an event for a command that went
//! well. Invariant: what a host or a medium can cause again and again is told at a bounded rate.

use std::cell::Cell;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use csd_reactor::{Instant, now};

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
}

type Sink = dyn Fn(&Record<'_>) + Send + Sync;

/// Where events go; clones go to the same place.
#[derive(Clone, Default)]
pub struct Log {
    sink: Option<(Level, Arc<Sink>)>,
}

impl fmt::Debug for Log {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Log({:?})", self.sink.as_ref().map(|(level, _)| level))
    }
}

impl Log {
    /// Gives `sink` the events up to `level`. It is called on a drive's core and should not block.
    pub fn new(level: Level, sink: impl Fn(&Record<'_>) + Send + Sync + 'static) -> Self {
        Self { sink: Some((level, Arc::new(sink))) }
    }

    /// Tells of an event.
    pub fn write(&self, level: Level, event: &'static str, fields: &[(&'static str, String)]) {
        if let Some((most, sink)) = &self.sink
            && level <= *most
        {
            sink(&Record { level, event, fields });
        }
    }
}

/// Lets one event through in a second, and counts the others.
#[derive(Debug, Default)]
pub struct Rate {
    last: Cell<Option<Instant>>,
    held_back: Cell<u64>,
}

impl Rate {
    /// How many were held back since the last that was let through, if this one is let through.
    pub fn pass(&self) -> Option<u64> {
        let now = now();
        if self.last.get().is_some_and(|last| now.since(last) < Duration::from_secs(1)) {
            self.held_back.set(self.held_back.get() + 1);
            return None;
        }
        self.last.set(Some(now));
        Some(self.held_back.take())
    }
}
