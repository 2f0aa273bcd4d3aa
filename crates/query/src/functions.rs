//! Functions that a plan of a drive may name.
//!
//! A function has a place here if its result has the same bits on every machine and its memory is
//! bounded by its arguments'. So there are no logarithms and no powers, whose last bit depends on
//! the C library, and nothing that repeats or pads text. Names are Substrait's for operators, and
//! those of DataFusion for the rest. Invariant: a name stands for the same function on drives and
//! hosts.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use datafusion::functions::all_default_functions;
use datafusion::functions_aggregate::all_default_aggregate_functions;
use datafusion::logical_expr::{AggregateUDF, Operator, ScalarUDF};

use crate::extremes::extremes;

/// Operators of two values, by Substrait's name.
const OPERATORS: [(&str, Operator); 19] = [
    ("equal", Operator::Eq),
    ("not_equal", Operator::NotEq),
    ("lt", Operator::Lt),
    ("lte", Operator::LtEq),
    ("gt", Operator::Gt),
    ("gte", Operator::GtEq),
    ("add", Operator::Plus),
    ("subtract", Operator::Minus),
    ("multiply", Operator::Multiply),
    ("divide", Operator::Divide),
    ("modulus", Operator::Modulo),
    ("and", Operator::And),
    ("or", Operator::Or),
    ("is_distinct_from", Operator::IsDistinctFrom),
    ("is_not_distinct_from", Operator::IsNotDistinctFrom),
    ("bitwise_and", Operator::BitwiseAnd),
    ("bitwise_or", Operator::BitwiseOr),
    ("bitwise_xor", Operator::BitwiseXor),
    ("concat", Operator::StringConcat),
];

/// Functions of values, by DataFusion's name.
const SCALARS: [&str; 29] = [
    "abs",
    "btrim",
    "ceil",
    "character_length",
    "coalesce",
    "contains",
    "date_part",
    "date_trunc",
    "ends_with",
    "floor",
    "get_field",
    "greatest",
    "least",
    "left",
    "lower",
    "ltrim",
    "nullif",
    "nvl",
    "octet_length",
    "reverse",
    "right",
    "round",
    "rtrim",
    "signum",
    "sqrt",
    "starts_with",
    "strpos",
    "substr",
    "upper",
];

/// Functions of many rows, by DataFusion's name.
const AGGREGATES: [&str; 14] = [
    "avg",
    "bit_and",
    "bit_or",
    "bit_xor",
    "bool_and",
    "bool_or",
    "count",
    "max",
    "min",
    "stddev",
    "stddev_pop",
    "sum",
    "var",
    "var_pop",
];

static SCALAR_FUNCTIONS: LazyLock<HashMap<&str, Arc<ScalarUDF>>> = LazyLock::new(|| {
    let all = all_default_functions();
    let find = |name: &&'static str| all.iter().find(|one| one.name() == *name).cloned();
    SCALARS.iter().filter_map(|name| find(name).map(|found| (*name, found))).collect()
});

static AGGREGATE_FUNCTIONS: LazyLock<HashMap<&str, Arc<AggregateUDF>>> = LazyLock::new(|| {
    let (ours, theirs) = (extremes(), all_default_aggregate_functions());
    let all: Vec<_> = ours.into_iter().chain(theirs).collect();
    let find = |name: &&'static str| all.iter().find(|one| one.name() == *name).cloned();
    AGGREGATES.iter().filter_map(|name| find(name).map(|found| (*name, found))).collect()
});

/// Returns the operator of this name.
pub(crate) fn operator(name: &str) -> Option<Operator> {
    OPERATORS.iter().find(|(known, _)| *known == name).map(|(_, operator)| *operator)
}

/// Returns the name of an operator.
pub(crate) fn operator_name(operator: Operator) -> Option<&'static str> {
    OPERATORS.iter().find(|(_, known)| *known == operator).map(|(name, _)| *name)
}

/// Returns the function of values of this name.
pub(crate) fn scalar(name: &str) -> Option<Arc<ScalarUDF>> {
    SCALAR_FUNCTIONS.get(name).cloned()
}

/// Returns the function of many rows of this name.
pub(crate) fn aggregate(name: &str) -> Option<Arc<AggregateUDF>> {
    AGGREGATE_FUNCTIONS.get(name).cloned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_function_that_is_listed_exists() {
        for name in SCALARS {
            assert!(scalar(name).is_some(), "{name}");
        }
        for name in AGGREGATES {
            assert!(aggregate(name).is_some(), "{name}");
        }
        assert!(scalar("random").is_none() && aggregate("median").is_none());
    }
}
