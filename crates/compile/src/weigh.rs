//! How an item is weighed for a target.
//!
//! Counted is what the model reads: texts, names and arguments of calls, outputs, media by the
//! target's rule, and what is sealed for it by its length. Ids and JSON syntax are not; their part is in
//! [`crate::Framing`].

use base64::Engine;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use contexture_catalogue::MediaRules;
use contexture_ir::{
    Extension, Extra, FilePart, ImagePart, Item, Output, Part, Reasoning, ToolDefinition,
};
use contexture_tokens::media::{Detail, Dimensions, document, image, sound};
use contexture_tokens::{TokenCount, TokenCounter};
use contexture_wire::{DataUrl, Format};

use crate::count::{Framing, Tokens};

/// A file that only the provider can see counts as so many pages at most.
const UNSEEN_PAGES: u64 = 20;

/// Weighs items for a target.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scale<'a> {
    pub(crate) format: Format,
    pub(crate) counter: &'a dyn TokenCounter,
    pub(crate) media: &'a MediaRules,
}

impl Scale<'_> {
    /// The tokens of an item's content in the target's format.
    pub(crate) fn item(&self, item: &Item) -> Tokens {
        self.content(item)
            + item
                .extra()
                .map_or(Tokens::ZERO, |extra| self.signature(extra))
    }

    fn content(&self, item: &Item) -> Tokens {
        match item {
            Item::Message(message) => self.parts(&message.content),
            Item::FunctionCall(call) => self.text(&call.name) + self.text(&call.arguments),
            Item::FunctionCallOutput(output) => match &output.output {
                Output::Text(text) => self.text(text),
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
                let text = self.text(&tool.name) + self.text(description) + self.text(parameters);
                let least = Framing::of(self.format).tool_text;
                Tokens::between(text.low.saturating_mul(least) / 100, text.high)
            }
            ToolDefinition::Provider(tool) if tool.format == self.format.as_str() => {
                self.text(tool.raw.get())
            }
            ToolDefinition::Provider(_) => Tokens::ZERO,
        }
    }

    pub(crate) fn parts(&self, parts: &[Part]) -> Tokens {
        parts.iter().map(|part| self.part(part)).sum()
    }

    fn part(&self, part: &Part) -> Tokens {
        let signature = part
            .extra()
            .map_or(Tokens::ZERO, |extra| self.signature(extra));
        signature
            + match part {
                Part::InputImage(part) => self.image(part).into(),
                Part::InputFile(part) => self.file(part).into(),
                Part::Extension(part) => self.text(part.raw.get()),
                _ => part.as_text().map_or(Tokens::ZERO, |text| self.text(text)),
            }
    }

    pub(crate) fn text(&self, text: &str) -> Tokens {
        self.counter.count(text).into()
    }

    /// A picture that is not inline counts as the largest the rule allows.
    fn image(&self, part: &ImagePart) -> TokenCount {
        let detail: Option<Detail> = part.detail.as_deref().and_then(|word| word.parse().ok());
        let inline = part.image_url.as_deref().and_then(DataUrl::parse);
        let size = inline.and_then(|url| Dimensions::read_base64(url.base64));
        image(self.media, size, detail.unwrap_or_default())
    }

    /// A file by its kind: pictures and sound by their rule, a document by its pages, text as text.
    fn file(&self, part: &FilePart) -> TokenCount {
        let inline = part.file_data.as_deref().and_then(DataUrl::parse);
        let stated = part.media_type.as_deref();
        let media_type = stated
            .or(inline.map(|url| url.media_type))
            .unwrap_or_default();
        if media_type.starts_with("image/") {
            let size = inline.and_then(|url| Dimensions::read_base64(url.base64));
            return image(self.media, size, Detail::Auto);
        }
        let base64 = inline.map(|url| url.base64).or(part.file_data.as_deref());
        let Some(bytes) = base64.map(decode) else {
            let page = self.media.page;
            return TokenCount::estimated(
                page.low.into(),
                page.count.into(),
                UNSEEN_PAGES.saturating_mul(page.high.into()),
            );
        };
        if media_type.starts_with("audio/") {
            sound(self.media, &bytes)
        } else {
            wrapped(document(self.media, &bytes, self.counter))
        }
    }

    /// Reasoning is replayed only to the family that wrote it, and read by the model only until its turn is over. What is
    /// shown may be a summary of what is sealed.
    fn reasoning(&self, reasoning: &Reasoning) -> Tokens {
        if !self.is_own(reasoning.format.as_deref()) {
            return Tokens::ZERO;
        }
        let content = reasoning.content.as_deref().unwrap_or_default();
        let shown = self.parts(content) + self.parts(&reasoning.summary);
        let opaque = [&reasoning.encrypted_content, &reasoning.signature];
        let sealed: Tokens = opaque.into_iter().flatten().map(|text| sealed(text)).sum();
        Tokens::between(0, shown.high.saturating_add(sealed.high))
    }

    /// The thoughts that Gemini seals beside a part.
    fn signature(&self, extra: &Extra) -> Tokens {
        if self.format != Format::Gemini {
            return Tokens::ZERO;
        }
        let wire = extra.wire(self.format.as_str());
        ["thoughtSignature", "thought_signature"]
            .into_iter()
            .find_map(|name| wire.get(name))
            .map_or(Tokens::ZERO, |raw| sealed(raw.get()))
    }

    /// An extension is written verbatim to its own provider and to nobody else.
    fn extension(&self, extension: &Extension) -> Tokens {
        let own = match (extension.kind.split_once(':'), self.format) {
            (Some((slug, _)), format) => slug == family(format),
            (None, format) => format == Format::OpenAiResponses,
        };
        if own {
            self.text(extension.raw.get())
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

/// A document as the provider writes it: with its name and a frame, some of its white space gone.
fn wrapped(document: TokenCount) -> TokenCount {
    const FRAME: u64 = 40;
    let high = document.high.saturating_add(FRAME);
    TokenCount::estimated(document.low / 10 * 9, document.count, high)
}

/// Base64 that only its maker can read. Recorded requests were billed a tenth to a quarter of a token a character, or
/// nothing where the model does not read it.
const fn sealed(base64: &str) -> Tokens {
    Tokens::between(0, base64.len() as u64 / 4)
}

/// The bytes of a base64 text, or the text itself where it is something else.
fn decode(text: &str) -> Vec<u8> {
    let lenient =
        GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent);
    let engine = GeneralPurpose::new(&STANDARD, lenient);
    engine
        .decode(text)
        .unwrap_or_else(|_| text.as_bytes().to_vec())
}
