//! Errors over HTTP: problem details (RFC 9457), and the codes that programs decide by.

use std::borrow::Cow;
use std::error::Error;
use std::fmt::Write as _;

use contexture::EngineError;
use contexture::compile::Refusal;
use contexture::store::Error as StoreError;
use serde::Serialize;
use serde_json::{Map, Value, json};
use utoipa::openapi::schema::AnyOfBuilder;
use utoipa::openapi::{ObjectBuilder, Ref, RefOr, Schema, Type};
use utoipa::{PartialSchema, ToSchema};

/// An error in the format of problem details (RFC 9457), `application/problem+json`.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct ProblemDocument {
    /// URN of the error: `urn:contexture:problem:` and the code.
    #[serde(rename = "type")]
    kind: String,
    /// The code in words.
    title: String,
    /// The HTTP status.
    status: u16,
    /// Description of this occurrence: what happened, and to what.
    detail: String,
    /// Stable word that programs decide by. Words are added, so a program must expect others.
    #[schema(schema_with = code_schema)]
    code: &'static str,
    /// Whether the same request, unchanged, may succeed later.
    retryable: bool,
    /// Further members that depend on the code, such as `expected` and `actual` of `head_moved`.
    #[serde(flatten)]
    #[schema(value_type = BTreeMap<String, Value>)]
    more: Map<String, Value>,
}

impl ProblemDocument {
    /// Creates the document of an error with this code, HTTP status and detail.
    #[must_use]
    pub fn new(code: &'static str, status: u16, detail: String) -> Self {
        let mut title = code.replace('_', " ");
        // Words are ASCII, so the first byte is the first letter.
        if let Some(first) = title.get_mut(..1) {
            first.make_ascii_uppercase();
        }
        Self {
            kind: format!("urn:contexture:problem:{code}"),
            title,
            status,
            detail,
            code,
            // Most errors come again with the same request, so a caller must ask for `retryable`.
            retryable: false,
            more: Map::new(),
        }
    }

    /// Returns the same document for an error after which the unchanged request may succeed later.
    #[must_use]
    pub fn retryable(self) -> Self {
        Self {
            retryable: true,
            ..self
        }
    }

    /// Returns the same document with further members, such as `expected` and `actual`.
    #[must_use]
    pub fn with_members(self, more: Map<String, Value>) -> Self {
        Self { more, ..self }
    }
}

/// Returns what programs may want to know of an engine's error beside its code: the members of a problem document.
#[must_use]
pub fn engine_error_members(error: &EngineError) -> Map<String, Value> {
    let members = match error {
        EngineError::Store(error) => store_error_members(error),
        EngineError::Refused(Refusal::DoesNotFit {
            needed,
            allowed,
            window,
            reserve,
            segments,
        }) => json!({
            "needed": needed, "allowed": allowed, "window": window, "reserve": reserve, "segments": segments,
        }),
        _ => Value::Null,
    };
    match members {
        Value::Object(members) => members,
        _ => Map::new(),
    }
}

fn store_error_members(error: &StoreError) -> Value {
    match error {
        StoreError::NotFound { what, name } => json!({"what": what.to_string(), "name": name}),
        StoreError::Ambiguous { candidates, .. } => json!({"candidates": candidates}),
        StoreError::HeadMoved {
            expected, actual, ..
        } => {
            let [expected, actual] = [expected, actual].map(|head| head.map(|id| id.to_string()));
            json!({"expected": expected, "actual": actual})
        }
        StoreError::VersionConflict {
            expected, actual, ..
        } => json!({"expected": expected, "actual": actual}),
        // Machine-readable, so that a program can split what it asks for without parsing the detail.
        StoreError::Limit { limit, max, actual } => {
            json!({"limit": limit, "max": max, "asked": actual})
        }
        _ => Value::Null,
    }
}

fn code_schema() -> Schema {
    let library_word = ObjectBuilder::new().schema_type(Type::String);
    let text =
        "Stable word that programs decide by. Words are added, so a program must expect others.";
    let builder = AnyOfBuilder::new()
        .item(Ref::from_schema_name(Code::name()))
        .item(library_word)
        .description(Some(text));
    Schema::AnyOf(builder.build())
}

