//! [`FormatSpec`]: everything that differs between wire formats, behind one trait.
//!
//! Each format's folder implements it once, for a unit struct in its `spec.rs`; [`Format::spec`] (in `formats.rs`, the
//! only list of formats) gives the implementation. Code outside the format folders asks the trait and never matches on
//! a [`Format`], so that a new format is one folder, a variant with its names in `model/format.rs`, and a line in
//! `formats.rs`.
//!
//! The trait has two kinds of methods: conversions, which read and write documents, and facts, which are plain data
//! about a provider (its names, addresses and members). Facts do no I/O. `Ui` and `Items` are nobody's wire format:
//! they return `None`, or the defaults, wherever only a provider has an answer.

use std::collections::BTreeMap;

use contexture_ir::{Cancel, Fields, Item, Raw, Transcript, Usage};
use serde_json::json;
use serde_json::value::RawValue;

use crate::framing::{FrameReader, SseReader};
use crate::http_profile::HttpProfile;
use crate::model::call_ids::HostedHalf;
use crate::model::chunk::{CacheTtl, Chunk, Dialect, Envelope};
use crate::model::conversion::{DocumentKind, Lifted, Lowered};
use crate::model::error::WireError;
use crate::model::evidence::Evidence;
use crate::model::format::Format;
use crate::model::name_rule::NameRule;
use crate::model::overhead::Overhead;
use crate::model::paired_item::RoleRun;
use crate::model::prompt_cache::{CacheKeyRules, OutlineVisitor};
use crate::model::repair_rules::{ItemRepair, RepairRules, Thinking, ToolRules};
use crate::model::structure::Structure;
use crate::proxy::ProxyEdits;
use crate::stream::{StreamFailure, StreamParser};
use crate::too_long::TooLong;

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
    /// [`WireError::WrongShape`] or [`WireError::Invalid`]; for UI messages also [`WireError::InvalidUi`]. Called off,
    /// [`WireError::Cancelled`], or [`WireError::Invalid`] with [`Error::Cancelled`](contexture_ir::Error::Cancelled).
    fn parse(&self, json: &str, cancel: Option<&Cancel>) -> Result<Lifted, WireError>;

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

    /// Returns an item without the `null`s that a document of this format had where its schema wants a value; `None` if
    /// the item has none. Such a `null` says nothing, so leaving it out is not reported.
    fn without_refused_nulls(&self, _item: &Item) -> Option<Item> {
        None
    }

    /// Returns what is wrong with an item whatever stands beside it; `None` if nothing is.
    fn repair_item(&self, _item: &Item) -> Option<ItemRepair> {
        None
    }

    /// Returns what is wrong with the items of a history, by their indices; some of it depends on the other items.
    fn repair_items(&self, items: &[&Item]) -> BTreeMap<usize, ItemRepair> {
        let repairs = items.iter().enumerate();
        repairs
            .filter_map(|(index, item)| Some((index, self.repair_item(item)?)))
            .collect()
    }

    /// Returns the half of a pair that an item is whose call and result the provider makes both, with the id they share;
    /// `None` for all other items.
    fn hosted_half(&self, _item: &Item) -> Option<HostedHalf> {
        None
    }

    /// Returns what the provider demands of the tools that a request offers.
    fn tool_rules(&self) -> ToolRules {
        ToolRules::NONE
    }

    /// Returns how a request has its model think.
    fn thinking(&self, _request: &Transcript) -> Thinking {
        Thinking::Off
    }

    /// Returns the member of a request that says how to think, where [`read_thinking`](Self::read_thinking) reads it.
    fn thinking_member(&self) -> Option<&'static str> {
        None
    }

    /// Reads the value of [`thinking_member`](Self::thinking_member).
    fn read_thinking(&self, _value: &Raw) -> Thinking {
        Thinking::Off
    }

    /// Takes out of a request what has its model think.
    fn remove_thinking(&self, _request: &mut Transcript) {}

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

    /// Returns what in an object speaks for the format: a request, a response or a single message. `None` if nothing
    /// does.
    fn detect_object(&self, _object: &Fields<'_>) -> Option<Evidence> {
        None
    }

    /// Returns what in an array of messages speaks for the format; elements that are no objects come as empty ones.
    /// `None` if nothing does.
    fn detect_messages(&self, _messages: &[Fields<'_>]) -> Option<Evidence> {
        None
    }

    /// Returns how the options of a request are spelled that a caller may also set as parameters.
    fn option_members(&self) -> &'static OptionMembers {
        &OptionMembers::SNAKE_CASE
    }

    /// Returns the paths at which the array of tools may stand in a request; the first that does counts.
    fn tool_paths(&self) -> &'static [&'static [&'static str]] {
        &[&["tools"]]
    }

    /// Returns the tokens that the format adds around the text it is given.
    fn overhead(&self) -> &'static Overhead {
        &Overhead::NONE
    }

    /// Returns the members of a request, those of its members too, that the provider documents as settings of sampling,
    /// storage, billing or the answer's form on the wire: nothing of them is text that the model reads.
    fn silent_members(&self) -> &'static [&'static str] {
        &[]
    }

    /// Returns the members of an item's or part's own fields that hold text which the provider sealed and bills.
    fn sealed_members(&self) -> &'static [&'static str] {
        &[]
    }

    /// Returns how many tokens an answer wrote to the cache for the long time; `None` if its usage does not say.
    fn long_cache_write(&self, _usage: &Usage) -> Option<u64> {
        None
    }

    /// Returns what the provider's prompt cache compares beside the text.
    fn cache_key(&self) -> &'static CacheKeyRules {
        &CacheKeyRules::NONE
    }

    /// Gives the blocks of a request to a visitor, in the cache's order; settings are not among them.
    ///
    /// # Errors
    /// What was expected instead, as a sentence fragment.
    fn outline<'a>(
        &self,
        _body: &Fields<'a>,
        _visitor: &mut dyn OutlineVisitor<'a>,
    ) -> Result<(), &'static str> {
        Err("only providers' formats are sent to a cache")
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

    /// Reports whether a request asks the provider to drop thinking that stands behind another history than the one it
    /// was answered to, instead of refusing it.
    fn drops_edited_thinking(&self, _request: &Fields<'_>) -> bool {
        false
    }

    /// Returns an error of a proxy in the shape of the provider's errors, as JSON.
    fn error_body(&self, error: &ProxyError<'_>) -> String {
        json!({"error": {"code": error.code, "message": error.message}}).to_string()
    }

    /// Reads the answer of a provider that refused a request because its model cannot hold it; `None` for every other
    /// answer. The count and the limit are the provider's, where its text has them.
    ///
    /// ```
    /// use contexture_wire::Format;
    ///
    /// let body = r#"{"error": {"message": "prompt is too long: 208310 tokens > 200000 maximum"}}"#;
    /// let refused = Format::Anthropic.spec().too_long(400, body).unwrap();
    /// assert_eq!((refused.tokens, refused.limit), (Some(208_310), Some(200_000)));
    /// assert_eq!(Format::Anthropic.spec().too_long(429, body), None);
    /// ```
    fn too_long(&self, status: u16, body: &str) -> Option<TooLong> {
        // The words are looked for in every format: compatible hosts answer in words of their own. The statuses are those
        // with which a request is refused for what it is; no other is read, whatever it quotes.
        let is_refusal = matches!(status, 400 | 413 | 422);
        is_refusal
            .then(|| TooLong::from_failure(&StreamFailure::from_body(body)))
            .flatten()
    }

    /// Reports whether a member of a request asks the provider to cut what is too long, instead of refusing it.
    fn asks_to_cut(&self, _member: &str, _value: &str) -> bool {
        false
    }

    /// Names what a member of a request has the provider add to it that nobody else can count: a history it keeps, servers it
    /// asks, a mode of thinking. `None` for all other members.
    fn uncounted_member(&self, _member: &str, _value: &str) -> Option<&'static str> {
        None
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

