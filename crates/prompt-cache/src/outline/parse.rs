//! The outline of a request that is JSON text, block by block.
//!
//! For requests that others made: to compare two of them, or to replay recorded ones. What a payload's
//! own outline says of pieces, this says of blocks: each tool, each block of the system prompt, each
//! content block. Tokens are bounds from the texts in a block, media within wide ones. It knows of no
//! band, so all messages count as history.

use contexture_ir::{ContentHash, Fields, quote_json};
use contexture_tokens::{TokenBounds, TokenCounter};
use contexture_wire::{CacheTtl, Format, marker_field};
use serde_json::value::RawValue;

use crate::framing::Framing;
use crate::outline::{
    Outline, OutlineSegment, RequestPart, SegmentStability, prefix_settings, scope_members,
    setting_value,
};

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
        /// The format.
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
    /// The text of each segment without marks and white space.
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
    // Our own formats are never sent, so there is no cache that could compare them.
    if !Format::PROVIDERS.contains(&format) {
        return Err(not("only providers' formats are sent to a cache"));
    }
    let fields = Fields::parse(request).map_err(|_| not("a JSON object"))?;
    let (list, expected) = match format {
        Format::OpenAiResponses => ("input", "an array or a text under `input`"),
        Format::Gemini => ("contents", "an array under `contents`"),
        _ => ("messages", "an array under `messages`"),
    };
    let body = fields.get(&[list]).ok_or_else(|| not(expected))?;
    let model: Option<String> = fields
        .get(&["model"])
        .and_then(|model| serde_json::from_str(model.get()).ok());
    let mut cutter = OutlineBuilder {
        format,
        counter,
        segments: Vec::new(),
        texts: Vec::new(),
        bare: Vec::new(),
    };
    cutter.add_tools(&fields);
    // In the order in which the provider reads a request, not in that of its members.
    cutter.add_settings(&fields, RequestPart::Form);
    let system = [
        "system",
        "instructions",
        "systemInstruction",
        "system_instruction",
    ];
    if let Some(name) = system.iter().find(|name| fields.get(&[name]).is_some())
        && let Some(system) = fields.get(&[name])
    {
        cutter.add_system(name, system);
    }
    cutter.add_messages(list, body, || not(expected), &fields)?;
    let mut scope = model.clone().unwrap_or_default();
    // Requests with different scopes never share a cache, so the scope is hashed before any segment.
    for (name, _) in scope_members(format) {
        scope.push('\n');
        scope.push_str(setting_value(&fields, &[name]));
    }
    let whole = automatic_marker(format, &fields);
    Ok(ParsedOutline {
        outline: Outline {
            format,
            scope,
            segments: cutter.segments,
            whole,
        },
        model,
        texts: cutter.texts,
        bare: cutter.bare,
        fields,
    })
}

/// The mark at the top of a request, which the provider moves by itself.
#[must_use]
pub fn automatic_marker(format: Format, fields: &Fields<'_>) -> Option<CacheTtl> {
    if format != Format::Anthropic {
        return None;
    }
    let mark = setting_value(fields, &["cache_control", "type"]);
    let long = setting_value(fields, &["cache_control", "ttl"]) == quote_json("1h");
    let ttl = if long {
        CacheTtl::Long
    } else {
        CacheTtl::Usual
    };
    (!mark.is_empty()).then_some(ttl)
}

struct OutlineBuilder<'a, 'c> {
    format: Format,
    counter: &'c dyn TokenCounter,
    segments: Vec<OutlineSegment>,
    texts: Vec<&'a str>,
    bare: Vec<String>,
}

