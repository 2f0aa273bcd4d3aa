//! Names that a plan declares, and the numbers by which it refers to them: functions, and
//! variations of types that have a name of their own.

use std::collections::HashMap;

use crate::refusal::Refusal;
use crate::substrait::{Declaration, Extension, Urn, extension};

/// Name of the set of extensions that all names are said to belong to.
const URN: &str = "extension:org.csdstore:functions";
/// Number of that set in a plan.
const SET: u32 = 1;
/// Number of the first variation that is declared: those below are known without.
const FIRST_VARIATION: u32 = 16;

/// Names that a plan being written declares.
#[derive(Clone, Debug, Default)]
pub(crate) struct Named {
    functions: Vec<String>,
    variations: Vec<String>,
}

/// Returns the place of a name, which is added if it is new.
fn place(names: &mut Vec<String>, name: &str) -> u32 {
    let at = names.iter().position(|known| known == name).unwrap_or_else(|| {
        names.push(name.to_owned());
        names.len() - 1
    });
    u32::try_from(at).expect("a plan has fewer bytes")
}

impl Named {
    /// Returns the anchor of a function.
    pub(crate) fn function(&mut self, name: &str) -> u32 {
        place(&mut self.functions, name)
    }

    /// Returns the number of a type's variation.
    pub(crate) fn variation(&mut self, name: &str) -> u32 {
        FIRST_VARIATION + place(&mut self.variations, name)
    }

    /// Returns the declarations, and that of their set.
    pub(crate) fn declare(&self) -> (Vec<Urn>, Vec<Extension>) {
        let of = |anchor, name: &String| Declaration { urn: SET, anchor, name: name.clone() };
        let functions = (0..).zip(&self.functions);
        let functions = functions.map(|(at, name)| extension::Kind::Function(of(at, name)));
        let variations = (FIRST_VARIATION..).zip(&self.variations);
        let variations = variations.map(|(at, name)| extension::Kind::Variation(of(at, name)));
        let all = functions.chain(variations).map(|kind| Extension { kind: Some(kind) });
        (vec![Urn { anchor: SET, urn: URN.to_owned() }], all.collect())
    }
}

/// Names that a plan declares, which may be a stranger's.
#[derive(Clone, Debug, Default)]
pub(crate) struct Declared<'a> {
    functions: HashMap<u32, &'a str>,
    variations: HashMap<u32, &'a str>,
}

impl<'a> Declared<'a> {
    /// Returns what these extensions declare.
    pub(crate) fn new(extensions: &'a [Extension]) -> Self {
        let mut declared = Self::default();
        for extension in extensions {
            match &extension.kind {
                Some(extension::Kind::Function(function)) => {
                    // The types of arguments behind a colon: the arguments have types themselves.
                    let name = function.name.split(':').next().unwrap_or_default();
                    declared.functions.insert(function.anchor, name);
                }
                Some(extension::Kind::Variation(variation)) => {
                    declared.variations.insert(variation.anchor, &variation.name);
                }
                None => {}
            }
        }
        declared
    }

    /// Returns the name of a function.
    ///
    /// # Errors
    /// [`Refusal`] if it is not declared.
    pub(crate) fn function(&self, anchor: u32) -> Result<&'a str, Refusal> {
        let name = self.functions.get(&anchor).copied();
        name.ok_or_else(|| Refusal::new(format!("function {anchor}, which is not declared")))
    }

    /// Returns the name of a type's variation, if it has one.
    pub(crate) fn variation(&self, number: u32) -> Option<&'a str> {
        self.variations.get(&number).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_one_number_and_types_behind_a_function_do_not_matter() {
        let mut named = Named::default();
        let numbers = [named.function("add"), named.function("sum"), named.function("add")];
        assert_eq!((numbers, named.variation("zone x")), ([0, 1, 0], 16));
        let (_, mut extensions) = named.declare();
        let Some(extension::Kind::Function(first)) = &mut extensions[0].kind else { panic!() };
        first.name = "add:i64_i64".to_owned();
        let declared = Declared::new(&extensions);
        assert_eq!(declared.function(0).unwrap(), "add");
        assert_eq!(declared.variation(16), Some("zone x"));
        assert!(declared.function(2).is_err() && declared.variation(0).is_none());
    }
}
