//! Constants of DataFusion as literals of Substrait.
//!
//! Invariant: a constant is written only if it is read back as the same one, of the same type.

use std::sync::Arc;

use datafusion::arrow::datatypes::TimeUnit;
use datafusion::common::ScalarValue;

use crate::data_type::{self, LARGE, UNSIGNED, USUAL, VIEW};
use crate::declarations::{Declared, Named};
use crate::refusal::Refusal;
use crate::substrait::literal::Value;
use crate::substrait::{Decimal, Literal, PrecisionValue};

/// Returns a constant in Substrait's form.
///
/// # Errors
/// [`Refusal`] if its type has none.
pub(crate) fn write(scalar: &ScalarValue, named: &mut Named) -> Result<Literal, Refusal> {
    if scalar.is_null() {
        let of = data_type::write(&scalar.data_type(), true, named)?;
        return Ok(Literal { value: Some(Value::Null(of)), nullable: true, variation: USUAL });
    }
    let (value, variation) = match scalar {
        ScalarValue::Boolean(Some(value)) => (Value::Boolean(*value), USUAL),
        ScalarValue::Int8(Some(value)) => (Value::I8((*value).into()), USUAL),
        ScalarValue::Int16(Some(value)) => (Value::I16((*value).into()), USUAL),
        ScalarValue::Int32(Some(value)) => (Value::I32(*value), USUAL),
        ScalarValue::Int64(Some(value)) => (Value::I64(*value), USUAL),
        ScalarValue::UInt8(Some(value)) => (Value::I8(value.cast_signed().into()), UNSIGNED),
        ScalarValue::UInt16(Some(value)) => (Value::I16(value.cast_signed().into()), UNSIGNED),
        ScalarValue::UInt32(Some(value)) => (Value::I32(value.cast_signed()), UNSIGNED),
        ScalarValue::UInt64(Some(value)) => (Value::I64(value.cast_signed()), UNSIGNED),
        ScalarValue::Float32(Some(value)) => (Value::Fp32(*value), USUAL),
        ScalarValue::Float64(Some(value)) => (Value::Fp64(*value), USUAL),
        ScalarValue::Utf8(Some(value)) => (Value::String(value.clone()), USUAL),
        ScalarValue::LargeUtf8(Some(value)) => (Value::String(value.clone()), LARGE),
        ScalarValue::Utf8View(Some(value)) => (Value::String(value.clone()), VIEW),
        ScalarValue::Binary(Some(value)) => (Value::Binary(value.clone()), USUAL),
        ScalarValue::LargeBinary(Some(value)) => (Value::Binary(value.clone()), LARGE),
        ScalarValue::BinaryView(Some(value)) => (Value::Binary(value.clone()), VIEW),
        ScalarValue::FixedSizeBinary(_, Some(value)) => (Value::FixedBinary(value.clone()), USUAL),
        ScalarValue::Date32(Some(value)) => (Value::Date(*value), USUAL),
        ScalarValue::Decimal128(Some(value), precision, scale) => {
            let value = value.to_le_bytes().to_vec();
            let decimal = Decimal { value, precision: (*precision).into(), scale: (*scale).into() };
            (Value::Decimal(decimal), USUAL)
        }
        other => return write_time(other, named),
    };
    Ok(Literal { value: Some(value), nullable: false, variation })
}

fn write_time(scalar: &ScalarValue, named: &mut Named) -> Result<Literal, Refusal> {
    use TimeUnit::{Microsecond, Millisecond, Nanosecond, Second};
    let usual = |value| Ok(Literal { value: Some(value), nullable: false, variation: USUAL });
    let of_day = |unit, value| {
        usual(Value::PrecisionTime(PrecisionValue { precision: data_type::precision(unit), value }))
    };
    let mut at = |unit, value, zone: &Option<Arc<str>>| {
        let at = PrecisionValue { precision: data_type::precision(unit), value };
        let Some(zone) = zone else { return usual(Value::PrecisionTimestamp(at)) };
        let variation = data_type::zone_variation(zone, named);
        let value = Some(Value::PrecisionTimestampTz(at));
        Ok(Literal { value, nullable: false, variation })
    };
    match scalar {
        ScalarValue::Time32Second(Some(value)) => of_day(Second, (*value).into()),
        ScalarValue::Time32Millisecond(Some(value)) => of_day(Millisecond, (*value).into()),
        ScalarValue::Time64Microsecond(Some(value)) => of_day(Microsecond, *value),
        ScalarValue::Time64Nanosecond(Some(value)) => of_day(Nanosecond, *value),
        ScalarValue::TimestampSecond(Some(value), zone) => at(Second, *value, zone),
        ScalarValue::TimestampMillisecond(Some(value), zone) => at(Millisecond, *value, zone),
        ScalarValue::TimestampMicrosecond(Some(value), zone) => at(Microsecond, *value, zone),
        ScalarValue::TimestampNanosecond(Some(value), zone) => at(Nanosecond, *value, zone),
        other => Err(Refusal::new(format!("a constant of type {}", other.data_type()))),
    }
}

