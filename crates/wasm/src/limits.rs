//! [`check`]: limits of a module's size and complexity, checked in one pass before any of it is
//! compiled.
//!
//! The compiler's time and memory grow with the product of live values and control-flow branches,
//! so a module of 100 KB can take gigabytes. The pass therefore counts two things for each
//! function: its *steps* (instructions, and the values that they move) and its *reach*. The reach
//! adds, for each branch and block, the live locals and operands, once and once more for each loop
//! around it. Limits per function bound the compiler's peak memory, limits per module its total
//! time. `cargo run -p csd-wasm --example compile_bounds` measures the worst modules that pass.
//!
//! Does not compile, and does not judge the imports and exports of a module. Invariants: the pass
//! takes time in proportion to the module's bytes, because it checks counts and the lengths of
//! types before the data that they bound; a module that passes is valid WebAssembly.

use wasmparser::{
    BinaryReaderError, CompositeInnerType, ConstExpr, DataKind, Element, ElementItems, ElementKind,
    Encoding, FrameKind, FuncValidator, FuncValidatorAllocations, FunctionBody, Operator, Parser,
    Payload, RecGroup, SectionLimited, TableInit, ValidPayload, Validator, ValidatorResources,
    WasmFeatures,
};

/// Functions of a module, without imported ones.
const FUNCTIONS_MAX: u64 = 10_000;
/// Types, globals, exports, imports and segments of a module, each.
const ITEMS_MAX: u64 = 1_000;
/// Elements of all tables of a module, at any time of its life.
pub(crate) const TABLE_ELEMENTS_MAX: u64 = 10_000;
/// Parameters of a function or block.
const PARAMETERS_MAX: u64 = 64;
/// Results of a function or block.
const RESULTS_MAX: u64 = 16;
/// Bytes of an expression that gives the initial value of a global or element, or the offset of a
/// segment.
const CONSTANT_BYTES_MAX: u64 = 64;
/// Bytes of a function.
const FUNCTION_BYTES_MAX: u64 = 256 << 10;
/// Locals of a function, its parameters among them.
const LOCALS_MAX: u64 = 5_000;
/// Nested blocks.
const NESTING_MAX: u64 = 1_000;
/// Nested loops: a change in the innermost one is merged at the head of every one.
const LOOPS_MAX: u64 = 30;
/// Steps of a function, and of a module.
const STEPS_MAX: [u64; 2] = [200_000, 2_000_000];
/// Reach of a function, and of a module.
const REACH_MAX: [u64; 2] = [1_000_000, 6_000_000];

/// Features that the engine accepts, or a superset of them: the pass refuses any other feature.
const FEATURES: WasmFeatures =
    WasmFeatures::WASM2.union(WasmFeatures::EXTENDED_CONST).union(WasmFeatures::TAIL_CALL);

/// Refuses a module that is invalid, or larger or more complex than the limits; returns the number
/// of its functions.
///
/// # Errors
/// The fault of the module, in words.
pub(crate) fn check(bytes: &[u8]) -> Result<u64, String> {
    count(bytes).map_err(|refused| refused.to_string())
}

fn count(bytes: &[u8]) -> Result<u64, Refused> {
    let mut validator = Validator::new_with_features(FEATURES);
    let mut tally = Tally::default();
    let mut spare = FuncValidatorAllocations::default();
    for payload in Parser::new(0).parse_all(bytes) {
        let payload = payload?;
        tally.section(&payload)?;
        let valid = validator.payload(&payload)?;
        if let ValidPayload::Func(function, body) = valid {
            let mut function = function.into_validator(std::mem::take(&mut spare));
            let index = function.index();
            let counted = tally.function(&mut function, &body);
            counted.map_err(|refused| Refused::Function { index, source: refused.into() })?;
            spare = function.into_allocations();
        }
    }
    Ok(tally.functions)
}

/// Reason why a module is refused.
#[derive(Debug, thiserror::Error)]
enum Refused {
    /// It is not valid WebAssembly.
    #[error(transparent)]
    Invalid(#[from] BinaryReaderError),
    /// It exceeds a limit, in words.
    #[error("{0}")]
    Limit(String),
    /// One of its functions is at fault.
    #[error("function {index}: {source}")]
    Function {
        /// Index of the function.
        index: u32,
        /// The fault.
        source: Box<Refused>,
    },
}

/// Refuses a count above the limit.
fn within(what: &str, count: u64, most: u64) -> Result<(), Refused> {
    if count > most {
        return Err(Refused::Limit(format!("it has {count} {what}, and {most} are taken")));
    }
    Ok(())
}

/// Refuses a long constant expression, because the compiled module keeps it as it is.
fn constant(expression: &ConstExpr<'_>) -> Result<(), Refused> {
    let bytes = expression.get_binary_reader().range().len() as u64;
    within("bytes in a constant expression", bytes, CONSTANT_BYTES_MAX)
}

/// Counts over a whole module.
#[derive(Default)]
struct Tally {
    functions: u64,
    types: u64,
    elements: u64,
    table_elements: u64,
    steps: u64,
    reach: u64,
}

impl Tally {
    /// Checks a section's counts before it is validated.
    fn section(&mut self, payload: &Payload<'_>) -> Result<(), Refused> {
        let items = |what, count: u32| within(what, count.into(), ITEMS_MAX);
        match payload {
            Payload::Version { encoding: Encoding::Component, .. } => {
                Err(Refused::Limit("it is a component, not a module".to_owned()))
            }
            Payload::TypeSection(section) => self.types(section),
            Payload::ImportSection(section) => items("imports", section.count()),
            Payload::FunctionSection(section) => {
                self.functions = section.count().into();
                within("functions", self.functions, FUNCTIONS_MAX)
            }
            Payload::TableSection(section) => {
                items("tables", section.count())?;
                for table in section.clone() {
                    let table = table?;
                    self.table_elements = self.table_elements.saturating_add(table.ty.initial);
                    if let TableInit::Expr(expression) = &table.init {
                        constant(expression)?;
                    }
                }
                within("elements in its tables", self.table_elements, TABLE_ELEMENTS_MAX)
            }
            Payload::GlobalSection(section) => {
                items("globals", section.count())?;
                section.clone().into_iter().try_for_each(|global| constant(&global?.init_expr))
            }
            Payload::ExportSection(section) => items("exports", section.count()),
            Payload::ElementSection(section) => {
                items("segments of elements", section.count())?;
                section.clone().into_iter().try_for_each(|segment| self.elements(segment?))
            }
            Payload::DataSection(section) => {
                items("segments of data", section.count())?;
                section.clone().into_iter().try_for_each(|segment| match segment?.kind {
                    DataKind::Active { offset_expr, .. } => constant(&offset_expr),
                    DataKind::Passive => Ok(()),
                })
            }
            _ => Ok(()),
        }
    }

