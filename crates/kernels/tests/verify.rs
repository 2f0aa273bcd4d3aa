//! Compares every compiled version of verify that this machine runs with the byte-wise reference:
//! all page sizes, numbers of pages that advance together, alignments and cuts.

use csd_kernels::kernel::Kernel;
use csd_kernels::verify::{
    COMBINATIONS, Digest, KERNEL, Parameters, Plan, Spacing, Version, checksums, scalar,
};
use proptest::prelude::*;

fn data(seed: u64, bytes: usize) -> Vec<u8> {
    let mut state = seed | 1;
    let next = |_| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        state.to_le_bytes()[5]
    };
    (0..bytes).map(next).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, ..Default::default() })]
    #[test]
    fn every_version_equals_the_reference(
        (seed, bytes, shift) in (any::<u64>(), 0..20_000usize, 0..64usize),
        page in prop_oneof![1..100u32, 200..700u32, Just(512), Just(4096), 4000..9000u32],
        (unroll, cut) in (1..=8u8, 1..10_000usize),
    ) {
        let data = data(seed, bytes + shift);
        let data = &data[shift..];
        let plan = Plan::new(page, 3, 2, unroll).expect("in range");
        let expected = scalar::checksums(plan, data);
        for version in Version::available() {
            let found = version.checksums(plan, data);
            prop_assert_eq!(&found, &expected, "{}", version.name());
            let (mut verify, mut found) = (version.start(plan), Vec::new());
            for piece in data.chunks(cut) {
                verify.feed(piece, &mut found);
            }
            verify.finish(&mut found);
            prop_assert_eq!(&found, &expected, "{} in pieces", version.name());
            prop_assert_eq!((verify.pages(), verify.bytes()),
                (expected.len() as u64, data.len() as u64));
            let bytes: Vec<u8> = expected.iter().flat_map(|sum| sum.to_le_bytes()).collect();
            let whole = Plan::sequential(u32::MAX);
            let digest = scalar::checksums(whole, &bytes).first().copied().unwrap_or(0);
            prop_assert_eq!(verify.digest(), digest);
        }
    }

    #[test]
    fn any_changed_bit_is_found(
        (seed, bit, unroll) in (any::<u64>(), 0..10 * 512 * 8usize, 1..=8u8)
    ) {
        let plan = Plan::new(512, 1, 1, unroll).expect("in range");
        let mut data = data(seed, 10 * 512);
        let before = checksums(plan, &data);
        data[bit / 8] ^= 1 << (bit % 8);
        let after = checksums(plan, &data);
        let wrong: Vec<usize> = (0..10).filter(|page| before[*page] != after[*page]).collect();
        prop_assert_eq!(wrong, [bit / 8 / 512]);
    }

    #[test]
    fn no_bytes_of_plans_panic(data in prop::collection::vec(0..9u8, 0..20)) {
        if let Ok(plan) = Plan::parse(&data) {
            prop_assert_eq!(plan.encode(), data);
        }
    }
}

#[test]
fn units_by_their_batches_find_what_one_finds() {
    let data = data(7, 4096 * 1000 + 99);
    let expected = scalar::checksums(Plan::sequential(4096), &data);
    for (pages, units) in COMBINATIONS {
        let plan = Plan::new(4096, pages, units, 3).expect("in range");
        let found: Vec<u32> = plan
            .batches(data.len() as u64)
            .flat_map(|batch| {
                let range = usize::try_from(batch.bytes.start).expect("in memory")
                    ..usize::try_from(batch.bytes.end).expect("in memory");
                checksums(plan, &data[range])
            })
            .collect();
        assert_eq!(found, expected, "{pages} x {units}");
    }
}

#[test]
fn digests_of_parts_join_to_that_of_the_whole() {
    let sums: Vec<u32> = (1..=10).map(|n| n * 0x0101_0107).collect();
    for spacing in [Spacing::default(), Spacing { every: 2, gap: 7 }] {
        let digest = |sums: &[u32]| {
            let mut digest = Digest::new(spacing);
            digest.push(sums);
            u64::from(digest.value()) | (sums.len() as u64) << 32
        };
        let parameters = Parameters { plan: Plan::sequential(512), spacing }.encode();
        // The last page is short.
        let parts = [(0..2048, digest(&sums[..4])), (2048..4700, digest(&sums[4..]))];
        assert_eq!(KERNEL.join(&parameters, &parts), digest(&sums), "{spacing:?}");
    }
}
