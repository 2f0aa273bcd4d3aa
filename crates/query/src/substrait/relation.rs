//! Relations and plans: `proto/substrait/algebra.proto`, `plan.proto` and
//! `extensions/extensions.proto`.

use prost::{Message, Oneof};

use super::expression::{AggregateFunction, Expression, SortField};
use super::types::NamedStruct;

/// A plan.
#[derive(Clone, PartialEq, Message)]
pub struct Plan {
    /// Version of Substrait.
    #[prost(message, optional, tag = "6")]
    pub version: Option<Version>,
    /// Names of sets of extensions.
    #[prost(message, repeated, tag = "8")]
    pub urns: Vec<Urn>,
    /// Functions that the plan names.
    #[prost(message, repeated, tag = "2")]
    pub extensions: Vec<Extension>,
    /// Its relations: one.
    #[prost(message, repeated, tag = "3")]
    pub relations: Vec<PlanRel>,
}

/// A version of Substrait, and who made the plan.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct Version {
    /// Major number.
    #[prost(uint32, tag = "1")]
    pub major: u32,
    /// Minor number.
    #[prost(uint32, tag = "2")]
    pub minor: u32,
    /// Patch number.
    #[prost(uint32, tag = "3")]
    pub patch: u32,
    /// Program that made the plan.
    #[prost(string, tag = "5")]
    pub producer: String,
}

/// The name of a set of extensions.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct Urn {
    /// Number by which the plan refers to it.
    #[prost(uint32, tag = "1")]
    pub anchor: u32,
    /// The name.
    #[prost(string, tag = "2")]
    pub urn: String,
}

/// An extension that a plan names.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct Extension {
    /// The kind.
    #[prost(oneof = "extension::Kind", tags = "2, 3")]
    pub kind: Option<extension::Kind>,
}

/// Kinds of extensions.
pub mod extension {
    use prost::Oneof;

    use super::Declaration;

    /// An extension.
    #[derive(Clone, PartialEq, Eq, Oneof)]
    pub enum Kind {
        /// A variation of a type.
        #[prost(message, tag = "2")]
        Variation(Declaration),
        /// A function.
        #[prost(message, tag = "3")]
        Function(Declaration),
    }
}

/// A function or a variation of a type that a plan names.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct Declaration {
    /// Set that it belongs to.
    #[prost(uint32, tag = "4")]
    pub urn: u32,
    /// Number by which the plan refers to it.
    #[prost(uint32, tag = "2")]
    pub anchor: u32,
    /// Its name; that of a function may have the types of its arguments after a colon.
    #[prost(string, tag = "3")]
    pub name: String,
}

/// A relation of a plan.
#[derive(Clone, PartialEq, Message)]
pub struct PlanRel {
    /// The relation.
    #[prost(oneof = "RootKind", tags = "1, 2")]
    pub kind: Option<RootKind>,
}

/// Kinds of relations of a plan.
#[derive(Clone, PartialEq, Oneof)]
pub enum RootKind {
    /// Without names.
    #[prost(message, tag = "1")]
    Rel(Rel),
    /// With names of its columns.
    #[prost(message, tag = "2")]
    Root(Root),
}

/// A relation with names of its columns.
#[derive(Clone, PartialEq, Message)]
pub struct Root {
    /// The relation.
    #[prost(message, optional, tag = "1")]
    pub input: Option<Rel>,
    /// The names.
    #[prost(string, repeated, tag = "2")]
    pub names: Vec<String>,
}

/// A relation.
#[derive(Clone, PartialEq, Message)]
pub struct Rel {
    /// The kind.
    #[prost(oneof = "RelKind", tags = "1, 2, 3, 4, 5, 7")]
    pub kind: Option<RelKind>,
}

/// Kinds of relations.
#[derive(Clone, PartialEq, Oneof)]
pub enum RelKind {
    /// Rows of a table.
    #[prost(message, tag = "1")]
    Read(Box<ReadRel>),
    /// Rows for which a condition holds.
    #[prost(message, tag = "2")]
    Filter(Box<FilterRel>),
    /// The first rows.
    #[prost(message, tag = "3")]
    Fetch(Box<FetchRel>),
    /// Groups of rows.
    #[prost(message, tag = "4")]
    Aggregate(Box<AggregateRel>),
    /// Rows in an order.
    #[prost(message, tag = "5")]
    Sort(Box<SortRel>),
    /// Rows of other columns.
    #[prost(message, tag = "7")]
    Project(Box<ProjectRel>),
}

