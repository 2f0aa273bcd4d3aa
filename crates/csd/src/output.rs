//! Standard output and standard error of a command.
//!
//! Invariant: lost output is reported, on standard error and by the exit code.

use std::io::{self, Write};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use crate::escape::escape_lines;

/// Exit code of a command that did its work, and whose output is lost.
const FAILED: u8 = 1;

/// True once output could not be written.
static LOST: AtomicBool = AtomicBool::new(false);

/// Prints to standard output; ignores a reader that has closed its end. If the output is lost for
/// another reason, says so at once, and [`ended`] says it with the exit code.
pub(crate) fn print(text: &str) {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe && !LOST.swap(true, Relaxed) => {
            print_error(&format!("error: the output is not written: {error}"));
        }
        _ => {}
    }
}

/// Prints a line to standard error, likewise, with its text escaped.
pub(crate) fn print_error(text: &str) {
    let _gone = writeln!(io::stderr().lock(), "{}", escape_lines(text));
}

/// Returns the exit code of a command that ended with `code`: another one if its output is lost.
pub(crate) fn ended(code: u8) -> ExitCode {
    let is_lost = LOST.load(Relaxed) && matches!(code, 0 | 4);
    ExitCode::from(if is_lost { FAILED } else { code })
}
