//! Layout `range`: divides sorted inputs into parts by value.
//!
//! Splitters cut the values into ranges, one per part. Equal elements of all inputs lie in one
//! part, so the parts' merges, one after another, are the merge of the whole. All functions are
//! pure and move no input. Invariant: parts cover an input without overlap.

use std::num::NonZeroUsize;
use std::ops::Range;

use super::key::Key;
use crate::numeric::{Misaligned, Numeric};

/// Reason why no parts can be cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Bytes do not hold whole elements.
    #[error(transparent)]
    Misaligned(#[from] Misaligned),
    /// A sample or a splitter is NaN.
    #[error("NaN has no place in an order")]
    Nan,
    /// A splitter is smaller than the one before it.
    #[error("a splitter is smaller than the one before it")]
    NotSorted,
}

/// Returns the first values of all parts but the first, chosen so that parts hold about equally
/// many of the samples: elements of all inputs, in any order. Without samples, all values are 0.
///
/// # Errors
/// [`Error::Misaligned`] and [`Error::Nan`].
pub fn splitters(element: Numeric, samples: &[u8], parts: NonZeroUsize) -> Result<Vec<u8>, Error> {
    match element.bytes() {
        4 => split::<i32>(element, samples, parts.get()),
        _ => split::<i64>(element, samples, parts.get()),
    }
}

fn split<K: Key + Default>(
    element: Numeric,
    samples: &[u8],
    parts: usize,
) -> Result<Vec<u8>, Error> {
    let mut keys = keys::<K>(element, samples)?;
    keys.sort_unstable();
    let at = |part: usize| {
        let index = (keys.len() as u128 * part as u128 / parts as u128) as usize;
        keys.get(index).copied().unwrap_or_default()
    };
    let mut chosen: Vec<K::Raw> = (1..parts).map(|part| at(part).to_raw()).collect();
    if is_float(element) {
        K::encode(&mut chosen);
    }
    Ok(K::bytes(&chosen).to_vec())
}

/// Returns the index range of each part in the sorted input: one range more than there are
/// splitters. The ranges of an input that is not sorted have no meaning; the merge refuses it.
///
/// # Errors
/// [`Error`] with the fault of the input's length or of the splitters.
pub fn parts(
    element: Numeric,
    sorted: &[u8],
    splitters: &[u8],
) -> Result<Vec<Range<usize>>, Error> {
    match element.bytes() {
        4 => cut::<i32>(element, sorted, splitters),
        _ => cut::<i64>(element, sorted, splitters),
    }
}

