//! Names as a tree of folders.
//!
//! A `/` in a name ends the name of a folder. Folders appear where the first of their objects does,
//! so the tree has the order of its rows.

use csd_store::catalogue::Entry;

use crate::table::{Align, Table};
use crate::units::size;

/// A folder's objects and inner folders, in order.
#[derive(Default)]
struct Folder {
    bytes: u64,
    inner: Vec<(String, Node)>,
}

enum Node {
    Folder(Folder),
    Object(u64),
}

impl Folder {
    fn add(&mut self, path: &str, bytes: u64) {
        self.bytes += bytes;
        // The last character of a name may be a slash: then the object has no other name.
        let Some((folder, rest)) = path.split_once('/').filter(|(_, rest)| !rest.is_empty()) else {
            self.inner.push((path.to_owned(), Node::Object(bytes)));
            return;
        };
        let is_it =
            |(name, node): &&mut (String, Node)| name == folder && matches!(node, Node::Folder(_));
        if let Some((_, Node::Folder(inner))) = self.inner.iter_mut().find(is_it) {
            return inner.add(rest, bytes);
        }
        let mut inner = Self::default();
        inner.add(rest, bytes);
        self.inner.push((folder.to_owned(), Node::Folder(inner)));
    }

    fn write(&self, depth: usize, table: &mut Table) {
        for (name, node) in &self.inner {
            let indent = "  ".repeat(depth);
            match node {
                Node::Object(bytes) => table.row(vec![size(*bytes), format!("{indent}{name}")]),
                Node::Folder(inner) => {
                    table.row(vec![size(inner.bytes), format!("{indent}{name}/")]);
                    inner.write(depth + 1, table);
                }
            }
        }
    }
}

/// Returns the tree of these objects, whose names begin with `prefix`; folders in the prefix are
/// left out.
pub(super) fn render(rows: &[(Entry, &'static str)], prefix: &str) -> String {
    let above = prefix.rfind('/').map_or(0, |slash| slash + 1);
    let mut root = Folder::default();
    for (entry, _) in rows {
        root.add(entry.name.get(above..).unwrap_or(&entry.name), entry.bytes);
    }
    let mut table = Table::new(&[("size", Align::Right), ("name", Align::Left)]);
    root.write(0, &mut table);
    table.render()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_stand_above_what_is_in_them_with_their_sizes() {
        let mut root = Folder::default();
        for (name, bytes) in [("a/x", 1), ("a/b/y", 2), ("a/z", 4), ("c", 8), ("d/", 16), ("a", 1)]
        {
            root.add(name, bytes);
        }
        let mut table = Table::new(&[("size", Align::Right), ("name", Align::Left)]);
        root.write(0, &mut table);
        let lines: Vec<String> = table.render().lines().map(str::to_owned).collect();
        let expected =
            [" 7 B  a/", " 1 B    x", " 2 B    b/", " 2 B      y", " 4 B    z", " 8 B  c"];
        assert_eq!(lines[1..7], expected);
        assert_eq!(lines[7..], ["16 B  d/", " 1 B  a"]);
    }
}