impl<'a> OutlineBuilder<'a, '_> {
    fn add_tools(&mut self, fields: &Fields<'a>) {
        let framing = Framing::for_format(self.format);
        let Some(name) = ["tools", "functions"]
            .into_iter()
            .find(|name| fields.get(&[name]).is_some())
        else {
            return;
        };
        let all = fields
            .get(&[name])
            .and_then(parse_array)
            .unwrap_or_default();
        for (at, tool) in all.iter().enumerate() {
            let high = self.counter.count(tool.get()).high;
            let mut tokens =
                TokenBounds::between(high * framing.tool_text / 100, high) + framing.tool;
            if at == 0 {
                tokens += framing.tools;
            }
            let path = format!("{name}[{at}]");
            self.push_segment(RequestPart::Tools, path, at, tool.get(), "", tokens);
        }
    }

    fn add_settings(&mut self, fields: &Fields<'a>, part: RequestPart) {
        for (at, one) in prefix_settings(self.format).iter().enumerate() {
            if one.part == part {
                let text = setting_value(fields, one.path);
                self.push_segment(part, one.path.join("."), at, text, "", TokenBounds::ZERO);
            }
        }
    }

    fn add_system(&mut self, name: &str, system: &'a RawValue) {
        let parts = Fields::parse(system.get()).ok();
        let parts = parts
            .and_then(|fields| fields.get(&["parts"]))
            .and_then(parse_array);
        // A system prompt is a text, an array of blocks, or, with Gemini, an object with parts.
        let blocks = parse_array(system).or(parts);
        let Some(blocks) = blocks else {
            let framing = Framing::for_format(self.format).system;
            let tokens = self.estimate_tokens(system.get()) + framing;
            let path = name.to_owned();
            self.push_segment(RequestPart::System, path, 0, system.get(), "", tokens);
            return;
        };
        for (at, block) in blocks.iter().enumerate() {
            let tokens = self.estimate_tokens(block.get());
            let path = format!("{name}[{at}]");
            self.push_segment(RequestPart::System, path, at, block.get(), "", tokens);
        }
    }

    fn add_messages(
        &mut self,
        list: &str,
        body: &'a RawValue,
        not: impl Fn() -> OutlineError,
        fields: &Fields<'a>,
    ) -> Result<(), OutlineError> {
        if body.get().starts_with('"') && self.format == Format::OpenAiResponses {
            let tokens =
                self.estimate_tokens(body.get()) + Framing::for_format(self.format).message;
            self.push_segment(
                RequestPart::Messages,
                list.to_owned(),
                0,
                body.get(),
                "user",
                tokens,
            );
            return Ok(());
        }
        let all = parse_array(body).ok_or_else(&not)?;
        // Chat Completions have no member for the system prompt: the leading system messages are it.
        let mut leading = self.format == Format::OpenAiChat;
        for (at, message) in all.into_iter().enumerate() {
            let inner = Fields::parse(message.get()).map_err(|_| not())?;
            let role = setting_value(&inner, &["role"]);
            leading &= matches!(role, "\"system\"" | "\"developer\"");
            if !leading
                && self
                    .segments
                    .iter()
                    .all(|one| one.part < RequestPart::Settings)
            {
                self.add_settings(fields, RequestPart::Settings);
            }
            let part = if leading {
                RequestPart::System
            } else {
                RequestPart::Messages
            };
            self.add_message(part, &format!("{list}[{at}]"), at, message, &inner);
        }
        Ok(())
    }

    fn add_message(
        &mut self,
        part: RequestPart,
        path: &str,
        at: usize,
        message: &'a RawValue,
        fields: &Fields<'a>,
    ) {
        let framing = Framing::for_format(self.format).message;
        let content = match self.format {
            Format::Gemini => "parts",
            _ => "content",
        };
        let blocks = fields.get(&[content]).and_then(parse_array);
        let Some(blocks) = blocks.filter(|blocks| !blocks.is_empty()) else {
            let bare = self.single_text_block(message, fields, content);
            let tokens = self.estimate_tokens(message.get()) + framing;
            self.push_bare_segment(part, path.to_owned(), at, message.get(), bare, tokens);
            return;
        };
        // What the message says beside its blocks belongs to the first of them.
        let mut around = self.fields_except(fields, content);
        // Cannot underflow: empty lists of blocks were handled above.
        let last = blocks.len() - 1;
        for (index, block) in blocks.into_iter().enumerate() {
            let mut tokens = self.estimate_tokens(block.get());
            if index == 0 {
                tokens += framing;
            }
            // Calls stand beside the content in Chat Completions; they are billed with the last block.
            if index == last && part == RequestPart::Messages && self.format == Format::OpenAiChat {
                tokens += fields
                    .get(&["tool_calls"])
                    .map_or(TokenBounds::ZERO, |calls| self.estimate_tokens(calls.get()));
            }
            let path = format!("{path}.{content}[{index}]");
            self.push_segment(part, path, at, block.get(), &around, tokens);
            around.clear();
        }
    }

    /// A message whose content is one text, as if that were its only block, where it may be either.
    fn single_text_block(&self, message: &RawValue, fields: &Fields<'_>, content: &str) -> String {
        let said = fields.get(&[content]).map_or("", RawValue::get);
        // Anthropic treats a text and an array with one text block alike, so both must have one hash.
        if self.format != Format::Anthropic || !said.starts_with('"') {
            return normalize_block(self.format, message.get());
        }
        let block = format!(r#"{{"type":"text","text":{said}}}"#);
        format!("{}{block}", self.fields_except(fields, content))
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

    fn push_segment(
        &mut self,
        part: RequestPart,
        path: String,
        at: usize,
        text: &'a str,
        around: &str,
        tokens: TokenBounds,
    ) {
        let bare = format!("{around}{}", normalize_block(self.format, text));
        self.push_bare_segment(part, path, at, text, bare, tokens);
    }

    fn push_bare_segment(
        &mut self,
        part: RequestPart,
        path: String,
        at: usize,
        text: &'a str,
        bare: String,
        tokens: TokenBounds,
    ) {
        let nothing = matches!(part, RequestPart::Form | RequestPart::Settings);
        self.segments.push(OutlineSegment {
            path,
            bytes: bare.len(),
            tokens,
            // Settings are no content blocks: look-back does not count them.
            blocks: usize::from(!nothing),
            lasts: if part == RequestPart::Messages {
                SegmentStability::Onwards
            } else {
                SegmentStability::Epoch
            },
            can_carry: !nothing,
            marks: markers_in(self.format, text, NESTED),
            ..OutlineSegment::new(part, at, ContentHash::of(bare.as_bytes()))
        });
        self.texts.push(text);
        self.bare.push(bare);
    }
}

fn parse_array(value: &RawValue) -> Option<Vec<&RawValue>> {
    serde_json::from_str(value.get()).ok()
}

/// The marks on a block and on the blocks in it.
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
    let mut marks: Vec<CacheTtl> = inner
        .flat_map(|block| markers_in(format, block.get(), depth - 1))
        .collect();
    marks.extend(fields.get(&[name]).map(|mark| parse_ttl(mark.get())));
    marks
}

fn parse_ttl(mark: &str) -> CacheTtl {
    let long = mark.contains("\"1h\"") || mark.contains("\"12h\"");
    if long {
        CacheTtl::Long
    } else {
        CacheTtl::Usual
    }
}

/// The text without white space and, where marks may stand, without marks. The order of members stays:
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
                let blocks: Vec<String> = blocks
                    .iter()
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
        assert_eq!(marked.segments.last().unwrap().marks, [CacheTtl::Long]);
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
