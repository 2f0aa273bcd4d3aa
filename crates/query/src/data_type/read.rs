//! Types of Arrow from Substrait's form, which may be a stranger's.

use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Field, Fields, Schema, TimeUnit};

use super::{ENTRIES, ITEM, LARGE, UNSIGNED, USUAL, UTC, VIEW, ZONE, unit};
use crate::declarations::Declared;
use crate::refusal::Refusal;
use crate::substrait::{DecimalType, Fixed, Kind, MapType, NamedStruct, Nullability, Plain, Type};

/// Returns the type of Arrow, and whether values may be missing.
///
/// # Errors
/// [`Refusal`] if it is none that [`super::write()`] writes.
pub(crate) fn read(stated: &Type, declared: &Declared<'_>) -> Result<(DataType, bool), Refusal> {
    Reader { declared, names: [].iter() }.read(stated)
}

/// Returns columns of Arrow.
///
/// # Errors
/// [`Refusal`] if there are not as many names as columns and fields of rows, or a type is unknown.
pub(crate) fn read_schema(
    stated: &NamedStruct,
    declared: &Declared<'_>,
) -> Result<Schema, Refusal> {
    let types = stated.structure.as_ref().map_or(&[][..], |structure| &structure.types);
    let mut reader = Reader { declared, names: stated.names.iter() };
    let fields = types.iter().map(|stated| reader.named(stated)).collect::<Result<Vec<_>, _>>()?;
    match reader.names.next() {
        Some(name) => Err(Refusal::new(format!("name {name:?} of no column"))),
        None => Ok(Schema::new(fields)),
    }
}

/// Returns the zone that a variation of points in time stands for.
pub(crate) fn read_zone(variation: u32, declared: &Declared<'_>) -> Option<Arc<str>> {
    match variation {
        USUAL => Some(UTC.into()),
        _ => declared.variation(variation)?.strip_prefix(ZONE).map(Into::into),
    }
}

struct Reader<'a> {
    declared: &'a Declared<'a>,
    /// Names that no column or field of a row has taken yet.
    names: std::slice::Iter<'a, String>,
}

impl Reader<'_> {
    /// Returns a column or a field of a row.
    fn named(&mut self, stated: &Type) -> Result<Field, Refusal> {
        let name = self.names.next();
        let name = name.ok_or_else(|| Refusal::new("a column or a field without a name"))?;
        self.field(name, Some(stated))
    }

    fn field(&mut self, name: &str, stated: Option<&Type>) -> Result<Field, Refusal> {
        let stated = stated.ok_or_else(|| Refusal::new("a type that lacks a part"))?;
        let (data_type, nullable) = self.read(stated)?;
        Ok(Field::new(name, data_type, nullable))
    }

    fn read(&mut self, stated: &Type) -> Result<(DataType, bool), Refusal> {
        let unknown = || Refusal::new(format!("a type that is not known: {stated:?}"));
        let (data_type, nullability) = match stated.kind.as_ref().ok_or_else(unknown)? {
            Kind::Struct(row) => {
                let fields = row.types.iter().map(|stated| self.named(stated));
                (DataType::Struct(fields.collect::<Result<Fields, _>>()?), row.nullability)
            }
            Kind::List(list) => {
                let name = self.declared.variation(list.variation);
                let name = name.and_then(|name| name.strip_prefix(ITEM)).ok_or_else(unknown)?;
                let item = self.field(name, list.item.as_deref())?;
                (DataType::List(Arc::new(item)), list.nullability)
            }
            Kind::Map(map) => (self.map(map)?, map.nullability),
            Kind::PrecisionTimestampTz(precise) => {
                let zone = read_zone(precise.variation, self.declared).ok_or_else(unknown)?;
                let unit = unit(precise.precision).ok_or_else(unknown)?;
                (DataType::Timestamp(unit, Some(zone)), precise.nullability)
            }
            kind => plain(kind).ok_or_else(unknown)?,
        };
        Ok((data_type, nullability != Nullability::Required as i32))
    }

    fn map(&mut self, map: &MapType) -> Result<DataType, Refusal> {
        let names = self.declared.variation(map.variation);
        let names = names.and_then(|names| names.strip_prefix(ENTRIES));
        let names: Vec<&str> = names.unwrap_or_default().split('/').collect();
        let [entries, key, value] = names[..] else {
            return Err(Refusal::new(format!("a map of {names:?}")));
        };
        let key = self.field(key, map.key.as_deref())?;
        let value = self.field(value, map.value.as_deref())?;
        let row = DataType::Struct(Fields::from(vec![key, value]));
        Ok(DataType::Map(Arc::new(Field::new(entries, row, false)), false))
    }
}

/// Returns a type that needs no name, and its statement about missing values.
fn plain(kind: &Kind) -> Option<(DataType, i32)> {
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
    match kind {
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
        Kind::Struct(_) | Kind::List(_) | Kind::Map(_) | Kind::PrecisionTimestampTz(_) => None,
    }
}

fn read_decimal(stated: &DecimalType) -> Option<(DataType, i32)> {
    let precision =
        u8::try_from(stated.precision).ok().filter(|digits| (1..=38).contains(digits))?;
    let scale = i8::try_from(stated.scale).ok()?;
    let usual = stated.variation == USUAL && scale.unsigned_abs() <= precision;
    usual.then_some((DataType::Decimal128(precision, scale), stated.nullability))
}
