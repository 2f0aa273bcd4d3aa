//! Tests of columns: values, headers, empty cells.

use super::*;

/// Options for a column as users type them; an empty text is none.
fn options(column: &str, header: Header, empty: Empty) -> CsvOptions {
    let column = (!column.is_empty()).then(|| column.parse().unwrap());
    CsvOptions { column, header, empty }
}

fn open(text: &str, options: &CsvOptions) -> Result<Numbers, Error> {
    let reader = Box::new(std::io::Cursor::new(text.as_bytes().to_vec()));
    Numbers::new("t.csv", reader, ElementType::I32, options)
}

fn numbers(text: &str, column: Option<&str>) -> Result<Vec<i32>, String> {
    with_header(text, column.unwrap_or(""), Header::Auto)
}

fn with_header(text: &str, column: &str, header: Header) -> Result<Vec<i32>, String> {
    read(text, &options(column, header, Empty::Refused))
}

fn with_empty(text: &str, column: &str, empty: Empty) -> Result<Vec<i32>, String> {
    read(text, &options(column, Header::Auto, empty))
}

fn read(text: &str, options: &CsvOptions) -> Result<Vec<i32>, String> {
    let mut numbers = open(text, options).map_err(|error| error.to_string())?;
    let mut found = Vec::new();
    loop {
        let mut out = [0; 16];
        let filled = numbers.fill(&mut out).map_err(|error| error.to_string())?;
        found.extend(out[..filled].chunks(4).map(|b| i32::from_le_bytes(b.try_into().unwrap())));
        if filled < out.len() {
            return Ok(found);
        }
    }
}

#[test]
fn columns_are_chosen_by_name_or_number() {
    let text = "id,price\n1, 10\n2,-20 \n3,30\n4,40\n5,50\n";
    assert_eq!(numbers(text, Some("price")), Ok(vec![10, -20, 30, 40, 50]));
    assert_eq!(numbers(text, Some("2")), Ok(vec![10, -20, 30, 40, 50]));
    assert_eq!(numbers("1,2\n3,4\n", Some("2")), Ok(vec![2, 4]));
    assert_eq!(numbers("7\n8\n", None), Ok(vec![7, 8]));
    assert_eq!(with_header("seven\n8\n", "", Header::Yes), Ok(vec![8]));
}

#[test]
fn a_value_that_is_not_a_number_is_named_with_its_place() {
    let error = numbers("id,price\n1,10\n2,abc\n", Some("price")).unwrap_err();
    assert_eq!(error, "t.csv, line 3, column \"price\": \"abc\" is not a valid i32");
    let error = numbers("1,10\n2,\n", Some("2")).unwrap_err();
    let hint = ": --empty says what an empty cell is";
    assert_eq!(error, format!("t.csv, line 2, column 2: \"\" is not a valid i32{hint}"));
    let error = numbers("1,10\n2\n", Some("2")).unwrap_err();
    assert!(error.contains("line 2 has 1 column, so there is no column 2"), "{error}");
    let error = numbers("1\n99999999999\n", None).unwrap_err();
    assert_eq!(error, "t.csv, line 2, column 1: \"99999999999\" is not a valid i32");
}

#[test]
fn an_empty_cell_is_what_the_user_says() {
    let text = "id,price\n1,10\n2,\n3, \n4,40\n";
    assert_eq!(with_empty(text, "price", Empty::Zero), Ok(vec![10, 0, 0, 40]));
    assert_eq!(with_empty(text, "2", Empty::Skip), Ok(vec![10, 40]));
    // Cells that are something else, and lines that end too early, are errors all the same.
    for (text, why) in [("1,2\n3,x\n", "\"x\" is not"), ("1,2\n3\n", "line 2 has 1 column")] {
        for empty in [Empty::Zero, Empty::Skip, Empty::Nan] {
            assert!(with_empty(text, "2", empty).unwrap_err().contains(why));
        }
    }
    // The first row holds values if its other cells are numbers, and names otherwise.
    assert_eq!(with_empty(",2\n3,4\n", "1", Empty::Zero), Ok(vec![0, 3]));
    assert_eq!(with_empty(",price\n3,4\n", "1", Empty::Zero), Ok(vec![3]));
    assert_eq!(with_empty(",2\n3,4\n", "1", Empty::Skip), Ok(vec![3]));
}

#[test]
fn a_column_that_is_not_there_is_an_error() {
    assert!(numbers("a,b\n1,2\n", Some("c")).unwrap_err().contains("no column \"c\", but: a"));
    assert!(numbers("1,2\n", Some("3")).unwrap_err().contains("no column 3"));
    assert!(numbers("1,2\n", None).unwrap_err().contains("--column"));
}

#[test]
fn numbers_too_large_are_not_infinity() {
    let mut out = [0; 8];
    assert_eq!(encode(ElementType::F64, "1e400", &mut out), None);
    assert_eq!(encode(ElementType::F32, "1e39", &mut out), None);
    assert_eq!(encode(ElementType::F64, "-inf", &mut out), Some(()));
    assert_eq!(out, f64::NEG_INFINITY.to_le_bytes());
}

#[test]
fn empty_files_and_bare_headers_hold_nothing() {
    assert_eq!(numbers("", None), Ok(vec![]));
    assert_eq!(numbers("", Some("price")), Ok(vec![]));
    assert_eq!(numbers("price\n", Some("price")), Ok(vec![]));
}

