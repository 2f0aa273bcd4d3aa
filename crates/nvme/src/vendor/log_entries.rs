//! Entries behind the header of a log page: as many as it says, of the size that it says.

/// Parses entries. A reader skips unknown bytes at an entry's end, which a later version may
/// append. `None` if there are more than `most`, or they are shorter than `least` bytes or cut off.
pub(super) fn parse<E>(
    behind_header: Option<&[u8]>,
    (count, bytes_each): (u32, u16),
    (most, least): (usize, usize),
    entry: impl FnMut(&[u8]) -> Option<E>,
) -> Option<Vec<E>> {
    let (count, size) = (count as usize, usize::from(bytes_each));
    if count > most || size < least {
        return None;
    }
    behind_header?.get(..count * size)?.chunks_exact(size).map(entry).collect()
}
