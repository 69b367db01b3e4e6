//! What counts tokens, and how an item is weighed with it.
//!
//! Counted is what the model reads: texts, names and arguments of calls, outputs, media by the
//! target's rule. Ids, signatures and JSON syntax are not; their part is in [`crate::Framing`].

use contexture_ir::{Extension, Item, Output, Part, Reasoning, ToolDefinition};
use contexture_wire::Format;

use crate::count::Tokens;

/// Counts text and media for one family of models.
pub trait TokenCounter: std::fmt::Debug + Send + Sync {
    /// The encoding: `o200k_base`, …. Counters of one name count alike.
    fn name(&self) -> &str;

    /// Whether counts are exact.
    fn is_exact(&self) -> bool;

    /// Counts a text; special tokens count as text.
    fn text(&self, text: &str) -> Tokens;

    /// Counts a picture or a file by the target's rule.
    fn media(&self, part: &Part) -> Tokens;
}

/// Weighs items for a target.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scale<'a> {
    pub(crate) format: Format,
    pub(crate) counter: &'a dyn TokenCounter,
}

impl Scale<'_> {
    /// The tokens of an item's content in the target's format.
    pub(crate) fn item(&self, item: &Item) -> Tokens {
        match item {
            Item::Message(message) => self.parts(&message.content),
            Item::FunctionCall(call) => {
                self.counter.text(&call.name) + self.counter.text(&call.arguments)
            }
            Item::FunctionCallOutput(output) => match &output.output {
                Output::Text(text) => self.counter.text(text),
                Output::Parts(parts) => self.parts(parts),
            },
            Item::Reasoning(reasoning) => self.reasoning(reasoning),
            Item::Compaction(compaction) => {
                let own = self.is_own(compaction.format.as_deref());
                match &compaction.encrypted_content {
                    Some(opaque) if own => sealed(opaque),
                    _ => self.parts(&compaction.summary),
                }
            }
            Item::Extension(extension) => self.extension(extension),
        }
    }

    /// The tokens of a tool's definition.
    pub(crate) fn tool(&self, tool: &ToolDefinition) -> Tokens {
        match tool {
            ToolDefinition::Function(tool) => {
                let description = tool.description.as_deref().unwrap_or_default();
                let parameters = tool.parameters.as_ref().map_or("", |schema| schema.get());
                self.counter.text(&tool.name)
                    + self.counter.text(description)
                    + self.counter.text(parameters)
            }
            ToolDefinition::Provider(tool) if tool.format == self.format.as_str() => {
                self.counter.text(tool.raw.get())
            }
            ToolDefinition::Provider(_) => Tokens::ZERO,
        }
    }

    pub(crate) fn parts(&self, parts: &[Part]) -> Tokens {
        parts.iter().map(|part| self.part(part)).sum()
    }

    fn part(&self, part: &Part) -> Tokens {
        match part {
            Part::InputImage(_) | Part::InputFile(_) => self.counter.media(part),
            Part::Extension(part) => self.counter.text(part.raw.get()),
            _ => part
                .as_text()
                .map_or(Tokens::ZERO, |text| self.counter.text(text)),
        }
    }

    /// Reasoning is replayed only to the family that wrote it.
    fn reasoning(&self, reasoning: &Reasoning) -> Tokens {
        if !self.is_own(reasoning.format.as_deref()) {
            return Tokens::ZERO;
        }
        let sealed = reasoning.encrypted_content.as_deref().map(sealed);
        let content = reasoning.content.as_deref().unwrap_or_default();
        sealed.unwrap_or_default() + self.parts(content) + self.parts(&reasoning.summary)
    }

    /// An extension is written verbatim to its own provider and to nobody else.
    fn extension(&self, extension: &Extension) -> Tokens {
        let own = match (extension.kind.split_once(':'), self.format) {
            (Some((slug, _)), format) => slug == family(format),
            (None, format) => format == Format::OpenAiResponses,
        };
        if own {
            self.counter.text(extension.raw.get())
        } else {
            Tokens::ZERO
        }
    }

    fn is_own(&self, format: Option<&str>) -> bool {
        match (format, self.format) {
            (None, format) => format != Format::OpenAiChat,
            (Some(_), Format::OpenAiChat) => false,
            (Some(name), format) => name.starts_with(match format {
                Format::Gemini => "google",
                format => family(format),
            }),
        }
    }
}

/// The provider behind a format, as extension items name it.
const fn family(format: Format) -> &'static str {
    match format {
        Format::OpenAiChat | Format::OpenAiResponses => "openai",
        Format::Anthropic => "anthropic",
        Format::Gemini => "gemini",
        Format::Ui | Format::Items => "ctx",
    }
}

/// Base64 that only its maker can read: three bytes in four characters, and at worst two bytes to a
/// token of what they hold.
fn sealed(base64: &str) -> Tokens {
    let length = base64.len() as u64;
    Tokens {
        low: 0,
        high: length * 3 / 8,
    }
}

#[derive(Debug)]
pub(crate) struct Bytes;

impl TokenCounter for Bytes {
    fn name(&self) -> &str {
        "bytes/4"
    }
    fn is_exact(&self) -> bool {
        false
    }
    fn text(&self, text: &str) -> Tokens {
        Tokens {
            low: text.len() as u64 / 8,
            high: text.len() as u64 / 3,
        }
    }
    fn media(&self, _part: &Part) -> Tokens {
        Tokens::exact(1000)
    }
}