/// The kind of an error, for programs. Words are added, never changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Code {
    /// A path segment cannot be read.
    BadPath,
    /// A query parameter is unknown or cannot be read.
    BadQuery,
    /// A header cannot be read, or contradicts another.
    BadHeader,
    /// The body is not JSON.
    BadJson,
    /// The body is JSON of another shape, or was cut off.
    BadBody,
    /// A message or an item has none of the shapes that are read.
    BadMessage,
    /// A pagination cursor is not one that this list gave.
    BadCursor,
    /// The owner has nothing of this name.
    NotFound,
    /// The path has no such method.
    MethodNotAllowed,
    /// The body is larger than the server takes.
    BodyTooLarge,
    /// The body has a content type that the route does not read.
    UnsupportedMediaType,
    /// No key was sent, or an unknown one.
    Unauthenticated,
    /// The key lacks the scope that the route requires.
    MissingScope,
    /// A page of another site called a server without keys.
    ForeignOrigin,
    /// The owner exceeds its rate or concurrency limit.
    TooManyRequests,
    /// The answer did not begin in time.
    TimedOut,
    /// Other requests take all the memory that the server has for them.
    Overloaded,
    /// The branch has another head than `if-match` names.
    HeadMoved,
    /// The resource has another version than `if-match` names.
    VersionMoved,
    /// The idempotency key was used for another request.
    KeyReused,
    /// The request of this idempotency key is still running.
    InProgress,
    /// `accept` allows none of the media types that are served.
    NotAcceptable,
    /// The word of a library's error, which comes with its own HTTP status.
    Custom(&'static str),
}

impl PartialSchema for Code {
    fn schema() -> RefOr<Schema> {
        let text = "Code of an error that the API itself finds. Errors of the libraries below it have words of their own.";
        let builder = ObjectBuilder::new()
            .schema_type(Type::String)
            .enum_values(Some(Self::ALL.map(Self::as_str)))
            .description(Some(text));
        Schema::Object(builder.build()).into()
    }
}

impl ToSchema for Code {
    fn name() -> Cow<'static, str> {
        "ProblemCode".into()
    }
}

impl Code {
    /// All codes of the API itself, in the order of the variants.
    pub const ALL: [Self; 22] = [
        Self::BadPath,
        Self::BadQuery,
        Self::BadHeader,
        Self::BadJson,
        Self::BadBody,
        Self::BadMessage,
        Self::BadCursor,
        Self::NotFound,
        Self::MethodNotAllowed,
        Self::BodyTooLarge,
        Self::UnsupportedMediaType,
        Self::Unauthenticated,
        Self::MissingScope,
        Self::ForeignOrigin,
        Self::TooManyRequests,
        Self::TimedOut,
        Self::Overloaded,
        Self::HeadMoved,
        Self::VersionMoved,
        Self::KeyReused,
        Self::InProgress,
        Self::NotAcceptable,
    ];

    /// Returns the stable word of the code, as in `code` of the document.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::BadPath => "bad_path",
            Self::BadQuery => "bad_query",
            Self::BadHeader => "bad_header",
            Self::BadJson => "bad_json",
            Self::BadBody => "bad_body",
            Self::BadMessage => "bad_message",
            Self::BadCursor => "bad_cursor",
            Self::NotFound => "not_found",
            Self::MethodNotAllowed => "method_not_allowed",
            Self::BodyTooLarge => "body_too_large",
            Self::UnsupportedMediaType => "unsupported_media_type",
            Self::Unauthenticated => "unauthenticated",
            Self::MissingScope => "missing_scope",
            Self::ForeignOrigin => "foreign_origin",
            Self::TooManyRequests => "too_many_requests",
            Self::TimedOut => "timed_out",
            Self::Overloaded => "overloaded",
            Self::HeadMoved => "head_moved",
            // The store's own word, so that programs read one word for a moved version with and
            // without `if-match`.
            Self::VersionMoved => "version_conflict",
            Self::KeyReused => "idempotency_key_reused",
            Self::InProgress => "in_progress",
            Self::NotAcceptable => "not_acceptable",
            Self::Custom(word) => word,
        }
    }

    /// Returns whether the same request, unchanged, may succeed later.
    #[must_use]
    pub const fn is_retryable(self) -> bool {
        // These depend on time and load, not on what the request says.
        matches!(
            self,
            Self::TooManyRequests | Self::TimedOut | Self::Overloaded | Self::InProgress
        )
    }
}

/// Formats an error and its causes in one line. Causes that only repeat the text so far are left out.
///
/// ```
/// let error = contexture_api::parse_time("soon", 0).map_err(std::io::Error::other).unwrap_err();
/// assert!(!contexture_api::problem::error_chain(&error).contains('\n'));
/// ```
#[must_use]
pub fn error_chain(error: &dyn Error) -> String {
    let mut out = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let text = cause.to_string();
        // Errors of libraries often have their cause in their own text.
        if !out.contains(&text) {
            let _ = write!(out, ": {text}");
        }
        source = cause.source();
    }
    out
}
