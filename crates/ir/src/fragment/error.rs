//! What can be wrong with fragments in JSON.

use super::tree::MAX_DEPTH;

/// JSON that is not fragments, or fragments that have no JSON.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FragmentError {
    /// The text is not JSON.
    #[error("not JSON")]
    Json {
        /// The parser's own account.
        #[source]
        source: serde_json::Error,
    },
    /// The document is neither a list of fragments nor an object that holds one.
    #[error("expected an array of fragments or {{\"fragments\": […]}}, found {found}")]
    NotFragments {
        /// A word for what stands there.
        found: String,
    },
    /// An element of the list is at fault.
    #[error("fragment {index}: {error}")]
    At {
        /// Its place, from 0.
        index: usize,
        /// The error at that place.
        error: Box<FragmentError>,
    },
    /// The tree has too many levels.
    #[error(
        "nested more than {MAX_DEPTH} levels deep; flatten it or move the inner part to a fragment of its own"
    )]
    TooDeep,
    /// The value is neither of the two shapes.
    #[error("expected {{\"name\": …, \"data\": …}} or {{\"type\": …}}, found {found}")]
    NotAFragment {
        /// A word for what stands there.
        found: String,
    },
    /// A message where only data may stand.
    #[error(
        "`{name}` is a message, and messages have no serialised form as fragments; pass it in the history"
    )]
    Message {
        /// The fragment's name or type.
        name: String,
    },
    /// No built-in type has this name, and no registered one took the fragment.
    #[error(
        "no serialised type for a fragment named `{name}`; register one, or write it as {{\"name\", \"data\"}}"
    )]
    UnsupportedName {
        /// The fragment's name.
        name: String,
    },
    /// No type of this name is built in or registered.
    #[error(
        "unknown serialised fragment type `{kind}`; register it, or write the fragment as {{\"name\", \"data\"}}"
    )]
    UnsupportedType {
        /// The unknown fragment type.
        kind: String,
    },
    /// The fragment has the name of a built-in type but not its data.
    #[error(
        "a fragment named `{name}` must be made by its builder to be serialised: expected {expected}"
    )]
    Shape {
        /// The fragment's name.
        name: String,
        /// What the type's data is.
        expected: String,
    },
    /// A field that the type needs is absent.
    #[error("`{kind}` needs a field `{field}`")]
    MissingField {
        /// The fragment's type or name.
        kind: String,
        /// The name of the field.
        field: String,
    },
    /// A field has the wrong type.
    #[error("field `{field}` of `{kind}`: expected {expected}, found {found}")]
    Field {
        /// The fragment's type or name.
        kind: String,
        /// The name of the field.
        field: String,
        /// What may stand there.
        expected: &'static str,
        /// A word for what stands there.
        found: String,
    },
    /// A field that the type does not have, and that would be lost.
    #[error("`{kind}` has no field `{field}`")]
    UnexpectedField {
        /// The fragment's type or name.
        kind: String,
        /// The name of the field.
        field: String,
    },
    /// A registered type refused a fragment or a document.
    #[error("registered fragment type `{kind}` failed")]
    Registered {
        /// The fragment type.
        kind: String,
        /// Its own account.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}