/// Returns a constant of DataFusion.
///
/// # Errors
/// [`Refusal`] if it is none that [`write`] writes.
pub(crate) fn read(literal: &Literal, declared: &Declared<'_>) -> Result<ScalarValue, Refusal> {
    let unknown = || Refusal::new(format!("a constant that is not known: {literal:?}"));
    let variation = literal.variation;
    let scalar = match literal.value.as_ref().ok_or_else(unknown)? {
        Value::Null(of) => {
            let (data_type, _) = data_type::read(of, declared)?;
            return ScalarValue::try_from(&data_type).map_err(Into::into);
        }
        Value::Boolean(value) => ScalarValue::from(*value),
        Value::I8(_) | Value::I16(_) | Value::I32(_) | Value::I64(_) => {
            return read_integer(literal).ok_or_else(unknown);
        }
        Value::Fp32(value) => ScalarValue::from(*value),
        Value::Fp64(value) => ScalarValue::from(*value),
        Value::String(text) => {
            let text = Some(text.clone());
            return match variation {
                USUAL => Ok(ScalarValue::Utf8(text)),
                LARGE => Ok(ScalarValue::LargeUtf8(text)),
                VIEW => Ok(ScalarValue::Utf8View(text)),
                _ => Err(unknown()),
            };
        }
        Value::Binary(bytes) => {
            let bytes = Some(bytes.clone());
            return match variation {
                USUAL => Ok(ScalarValue::Binary(bytes)),
                LARGE => Ok(ScalarValue::LargeBinary(bytes)),
                VIEW => Ok(ScalarValue::BinaryView(bytes)),
                _ => Err(unknown()),
            };
        }
        Value::FixedBinary(bytes) => {
            let length = i32::try_from(bytes.len()).map_err(|_| unknown())?;
            ScalarValue::FixedSizeBinary(length, Some(bytes.clone()))
        }
        Value::Date(days) => ScalarValue::Date32(Some(*days)),
        Value::Decimal(decimal) => read_decimal(decimal).ok_or_else(unknown)?,
        Value::PrecisionTime(time) => read_time(*time).ok_or_else(unknown)?,
        Value::PrecisionTimestamp(at) => read_timestamp(*at, None).ok_or_else(unknown)?,
        Value::PrecisionTimestampTz(at) => {
            let zone = data_type::read_zone(variation, declared).ok_or_else(unknown)?;
            return read_timestamp(*at, Some(zone)).ok_or_else(unknown);
        }
    };
    if variation == USUAL { Ok(scalar) } else { Err(unknown()) }
}

fn read_integer(literal: &Literal) -> Option<ScalarValue> {
    let unsigned = match literal.variation {
        USUAL => false,
        UNSIGNED => true,
        _ => return None,
    };
    Some(match (literal.value.as_ref()?, unsigned) {
        (Value::I8(value), false) => ScalarValue::Int8(Some(i8::try_from(*value).ok()?)),
        (Value::I8(value), true) => {
            ScalarValue::UInt8(Some(i8::try_from(*value).ok()?.cast_unsigned()))
        }
        (Value::I16(value), false) => ScalarValue::Int16(Some(i16::try_from(*value).ok()?)),
        (Value::I16(value), true) => {
            ScalarValue::UInt16(Some(i16::try_from(*value).ok()?.cast_unsigned()))
        }
        (Value::I32(value), false) => ScalarValue::Int32(Some(*value)),
        (Value::I32(value), true) => ScalarValue::UInt32(Some(value.cast_unsigned())),
        (Value::I64(value), false) => ScalarValue::Int64(Some(*value)),
        (Value::I64(value), true) => ScalarValue::UInt64(Some(value.cast_unsigned())),
        _ => return None,
    })
}

