//! The driver that the vector versions of array merge share, as a macro: functions with a target's
//! features are made in the module that names them.
//!
//! A turn compares the next vector of one input with the next of the other, turned round. Where
//! keys of the first are not larger, they come from the first: so many are taken, the rest from the
//! second, and the smaller of each pair, a bitonic sequence, are sorted by a network. Which keys
//! come next depends on the count alone, so a chain of turns waits for it; several chains over
//! parts of the same merge go on side by side. Each knows what came before its part, so duplicates
//! are dropped at the seams as anywhere; the parts' results are then closed up.
//!
//! The module that uses it has `LANES`, `WAYS`, `Vector`, and, with the features, `load`, `splat`,
//! `turn` (the smallest keys of two vectors, sorted, and how many come from the first) and `emit`
//! (writes those of the first lanes that differ from the lane before; gives how many).

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

        /// Asks for what lies where the next block does, if pieces are longer than blocks.
        #[inline]
        #[target_feature(enable = $features)]
        fn prefetch(keys: &[Raw; LANES]) {
            _mm_prefetch::<_MM_HINT_T0>(
                keys.as_ptr().wrapping_byte_add(portable::AHEAD_BYTES).cast(),
            );
        }

        /// Where a part of the merge stands: taken of both inputs, and written.
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
            // Whole vectors, so that a part's last one does not reach into the next part's room.
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

        /// The smallest keys of two vectors, sorted, and how many come from the first. Often all
        /// come from one, in runs of which the branches foresee all but the ends; then nothing
        /// waits for the network.
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

        /// Goes on with a chain to its end, where whole vectors may no longer be there.
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
                // Padding is only taken where keys as large as it are all that is left.
                chain.i = (i + from_a).min(a.len());
                chain.j = (j + LANES - from_a).min(b.len());
            }
            chain.written
        }

        /// The largest key taken so far.
        fn last_taken(a: &[Raw], b: &[Raw], i: usize, j: usize, before: $key) -> $key {
            let last = |keys: &[Raw], at: usize| at.checked_sub(1).map(|at| keys[at]);
            let both = last(a, i).into_iter().chain(last(b, j));
            both.map(<$key>::from_le_bytes).max().unwrap_or(before)
        }

        /// The first keys, and the largest there is where there are none.
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
