//! Random queries over the columns of a table.

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::DataType;
use datafusion::arrow::util::display::{ArrayFormatter, FormatOptions};
use fastrand::Rng;

/// Columns of a table `t`, and some of their values.
pub(crate) struct Columns {
    columns: Vec<Column>,
    /// True if no two rows have the same value in column `id`.
    has_id: bool,
}

struct Column {
    name: String,
    data_type: DataType,
    /// Values as constants of SQL.
    constants: Vec<String>,
}

/// Number of a column's values that queries name.
const CONSTANTS: usize = 8;

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

fn is_number(data_type: &DataType) -> bool {
    data_type.is_numeric()
}

fn is_text(data_type: &DataType) -> bool {
    match data_type {
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => true,
        DataType::Dictionary(_, values) => is_text(values),
        _ => false,
    }
}

impl Columns {
    /// Returns the columns of a table, with values of these rows.
    pub(crate) fn new(rng: &mut Rng, batch: &RecordBatch) -> Self {
        let schema = batch.schema();
        let columns = schema.fields().iter().zip(batch.columns()).map(|(field, values)| {
            let options = FormatOptions::default();
            let shown = ArrayFormatter::try_new(values, &options).unwrap();
            let data_type = field.data_type().clone();
            let mut constants = Vec::new();
            while batch.num_rows() > 0 && constants.len() < CONSTANTS {
                let row = rng.usize(0..batch.num_rows());
                let text =
                    if values.is_null(row) { String::new() } else { shown.value(row).to_string() };
                constants.push(constant(&data_type, &text));
            }
            constants.push(constant(&data_type, "0"));
            Column { name: format!("\"{}\"", field.name()), data_type, constants }
        });
        let columns: Vec<Column> = columns.collect();
        Self { has_id: columns.iter().any(|one| one.name == "\"id\""), columns }
    }

    fn any(&self, rng: &mut Rng) -> &Column {
        &self.columns[rng.usize(0..self.columns.len())]
    }

    fn any_of(&self, rng: &mut Rng, wanted: fn(&DataType) -> bool) -> Option<&Column> {
        let found: Vec<_> = self.columns.iter().filter(|one| wanted(&one.data_type)).collect();
        (!found.is_empty()).then(|| found[rng.usize(0..found.len())])
    }

    /// Returns columns that groups are formed by, or that an order has.
    fn plain(&self) -> Vec<&Column> {
        self.columns.iter().filter(|one| !one.data_type.is_nested()).collect()
    }

    /// Returns a random query.
    pub(crate) fn query(&self, rng: &mut Rng) -> String {
        let filter = match rng.u8(0..4) {
            0 => String::new(),
            _ => format!(" where {}", self.condition(rng, 2)),
        };
        let plain = self.plain();
        let kinds = match (plain.is_empty(), self.has_id) {
            (true, _) => 3,
            (_, false) => 10,
            _ => 14,
        };
        match rng.u8(0..kinds) {
            0..=2 => {
                let rows =
                    if rng.bool() { format!(" limit {}", rng.u16(0..200)) } else { String::new() };
                format!("select {} from t{filter}{rows}", self.values(rng))
            }
            3 | 4 if self.has_id => {
                let mut keys: Vec<_> = plain.iter().map(|one| self.key(rng, one)).collect();
                rng.shuffle(&mut keys);
                keys.truncate(rng.usize(0..3));
                keys.push("\"id\"".to_owned());
                let (values, rows) = (self.values(rng), rng.u16(0..300));
                format!("select {values} from t{filter} order by {} limit {rows}", keys.join(", "))
            }
            3..=5 => format!("select {} from t{filter}", self.measures(rng)),
            6..=8 => {
                let mut groups: Vec<String> = (0..rng.usize(1..3))
                    .map(|_| plain[rng.usize(0..plain.len())].name.clone())
                    .collect();
                if rng.u8(0..3) == 0
                    && let Some(value) = self.value(rng)
                {
                    groups[0] = value;
                }
                groups.dedup();
                let (groups, measures) = (groups.join(", "), self.measures(rng));
                format!("select {measures} , {groups} from t{filter} group by {groups}")
            }
            10..=13 => {
                let key = &plain[rng.usize(0..plain.len())].name;
                self.of_two_tables(rng, key)
            }
            _ => {
                let one = &plain[rng.usize(0..plain.len())].name;
                match rng.bool() {
                    true => format!("select distinct {one} from t{filter}"),
                    false => format!("select count(distinct {one}), count(*) from t{filter}"),
                }
            }
        }
    }

