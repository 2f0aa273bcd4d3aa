//! [`Pages`]: the position of a host that lists all keys page by page.
//!
//! Sends nothing. Invariants: the next List starts at the last key returned, which is not returned
//! twice; a drive that repeats keys is an error, not an endless loop.

use csd_nvme::kv::Key;

/// Bytes of one List.
pub(crate) const PAGE_BYTES: u32 = 64 << 10;
/// Error for a drive that repeats keys.
pub(crate) const REPEATS: &str = "its list of keys goes round in a circle";

/// Position of a listing.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Pages {
    /// Last key returned, from which the next page starts.
    pub(crate) last: Option<Key>,
}

impl Pages {
    /// Returns the keys of a page that are new; `None` at the end.
    ///
    /// # Errors
    /// If the page repeats the last key.
    pub(crate) fn turn(&mut self, mut page: Vec<Key>) -> Result<Option<Vec<Key>>, &'static str> {
        if self.last.is_some() && page.first() == self.last.as_ref() {
            page.remove(0);
        }
        if self.last.is_some_and(|last| page.contains(&last)) {
            return Err(REPEATS);
        }
        let Some(last) = page.last() else { return Ok(None) };
        self.last = Some(*last);
        Ok(Some(page))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_returned_once_and_circles_are_found() {
        let keys = |text: &str| -> Vec<Key> {
            text.bytes().map(|byte| Key::new(&[byte]).unwrap()).collect()
        };
        let mut pages = Pages::default();
        assert_eq!(pages.turn(keys("abc")), Ok(Some(keys("abc"))));
        assert_eq!(pages.turn(keys("cde")), Ok(Some(keys("de"))));
        // The last key was deleted meanwhile.
        assert_eq!(pages.turn(keys("fg")), Ok(Some(keys("fg"))));
        assert_eq!(pages.turn(keys("ahg")), Err(REPEATS));
        assert_eq!(pages.turn(keys("g")), Ok(None));
        assert_eq!(Pages::default().turn(keys("")), Ok(None));
    }
}