impl Identity {
    /// Reports whether an extension item of this type is verbatim this provider's, which alone is sent it.
    #[must_use]
    pub fn owns_extension(&self, kind: &str) -> bool {
        match kind.split_once(':') {
            Some((slug, _)) => slug == self.extension_slug,
            None => self.bare_extensions,
        }
    }

    /// Reports whether the provider can read opaque content of this format back; `None` names no maker.
    #[must_use]
    pub fn reads_opaque(&self, format: Option<&str>) -> bool {
        let Some(maker) = self.opaque_maker else {
            return false;
        };
        format.is_none_or(|format| format.starts_with(maker))
    }

    /// Reports whether an item is thinking that the provider has signed or sealed, and reads back.
    #[must_use]
    pub fn is_signed_thinking(&self, item: &Item) -> bool {
        let Item::Reasoning(thinking) = item else {
            return false;
        };
        let sealed = thinking.signature.is_some() || thinking.encrypted_content.is_some();
        sealed && self.reads_opaque(thinking.format.as_deref())
    }
}

/// How the options of a request are spelled that a caller may also set as parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OptionMembers {
    /// The member that holds them; `None` where they are members of the request itself.
    pub holder: Option<&'static str>,
    /// The members for the limit of output tokens, one per spelling.
    pub output_limit: &'static [&'static str],
    /// The member for the sampling temperature.
    pub temperature: &'static str,
    /// The member for the share of the likeliest tokens that are sampled from.
    pub top_p: &'static str,
}

