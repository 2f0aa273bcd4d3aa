//! [`TarReader`]: the members of a tar, one after another.
//!
//! Reads the forms ustar, pax and GNU. Holds one header at a time. Invariant: no bytes make it
//! panic, and a member's bytes are all there or an error says that they are not.

use std::collections::BTreeMap;
use std::io::{self, Read};

use tar::{EntryType, Header, PaxExtensions};

use super::tar_writer::{BLOCK_BYTES, padding};

/// Longest extended header that is read, bytes.
const EXTENDED_BYTES_MAX: u64 = 64 << 20;

/// Kind of a member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    File,
    Folder,
    /// Something else, in words.
    Other(&'static str),
}

/// A member whose bytes follow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Member {
    pub(super) kind: Kind,
    /// Its path; `None` if that is no UTF-8.
    pub(super) path: Option<String>,
    pub(super) bytes: u64,
    pub(super) comment: Option<String>,
}

/// A tar that is read.
pub(super) struct TarReader<R> {
    input: R,
    /// Bytes of the member that are still to be read, and zeros behind them.
    left: u64,
    padding: usize,
}

impl<R: Read> TarReader<R> {
    pub(super) fn new(input: R) -> Self {
        Self { input, left: 0, padding: 0 }
    }

    /// Goes on to the next member; `None` at the end.
    ///
    /// # Errors
    /// An error of the input; [`io::ErrorKind::InvalidData`] if the input is no tar or ends too
    /// early.
    pub(super) fn next(&mut self) -> io::Result<Option<Member>> {
        let mut records = BTreeMap::new();
        loop {
            self.skip()?;
            let Some(header) = self.header()? else { return Ok(None) };
            let kind = header.entry_type();
            let bytes = header.entry_size().map_err(|_| invalid("a size is no number"))?;
            if kind.is_pax_local_extensions() {
                self.begin(bytes);
                for record in PaxExtensions::new(&self.body()?) {
                    let record = record.map_err(|_| invalid("an extended header is malformed"))?;
                    records.insert(record.key_bytes().to_vec(), record.value_bytes().to_vec());
                }
                continue;
            }
            if kind.is_gnu_longname() {
                self.begin(bytes);
                let mut path = self.body()?;
                path.truncate(path.iter().position(|byte| *byte == 0).unwrap_or(path.len()));
                records.insert(b"path".to_vec(), path);
                continue;
            }
            if kind.is_gnu_longlink() || kind.is_pax_global_extensions() {
                self.begin(bytes);
                continue;
            }
            return self.member(&header, bytes, records).map(Some);
        }
    }

    fn member(
        &mut self,
        header: &Header,
        bytes: u64,
        mut records: BTreeMap<Vec<u8>, Vec<u8>>,
    ) -> io::Result<Member> {
        let mut text = |key: &str| records.remove(key.as_bytes()).map(String::from_utf8);
        let bytes = match text("size") {
            Some(size) => {
                let size = size.ok().and_then(|size| size.parse().ok());
                size.ok_or_else(|| invalid("a size is no number"))?
            }
            None => bytes,
        };
        let path = match text("path") {
            Some(path) => path.ok(),
            None => String::from_utf8(header.path_bytes().into_owned()).ok(),
        };
        let comment = text("comment").and_then(Result::ok);
        let is_sparse = records.keys().any(|key| key.starts_with(b"GNU.sparse"));
        let is_folder = path.as_ref().is_some_and(|path| path.ends_with('/'));
        let kind = match header.entry_type() {
            EntryType::Regular | EntryType::Continuous if is_folder => Kind::Folder,
            _ if is_sparse => Kind::Other("a sparse file"),
            EntryType::Regular | EntryType::Continuous => Kind::File,
            EntryType::Directory => Kind::Folder,
            EntryType::Symlink | EntryType::Link => Kind::Other("a link"),
            EntryType::GNUSparse => Kind::Other("a sparse file"),
            _ => Kind::Other("a FIFO, a device, or of a kind that is not known"),
        };
        // Links have no bytes, whatever their size says.
        let has_bytes = !matches!(header.entry_type(), EntryType::Symlink | EntryType::Link);
        self.begin(if has_bytes { bytes } else { 0 });
        Ok(Member { kind, path, bytes, comment })
    }

    fn begin(&mut self, bytes: u64) {
        (self.left, self.padding) = (bytes, padding(bytes));
    }