/// Properties of every relation.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct RelCommon {
    /// Columns that it returns.
    #[prost(oneof = "EmitKind", tags = "2")]
    pub emit: Option<EmitKind>,
}

/// Columns that a relation returns.
#[derive(Clone, PartialEq, Eq, Oneof)]
pub enum EmitKind {
    /// These.
    #[prost(message, tag = "2")]
    Emit(Emit),
}

/// Columns by index.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct Emit {
    /// The indexes.
    #[prost(int32, repeated, tag = "1")]
    pub output_mapping: Vec<i32>,
}

/// Rows of a table.
#[derive(Clone, PartialEq, Message)]
pub struct ReadRel {
    /// Columns of the table.
    #[prost(message, optional, tag = "2")]
    pub base_schema: Option<NamedStruct>,
    /// The table.
    #[prost(oneof = "ReadType", tags = "7")]
    pub table: Option<ReadType>,
}

/// Kinds of tables.
#[derive(Clone, PartialEq, Eq, Oneof)]
pub enum ReadType {
    /// By name.
    #[prost(message, tag = "7")]
    Named(NamedTable),
}

/// A table by name.
#[derive(Clone, PartialEq, Eq, Message)]
pub struct NamedTable {
    /// Its name, outermost first.
    #[prost(string, repeated, tag = "1")]
    pub names: Vec<String>,
}

/// Rows for which a condition holds.
#[derive(Clone, PartialEq, Message)]
pub struct FilterRel {
    /// The rows.
    #[prost(message, optional, tag = "2")]
    pub input: Option<Rel>,
    /// The condition.
    #[prost(message, optional, tag = "3")]
    pub condition: Option<Expression>,
}

/// The first rows.
#[derive(Clone, PartialEq, Message)]
pub struct FetchRel {
    /// The rows.
    #[prost(message, optional, tag = "2")]
    pub input: Option<Rel>,
    /// Number of rows to skip.
    #[prost(int64, tag = "3")]
    pub offset: i64,
    /// Number of rows to return.
    #[prost(int64, tag = "4")]
    pub count: i64,
}

/// Groups of rows.
#[derive(Clone, PartialEq, Message)]
pub struct AggregateRel {
    /// The rows.
    #[prost(message, optional, tag = "2")]
    pub input: Option<Rel>,
    /// Sets of grouping expressions: none or one.
    #[prost(message, repeated, tag = "3")]
    pub groupings: Vec<Grouping>,
    /// Functions of each group.
    #[prost(message, repeated, tag = "4")]
    pub measures: Vec<Measure>,
    /// Grouping expressions.
    #[prost(message, repeated, tag = "5")]
    pub grouping_expressions: Vec<Expression>,
}

/// A set of grouping expressions.
#[derive(Clone, PartialEq, Message)]
pub struct Grouping {
    /// Their indexes.
    #[prost(uint32, repeated, tag = "2")]
    pub references: Vec<u32>,
}

/// A function of each group.
#[derive(Clone, PartialEq, Message)]
pub struct Measure {
    /// The function.
    #[prost(message, optional, tag = "1")]
    pub function: Option<AggregateFunction>,
    /// Condition of the rows that count.
    #[prost(message, optional, tag = "2")]
    pub filter: Option<Expression>,
}

/// Rows in an order.
#[derive(Clone, PartialEq, Message)]
pub struct SortRel {
    /// The rows.
    #[prost(message, optional, tag = "2")]
    pub input: Option<Rel>,
    /// The keys of the order, first key first.
    #[prost(message, repeated, tag = "3")]
    pub sorts: Vec<SortField>,
}

/// Rows of other columns.
#[derive(Clone, PartialEq, Message)]
pub struct ProjectRel {
    /// Columns that it returns.
    #[prost(message, optional, tag = "1")]
    pub common: Option<RelCommon>,
    /// The rows.
    #[prost(message, optional, tag = "2")]
    pub input: Option<Rel>,
    /// Columns that follow those of the input.
    #[prost(message, repeated, tag = "3")]
    pub expressions: Vec<Expression>,
}
