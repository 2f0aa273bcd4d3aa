//! Progress bars on standard error, where that is a terminal.

use std::io::IsTerminal;

use csd_measure::characterize::Step;
use csd_store::object::Progress;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::context::Context;

/// A progress bar and the function that moves it. Dropping it removes the bar.
pub(crate) struct Bar {
    bar: ProgressBar,
    /// Moves the bar.
    pub(crate) progress: Progress,
}

/// Prints lines above a bar, if there is one.
#[derive(Clone, Default)]
pub(crate) struct Above(Option<ProgressBar>);

impl Above {
    /// Hides the bar while `print` prints.
    pub(crate) fn print(&self, print: impl FnOnce()) {
        match &self.0 {
            Some(bar) => bar.suspend(print),
            None => print(),
        }
    }
}

/// Sets a bar's length once it is known.
pub(crate) struct Total(ProgressBar);

impl Total {
    /// Sets the bar's length.
    pub(crate) fn set(&self, bytes: u64) {
        self.0.set_length(bytes);
        self.0.set_style(style(true));
    }
}

/// Returns the style of a bar whose length is known, or of a count.
fn style(known: bool) -> ProgressStyle {
    let template = match known {
        true => {
            "{msg} [{bar:30}] {binary_bytes}/{binary_total_bytes} {binary_bytes_per_sec} ETA {eta}"
        }
        false => "{msg} {binary_bytes} {binary_bytes_per_sec}",
    };
    ProgressStyle::with_template(template).expect("our own templates are sound")
}

impl Bar {
    /// Shows a bar over `bytes`, or a count if the length is unknown. It is hidden without a
    /// terminal, and with --json or --quiet.
    pub(crate) fn new(context: &Context, what: &str, bytes: Option<u64>) -> Self {
        if context.json || context.quiet || !std::io::stderr().is_terminal() {
            return Self { bar: ProgressBar::hidden(), progress: Progress::none() };
        }
        Self::on(ProgressDrawTarget::stderr(), what, bytes)
    }

    fn on(target: ProgressDrawTarget, what: &str, bytes: Option<u64>) -> Self {
        let bar = ProgressBar::with_draw_target(bytes, target);
        let bar = bar.with_style(style(bytes.is_some())).with_message(what.to_owned());
        let moved = bar.clone();
        Self { bar, progress: Progress::new(move |bytes| moved.inc(bytes)) }
    }

    /// Returns a handle that prints lines above it.
    pub(crate) fn above(&self) -> Above {
        Above(Some(self.bar.clone()))
    }

    /// Returns a handle that sets its length.
    pub(crate) fn total(&self) -> Total {
        Total(self.bar.clone())
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// A progress bar over measurements.
pub(crate) struct Steps(ProgressBar);

impl Steps {
    /// Shows a bar; it is hidden without a terminal, and with --json or --quiet.
    pub(crate) fn new(context: &Context) -> Self {
        if context.json || context.quiet || !std::io::stderr().is_terminal() {
            return Self(ProgressBar::hidden());
        }
        let style = ProgressStyle::with_template("[{bar:30}] {pos}/{len} ETA {eta} {msg}");
        Self(ProgressBar::new(0).with_style(style.expect("our own templates are sound")))
    }

    /// Moves the bar to this step.
    pub(crate) fn show(&self, step: &Step) {
        self.at(step.done, step.of, &step.what);
    }

    /// Moves the bar to step `done` of `of`, with this name.
    pub(crate) fn at(&self, done: usize, of: usize, what: &str) {
        self.0.set_length(of as u64);
        self.0.set_position(done as u64);
        self.0.set_message(what.to_owned());
    }
}

impl Drop for Steps {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::{Arc, Mutex};

    use indicatif::TermLike;

    use super::*;

    /// A terminal that records its output.
    #[derive(Clone, Debug, Default)]
    struct Screen(Arc<Mutex<String>>);

    impl TermLike for Screen {
        fn width(&self) -> u16 {
            120
        }
        fn move_cursor_up(&self, _: usize) -> io::Result<()> {
            Ok(())
        }
        fn move_cursor_down(&self, _: usize) -> io::Result<()> {
            Ok(())
        }
        fn move_cursor_right(&self, _: usize) -> io::Result<()> {
            Ok(())
        }
        fn move_cursor_left(&self, _: usize) -> io::Result<()> {
            Ok(())
        }
        fn write_line(&self, text: &str) -> io::Result<()> {
            self.write_str(text)
        }
        fn write_str(&self, text: &str) -> io::Result<()> {
            self.0.lock().unwrap().push_str(text);
            Ok(())
        }
        fn clear_line(&self) -> io::Result<()> {
            Ok(())
        }
        fn flush(&self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_bar_shows_its_total_and_what_is_left_of_the_time() {
        for known_at_once in [true, false] {
            let screen = Screen::default();
            let target = ProgressDrawTarget::term_like(Box::new(screen.clone()));
            let bar = Bar::on(target, "x", known_at_once.then_some(1 << 20));
            let before = std::mem::take(&mut *screen.0.lock().unwrap());
            assert!(!before.contains("ETA"), "{before}");
            if !known_at_once {
                bar.total().set(1 << 20);
            }
            bar.progress.add(1 << 18);
            bar.bar.force_draw();
            let drawn = screen.0.lock().unwrap().clone();
            assert!(drawn.contains("256.00 KiB/1.00 MiB") && drawn.contains("ETA"), "{drawn}");
        }
    }
}
