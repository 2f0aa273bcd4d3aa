//! `min` and `max` of floating-point numbers in groups.
//!
//! DataFusion 55 compares them in a way that forgets what came before a NaN, so its answer depends
//! on the order of rows and on where a table is cut (<https://github.com/apache/datafusion/issues/24432>).
//! Here a NaN is above all numbers, as without groups, and -0.0 is below 0.0. Everything else is
//! DataFusion's.

use std::cmp::Ordering;
use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, FieldRef, Float32Type, Float64Type};
use datafusion::common::{Result, ScalarValue};
use datafusion::functions_aggregate::min_max::{max_udaf, min_udaf};
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::AggregateOrderSensitivity;
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, GroupsAccumulator, ReversedUDAF, Signature,
    StatisticsArgs,
};
use datafusion_functions_aggregate_common::aggregate::groups_accumulator::prim_op;

/// Returns both functions.
pub(crate) fn extremes() -> [Arc<AggregateUDF>; 2] {
    [min_udaf(), max_udaf()].map(|of| Arc::new(AggregateUDF::new_from_impl(Extreme(of))))
}

/// `min` or `max`.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Extreme(Arc<AggregateUDF>);

impl Extreme {
    /// Returns the order of a value to the one before it whose place it takes.
    fn replaces(&self) -> Ordering {
        if self.is_min() { Ordering::Less } else { Ordering::Greater }
    }

    fn is_min(&self) -> bool {
        self.0.name() == "min"
    }
}

/// Returns the accumulator of one type, whose greatest value in the order is `$highest`.
macro_rules! groups {
    ($extreme:expr, $of:expr, $type:ty, $native:ty, $highest:expr) => {{
        let replaces = $extreme.replaces();
        let order =
            |a: &$native, b: &$native| (a.is_nan()).cmp(&b.is_nan()).then_with(|| a.total_cmp(b));
        let update = move |now: &mut $native, new: $native| {
            if order(&new, now) == replaces {
                *now = new;
            }
        };
        let first = if $extreme.is_min() { $highest } else { <$native>::NEG_INFINITY };
        Ok(Box::new(
            prim_op::PrimitiveGroupsAccumulator::<$type, _>::new($of, update)
                .with_starting_value(first),
        ))
    }};
}

impl AggregateUDFImpl for Extreme {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn signature(&self) -> &Signature {
        self.0.signature()
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        self.0.return_type(types)
    }

    fn accumulator(&self, args: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        self.0.accumulator(args)
    }

    fn state_fields(&self, args: StateFieldsArgs<'_>) -> Result<Vec<FieldRef>> {
        self.0.state_fields(args)
    }

    fn groups_accumulator_supported(&self, args: AccumulatorArgs<'_>) -> bool {
        self.0.groups_accumulator_supported(args)
    }

    fn create_groups_accumulator(
        &self,
        args: AccumulatorArgs<'_>,
    ) -> Result<Box<dyn GroupsAccumulator>> {
        match args.return_field.data_type() {
            of @ DataType::Float32 => {
                groups!(self, of, Float32Type, f32, f32::from_bits(u32::MAX >> 1))
            }
            of @ DataType::Float64 => {
                groups!(self, of, Float64Type, f64, f64::from_bits(u64::MAX >> 1))
            }
            _ => self.0.create_groups_accumulator(args),
        }
    }

    fn create_sliding_accumulator(
        &self,
        args: AccumulatorArgs<'_>,
    ) -> Result<Box<dyn Accumulator>> {
        self.0.create_sliding_accumulator(args)
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        self.0.order_sensitivity()
    }

    fn reverse_expr(&self) -> ReversedUDAF {
        self.0.reverse_udf()
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        self.0.coerce_types(types)
    }

    fn is_descending(&self) -> Option<bool> {
        self.0.is_descending()
    }

    fn value_from_stats(&self, statistics: &StatisticsArgs<'_>) -> Option<ScalarValue> {
        self.0.value_from_stats(statistics)
    }
}
