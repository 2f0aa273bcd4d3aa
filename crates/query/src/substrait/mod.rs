//! The messages of Substrait that plans of drives are made of.
//!
//! Field numbers are those of Substrait 0.63 (`proto/substrait/*.proto`). Messages and fields that
//! no plan of a drive has are left out: a reader skips unknown fields, as protocol buffers
//! prescribe, and [`crate::plan`] refuses what it does not find. Invariant: no bytes cause a panic;
//! nesting is bounded by the decoder, at 100 messages.

mod expression;
mod relation;
mod types;

pub use expression::{
    AggregateFunction, Cast, Decimal, Expression, FieldReference, FunctionArgument, IfClause,
    IfThen, Literal, PrecisionValue, ReferenceSegment, Rex, RootReference, ScalarFunction,
    SingularOrList, SortField, StructField, argument, field_reference, literal, segment,
};
pub use relation::{
    AggregateRel, Declaration, Emit, EmitKind, Extension, FetchRel, FilterRel, Grouping, Measure,
    NamedTable, Plan, PlanRel, ProjectRel, ReadRel, ReadType, Rel, RelCommon, RelKind, Root,
    RootKind, SortRel, Urn, Version, extension,
};
pub use types::{
    DecimalType, Fixed, Kind, ListType, MapType, NamedStruct, Nullability, Plain, Precise,
    StructType, Type,
};
