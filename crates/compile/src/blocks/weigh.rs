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
use contexture_tokens::media::{Detail, Dimensions, audio_tokens, document_tokens, image_tokens};
use contexture_tokens::{TokenBounds, TokenCount, TokenCounter};
use contexture_wire::{DataUrl, Format};

/// A file that only the provider can see counts as so many pages at most.
const UNSEEN_PAGES: u64 = 20;

/// Weighs items for a target.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ItemWeigher<'a> {
    pub(crate) format: Format,
    pub(crate) counter: &'a dyn TokenCounter,
    pub(crate) media: &'a MediaRules,
    /// Per cent of a tool's JSON that it takes at least.
    pub(crate) tool_text_percent: u64,
    /// Per cent of its JSON that a tool with objects within objects takes at most.
    pub(crate) nested_tool_text_percent: u64,
}

impl ItemWeigher<'_> {
    /// The tokens of an item's content in the target's format.
    pub(crate) fn weigh_item(&self, item: &Item) -> TokenBounds {
        self.weigh_content(item)
            + item
                .extra()
                .map_or(TokenBounds::ZERO, |extra| self.weigh_signature(extra))
    }

    fn weigh_content(&self, item: &Item) -> TokenBounds {
        match item {
            Item::Message(message) => self.weigh_parts(&message.content),
            Item::FunctionCall(call) => {
                self.weigh_text(&call.name) + self.weigh_text(&call.arguments)
            }
            Item::FunctionCallOutput(output) => match &output.output {
                Output::Text(text) => self.weigh_text(text),
                Output::Parts(parts) => self.weigh_parts(parts),
            },
            Item::Reasoning(reasoning) => self.weigh_reasoning(reasoning),
            Item::Compaction(compaction) => {
                let own = self.reads_opaque(compaction.format.as_deref());
                match &compaction.encrypted_content {
                    // The provider reads its sealed form; everybody else is sent the summary.
                    Some(opaque) if own => opaque_text_bounds(opaque),
                    _ => self.weigh_parts(&compaction.summary),
                }
            }
            Item::Extension(extension) => self.weigh_extension(extension),
        }
    }

    /// The tokens of a tool's definition.
    pub(crate) fn weigh_tool(&self, tool: &ToolDefinition) -> TokenBounds {
        match tool {
            ToolDefinition::Function(tool) => {
                let description = tool.description.as_deref().unwrap_or_default();
                let parameters = tool.parameters.as_ref().map_or("", |schema| schema.get());
                let text = self.weigh_text(&tool.name)
                    + self.weigh_text(description)
                    + self.weigh_text(parameters);
                // Providers rewrite the JSON of tools into a shorter form of their own, so the low
                // bound is a part of the text.
                let least = self.tool_text_percent;
                let is_nested = parameters.matches(r#""properties""#).nth(1).is_some();
                let most = match is_nested {
                    true => self.nested_tool_text_percent,
                    false => 100,
                };
                TokenBounds::between(
                    text.low.saturating_mul(least) / 100,
                    text.high.saturating_mul(most) / 100,
                )
            }
            // Our own format holds the tools of all providers; which of them an adapter sends is not known.
            ToolDefinition::Provider(tool)
                if self.format == Format::Items || tool.format == self.format.as_str() =>
            {
                self.weigh_text(tool.raw.get())
            }
            ToolDefinition::Provider(_) => TokenBounds::ZERO,
        }
    }

    pub(crate) fn weigh_parts(&self, parts: &[Part]) -> TokenBounds {
        parts.iter().map(|part| self.weigh_part(part)).sum()
    }

    fn weigh_part(&self, part: &Part) -> TokenBounds {
        let signature = part
            .extra()
            .map_or(TokenBounds::ZERO, |extra| self.weigh_signature(extra));
        signature
            + match part {
                Part::InputImage(part) => self.weigh_image(part).into(),
                Part::InputFile(part) => self.weigh_file(part).into(),
                Part::Extension(part) => self.weigh_text(part.raw.get()),
                _ => part
                    .as_text()
                    .map_or(TokenBounds::ZERO, |text| self.weigh_text(text)),
            }
    }

    pub(crate) fn weigh_text(&self, text: &str) -> TokenBounds {
        self.counter.count(text).into()
    }

    /// A picture that is not inline counts as the largest the rule allows.
    fn weigh_image(&self, part: &ImagePart) -> TokenCount {
        let detail: Option<Detail> = part.detail.as_deref().and_then(|word| word.parse().ok());
        // Only inline data can be measured; a link counts as the largest picture that the rule allows.
        let inline = part.image_url.as_deref().and_then(DataUrl::parse);
        let size = inline.and_then(|url| Dimensions::read_base64_header(url.base64));
        image_tokens(self.media, size, detail.unwrap_or_default())
    }

    /// A file by its kind: pictures and sound by their rule, a document by its pages, text as text.
    fn weigh_file(&self, part: &FilePart) -> TokenCount {
        let inline = part.file_data.as_deref().and_then(DataUrl::parse);
        let stated = part.media_type.as_deref();
        let media_type = stated
            .or(inline.map(|url| url.media_type))
            .unwrap_or_default();
        // Files come with or without a media type; pictures sent as files are billed as pictures.
        if media_type.starts_with("image/") {
            let size = inline.and_then(|url| Dimensions::read_base64_header(url.base64));
            return image_tokens(self.media, size, Detail::Auto);
        }
        let base64 = inline.map(|url| url.base64).or(part.file_data.as_deref());
        let Some(bytes) = base64.map(decode_base64) else {
            let page = self.media.page;
            // Nothing is known of its size; it may be a line of text.
            return TokenCount::estimate(
                0,
                page.count.into(),
                UNSEEN_PAGES.saturating_mul(page.high.into()),
            );
        };
        if media_type.starts_with("audio/") {
            audio_tokens(self.media, &bytes)
        } else {
            document_with_frame(document_tokens(self.media, &bytes, self.counter))
        }
    }

    /// Reasoning is replayed only to the family that wrote it, and read by the model only until its turn is over. What is
    /// shown may be a summary of what is sealed.
    fn weigh_reasoning(&self, reasoning: &Reasoning) -> TokenBounds {
        // Other families are not sent it at all: the format leaves it out when lowering.
        if !self.reads_opaque(reasoning.format.as_deref()) {
            return TokenBounds::ZERO;
        }
        let content = reasoning.content.as_deref().unwrap_or_default();
        let shown = self.weigh_parts(content) + self.weigh_parts(&reasoning.summary);
        let opaque = [&reasoning.encrypted_content, &reasoning.signature];
        let sealed: TokenBounds = opaque
            .into_iter()
            .flatten()
            .map(|text| opaque_text_bounds(text))
            .sum();
        // From zero: once its turn is over the provider drops it from the prompt without telling.
        TokenBounds::between(0, shown.high.saturating_add(sealed.high))
    }

    /// The thoughts that the provider seals beside a part.
    fn weigh_signature(&self, extra: &Extra) -> TokenBounds {
        let names = self.format.spec().sealed_members();
        if names.is_empty() {
            return TokenBounds::ZERO;
        }
        let wire = extra.wire_fields(self.format.as_str());
        names
            .iter()
            .find_map(|name| wire.get(name))
            .map_or(TokenBounds::ZERO, |raw| opaque_text_bounds(raw.get()))
    }

    /// An extension is written verbatim to its own provider and to nobody else.
    fn weigh_extension(&self, extension: &Extension) -> TokenBounds {
        let own = self
            .format
            .spec()
            .identity()
            .owns_extension(&extension.kind);
        if own {
            // The provider writes it for the model in a form of its own, as it does with tools.
            let text = self.weigh_text(extension.raw.get());
            TokenBounds::between(0, text.high.saturating_mul(3) / 2)
        } else {
            TokenBounds::ZERO
        }
    }

    fn reads_opaque(&self, maker: Option<&str>) -> bool {
        self.format.spec().identity().reads_opaque(maker)
    }
}