impl OptionMembers {
    /// The most common spelling.
    pub(crate) const SNAKE_CASE: Self = Self {
        holder: None,
        output_limit: &["max_tokens"],
        temperature: "temperature",
        top_p: "top_p",
    };
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
    /// The members that name a history which the provider keeps, or a part of one, in all spellings.
    pub provider_history: &'static [&'static str],
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

/// The cache markers of a provider: they say that the prefix up to and including their block is worth caching.
///
/// A marker is a member of the marked block or, where [`is_own_block`](Self::is_own_block) says so, a block with this one
/// member that follows the marked one.
pub trait CacheMarkers: Sync {
    /// Returns the name of the member that is a marker.
    fn field(&self) -> &'static str;

    /// Returns the marker's value, as JSON.
    fn value(&self, ttl: CacheTtl) -> &'static str;

    /// Reports whether a marker is a block of its own behind the marked block, instead of a member of it.
    fn is_own_block(&self) -> bool {
        false
    }

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

    /// Returns the path of the blocks of a part before the history.
    fn head_path(&self, part: HeadPart) -> &'static [&'static str] {
        match part {
            HeadPart::Tools => &["tools"],
            HeadPart::System => &["system"],
        }
    }

    /// Reports whether the marker may be a member of the request itself: the provider then moves it by itself.
    fn can_mark_request(&self) -> bool {
        false
    }

    /// Returns the member of a request by which the provider is told to set no markers by itself, with its value as JSON.
    fn automatic_option(&self) -> Option<(&'static str, &'static str)> {
        None
    }

    /// Returns how many markers a request may have; `None` if no limit is known.
    fn max_markers(&self) -> Option<usize> {
        None
    }

    /// Returns for how long the marker in a block asks to cache; `None` if there is none.
    fn marker_in(&self, block: &Fields<'_>) -> Option<CacheTtl> {
        let marker = Fields::parse(block.get(&[self.field()])?.get()).ok()?;
        Some(match marker.get(&["ttl"]).map(RawValue::get) {
            // The long times of the known providers; whatever else stands there is treated as the usual one.
            Some("\"1h\"" | "\"12h\"") => CacheTtl::Long,
            _ => CacheTtl::Usual,
        })
    }

    /// Returns for how long a block asks to cache that is a marker by itself; `None` if it is something else.
    fn marker_of_block(&self, block: &RawValue) -> Option<CacheTtl> {
        // Most blocks are none, and the look at the name spares parsing them.
        let may_be = self.is_own_block() && block.get().contains(self.field());
        may_be.then_some(())?;
        self.marker_in(&Fields::parse(block.get()).ok()?)
    }
}

/// A part of what stands before the history's array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeadPart {
    /// The definitions of tools.
    Tools,
    /// The system prompt, where it does not stand among the messages.
    System,
}

#[cfg(test)]
pub(crate) mod samples {
    use super::*;

    /// Rules of a provider whose marker is a block of its own behind the marked one.
    #[derive(Debug)]
    pub(crate) struct OwnBlocks;

    impl CacheMarkers for OwnBlocks {
        fn field(&self) -> &'static str {
            "cachePoint"
        }

        fn value(&self, _ttl: CacheTtl) -> &'static str {
            r#"{"type":"default"}"#
        }

        fn is_own_block(&self) -> bool {
            true
        }

        fn content<'a>(&self, element: &Fields<'a>) -> Option<(&'a RawValue, &'static str)> {
            Some((element.get(&["content"])?, ""))
        }

        fn can_carry(&self, _kind: &str, block: &Fields<'_>) -> bool {
            block.get(&["text"]).is_some()
        }

        fn head_path(&self, part: HeadPart) -> &'static [&'static str] {
            match part {
                HeadPart::Tools => &["toolConfig", "tools"],
                HeadPart::System => &["system"],
            }
        }
    }
}
