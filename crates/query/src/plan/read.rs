//! Plans from bytes, which may be a stranger's.

use std::sync::Arc;

use datafusion::arrow::compute::SortOptions;
use datafusion::arrow::datatypes::{Schema, SchemaRef};
use datafusion::physical_expr::PhysicalSortExpr;
use prost::Message;

use super::{Aggregate, BYTES_MAX, Column, Measure, Plan, STEPS_MAX, Step, after, few};
use crate::declarations::Declared;
use crate::expression::Reader;
use crate::refusal::Refusal;
use crate::substrait::{
    AggregateFunction, AggregateRel, EmitKind, FetchRel, Grouping, Measure as MeasureMessage,
    Plan as PlanMessage, ProjectRel, ReadRel, Rel, RelKind, RootKind, SortField, SortRel,
};
use crate::{data_type, functions};

impl Plan {
    /// Parses a plan.
    ///
    /// # Errors
    /// [`Refusal`] that names what is not known, or does not fit.
    pub fn decode(bytes: &[u8]) -> Result<Self, Refusal> {
        if bytes.len() > BYTES_MAX {
            return Err(Refusal::new(format!("a plan of more than {BYTES_MAX} bytes")));
        }
        let message = PlanMessage::decode(bytes);
        let message = message.map_err(|error| Refusal::new(format!("no Substrait: {error}")))?;
        let [relation] = &message.relations[..] else {
            return Err(Refusal::new("a plan that is not one relation"));
        };
        let rel = match relation.kind.as_ref() {
            Some(RootKind::Rel(rel)) => Some(rel),
            Some(RootKind::Root(root)) => root.input.as_ref(),
            None => None,
        };
        let (read, rels) = chain(rel)?;
        let reader = Reader::new(Declared::new(&message.extensions));
        let schema = read.base_schema.as_ref();
        let schema = schema.ok_or_else(|| Refusal::new("a table without columns"))?;
        let columns = Arc::new(data_type::read_schema(schema, reader.declared())?);
        few(&columns)?;
        let mut plan = Self { columns: SchemaRef::clone(&columns), steps: Vec::new() };
        let (mut rows, mut rest) = (columns, &rels[..]);
        while let Some((step, left)) = read_step(rest, &rows, &reader)? {
            rows = after(&step, &rows)?;
            few(&rows)?;
            plan.steps.push(step);
            rest = left;
        }
        Ok(plan)
    }
}

/// Returns the table that a chain of relations begins with, and the others, the first one first.
fn chain(rel: Option<&Rel>) -> Result<(&ReadRel, Vec<&RelKind>), Refusal> {
    let (mut rel, mut rels) = (rel, Vec::new());
    loop {
        let kind = rel.and_then(|rel| rel.kind.as_ref());
        let kind = kind.ok_or_else(|| Refusal::new("a relation that is not known"))?;
        rel = match kind {
            RelKind::Read(read) => {
                rels.reverse();
                return Ok((read, rels));
            }
            RelKind::Filter(filter) => filter.input.as_ref(),
            RelKind::Fetch(fetch) => fetch.input.as_ref(),
            RelKind::Aggregate(aggregate) => aggregate.input.as_ref(),
            RelKind::Sort(sort) => sort.input.as_ref(),
            RelKind::Project(project) => project.input.as_ref(),
        };
        rels.push(kind);
        // A sort and the fetch behind it are one step.
        if rels.len() > 2 * STEPS_MAX {
            return Err(Refusal::new("that many relations"));
        }
    }
}

/// Returns the next step, and the relations that follow it.
fn read_step<'a>(
    rels: &'a [&'a RelKind],
    rows: &Schema,
    reader: &Reader<'_>,
) -> Result<Option<(Step, &'a [&'a RelKind])>, Refusal> {
    let Some((first, rest)) = rels.split_first() else { return Ok(None) };
    let step = match first {
        RelKind::Read(_) => return Err(Refusal::new("a second table")),
        RelKind::Filter(filter) => {
            let condition = filter.condition.as_ref();
            let condition = condition.ok_or_else(|| Refusal::new("a filter without condition"))?;
            Step::Filter(reader.read(condition, rows)?)
        }
        RelKind::Project(project) => Step::Project(read_columns(project, rows, reader)?),
        RelKind::Aggregate(aggregate) => Step::Aggregate(read_aggregate(aggregate, rows, reader)?),
        RelKind::Fetch(fetch) => Step::Limit(count(fetch)?),
        RelKind::Sort(sort) => {
            let Some((RelKind::Fetch(fetch), rest)) = rest.split_first() else {
                return Err(Refusal::new("an order without a number of rows"));
            };
            let keys = read_keys(sort, rows, reader)?;
            return Ok(Some((Step::Top { keys, rows: count(fetch)? }, rest)));
        }
    };
    Ok(Some((step, rest)))
}

