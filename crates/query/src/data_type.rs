//! Types of Arrow as types of Substrait.
//!
//! Substrait has one text, one kind of bytes and no integers without a sign; Arrow has several
//! layouts of each. They are variations of a type, with the numbers that DataFusion's producer
//! gives them. Invariant: a type is written only if it is read back as the same one; other types
//! have no form, and their columns stay on the host.

use datafusion::arrow::datatypes::{DataType, Field, Schema, TimeUnit};

use crate::refusal::Refusal;
use crate::substrait::{
    DecimalType, Fixed, Kind, NamedStruct, Nullability, Plain, Precise, StructType, Type,
};

/// The usual layout of a type.
pub(crate) const USUAL: u32 = 0;
/// Integers without a sign.
pub(crate) const UNSIGNED: u32 = 1;
/// Text and bytes with offsets of 64 bits.
pub(crate) const LARGE: u32 = 1;
/// Text and bytes of views.
pub(crate) const VIEW: u32 = 2;

/// Zone of points in time that have one: Substrait does not say which.
pub(crate) const UTC: &str = "UTC";

/// Returns the type in Substrait's form.
///
/// # Errors
/// [`Refusal`] if it has none.
pub(crate) fn write(data_type: &DataType, nullable: bool) -> Result<Type, Refusal> {
    let nullability = match nullable {
        true => Nullability::Nullable,
        false => Nullability::Required,
    } as i32;
    let plain = |variation| Plain { variation, nullability };
    let precise =
        |unit: &TimeUnit| Precise { precision: precision(*unit), variation: 0, nullability };
    let kind = match data_type {
        DataType::Boolean => Kind::Bool(plain(USUAL)),
        DataType::Int8 => Kind::I8(plain(USUAL)),
        DataType::Int16 => Kind::I16(plain(USUAL)),
        DataType::Int32 => Kind::I32(plain(USUAL)),
        DataType::Int64 => Kind::I64(plain(USUAL)),
        DataType::UInt8 => Kind::I8(plain(UNSIGNED)),
        DataType::UInt16 => Kind::I16(plain(UNSIGNED)),
        DataType::UInt32 => Kind::I32(plain(UNSIGNED)),
        DataType::UInt64 => Kind::I64(plain(UNSIGNED)),
        DataType::Float32 => Kind::Fp32(plain(USUAL)),
        DataType::Float64 => Kind::Fp64(plain(USUAL)),
        DataType::Utf8 => Kind::String(plain(USUAL)),
        DataType::LargeUtf8 => Kind::String(plain(LARGE)),
        DataType::Utf8View => Kind::String(plain(VIEW)),
        DataType::Binary => Kind::Binary(plain(USUAL)),
        DataType::LargeBinary => Kind::Binary(plain(LARGE)),
        DataType::BinaryView => Kind::Binary(plain(VIEW)),
        DataType::Date32 => Kind::Date(plain(USUAL)),
        DataType::FixedSizeBinary(length) => {
            Kind::FixedBinary(Fixed { length: *length, nullability })
        }
        DataType::Decimal128(precision, scale) => Kind::Decimal(DecimalType {
            scale: (*scale).into(),
            precision: (*precision).into(),
            variation: USUAL,
            nullability,
        }),
        DataType::Time32(unit @ (TimeUnit::Second | TimeUnit::Millisecond))
        | DataType::Time64(unit @ (TimeUnit::Microsecond | TimeUnit::Nanosecond)) => {
            Kind::PrecisionTime(precise(unit))
        }
        DataType::Timestamp(unit, None) => Kind::PrecisionTimestamp(precise(unit)),
        DataType::Timestamp(unit, Some(zone)) if &**zone == UTC => {
            Kind::PrecisionTimestampTz(precise(unit))
        }
        other => return Err(Refusal::new(format!("type {other}"))),
    };
    Ok(Type { kind: Some(kind) })
}

/// Returns the type of Arrow, and whether values may be missing.
///
/// # Errors
/// [`Refusal`] if it is none that [`write`] writes.
pub(crate) fn read(stated: &Type) -> Result<(DataType, bool), Refusal> {
    let unknown = || Refusal::new(format!("a type that is not known: {stated:?}"));
    let one =
        |usual, plain: &Plain| (plain.variation == USUAL).then_some((usual, plain.nullability));
    let sign = |signed, unsigned, plain: &Plain| match plain.variation {
        USUAL => Some((signed, plain.nullability)),
        UNSIGNED => Some((unsigned, plain.nullability)),
        _ => None,
    };
    let layout = |usual, large, view, plain: &Plain| match plain.variation {
        USUAL => Some((usual, plain.nullability)),
        LARGE => Some((large, plain.nullability)),
        VIEW => Some((view, plain.nullability)),
        _ => None,
    };
    let found = match stated.kind.as_ref().ok_or_else(unknown)? {
        Kind::Bool(plain) => one(DataType::Boolean, plain),
        Kind::I8(plain) => sign(DataType::Int8, DataType::UInt8, plain),
        Kind::I16(plain) => sign(DataType::Int16, DataType::UInt16, plain),
        Kind::I32(plain) => sign(DataType::Int32, DataType::UInt32, plain),
        Kind::I64(plain) => sign(DataType::Int64, DataType::UInt64, plain),
        Kind::Fp32(plain) => one(DataType::Float32, plain),
        Kind::Fp64(plain) => one(DataType::Float64, plain),
        Kind::String(plain) => {
            layout(DataType::Utf8, DataType::LargeUtf8, DataType::Utf8View, plain)
        }
        Kind::Binary(plain) => {
            layout(DataType::Binary, DataType::LargeBinary, DataType::BinaryView, plain)
        }
        Kind::Date(plain) => one(DataType::Date32, plain),
        Kind::FixedBinary(Fixed { length, nullability }) => {
            (*length >= 0).then_some((DataType::FixedSizeBinary(*length), *nullability))
        }
        Kind::Decimal(decimal) => read_decimal(decimal),
        Kind::PrecisionTime(precise) => unit(precise.precision).map(|unit| {
            let time = match unit {
                TimeUnit::Second | TimeUnit::Millisecond => DataType::Time32(unit),
                TimeUnit::Microsecond | TimeUnit::Nanosecond => DataType::Time64(unit),
            };
            (time, precise.nullability)
        }),
        Kind::PrecisionTimestamp(precise) => unit(precise.precision)
            .map(|unit| (DataType::Timestamp(unit, None), precise.nullability)),
        Kind::PrecisionTimestampTz(precise) => unit(precise.precision)
            .map(|unit| (DataType::Timestamp(unit, Some(UTC.into())), precise.nullability)),
    };
    let (data_type, nullability) = found.ok_or_else(unknown)?;
    Ok((data_type, nullability != Nullability::Required as i32))
}

