//! [`Nodes`]: what the kernel knows by number, as long as it does.
//!
//! Each version of an object has a number of its own: the kernel's cache of one never holds bytes
//! of another.

use std::collections::HashMap;
use std::rc::Rc;

use csd_store::catalogue::Entry;
use fuser::INodeNo;

/// Number of the mounted folder.
pub(super) const ROOT: u64 = INodeNo::ROOT.0;

/// A folder, or an object.
#[derive(Clone, Debug)]
pub(super) struct Node {
    /// Name of the object, or path of the folder, which is empty or ends in `/`.
    pub(super) path: String,
    /// The object's entry; `None` of a folder.
    pub(super) entry: Option<Rc<Entry>>,
}

impl Node {
    pub(super) fn folder(path: String) -> Self {
        Self { path, entry: None }
    }

    pub(super) fn file(entry: Rc<Entry>) -> Self {
        Self { path: entry.name.clone(), entry: Some(entry) }
    }

    /// Returns what tells it from all others: the path, and the version of an object.
    fn identity(&self) -> Identity {
        (self.path.clone(), self.entry.as_ref().map(|entry| entry.writer))
    }
}

type Identity = (String, Option<[u8; 16]>);

/// See the module's text.
pub(super) struct Nodes {
    /// Nodes, with the number of times that the kernel was given each.
    known: HashMap<u64, (Node, u64)>,
    numbers: HashMap<Identity, u64>,
    next: u64,
}

impl Nodes {
    /// Returns the mounted folder alone.
    pub(super) fn new(path: &str) -> Self {
        let root = Node::folder(path.to_owned());
        let numbers = HashMap::from([(root.identity(), ROOT)]);
        // It is never forgotten.
        Self { known: HashMap::from([(ROOT, (root, 1))]), numbers, next: ROOT + 1 }
    }

    pub(super) fn get(&self, number: u64) -> Option<Node> {
        self.known.get(&number).map(|(node, _)| node.clone())
    }

    /// Returns the number of a node, and counts that the kernel is given it.
    pub(super) fn found(&mut self, node: &Node) -> u64 {
        let number = *self.numbers.entry(node.identity()).or_insert_with(|| {
            self.next += 1;
            self.next - 1
        });
        self.known.entry(number).or_insert_with(|| (node.clone(), 0)).1 += 1;
        number
    }

    /// Takes back that the kernel was given a node so many times.
    pub(super) fn forget(&mut self, number: u64, times: u64) {
        let Some((node, count)) = self.known.get_mut(&number).filter(|_| number != ROOT) else {
            return;
        };
        *count = count.saturating_sub(times);
        if *count == 0 {
            let identity = node.identity();
            self.numbers.remove(&identity);
            self.known.remove(&number);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_stay_for_as_long_as_the_kernel_knows_them() {
        let mut nodes = Nodes::new("in/");
        let folder = Node::folder("in/a/".to_owned());
        let number = nodes.found(&folder);
        assert_eq!(nodes.found(&folder), number);
        nodes.forget(number, 1);
        assert_eq!(nodes.get(number).unwrap().path, "in/a/");
        nodes.forget(number, 1);
        assert!(nodes.get(number).is_none());
        // Its number is not given to another one.
        assert_ne!(nodes.found(&Node::folder("in/b/".to_owned())), number);
        assert_ne!(nodes.found(&folder), number);
        nodes.forget(ROOT, u64::MAX);
        assert_eq!(nodes.get(ROOT).unwrap().path, "in/");
    }
}
