//! Expressions of DataFusion as expressions of Substrait.
//!
//! Invariants: an expression is written only if [`Reader`] makes an equal one of it; a reader
//! builds nothing but functions of [`crate::functions`], at most [`NODES_MAX`] of them, and only on
//! types that they take.

use std::cell::Cell;
use std::sync::Arc;

use datafusion::arrow::datatypes::Schema;
use datafusion::config::ConfigOptions;
use datafusion::logical_expr::Operator;
use datafusion::physical_expr::expressions::{
    BinaryExpr, CaseExpr, CastExpr, Column, InListExpr, IsNotNullExpr, IsNullExpr, LikeExpr,
    Literal, NegativeExpr, NotExpr, TryCastExpr,
};
use datafusion::physical_expr::{PhysicalExpr, ScalarFunctionExpr};

use crate::declarations::{Declared, Named};
use crate::refusal::Refusal;
use crate::substrait::{
    Cast, Expression, FieldReference, FunctionArgument, IfClause, IfThen, ReferenceSegment, Rex,
    RootReference, ScalarFunction, SingularOrList, StructField, argument, field_reference, segment,
};
use crate::{data_type, functions, literal};

/// Most parts of all expressions of a plan: constants, columns and functions.
pub const NODES_MAX: usize = 1 << 16;

/// Names of functions that are no operators of two values, and not in DataFusion's registry.
mod name {
    pub(super) const NOT: &str = "not";
    pub(super) const NEGATE: &str = "negate";
    pub(super) const IS_NULL: &str = "is_null";
    pub(super) const IS_NOT_NULL: &str = "is_not_null";
    pub(super) const LIKE: &str = "like";
    pub(super) const LIKE_ANY_CASE: &str = "ilike";
}

/// Returns an expression in Substrait's form; what it names is added to `named`.
///
/// # Errors
/// [`Refusal`] that names the part that has none.
pub(crate) fn write(
    expr: &Arc<dyn PhysicalExpr>,
    schema: &Schema,
    named: &mut Named,
) -> Result<Expression, Refusal> {
    let rex = if let Some(column) = expr.downcast_ref::<Column>() {
        Rex::Selection(field(column.index())?)
    } else if let Some(constant) = expr.downcast_ref::<Literal>() {
        Rex::Literal(literal::write(constant.value(), named)?)
    } else if let Some(binary) = expr.downcast_ref::<BinaryExpr>() {
        let name = functions::operator_name(*binary.op());
        let name = name.ok_or_else(|| Refusal::new(format!("operator {}", binary.op())))?;
        Rex::Function(call(name, &operands(binary), schema, named)?)
    } else if let Some(not) = expr.downcast_ref::<NotExpr>() {
        Rex::Function(call(name::NOT, &[not.arg()], schema, named)?)
    } else if let Some(negative) = expr.downcast_ref::<NegativeExpr>() {
        Rex::Function(call(name::NEGATE, &[negative.arg()], schema, named)?)
    } else if let Some(is_null) = expr.downcast_ref::<IsNullExpr>() {
        Rex::Function(call(name::IS_NULL, &[is_null.arg()], schema, named)?)
    } else if let Some(is_not_null) = expr.downcast_ref::<IsNotNullExpr>() {
        Rex::Function(call(name::IS_NOT_NULL, &[is_not_null.arg()], schema, named)?)
    } else if let Some(like) = expr.downcast_ref::<LikeExpr>() {
        let name = if like.case_insensitive() { name::LIKE_ANY_CASE } else { name::LIKE };
        let found = Rex::Function(call(name, &[like.expr(), like.pattern()], schema, named)?);
        if like.negated() { negated(found, named) } else { found }
    } else if let Some(list) = expr.downcast_ref::<InListExpr>() {
        let found = one_of(list, schema, named)?;
        if list.negated() { negated(found, named) } else { found }
    } else if let Some(case) = expr.downcast_ref::<CaseExpr>() {
        Rex::IfThen(if_then(case, schema, named)?)
    } else if let Some(cast) = expr.downcast_ref::<CastExpr>() {
        if cast.cast_options() != &datafusion::common::format::DEFAULT_CAST_OPTIONS {
            return Err(Refusal::new("a cast with options of its own"));
        }
        Rex::Cast(converted(expr, cast.expr(), Cast::FAIL, schema, named)?)
    } else if let Some(cast) = expr.downcast_ref::<TryCastExpr>() {
        Rex::Cast(converted(expr, cast.expr(), Cast::NULL, schema, named)?)
    } else if let Some(function) = expr.downcast_ref::<ScalarFunctionExpr>() {
        if functions::scalar(function.name()).is_none() {
            return Err(Refusal::new(format!("function {}", function.name())));
        }
        let arguments: Vec<_> = function.args().iter().collect();
        Rex::Function(call(function.name(), &arguments, schema, named)?)
    } else {
        return Err(Refusal::new(format!("expression {expr}")));
    };
    Ok(Expression { rex: Some(rex) })
}

