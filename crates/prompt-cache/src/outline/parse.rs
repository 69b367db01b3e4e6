//! The outline of a request that is JSON text, block by block.
//!
//! For requests that others made: to compare two of them, or to replay recorded ones. What a payload's
//! own outline says of pieces, this says of blocks: each tool, each block of the system prompt, each
//! content block. Tokens are bounds from the texts in a block, media within wide ones. It knows of no
//! band, so all messages count as history.

use contexture_ir::{ContentHash, Fields, quote_json};
use contexture_tokens::{TokenBounds, TokenCounter};
use contexture_wire::{
    BlockContext, BlockOverhead, CacheTtl, Format, OutlineBlock, OutlineVisitor, RequestPart,
    marker_field,
};
use serde_json::value::RawValue;

use crate::framing::Framing;
use crate::outline::{Outline, OutlineSegment, SegmentStability};

/// A text without blanks of at least so many bytes is taken for media or something sealed.
const SEALED_BYTES: usize = 1_000;
/// How deep blocks stand in blocks: the content of a message, and that of a result.
const NESTED: usize = 2;
/// What a picture or a page weighs at most.
const MEDIA_TOKENS: u64 = 5_000;

/// Why a text has no outline.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OutlineError {
    /// It is no request of the format.
    #[error("expected a request in the format {format}: {expected}")]
    NotARequest {
        /// Format of the request.
        format: Format,
        /// What was expected.
        expected: &'static str,
    },
}

/// A request cut into the blocks that a cache compares.
#[derive(Debug)]
pub(crate) struct ParsedOutline<'a> {
    pub(crate) outline: Outline,
    /// The model it names.
    pub(crate) model: Option<String>,
    /// The text of each segment, as it stands in the request.
    pub(crate) texts: Vec<&'a str>,
    /// The text of each segment without markers and white space.
    pub(crate) bare: Vec<String>,
    pub(crate) fields: Fields<'a>,
}

impl Outline {
    /// The outline of a request in JSON.
    ///
    /// # Errors
    /// [`OutlineError`].
    pub fn parse_request(
        format: Format,
        request: &str,
        counter: &dyn TokenCounter,
    ) -> Result<Self, OutlineError> {
        Ok(parse_outline(format, request, counter)?.outline)
    }
}

/// Cuts a request.
pub(crate) fn parse_outline<'a>(
    format: Format,
    request: &'a str,
    counter: &dyn TokenCounter,
) -> Result<ParsedOutline<'a>, OutlineError> {
    let not = |expected| OutlineError::NotARequest { format, expected };
    let spec = format.spec();
    // Our own formats are never sent, so there is no cache that could compare them.
    if spec.members().is_none() {
        return Err(not("only providers' formats are sent to a cache"));
    }
    let fields = Fields::parse(request).map_err(|_| not("a JSON object"))?;
    let mut builder = OutlineBuilder {
        format,
        framing: Framing::for_format(format),
        counter,
        fields: &fields,
        open_settings: &[RequestPart::Form, RequestPart::Settings],
        segments: Vec::new(),
        texts: Vec::new(),
        bare: Vec::new(),
    };
    spec.outline(&fields, &mut builder).map_err(not)?;
    // A request without system prompt and messages still has a form.
    builder.add_settings_before(RequestPart::System);
    let OutlineBuilder {
        segments,
        texts,
        bare,
        ..
    } = builder;
    let model: Option<String> = fields
        .get(&["model"])
        .and_then(|model| serde_json::from_str(model.get()).ok());
    let mut scope = model.clone().unwrap_or_default();
    // Requests with different scopes never share a cache, so the scope is hashed before any segment.
    for (name, _) in spec.cache_key().scopes {
        scope.push('\n');
        scope.push_str(setting_value(&fields, &[name]));
    }
    Ok(ParsedOutline {
        outline: Outline {
            format,
            scope,
            segments,
            whole: automatic_marker(format, &fields),
        },
        model,
        texts,
        bare,
        fields,
    })
}

/// The marker at the top of a request, which the provider moves by itself.
#[must_use]
pub fn automatic_marker(format: Format, fields: &Fields<'_>) -> Option<CacheTtl> {
    let rules = format.spec().markers()?;
    if !rules.can_mark_request() {
        return None;
    }
    let marker = setting_value(fields, &[rules.field(), "type"]);
    let long = setting_value(fields, &[rules.field(), "ttl"]) == quote_json("1h");
    let ttl = if long {
        CacheTtl::Long
    } else {
        CacheTtl::Usual
    };
    (!marker.is_empty()).then_some(ttl)
}

