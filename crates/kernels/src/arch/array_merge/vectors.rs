//! Driver that the vector versions of array merge share. It is a macro, so that its functions are
//! compiled with the target features of the module that uses it.
//!
//! A turn compares the next vector of one input with the reversed next vector of the other. The
//! keys of the first that are not larger come from the first; the rest come from the second. The
//! smaller of each pair form a bitonic sequence, which a network sorts. The keys of the next turn
//! depend on that count alone, so a chain of turns waits only for it, and several chains over parts
//! of one merge run side by side. Each chain knows the key before its part, so duplicates are
//! dropped at the seams as anywhere; the parts' results are then moved together.
//!
//! The module that uses the macro defines `LANES`, `WAYS`, `Vector`, and, with the features,
//! `load`, `splat`, `turn` (returns the smallest keys of two vectors, sorted, and how many come
//! from the first) and `emit` (writes those of the first lanes that differ from the lane before,
//! and returns their number).

macro_rules! vectors {
    ($features:literal, $key:ident) => {
        type Raw = <$key as Key>::Raw;

        pub(in super::super) const FUNCTIONS: Functions<$key> =
            Functions { sorted, decode, merge, unique, encode };

        fn sorted(keys: &[Raw], previous: $key) -> bool {
            #[target_feature(enable = $features)]
            fn inner(keys: &[Raw], previous: $key) -> bool {
                portable::sorted(keys, previous)
            }
            // SAFETY: this version is only offered where the features were detected.
            unsafe { inner(keys, previous) }
        }

        fn decode(elements: &[Raw], previous: $key, keys: &mut [Raw]) -> bool {
            #[target_feature(enable = $features)]
            fn inner(elements: &[Raw], previous: $key, keys: &mut [Raw]) -> bool {
                portable::decode(elements, previous, keys)
            }
            // SAFETY: this version is only offered where the features were detected.
            unsafe { inner(elements, previous, keys) }
        }

        fn encode(keys: &mut [Raw]) {
            #[target_feature(enable = $features)]
            fn inner(keys: &mut [Raw]) {
                <$key>::encode(keys);
            }
            // SAFETY: this version is only offered where the features were detected.
            unsafe { inner(keys) }
        }

        fn merge(a: &[Raw], b: &[Raw], count: usize, before: $key, out: &mut [Raw]) -> usize {
            assert!(count <= a.len() + b.len(), "the inputs have as many keys");
            assert!(out.len() >= count + LANES, "no room for the merge");
            // SAFETY: this version is only offered where the features were detected.
            unsafe { merge_vectors(a, b, count, before, out) }
        }

        fn unique(keys: &[Raw], before: $key, out: &mut [Raw]) -> usize {
            assert!(out.len() >= keys.len() + LANES, "no room for the keys");
            // SAFETY: this version is only offered where the features were detected.
            unsafe { unique_vectors(keys, before, out) }
        }

        #[target_feature(enable = $features)]
        fn unique_vectors(keys: &[Raw], before: $key, out: &mut [Raw]) -> usize {
            let (mut written, mut previous) = (0, splat(before));
            let (turns, tail) = keys.as_chunks::<LANES>();
            for vector in turns {
                prefetch(vector);
                let keys = load(vector);
                written += emit(keys, previous, LANES, &mut out[written..]);
                previous = keys;
            }
            if !tail.is_empty() {
                written += emit(padded(tail), previous, tail.len(), &mut out[written..]);
            }
            written
        }

        /// Prefetches the place of the next block, if pieces are longer than blocks.
        #[inline]
        #[target_feature(enable = $features)]
        fn prefetch(keys: &[Raw; LANES]) {
            _mm_prefetch::<_MM_HINT_T0>(
                keys.as_ptr().wrapping_byte_add(portable::AHEAD_BYTES).cast(),
            );
        }

        /// Progress of one part of the merge: keys taken from both inputs, and keys written.
        #[derive(Clone, Copy)]
        struct Chain {
            i: usize,
            j: usize,
            written: usize,
            previous: Vector,
        }

        #[target_feature(enable = $features)]
        fn merge_vectors(
            a: &[Raw],
            b: &[Raw],
            count: usize,
            before: $key,
            out: &mut [Raw],
        ) -> usize {
            let masks = std::hint::black_box(UPPER);
            // Whole vectors, so that a part's last vector does not reach into the next part's room.
            let part = count / WAYS / LANES * LANES;
            let mut chains = [Chain { i: 0, j: 0, written: 0, previous: splat(before) }; WAYS];
            for (way, chain) in chains.iter_mut().enumerate() {
                let i = portable::split::<$key>(a, b, way * part);
                let j = way * part - i;
                let previous = splat(last_taken(a, b, i, j, before));
                *chain = Chain { i, j, written: way * part, previous };
            }
            'turns: for _ in 0..part / LANES {
                for chain in &mut chains {
                    let next = (a.get(chain.i..), b.get(chain.j..));
                    let (Some(a), Some(b)) = next else { break 'turns };
                    let (Some(a), Some(b)) = (a.first_chunk(), b.first_chunk()) else {
                        break 'turns;
                    };
                    prefetch(a);
                    prefetch(b);
                    let (keys, from_a) = next_keys(a, b, masks);
                    chain.i += from_a;
                    chain.j += LANES - from_a;
                    chain.written += emit(keys, chain.previous, LANES, &mut out[chain.written..]);
                    chain.previous = keys;
                }
            }
            let mut written = 0;
            for (way, chain) in chains.into_iter().enumerate() {
                let start = way * part;
                let end = if way + 1 < WAYS { start + part } else { count };
                let to = finish(a, b, before, chain, end, out);
                if written < start {
                    out.copy_within(start..to, written);
                }
                written += to - start;
            }
            written
        }

        /// Returns the smallest keys of two vectors, sorted, and how many come from the first.
        /// Often all come from one, in runs: branches predict all but the ends of a run, and then
        /// nothing waits for the network.
        #[inline]
        #[target_feature(enable = $features)]
        fn next_keys(a: &[Raw; LANES], b: &[Raw; LANES], masks: Masks) -> (Vector, usize) {
            let key = |raw: Raw| <$key>::from_le_bytes(raw);
            if key(a[LANES - 1]) <= key(b[0]) {
                (load(a), LANES)
            } else if key(b[LANES - 1]) <= key(a[0]) {
                (load(b), 0)
            } else {
                turn(load(a), load(b), masks)
            }
        }

        /// Completes a chain up to its end, where fewer than a whole vector of keys may be left.
        #[target_feature(enable = $features)]
        fn finish(
            a: &[Raw],
            b: &[Raw],
            before: $key,
            mut chain: Chain,
            end: usize,
            out: &mut [Raw],
        ) -> usize {
            while chain.i + chain.j < end {
                let Chain { i, j, written, .. } = chain;
                let left = end - i - j;
                if i == a.len() || j == b.len() {
                    let rest = if i == a.len() { &b[j..] } else { &a[i..] };
                    let last = last_taken(a, b, i, j, before);
                    return written + unique_vectors(&rest[..left], last, &mut out[written..]);
                }
                let (keys, from_a) = turn(padded(&a[i..]), padded(&b[j..]), UPPER);
                let count = left.min(LANES);
                chain.written += emit(keys, chain.previous, count, &mut out[written..]);
                chain.previous = keys;
                // Padding is only taken if all keys that are left are as large as the padding.
                chain.i = (i + from_a).min(a.len());
                chain.j = (j + LANES - from_a).min(b.len());
            }
            chain.written
        }

        /// Returns the largest key taken so far.
        fn last_taken(a: &[Raw], b: &[Raw], i: usize, j: usize, before: $key) -> $key {
            let last = |keys: &[Raw], at: usize| at.checked_sub(1).map(|at| keys[at]);
            let both = last(a, i).into_iter().chain(last(b, j));
            both.map(<$key>::from_le_bytes).max().unwrap_or(before)
        }

        /// Returns the first keys, padded with the largest possible key.
        #[target_feature(enable = $features)]
        fn padded(keys: &[Raw]) -> Vector {
            if let Some(keys) = keys.first_chunk() {
                return load(keys);
            }
            let mut padded = [<$key>::MAX.to_le_bytes(); LANES];
            padded[..keys.len()].copy_from_slice(keys);
            load(&padded)
        }
    };
}

pub(super) use vectors;
