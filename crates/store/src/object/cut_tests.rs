//! Cuts that are given: they may come from the file of a stranger.

use csd_kernels::ElementType;

use super::*;
use crate::catalogue::On;

fn cutter(starts: &[(u64, u64)]) -> Result<Cutter, Error> {
    let shape = Shape {
        element: ElementType::Bytes,
        on: On::Kv,
        chunk_bytes: 4096,
        offset: Some(0),
        members: Vec::new(),
        whole: false,
        protection: None,
        stored_unix_ms: None,
    };
    let source = Source::raw("x", Box::new(std::io::empty()), ElementType::Bytes);
    Cutter::new(&Arrange::Table { starts: starts.to_vec() }, None, &shape, &source)
}

#[test]
fn parts_are_cut_where_they_are_said_to_begin_and_the_last_may_be_empty() {
    let mut cutter = cutter(&[(0, 0), (5, 7), (10, 9)]).unwrap();
    assert_eq!(cutter.cut(&[0; 4]).unwrap(), [(0, 0)]);
    assert_eq!(cutter.cut(&[0; 4]).unwrap(), [(1, 7)]);
    assert_eq!(cutter.cut(&[0; 2]).unwrap(), []);
    assert_eq!(cutter.finish(), [9]);
    assert_eq!(cutter.kind(), Some(Kind::Table));
}

#[test]
fn parts_that_begin_late_or_go_back_are_refused() {
    for wrong in [&[(1, 0)][..], &[(0, 0), (8, 1), (4, 2)], &[(u64::MAX, 0)]] {
        let refused = cutter(wrong).err().expect("nothing begins there").to_string();
        assert!(refused.contains("follow one another from its first byte on"), "{refused}");
    }
}
