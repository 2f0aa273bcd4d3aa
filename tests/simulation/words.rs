//! Contents of values: words that count on from a base, so that no two of them are alike.

/// Pages that values have in common, and the length of one.
const COMMON_PAGES: u64 = 40;
pub const PAGE_BYTES: usize = 4096;

/// Returns bytes of the words `base`, `base | 1`, `base | 2` and so on; the last may be cut.
pub fn words(base: u64, bytes: usize) -> Vec<u8> {
    let mut content = vec![0; bytes.next_multiple_of(8)];
    for (word, number) in content.as_chunks_mut().0.iter_mut().zip(0..) {
        *word = u64::to_le_bytes(base | number);
    }
    content.truncate(bytes);
    content
}

/// Returns one of the pages that many values have.
pub fn common_page(draw: u64) -> Vec<u8> {
    words((1 << 60) | (draw % COMMON_PAGES) << 20, PAGE_BYTES)
}
