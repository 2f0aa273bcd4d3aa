//! Plans on the wire and over rows.

use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::functions_aggregate::{average::avg_udaf, count::count_udaf, sum::sum_udaf};
use datafusion::logical_expr::Operator;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::{BinaryExpr, Column as ColumnExpr, lit};
use datafusion::physical_plan::displayable;
use datafusion::physical_plan::empty::EmptyExec;

use super::*;

fn columns() -> SchemaRef {
    Arc::new(Schema::new(vec![
        Field::new("price", DataType::Decimal128(15, 2), false),
        Field::new("flag", DataType::Utf8View, true),
        Field::new("day", DataType::Date32, false),
    ]))
}

fn column(index: usize) -> Arc<dyn PhysicalExpr> {
    Arc::new(ColumnExpr::new(columns().field(index).name(), index))
}

fn of(
    left: Arc<dyn PhysicalExpr>,
    operator: Operator,
    right: Arc<dyn PhysicalExpr>,
) -> Arc<dyn PhysicalExpr> {
    Arc::new(BinaryExpr::new(left, operator, right))
}

/// A plan with a step of every kind.
fn plan() -> Plan {
    let day = datafusion::common::ScalarValue::Date32(Some(10_000));
    let early = of(column(2), Operator::LtEq, lit(day));
    let known = of(
        column(1),
        Operator::NotEq,
        lit(datafusion::common::ScalarValue::Utf8View(Some("N".into()))),
    );
    let projected =
        [0, 1].map(|index| Column { value: column(index), name: format!("column {index}") });
    let measure = |function, arguments| Measure { function, arguments, filter: None };
    let after = |index: usize| -> Arc<dyn PhysicalExpr> {
        Arc::new(ColumnExpr::new(&format!("column {index}"), index))
    };
    let groups = vec![Column { value: after(1), name: "group 0".to_owned() }];
    let measures = vec![
        measure(sum_udaf(), vec![after(0)]),
        measure(avg_udaf(), vec![after(0)]),
        measure(count_udaf(), vec![lit(1i64)]),
    ];
    Plan {
        columns: columns(),
        steps: vec![
            Step::Filter(of(early, Operator::And, known)),
            Step::Project(projected.to_vec()),
            Step::Aggregate(Aggregate { groups, measures }),
        ],
    }
}

fn shown(plan: &Plan) -> String {
    let source = Arc::new(EmptyExec::new(Arc::clone(&plan.columns)));
    let over = plan.over(source).unwrap();
    format!("{}{:?}", displayable(&*over).indent(true), over.schema())
}

#[test]
fn a_plan_that_is_written_is_read_back() {
    let plan = plan();
    let bytes = plan.encode().unwrap();
    let read = Plan::decode(&bytes).unwrap();
    assert_eq!(read.columns, plan.columns);
    assert_eq!(read.steps.len(), 3);
    assert_eq!(read.encode().unwrap(), bytes, "it is written the same way again");
    assert!(shown(&read).contains("AggregateExec: mode=Partial"), "{}", shown(&read));
}

#[test]
fn what_is_cut_or_has_a_byte_changed_is_refused_or_read_and_never_panics() {
    let bytes = plan().encode().unwrap();
    for length in 0..bytes.len() {
        let _refused = Plan::decode(&bytes[..length]);
    }
    for at in 0..bytes.len() {
        for bit in 0..8 {
            let mut changed = bytes.clone();
            changed[at] ^= 1 << bit;
            if let Ok(plan) = Plan::decode(&changed) {
                let source = Arc::new(EmptyExec::new(Arc::clone(&plan.columns)));
                let _operators = plan.over(source);
            }
        }
    }
}

#[test]
fn long_chains_of_conditions_are_flat_and_deep_ones_are_refused() {
    let one = |number: i32| {
        of(column(2), Operator::NotEq, lit(datafusion::common::ScalarValue::Date32(Some(number))))
    };
    let chain = (1..1000).fold(one(0), |all, number| of(all, Operator::And, one(number)));
    let of_one = |condition| Plan { columns: columns(), steps: vec![Step::Filter(condition)] };
    assert!(of_one(chain).encode().is_ok());
    let deep = (0..100).fold(column(0), |sum, _| of(sum, Operator::Plus, column(0)));
    let deep = of(deep, Operator::Gt, column(0));
    let refused = of_one(deep).encode().unwrap_err().to_string();
    assert!(refused.contains("recursion limit"), "{refused}");
}

#[test]
fn functions_that_are_not_known_are_named() {
    let median = datafusion::functions_aggregate::median::median_udaf();
    let measures = vec![Measure { function: median, arguments: vec![column(0)], filter: None }];
    let aggregate = Aggregate { groups: Vec::new(), measures };
    let plan = Plan { columns: columns(), steps: vec![Step::Aggregate(aggregate)] };
    assert_eq!(plan.encode().unwrap_err().to_string(), "function median");
}
