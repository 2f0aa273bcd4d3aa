//! The list of the built-in kernels.

use crate::kernel::Kernel;
use crate::{
    array_merge, count, encode, fingerprint, frequencies, key_range, page_rank, search, summarize,
    vector_add, verify, word_count,
};

/// The kernels of every drive, by program identifier.
pub static BUILTIN: [&dyn Kernel; 12] = [
    &count::KERNEL,
    &vector_add::KERNEL,
    &array_merge::KERNEL,
    &page_rank::KERNEL,
    &verify::KERNEL,
    &summarize::KERNEL,
    &key_range::KERNEL,
    &encode::KERNEL,
    &fingerprint::KERNEL,
    &search::KERNEL,
    &word_count::KERNEL,
    &frequencies::KERNEL,
];

/// Returns the kernel with this program identifier.
#[must_use]
pub fn by_program_id(program_id: u64) -> Option<&'static dyn Kernel> {
    BUILTIN.into_iter().find(|kernel| kernel.program_id() == program_id)
}

/// Returns the kernel of this name.
#[must_use]
pub fn by_name(name: &str) -> Option<&'static dyn Kernel> {
    BUILTIN.into_iter().find(|kernel| kernel.name() == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_have_names_and_identifiers_of_their_own_in_order() {
        // 9 is `combine` and 11 `pages`, which are no kernels.
        for (program_id, kernel) in (1..=8).chain([10, 12, 13, 14]).zip(BUILTIN) {
            assert_eq!(kernel.program_id(), program_id, "{}", kernel.name());
            assert!(by_name(kernel.name()).is_some_and(|found| found.name() == kernel.name()));
            let found = by_program_id(kernel.program_id());
            assert!(found.is_some_and(|found| found.name() == kernel.name()));
        }
        assert!(by_name("sort").is_none() && by_program_id(0).is_none());
    }
}
