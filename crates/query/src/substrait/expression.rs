//! Expressions: `Expression`, `AggregateFunction` and `SortField` of
//! `proto/substrait/algebra.proto`.

use prost::{Message, Oneof};

use super::types::Type;

/// An expression.
#[derive(Clone, PartialEq, Message)]
pub struct Expression {
    /// The kind.
    #[prost(oneof = "Rex", tags = "1, 2, 3, 6, 8, 11")]
    pub rex: Option<Rex>,
}

/// Kinds of expressions.
#[derive(Clone, PartialEq, Oneof)]
pub enum Rex {
    /// A constant.
    #[prost(message, tag = "1")]
    Literal(Literal),
    /// A column.
    #[prost(message, tag = "2")]
    Selection(FieldReference),
    /// A function of values.
    #[prost(message, tag = "3")]
    Function(ScalarFunction),
    /// The first value whose condition holds.
    #[prost(message, tag = "6")]
    IfThen(IfThen),
    /// Comparison of a value with several others.
    #[prost(message, tag = "8")]
    OneOf(SingularOrList),
    /// A value as another type.
    #[prost(message, tag = "11")]
    Cast(Box<Cast>),
}

/// A constant.
#[derive(Clone, PartialEq, Message)]
pub struct Literal {
    /// The value.
    #[prost(
        oneof = "literal::Value",
        tags = "1, 2, 3, 5, 7, 10, 11, 12, 13, 16, 23, 24, 37, 34, 35, 29"
    )]
    pub value: Option<literal::Value>,
    /// True if a value of its type may be missing.
    #[prost(bool, tag = "50")]
    pub nullable: bool,
    /// Variation of its type.
    #[prost(uint32, tag = "51")]
    pub variation: u32,
}

/// Values of constants.
pub mod literal {
    use prost::Oneof;

    use super::super::types::Type;
    use super::{Decimal, PrecisionValue};

    /// A value.
    #[derive(Clone, PartialEq, Oneof)]
    pub enum Value {
        /// A truth value.
        #[prost(bool, tag = "1")]
        Boolean(bool),
        /// An integer of 8 bits.
        #[prost(int32, tag = "2")]
        I8(i32),
        /// An integer of 16 bits.
        #[prost(int32, tag = "3")]
        I16(i32),
        /// An integer of 32 bits.
        #[prost(int32, tag = "5")]
        I32(i32),
        /// An integer of 64 bits.
        #[prost(int64, tag = "7")]
        I64(i64),
        /// A floating-point number of 32 bits.
        #[prost(float, tag = "10")]
        Fp32(f32),
        /// A floating-point number of 64 bits.
        #[prost(double, tag = "11")]
        Fp64(f64),
        /// Text.
        #[prost(string, tag = "12")]
        String(String),
        /// Bytes.
        #[prost(bytes = "vec", tag = "13")]
        Binary(Vec<u8>),
        /// Days since 1970.
        #[prost(int32, tag = "16")]
        Date(i32),
        /// Bytes of one length.
        #[prost(bytes = "vec", tag = "23")]
        FixedBinary(Vec<u8>),
        /// A decimal number.
        #[prost(message, tag = "24")]
        Decimal(Decimal),
        /// A time of a day.
        #[prost(message, tag = "37")]
        PrecisionTime(PrecisionValue),
        /// A point in time without a zone.
        #[prost(message, tag = "34")]
        PrecisionTimestamp(PrecisionValue),
        /// A point in time.
        #[prost(message, tag = "35")]
        PrecisionTimestampTz(PrecisionValue),
        /// A missing value of this type.
        #[prost(message, tag = "29")]
        Null(Type),
    }
}

/// A decimal number.
#[derive(Clone, PartialEq, Message)]
pub struct Decimal {
    /// The digits as an integer of 128 bits, little-endian.
    #[prost(bytes = "vec", tag = "1")]
    pub value: Vec<u8>,
    /// Digits.
    #[prost(int32, tag = "2")]
    pub precision: i32,
    /// Digits after the point.
    #[prost(int32, tag = "3")]
    pub scale: i32,
}

/// A time in units of a second's decimal fraction.
#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub struct PrecisionValue {
    /// Digits of a second after the point.
    #[prost(int32, tag = "1")]
    pub precision: i32,
    /// Number of units.
    #[prost(int64, tag = "2")]
    pub value: i64,
}

/// A reference to a column of the input.
#[derive(Clone, PartialEq, Message)]
pub struct FieldReference {
    /// The thing that it refers to.
    #[prost(oneof = "field_reference::Reference", tags = "1")]
    pub reference: Option<field_reference::Reference>,
    /// The row that it is relative to.
    #[prost(oneof = "field_reference::Origin", tags = "4")]
    pub origin: Option<field_reference::Origin>,
}

/// Kinds of references.
pub mod field_reference {
    use prost::Oneof;

    use super::{ReferenceSegment, RootReference};

    /// Target of a reference.
    #[derive(Clone, PartialEq, Oneof)]
    pub enum Reference {
        /// One field.
        #[prost(message, tag = "1")]
        Direct(ReferenceSegment),
    }

