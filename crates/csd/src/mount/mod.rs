//! `csd mount`: objects as files of a folder that can be read, by FUSE.
//!
//! [`mod@tree`] answers the kernel on FUSE's thread and hands what it asks to a core, where
//! [`Objects`] has the array. [`nodes`] holds what the kernel knows by number, [`mod@opened`] what
//! programs have open.
//!
//! Invariant: a file has the content of one version of its object. A file that was opened before
//! the object was replaced or removed fails when bytes are read that were not read yet (ESTALE); it
//! never goes on with other ones.

mod nodes;
mod opened;
mod tree;

use std::cell::{Cell, RefCell};
use std::collections::{BTreeSet, HashMap};
use std::ffi::OsStr;
use std::rc::Rc;

use csd_reactor::{Door, set_core_local};
use csd_store::array::Array;
use csd_store::error::NameError;
use csd_store::object::{self, Children, Error};
use fuser::MountOption;
use rustix::io::Errno;
use serde_json::{Value, json};

use crate::cli::mount::Mount;
use crate::context::Context;
use crate::files::as_folder;
use crate::mounted::{End, Mounted, REQUESTS_MAX, Said, mount_point};
use crate::report::{self, Failure, Report};
use crate::runtime::runtime;
use nodes::{Node, Nodes};
use opened::{Listed, Opened};
use tree::Tree;

/// Longest name of a file, bytes.
const NAME_BYTES_MAX: usize = 255;

/// The array on its core, and what the kernel knows of it.
struct Objects {
    array: Array,
    nodes: RefCell<Nodes>,
    /// Open files and folders, by handle.
    opened: RefCell<HashMap<u64, Rc<Opened>>>,
    next: Cell<u64>,
    said: Said,
    /// Damage of the catalogue that was printed.
    damage: RefCell<BTreeSet<String>>,
}

impl Objects {
    fn new(array: Array, prefix: &str) -> Self {
        Self {
            array,
            nodes: RefCell::new(Nodes::new(prefix)),
            opened: RefCell::default(),
            next: Cell::new(1),
            said: Said::default(),
            damage: RefCell::default(),
        }
    }

    /// Returns the number and the node of a name in a folder, and counts that the kernel knows it.
    async fn lookup(&self, folder: u64, name: &str) -> Result<(u64, Node), Errno> {
        let path = self.node(folder)?.path + name;
        let node = match object::lookup(&self.array, &path).await {
            Ok(entry) => Node::file(Rc::new(entry)),
            Err(Error::Name(NameError::Missing { .. })) => {
                let path = path + "/";
                match self.checked(object::is_folder(&self.array, &path).await)? {
                    true => Node::folder(path),
                    false => return Err(Errno::NOENT),
                }
            }
            Err(Error::Name(NameError::Invalid { .. })) => return Err(Errno::NOENT),
            Err(error) => return self.checked(Err(error)),
        };
        Ok((self.nodes.borrow_mut().found(&node), node))
    }

    /// Returns what the kernel knows under a number.
    fn node(&self, number: u64) -> Result<Node, Errno> {
        self.nodes.borrow().get(number).ok_or(Errno::STALE)
    }

    /// Opens a file; returns its handle. The kernel looks the name up again if this is another
    /// version than it knows.
    async fn open(&self, number: u64) -> Result<u64, Errno> {
        let known = self.node(number)?.entry.ok_or(Errno::ISDIR)?;
        match object::lookup(&self.array, &known.name).await {
            Ok(entry) if entry.writer == known.writer => {
                Ok(self.insert(Opened::file(Rc::new(entry))))
            }
            Ok(_) | Err(Error::Name(NameError::Missing { .. })) => Err(Errno::STALE),
            Err(error) => self.checked(Err(error)),
        }
    }

    /// Opens a folder; returns its handle.
    async fn open_folder(&self, number: u64) -> Result<u64, Errno> {
        let path = self.node(number)?.path;
        let children = self.checked(object::children(&self.array, &path).await)?;
        Ok(self.insert(Opened::Folder(Rc::new(listed(&path, children)))))
    }

    fn insert(&self, opened: Opened) -> u64 {
        let handle = self.next.replace(self.next.get() + 1);
        self.opened.borrow_mut().insert(handle, Rc::new(opened));
        handle
    }

    fn opened(&self, handle: u64) -> Result<Rc<Opened>, Errno> {
        self.opened.borrow().get(&handle).cloned().ok_or(Errno::BADF)
    }

