//! [`FolderIndex`]: folders and their children, by keys.
//!
//! A folder is there as long as an object lies below it. Does no I/O. Invariants: every object's
//! folder is there, and every folder but the topmost is a child of its own folder; a folder without
//! children is removed.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::rc::Rc;

use csd_nvme::kv::Key;
use csd_nvme::vendor::folders::{BEGINNING_BYTES, beginning, key, order, split, split_name};

/// Place of a child among the others: its order, then its key.
type Place = (u64, Key);

/// Most bytes of entries in memory. Others are read from the medium for each answer.
const KEPT_BYTES_MAX: usize = 32 << 20;

/// A complete object as its entry on the medium has it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Object<'a> {
    pub(super) name: &'a str,
    /// The entry, if it is not too long to be answered.
    pub(super) entry: Option<&'a [u8]>,
}

/// A child.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Held {
    /// An object, with its entry if that is in memory.
    Object(Option<Rc<[u8]>>),
    /// A folder, with the last component of its path.
    Folder(Box<str>),
}

/// Children of a folder.
#[derive(Debug, Default)]
struct Folder {
    /// Key of the folder above, but for the topmost one.
    above: Option<Key>,
    children: BTreeMap<Place, (Held, [u8; BEGINNING_BYTES])>,
}

/// Some of a folder's children.
#[derive(Debug, Default)]
pub(super) struct Page {
    pub(super) children: Vec<(Key, Held)>,
    /// Number of children that were looked at.
    pub(super) looks: u64,
    /// Order from which on there may be others.
    pub(super) next: Option<u64>,
}

/// The folders of all names.
#[derive(Debug, Default)]
pub(super) struct FolderIndex {
    folders: HashMap<Key, Folder>,
    /// Folder of each object.
    objects: HashMap<Key, Key>,
    unreadable: BTreeSet<Place>,
    /// Bytes of the entries in memory.
    kept_bytes: usize,
}

impl FolderIndex {
    /// Returns the number of objects and folders.
    pub(super) fn len(&self) -> usize {
        self.objects.len() + self.folders.len()
    }

    /// Returns the keys whose entries cannot be read, in their order.
    pub(super) fn unreadable(&self) -> impl ExactSizeIterator<Item = &Key> {
        self.unreadable.iter().map(|(_, key)| key)
    }

    /// Sets what stands under a key: a complete object, nothing, or what cannot be read.
    pub(super) fn set(&mut self, of: &Key, found: Result<Option<Object<'_>>, ()>) {
        let place = (order(of), *of);
        match found {
            Err(()) => drop(self.unreadable.insert(place)),
            Ok(_) => drop(self.unreadable.remove(&place)),
        }
        self.forget(&place);
        let Ok(Some(Object { name, entry })) = found else { return self.remove(of) };
        let left = KEPT_BYTES_MAX - self.kept_bytes;
        let entry: Option<Rc<[u8]>> = entry.filter(|entry| entry.len() <= left).map(Rc::from);
        self.kept_bytes += entry.as_ref().map_or(0, |entry| entry.len());
        match self.held(&place) {
            // A key stands for one name.
            Some(held) => *held = Held::Object(entry),
            None => self.insert(*of, name, entry),
        }
    }

    /// Returns what is held of an object.
    fn held(&mut self, place: &Place) -> Option<&mut Held> {
        let folder = self.folders.get_mut(self.objects.get(&place.1)?)?;
        folder.children.get_mut(place).map(|(held, _)| held)
    }

    /// Forgets the entry of an object.
    fn forget(&mut self, place: &Place) {
        if let Some(Held::Object(entry)) = self.held(place) {
            let bytes = entry.take().map_or(0, |entry| entry.len());
            self.kept_bytes -= bytes;
        }
    }

    fn insert(&mut self, of: Key, name: &str, entry: Option<Rc<[u8]>>) {
        let (mut path, last) = split_name(name);
        let mut folder_key = key(path);
        let mut child = (of, (Held::Object(entry), beginning(last)));
        self.objects.insert(of, folder_key);
        loop {
            let folder = self.folders.entry(folder_key).or_default();
            let is_new = folder.children.is_empty();
            folder.children.insert((order(&child.0), child.0), child.1);
            if !is_new || path.is_empty() {
                return;
            }
            let (above, component) = split(path);
            let above_key = key(above);
            folder.above = Some(above_key);
            let held = Held::Folder(component.strip_suffix('/').unwrap_or(component).into());
            child = (folder_key, (held, beginning(component)));
            (path, folder_key) = (above, above_key);
        }
    }

    fn remove(&mut self, of: &Key) {
        let (mut child, mut within) = (*of, self.objects.remove(of));
        while let Some(folder_key) = within {
            let Some(folder) = self.folders.get_mut(&folder_key) else { return };
            folder.children.remove(&(order(&child), child));
            if !folder.children.is_empty() {
                return;
            }
            within = self.folders.remove(&folder_key).and_then(|folder| folder.above);
            child = folder_key;
        }
    }

