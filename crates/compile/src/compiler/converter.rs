//! Documents of one format as documents of another, as the models behind the other can read them.
//!
//! Not here: which format a document is of (`contexture-sessions`), and fitting it into a window ([`crate::pipeline::compile`]).

use contexture_catalogue::{Catalogue, CatalogueError, ModelSpec};
use contexture_ir::Transcript;
use contexture_wire::{
    Dialect, Format, Issue, Loss, LossKind, RepairRules, RequestTraits, WireError, lift,
    limit_markers, lower, remove_empty_tools, remove_thinking, repair, repair_tools,
};

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
    /// It is not a document of the format it is said to be of, or its tools cannot be offered together and are to be
    /// mended.
    pub fn convert(&self, from: Format, document: &str) -> Result<Converted, WireError> {
        let mut lifted = lift(from, document)?;
        if let Some((name, _)) = self.model {
            // Set before the dialect is chosen, so the named model decides what the document may say.
            lifted.transcript.model = Some(name.to_owned());
        }
        let spec = self.model_spec(&lifted.transcript);
        let (dialect, rules) = self.dialect_and_rules(from, &lifted.transcript, spec);
        let mut losses = std::mem::take(&mut lifted.losses);
        let mut repairs = None;
        // Repaired between reading and writing: in the middle there is one form of items, whatever
        // both formats are.
        if self.repairs {
            let limit = spec.and_then(|spec| spec.tool_limit);
            let (issues, lost) = repair_document(&mut lifted.transcript, &rules, limit)?;
            losses.extend(lost);
            repairs = Some(issues);
        }
        let mut lowered = lower(&dialect, lifted.kind, &lifted.transcript);
        if self.repairs
            && let Some((json, count)) = limit_markers(self.to, &lowered.json)
        {
            lowered.json = json;
            lowered.losses.push(surplus_markers_loss(count));
        }
        losses.extend(lowered.losses);
        Ok(Converted {
            json: lowered.json,
            losses,
            repairs,
        })
    }

    /// The model that is named, as far as the catalogue knows it.
    fn model_spec(&self, document: &Transcript) -> Option<&'a ModelSpec> {
        let own = || self.catalogue.resolve(document.model.as_deref()?).ok();
        self.model.map(|(_, spec)| spec).or_else(own)
    }

    /// What the format and the model can read.
    fn dialect_and_rules(
        &self,
        from: Format,
        document: &Transcript,
        spec: Option<&ModelSpec>,
    ) -> (Dialect, RepairRules) {
        let mut dialect = Dialect::of(self.to);
        // What stands in a document of the format may stand there, unless the model is known to be older and the
        // document is to be mended.
        dialect.mid_system |= from == self.to && !(self.repairs && spec.is_some());
        if let Some(spec) = spec {
            adapt_dialect(&mut dialect, spec);
        }
        // A model that continues a begun answer takes a history that ends with its own words.
        let prefill = spec.is_some_and(|spec| spec.capabilities.prefill);
        let thinking = self.to.spec().thinking(document);
        let members = document.extra.wire_fields(self.to.as_str());
        let rules = RepairRules::for_format(self.to)
            .for_request(RequestTraits { prefill, thinking })
            .for_members(members.iter().map(|(name, _)| name));
        (dialect, rules)
    }
}

/// Takes into a format's dialect what a model behind it reads.
pub(crate) fn adapt_dialect(dialect: &mut Dialect, spec: &ModelSpec) {
    dialect.mid_system |= spec.capabilities.mid_conversation_system;
    dialect.signed_calls = spec.capabilities.signed_calls;
}

fn surplus_markers_loss(count: usize) -> Loss {
    Loss {
        path: "cache_markers".to_owned(),
        what: LossKind::Field,
        why: format!("the first {count} are more than the provider accepts"),
    }
}

/// Mends a document's history and tools, and what of its request does not suit them.
fn repair_document(
    document: &mut Transcript,
    rules: &RepairRules,
    tool_limit: Option<usize>,
) -> Result<(Vec<Issue>, Vec<Loss>), WireError> {
    let target = rules.target;
    let tools = repair_tools(target, &document.tools, tool_limit)?;
    let mut losses = tools.losses;
    document.tools = tools.tools.into_owned();
    losses.extend(remove_empty_tools(target, document));
    let mut mended = repair(&document.items.iter().collect::<Vec<_>>(), rules);
    let issues = std::mem::take(&mut mended.issues);
    let refuses_thinking = mended.refuses_thinking;
    document.items = mended.into_items();
    if refuses_thinking {
        losses.push(remove_thinking(target, document));
    }
    Ok((issues, losses))
}
