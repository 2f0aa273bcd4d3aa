//! [`Buffer`] against a model, its alignment, and its reuse.

use csd_buffer::{ALIGNMENT, Buffer};
use proptest::prelude::*;

#[derive(Clone, Copy, Debug)]
enum Step {
    Prepend(usize, u8),
    Append(usize, u8),
    Truncate(usize),
    Advance(usize),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        (0..300_usize, any::<u8>()).prop_map(|(count, byte)| Step::Prepend(count, byte)),
        (0..300_usize, any::<u8>()).prop_map(|(count, byte)| Step::Append(count, byte)),
        (0..2000_usize).prop_map(Step::Truncate),
        (0..200_usize).prop_map(Step::Advance),
    ]
}

proptest! {
    #[test]
    fn it_behaves_as_a_deque(
        head in 0..5000_usize,
        len in 0..1000_usize,
        tail in 0..5000_usize,
        steps in prop::collection::vec(step(), 0..40),
    ) {
        let mut buffer = Buffer::with_room(head, len, tail);
        prop_assert!(buffer.headroom() >= head && buffer.tailroom() >= tail);
        prop_assert!(len == 0 || (buffer.as_ptr() as usize).is_multiple_of(ALIGNMENT));
        buffer.fill(1);
        let mut model = vec![1; len];
        for step in steps {
            match step {
                Step::Prepend(count, byte) if count <= buffer.headroom() => {
                    buffer.prepend(count).fill(byte);
                    model.splice(0..0, vec![byte; count]);
                }
                Step::Append(count, byte) if count <= buffer.tailroom() => {
                    buffer.append(count).fill(byte);
                    model.extend(vec![byte; count]);
                }
                Step::Truncate(len) => {
                    buffer.truncate(len);
                    model.truncate(len);
                }
                Step::Advance(count) if count <= model.len() => {
                    buffer.advance(count);
                    model.drain(..count);
                }
                _ => {}
            }
            prop_assert_eq!(&buffer[..], &model[..]);
            let whole = buffer.headroom() + buffer.len() + buffer.tailroom();
            prop_assert_eq!(whole, buffer.capacity());
        }
    }
}

#[test]
fn a_block_is_used_again_and_zeroed_when_asked() {
    let mut first = Buffer::zeroed(10_000);
    assert!(first.iter().all(|byte| *byte == 0));
    first.fill(9);
    let address = first.as_ptr();
    drop(first);
    let second = Buffer::zeroed(9000);
    assert_eq!(second.as_ptr(), address, "the same block");
    assert!(second.iter().all(|byte| *byte == 0));
}

#[test]
fn an_empty_buffer_holds_nothing() {
    let mut empty = Buffer::default();
    assert!(empty.is_empty() && empty.capacity() == 0);
    empty.set_len(0);
    assert_eq!(&empty[..], &[] as &[u8]);
    assert_eq!(Buffer::from_slice(b"abc").as_ref(), b"abc");
}

#[test]
#[should_panic(expected = "headroom")]
fn there_is_no_more_headroom_than_there_is() {
    Buffer::zeroed(10).prepend(1);
}

#[test]
fn a_buffer_may_be_dropped_on_another_thread() {
    let buffer = Buffer::from_slice(&[5; 5000]);
    let sum = std::thread::spawn(move || buffer.iter().map(|byte| u64::from(*byte)).sum::<u64>());
    assert_eq!(sum.join().expect("no panic"), 25_000);
}
