//! Helpers that the test lanes share.