    /// Returns a query that reads the table twice, or numbers rows of its groups, by this key.
    fn of_two_tables(&self, rng: &mut Rng, key: &str) -> String {
        // Few rows, because a key may have few values.
        let few = |rng: &mut Rng| {
            let (of, condition) = (rng.u8(5..60), self.condition(rng, 1));
            format!(
                "(select {key} as k, \"id\" as i from t where \"id\" % {of} = 1 and {condition})"
            )
        };
        let (a, b) = (few(rng), few(rng));
        match rng.u8(0..6) {
            0 => format!("select count(*), sum(a.i), sum(b.i) from {a} a join {b} b on a.k = b.k"),
            1 => {
                let side = ["left", "right", "full"][rng.usize(0..3)];
                format!("select a.i, b.i from {a} a {side} join {b} b on a.k = b.k and a.i < b.i")
            }
            2 => {
                let within = ["in", "not in"][rng.usize(0..2)];
                format!("select i from {a} a where a.k {within} (select b.k from {b} b)")
            }
            3 => {
                let all = ["union", "union all", "except", "intersect"][rng.usize(0..4)];
                format!("select k from {a} {all} select k from {b}")
            }
            4 => {
                let order = format!("partition by k order by i rows {} preceding", rng.u8(0..9));
                format!("select i, sum(i) over ({order}), row_number() over ({order}) from {a}")
            }
            _ => {
                let rows = rng.u8(1..40);
                let first = format!("select k, i from {a} order by i desc limit {rows}");
                format!(
                    "select k, count(*) as n, max(i) from ({first}) group by k having max(i) > 9"
                )
            }
        }
    }

    fn key(&self, rng: &mut Rng, column: &Column) -> String {
        let direction = ["", " desc", " nulls first", " desc nulls last"][rng.usize(0..4)];
        format!("{}{direction}", column.name)
    }

    fn values(&self, rng: &mut Rng) -> String {
        let mut values = Vec::new();
        for _ in 0..rng.usize(1..4) {
            let column = self.any(rng).name.clone();
            let value = if rng.bool() { self.value(rng) } else { None };
            values.push(value.unwrap_or(column));
        }
        for (number, value) in values.iter_mut().enumerate() {
            *value += &format!(" as v{number}");
        }
        values.join(", ")
    }

    /// Returns a value that is computed.
    fn value(&self, rng: &mut Rng) -> Option<String> {
        let number = self.any_of(rng, is_number);
        let text = self.any_of(rng, is_text);
        let instant =
            self.any_of(rng, |one| matches!(one, DataType::Timestamp(..) | DataType::Date32));
        let row = self.any_of(rng, |one| matches!(one, DataType::Struct(_)));
        match rng.u8(0..10) {
            0 => number.map(|one| format!("{} + 1", one.name)),
            1 => number.map(|one| format!("abs({})", one.name)),
            2 => text.map(|one| format!("upper({})", one.name)),
            3 => text.map(|one| format!("character_length({})", one.name)),
            4 => text.map(|one| format!("substr({}, 2, 3)", one.name)),
            5 => instant.map(|one| format!("date_part('year', {})", one.name)),
            6 => instant.map(|one| format!("date_trunc('month', {})", one.name)),
            7 => row.map(|one| format!("get_field({}, 'x')", one.name)),
            8 => {
                let one = self.any(rng);
                let (condition, constant) = (self.condition(rng, 1), self.constant(rng, one));
                Some(format!("case when {condition} then {} else {constant} end", one.name))
                    .filter(|_| !one.data_type.is_nested())
            }
            _ => number.map(|one| format!("cast({} as double) * 0.5", one.name)),
        }
    }

