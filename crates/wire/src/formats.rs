//! The list of formats: which folder describes which [`Format`].
//!
//! This is the only place that chooses code by format. It stands apart from the trait in `spec.rs` because the format folders name
//! the trait and this file names the folders: together they would be a circle. The constructors that take a format
//! ([`Dialect::of`], [`RepairRules::for_format`]) stand here for the same reason.

use contexture_ir::Usage;

use crate::anthropic::Anthropic;
use crate::bedrock::Bedrock;
use crate::gemini::Gemini;
use crate::items::Items;
use crate::model::chunk::Dialect;
use crate::model::format::Format;
use crate::model::repair_rules::RepairRules;
use crate::openai::{Chat, Responses};
use crate::spec::{FormatHosts, FormatSpec};
use crate::ui::Ui;

impl Format {
    /// Returns what is special about the format.
    ///
    /// ```
    /// use contexture_wire::Format;
    ///
    /// let spec = Format::Gemini.spec();
    /// assert_eq!(spec.identity().otel_provider, "gcp.gen_ai");
    /// assert!(spec.http().is_some() && Format::Items.spec().http().is_none());
    /// ```
    #[must_use]
    pub fn spec(self) -> &'static dyn FormatSpec {
        match self {
            Self::OpenAiChat => &Chat,
            Self::OpenAiResponses => &Responses,
            Self::Anthropic => &Anthropic,
            Self::Gemini => &Gemini,
            Self::Bedrock => &Bedrock,
            Self::Ui => &Ui,
            Self::Items => &Items,
        }
    }
}

impl Format {
    /// Reports whether somebody offers a provider's models in the format, in one way or another. Providers go by their
    /// names in the model catalogue.
    ///
    /// ```
    /// use contexture_wire::Format;
    ///
    /// assert!(Format::Anthropic.is_offered_for("mistral"));
    /// assert!(!Format::Anthropic.is_offered_for("google"));
    /// ```
    #[must_use]
    pub fn is_offered_for(self, provider: &str) -> bool {
        let native = Self::of_provider(provider);
        // A provider whose native format belongs to another company is a compatible host.
        let is_host = native.spec().identity().catalogue_provider.is_none();
        match self.spec().identity().hosts {
            FormatHosts::Own => native == self,
            FormatHosts::OwnAndCompatible => native == self || is_host,
            FormatHosts::Any => true,
        }
    }
}

/// Returns how many tokens an answer wrote to a provider's cache for the long time; `None` if its usage does not say,
/// whatever format it came in.
#[must_use]
pub fn long_cache_write(usage: &Usage) -> Option<u64> {
    // A usage carries the fields of the one format it was read from, so at most one format finds its own.
    let mut formats = Format::ALL.into_iter();
    formats.find_map(|format| format.spec().long_cache_write(usage))
}

impl Dialect {
    /// The dialect of current models of a format.
    #[must_use]
    pub fn of(format: Format) -> Self {
        format.spec().dialect()
    }
}

impl RepairRules {
    /// The rules of a format's current models.
    ///
    /// Chat refuses call ids over 40 bytes, Responses over 64; Anthropic accepts plain characters only. Anthropic and
    /// Gemini want the user first, and last: models that take a prefill are the older ones, for them set `user_last` to
    /// false. UI messages and items want nothing but pairs.
    #[must_use]
    pub fn for_format(format: Format) -> Self {
        format.spec().repair_rules()
    }
}

#[cfg(test)]
mod tests {
    use contexture_ir::Fields;

    use super::*;
    use crate::model::overhead::Overhead;
    use crate::model::prompt_cache::{OutlineBlock, OutlineVisitor};

    struct NoBlocks;

    impl<'a> OutlineVisitor<'a> for NoBlocks {
        fn visit_block(&mut self, block: OutlineBlock<'a, '_>) {
            unreachable!("an empty request has no {block:?}");
        }
    }

    #[test]
    fn every_format_is_described_by_its_own_spec() {
        for format in Format::ALL {
            let spec = format.spec();
            assert_eq!(spec.format(), format);
            assert_eq!(spec.dialect().format, format);
            assert_eq!(spec.repair_rules().target, format);
            let is_provider = Format::PROVIDERS.contains(&format);
            assert_eq!(spec.http().is_some(), is_provider);
            assert_eq!(spec.members().is_some(), is_provider);
            assert_eq!(spec.stream().is_some(), is_provider);
            // Defaults that say "none" are right only for what is never sent to a provider.
            assert_eq!(*spec.overhead() != Overhead::NONE, is_provider);
            let missing = spec.outline(&Fields::default(), &mut NoBlocks).unwrap_err();
            let history = spec
                .members()
                .map(|members| format!("`{}`", members.history));
            assert_eq!(
                history.is_some_and(|name| missing.contains(&name)),
                is_provider
            );
            assert_eq!(spec.proxy().is_some(), is_provider);
            assert_eq!(spec.text_response("x").is_some(), is_provider);
            if let Some(provider) = spec.identity().catalogue_provider {
                assert_eq!(Format::of_provider(provider), format);
            }
        }
    }
}