fn read_decimal(stated: &DecimalType) -> Option<(DataType, i32)> {
    let precision =
        u8::try_from(stated.precision).ok().filter(|digits| (1..=38).contains(digits))?;
    let scale = i8::try_from(stated.scale).ok()?;
    let usual = stated.variation == USUAL && scale.unsigned_abs() <= precision;
    usual.then_some((DataType::Decimal128(precision, scale), stated.nullability))
}

/// Returns the digits of a second after the point.
pub(crate) const fn precision(unit: TimeUnit) -> i32 {
    match unit {
        TimeUnit::Second => 0,
        TimeUnit::Millisecond => 3,
        TimeUnit::Microsecond => 6,
        TimeUnit::Nanosecond => 9,
    }
}

/// Returns the unit with this many digits of a second after the point.
pub(crate) const fn unit(precision: i32) -> Option<TimeUnit> {
    match precision {
        0 => Some(TimeUnit::Second),
        3 => Some(TimeUnit::Millisecond),
        6 => Some(TimeUnit::Microsecond),
        9 => Some(TimeUnit::Nanosecond),
        _ => None,
    }
}

/// Returns columns in Substrait's form.
///
/// # Errors
/// [`Refusal`] that names a column whose type has none.
pub(crate) fn write_schema(schema: &Schema) -> Result<NamedStruct, Refusal> {
    let field = |field: &std::sync::Arc<Field>| {
        write(field.data_type(), field.is_nullable())
            .map_err(|refusal| refusal.of(&format!("column {:?}", field.name())))
    };
    let types = schema.fields().iter().map(field).collect::<Result<_, _>>()?;
    let names = schema.fields().iter().map(|field| field.name().clone()).collect();
    let nullability = Nullability::Required as i32;
    Ok(NamedStruct { names, structure: Some(StructType { types, nullability }) })
}

/// Returns columns of Arrow.
///
/// # Errors
/// [`Refusal`] if names and types are not equally many, or a type is not known.
pub(crate) fn read_schema(stated: &NamedStruct) -> Result<Schema, Refusal> {
    let types = stated.structure.as_ref().map_or(&[][..], |structure| &structure.types);
    if types.len() != stated.names.len() {
        return Err(Refusal::new("a table with as many names as types is missing".to_owned()));
    }
    let field = |(name, stated): (&String, &Type)| {
        let (data_type, nullable) = read(stated)?;
        Ok::<_, Refusal>(Field::new(name, data_type, nullable))
    };
    Ok(Schema::new(stated.names.iter().zip(types).map(field).collect::<Result<Vec<_>, _>>()?))
}

#[cfg(test)]
mod tests {
    use super::*;

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
        ];
        for (nullable, data_type) in
            [true, false].into_iter().flat_map(|n| all.iter().map(move |t| (n, t)))
        {
            let written = write(data_type, nullable).unwrap();
            assert_eq!(read(&written).unwrap(), (data_type.clone(), nullable));
        }
        for other in [Timestamp(TimeUnit::Second, zone("Europe/Berlin")), DataType::Float16] {
            assert!(write(&other, true).is_err(), "{other}");
        }
    }

    #[test]
    fn types_that_are_not_known_are_refused() {
        let refused = |kind| read(&Type { kind }).is_err();
        let plain = |variation| Plain { variation, nullability: 1 };
        assert!(refused(None));
        assert!(refused(Some(Kind::Bool(plain(1)))));
        assert!(refused(Some(Kind::I32(plain(2)))));
        assert!(refused(Some(Kind::String(plain(3)))));
        assert!(refused(Some(Kind::FixedBinary(Fixed { length: -1, nullability: 1 }))));
        let decimal =
            |precision, scale| DecimalType { scale, precision, variation: 0, nullability: 1 };
        for (precision, scale) in [(0, 0), (39, 0), (-1, 0), (5, 6), (5, 300)] {
            assert!(refused(Some(Kind::Decimal(decimal(precision, scale)))), "{precision} {scale}");
        }
        let precise = Precise { precision: 4, variation: 0, nullability: 1 };
        assert!(refused(Some(Kind::PrecisionTime(precise))));
    }
}