fn count(fetch: &FetchRel) -> Result<usize, Refusal> {
    let count = usize::try_from(fetch.count).ok().filter(|_| fetch.offset == 0);
    count.ok_or_else(|| Refusal::new(format!("{} rows from {} on", fetch.count, fetch.offset)))
}

/// Returns the columns of a projection: those that it emits, each of the input or its own.
fn read_columns(
    project: &ProjectRel,
    rows: &Schema,
    reader: &Reader<'_>,
) -> Result<Vec<Column>, Refusal> {
    let Some(EmitKind::Emit(emit)) = project.common.as_ref().and_then(|it| it.emit.as_ref()) else {
        return Err(Refusal::new("a projection that does not say what it emits"));
    };
    let first = rows.fields().len();
    let column = |(number, index): (usize, &i32)| {
        let own = usize::try_from(*index).ok().and_then(|index| index.checked_sub(first));
        let value = own.and_then(|own| project.expressions.get(own));
        let value = value.ok_or_else(|| Refusal::new(format!("emitted column {index}")))?;
        Ok(Column { value: reader.read(value, rows)?, name: format!("column {number}") })
    };
    emit.output_mapping.iter().enumerate().map(column).collect()
}

fn read_keys(
    sort: &SortRel,
    rows: &Schema,
    reader: &Reader<'_>,
) -> Result<Vec<PhysicalSortExpr>, Refusal> {
    let key = |field: &SortField| {
        let (descending, nulls_first) = match field.direction {
            1 => (false, true),
            2 => (false, false),
            3 => (true, true),
            4 => (true, false),
            other => return Err(Refusal::new(format!("direction {other} of an order"))),
        };
        let key = field.key.as_ref().ok_or_else(|| Refusal::new("an order without a key"))?;
        let options = SortOptions { descending, nulls_first };
        Ok(PhysicalSortExpr { expr: reader.read(key, rows)?, options })
    };
    let keys: Vec<_> = sort.sorts.iter().map(key).collect::<Result<_, Refusal>>()?;
    if keys.is_empty() { Err(Refusal::new("an order without a key")) } else { Ok(keys) }
}

fn read_aggregate(
    aggregate: &AggregateRel,
    rows: &Schema,
    reader: &Reader<'_>,
) -> Result<Aggregate, Refusal> {
    let references = match &aggregate.groupings[..] {
        [] => &[][..],
        [Grouping { references }] => references,
        _ => return Err(Refusal::new("several sets of groups")),
    };
    let group = |(number, index): (usize, &u32)| {
        let value = aggregate.grouping_expressions.get(*index as usize);
        let value = value.ok_or_else(|| Refusal::new(format!("grouping expression {index}")))?;
        Ok(Column { value: reader.read(value, rows)?, name: format!("group {number}") })
    };
    let groups = references.iter().enumerate().map(group).collect::<Result<_, Refusal>>()?;
    let measures = aggregate.measures.iter().map(|one| read_measure(one, rows, reader));
    Ok(Aggregate { groups, measures: measures.collect::<Result<_, _>>()? })
}

fn read_measure(
    measure: &MeasureMessage,
    rows: &Schema,
    reader: &Reader<'_>,
) -> Result<Measure, Refusal> {
    let stated = measure.function.as_ref();
    let stated = stated.ok_or_else(|| Refusal::new("a measure without function"))?;
    if stated.phase != AggregateFunction::TO_INTERMEDIATE
        || stated.invocation != AggregateFunction::ALL
    {
        return Err(Refusal::new("a function of groups that is final, or of different values"));
    }
    let name = reader.declared().function(stated.function)?;
    let function = functions::aggregate(name);
    let function = function.ok_or_else(|| Refusal::new(format!("function {name}")))?;
    let arguments = reader.arguments(&stated.arguments, rows)?;
    let filter = measure.filter.as_ref().map(|filter| reader.read(filter, rows));
    Ok(Measure { function, arguments, filter: filter.transpose()? })
}
