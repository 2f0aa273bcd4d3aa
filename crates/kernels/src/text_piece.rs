//! Pieces of a text, which begin and end within a line, as [`search`](crate::search) and
//! [`frequencies`](crate::frequencies) take them: bounds of lines, and the bytes up to the first
//! newline, which the host joins.

use crate::program::{Cause, Failure, Output};

/// Longest line within a piece: as long as the longest chunk of an object.
pub(crate) const LINE_BYTES_MAX: usize = 8 << 20;
/// Longest line that begins in one piece and ends in another.
pub(crate) const JOINED_LINE_BYTES_MAX: usize = 256 << 20;

/// Hands back the bytes up to the first newline. Returns their number, and true if it has come.
pub(crate) fn hand_back(shown: &[u8], output: &mut Output) -> (usize, bool) {
    let (used, is_over) = line_end(shown);
    output.append(&shown[..used]);
    (used, is_over)
}

/// Continues a line. Returns the number of bytes taken, and true if its newline was among them.
///
/// # Errors
/// If the line is longer than [`LINE_BYTES_MAX`].
pub(crate) fn take_line(line: &mut Vec<u8>, shown: &[u8]) -> Result<(usize, bool), Failure> {
    let (used, is_over) = line_end(shown);
    if line.len() + used > LINE_BYTES_MAX {
        let reason = format!("a line of the piece has more than {LINE_BYTES_MAX} bytes");
        return Err(Failure::new(Cause::InputType, reason));
    }
    line.extend_from_slice(&shown[..used]);
    Ok((used, is_over))
}

/// Returns the number of bytes up to the first newline, with it, and true if there is one.
fn line_end(shown: &[u8]) -> (usize, bool) {
    match memchr::memchr(b'\n', shown) {
        Some(newline) => (newline + 1, true),
        None => (shown.len(), false),
    }
}
