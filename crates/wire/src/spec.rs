//! [`FormatSpec`]: everything that differs between wire formats, behind one trait.
//!
//! Each format's folder implements it once, for a unit struct in its `spec.rs`; [`Format::spec`] (in `formats.rs`, the
//! only list of formats) gives the implementation. Code outside the format folders asks the trait and never matches on
//! a [`Format`], so that a new format is one folder and one line.
//!
//! The trait has two kinds of methods: conversions, which read and write documents, and facts, which are plain data
//! about a provider (its names, addresses and members). Facts do no I/O. `Ui` and `Items` are nobody's wire format:
//! they return `None`, or the defaults, wherever only a provider has an answer.

use contexture_ir::{Fields, Transcript};
use serde_json::json;
use serde_json::value::RawValue;

use crate::framing::{FrameReader, SseReader};
use crate::http_profile::HttpProfile;
use crate::model::chunk::{CacheTtl, Chunk, Dialect, Envelope};
use crate::model::conversion::{DocumentKind, Lifted, Lowered};
use crate::model::error::WireError;
use crate::model::format::Format;
use crate::model::name_rule::NameRule;
use crate::model::paired_item::RoleRun;
use crate::model::repair_rules::RepairRules;
use crate::model::structure::Structure;
use crate::proxy::ProxyEdits;
use crate::stream::StreamParser;

/// Everything that differs between wire formats. One implementation per format folder.
pub trait FormatSpec: Sync {
    /// Returns the format that is described.
    fn format(&self) -> Format;

    /// Returns the names of the format's maker in other vocabularies.
    fn identity(&self) -> &'static Identity;

    /// Reads a document: a request, a response or a bare array of messages.
    ///
    /// The text is JSON; truncation marks of a response are still in place.
    ///
    /// # Errors
    /// [`WireError::WrongShape`] or [`WireError::Invalid`]; for UI messages also [`WireError::InvalidUi`].
    fn parse(&self, json: &str) -> Result<Lifted, WireError>;

    /// Writes a response body.
    fn encode_response(&self, response: &Transcript) -> Lowered;

    /// Writes a whole document at once; `None` if it is to be put together from an envelope and runs, which is how
    /// providers' requests and arrays of messages are written.
    fn encode_document(&self, kind: DocumentKind, transcript: &Transcript) -> Option<Lowered> {
        (kind == DocumentKind::Response).then(|| self.encode_response(transcript))
    }

    /// Writes everything of a request but its history; empty for formats without runs.
    fn encode_envelope(&self, _dialect: &Dialect, _request: &Transcript) -> Envelope {
        Envelope::default()
    }

    /// Writes the instructions as elements that lead a bare array of messages, for formats whose envelope puts them
    /// elsewhere but whose array can hold them.
    fn encode_listed_instructions(
        &self,
        _dialect: &Dialect,
        _request: &Transcript,
    ) -> Option<String> {
        None
    }

    /// Gives a lowered history the shape it had in the request it came from, where the format has more than one.
    fn restore_history_shape(
        &self,
        _request: &Transcript,
        _envelope: &mut Envelope,
        _chunks: &mut Vec<String>,
    ) {
    }

    /// Writes one run of a history; empty for formats without runs.
    fn encode_run(&self, _dialect: &Dialect, _run: &RoleRun<'_, '_>) -> Chunk {
        Chunk::default()
    }

    /// Returns a parser for a streamed answer; `None` for formats that are no provider's.
    fn stream(&self) -> Option<Box<dyn StreamParser>> {
        None
    }

    /// Returns the dialect of the format's current models.
    fn dialect(&self) -> Dialect {
        Dialect {
            format: self.format(),
            mid_system: true,
            developer_role: true,
            signed_calls: false,
        }
    }

    /// Returns what the format's current models demand of a history.
    fn repair_rules(&self) -> RepairRules {
        RepairRules::pairs_only(self.format())
    }

