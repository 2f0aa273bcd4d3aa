//! The program of search: stream 0 holds a piece of a text. It writes the answer
//! ([`super::Piece`]); the result is the number of selected lines, without the first line and the
//! unfinished last one.

use std::sync::Arc;

use super::known;
use super::long_line::LongLine;
use super::matcher::Matcher;
use super::piece::Writer;
use super::select::{Lines, Selected};
use super::{Parameters, Wants};
use crate::program::{Failure, Inputs, Output, Program, STEP_BYTES, Step};
use crate::text_piece::{hand_back, take_line};

struct Searching {
    parameters: Parameters,
    /// The compiled pattern, from the first step on: compiling takes too long before.
    matcher: Option<Arc<Matcher>>,
    /// True once the first newline has come.
    in_lines: bool,
    /// Beginning of a line whose end has not come.
    line: Vec<u8>,
    /// Search of that line, if it is too long for one step.
    long: Option<LongLine>,
    writer: Writer,
    found: u64,
}

pub(super) fn start(parameters: &[u8]) -> Result<Box<dyn Program>, Failure> {
    let parameters = Parameters::parse(parameters).map_err(Failure::parameters)?;
    let numbered = parameters.wants == Wants::Numbered;
    Ok(Box::new(Searching {
        parameters,
        matcher: None,
        in_lines: false,
        line: Vec::new(),
        long: None,
        writer: Writer::new(numbered),
        found: 0,
    }))
}

impl Program for Searching {
    fn step(&mut self, inputs: &mut Inputs, output: &mut Output) -> Result<Step, Failure> {
        if output.is_full() {
            return Ok(Step::Full);
        }
        let Some(matcher) = self.matcher.clone() else {
            let Parameters { pattern, ignore_case, .. } = &self.parameters;
            let matcher = known::matcher(pattern, *ignore_case).map_err(Failure::parameters)?;
            self.matcher = Some(matcher);
            return Ok(Step::More);
        };
        let shown = inputs.peek(0);
        let used = match (self.in_lines, self.line.is_empty()) {
            (false, _) => self.head(&shown[..shown.len().min(STEP_BYTES)], output),
            (true, true) => {
                self.lines(&matcher, &shown[..shown.len().min(matcher.step_bytes())], output)?
            }
            (true, false) => {
                self.line(&matcher, &shown[..shown.len().min(matcher.step_bytes())], output)?
            }
        };
        output.count_work(used as u64);
        inputs.consume(0, used);
        if self.found > 0 && self.parameters.wants == Wants::First {
            return Ok(Step::Done { result: self.found });
        }
        if !inputs.is_over(0) {
            return Ok(Step::after(inputs, 0));
        }
        if self.in_lines {
            output.append(&self.writer.head(0));
            output.append(&self.line);
        }
        Ok(Step::Done { result: self.found })
    }
}

impl Searching {
    /// Hands back the bytes up to the first newline; returns their number.
    fn head(&mut self, shown: &[u8], output: &mut Output) -> usize {
        let (used, is_over) = hand_back(shown, output);
        self.in_lines = is_over;
        used
    }

    /// Searches the whole lines at the beginning of `shown`, or takes the beginning of a line;
    /// returns the number of bytes used.
    fn lines(
        &mut self,
        matcher: &Arc<Matcher>,
        shown: &[u8],
        output: &mut Output,
    ) -> Result<usize, Failure> {
        let Some(newline) = memchr::memrchr(b'\n', shown) else {
            return self.line(matcher, shown, output);
        };
        let lines = &shown[..=newline];
        let mut selected = Selected::new(matcher, lines, self.parameters.invert);
        if self.parameters.wants == Wants::First {
            self.found = selected.next().map_or(0, |run| run.count);
            return Ok(lines.len());
        }
        // Neighbours become one run.
        let mut run: Option<Lines> = None;
        let mut written = 0;
        for next in selected {
            match &mut run {
                Some(run) if run.bytes.end == next.bytes.start => {
                    (run.bytes.end, run.count) = (next.bytes.end, run.count + next.count);
                }
                run => {
                    if let Some(run) = run.replace(next) {
                        written = self.select(lines, written, &run, output);
                    }
                }
            }
        }
        if let Some(run) = run {
            written = self.select(lines, written, &run, output);
        }
        self.writer.skip(&lines[written..]);
        Ok(lines.len())
    }

    /// Writes a run of selected lines, and passes over those from `written` on that are before it.
    /// Returns its end.
    fn select(&mut self, lines: &[u8], written: usize, run: &Lines, output: &mut Output) -> usize {
        self.found += run.count;
        if self.parameters.wants != Wants::Count {
            self.writer.skip(&lines[written..run.bytes.start]);
            output.append(&self.writer.head(run.count));
            output.append(&lines[run.bytes.clone()]);
        }
        run.bytes.end
    }

    /// Takes more of a line, and searches it once it has ended; returns the number of bytes used.
    fn line(
        &mut self,
        matcher: &Arc<Matcher>,
        shown: &[u8],
        output: &mut Output,
    ) -> Result<usize, Failure> {
        let (used, is_over) = take_line(&mut self.line, shown)?;
        if let Some(long) = &mut self.long {
            long.feed(&shown[..used])?;
        } else if self.line.len() > matcher.line_bytes() {
            let mut long = LongLine::begin(matcher)?;
            long.feed(&self.line)?;
            self.long = Some(long);
        }
        if !is_over {
            return Ok(used);
        }
        let long = self.long.take();
        let matches = long.map_or_else(|| matcher.matches(&self.line), |long| long.is_found());
        let line = std::mem::take(&mut self.line);
        match matches != self.parameters.invert {
            true => {
                self.select(&line, 0, &Lines { bytes: 0..line.len(), count: 1 }, output);
            }
            false => self.writer.skip(&line),
        }
        // Its memory serves the next one.
        self.line = line;
        self.line.clear();
        Ok(used)
    }
}
