//! The fields of every built-in fragment, in order: the one table behind builders and serialised
//! forms.

use super::convert::object;
use super::tree::{Fragment, FragmentData};

/// One built-in fragment.
pub(super) struct Kind {
    /// Its name, and its `type` when serialised.
    pub(super) name: &'static str,
    /// How its data looks.
    pub(super) shape: Shape,
}

/// How the data of a built-in fragment looks.
pub(super) enum Shape {
    /// One text; serialised under this field.
    Text(&'static str),
    /// An object of these fields.
    Fields(&'static [Field]),
    /// A list of `{term, expression}`; serialised as one object under `entries`.
    Entries,
}

/// One field of an object.
pub(super) struct Field {
    pub(super) name: &'static str,
    pub(super) holds: Holds,
    /// Left out when it holds nothing.
    pub(super) optional: bool,
}

/// What a field holds.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Holds {
    /// A text, a number or a boolean.
    Text,
    /// A list of these.
    Texts,
    /// A list of any data, fragments among it.
    Data,
}

const fn need(name: &'static str) -> Field {
    Field {
        name,
        holds: Holds::Text,
        optional: false,
    }
}

const fn may(name: &'static str) -> Field {
    Field {
        name,
        holds: Holds::Text,
        optional: true,
    }
}

const fn list(name: &'static str, optional: bool) -> Field {
    Field {
        name,
        holds: Holds::Texts,
        optional,
    }
}

const POLICIES: Field = Field {
    name: "policies",
    holds: Holds::Data,
    optional: true,
};

const fn fields(name: &'static str, fields: &'static [Field]) -> Kind {
    Kind {
        name,
        shape: Shape::Fields(fields),
    }
}

const fn text(name: &'static str, field: &'static str) -> Kind {
    Kind {
        name,
        shape: Shape::Text(field),
    }
}

const KINDS: &[Kind] = &[
    fields("term", &[need("name"), need("definition")]),
    text("hint", "text"),
    fields("guardrail", &[need("rule"), may("reason"), may("action")]),
    fields(
        "explain",
        &[need("concept"), need("explanation"), may("therefore")],
    ),
    fields("example", &[need("question"), need("answer"), may("note")]),
    fields(
        "clarification",
        &[need("when"), need("ask"), need("reason")],
    ),
    fields(
        "workflow",
        &[
            need("task"),
            list("steps", false),
            list("triggers", true),
            may("notes"),
        ],
    ),
    fields("quirk", &[need("issue"), need("workaround")]),
    fields("styleGuide", &[need("prefer"), may("never"), may("always")]),
    fields(
        "analogy",
        &[
            list("concepts", false),
            need("relationship"),
            may("insight"),
            may("therefore"),
            may("pitfall"),
        ],
    ),
    Kind {
        name: "glossary",
        shape: Shape::Entries,
    },
    text("role", "content"),
    fields("principle", &[need("title"), need("description"), POLICIES]),
    fields(
        "policy",
        &[need("rule"), may("before"), may("reason"), POLICIES],
    ),
    fields("identity", &[may("name"), may("role")]),
    fields(
        "persona",
        &[need("name"), may("role"), may("objective"), may("tone")],
    ),
    fields("alias", &[need("term"), need("meaning")]),
    fields("preference", &[need("aspect"), need("value")]),
    fields("correction", &[need("subject"), need("clarification")]),
];

/// The built-in fragment of this name.
pub(super) fn kind(name: &str) -> Option<&'static Kind> {
    KINDS.iter().find(|kind| kind.name == name)
}

/// A fragment of an object whose optional fields are left out when they hold nothing. `values` are
/// in the order of the table.
pub(super) fn build<const N: usize>(name: &'static str, values: [FragmentData; N]) -> Fragment {
    let table = match kind(name).map(|kind| &kind.shape) {
        Some(Shape::Fields(fields)) => *fields,
        _ => &[],
    };
    debug_assert_eq!(table.len(), N, "a builder gives one value a field");
    Fragment::new(
        name,
        object(
            table
                .iter()
                .zip(values)
                .filter(|(field, value)| !(field.optional && is_empty(value)))
                .map(|(field, value)| (field.name, value)),
        ),
    )
}

/// Whether an optional field of this value is left out.
pub(super) fn is_empty(value: &FragmentData) -> bool {
    match value {
        FragmentData::Null => true,
        FragmentData::Text(text) => text.is_empty(),
        FragmentData::Array(items) => items.is_empty(),
        _ => false,
    }
}