/// What a request says for a setting; empty if nothing.
#[must_use]
pub fn setting_value<'a>(fields: &Fields<'a>, path: &[&str]) -> &'a str {
    let Some((first, rest)) = path.split_first() else {
        return "";
    };
    let found = fields.get(&[first]).map(|value| value.get());
    match (found, rest) {
        (None | Some("null"), _) => "",
        (Some(text), []) => text,
        (Some(text), rest) => Fields::parse(text).map_or("", |inner| setting_value(&inner, rest)),
    }
}

/// Makes segments of the blocks that a format finds in a request.
struct OutlineBuilder<'a, 'b> {
    format: Format,
    framing: Framing,
    counter: &'b dyn TokenCounter,
    fields: &'b Fields<'a>,
    /// The parts that are made of settings and still to come.
    open_settings: &'static [RequestPart],
    segments: Vec<OutlineSegment>,
    texts: Vec<&'a str>,
    bare: Vec<String>,
}

impl<'a> OutlineVisitor<'a> for OutlineBuilder<'a, '_> {
    fn visit_block(&mut self, block: OutlineBlock<'a, '_>) {
        self.add_settings_before(block.part);
        let tokens = self.block_tokens(&block);
        let bare = self.bare_block(&block);
        let mut segment = self.content_segment(&block, bare.len(), tokens);
        segment.hash = ContentHash::of(bare.as_bytes());
        self.segments.push(segment);
        self.texts.push(block.json.get());
        self.bare.push(bare);
    }
}

impl<'a> OutlineBuilder<'a, '_> {
    /// Adds the settings whose place in the cache's order is before a part.
    fn add_settings_before(&mut self, part: RequestPart) {
        while let [next, rest @ ..] = self.open_settings
            && *next < part
        {
            self.open_settings = rest;
            self.add_settings(*next);
        }
    }

    fn add_settings(&mut self, part: RequestPart) {
        let settings = self.format.spec().cache_key().settings;
        for (at, one) in settings.iter().enumerate() {
            if one.part != part {
                continue;
            }
            let text = setting_value(self.fields, one.path);
            let bare = normalize_block(self.format, text);
            // Settings are no content blocks: look-back does not count them, and none carries a marker.
            self.segments.push(OutlineSegment {
                path: one.path.join("."),
                bytes: bare.len(),
                markers: markers_in(self.format, text, NESTED),
                ..OutlineSegment::new(part, at, ContentHash::of(bare.as_bytes()))
            });
            self.texts.push(text);
            self.bare.push(bare);
        }
    }

    fn content_segment(
        &self,
        block: &OutlineBlock<'a, '_>,
        bytes: usize,
        tokens: TokenBounds,
    ) -> OutlineSegment {
        let mut markers = markers_in(self.format, block.json.get(), NESTED);
        markers.extend(block.marker);
        OutlineSegment {
            path: block.path.clone(),
            bytes,
            tokens,
            blocks: 1,
            stability: match block.part {
                RequestPart::Messages => SegmentStability::Onwards,
                _ => SegmentStability::Epoch,
            },
            can_carry: true,
            markers,
            ..OutlineSegment::new(block.part, block.index, ContentHash::of(b""))
        }
    }

    fn block_tokens(&self, block: &OutlineBlock<'a, '_>) -> TokenBounds {
        if block.part == RequestPart::Tools {
            return self.tool_tokens(block);
        }
        let beside = block.beside.map_or(TokenBounds::ZERO, |beside| {
            self.estimate_tokens(beside.get())
        });
        let overhead = match block.overhead {
            BlockOverhead::None => TokenBounds::ZERO,
            BlockOverhead::System => self.framing.system,
            BlockOverhead::Message => self.framing.message,
        };
        self.estimate_tokens(block.json.get()) + overhead + beside
    }

    fn tool_tokens(&self, tool: &OutlineBlock<'a, '_>) -> TokenBounds {
        let high = self.counter.count(tool.json.get()).high;
        let low = high * self.framing.tool_text / 100;
        let first = match tool.index {
            0 => self.framing.tools,
            _ => TokenBounds::ZERO,
        };
        TokenBounds::between(low, high) + self.framing.tool + first
    }

    /// The block's cached form: without markers and white space, with what its message says beside its blocks.
    fn bare_block(&self, block: &OutlineBlock<'a, '_>) -> String {
        let own = || normalize_block(self.format, block.json.get());
        match block.context {
            BlockContext::Alone => own(),
            BlockContext::Word(word) => format!("{word}{}", own()),
            BlockContext::FirstOf { message, content } => {
                format!("{}{}", self.fields_except(message, content), own())
            }
            BlockContext::OneText {
                message,
                content,
                block_type,
            } => {
                let text = message.get(&[content]).map_or("", RawValue::get);
                let around = self.fields_except(message, content);
                let block_type = quote_json(block_type);
                format!(r#"{around}{{"type":{block_type},"text":{text}}}"#)
            }
        }
    }

    fn fields_except(&self, fields: &Fields<'_>, content: &str) -> String {
        let rest = fields.iter().filter(|(key, _)| *key != content);
        rest.map(|(key, value)| {
            format!(
                "{}:{},",
                quote_json(key),
                normalize_block(self.format, value.get())
            )
        })
        .collect()
    }

    fn estimate_tokens(&self, json: &str) -> TokenBounds {
        let mut total = TokenBounds::ZERO;
        for text in readable_strings(json) {
            // Base64 and the like: counting it as words would overrate a picture by far.
            let sealed = text.len() >= SEALED_BYTES && !text.contains(char::is_whitespace);
            total += if sealed {
                TokenBounds::between(0, (text.len() as u64 / 3).min(MEDIA_TOKENS))
            } else {
                self.counter.count(&text).into()
            };
        }
        total
    }
}

