//! Columns of CSV files.

#![no_main]

use std::io::Cursor;

use csd_store::ElementType;
use csd_store::source::{Column, CsvOptions, Empty, Header, Source};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Some((choice, text)) = data.split_first() else { return };
    let column = [None, Some(Column::Number(2)), Some(Column::Name("a".to_owned()))];
    let options = CsvOptions {
        column: column[usize::from(choice % 3)].clone(),
        header: [Header::Auto, Header::Yes, Header::No][usize::from(choice / 3 % 3)],
        empty: [Empty::Refused, Empty::Zero, Empty::Skip][usize::from(choice / 9 % 3)],
    };
    let reader = Box::new(Cursor::new(text.to_vec()));
    let Ok(mut source) = Source::csv("fuzz", reader, ElementType::I32, &options) else { return };
    let mut out = vec![0; 64];
    while source.fill(&mut out).is_ok_and(|count| count == out.len()) {}
});