fn read_decimal(decimal: &Decimal) -> Option<ScalarValue> {
    let value = i128::from_le_bytes(*decimal.value.first_chunk::<16>()?);
    let precision = u8::try_from(decimal.precision).ok().filter(|it| (1..=38).contains(it))?;
    let scale = i8::try_from(decimal.scale).ok().filter(|it| it.unsigned_abs() <= precision)?;
    (decimal.value.len() == 16).then_some(ScalarValue::Decimal128(Some(value), precision, scale))
}

fn read_time(time: PrecisionValue) -> Option<ScalarValue> {
    let short = || i32::try_from(time.value).ok();
    Some(match data_type::unit(time.precision)? {
        TimeUnit::Second => ScalarValue::Time32Second(Some(short()?)),
        TimeUnit::Millisecond => ScalarValue::Time32Millisecond(Some(short()?)),
        TimeUnit::Microsecond => ScalarValue::Time64Microsecond(Some(time.value)),
        TimeUnit::Nanosecond => ScalarValue::Time64Nanosecond(Some(time.value)),
    })
}

fn read_timestamp(at: PrecisionValue, zone: Option<Arc<str>>) -> Option<ScalarValue> {
    let value = Some(at.value);
    Some(match data_type::unit(at.precision)? {
        TimeUnit::Second => ScalarValue::TimestampSecond(value, zone),
        TimeUnit::Millisecond => ScalarValue::TimestampMillisecond(value, zone),
        TimeUnit::Microsecond => ScalarValue::TimestampMicrosecond(value, zone),
        TimeUnit::Nanosecond => ScalarValue::TimestampNanosecond(value, zone),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_constant_that_is_written_is_read_back() {
        let zone = |name: &str| Some(name.into());
        let all = [
            ScalarValue::from(true),
            ScalarValue::from(-7i8),
            ScalarValue::from(200u8),
            ScalarValue::from(65_000u16),
            ScalarValue::from(-1i32),
            ScalarValue::from(u64::MAX),
            ScalarValue::from(-0.0f64),
            ScalarValue::from(f32::NAN),
            ScalarValue::from("größer"),
            ScalarValue::LargeUtf8(Some(String::new())),
            ScalarValue::Utf8View(Some("x".to_owned())),
            ScalarValue::BinaryView(Some(vec![0, 255])),
            ScalarValue::FixedSizeBinary(2, Some(vec![1, 2])),
            ScalarValue::Date32(Some(-1)),
            ScalarValue::Decimal128(Some(-12_345), 10, 2),
            ScalarValue::Time64Nanosecond(Some(5)),
            ScalarValue::TimestampMicrosecond(Some(-1), zone("UTC")),
            ScalarValue::TimestampNanosecond(Some(7), zone("+02:00")),
            ScalarValue::TimestampNanosecond(None, zone("Europe/Berlin")),
            ScalarValue::Utf8View(None),
            ScalarValue::Decimal128(None, 12, 2),
            ScalarValue::TimestampSecond(None, None),
        ];
        for scalar in all {
            let mut named = Named::default();
            let written = write(&scalar, &mut named).unwrap();
            let (_, extensions) = named.declare();
            let read = read(&written, &Declared::new(&extensions)).unwrap();
            assert_eq!(read.data_type(), scalar.data_type());
            assert_eq!(read, scalar);
        }
    }

    #[test]
    fn constants_outside_their_type_are_refused() {
        let read = |literal: &Literal| super::read(literal, &Declared::default());
        let with = |value, variation| Literal { value: Some(value), nullable: false, variation };
        assert!(read(&with(Value::I8(128), USUAL)).is_err());
        assert!(read(&with(Value::I16(1), 2)).is_err());
        assert!(read(&with(Value::Boolean(true), 1)).is_err());
        let decimal = |value: Vec<u8>, precision, scale| {
            with(Value::Decimal(Decimal { value, precision, scale }), USUAL)
        };
        assert!(read(&decimal(vec![0; 16], 10, 2)).is_ok());
        for wrong in [decimal(vec![0; 15], 10, 2), decimal(vec![0; 17], 10, 2)] {
            assert!(read(&wrong).is_err());
        }
        assert!(read(&decimal(vec![0; 16], 0, 0)).is_err());
        assert!(read(&decimal(vec![0; 16], 5, 6)).is_err());
        assert!(read(&Literal::default()).is_err());
    }
}
