//! Types of Arrow in Substrait's form.

use datafusion::arrow::datatypes::{DataType, Field, Schema, TimeUnit};

use super::{ENTRIES, ITEM, LARGE, UNSIGNED, USUAL, UTC, VIEW, ZONE, precision};
use crate::declarations::Named;
use crate::refusal::Refusal;
use crate::substrait::{
    DecimalType, Fixed, Kind, ListType, MapType, NamedStruct, Nullability, Plain, Precise,
    StructType, Type,
};

/// Returns the type in Substrait's form; variations that it has are added to `named`.
///
/// # Errors
/// [`Refusal`] if it has none. A row has none, because names of its fields have no place.
pub(crate) fn write(
    data_type: &DataType,
    nullable: bool,
    named: &mut Named,
) -> Result<Type, Refusal> {
    Writer { named, names: None }.write(data_type, nullable)
}

/// Returns columns in Substrait's form; variations of their types are added to `named`.
///
/// # Errors
/// [`Refusal`] that names a column whose type has none.
pub(crate) fn write_schema(schema: &Schema, named: &mut Named) -> Result<NamedStruct, Refusal> {
    let mut writer = Writer { named, names: Some(Vec::new()) };
    let field = |field: &std::sync::Arc<Field>| {
        let written = writer.field(field);
        written.map_err(|refusal| refusal.of(&format!("column {:?}", field.name())))
    };
    let types = schema.fields().iter().map(field).collect::<Result<_, _>>()?;
    let nullability = Nullability::Required as i32;
    let structure = Some(StructType { types, nullability });
    Ok(NamedStruct { names: writer.names.unwrap_or_default(), structure })
}

/// Returns the variation of points in time in a zone.
pub(crate) fn zone_variation(zone: &str, named: &mut Named) -> u32 {
    if zone == UTC { USUAL } else { named.variation(&format!("{ZONE}{zone}")) }
}

struct Writer<'a> {
    named: &'a mut Named,
    /// Names of columns and of fields of rows, in the order in which they are met, where they have
    /// a place.
    names: Option<Vec<String>>,
}

impl Writer<'_> {
    /// Returns the type of a column or of a field of a row, and keeps its name.
    fn field(&mut self, field: &Field) -> Result<Type, Refusal> {
        let names = self.names.as_mut();
        let names = names.ok_or_else(|| Refusal::new("a row that is no column of the table"))?;
        names.push(field.name().clone());
        self.write(field.data_type(), field.is_nullable())
    }

    fn boxed(&mut self, field: &Field) -> Result<Option<Box<Type>>, Refusal> {
        Ok(Some(Box::new(self.write(field.data_type(), field.is_nullable())?)))
    }

    fn write(&mut self, data_type: &DataType, nullable: bool) -> Result<Type, Refusal> {
        let nullability = match nullable {
            true => Nullability::Nullable,
            false => Nullability::Required,
        } as i32;
        let kind = match data_type {
            DataType::Timestamp(unit, Some(zone)) => {
                let variation = zone_variation(zone, self.named);
                let precision = precision(*unit);
                Kind::PrecisionTimestampTz(Precise { precision, variation, nullability })
            }
            DataType::Struct(fields) => {
                let types = fields.iter().map(|field| self.field(field)).collect::<Result<_, _>>();
                Kind::Struct(StructType { types: types?, nullability })
            }
            DataType::List(item) => {
                let variation = self.named.variation(&format!("{ITEM}{}", item.name()));
                Kind::List(Box::new(ListType { item: self.boxed(item)?, variation, nullability }))
            }
            DataType::Map(entries, false) => self.map(entries, nullability)?,
            other => plain(other, nullability)?,
        };
        Ok(Type { kind: Some(kind) })
    }

    fn map(&mut self, entries: &Field, nullability: i32) -> Result<Kind, Refusal> {
        let DataType::Struct(fields) = entries.data_type() else {
            return Err(Refusal::new("a map without entries"));
        };
        let [key, value] = &fields[..] else { return Err(Refusal::new("a map without values")) };
        let names = [entries, key, value].map(|field| field.name().as_str());
        if names.iter().any(|name| name.contains('/')) {
            return Err(Refusal::new(format!("a map of {names:?}")));
        }
        let variation = self.named.variation(&format!("{ENTRIES}{}", names.join("/")));
        let (key, value) = (self.boxed(key)?, self.boxed(value)?);
        Ok(Kind::Map(Box::new(MapType { key, value, variation, nullability })))
    }
}

/// Returns a type that needs no name.
fn plain(data_type: &DataType, nullability: i32) -> Result<Kind, Refusal> {
    let plain = |variation| Plain { variation, nullability };
    let precise =
        |unit: &TimeUnit| Precise { precision: precision(*unit), variation: USUAL, nullability };
    Ok(match data_type {
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
        other => return Err(Refusal::new(format!("type {other}"))),
    })
}