/// Returns the operands of an operator; those of a chain of AND or OR side by side, because a
/// reader bounds how deep a plan nests.
fn operands(binary: &BinaryExpr) -> Vec<&Arc<dyn PhysicalExpr>> {
    let joins = matches!(binary.op(), Operator::And | Operator::Or);
    let (mut found, mut open) = (Vec::new(), vec![binary.right(), binary.left()]);
    while let Some(next) = open.pop() {
        match next.downcast_ref::<BinaryExpr>().filter(|it| joins && it.op() == binary.op()) {
            Some(inner) => open.extend([inner.right(), inner.left()]),
            None => found.push(next),
        }
    }
    found
}

fn field(index: usize) -> Result<FieldReference, Refusal> {
    let field = i32::try_from(index).map_err(|_| Refusal::new("that many columns"))?;
    let step = segment::Step::StructField(Box::new(StructField { field, child: None }));
    let direct = field_reference::Reference::Direct(ReferenceSegment { step: Some(step) });
    let origin = field_reference::Origin::Root(RootReference {});
    Ok(FieldReference { reference: Some(direct), origin: Some(origin) })
}

fn call(
    name: &str,
    arguments: &[&Arc<dyn PhysicalExpr>],
    schema: &Schema,
    named: &mut Named,
) -> Result<ScalarFunction, Refusal> {
    let function = named.function(name);
    let value = |one: &&Arc<dyn PhysicalExpr>| {
        Ok(FunctionArgument { kind: Some(argument::Kind::Value(write(one, schema, named)?)) })
    };
    let arguments = arguments.iter().map(value).collect::<Result<_, Refusal>>()?;
    Ok(ScalarFunction { function, output_type: None, arguments })
}

fn negated(rex: Rex, named: &mut Named) -> Rex {
    let kind = argument::Kind::Value(Expression { rex: Some(rex) });
    let arguments = vec![FunctionArgument { kind: Some(kind) }];
    Rex::Function(ScalarFunction {
        function: named.function(name::NOT),
        output_type: None,
        arguments,
    })
}

fn one_of(list: &InListExpr, schema: &Schema, named: &mut Named) -> Result<Rex, Refusal> {
    let value = Some(Box::new(write(list.expr(), schema, named)?));
    let options = list.list().iter().map(|one| write(one, schema, named));
    Ok(Rex::OneOf(SingularOrList { value, options: options.collect::<Result<_, _>>()? }))
}

/// A CASE with a value in front compares it with each of the others.
fn if_then(case: &CaseExpr, schema: &Schema, named: &mut Named) -> Result<IfThen, Refusal> {
    let mut ifs = Vec::new();
    for (when, then) in case.when_then_expr() {
        let condition = match case.expr() {
            None => write(when, schema, named)?,
            Some(base) => {
                let equal = call("equal", &[base, when], schema, named)?;
                Expression { rex: Some(Rex::Function(equal)) }
            }
        };
        let then = Some(write(then, schema, named)?);
        ifs.push(IfClause { condition: Some(condition), then });
    }
    let otherwise = case.else_expr().map(|otherwise| write(otherwise, schema, named));
    Ok(IfThen { ifs, otherwise: otherwise.transpose()?.map(Box::new) })
}

