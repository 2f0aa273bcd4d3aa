//! Plain tables with columns aligned by spaces.
//!
//! Invariant: a row is one line, even if others chose the text of its cells.

use crate::escape::escape;

/// Alignment of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Align {
    Left,
    Right,
}

/// A table with a header line.
pub(crate) struct Table {
    columns: Vec<(String, Align)>,
    rows: Vec<Vec<String>>,
}

impl Table {
    pub(crate) fn new(columns: &[(&str, Align)]) -> Self {
        let columns = columns.iter().map(|(name, align)| (escape(name).into_owned(), *align));
        Self { columns: columns.collect(), rows: Vec::new() }
    }

    /// Adds a row.
    ///
    /// # Panics
    /// If the number of cells differs from the header's.
    pub(crate) fn row(&mut self, cells: Vec<String>) {
        assert_eq!(cells.len(), self.columns.len(), "a cell for every column");
        self.rows.push(cells.iter().map(|cell| escape(cell).into_owned()).collect());
    }

    /// Returns the lines, without trailing spaces.
    pub(crate) fn render(&self) -> String {
        let widths: Vec<usize> = (0..self.columns.len())
            .map(|column| {
                let cells = self.rows.iter().map(|row| row[column].chars().count());
                cells.chain([self.columns[column].0.chars().count()]).max().unwrap_or(0)
            })
            .collect();
        let header = self.columns.iter().map(|(name, _)| name.clone()).collect();
        let mut text = String::new();
        for row in std::iter::once(&header).chain(&self.rows) {
            let cells = row.iter().zip(&self.columns).zip(&widths);
            let cells: Vec<String> = cells
                .map(|((cell, (_, align)), &width)| match align {
                    Align::Left => format!("{cell:<width$}"),
                    Align::Right => format!("{cell:>width$}"),
                })
                .collect();
            text.push_str(cells.join("  ").trim_end());
            text.push('\n');
        }
        text
    }
}

/// Formats names and values, one pair per line.
pub(crate) fn pairs(rows: &[(&str, String)]) -> String {
    let width = rows.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
    rows.iter().map(|(name, value)| format!("{name:<width$}  {}\n", escape(value))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let mut table = Table::new(&[("name", Align::Left), ("size", Align::Right)]);
        table.row(vec!["a".to_owned(), "1 KiB".to_owned()]);
        table.row(vec!["météo".to_owned(), "12 B".to_owned()]);
        assert_eq!(table.render(), "name    size\na      1 KiB\nmétéo   12 B\n");
        let forged = pairs(&[("name", "a\nsize  9\u{1b}[2J".into())]);
        assert_eq!(forged, "name  a\\nsize  9\\u{1b}[2J\n", "a value is one line");
        assert_eq!(pairs(&[("a", "1".into()), ("long", "2".into())]), "a     1\nlong  2\n");
    }
}