    /// Skips what is left of a member.
    fn skip(&mut self) -> io::Result<()> {
        let rest = self.left.saturating_add(self.padding as u64);
        let skipped = io::copy(&mut self.input.by_ref().take(rest), &mut io::sink())?;
        self.begin(0);
        // The zeros behind the last member may be missing.
        match skipped < rest.saturating_sub(BLOCK_BYTES as u64 - 1) {
            true => Err(invalid("it ends within a member")),
            false => Ok(()),
        }
    }

    /// Reads a whole member that is an extended header.
    fn body(&mut self) -> io::Result<Vec<u8>> {
        if self.left > EXTENDED_BYTES_MAX {
            return Err(invalid("an extended header is too long"));
        }
        let mut body = Vec::new();
        self.read_to_end(&mut body)?;
        Ok(body)
    }

    /// Reads a header; `None` at the end.
    fn header(&mut self) -> io::Result<Option<Header>> {
        let mut header = Header::new_old();
        let mut block = Vec::with_capacity(BLOCK_BYTES);
        self.input.by_ref().take(BLOCK_BYTES as u64).read_to_end(&mut block)?;
        if block.iter().all(|byte| *byte == 0) && (block.is_empty() || block.len() == BLOCK_BYTES) {
            return Ok(None);
        }
        if block.len() < BLOCK_BYTES {
            return Err(invalid("it ends within a header"));
        }
        header.as_mut_bytes().copy_from_slice(&block);
        let sum = |byte: u8| u32::from(byte);
        // The checksum itself counts as spaces.
        let (before, after) = (&block[..148], &block[156..]);
        let expected = before.iter().chain(after).map(|byte| sum(*byte)).sum::<u32>() + 8 * 0x20;
        match header.cksum() {
            Ok(found) if found == expected => Ok(Some(header)),
            _ => Err(invalid("it is no tar, or damaged: a header's checksum is wrong")),
        }
    }
}

impl<R: Read> Read for TarReader<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let length = out.len().min(usize::try_from(self.left).unwrap_or(usize::MAX));
        if length == 0 {
            return Ok(0);
        }
        let read = self.input.read(&mut out[..length])?;
        if read == 0 {
            return Err(invalid("it ends within a member"));
        }
        self.left -= read as u64;
        Ok(read)
    }
}

fn invalid(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why)
}

#[cfg(test)]
mod tests {
    use super::super::tar_writer::{END, headers};
    use super::*;

    fn tar_of(files: &[(&str, &[u8], &str)]) -> Vec<u8> {
        let mut tar = Vec::new();
        for (path, bytes, comment) in files {
            tar.extend(headers(path, bytes.len() as u64, 0, comment));
            tar.extend_from_slice(bytes);
            tar.resize(tar.len() + padding(bytes.len() as u64), 0);
        }
        tar.extend(END);
        tar
    }

    /// Path, bytes and comment of a member.
    type Member = (String, Vec<u8>, Option<String>);

    fn members(tar: &[u8]) -> io::Result<Vec<Member>> {
        let (mut reader, mut all) = (TarReader::new(tar), Vec::new());
        while let Some(member) = reader.next()? {
            let mut bytes = Vec::new();
            reader.read_to_end(&mut bytes)?;
            assert_eq!(member.kind, Kind::File);
            all.push((member.path.unwrap(), bytes, member.comment));
        }
        Ok(all)
    }

    #[test]
    fn members_that_are_written_are_read() {
        let long = "long/".repeat(60) + "x";
        let files = [("a", &b"1"[..], "one"), (&long, &[2; 512], "{}"), ("m\u{e9}", &[], "")];
        let read = members(&tar_of(&files)).unwrap();
        let expected = files.map(|(path, bytes, comment)| {
            (path.to_owned(), bytes.to_vec(), Some(comment.to_owned()))
        });
        assert_eq!(read, expected);
        assert!(members(&[]).unwrap().is_empty() && members(&END).unwrap().is_empty());
    }

    #[test]
    fn no_cut_and_no_flipped_byte_makes_it_panic() {
        let tar = tar_of(&[("a", &[1; 700], "one"), ("b", &[2; 10], "two")]);
        let whole = members(&tar).unwrap();
        for end in 0..tar.len() {
            if let Ok(read) = members(&tar[..end]) {
                assert!(whole.starts_with(&read), "{end}: {read:?}");
            }
        }
        for at in 0..tar.len() {
            for bit in [1, 0x80] {
                let mut flipped = tar.clone();
                flipped[at] ^= bit;
                let mut reader = TarReader::new(&flipped[..]);
                while let Ok(Some(_)) = reader.next() {}
            }
        }
    }
}
