//! The fields of every built-in fragment, in order: the one table behind builders and serialised forms.

use crate::fragment::convert::object;
use crate::fragment::tree::{Fragment, FragmentData};

/// One built-in fragment.
pub(super) struct FragmentKind {
    /// Its name, and its `type` when serialised.
    pub(super) name: &'static str,
    /// How its data looks.
    pub(super) shape: FragmentShape,
}

/// How the data of a built-in fragment looks.
pub(super) enum FragmentShape {
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
    pub(super) field_type: FieldType,
    /// Left out when it holds nothing.
    pub(super) optional: bool,
}

/// What a field holds.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum FieldType {
    /// A text, a number or a boolean.
    Text,
    /// A list of these.
    Texts,
    /// A list of any data, fragments among it.
    Data,
}

const fn required_text(name: &'static str) -> Field {
    Field {
        name,
        field_type: FieldType::Text,
        optional: false,
    }
}

const fn optional_text(name: &'static str) -> Field {
    Field {
        name,
        field_type: FieldType::Text,
        optional: true,
    }
}

const fn text_list(name: &'static str, optional: bool) -> Field {
    Field {
        name,
        field_type: FieldType::Texts,
        optional,
    }
}

const POLICIES: Field = Field {
    name: "policies",
    field_type: FieldType::Data,
    optional: true,
};

const fn object_kind(name: &'static str, fields: &'static [Field]) -> FragmentKind {
    FragmentKind {
        name,
        shape: FragmentShape::Fields(fields),
    }
}

const fn text_kind(name: &'static str, field: &'static str) -> FragmentKind {
    FragmentKind {
        name,
        shape: FragmentShape::Text(field),
    }
}

// Order is part of the format: builders fill by position, renderers show the fields in this order, and
// serialised documents list them so. New fields go last.
const KINDS: &[FragmentKind] = &[
    object_kind(
        "term",
        &[required_text("name"), required_text("definition")],
    ),
    text_kind("hint", "text"),
    object_kind(
        "guardrail",
        &[
            required_text("rule"),
            optional_text("reason"),
            optional_text("action"),
        ],
    ),
    object_kind(
        "explain",
        &[
            required_text("concept"),
            required_text("explanation"),
            optional_text("therefore"),
        ],
    ),
    object_kind(
        "example",
        &[
            required_text("question"),
            required_text("answer"),
            optional_text("note"),
        ],
    ),
    object_kind(
        "clarification",
        &[
            required_text("when"),
            required_text("ask"),
            required_text("reason"),
        ],
    ),
    object_kind(
        "workflow",
        &[
            required_text("task"),
            text_list("steps", false),
            text_list("triggers", true),
            optional_text("notes"),
        ],
    ),
    object_kind(
        "quirk",
        &[required_text("issue"), required_text("workaround")],
    ),
    object_kind(
        "styleGuide",
        &[
            required_text("prefer"),
            optional_text("never"),
            optional_text("always"),
        ],
    ),
    object_kind(
        "analogy",
        &[
            text_list("concepts", false),
            required_text("relationship"),
            optional_text("insight"),
            optional_text("therefore"),
            optional_text("pitfall"),
        ],
    ),
    FragmentKind {
        name: "glossary",
        shape: FragmentShape::Entries,
    },
    text_kind("role", "content"),
    object_kind(
        "principle",
        &[
            required_text("title"),
            required_text("description"),
            POLICIES,
        ],
    ),
    object_kind(
        "policy",
        &[
            required_text("rule"),
            optional_text("before"),
            optional_text("reason"),
            POLICIES,
        ],
    ),
    object_kind("identity", &[optional_text("name"), optional_text("role")]),
    object_kind(
        "persona",
        &[
            required_text("name"),
            optional_text("role"),
            optional_text("objective"),
            optional_text("tone"),
        ],
    ),
    object_kind("alias", &[required_text("term"), required_text("meaning")]),
    object_kind(
        "preference",
        &[required_text("aspect"), required_text("value")],
    ),
    object_kind(
        "correction",
        &[required_text("subject"), required_text("clarification")],
    ),
];

/// The built-in fragment of this name.
pub(super) fn builtin_kind(name: &str) -> Option<&'static FragmentKind> {
    KINDS.iter().find(|kind| kind.name == name)
}

/// A fragment of an object whose optional fields are left out when they hold nothing. `values` are
/// in the order of the table.
pub(super) fn build_fragment<const N: usize>(
    name: &'static str,
    values: [FragmentData; N],
) -> Fragment {
    let table = match builtin_kind(name).map(|kind| &kind.shape) {
        // Only objects come here: text and entry builders make their fragments themselves.
        Some(FragmentShape::Fields(fields)) => *fields,
        _ => &[],
    };
    debug_assert_eq!(table.len(), N, "a builder gives one value a field");
    Fragment::new(
        name,
        object(
            table
                // `zip` pairs each value with the field at its place; the assertion above guards against a
                // builder that forgot one.
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