fn parse_array(value: &RawValue) -> Option<Vec<&RawValue>> {
    serde_json::from_str(value.get()).ok()
}

/// The markers on a block and on the blocks in it.
fn markers_in(format: Format, text: &str, depth: usize) -> Vec<CacheTtl> {
    let Some(name) = marker_field(format) else {
        return Vec::new();
    };
    // Most blocks have no marker, and looking for the word is cheaper than parsing.
    if !text.contains(&quote_json(name)) {
        return Vec::new();
    }
    let fields = Fields::parse(text).unwrap_or_default();
    let inner = fields.get(&["content", "output"]).filter(|_| depth > 0);
    let inner = inner.and_then(parse_array).into_iter().flatten();
    let mut markers: Vec<CacheTtl> = inner
        .flat_map(|block| markers_in(format, block.get(), depth - 1))
        .collect();
    markers.extend(fields.get(&[name]).map(|marker| parse_ttl(marker.get())));
    markers
}

fn parse_ttl(marker: &str) -> CacheTtl {
    let long = marker.contains("\"1h\"") || marker.contains("\"12h\"");
    if long {
        CacheTtl::Long
    } else {
        CacheTtl::Usual
    }
}

/// The text without white space and, where markers may stand, without markers. The order of members stays:
/// it is part of what is cached.
fn normalize_block(format: Format, text: &str) -> String {
    normalize_to_depth(format, text, NESTED)
}

fn normalize_to_depth(format: Format, text: &str, depth: usize) -> String {
    let name = marker_field(format).filter(|name| text.contains(&quote_json(name)));
    let Some(name) = name else {
        return compact_json(text);
    };
    let Ok(fields) = Fields::parse(text) else {
        return compact_json(text);
    };
    let mut out = String::from("{");
    for (key, value) in fields.iter().filter(|(key, _)| *key != name) {
        if out.len() > 1 {
            out.push(',');
        }
        out.push_str(&quote_json(key));
        out.push(':');
        match parse_array(value).filter(|_| depth > 0 && matches!(key, "content" | "output")) {
            Some(blocks) => {
                let content = blocks.iter().filter(|one| !is_marker_block(format, one));
                let blocks: Vec<String> = content
                    .map(|one| normalize_to_depth(format, one.get(), depth - 1))
                    .collect();
                out.push_str(&format!("[{}]", blocks.join(",")));
            }
            None => out.push_str(&compact_json(value.get())),
        }
    }
    out.push('}');
    out
}

/// Whether a block is nothing but a marker.
fn is_marker_block(format: Format, block: &RawValue) -> bool {
    let rules = format.spec().markers();
    rules.is_some_and(|rules| rules.marker_of_block(block).is_some())
}