    /// Returns the rule for names of functions; `None` if any name is accepted.
    fn name_rule(&self) -> Option<&'static NameRule> {
        None
    }

    /// Returns how the members of a request and a response are spelled; `None` for formats that are no provider's.
    fn members(&self) -> Option<&'static RequestMembers> {
        None
    }

    /// Returns how the format arranges a history.
    fn structure(&self) -> &'static Structure {
        &Structure::AS_STORED
    }

    /// Returns the rules for cache markers; `None` where a provider caches without them.
    fn markers(&self) -> Option<&'static dyn CacheMarkers> {
        None
    }

    /// Returns how the provider is reached over HTTP; `None` for formats that are no provider's.
    fn http(&self) -> Option<&'static HttpProfile> {
        None
    }

    // What follows is what servers and HTTP clients ask.

    /// Returns a reader for the frames of a streamed answer.
    fn frame_reader(&self) -> Box<dyn FrameReader> {
        Box::new(SseReader::default())
    }

    /// Returns an error of a proxy in the shape of the provider's errors, as JSON.
    fn error_body(&self, error: &ProxyError<'_>) -> String {
        json!({"error": {"code": error.code, "message": error.message}}).to_string()
    }

    /// Returns a header that errors of the provider have beside their body.
    fn error_header(&self, _error: &ProxyError<'_>) -> Option<(&'static str, &'static str)> {
        None
    }

    /// Returns what a proxy edits in requests and answers; `None` for formats that are no provider's.
    fn proxy(&self) -> Option<&'static dyn ProxyEdits> {
        None
    }

    /// Returns the smallest response by which a model says a text and is done; `None` for formats that are no provider's.
    fn text_response(&self, _text: &str) -> Option<String> {
        None
    }
}

/// The names of a format's maker in other vocabularies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The provider in the model catalogue whose own models speak the format; `None` if it is nobody's own.
    pub catalogue_provider: Option<&'static str>,
    /// The value of OpenTelemetry's `gen_ai.provider.name`; a compatible host goes by the original's name.
    pub otel_provider: &'static str,
    /// What stands before the `:` in the type of an extension item that is verbatim this provider's.
    pub extension_slug: &'static str,
    /// Whether an extension item whose type has no `:` is this format's own.
    pub bare_extensions: bool,
    /// How the `format` of opaque reasoning begins that this provider can read back; `None` if it reads none. A
    /// provider that reads opaque reasoning also accepts reasoning that names no maker.
    pub opaque_maker: Option<&'static str>,
    /// Which providers' models accept the format.
    pub hosts: FormatHosts,
}

/// Which providers' models accept a format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FormatHosts {
    /// Only the provider's own.
    Own,
    /// The provider's own, and hosts whose first format is Chat Completions.
    OwnAndCompatible,
    /// All, in one way or another.
    Any,
}

/// How the members of a format's requests and responses are spelled. Where a member has several spellings, the first is
/// the one that is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestMembers {
    /// The system prompt; empty where it stands among the messages.
    pub instructions: &'static [&'static str],
    /// The array of the history.
    pub history: &'static str,
    /// The content of one element of the history.
    pub content: &'static str,
    /// Everything a compiled request replaces in the client's: one entry per thing.
    pub compiled: &'static [&'static [&'static str]],
    /// The choice of tools.
    pub tool_choice: &'static [&'static str],
    /// The token usage of a response.
    pub usage: &'static str,
    /// The members that ask for a stream, with their values as JSON; empty where the address asks for it.
    pub stream: &'static [(&'static str, &'static str)],
}

/// An error of a proxy itself, which is answered in the shape of the provider's errors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProxyError<'a> {
    /// The HTTP status.
    pub status: u16,
    /// The word for programs.
    pub code: &'a str,
    /// The text for people.
    pub message: &'a str,
}

/// The cache markers of a provider: members that say that the prefix up to and including their block is worth caching.
pub trait CacheMarkers: Sync {
    /// Returns the name of the member that is a marker.
    fn field(&self) -> &'static str;

    /// Returns the marker's value, as JSON.
    fn value(&self, ttl: CacheTtl) -> &'static str;

    /// Returns the blocks of an element of the history among which one can carry a marker, and the type of the block
    /// that a bare string in their place stands for; `None` if nothing of the element can.
    fn content<'a>(&self, element: &Fields<'a>) -> Option<(&'a RawValue, &'static str)>;

    /// Reports whether the provider accepts a marker on a block of this type; of unknown types it is assumed not to.
    fn can_carry(&self, kind: &str, block: &Fields<'_>) -> bool;

    /// Returns the type of a block that a bare string before the history stands for; `None` if no marker can stand
    /// there.
    fn head_block(&self) -> Option<&'static str> {
        None
    }

    /// Returns the member of a request by which the provider is told to set no markers by itself.
    fn automatic_option(&self) -> Option<&'static str> {
        None
    }
}