    /// Origin of a reference.
    #[derive(Clone, PartialEq, Oneof)]
    pub enum Origin {
        /// The row of the input.
        #[prost(message, tag = "4")]
        Root(RootReference),
    }
}

/// The row of the input.
#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub struct RootReference {}

/// A step from a row to a field.
#[derive(Clone, PartialEq, Message)]
pub struct ReferenceSegment {
    /// The step.
    #[prost(oneof = "segment::Step", tags = "2")]
    pub step: Option<segment::Step>,
}

/// Steps to a field.
pub mod segment {
    use prost::Oneof;

    use super::StructField;

    /// A step.
    #[derive(Clone, PartialEq, Oneof)]
    pub enum Step {
        /// To a field of a row.
        #[prost(message, tag = "2")]
        StructField(Box<StructField>),
    }
}

/// A field of a row.
#[derive(Clone, PartialEq, Message)]
pub struct StructField {
    /// Index, from 0.
    #[prost(int32, tag = "1")]
    pub field: i32,
    /// A further step.
    #[prost(message, optional, boxed, tag = "2")]
    pub child: Option<Box<ReferenceSegment>>,
}

/// A function of values.
#[derive(Clone, PartialEq, Message)]
pub struct ScalarFunction {
    /// Anchor of the function.
    #[prost(uint32, tag = "1")]
    pub function: u32,
    /// Type of its result.
    #[prost(message, optional, tag = "3")]
    pub output_type: Option<Type>,
    /// Its arguments.
    #[prost(message, repeated, tag = "4")]
    pub arguments: Vec<FunctionArgument>,
}

/// An argument of a function.
#[derive(Clone, PartialEq, Message)]
pub struct FunctionArgument {
    /// The argument.
    #[prost(oneof = "argument::Kind", tags = "1, 3")]
    pub kind: Option<argument::Kind>,
}

/// Kinds of arguments.
pub mod argument {
    use prost::Oneof;

    use super::Expression;

    /// An argument.
    #[derive(Clone, PartialEq, Oneof)]
    pub enum Kind {
        /// One of several words.
        #[prost(string, tag = "1")]
        Enum(String),
        /// A value.
        #[prost(message, tag = "3")]
        Value(Expression),
    }
}

/// The first value whose condition holds.
#[derive(Clone, PartialEq, Message)]
pub struct IfThen {
    /// Conditions and values.
    #[prost(message, repeated, tag = "1")]
    pub ifs: Vec<IfClause>,
    /// The value if none holds.
    #[prost(message, optional, boxed, tag = "2")]
    pub otherwise: Option<Box<Expression>>,
}

/// A condition and its value.
#[derive(Clone, PartialEq, Message)]
pub struct IfClause {
    /// The condition.
    #[prost(message, optional, tag = "1")]
    pub condition: Option<Expression>,
    /// The value.
    #[prost(message, optional, tag = "2")]
    pub then: Option<Expression>,
}

/// Comparison of a value with several others.
#[derive(Clone, PartialEq, Message)]
pub struct SingularOrList {
    /// The value.
    #[prost(message, optional, boxed, tag = "1")]
    pub value: Option<Box<Expression>>,
    /// The others.
    #[prost(message, repeated, tag = "2")]
    pub options: Vec<Expression>,
}

/// A value as another type.
#[derive(Clone, PartialEq, Message)]
pub struct Cast {
    /// The type.
    #[prost(message, optional, tag = "1")]
    pub to: Option<Type>,
    /// The value.
    #[prost(message, optional, boxed, tag = "2")]
    pub input: Option<Box<Expression>>,
    /// Rule for a value that the type does not have: [`Cast::NULL`] or [`Cast::FAIL`].
    #[prost(int32, tag = "3")]
    pub failure_behavior: i32,
}

impl Cast {
    /// It is missing.
    pub const NULL: i32 = 1;
    /// The query fails.
    pub const FAIL: i32 = 2;
}

/// A function of the values of many rows.
#[derive(Clone, PartialEq, Message)]
pub struct AggregateFunction {
    /// Anchor of the function.
    #[prost(uint32, tag = "1")]
    pub function: u32,
    /// The part of its work that is done: [`AggregateFunction::TO_INTERMEDIATE`].
    #[prost(int32, tag = "4")]
    pub phase: i32,
    /// Type of its result.
    #[prost(message, optional, tag = "5")]
    pub output_type: Option<Type>,
    /// Values that count: [`AggregateFunction::ALL`].
    #[prost(int32, tag = "6")]
    pub invocation: i32,
    /// Its arguments.
    #[prost(message, repeated, tag = "7")]
    pub arguments: Vec<FunctionArgument>,
}

impl AggregateFunction {
    /// From values to a state that is combined with others later.
    pub const TO_INTERMEDIATE: i32 = 1;
    /// Every value counts.
    pub const ALL: i32 = 1;
}

/// A key of an order.
#[derive(Clone, PartialEq, Message)]
pub struct SortField {
    /// The key.
    #[prost(message, optional, tag = "1")]
    pub key: Option<Expression>,
    /// The direction: ascending is 1 (missing values first) and 2 (last), descending 3 and 4.
    #[prost(int32, tag = "2")]
    pub direction: i32,
}