/// JSON without the white space between its tokens.
fn compact_json(json: &str) -> String {
    let (mut out, mut inside, mut escaped) = (String::with_capacity(json.len()), false, false);
    for letter in json.chars() {
        if inside || !letter.is_ascii_whitespace() {
            out.push(letter);
        }
        match letter {
            '"' if !escaped => inside = !inside,
            _ => {}
        }
        escaped = inside && letter == '\\' && !escaped;
    }
    out
}

/// All texts in a JSON value that a model reads, names of members apart.
fn readable_strings(json: &str) -> Vec<String> {
    fn collect_strings(value: serde_json::Value, out: &mut Vec<String>) {
        match value {
            serde_json::Value::String(text) => out.push(text),
            serde_json::Value::Array(list) => {
                list.into_iter().for_each(|one| collect_strings(one, out))
            }
            serde_json::Value::Object(map) => map
                .into_iter()
                .filter(|(key, _)| !matches!(key.as_str(), "type" | "role" | "id" | "signature"))
                .for_each(|(_, one)| collect_strings(one, out)),
            _ => {}
        }
    }
    let mut out = Vec::new();
    if let Ok(value) = serde_json::from_str(json) {
        collect_strings(value, &mut out);
    }
    out
}

#[cfg(test)]
mod tests {
    use contexture_tokens::{Encoding, counter_for};

    use super::*;

    fn outline(format: Format, request: &str) -> Outline {
        Outline::parse_request(format, request, counter_for(Encoding::O200kBase)).unwrap()
    }

    #[track_caller]
    fn check(format: Format, request: &str, expected: &[&str]) {
        let outline = outline(format, request);
        let paths: Vec<&str> = outline
            .segments
            .iter()
            .map(|one| one.path.as_str())
            .collect();
        assert_eq!(paths, expected);
        assert!(outline.segments.iter().map(|one| one.part).is_sorted());
    }

    #[test]
    fn the_order_is_the_caches() {
        check(
            Format::Anthropic,
            r#"{"model":"m","messages":[{"role":"user","content":"a"},{"role":"assistant","content":[{"type":"text","text":"b"},{"type":"text","text":"c"}]}],"system":"s","tools":[{"name":"f"},{"name":"g"}]}"#,
            &[
                "tools[0]",
                "tools[1]",
                "system",
                "tool_choice",
                "thinking",
                "output_config",
                "messages[0]",
                "messages[1].content[0]",
                "messages[1].content[1]",
            ],
        );
        check(
            Format::OpenAiChat,
            r#"{"messages":[{"role":"system","content":"s"},{"role":"user","content":"a"}]}"#,
            &[
                "response_format",
                "reasoning_effort",
                "verbosity",
                "messages[0]",
                "messages[1]",
            ],
        );
        check(
            Format::OpenAiResponses,
            r#"{"input":"hello","instructions":"s"}"#,
            &[
                "text.format",
                "reasoning.effort",
                "text.verbosity",
                "instructions",
                "input",
            ],
        );
        check(
            Format::Gemini,
            r#"{"contents":[{"parts":[{"text":"a"}]}],"systemInstruction":{"parts":[{"text":"s"}]}}"#,
            &["systemInstruction[0]", "contents[0].parts[0]"],
        );
    }

    #[test]
    fn marks_and_white_space_are_no_content() {
        let plain = outline(
            Format::Anthropic,
            r#"{"messages":[{"role":"user","content":"a \" b"}]}"#,
        );
        let marked = outline(
            Format::Anthropic,
            r#"{"messages" : [ {"role": "user", "content": [{"type": "text", "text": "a \" b", "cache_control": {"type": "ephemeral", "ttl": "1h"}}]} ]}"#,
        );
        assert_eq!(plain.common_prefix(&marked), plain.segments.len());
        assert_eq!(marked.segments.last().unwrap().markers, [CacheTtl::Long]);
        let other = outline(
            Format::Anthropic,
            r#"{"messages":[{"role":"user","content":"a \"  b"}]}"#,
        );
        assert_eq!(plain.common_prefix(&other), plain.segments.len() - 1);
    }

    #[test]
    fn what_is_no_request_is_refused() {
        let counter = counter_for(Encoding::O200kBase);
        for text in ["", "[]", "{}", r#"{"messages":1}"#, r#"{"messages":[1]}"#] {
            assert!(
                Outline::parse_request(Format::Anthropic, text, counter).is_err(),
                "{text}"
            );
        }
        assert!(Outline::parse_request(Format::Ui, r#"{"messages":[]}"#, counter).is_err());
    }
}