    fn elements(&mut self, segment: Element<'_>) -> Result<(), Refused> {
        if let ElementKind::Active { offset_expr, .. } = &segment.kind {
            constant(offset_expr)?;
        }
        self.elements += u64::from(match &segment.items {
            ElementItems::Functions(all) => all.count(),
            ElementItems::Expressions(_, all) => all.count(),
        });
        within("elements in its segments", self.elements, TABLE_ELEMENTS_MAX)?;
        match segment.items {
            ElementItems::Functions(_) => Ok(()),
            ElementItems::Expressions(_, all) => {
                all.into_iter().try_for_each(|expression| constant(&expression?))
            }
        }
    }

    fn types(&mut self, section: &SectionLimited<'_, RecGroup>) -> Result<(), Refused> {
        within("types", section.count().into(), ITEMS_MAX)?;
        for group in section.clone() {
            let group = group?;
            self.types += group.types().len() as u64;
            within("types", self.types, ITEMS_MAX)?;
            for ty in group.types() {
                if let CompositeInnerType::Func(function) = &ty.composite_type.inner {
                    within("parameters in a type", function.params().len() as u64, PARAMETERS_MAX)?;
                    within("results in a type", function.results().len() as u64, RESULTS_MAX)?;
                }
            }
        }
        Ok(())
    }

    /// Validates a function, and counts the cost to compile it.
    fn function(
        &mut self,
        function: &mut FuncValidator<ValidatorResources>,
        body: &FunctionBody<'_>,
    ) -> Result<(), Refused> {
        within("bytes", body.range().len() as u64, FUNCTION_BYTES_MAX)?;
        let mut reader = body.get_binary_reader();
        function.read_locals(&mut reader)?;
        let locals = u64::from(function.len_locals());
        within("locals", locals, LOCALS_MAX)?;
        let (mut steps, mut reach, mut loops) = (0, 0, 0);
        let mut operators = body.get_operators_reader()?;
        while !operators.eof() {
            let (operator, offset) = operators.read_with_offset()?;
            let (moved, branches) = cost(function, &operator);
            let alive = locals + u64::from(function.operand_stack_height());
            steps += 1 + moved;
            reach += branches * alive * (1 + loops);
            within("steps", steps, STEPS_MAX[0])?;
            within("locals alive over all of its branches", reach, REACH_MAX[0])?;
            let ended = function.get_control_frame(0).map(|frame| frame.kind);
            match operator {
                Operator::Loop { .. } => loops += 1,
                Operator::End if ended == Some(FrameKind::Loop) => loops -= 1,
                _ => {}
            }
            within("loops within loops", loops, LOOPS_MAX)?;
            function.op(offset, &operator)?;
            within("blocks within blocks", function.control_stack_height().into(), NESTING_MAX)?;
        }
        operators.finish()?;
        self.steps += steps;
        self.reach += reach;
        within("steps, with those before it,", self.steps, STEPS_MAX[1])?;
        within("locals alive over all branches, with those before it,", self.reach, REACH_MAX[1])
    }
}

/// Returns the number of values that an instruction moves, and its number of branches: 0 if control
/// flow neither splits nor joins there.
fn cost(function: &FuncValidator<ValidatorResources>, operator: &Operator<'_>) -> (u64, u64) {
    // The validator refuses invalid operators, with its own reason.
    let (taken, given) = operator.operator_arity(function).unwrap_or_default();
    let moved = u64::from(taken) + u64::from(given);
    match operator {
        Operator::BrTable { targets } => {
            let ways = u64::from(targets.len()) + 1;
            // Each branch has its own copy of the values; branches to the same place count once.
            (ways * (1 + moved), ways.min(function.control_stack_height().into()))
        }
        Operator::Block { .. }
        | Operator::Loop { .. }
        | Operator::If { .. }
        | Operator::Else
        | Operator::End
        | Operator::Br { .. }
        | Operator::BrIf { .. }
        | Operator::BrOnNull { .. }
        | Operator::BrOnNonNull { .. } => (moved, 1),
        _ => (moved, 0),
    }
}