    fn constant<'a>(&self, rng: &mut Rng, column: &'a Column) -> &'a str {
        &column.constants[rng.usize(0..column.constants.len())]
    }

    /// Returns a condition that nests this deep.
    fn condition(&self, rng: &mut Rng, depth: u32) -> String {
        if depth > 0 && rng.bool() {
            let (a, b) = (self.condition(rng, depth - 1), self.condition(rng, depth - 1));
            return match rng.u8(0..5) {
                0 => format!("not ({a})"),
                1 | 2 => format!("({a} or {b})"),
                _ => format!("({a} and {b})"),
            };
        }
        let column = self.any(rng);
        let name = &column.name;
        if column.data_type.is_nested() || rng.u8(0..8) == 0 {
            return format!("{name} is {}null", if rng.bool() { "" } else { "not " });
        }
        if is_text(&column.data_type) && rng.bool() {
            let pattern = ["a%", "%r", "%a%", "a_b", "__", "%", "größ%"][rng.usize(0..7)];
            let like = ["like", "not like", "ilike"][rng.usize(0..3)];
            return format!("{name} {like} {}", quoted(pattern));
        }
        let (a, b) = (self.constant(rng, column), self.constant(rng, column));
        match rng.u8(0..6) {
            0 => format!("{name} in ({a}, {b})"),
            1 => format!("{name} between {a} and {b}"),
            _ => {
                let operator = ["=", "<>", "<", "<=", ">", ">="][rng.usize(0..6)];
                format!("{name} {operator} {a}")
            }
        }
    }

    fn measures(&self, rng: &mut Rng) -> String {
        let plain = self.plain();
        let mut measures = Vec::new();
        for number in 0..rng.usize(1..4) {
            let column = plain[rng.usize(0..plain.len())];
            let name = &column.name;
            let measure = match rng.u8(0..8) {
                6 => format!("count(distinct {name})"),
                // The condition is computed once.
                7 => {
                    let condition = self.condition(rng, 0);
                    format!(
                        "sum(case when {condition} then 1 else 0 end) as n{number}, \
                             count(case when {condition} then {name} end)"
                    )
                }
                0 => "count(*)".to_owned(),
                1 => format!("count({name})"),
                2 if is_number(&column.data_type) => format!("sum({name})"),
                3 if is_number(&column.data_type) => format!("avg({name})"),
                4 => format!("min({name})"),
                _ => format!("max({name})"),
            };
            let filter = match rng.u8(0..5) {
                0 => format!(" filter (where {})", self.condition(rng, 0)),
                _ => String::new(),
            };
            measures.push(format!("{measure}{filter} as m{number}"));
        }
        measures.join(", ")
    }
}

/// Returns a value in the words of SQL, of this type if it has the form of one.
fn constant(data_type: &DataType, text: &str) -> String {
    match data_type {
        DataType::Binary => format!("X'{text}'"),
        DataType::FixedSizeBinary(_) if text.len() == 6 => format!("X'{text}'"),
        DataType::FixedSizeBinary(_) => "X'000000'".to_owned(),
        DataType::Boolean => (text == "true").to_string(),
        of if is_text(of) => quoted(text),
        of if of.is_nested() => "null".to_owned(),
        of if of.is_integer() && text.parse::<i64>().is_ok() => text.to_owned(),
        _ if text.is_empty() || text == "0" => "null".to_owned(),
        of => format!("arrow_cast({}, {})", quoted(text), quoted(&of.to_string())),
    }
}
