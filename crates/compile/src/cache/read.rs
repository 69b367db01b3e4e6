//! The outline of a request that is JSON text, block by block.
//!
//! For requests that others made: to compare two of them, or to replay recorded ones. What a payload's
//! own outline says of pieces, this says of blocks: each tool, each block of the system prompt, each
//! content block. Tokens are bounds from the texts in a block, media within wide ones. It knows of no
//! band, so all messages count as history.

use contexture_ir::{ContentHash, Fields, quote};
use contexture_tokens::TokenCounter;
use contexture_wire::{Format, Ttl, mark_name};
use serde_json::value::RawValue;

use crate::cache::marks::whole_mark;
use crate::cache::outline::{Lasts, Outline, OutlineSegment, Part};
use crate::cache::settings::{scoped, settings, value};
use crate::count::{Framing, Tokens};

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
pub(crate) struct Reading<'a> {
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
    pub fn read(
        format: Format,
        request: &str,
        counter: &dyn TokenCounter,
    ) -> Result<Self, OutlineError> {
        Ok(read(format, request, counter)?.outline)
    }
}

/// Cuts a request.
pub(crate) fn read<'a>(
    format: Format,
    request: &'a str,
    counter: &dyn TokenCounter,
) -> Result<Reading<'a>, OutlineError> {
    let not = |expected| OutlineError::NotARequest { format, expected };
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
    let mut cutter = Cutter {
        format,
        counter,
        segments: Vec::new(),
        texts: Vec::new(),
        bare: Vec::new(),
    };
    cutter.tools(&fields);
    cutter.settings(&fields, Part::Form);
    let system = [
        "system",
        "instructions",
        "systemInstruction",
        "system_instruction",
    ];
    if let Some(name) = system.iter().find(|name| fields.get(&[name]).is_some())
        && let Some(system) = fields.get(&[name])
    {
        cutter.system(name, system);
    }
    cutter.messages(list, body, || not(expected), &fields)?;
    let mut scope = model.clone().unwrap_or_default();
    for (name, _) in scoped(format) {
        scope.push('\n');
        scope.push_str(value(&fields, &[name]));
    }
    let whole = whole_mark(format, &fields);
    Ok(Reading {
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

struct Cutter<'a, 'c> {
    format: Format,
    counter: &'c dyn TokenCounter,
    segments: Vec<OutlineSegment>,
    texts: Vec<&'a str>,
    bare: Vec<String>,
}

impl<'a> Cutter<'a, '_> {
    fn tools(&mut self, fields: &Fields<'a>) {
        let framing = Framing::of(self.format);
        let Some(name) = ["tools", "functions"]
            .into_iter()
            .find(|name| fields.get(&[name]).is_some())
        else {
            return;
        };
        let all = fields.get(&[name]).and_then(array).unwrap_or_default();
        for (at, tool) in all.iter().enumerate() {
            let high = self.counter.count(tool.get()).high;
            let mut tokens = Tokens::between(high * framing.tool_text / 100, high) + framing.tool;
            if at == 0 {
                tokens += framing.tools;
            }
            let path = format!("{name}[{at}]");
            self.push(Part::Tools, path, at, tool.get(), "", tokens);
        }
    }

    fn settings(&mut self, fields: &Fields<'a>, part: Part) {
        for (at, one) in settings(self.format).iter().enumerate() {
            if one.part == part {
                let text = value(fields, one.path);
                self.push(part, one.path.join("."), at, text, "", Tokens::ZERO);
            }
        }
    }

    fn system(&mut self, name: &str, system: &'a RawValue) {
        let parts = Fields::parse(system.get()).ok();
        let parts = parts
            .and_then(|fields| fields.get(&["parts"]))
            .and_then(array);
        let blocks = array(system).or(parts);
        match blocks {
            Some(blocks) => {
                for (at, block) in blocks.iter().enumerate() {
                    let tokens = self.weigh(block.get());
                    self.push(
                        Part::System,
                        format!("{name}[{at}]"),
                        at,
                        block.get(),
                        "",
                        tokens,
                    );
                }
            }
            None => {
                let tokens = self.weigh(system.get()) + Framing::of(self.format).system;
                self.push(Part::System, name.to_owned(), 0, system.get(), "", tokens);
            }
        }
    }

    fn messages(
        &mut self,
        list: &str,
        body: &'a RawValue,
        not: impl Fn() -> OutlineError,
        fields: &Fields<'a>,
    ) -> Result<(), OutlineError> {
        if body.get().starts_with('"') && self.format == Format::OpenAiResponses {
            let tokens = self.weigh(body.get()) + Framing::of(self.format).message;
            self.push(
                Part::Messages,
                list.to_owned(),
                0,
                body.get(),
                "user",
                tokens,
            );
            return Ok(());
        }
        let all = array(body).ok_or_else(&not)?;
        let mut leading = self.format == Format::OpenAiChat;
        for (at, message) in all.into_iter().enumerate() {
            let inner = Fields::parse(message.get()).map_err(|_| not())?;
            let role = value(&inner, &["role"]);
            leading &= matches!(role, "\"system\"" | "\"developer\"");
            if !leading && self.segments.iter().all(|one| one.part < Part::Settings) {
                self.settings(fields, Part::Settings);
            }
            let part = if leading {
                Part::System
            } else {
                Part::Messages
            };
            self.message(part, &format!("{list}[{at}]"), at, message, &inner);
        }
        Ok(())
    }

    fn message(
        &mut self,
        part: Part,
        path: &str,
        at: usize,
        message: &'a RawValue,
        fields: &Fields<'a>,
    ) {
        let framing = Framing::of(self.format).message;
        let content = match self.format {
            Format::Gemini => "parts",
            _ => "content",
        };
        let blocks = fields.get(&[content]).and_then(array);
        let Some(blocks) = blocks.filter(|blocks| !blocks.is_empty()) else {
            let bare = self.plain(message, fields, content);
            let tokens = self.weigh(message.get()) + framing;
            self.add(part, path.to_owned(), at, message.get(), bare, tokens);
            return;
        };
        // What the message says beside its blocks belongs to the first of them.
        let mut around = self.around(fields, content);
        let last = blocks.len() - 1;
        for (index, block) in blocks.into_iter().enumerate() {
            let mut tokens = self.weigh(block.get());
            if index == 0 {
                tokens += framing;
            }
            if index == last && part == Part::Messages && self.format == Format::OpenAiChat {
                tokens += fields
                    .get(&["tool_calls"])
                    .map_or(Tokens::ZERO, |calls| self.weigh(calls.get()));
            }
            let path = format!("{path}.{content}[{index}]");
            self.push(part, path, at, block.get(), &around, tokens);
            around.clear();
        }
    }

    /// A message whose content is one text, as if that were its only block, where it may be either.
    fn plain(&self, message: &RawValue, fields: &Fields<'_>, content: &str) -> String {
        let said = fields.get(&[content]).map_or("", RawValue::get);
        if self.format != Format::Anthropic || !said.starts_with('"') {
            return bare(self.format, message.get());
        }
        let block = format!(r#"{{"type":"text","text":{said}}}"#);
        format!("{}{block}", self.around(fields, content))
    }

    fn around(&self, fields: &Fields<'_>, content: &str) -> String {
        let rest = fields.iter().filter(|(key, _)| *key != content);
        rest.map(|(key, value)| format!("{}:{},", quote(key), bare(self.format, value.get())))
            .collect()
    }

    fn weigh(&self, json: &str) -> Tokens {
        let mut total = Tokens::ZERO;
        for text in strings(json) {
            let sealed = text.len() >= SEALED_BYTES && !text.contains(char::is_whitespace);
            total += if sealed {
                Tokens::between(0, (text.len() as u64 / 3).min(MEDIA_TOKENS))
            } else {
                self.counter.count(&text).into()
            };
        }
        total
    }

    fn push(
        &mut self,
        part: Part,
        path: String,
        at: usize,
        text: &'a str,
        around: &str,
        tokens: Tokens,
    ) {
        let bare = format!("{around}{}", bare(self.format, text));
        self.add(part, path, at, text, bare, tokens);
    }

    fn add(
        &mut self,
        part: Part,
        path: String,
        at: usize,
        text: &'a str,
        bare: String,
        tokens: Tokens,
    ) {
        let nothing = matches!(part, Part::Form | Part::Settings);
        self.segments.push(OutlineSegment {
            path,
            bytes: bare.len(),
            tokens,
            blocks: usize::from(!nothing),
            lasts: if part == Part::Messages {
                Lasts::Onwards
            } else {
                Lasts::Epoch
            },
            can_carry: !nothing,
            marks: marks_in(self.format, text, NESTED),
            ..OutlineSegment::new(part, at, ContentHash::of(bare.as_bytes()))
        });
        self.texts.push(text);
        self.bare.push(bare);
    }
}

fn array(value: &RawValue) -> Option<Vec<&RawValue>> {
    serde_json::from_str(value.get()).ok()
}

/// The marks on a block and on the blocks in it.
fn marks_in(format: Format, text: &str, depth: usize) -> Vec<Ttl> {
    let Some(name) = mark_name(format) else {
        return Vec::new();
    };
    if !text.contains(&quote(name)) {
        return Vec::new();
    }
    let fields = Fields::parse(text).unwrap_or_default();
    let inner = fields.get(&["content", "output"]).filter(|_| depth > 0);
    let inner = inner.and_then(array).into_iter().flatten();
    let mut marks: Vec<Ttl> = inner
        .flat_map(|block| marks_in(format, block.get(), depth - 1))
        .collect();
    marks.extend(fields.get(&[name]).map(|mark| ttl(mark.get())));
    marks
}

fn ttl(mark: &str) -> Ttl {
    let long = mark.contains("\"1h\"") || mark.contains("\"12h\"");
    if long { Ttl::Long } else { Ttl::Usual }
}

/// The text without white space and, where marks may stand, without marks. The order of members stays:
/// it is part of what is cached.
fn bare(format: Format, text: &str) -> String {
    bare_to(format, text, NESTED)
}

fn bare_to(format: Format, text: &str, depth: usize) -> String {
    let name = mark_name(format).filter(|name| text.contains(&quote(name)));
    let Some(name) = name else {
        return compact(text);
    };
    let Ok(fields) = Fields::parse(text) else {
        return compact(text);
    };
    let mut out = String::from("{");
    for (key, value) in fields.iter().filter(|(key, _)| *key != name) {
        if out.len() > 1 {
            out.push(',');
        }
        out.push_str(&quote(key));
        out.push(':');
        match array(value).filter(|_| depth > 0 && matches!(key, "content" | "output")) {
            Some(blocks) => {
                let blocks: Vec<String> = blocks
                    .iter()
                    .map(|one| bare_to(format, one.get(), depth - 1))
                    .collect();
                out.push_str(&format!("[{}]", blocks.join(",")));
            }
            None => out.push_str(&compact(value.get())),
        }
    }
    out.push('}');
    out
}

/// JSON without the white space between its tokens.
fn compact(json: &str) -> String {
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
fn strings(json: &str) -> Vec<String> {
    fn walk(value: serde_json::Value, out: &mut Vec<String>) {
        match value {
            serde_json::Value::String(text) => out.push(text),
            serde_json::Value::Array(list) => list.into_iter().for_each(|one| walk(one, out)),
            serde_json::Value::Object(map) => map
                .into_iter()
                .filter(|(key, _)| !matches!(key.as_str(), "type" | "role" | "id" | "signature"))
                .for_each(|(_, one)| walk(one, out)),
            _ => {}
        }
    }
    let mut out = Vec::new();
    if let Ok(value) = serde_json::from_str(json) {
        walk(value, &mut out);
    }
    out
}

#[cfg(test)]
mod tests {
    use contexture_tokens::{Encoding, counter_for};

    use super::*;

    fn outline(format: Format, request: &str) -> Outline {
        Outline::read(format, request, counter_for(Encoding::O200kBase)).unwrap()
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
        assert_eq!(plain.common(&marked), plain.segments.len());
        assert_eq!(marked.segments.last().unwrap().marks, [Ttl::Long]);
        let other = outline(
            Format::Anthropic,
            r#"{"messages":[{"role":"user","content":"a \"  b"}]}"#,
        );
        assert_eq!(plain.common(&other), plain.segments.len() - 1);
    }

    #[test]
    fn what_is_no_request_is_refused() {
        let counter = counter_for(Encoding::O200kBase);
        for text in ["", "[]", "{}", r#"{"messages":1}"#, r#"{"messages":[1]}"#] {
            assert!(
                Outline::read(Format::Anthropic, text, counter).is_err(),
                "{text}"
            );
        }
        assert!(Outline::read(Format::Ui, r#"{"messages":[]}"#, counter).is_err());
    }
}