    /// Returns children of a folder, from an order on, whose names go on with these bytes up to the
    /// first zero. Looks at about `looks_max` of them; those of one order stay together.
    pub(super) fn page(
        &self,
        folder: &Key,
        from: u64,
        beginning: &[u8; BEGINNING_BYTES],
        looks_max: usize,
    ) -> Page {
        let mut page = Page::default();
        let Some(folder) = self.folders.get(folder) else { return page };
        let length = beginning.iter().position(|byte| *byte == 0).unwrap_or(BEGINNING_BYTES);
        let first = (from, Key::new(&[0]).expect("a key, less than any of sixteen bytes"));
        let mut last = None;
        for ((order, key), (held, begins)) in folder.children.range(first..) {
            if page.looks >= looks_max as u64 && last != Some(*order) {
                page.next = Some(*order);
                break;
            }
            (last, page.looks) = (Some(*order), page.looks + 1);
            if begins[..length] == beginning[..length] {
                page.children.push((*key, held.clone()));
            }
        }
        page
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ANY: [u8; BEGINNING_BYTES] = [0; BEGINNING_BYTES];

    fn with(names: &[&str]) -> FolderIndex {
        let mut index = FolderIndex::default();
        names.iter().for_each(|name| index.set(&key(name), named(name)));
        index
    }

    fn named(name: &str) -> Result<Option<Object<'_>>, ()> {
        Ok(Some(Object { name, entry: None }))
    }

    /// Children of a folder: `x/` for folders, `*` for objects.
    fn children(index: &FolderIndex, path: &str) -> Vec<String> {
        let page = index.page(&key(path), 0, &ANY, 1000);
        let shown = |held: &Held| match held {
            Held::Object(_) => "*".to_owned(),
            Held::Folder(component) => format!("{component}/"),
        };
        let mut shown: Vec<String> = page.children.iter().map(|(_, held)| shown(held)).collect();
        shown.sort();
        shown
    }

    #[test]
    fn a_folder_is_there_while_an_object_lies_below_it() {
        let names = ["x", "a/x", "a/b/x", "a/b/y", "a/", "/x", "a//x"];
        let mut index = with(&names);
        assert_eq!(children(&index, ""), ["*", "/", "a/"]);
        assert_eq!(children(&index, "a/"), ["*", "*", "/", "b/"], "a/x and a/ itself");
        assert_eq!(children(&index, "a/b/"), ["*", "*"]);
        assert!(children(&index, "a").is_empty() && children(&index, "b/").is_empty());
        index.set(&key("a/b/x"), Ok(None));
        assert_eq!(children(&index, "a/"), ["*", "*", "/", "b/"]);
        index.set(&key("a/b/y"), Err(()));
        assert_eq!(children(&index, "a/"), ["*", "*", "/"]);
        assert_eq!(index.unreadable().collect::<Vec<_>>(), [&key("a/b/y")]);
        names.iter().for_each(|name| index.set(&key(name), Ok(None)));
        assert_eq!((index.len(), index.unreadable().count()), (0, 0));
    }

    #[test]
    fn pages_have_each_child_once_and_those_that_begin_so() {
        let names: Vec<String> = (0..1000).map(|number| format!("d/{number}")).collect();
        let mut index = FolderIndex::default();
        names.iter().for_each(|name| index.set(&key(name), named(name)));
        for looks_max in [1, 7, 256, 5000] {
            let (mut found, mut from) = (BTreeSet::new(), Some(0));
            while let Some(first) = from {
                let page = index.page(&key("d/"), first, &ANY, looks_max);
                assert!(page.looks <= looks_max as u64);
                assert!(page.children.iter().all(|(key, _)| found.insert(*key)));
                from = page.next;
            }
            assert_eq!(found, names.iter().map(|name| key(name)).collect());
        }
        let page = index.page(&key("d/"), 0, &beginning("99"), 5000);
        assert_eq!(page.children.len(), 11, "99, and 990 to 999");
    }
    #[test]
    fn entries_stay_in_memory_as_long_as_they_fit() {
        let long = vec![7; KEPT_BYTES_MAX / 2];
        let of = |name, entry| Ok(Some(Object { name, entry }));
        let kept = |index: &FolderIndex| {
            let page = index.page(&key(""), 0, &ANY, 1000).children;
            let mut kept: Vec<usize> = page
                .iter()
                .filter_map(|(_, held)| match held {
                    Held::Object(entry) => entry.as_ref().map(|entry| entry.len()),
                    Held::Folder(_) => None,
                })
                .collect();
            kept.sort_unstable();
            assert_eq!(kept.iter().sum::<usize>(), index.kept_bytes);
            kept
        };
        let mut index = FolderIndex::default();
        index.set(&key("a"), of("a", Some(&long)));
        index.set(&key("b"), of("b", Some(&long)));
        index.set(&key("c"), of("c", Some(&[1])));
        assert_eq!(kept(&index), [long.len(), long.len()], "no room for c");
        index.set(&key("b"), of("b", Some(&[1, 2])));
        index.set(&key("c"), of("c", Some(&[1])));
        assert_eq!(kept(&index), [1, 2, long.len()], "b was overwritten");
        index.set(&key("a"), Ok(None));
        index.set(&key("b"), Err(()));
        assert_eq!(kept(&index), [1]);
        index.set(&key("c"), of("c", None));
        assert!(kept(&index).is_empty());
        assert_eq!(children(&index, ""), ["*"]);
    }
}