fn cut<K: Key>(
    element: Numeric,
    sorted: &[u8],
    splitters: &[u8],
) -> Result<Vec<Range<usize>>, Error> {
    let splitters = keys::<K>(element, splitters)?;
    if !splitters.is_sorted() {
        return Err(Error::NotSorted);
    }
    let elements = element.elements(sorted).map_err(Error::Misaligned)?;
    let sorted = K::raws(sorted);
    let mut ranges = Vec::with_capacity(splitters.len() + 1);
    let mut start = 0;
    for splitter in splitters {
        let (mut low, mut high) = (start, elements);
        while low < high {
            let middle = low + (high - low) / 2;
            let key = K::of(sorted[middle], is_float(element));
            if key.ok_or(Error::Nan)? < splitter {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        ranges.push(start..low);
        start = low;
    }
    ranges.push(start..elements);
    Ok(ranges)
}

/// Reason why elements are not sorted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Disorder {
    /// The element with this index is NaN.
    Nan {
        /// Index of the element.
        at: usize,
    },
    /// The element with this index is smaller than the one before it.
    NotSorted {
        /// Index of the element.
        at: usize,
    },
}

/// Returns integers that represent elements in their order, equal where elements are equal. The
/// elements must be whole and sorted, and none smaller than the one with the key `before`.
///
/// # Errors
/// [`Disorder`] with the first element that is out of order.
///
/// # Panics
/// When an element is cut.
pub fn order_keys(
    element: Numeric,
    sorted: &[u8],
    before: Option<i64>,
) -> Result<Vec<i64>, Disorder> {
    match element.bytes() {
        4 => ordered::<i32>(element, sorted, before),
        _ => ordered::<i64>(element, sorted, before),
    }
}

fn ordered<K: Key + Into<i64>>(
    element: Numeric,
    sorted: &[u8],
    before: Option<i64>,
) -> Result<Vec<i64>, Disorder> {
    let keys: Vec<i64> = match keys::<K>(element, sorted) {
        Ok(keys) => keys.into_iter().map(Into::into).collect(),
        Err(error) => {
            assert_eq!(error, Error::Nan, "elements are whole");
            let is_nan = |element| K::of(element, true).is_none();
            let at = K::raws(sorted).iter().position(|element| is_nan(*element));
            return Err(Disorder::Nan { at: at.expect("one is NaN") });
        }
    };
    if before.zip(keys.first()).is_some_and(|(before, first)| before > *first) {
        return Err(Disorder::NotSorted { at: 0 });
    }
    match keys.windows(2).position(|pair| pair[0] > pair[1]) {
        Some(index) => Err(Disorder::NotSorted { at: index + 1 }),
        None => Ok(keys),
    }
}

fn keys<K: Key>(element: Numeric, bytes: &[u8]) -> Result<Vec<K>, Error> {
    element.elements(bytes).map_err(Error::Misaligned)?;
    let elements = K::raws(bytes);
    let mut keys = elements.to_vec();
    if is_float(element) && !K::decode(elements, &mut keys) {
        return Err(Error::Nan);
    }
    Ok(keys.into_iter().map(K::from_raw).collect())
}

fn is_float(element: Numeric) -> bool {
    matches!(element, Numeric::F32 | Numeric::F64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(values: &[f32]) -> Vec<u8> {
        values.iter().flat_map(|value| value.to_le_bytes()).collect()
    }

    #[test]
    fn equal_elements_lie_in_one_part() {
        let sorted = bytes(&[-1.0, -0.0, 0.0, 0.0, 2.0, 3.0]);
        let cut = parts(Numeric::F32, &sorted, &bytes(&[0.0, 2.5])).unwrap();
        assert_eq!(cut, [0..1, 1..5, 5..6]);
    }

    #[test]
    fn samples_are_cut_evenly_and_none_give_zeros() {
        let samples: Vec<u8> = (0..12i32).rev().flat_map(i32::to_le_bytes).collect();
        let four = NonZeroUsize::new(4).unwrap();
        let expected: Vec<u8> = [3i32, 6, 9].into_iter().flat_map(i32::to_le_bytes).collect();
        assert_eq!(splitters(Numeric::I32, &samples, four), Ok(expected));
        assert_eq!(splitters(Numeric::I32, &[], four), Ok(vec![0; 12]));
        assert_eq!(splitters(Numeric::I32, &samples, NonZeroUsize::MIN), Ok(vec![]));
    }

    #[test]
    fn order_keys_order_as_the_elements_do_and_disorder_is_named() {
        let sorted = bytes(&[f32::NEG_INFINITY, -1.0, -0.0, 0.0, 2.0, f32::INFINITY]);
        let keys = order_keys(Numeric::F32, &sorted, None).unwrap();
        assert!(keys.is_sorted() && keys[2] == keys[3] && keys[1] < keys[2]);
        assert!(order_keys(Numeric::F32, &sorted, Some(keys[0])).is_ok());
        let wrong = order_keys(Numeric::F32, &sorted, Some(keys[1]));
        assert_eq!(wrong, Err(Disorder::NotSorted { at: 0 }));
        let wrong = order_keys(Numeric::F32, &bytes(&[1.0, 2.0, 1.5]), None);
        assert_eq!(wrong, Err(Disorder::NotSorted { at: 2 }));
        let wrong = order_keys(Numeric::F32, &bytes(&[1.0, f32::NAN]), None);
        assert_eq!(wrong, Err(Disorder::Nan { at: 1 }));
    }

    #[test]
    fn wrong_splitters_are_refused() {
        let nan = parts(Numeric::F32, &[], &bytes(&[f32::NAN]));
        assert_eq!(nan, Err(Error::Nan));
        assert_eq!(parts(Numeric::F32, &[], &bytes(&[1.0, 0.0])), Err(Error::NotSorted));
        assert!(matches!(parts(Numeric::I64, &[0; 9], &[]), Err(Error::Misaligned(_))));
    }
}