fn converted(
    cast: &Arc<dyn PhysicalExpr>,
    value: &Arc<dyn PhysicalExpr>,
    failure_behavior: i32,
    schema: &Schema,
    named: &mut Named,
) -> Result<Box<Cast>, Refusal> {
    let to = data_type::write(&cast.data_type(schema)?, cast.nullable(schema)?, named)?;
    let input = Some(Box::new(write(value, schema, named)?));
    Ok(Box::new(Cast { to: Some(to), input, failure_behavior }))
}

/// Makes expressions of DataFusion from those of a plan, which may be a stranger's.
pub(crate) struct Reader<'a> {
    declared: Declared<'a>,
    /// Parts that may still be made.
    left: Cell<usize>,
    config: Arc<ConfigOptions>,
}

impl<'a> Reader<'a> {
    /// Returns a reader of a plan that declares these names.
    pub(crate) fn new(declared: Declared<'a>) -> Self {
        Self { declared, left: Cell::new(NODES_MAX), config: Arc::new(ConfigOptions::default()) }
    }

    /// Returns the names that the plan declares.
    pub(crate) fn declared(&self) -> &Declared<'a> {
        &self.declared
    }

    /// Returns an expression over rows of these columns.
    ///
    /// # Errors
    /// [`Refusal`] that names the part that is not known, or does not take these types.
    pub(crate) fn read(
        &self,
        expression: &Expression,
        schema: &Schema,
    ) -> Result<Arc<dyn PhysicalExpr>, Refusal> {
        let left = self.left.get().checked_sub(1);
        self.left.set(left.ok_or_else(|| Refusal::new("expressions of that many parts"))?);
        let rex = expression.rex.as_ref();
        let rex = rex.ok_or_else(|| Refusal::new("an expression that is not known"))?;
        let read: Arc<dyn PhysicalExpr> = match rex {
            Rex::Literal(constant) => {
                Arc::new(Literal::new(literal::read(constant, &self.declared)?))
            }
            Rex::Selection(reference) => column(reference, schema)?,
            Rex::Function(function) => {
                let name = self.declared.function(function.function)?;
                let arguments = self.arguments(&function.arguments, schema)?;
                self.function(name, arguments, schema)?
            }
            Rex::IfThen(choice) => self.case(choice, schema)?,
            Rex::OneOf(list) => {
                let value = self.part(list.value.as_deref(), schema)?;
                let options = list.options.iter().map(|one| self.read(one, schema));
                let options = options.collect::<Result<_, _>>()?;
                Arc::new(InListExpr::try_new(value, options, false, schema)?)
            }
            Rex::Cast(cast) => self.cast(cast, schema)?,
        };
        // Types are checked here, before any row is.
        read.return_field(schema)?;
        Ok(read)
    }

    fn part(
        &self,
        part: Option<&Expression>,
        schema: &Schema,
    ) -> Result<Arc<dyn PhysicalExpr>, Refusal> {
        let part = part.ok_or_else(|| Refusal::new("an expression that lacks a part"))?;
        self.read(part, schema)
    }

    /// Returns arguments of a function.
    pub(crate) fn arguments(
        &self,
        arguments: &[FunctionArgument],
        schema: &Schema,
    ) -> Result<Vec<Arc<dyn PhysicalExpr>>, Refusal> {
        let value = |argument: &FunctionArgument| match &argument.kind {
            Some(argument::Kind::Value(value)) => self.read(value, schema),
            _ => Err(Refusal::new("an argument that is no value")),
        };
        arguments.iter().map(value).collect()
    }

    fn function(
        &self,
        name: &str,
        arguments: Vec<Arc<dyn PhysicalExpr>>,
        schema: &Schema,
    ) -> Result<Arc<dyn PhysicalExpr>, Refusal> {
        if let Some(operator) = functions::operator(name) {
            return many(name, operator, arguments);
        }
        let count = arguments.len();
        let number = || Refusal::new(format!("function {name} of {count} arguments"));
        let mut given = arguments.into_iter();
        let mut next = || given.next().ok_or_else(number);
        let found: Arc<dyn PhysicalExpr> = match name {
            name::NOT => Arc::new(NotExpr::new(next()?)),
            name::NEGATE => Arc::new(NegativeExpr::new(next()?)),
            name::IS_NULL => Arc::new(IsNullExpr::new(next()?)),
            name::IS_NOT_NULL => Arc::new(IsNotNullExpr::new(next()?)),
            name::LIKE | name::LIKE_ANY_CASE => {
                let any_case = name == name::LIKE_ANY_CASE;
                Arc::new(LikeExpr::new(false, any_case, next()?, next()?))
            }
            _ => {
                let function = functions::scalar(name);
                let function = function.ok_or_else(|| Refusal::new(format!("function {name}")))?;
                let config = Arc::clone(&self.config);
                let given = given.by_ref().collect();
                return Ok(Arc::new(ScalarFunctionExpr::try_new(function, given, schema, config)?));
            }
        };
        if given.next().is_some() { Err(number()) } else { Ok(found) }
    }

    fn case(&self, choice: &IfThen, schema: &Schema) -> Result<Arc<dyn PhysicalExpr>, Refusal> {
        let mut whens = Vec::new();
        for clause in &choice.ifs {
            let condition = self.part(clause.condition.as_ref(), schema)?;
            whens.push((condition, self.part(clause.then.as_ref(), schema)?));
        }
        let otherwise = choice.otherwise.as_deref().map(|otherwise| self.read(otherwise, schema));
        Ok(Arc::new(CaseExpr::try_new(None, whens, otherwise.transpose()?)?))
    }

    fn cast(&self, cast: &Cast, schema: &Schema) -> Result<Arc<dyn PhysicalExpr>, Refusal> {
        let to = cast.to.as_ref().ok_or_else(|| Refusal::new("a cast to no type"))?;
        let (to, _) = data_type::read(to, &self.declared)?;
        let value = self.part(cast.input.as_deref(), schema)?;
        let from = value.data_type(schema)?;
        if !datafusion::arrow::compute::can_cast_types(&from, &to) {
            return Err(Refusal::new(format!("a cast from {from} to {to}")));
        }
        match cast.failure_behavior {
            Cast::NULL => Ok(Arc::new(TryCastExpr::new(value, to))),
            Cast::FAIL => Ok(Arc::new(CastExpr::new(value, to, None))),
            other => Err(Refusal::new(format!("failure behavior {other} of a cast"))),
        }
    }
}