/// Asserts that the first row is neither taken for a header nor for values without a word.
fn uncertain(text: &str, column: &str) {
    for empty in [Empty::Refused, Empty::Zero, Empty::Skip] {
        let error = with_empty(text, column, empty).unwrap_err();
        assert!(error.contains("is not a valid i32"), "{text:?}: {error}");
        assert!(error.contains("--header yes|no"), "{text:?}: {error}");
    }
}

#[test]
fn a_first_value_that_does_not_fit_the_type_is_an_error() {
    let wide = ["99999999999\n1\n2\n", "1.5\n1\n2\n", "1e400\n1\n2\n", "nan\n1\n2\n"];
    for (text, column) in wide.map(|text| (text, "")).into_iter().chain([("1,99999999999\n", "2")])
    {
        for header in [Header::Auto, Header::No] {
            let error = with_header(text, column, header).unwrap_err();
            assert!(error.starts_with("t.csv, line 1, column "), "{text:?}: {error}");
            assert!(error.ends_with("is not a valid i32"), "{text:?}: {error}");
        }
        assert!(with_header(text, column, Header::Yes).is_ok());
    }
}

#[test]
fn a_first_row_that_may_be_a_header_is_refused_with_the_option_that_decides() {
    for first in ["NA", "N/A", "-", "?", "#REF!", "1_000", "12%", "$3", "price", "1;2"] {
        uncertain(&format!("{first}\n1\n2\n"), "");
        assert_eq!(with_header(&format!("{first}\n1\n"), "1", Header::Yes), Ok(vec![1]));
        let error = with_header(&format!("{first}\n1\n"), "", Header::No).unwrap_err();
        assert!(error.ends_with("is not a valid i32"), "{error}");
    }
    for (text, column) in [
        ("1,NA\n2,5\n", "2"),
        ("alice,tbd\nbob,5\n", "2"),
        ("NA,NA\n1,2\n", "2"),
        ("2020-01-01,NA\n3,5\n", "2"),
        ("id,unknown\n1,2\n", "2"),
        ("id,price\n", "2"),
        ("id,2019\n1,2\n", "1"),
        ("id,\n1,2\n", "2"),
    ] {
        uncertain(text, column);
    }
    // A name says that there is a header.
    assert_eq!(numbers("name,price\nalice,10\n", Some("price")), Ok(vec![10]));
}

#[test]
fn what_was_taken_is_said() {
    let said = |text: &str, column: &str, header| {
        let options = options(column, header, Empty::Refused);
        open(text, &options).map(|numbers| numbers.taken().to_string()).unwrap()
    };
    let found = said("\nid,price\n1,2\n", "2", Header::Auto);
    assert_eq!(found, "column 2 of 2, \"price\", header in line 2");
    assert_eq!(said("1\n2\n", "", Header::Auto), "column 1 of 1, no header");
    assert_eq!(said("\n\n", "", Header::Auto), "no rows");
}

#[test]
fn a_header_of_numbers_can_be_chosen_from() {
    let text = "2019,2020\n1,2\n3,4\n";
    assert_eq!(numbers(text, Some("2")), Ok(vec![2020, 2, 4]));
    assert_eq!(with_header(text, "2020", Header::Yes), Ok(vec![2, 4]));
    assert_eq!(with_header(text, "1", Header::Yes), Ok(vec![1, 3]));
    assert!(numbers(text, Some("2020")).unwrap_err().contains("--header yes"));
    assert_eq!(with_header("3,1\n5,6\n", "1", Header::Yes), Ok(vec![6]));
    let error = with_header("x,y\n5,6\n", "x", Header::No).unwrap_err();
    assert!(error.contains("choose one by its number"), "{error}");
    let error = numbers("x,x\n5,6\n", Some("x")).unwrap_err();
    assert!(error.contains("more than one column \"x\""), "{error}");
}

#[test]
fn a_blank_line_of_a_single_column_is_an_empty_cell() {
    let text = "1\n\n3\n\n\n";
    let error = numbers(text, None).unwrap_err();
    let hint = ": --empty says what an empty cell is";
    assert_eq!(error, format!("t.csv, line 2, column 1: \"\" is not a valid i32{hint}"));
    assert_eq!(with_empty(text, "1", Empty::Zero), Ok(vec![1, 0, 3]));
    assert_eq!(with_empty(text, "1", Empty::Skip), Ok(vec![1, 3]));
    assert_eq!(with_empty("\r\n\r\n1\r\n\r\n2", "", Empty::Zero), Ok(vec![0, 0, 1, 0, 2]));
    assert_eq!(with_empty("x\n\n1\n\n\n\n\n\n2\n", "x", Empty::Zero).unwrap().len(), 8);
    // They separate rows of several columns.
    assert_eq!(numbers("1,2\n\n3,4\n", Some("2")), Ok(vec![2, 4]));
    let error = numbers("1,2\n\n3,x\n", Some("2")).unwrap_err();
    assert!(error.starts_with("t.csv, line 3, column 2"), "{error}");
}

#[test]
fn rows_are_not_lost_in_quotes_and_not_shifted_by_commas() {
    let error = numbers("1\n2\n\"3\n4\n", None).unwrap_err();
    assert!(error.contains("a quote that opens in line 3 is not closed"), "{error}");
    let error = numbers("a,b\n1,2\n1,000,5\n", Some("b")).unwrap_err();
    assert!(error.contains("line 3 has more cells than the first row"), "{error}");
    assert_eq!(numbers("a,b\n1,2,\n3,4, ,\n", Some("b")), Ok(vec![2, 4]));
}
