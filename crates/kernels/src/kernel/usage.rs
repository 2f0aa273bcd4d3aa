//! [`Usage`]: how a user runs a kernel over objects, as data for command lines and interfaces.

/// Command-line description of a kernel.
#[derive(Debug)]
pub struct Usage {
    /// One line of help.
    pub about: &'static str,
    /// Further lines of help; empty if there is nothing to add.
    pub details: &'static str,
    /// Examples, one command a line.
    pub examples: &'static str,
    /// The objects that it reads.
    pub inputs: &'static [ObjectName],
    /// Its options.
    pub options: &'static [Choice],
    /// The object that it writes.
    pub output: OutputUse,
    /// True if [`super::Kernel::alternatives`] may be tried for the fastest.
    pub can_tune: bool,
}

/// An object that a command line names.
#[derive(Debug)]
pub struct ObjectName {
    /// Name of the argument in help texts.
    pub name: &'static str,
    /// Help.
    pub help: &'static str,
}

impl ObjectName {
    /// Two objects that are read together.
    pub const PAIR: &[Self] = &[
        Self { name: "LEFT", help: "Name of the first object" },
        Self { name: "RIGHT", help: "Name of the second object" },
    ];
}

/// An option.
#[derive(Debug)]
pub struct Choice {
    /// Name, without dashes.
    pub name: &'static str,
    /// Name of its value in help texts.
    pub value_name: &'static str,
    /// Help.
    pub help: &'static str,
    /// Values that it takes.
    pub kind: Kind,
    /// Default; `None`: see `is_required`.
    pub default: Option<&'static str>,
    /// True if it must be given.
    pub is_required: bool,
    /// True if it is set when parameters are tuned, and so cannot be given then.
    pub is_tuned: bool,
}

/// Values that an option takes.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// Text that the kernel parses.
    Text,
    /// A size in bytes, such as 64K.
    Size,
    /// A number within these bounds.
    Number(u64, u64),
}

/// The object that a kernel writes.
#[derive(Debug)]
pub enum OutputUse {
    /// None.
    Never,
    /// One, if it is named; with this help.
    Optional(&'static str),
    /// Always one; with this help.
    Required(&'static str),
}

impl OutputUse {
    /// Always an object, next to the inputs.
    pub const ALWAYS: Self =
        Self::Required("Name of the object to write, as key-value chunks next to the inputs");
}

/// Values of options, as decimal numbers or text.
#[derive(Clone, Debug, Default)]
pub struct Arguments(Vec<(&'static str, String)>);

impl Arguments {
    /// Adds the value of an option.
    #[must_use]
    pub fn with(mut self, name: &'static str, value: impl ToString) -> Self {
        self.0.push((name, value.to_string()));
        self
    }

    /// Returns the value of an option.
    #[must_use]
    pub fn text(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(known, _)| *known == name).map(|(_, value)| &**value)
    }

    /// Returns the value of an option as a number; `None` if it is not given.
    ///
    /// # Errors
    /// The reason why it is not a number of this type, in words.
    pub fn number<T: std::str::FromStr>(&self, name: &str) -> Result<Option<T>, String> {
        let number = |text: &str| {
            text.parse().map_err(|_| format!("--{name} {text}: not a number that it takes"))
        };
        self.text(name).map(number).transpose()
    }
}