/// Returns an operator on two values, or on more if it is AND or OR.
fn many(
    name: &str,
    operator: Operator,
    arguments: Vec<Arc<dyn PhysicalExpr>>,
) -> Result<Arc<dyn PhysicalExpr>, Refusal> {
    let count = arguments.len();
    let joins = matches!(operator, Operator::And | Operator::Or);
    if count < 2 || (count > 2 && !joins) {
        return Err(Refusal::new(format!("function {name} of {count} arguments")));
    }
    let joined = arguments.into_iter().reduce(|left, right| {
        Arc::new(BinaryExpr::new(left, operator, right)) as Arc<dyn PhysicalExpr>
    });
    Ok(joined.expect("there are two"))
}

fn column(reference: &FieldReference, schema: &Schema) -> Result<Arc<dyn PhysicalExpr>, Refusal> {
    let unknown = || Refusal::new("a reference that is no column");
    let Some(field_reference::Reference::Direct(segment)) = &reference.reference else {
        return Err(unknown());
    };
    let Some(segment::Step::StructField(step)) = &segment.step else { return Err(unknown()) };
    if step.child.is_some() {
        return Err(Refusal::new("a reference into a column"));
    }
    let index = usize::try_from(step.field).ok().filter(|at| *at < schema.fields().len());
    let index = index.ok_or_else(|| Refusal::new(format!("column {}", step.field)))?;
    Ok(Arc::new(Column::new(schema.field(index).name(), index)))
}
