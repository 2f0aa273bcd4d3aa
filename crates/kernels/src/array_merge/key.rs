//! [`Key`]: integers that represent elements, in the same order, equal where elements are equal.
//!
//! An integer is its own key. The bits of a floating number sort like the numbers themselves once
//! the bits below the sign of negative ones are inverted. -0.0 equals 0.0, so both have the key of
//! 0.0, and the key of -0.0 is not used. Keys are merged in their memory layout, little-endian and
//! at any alignment ([`Key::Raw`]), so that integers need no copy. Invariant: the key of a number
//! other than NaN converts back to that number, except that -0.0 becomes 0.0.

/// Integer that represents an element of its size.
pub(crate) trait Key: Copy + Ord + std::fmt::Debug + 'static {
    /// Key in its memory layout.
    type Raw: Copy + std::fmt::Debug;
    /// Smallest key.
    const MIN: Self;
    /// Size of an element in bytes.
    const BYTES: usize;

    /// Returns another key, for "nothing equal came before".
    fn other(self) -> Self;
    /// Reads a key.
    fn from_raw(raw: Self::Raw) -> Self;
    /// Returns the key in its memory layout.
    fn to_raw(self) -> Self::Raw;
    /// Returns the elements of `bytes` without a cut one at the end.
    fn raws(bytes: &[u8]) -> &[Self::Raw];
    /// Returns the bytes of these elements.
    fn bytes(raws: &[Self::Raw]) -> &[u8];
    /// Returns the key of an element; `None` if it is NaN.
    fn of(element: Self::Raw, float: bool) -> Option<Self>;
    /// Converts floating numbers into keys; returns false if one is NaN.
    fn decode(elements: &[Self::Raw], keys: &mut [Self::Raw]) -> bool;
    /// Converts keys into floating numbers, in place.
    fn encode(keys: &mut [Self::Raw]);
    /// Returns true if no key is smaller than the one before it.
    fn sorted(keys: &[Self::Raw]) -> bool;
}

macro_rules! key {
    ($key:ident, $bytes:literal, $infinity:expr) => {
        impl Key for $key {
            type Raw = [u8; $bytes];
            const MIN: Self = $key::MIN;
            const BYTES: usize = $bytes;

            fn other(self) -> Self {
                self.wrapping_add(1)
            }

            #[inline(always)]
            fn from_raw(raw: Self::Raw) -> Self {
                $key::from_le_bytes(raw)
            }

            #[inline(always)]
            fn to_raw(self) -> Self::Raw {
                self.to_le_bytes()
            }

            #[inline(always)]
            fn raws(bytes: &[u8]) -> &[Self::Raw] {
                bytes.as_chunks().0
            }

            #[inline(always)]
            fn bytes(raws: &[Self::Raw]) -> &[u8] {
                raws.as_flattened()
            }

            fn of(element: Self::Raw, float: bool) -> Option<Self> {
                if !float {
                    return Some(Self::from_raw(element));
                }
                let mut key = [element];
                Self::decode(&[element], &mut key).then_some(Self::from_raw(key[0]))
            }

            #[inline(always)]
            fn decode(elements: &[Self::Raw], keys: &mut [Self::Raw]) -> bool {
                let mut highest = 0;
                for (key, element) in keys.iter_mut().zip(elements) {
                    let bits = $key::from_le_bytes(*element);
                    highest = highest.max(bits & $key::MAX);
                    let turned = bits ^ ((bits >> ($key::BITS - 1)) & $key::MAX);
                    *key = if turned == -1 { 0 } else { turned }.to_le_bytes();
                }
                highest <= $infinity
            }

            #[inline(always)]
            fn encode(keys: &mut [Self::Raw]) {
                for raw in keys {
                    let key = $key::from_le_bytes(*raw);
                    let sign = key >> ($key::BITS - 1);
                    *raw = (key ^ (sign & $key::MAX)).to_le_bytes();
                }
            }

            #[inline(always)]
            fn sorted(keys: &[Self::Raw]) -> bool {
                // No early end, and results as wide as a key, so that compilers vectorise the loop.
                let pairs = keys.iter().zip(keys.get(1..).unwrap_or_default());
                let wrong = |a: &Self::Raw, b: &Self::Raw| Self::from_raw(*a) > Self::from_raw(*b);
                pairs.fold(0, |any: $key, (a, b)| any | $key::from(wrong(a, b))) == 0
            }
        }
    };
}

key!(i32, 4, 0x7F80_0000);
key!(i64, 8, 0x7FF0 << 48);
