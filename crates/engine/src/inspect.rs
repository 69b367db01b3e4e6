//! All that a program may want to look at of a conversation, in one call.
//!
//! Not here: the parts themselves (`call`, `view`, `tree`).

use contexture_catalogue::Money;
use contexture_compile::{Rates, Report};
use contexture_ir::Fragment;
use contexture_store::Conversation as Record;
use contexture_tokens::counter_for;

use crate::call::{CompileOptions, compile_call};
use crate::error::EngineError;
use crate::handle::{Conversation, TargetChoice, list_fragments, list_stored_fragments, load_info};
use crate::tree::draw_tree;
use crate::view::{Resolved, resolve_conversation};

/// A conversation as its next call would have it.
#[derive(Clone, Debug)]
pub struct Inspection {
    /// The estimate of the next call: tokens of each segment, what is left out and why, the predicted cache and its price.
    pub report: Report,
    /// The handle's fragments, in the order in which the model reads them.
    pub fragments: Vec<FragmentEstimate>,
    /// The system prompt as it is rendered, and the messages.
    pub resolved: Resolved,
    /// The record: title, resource, metadata, counts.
    pub info: Record,
    /// The tree of messages, [drawn](crate::tree::draw_tree).
    pub tree: String,
}

/// What one fragment takes in each call.
#[derive(Clone, Debug, PartialEq)]
pub struct FragmentEstimate {
    /// Name of the fragment, such as `hint`.
    pub name: String,
    /// Its id, if it has one.
    pub id: Option<String>,
    /// Its text, rendered alone.
    pub text: String,
    /// Tokens of the text, in the model's encoding. Fragments that are rendered together share a tag at times, so the sum may be a
    /// little more than the report's segment.
    pub tokens: u64,
    /// What these cost as uncached input; `None` where the price is not known.
    pub cost: Option<Money>,
    /// Whether the path carries it. If not, it is the handle's: until the next append stores it, or for good.
    pub is_stored: bool,
}

/// Looks at everything, without storing anything.
pub(crate) async fn inspect_conversation(
    chat: &Conversation,
    target: TargetChoice<'_>,
) -> Result<Inspection, EngineError> {
    let report = compile_call(chat, target, CompileOptions::default())
        .await?
        .report;
    let stored = list_stored_fragments(chat).await?;
    let fragments = list_fragments(chat).await?;
    Ok(Inspection {
        fragments: estimate_fragments(chat, &report, &fragments, &stored)?,
        report,
        resolved: resolve_conversation(chat).await?,
        info: load_info(chat).await?,
        tree: draw_tree(chat).await?,
    })
}

fn estimate_fragments(
    chat: &Conversation,
    report: &Report,
    fragments: &[Fragment],
    stored: &[Fragment],
) -> Result<Vec<FragmentEstimate>, EngineError> {
    let spec = chat.engine().catalogue().resolve(&report.target.model)?;
    let counter = counter_for(spec.encoding);
    // The price of a token may depend on the size of the whole request.
    let rates = Rates::for_request(&spec.prices, spec.cache.kind, report.totals.tokens);
    let estimate = |fragment: &Fragment| {
        let text = chat.renderer().render(std::slice::from_ref(fragment))?;
        let tokens = counter.count(&text).count;
        let cost = rates.as_ref().map(|rates| {
            // Micro-dollars for a million tokens are pico-dollars for one.
            Money::from_pico_dollars(u128::from(rates.input) * u128::from(tokens))
        });
        Ok(FragmentEstimate {
            name: fragment.name.clone(),
            id: fragment.id.clone(),
            text,
            tokens,
            cost,
            is_stored: stored.contains(fragment),
        })
    };
    fragments.iter().map(estimate).collect()
}
