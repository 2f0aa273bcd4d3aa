//! [`confirm`]: a question that the user answers on the terminal before something is deleted.

use std::io::{BufRead, IsTerminal, Write};

use crate::report::Failure;

/// Asks the user to confirm what `question` says; `refused` says what was not done.
///
/// # Errors
/// Usage: there is no terminal to ask on, and `without` says what the command does. Run: the answer
/// is no.
pub(crate) fn confirm(question: &str, without: &str, refused: &str) -> Result<(), Failure> {
    let input = std::io::stdin();
    if !input.is_terminal() {
        return Err(Failure::usage(format!("{without}: say --yes")));
    }
    let _gone = std::io::stderr().write_all(format!("{question} [y/N] ").as_bytes());
    let mut answer = String::new();
    let read = input.lock().read_line(&mut answer);
    match read.is_ok() && matches!(answer.trim(), "y" | "Y" | "yes") {
        true => Ok(()),
        false => Err(Failure::run(refused)),
    }
}
