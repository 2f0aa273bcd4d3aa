//! Types in both directions.

use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Field, Fields, Schema, TimeUnit};

use super::*;
use crate::declarations::{Declared, Named};
use crate::substrait::{DecimalType, Fixed, Kind, ListType, NamedStruct, Plain, Precise, Type};

#[test]
fn a_type_that_is_written_is_read_back() {
    use DataType::{Date32, Decimal128, FixedSizeBinary, Time32, Time64, Timestamp};
    let zone = |name: &str| Some(name.into());
    let all = [
        DataType::Boolean,
        DataType::Int8,
        DataType::UInt8,
        DataType::UInt64,
        DataType::Float32,
        DataType::LargeUtf8,
        DataType::Utf8View,
        DataType::Binary,
        Date32,
        FixedSizeBinary(16),
        Decimal128(38, -3),
        Time32(TimeUnit::Millisecond),
        Time64(TimeUnit::Nanosecond),
        Timestamp(TimeUnit::Second, None),
        Timestamp(TimeUnit::Microsecond, zone(UTC)),
        Timestamp(TimeUnit::Nanosecond, zone("Europe/Berlin")),
        DataType::List(Arc::new(Field::new("element", DataType::Utf8, false))),
    ];
    for (nullable, data_type) in
        [true, false].into_iter().flat_map(|n| all.iter().map(move |t| (n, t)))
    {
        let mut named = Named::default();
        let written = write(data_type, nullable, &mut named).unwrap();
        let (_, extensions) = named.declare();
        let read = read(&written, &Declared::new(&extensions)).unwrap();
        assert_eq!(read, (data_type.clone(), nullable));
    }
    let row = DataType::Struct(Fields::from(vec![Field::new("x", DataType::Int8, true)]));
    for other in [row, DataType::Float16] {
        assert!(write(&other, true, &mut Named::default()).is_err(), "{other}");
    }
}

#[test]
fn types_that_are_not_known_are_refused() {
    let refused = |kind| read(&Type { kind }, &Declared::default()).is_err();
    let plain = |variation| Plain { variation, nullability: 1 };
    assert!(refused(None));
    assert!(refused(Some(Kind::Bool(plain(1)))));
    assert!(refused(Some(Kind::I32(plain(2)))));
    assert!(refused(Some(Kind::String(plain(3)))));
    assert!(refused(Some(Kind::FixedBinary(Fixed { length: -1, nullability: 1 }))));
    let decimal = |precision, scale| DecimalType { scale, precision, variation: 0, nullability: 1 };
    for (precision, scale) in [(0, 0), (39, 0), (-1, 0), (5, 6), (5, 300)] {
        assert!(refused(Some(Kind::Decimal(decimal(precision, scale)))), "{precision} {scale}");
    }
    let precise = Precise { precision: 4, variation: 0, nullability: 1 };
    assert!(refused(Some(Kind::PrecisionTime(precise))));
    let of_zone = Precise { precision: 6, variation: 16, nullability: 1 };
    assert!(refused(Some(Kind::PrecisionTimestampTz(of_zone))), "it is not declared");
    assert!(refused(Some(Kind::List(Box::new(ListType::default())))));
}

#[test]
fn columns_of_rows_and_maps_are_read_back_with_the_names_of_their_fields() {
    let field = |name: &str, of| Field::new(name, of, true);
    let row = DataType::Struct(Fields::from(vec![
        field("x", DataType::Int32),
        field("inner", DataType::Struct(Fields::from(vec![field("y", DataType::Utf8View)]))),
    ]));
    let entry = vec![Field::new("key", DataType::Utf8, false), field("value", row.clone())];
    let entries = Field::new("key_value", DataType::Struct(Fields::from(entry)), false);
    let schema = Schema::new(vec![
        field("row", row),
        field("map", DataType::Map(Arc::new(entries), false)),
        field("plain", DataType::Int64),
    ]);
    let mut named = Named::default();
    let written = write_schema(&schema, &mut named).unwrap();
    assert_eq!(written.names, ["row", "x", "inner", "y", "map", "x", "inner", "y", "plain"]);
    let (_, extensions) = named.declare();
    let declared = Declared::new(&extensions);
    assert_eq!(read_schema(&written, &declared).unwrap(), schema);
    for names in [written.names[1..].to_vec(), [&written.names[..], &["z".to_owned()]].concat()] {
        assert!(read_schema(&NamedStruct { names, ..written.clone() }, &declared).is_err());
    }
}
