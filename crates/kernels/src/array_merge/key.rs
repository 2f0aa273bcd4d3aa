//! [`Key`]: integers that stand for elements, in the same order, equal where elements are equal.
//!
//! An integer is its own key. A floating number's bits, those below the sign turned over when it
//! is negative, order as the numbers do; the key between the two zeros' is not used, because -0.0
//! equals 0.0: both have the key of 0.0. Invariant: a number that is not NaN comes back from its
//! key, save that -0.0 comes back as 0.0.

/// An integer that stands for an element of its size.
pub(crate) trait Key: Copy + Ord + std::fmt::Debug + 'static {
    /// The smallest key.
    const MIN: Self;
    /// Size of an element in bytes.
    const BYTES: usize;

    /// Another key, for "nothing equal came before".
    fn other(self) -> Self;
    /// The key of the first element of `bytes`; `None` when it is NaN.
    fn of(bytes: &[u8], float: bool) -> Option<Self>;
    /// The keys of `bytes`; false when there was NaN.
    fn decode(bytes: &[u8], float: bool, keys: &mut [Self]) -> bool;
    /// Whether no key is smaller than the one before it.
    fn sorted(keys: &[Self]) -> bool;
    /// The elements of `keys`.
    fn encode(keys: &[Self], float: bool, bytes: &mut [u8]);
}

macro_rules! key {
    ($key:ident, $bytes:literal, $infinity:expr) => {
        impl Key for $key {
            const MIN: Self = $key::MIN;
            const BYTES: usize = $bytes;

            fn other(self) -> Self {
                self.wrapping_add(1)
            }

            fn of(bytes: &[u8], float: bool) -> Option<Self> {
                let mut key = [0];
                Self::decode(&bytes[..$bytes], float, &mut key).then_some(key[0])
            }

            #[inline(always)]
            fn decode(bytes: &[u8], float: bool, keys: &mut [Self]) -> bool {
                let elements = bytes.as_chunks::<$bytes>().0;
                if !float {
                    for (key, element) in keys.iter_mut().zip(elements) {
                        *key = $key::from_le_bytes(*element);
                    }
                    return true;
                }
                let mut highest = 0;
                for (key, element) in keys.iter_mut().zip(elements) {
                    let bits = $key::from_le_bytes(*element);
                    highest = highest.max(bits & $key::MAX);
                    let turned = bits ^ ((bits >> ($key::BITS - 1)) & $key::MAX);
                    *key = if turned == -1 { 0 } else { turned };
                }
                highest <= $infinity
            }

            #[inline(always)]
            fn sorted(keys: &[Self]) -> bool {
                // Without an early end and as wide as a key, so that compilers make vectors of it.
                let pairs = keys.iter().zip(keys.get(1..).unwrap_or_default());
                pairs.fold(0, |wrong: $key, (a, b)| wrong | $key::from(a > b)) == 0
            }

            #[inline(always)]
            fn encode(keys: &[Self], float: bool, bytes: &mut [u8]) {
                let elements = bytes.as_chunks_mut::<$bytes>().0;
                if !float {
                    for (element, key) in elements.iter_mut().zip(keys) {
                        *element = key.to_le_bytes();
                    }
                    return;
                }
                for (element, key) in elements.iter_mut().zip(keys) {
                    let sign = key >> ($key::BITS - 1);
                    *element = (key ^ (sign & $key::MAX)).to_le_bytes();
                }
            }
        }
    };
}

key!(i32, 4, 0x7F80_0000);
key!(i64, 8, 0x7FF0 << 48);
