//! Documents of one format as documents of another, as the models behind the other can read them.
//!
//! Not here: which format a document is of (`contexture-sessions`), and fitting it into a window ([`crate::pipeline::compile`]).

use contexture_catalogue::{Catalogue, CatalogueError, ModelSpec};
use contexture_ir::{Item, Transcript};
use contexture_wire::{Dialect, Format, Issue, Loss, RepairRules, WireError, lift, lower, repair};

/// Writes documents in a format: what it cannot say is listed, never dropped silently.
///
/// ```
/// use contexture_catalogue::Catalogue;
/// use contexture_compile::Converter;
/// use contexture_wire::Format;
///
/// let converter = Converter::new(Catalogue::builtin(), Format::Anthropic);
/// let said = r#"[{"role": "user", "content": "hi"}]"#;
/// let converted = converter.convert(Format::OpenAiChat, said)?;
/// assert!(converted.losses.is_empty() && converted.json.contains("hi"));
/// # Ok::<(), contexture_wire::WireError>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Converter<'a> {
    catalogue: &'a Catalogue,
    to: Format,
    model: Option<(&'a str, &'a ModelSpec)>,
    repairs: bool,
}

/// What came of a document.
#[derive(Clone, Debug, PartialEq)]
pub struct Converted {
    /// The document in the other format.
    pub json: String,
    /// What that format cannot say.
    pub losses: Vec<Loss>,
    /// What was mended, if that was asked for.
    pub repairs: Option<Vec<Issue>>,
}

impl<'a> Converter<'a> {
    /// A converter to a format, for the model that each document names, as far as this catalogue knows it.
    #[must_use]
    pub const fn new(catalogue: &'a Catalogue, to: Format) -> Self {
        Self {
            catalogue,
            to,
            model: None,
            repairs: false,
        }
    }

    /// The same for this model, whatever documents say; they name it afterwards.
    ///
    /// # Errors
    /// The model is not in the catalogue.
    pub fn for_model(self, name: &'a str) -> Result<Self, CatalogueError> {
        let model = Some((name, self.catalogue.resolve(name)?));
        Ok(Self { model, ..self })
    }

    /// The same, making of each history one that a provider accepts: every call one output, legal roles.
    #[must_use]
    pub const fn with_repairs(self) -> Self {
        Self {
            repairs: true,
            ..self
        }
    }

    /// The document in the other format. To its own format it stays as it is.
    ///
    /// # Errors
    /// It is not a document of the format it is said to be of.
    pub fn convert(&self, from: Format, document: &str) -> Result<Converted, WireError> {
        let mut lifted = lift(from, document)?;
        if let Some((name, _)) = self.model {
            // Set before the dialect is chosen, so the named model decides what the document may say.
            lifted.transcript.model = Some(name.to_owned());
        }
        let (dialect, rules) = self.dialect_and_rules(from, &lifted.transcript);
        let mut repairs = None;
        // Repaired between reading and writing: in the middle there is one form of items, whatever
        // both formats are.
        if self.repairs {
            let (items, issues) = repair_history(&lifted.transcript.items, &rules);
            lifted.transcript.items = items;
            repairs = Some(issues);
        }
        let lowered = lower(&dialect, lifted.kind, &lifted.transcript);
        let mut losses = lifted.losses;
        losses.extend(lowered.losses);
        Ok(Converted {
            json: lowered.json,
            losses,
            repairs,
        })
    }

    /// What the format and the model can read.
    fn dialect_and_rules(&self, from: Format, document: &Transcript) -> (Dialect, RepairRules) {
        let mut dialect = Dialect::of(self.to);
        let mut rules = RepairRules::for_format(self.to);
        // What stands in a document of the format may stand there.
        dialect.mid_system |= from == self.to;
        let own = || self.catalogue.resolve(document.model.as_deref()?).ok();
        if let Some(spec) = self.model.map(|(_, spec)| spec).or_else(own) {
            adapt_dialect(&mut dialect, spec);
            // A model that continues a begun answer takes a history that ends with its own words.
            rules.user_last &= !spec.capabilities.prefill;
        }
        (dialect, rules)
    }
}

/// Takes into a format's dialect what a model behind it reads.
pub(crate) fn adapt_dialect(dialect: &mut Dialect, spec: &ModelSpec) {
    dialect.mid_system |= spec.capabilities.mid_conversation_system;
    dialect.signed_calls = spec.capabilities.signed_calls;
}

/// Mends the items; ids that had to change are changed in them.
fn repair_history(items: &[Item], rules: &RepairRules) -> (Vec<Item>, Vec<Issue>) {
    let mended = repair(&items.iter().collect::<Vec<_>>(), rules);
    let renamed = mended.items.into_iter().map(|entry| {
        let mut item = entry.item.into_owned();
        match (&mut item, entry.call_id) {
            (Item::FunctionCall(call), Some(id)) => call.call_id = id,
            (Item::FunctionCallOutput(output), Some(id)) => output.call_id = id,
            _ => {}
        }
        item
    });
    (renamed.collect(), mended.issues)
}
