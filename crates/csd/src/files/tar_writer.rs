//! Headers of tar members, in the POSIX form (pax), which every tar reads.
//!
//! An extended header precedes the header of each member: its path and size, and a comment, which
//! programs that do not know it ignore without a word. Performs no I/O.

use tar::{EntryType, Header};

/// Size of a block; members end at one.
pub(super) const BLOCK_BYTES: usize = 512;
/// Zeros at the end of a tar.
pub(super) const END: [u8; 2 * BLOCK_BYTES] = [0; 2 * BLOCK_BYTES];
/// Permissions of extracted files.
const MODE: u32 = 0o644;
/// Path in a header whose extended header has the path.
const ELSEWHERE: &str = "pax-path";

/// Returns the headers of a file.
pub(super) fn headers(path: &str, bytes: u64, modified_s: u64, comment: &str) -> Vec<u8> {
    let records = [("path", path), ("size", &bytes.to_string()), ("comment", comment)];
    let body: String = records.iter().map(|(key, value)| record(key, value)).collect();
    let mut out = header("pax-header", body.len() as u64, modified_s, EntryType::XHeader);
    out.extend_from_slice(body.as_bytes());
    out.resize(out.len() + padding(body.len() as u64), 0);
    out.extend(header(path, bytes, modified_s, EntryType::Regular));
    out
}

/// Returns the number of zeros behind so many bytes.
pub(super) fn padding(bytes: u64) -> usize {
    let rest = usize::try_from(bytes % BLOCK_BYTES as u64).expect("less than a block");
    (BLOCK_BYTES - rest) % BLOCK_BYTES
}

fn header(path: &str, bytes: u64, modified_s: u64, kind: EntryType) -> Vec<u8> {
    let mut header = Header::new_ustar();
    if header.set_path(path).is_err() {
        header.set_path(ELSEWHERE).expect("a short path");
    }
    header.set_size(bytes);
    header.set_mode(MODE);
    header.set_mtime(modified_s);
    header.set_entry_type(kind);
    header.set_cksum();
    header.as_bytes().to_vec()
}

/// Returns a record: its own length, the key and the value.
fn record(key: &str, value: &str) -> String {
    let rest = format!(" {key}={value}\n");
    let mut length = rest.len() + 1;
    while length != rest.len() + length.to_string().len() {
        length = rest.len() + length.to_string().len();
    }
    format!("{length}{rest}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_counts_its_own_length() {
        assert_eq!(record("path", "a"), "9 path=a\n");
        let long = record("comment", &"x".repeat(86));
        assert!(long.starts_with("98 ") && long.len() == 98, "{long}");
        let longer = record("comment", &"x".repeat(88));
        assert!(longer.starts_with("101 ") && longer.len() == 101, "{longer}");
    }

    #[test]
    fn members_end_at_blocks() {
        assert_eq!([padding(0), padding(1), padding(511), padding(512)], [0, 511, 1, 0]);
        for path in ["a", &"long/".repeat(100), "m\u{e9}t\u{e9}o"] {
            assert!(headers(path, 9 << 30, 1, "c").len().is_multiple_of(BLOCK_BYTES), "{path}");
        }
    }
}
