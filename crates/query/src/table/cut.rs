//! Cuts of a Parquet file by a put, so that each row group lies on one drive.

use datafusion::parquet::file::metadata::{ParquetMetaData, ParquetMetaDataReader};

/// First bytes of parts and the numbers of their first rows, as a put takes them: one for each row
/// group, and one for what follows the last.
pub type Starts = Vec<(u64, u64)>;

/// Returns the places where a Parquet file is cut; `None` if it is none, or its row groups do not
/// follow one another. Then it is an object as any other.
pub fn starts(file: &std::fs::File) -> Option<Starts> {
    let metadata = ParquetMetaDataReader::new().parse_and_finish(file).ok()?;
    of_metadata(&metadata)
}

pub(super) fn of_metadata(metadata: &ParquetMetaData) -> Option<Starts> {
    let (mut starts, mut end, mut row) = (Vec::new(), 0, 0u64);
    for group in metadata.row_groups() {
        let ranges = group.columns().iter().map(|column| column.byte_range());
        let (first, last) = ranges.fold((u64::MAX, 0), |(first, last), (start, bytes)| {
            (first.min(start), last.max(start.saturating_add(bytes)))
        });
        if first < end || last <= first {
            return None;
        }
        // The first part begins with the file.
        starts.push((if starts.is_empty() { 0 } else { first }, row));
        end = last;
        row += u64::try_from(group.num_rows()).ok()?;
    }
    if starts.is_empty() {
        return None;
    }
    starts.push((end, row));
    Some(starts)
}
