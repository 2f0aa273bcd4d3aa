//! Random tables: columns of every type, with missing values and special ones, in row groups,
//! encodings and compressions of all kinds.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use datafusion::arrow::array::{
    ArrayRef, BinaryArray, BooleanArray, DictionaryArray, FixedSizeBinaryArray, Int32Array,
    ListArray, PrimitiveArray, RecordBatch, StringArray, StructArray,
};
use datafusion::arrow::buffer::NullBuffer;
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{
    ArrowPrimitiveType, DataType, Date32Type, Decimal128Type, Field, Fields, Float32Type,
    Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, Schema, Time64MicrosecondType,
    TimeUnit, TimestampMicrosecondType, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use datafusion::parquet::arrow::ArrowWriter;
use datafusion::parquet::basic::{Compression, Encoding, ZstdLevel};
use datafusion::parquet::file::properties::{EnabledStatistics, WriterProperties, WriterVersion};
use fastrand::Rng;

/// Types of columns.
pub(crate) fn types() -> Vec<DataType> {
    use DataType::*;
    let zone = |name: &str| Some(name.into());
    vec![
        Boolean,
        Int8,
        Int16,
        Int32,
        Int64,
        UInt8,
        UInt16,
        UInt32,
        UInt64,
        Float32,
        Float64,
        Utf8,
        LargeUtf8,
        Utf8View,
        Binary,
        FixedSizeBinary(3),
        Date32,
        Time64(TimeUnit::Microsecond),
        Timestamp(TimeUnit::Millisecond, None),
        Timestamp(TimeUnit::Microsecond, None),
        Timestamp(TimeUnit::Nanosecond, zone("UTC")),
        Timestamp(TimeUnit::Microsecond, zone("Europe/Berlin")),
        Decimal128(9, 2),
        Decimal128(18, 0),
        Decimal128(38, 10),
        Dictionary(Box::new(Int32), Box::new(Utf8)),
        List(Arc::new(Field::new("item", Int64, true))),
        Struct(inner_fields()),
    ]
}

fn inner_fields() -> Fields {
    Fields::from(vec![
        Field::new("x", DataType::Int32, true),
        Field::new("name", DataType::Utf8, true),
    ])
}

/// Returns a random table, in one batch.
pub(crate) fn batch(rng: &mut Rng) -> RecordBatch {
    let rows = match rng.u8(0..10) {
        0 => rng.usize(0..3),
        1..=5 => rng.usize(0..400),
        _ => rng.usize(0..4000),
    };
    let types = types();
    let columns = rng.usize(2..8);
    let columns = (0..columns).map(|number| {
        let data_type = &types[rng.usize(0..types.len())];
        let nullable = rng.bool();
        let values = column(rng, data_type, nullable, rows);
        (Field::new(format!("c{number}"), data_type.clone(), nullable), values)
    });
    let (fields, mut columns): (Vec<_>, Vec<_>) = columns.unzip();
    let mut fields: Vec<Field> = fields;
    // Orders by all columns and this one are orders of one kind only.
    fields.push(Field::new("id", DataType::Int64, false));
    columns.push(Arc::new(PrimitiveArray::<Int64Type>::from_iter_values(0i64..rows as i64)));
    RecordBatch::try_new(Arc::new(Schema::new(fields)), columns).unwrap()
}

/// Returns for each row whether its value is there.
fn valid(rng: &mut Rng, nullable: bool, rows: usize) -> Vec<bool> {
    let missing = if nullable { [0.1, 0.5, 1.0, 0.0][rng.usize(0..4)] } else { 0.0 };
    (0..rows).map(|_| rng.f64() >= missing).collect()
}

fn column(rng: &mut Rng, data_type: &DataType, nullable: bool, rows: usize) -> ArrayRef {
    let valid = valid(rng, nullable, rows);
    match data_type {
        DataType::Boolean => {
            Arc::new(valid.iter().map(|is| is.then(|| rng.bool())).collect::<BooleanArray>())
        }
        DataType::Int8 => integers::<Int8Type>(rng, &valid, Rng::i8),
        DataType::Int16 => integers::<Int16Type>(rng, &valid, Rng::i16),
        DataType::Int32 => integers::<Int32Type>(rng, &valid, Rng::i32),
        // Sums of these are exact as floating-point numbers, too.
        DataType::Int64 => integers::<Int64Type>(rng, &valid, |rng, _| rng.i64(-1 << 40..1 << 40)),
        DataType::UInt8 => integers::<UInt8Type>(rng, &valid, Rng::u8),
        DataType::UInt16 => integers::<UInt16Type>(rng, &valid, Rng::u16),
        DataType::UInt32 => integers::<UInt32Type>(rng, &valid, Rng::u32),
        DataType::UInt64 => integers::<UInt64Type>(rng, &valid, |rng, _| rng.u64(0..1 << 40)),
        DataType::Float32 => primitive::<Float32Type>(&valid, || float(rng) as f32),
        DataType::Float64 => primitive::<Float64Type>(&valid, || float(rng)),
        DataType::Date32 => primitive::<Date32Type>(&valid, || rng.i32(-40_000..40_000) / 97 * 97),
        DataType::Time64(_) => {
            primitive::<Time64MicrosecondType>(&valid, || rng.i64(0..24) * 3_600_000_000)
        }
        DataType::Timestamp(..) => {
            let day = 86_400_000_000;
            let at =
                |rng: &mut Rng| rng.i64(-40_000..40_000) / 97 * day + rng.i64(0..3) * 1_234_567;
            let micros = primitive::<TimestampMicrosecondType>(&valid, || at(rng));
            cast(&micros, data_type).unwrap()
        }
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => {
            cast(&texts(rng, &valid), data_type).unwrap()
        }
        DataType::Dictionary(..) => {
            let keys: Int32Array = valid.iter().map(|is| is.then(|| rng.i32(0..4))).collect();
            let values = Arc::new(StringArray::from(vec!["", "größer", "b", "a b"]));
            Arc::new(DictionaryArray::try_new(keys, values).unwrap())
        }
        DataType::Binary => {
            let bytes = valid.iter().map(|is| is.then(|| vec![rng.u8(..); rng.usize(0..4)]));
            Arc::new(
                bytes.collect::<Vec<_>>().iter().map(Option::as_deref).collect::<BinaryArray>(),
            )
        }
        DataType::FixedSizeBinary(length) => {
            let value = |rng: &mut Rng| [rng.u8(0..4), 0, rng.u8(..)];
            let values = valid.iter().map(|is| is.then(|| value(rng)));
            let values = FixedSizeBinaryArray::try_from_sparse_iter_with_size(values, *length);
            Arc::new(values.unwrap())
        }
        DataType::Decimal128(precision, scale) => decimals(rng, &valid, (*precision, *scale)),
        other => within(rng, other, valid, nullable),
    }
}

/// Returns lists or rows.
fn within(rng: &mut Rng, data_type: &DataType, valid: Vec<bool>, nullable: bool) -> ArrayRef {
    match data_type {
        DataType::List(_) => {
            let lists = valid.iter().map(|is| {
                let item = |rng: &mut Rng| (rng.u8(0..4) > 0).then(|| rng.i64(0..9));
                is.then(|| (0..rng.usize(0..4)).map(|_| item(rng)).collect::<Vec<_>>())
            });
            Arc::new(ListArray::from_iter_primitive::<Int64Type, _, _>(lists))
        }
        DataType::Struct(fields) => {
            let inner =
                fields.iter().map(|field| column(rng, field.data_type(), true, valid.len()));
            let inner = inner.collect();
            let nulls = nullable.then(|| NullBuffer::from(valid));
            Arc::new(StructArray::new(fields.clone(), inner, nulls))
        }
        other => panic!("no values of type {other}"),
    }
}

fn decimals(rng: &mut Rng, valid: &[bool], (precision, scale): (u8, i8)) -> ArrayRef {
    let most = 10i128.pow(u32::from(precision).min(12)) - 1;
    let value = |rng: &mut Rng| match rng.bool() {
        true => i128::from(rng.i8(..)),
        false => rng.i128(-most..=most),
    };
    let values = valid.iter().map(|is| is.then(|| value(rng)));
    let values = values.collect::<PrimitiveArray<Decimal128Type>>();
    Arc::new(values.with_precision_and_scale(precision, scale).unwrap())
}

fn primitive<T: ArrowPrimitiveType>(
    valid: &[bool],
    mut value: impl FnMut() -> T::Native,
) -> ArrayRef {
    let values = valid.iter().map(|is| is.then(&mut value));
    Arc::new(values.collect::<Vec<_>>().into_iter().collect::<PrimitiveArray<T>>())
}

/// Returns integers, of a few values or of all that there are.
fn integers<T: ArrowPrimitiveType>(
    rng: &mut Rng,
    valid: &[bool],
    any: impl Fn(&mut Rng, std::ops::RangeFull) -> T::Native,
) -> ArrayRef
where
    PrimitiveArray<T>: FromIterator<Option<T::Native>>,
    T::Native: TryFrom<i32>,
{
    let few = rng.bool();
    primitive::<T>(valid, || match few {
        true => T::Native::try_from(rng.i32(0..9)).unwrap_or_default(),
        false => any(rng, ..),
    })
}

/// Returns an eighth of an integer, so that sums are exact in any order, or a special value.
fn float(rng: &mut Rng) -> f64 {
    match rng.u16(0..400) {
        0 => f64::NAN,
        1 => f64::INFINITY,
        2 => f64::NEG_INFINITY,
        3..=20 => -0.0,
        21..=40 => 0.0,
        _ => f64::from(rng.i16(-8000..8000)) / 8.0,
    }
}

fn texts(rng: &mut Rng, valid: &[bool]) -> ArrayRef {
    let few = rng.bool();
    let words = ["", "a", "A", "größer", "100%", "a_b", "it's", "日本", "a\u{301}", "zz\nz"];
    let text = |rng: &mut Rng| {
        let word = words[rng.usize(0..words.len())];
        if few { word.to_owned() } else { format!("{word}{}", rng.u16(..)) }
    };
    let texts = valid.iter().map(|is| is.then(|| text(rng)));
    Arc::new(texts.collect::<StringArray>())
}

/// Writes a table as a Parquet file.
pub(crate) fn write(rng: &mut Rng, path: &Path, batch: &RecordBatch) {
    let compressions =
        [Compression::UNCOMPRESSED, Compression::SNAPPY, Compression::ZSTD(ZstdLevel::default())];
    let statistics = [EnabledStatistics::None, EnabledStatistics::Chunk, EnabledStatistics::Page];
    let versions = [WriterVersion::PARQUET_1_0, WriterVersion::PARQUET_2_0];
    let mut properties = WriterProperties::builder()
        .set_max_row_group_row_count(Some(rng.usize(1..1500).max(batch.num_rows() / 40 + 1)))
        .set_data_page_row_count_limit(rng.usize(1..2000))
        .set_write_batch_size(rng.usize(1..512))
        .set_writer_version(versions[rng.usize(0..2)])
        .set_compression(compressions[rng.usize(0..3)])
        .set_statistics_enabled(statistics[rng.usize(0..3)]);
    for field in batch.schema().fields() {
        let path = field.name().as_str();
        if rng.bool() {
            properties = properties.set_column_dictionary_enabled(path.into(), rng.bool());
        }
        let encoding = match field.data_type() {
            DataType::Int32 | DataType::Int64 | DataType::Date32 => Encoding::DELTA_BINARY_PACKED,
            DataType::Float32 | DataType::Float64 => Encoding::BYTE_STREAM_SPLIT,
            DataType::Utf8 | DataType::Binary => match rng.bool() {
                true => Encoding::DELTA_BYTE_ARRAY,
                false => Encoding::DELTA_LENGTH_BYTE_ARRAY,
            },
            _ => continue,
        };
        if rng.bool() {
            properties = properties
                .set_column_dictionary_enabled(path.into(), false)
                .set_column_encoding(path.into(), encoding);
        }
    }
    let file = File::create(path).unwrap();
    let mut writer = ArrowWriter::try_new(file, batch.schema(), Some(properties.build())).unwrap();
    writer.write(batch).unwrap();
    writer.close().unwrap();
}
