//! [`Printer`]: selected lines of one object on standard output, as grep prints them.
//!
//! Lines go out as they are, whatever bytes they have. Invariant: if a run begins again, because
//! its object was moved, no byte is printed twice.

use std::io::{self, IsTerminal, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use csd_kernels::search::{Found, Matcher};

use crate::cli::search::{Colour, Grep};
use crate::context::Context;
use crate::escape::escape;
use crate::report::Failure;
use crate::target::cannot_write;

/// Bytes that are gathered before they are written.
const GATHERED_BYTES: usize = 256 << 10;

const NAME: &str = "\x1b[35m";
const NUMBER: &str = "\x1b[32m";
const MATCH: &str = "\x1b[1;31m";
const PLAIN: &str = "\x1b[0m";

/// Form of the output.
#[derive(Clone, Copy, Debug)]
pub(super) struct Form {
    /// True if nothing is.
    pub(super) is_silent: bool,
    /// True for counts.
    counts: bool,
    /// True for names alone.
    names_only: bool,
    /// True to print the object's name before each line.
    with_name: bool,
    numbers: bool,
    colour: bool,
    /// True to colour the matches, too.
    matches: bool,
}

impl Form {
    pub(super) fn of(options: &Grep, context: &Context) -> Self {
        let colour = match options.color {
            Colour::Always => true,
            Colour::Never => false,
            Colour::Auto => {
                io::stdout().is_terminal()
                    && std::env::var_os("NO_COLOR").is_none_or(|no| no.is_empty())
            }
        };
        Self {
            is_silent: context.quiet || context.json,
            counts: options.count,
            names_only: options.names_only,
            with_name: options.names.len() > 1,
            numbers: options.line_number,
            colour,
            matches: colour && !options.invert_match,
        }
    }
}

/// Why nothing more is printed.
#[derive(Debug)]
pub(super) enum Closed {
    /// The reader of standard output has closed its end.
    ByReader,
    /// Output is lost.
    Failed(Failure),
}

impl std::fmt::Display for Closed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::ByReader => f.write_str("the reader has closed its end"),
            Self::Failed(failure) => f.write_str(&failure.message),
        }
    }
}

/// Prints the lines of one object.
pub(super) struct Printer {
    form: Form,
    name: String,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    gathered: Vec<u8>,
    /// Bytes of this run that were gathered and taken, and those that were printed in all runs.
    taken: u64,
    printed: u64,
    is_closed: bool,
}

impl Printer {
    pub(super) fn new(name: &str, form: Form) -> Arc<Self> {
        Arc::new(Self { form, name: escape(name).into_owned(), state: Mutex::default() })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins the object, perhaps again.
    pub(super) fn begin(&self) {
        let mut state = self.state();
        state.gathered.clear();
        state.taken = 0;
    }

    /// Prints lines.
    pub(super) fn lines(&self, found: Found<'_>, matcher: &Matcher) -> Result<(), Closed> {
        let Form { with_name, numbers, matches, .. } = self.form;
        let mut state = self.state();
        if !(with_name || numbers || matches) {
            state.gathered.extend_from_slice(found.lines);
            return state.flush(GATHERED_BYTES);
        }
        let lines = found.lines.split_inclusive(|byte| *byte == b'\n');
        for (number, line) in (found.number..).zip(lines) {
            self.line(number, line, matcher, &mut state.gathered);
            state.flush(GATHERED_BYTES)?;
        }
        Ok(())
    }

    /// Appends a line with what precedes it.
    fn line(&self, number: u64, line: &[u8], matcher: &Matcher, to: &mut Vec<u8>) {
        if self.form.with_name {
            self.coloured(NAME, self.name.as_bytes(), to);
            to.push(b':');
        }
        if self.form.numbers {
            self.coloured(NUMBER, number.to_string().as_bytes(), to);
            to.push(b':');
        }
        let mut plain = 0;
        if self.form.matches {
            for found in matcher.all(line) {
                to.extend_from_slice(&line[plain..found.start]);
                plain = found.end;
                self.coloured(MATCH, &line[found], to);
            }
        }
        to.extend_from_slice(&line[plain..]);
    }

    fn coloured(&self, colour: &str, text: &[u8], to: &mut Vec<u8>) {
        let (before, after) = if self.form.colour { (colour, PLAIN) } else { ("", "") };
        to.extend_from_slice(before.as_bytes());
        to.extend_from_slice(text);
        to.extend_from_slice(after.as_bytes());
    }

    /// Writes what was gathered.
    pub(super) fn flush(&self) -> Result<(), Closed> {
        self.state().flush(0)
    }

    /// Ends the object, of which so many lines were selected. Returns true if the reader has closed
    /// its end.
    ///
    /// # Errors
    /// Run: output is lost.
    pub(super) fn end(&self, selected: u64) -> Result<bool, Failure> {
        let mut state = self.state();
        let Form { is_silent, counts, names_only, with_name, .. } = self.form;
        if !is_silent && names_only && selected > 0 {
            self.coloured(NAME, self.name.as_bytes(), &mut state.gathered);
            state.gathered.push(b'\n');
        } else if !is_silent && counts {
            if with_name {
                self.coloured(NAME, self.name.as_bytes(), &mut state.gathered);
                state.gathered.push(b':');
            }
            state.gathered.extend_from_slice(format!("{selected}\n").as_bytes());
        }
        match state.flush(0) {
            Err(Closed::Failed(failure)) => Err(failure),
            Ok(()) | Err(Closed::ByReader) => Ok(state.is_closed),
        }
    }
}

impl State {
    /// Writes what was gathered, if it is more than so many bytes.
    fn flush(&mut self, bytes: usize) -> Result<(), Closed> {
        if self.is_closed {
            return Err(Closed::ByReader);
        }
        if self.gathered.len() <= bytes {
            return Ok(());
        }
        let again = self.printed.saturating_sub(self.taken).min(self.gathered.len() as u64);
        let new = &self.gathered[usize::try_from(again).expect("at most its length")..];
        let mut out = io::stdout().lock();
        let written = out.write_all(new).and_then(|()| out.flush());
        self.taken += self.gathered.len() as u64;
        self.printed = self.printed.max(self.taken);
        self.gathered.clear();
        written.map_err(|error| match error.kind() {
            io::ErrorKind::BrokenPipe => {
                self.is_closed = true;
                Closed::ByReader
            }
            _ => Closed::Failed(cannot_write("standard output", &error)),
        })
    }
}