/// Whether an item has a file whose content is not in the request.
pub(crate) fn has_unseen_file(item: &Item) -> bool {
    let parts = match item {
        Item::Message(message) => &message.content,
        Item::FunctionCallOutput(output) => match &output.output {
            Output::Parts(parts) => parts,
            Output::Text(_) => return false,
        },
        _ => return false,
    };
    let is_unseen = |part: &Part| matches!(part, Part::InputFile(file) if file.file_data.is_none());
    parts.iter().any(is_unseen)
}

/// A document as the provider writes it: with its name and a frame, some of its white space gone.
fn document_with_frame(document: TokenCount) -> TokenCount {
    const FRAME: u64 = 40;
    let high = document.high.saturating_add(FRAME);
    TokenCount::estimate(document.low / 10 * 9, document.count, high)
}

/// Base64 that only its maker can read. Recorded requests were billed a tenth to a quarter of a token a character, or
/// nothing where the model does not read it.
const fn opaque_text_bounds(base64: &str) -> TokenBounds {
    TokenBounds::between(0, base64.len() as u64 / 4)
}

/// The bytes of a base64 text, or the text itself where it is something else.
fn decode_base64(text: &str) -> Vec<u8> {
    let lenient =
        GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent);
    let engine = GeneralPurpose::new(&STANDARD, lenient);
    engine
        .decode(text)
        .unwrap_or_else(|_| text.as_bytes().to_vec())
}