    /// Returns bytes of an open file; fewer at its end.
    async fn read(&self, handle: u64, offset: u64, length: usize) -> Result<Vec<u8>, Errno> {
        match &*self.opened(handle)? {
            Opened::File(file) => self.checked(file.read(&self.array, offset, length).await),
            Opened::Folder(_) => Err(Errno::ISDIR),
        }
    }

    /// Returns what is in an open folder.
    fn listed(&self, handle: u64) -> Result<Rc<Vec<Listed>>, Errno> {
        match &*self.opened(handle)? {
            Opened::Folder(listed) => Ok(Rc::clone(listed)),
            Opened::File(_) => Err(Errno::NOTDIR),
        }
    }

    /// Returns the error number that programs get. Prints damage that was met, and why something
    /// failed, once until it succeeds again.
    fn checked<T>(&self, done: Result<T, Error>) -> Result<T, Errno> {
        let is_gone = |error: &Error| {
            let gone = |name: &NameError| {
                matches!(name, NameError::Removed { .. } | NameError::Moved { .. })
            };
            matches!(error, Error::Name(name) if gone(name))
        };
        if done.as_ref().is_err_and(is_gone) {
            return Err(Errno::STALE);
        }
        for damage in self.array.damage_met() {
            if self.damage.borrow_mut().insert(damage.clone()) {
                report::print_error(&format!("warning: {damage}"));
            }
        }
        self.said.say(done.as_ref().err().map(Error::to_string));
        done.map_err(|_| Errno::IO)
    }
}

/// Returns files and folders by their names in the folder `path`. An object with the name of a
/// folder hides it; a name that cannot be that of a file is left out.
fn listed(path: &str, children: Children) -> Vec<Listed> {
    let name_in = |whole: &str| whole[path.len()..].trim_end_matches('/').to_owned();
    let mut all: HashMap<String, Node> = HashMap::new();
    for whole in children.folders {
        all.insert(name_in(&whole), Node::folder(whole));
    }
    for (whole, entry) in children.objects {
        all.insert(whole[path.len()..].to_owned(), Node::file(Rc::new(entry)));
    }
    let mut all: Vec<Listed> = all.into_iter().filter(|(name, _)| is_file_name(name)).collect();
    all.sort_by(|one, other| one.0.cmp(&other.0));
    all
}

fn is_file_name(name: &str) -> bool {
    let is_reserved = matches!(name, "" | "." | "..");
    !is_reserved && name.len() <= NAME_BYTES_MAX && !name.contains(['/', '\0'])
}

/// Returns the name that the kernel asks for, if an object can have it.
fn asked(name: &OsStr) -> Option<String> {
    name.to_str().filter(|name| is_file_name(name)).map(str::to_owned)
}

/// Shows objects until the folder is unmounted or the process is asked to stop.
pub(crate) fn mount(options: &Mount, context: &Context) -> Result<Report, Failure> {
    let point = mount_point(&options.folder)?;
    let prefix = as_folder(options.prefix.as_deref().unwrap_or_default());
    let (plan, connection) = (context.plan()?, context.options()?);
    let (json, quiet) = (context.json, context.quiet);
    let runtime = csd_reactor::Config { spin_us: 0, ..runtime() };
    let served = csd_reactor::block_on(&runtime, move || async move {
        let array = Array::connect(&plan, &connection).await;
        if !prefix.is_empty() && !object::is_folder(&array, &prefix).await? {
            let why = "no object is below it; `csd ls` lists what is there";
            return Err(Failure::usage(format!("{prefix}: {why}")));
        }
        let objects = Rc::new(Objects::new(array, &prefix));
        set_core_local(Rc::clone(&objects));
        let end = End::of_core();
        let tree = Tree::new(Door::new(REQUESTS_MAX));
        let shown =
            Mounted::show(point, tree, &[MountOption::RO, MountOption::DefaultPermissions])?;
        announce(&shown, &prefix, (json, quiet));
        end.wait().await;
        shown.remove();
        objects.array.disconnect().await;
        Ok(())
    });
    served.map_err(Failure::run)??;
    Ok(Report::new("", Value::Null))
}

/// Prints that the files are there.
fn announce(shown: &Mounted, prefix: &str, (json, quiet): (bool, bool)) {
    let folder = shown.path();
    if json {
        let result = json!({ "folder": folder, "prefix": prefix });
        report::print_json("mount", &Ok(Report::new("", result)));
    } else if !quiet {
        let what = if prefix.is_empty() { "all objects" } else { prefix };
        report::print(&format!("mounted {what}\n  folder   {}\n", folder.display()));
    }
}
