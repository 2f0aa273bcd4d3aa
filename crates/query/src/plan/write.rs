//! Plans as bytes of Substrait.

use datafusion::arrow::compute::SortOptions;
use datafusion::arrow::datatypes::{Schema, SchemaRef};
use datafusion::physical_expr::PhysicalSortExpr;
use prost::Message;

use super::{Aggregate, BYTES_MAX, Measure, Plan, STEPS_MAX, Step, after, few};
use crate::declarations::Named;
use crate::refusal::Refusal;
use crate::substrait::{
    AggregateFunction, AggregateRel, Emit, EmitKind, FetchRel, FilterRel, FunctionArgument,
    Grouping, Measure as MeasureMessage, NamedTable, Plan as PlanMessage, PlanRel, ProjectRel,
    ReadRel, ReadType, Rel, RelCommon, RelKind, Root, RootKind, SortField, SortRel, Version,
    argument,
};
use crate::{data_type, expression, functions};

/// Version of Substrait whose messages are written.
const VERSION: (u32, u32, u32) = (0, 63, 0);
/// Name of the table in a plan. An execution reads what its parameters say.
const TABLE: &str = "table";

impl Plan {
    /// Returns the plan's bytes.
    ///
    /// # Errors
    /// [`Refusal`] that names what has no place in a plan.
    pub fn encode(&self) -> Result<Vec<u8>, Refusal> {
        few(&self.columns)?;
        if self.steps.len() > STEPS_MAX {
            return Err(Refusal::new(format!("{} steps", self.steps.len())));
        }
        let mut named = Named::default();
        let table = ReadType::Named(NamedTable { names: vec![TABLE.to_owned()] });
        let read = ReadRel {
            base_schema: Some(data_type::write_schema(&self.columns, &mut named)?),
            table: Some(table),
        };
        let mut rel = Rel { kind: Some(RelKind::Read(Box::new(read))) };
        let mut columns = SchemaRef::clone(&self.columns);
        for step in &self.steps {
            rel = write_step(step, rel, &columns, &mut named)?;
            columns = after(step, &columns)?;
            few(&columns)?;
        }
        let names = columns.fields().iter().map(|field| field.name().clone()).collect();
        let root = RootKind::Root(Root { input: Some(rel), names });
        let (urns, extensions) = named.declare();
        let (major, minor, patch) = VERSION;
        let version = Version { major, minor, patch, producer: "csdstore".to_owned() };
        let relations = vec![PlanRel { kind: Some(root) }];
        let message = PlanMessage { version: Some(version), urns, extensions, relations };
        let bytes = message.encode_to_vec();
        if bytes.len() > BYTES_MAX {
            return Err(Refusal::new(format!("a plan of {} bytes", bytes.len())));
        }
        // A reader bounds how deep it nests, and knows it better than this writer.
        Self::decode(&bytes)?;
        Ok(bytes)
    }
}

fn write_step(
    step: &Step,
    input: Rel,
    columns: &Schema,
    named: &mut Named,
) -> Result<Rel, Refusal> {
    let input = Some(input);
    let kind = match step {
        Step::Filter(condition) => {
            let condition = Some(expression::write(condition, columns, named)?);
            RelKind::Filter(Box::new(FilterRel { input, condition }))
        }
        Step::Project(projected) => {
            let write = |column: &super::Column| expression::write(&column.value, columns, named);
            let expressions = projected.iter().map(write).collect::<Result<Vec<_>, _>>()?;
            // They follow the columns of the input, which are not returned.
            let first = columns.fields().len();
            let output_mapping = (first..first + expressions.len()).map(short).collect();
            let emit = Some(EmitKind::Emit(Emit { output_mapping }));
            let common = Some(RelCommon { emit });
            RelKind::Project(Box::new(ProjectRel { common, input, expressions }))
        }
        Step::Aggregate(aggregate) => {
            RelKind::Aggregate(Box::new(write_aggregate(aggregate, input, columns, named)?))
        }
        Step::Top { keys, rows } => {
            let sorts = keys.iter().map(|key| write_key(key, columns, named));
            let sort = SortRel { input, sorts: sorts.collect::<Result<_, _>>()? };
            let input = Some(Rel { kind: Some(RelKind::Sort(Box::new(sort))) });
            RelKind::Fetch(Box::new(FetchRel { input, offset: 0, count: long(*rows)? }))
        }
        Step::Limit(rows) => {
            RelKind::Fetch(Box::new(FetchRel { input, offset: 0, count: long(*rows)? }))
        }
    };
    Ok(Rel { kind: Some(kind) })
}

fn short(index: usize) -> i32 {
    i32::try_from(index).expect("columns are few")
}

fn long(rows: usize) -> Result<i64, Refusal> {
    i64::try_from(rows).map_err(|_| Refusal::new(format!("{rows} rows")))
}

fn write_key(
    key: &PhysicalSortExpr,
    columns: &Schema,
    named: &mut Named,
) -> Result<SortField, Refusal> {
    let SortOptions { descending, nulls_first } = key.options;
    let direction = 1 + 2 * i32::from(descending) + i32::from(!nulls_first);
    Ok(SortField { key: Some(expression::write(&key.expr, columns, named)?), direction })
}

fn write_aggregate(
    aggregate: &Aggregate,
    input: Option<Rel>,
    columns: &Schema,
    named: &mut Named,
) -> Result<AggregateRel, Refusal> {
    let groups = aggregate.groups.iter();
    let grouping_expressions = groups
        .map(|group| expression::write(&group.value, columns, named))
        .collect::<Result<Vec<_>, _>>()?;
    let references = (0..).zip(&grouping_expressions).map(|(index, _)| index).collect();
    let measures = aggregate.measures.iter().map(|one| write_measure(one, columns, named));
    let measures = measures.collect::<Result<_, _>>()?;
    let groupings = vec![Grouping { references }];
    Ok(AggregateRel { input, groupings, measures, grouping_expressions })
}

fn write_measure(
    measure: &Measure,
    columns: &Schema,
    named: &mut Named,
) -> Result<MeasureMessage, Refusal> {
    let name = measure.function.name();
    if functions::aggregate(name).is_none() {
        return Err(Refusal::new(format!("function {name}")));
    }
    let function = named.function(name);
    let argument = |value| {
        let value = argument::Kind::Value(expression::write(value, columns, named)?);
        Ok(FunctionArgument { kind: Some(value) })
    };
    let arguments = measure.arguments.iter().map(argument).collect::<Result<_, Refusal>>()?;
    let filter = measure.filter.as_ref().map(|filter| expression::write(filter, columns, named));
    let function = AggregateFunction {
        function,
        phase: AggregateFunction::TO_INTERMEDIATE,
        output_type: None,
        invocation: AggregateFunction::ALL,
        arguments,
    };
    Ok(MeasureMessage { function: Some(function), filter: filter.transpose()? })
}
