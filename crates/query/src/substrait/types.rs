//! Types: `proto/substrait/type.proto`.

use prost::{Enumeration, Message, Oneof};

/// A type.
#[derive(Clone, PartialEq, Message)]
pub struct Type {
    /// The kind.
    #[prost(
        oneof = "Kind",
        tags = "1, 2, 3, 5, 7, 10, 11, 12, 13, 16, 23, 24, 25, 27, 28, 33, 34, 36"
    )]
    pub kind: Option<Kind>,
}

/// Kinds of types.
#[derive(Clone, PartialEq, Oneof)]
pub enum Kind {
    /// Truth values.
    #[prost(message, tag = "1")]
    Bool(Plain),
    /// Integers of 8 bits.
    #[prost(message, tag = "2")]
    I8(Plain),
    /// Integers of 16 bits.
    #[prost(message, tag = "3")]
    I16(Plain),
    /// Integers of 32 bits.
    #[prost(message, tag = "5")]
    I32(Plain),
    /// Integers of 64 bits.
    #[prost(message, tag = "7")]
    I64(Plain),
    /// Floating-point numbers of 32 bits.
    #[prost(message, tag = "10")]
    Fp32(Plain),
    /// Floating-point numbers of 64 bits.
    #[prost(message, tag = "11")]
    Fp64(Plain),
    /// Text.
    #[prost(message, tag = "12")]
    String(Plain),
    /// Bytes.
    #[prost(message, tag = "13")]
    Binary(Plain),
    /// Days since 1970.
    #[prost(message, tag = "16")]
    Date(Plain),
    /// Bytes of one length.
    #[prost(message, tag = "23")]
    FixedBinary(Fixed),
    /// Decimal numbers.
    #[prost(message, tag = "24")]
    Decimal(DecimalType),
    /// Rows within a value.
    #[prost(message, tag = "25")]
    Struct(StructType),
    /// Lists.
    #[prost(message, tag = "27")]
    List(Box<ListType>),
    /// Values by key.
    #[prost(message, tag = "28")]
    Map(Box<MapType>),
    /// Times of a day.
    #[prost(message, tag = "36")]
    PrecisionTime(Precise),
    /// Points in time without a zone.
    #[prost(message, tag = "33")]
    PrecisionTimestamp(Precise),
    /// Points in time, shown in a zone.
    #[prost(message, tag = "34")]
    PrecisionTimestampTz(Precise),
}

/// Statement about missing values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Enumeration)]
#[repr(i32)]
pub enum Nullability {
    /// Not said.
    Unspecified = 0,
    /// It may be missing.
    Nullable = 1,
    /// It is never missing.
    Required = 2,
}

/// A type without parameters.
#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub struct Plain {
    /// Variation of the type: see [`crate::data_type`].
    #[prost(uint32, tag = "1")]
    pub variation: u32,
    /// Statement about missing values.
    #[prost(enumeration = "Nullability", tag = "2")]
    pub nullability: i32,
}

/// A type of one length.
#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub struct Fixed {
    /// Number of bytes.
    #[prost(int32, tag = "1")]
    pub length: i32,
    /// Statement about missing values.
    #[prost(enumeration = "Nullability", tag = "3")]
    pub nullability: i32,
}

/// The type of decimal numbers.
#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub struct DecimalType {
    /// Digits after the point.
    #[prost(int32, tag = "1")]
    pub scale: i32,
    /// Digits.
    #[prost(int32, tag = "2")]
    pub precision: i32,
    /// Variation of the type.
    #[prost(uint32, tag = "3")]
    pub variation: u32,
    /// Statement about missing values.
    #[prost(enumeration = "Nullability", tag = "4")]
    pub nullability: i32,
}

/// A type of times.
#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub struct Precise {
    /// Digits of a second after the point: 0, 3, 6 or 9.
    #[prost(int32, tag = "1")]
    pub precision: i32,
    /// Variation of the type.
    #[prost(uint32, tag = "2")]
    pub variation: u32,
    /// Statement about missing values.
    #[prost(enumeration = "Nullability", tag = "3")]
    pub nullability: i32,
}

/// Types of the fields of a row.
#[derive(Clone, PartialEq, Message)]
pub struct StructType {
    /// The types.
    #[prost(message, repeated, tag = "1")]
    pub types: Vec<Type>,
    /// Statement about missing values.
    #[prost(enumeration = "Nullability", tag = "3")]
    pub nullability: i32,
}

/// The type of lists.
#[derive(Clone, PartialEq, Message)]
pub struct ListType {
    /// Type of what they hold.
    #[prost(message, optional, boxed, tag = "1")]
    pub item: Option<Box<Type>>,
    /// Variation of the type: how Arrow names what they hold.
    #[prost(uint32, tag = "2")]
    pub variation: u32,
    /// Statement about missing values.
    #[prost(enumeration = "Nullability", tag = "3")]
    pub nullability: i32,
}

/// The type of values by key.
#[derive(Clone, PartialEq, Message)]
pub struct MapType {
    /// Type of the keys.
    #[prost(message, optional, boxed, tag = "1")]
    pub key: Option<Box<Type>>,
    /// Type of the values.
    #[prost(message, optional, boxed, tag = "2")]
    pub value: Option<Box<Type>>,
    /// Variation of the type: how Arrow names entries, keys and values.
    #[prost(uint32, tag = "3")]
    pub variation: u32,
    /// Statement about missing values.
    #[prost(enumeration = "Nullability", tag = "4")]
    pub nullability: i32,
}

/// Names and types of columns.
#[derive(Clone, PartialEq, Message)]
pub struct NamedStruct {
    /// The names, those of fields of rows within a column behind the column's.
    #[prost(string, repeated, tag = "1")]
    pub names: Vec<String>,
    /// The types.
    #[prost(message, optional, tag = "2")]
    pub structure: Option<StructType>,
}
