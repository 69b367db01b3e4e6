//! Results of stateless calls: token counts, rendered fragments, converted documents.

use contexture::compile::Converted;
use contexture::ir::{Error as IrError, Raw};
use contexture::tokens::TokenCount;
use contexture::wire::{Issue, Loss};
use serde::Serialize;
use utoipa::ToSchema;

/// How many tokens a text has.
#[derive(Clone, Copy, Debug, Serialize, ToSchema)]
pub struct CountDocument {
    /// The tokens; where they are not exact, the most there may be.
    pub tokens: u64,
    /// Whether they were counted, not estimated.
    pub exact: bool,
    /// Not exact: at least so many.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub low: Option<u64>,
    /// Not exact: at most so many.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub high: Option<u64>,
}

impl From<TokenCount> for CountDocument {
    fn from(count: TokenCount) -> Self {
        let exact = count.is_exact();
        Self {
            tokens: count.count,
            exact,
            // Bounds of an exact count would only repeat it.
            low: (!exact).then_some(count.low),
            high: (!exact).then_some(count.high),
        }
    }
}

/// Several texts and their sum.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct CountsDocument {
    /// The sum.
    #[serde(flatten)]
    pub total: CountDocument,
    /// How they were cut into tokens.
    pub encoding: String,
    /// Each text, in order.
    pub texts: Vec<CountDocument>,
}

/// Rendered fragments.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct RenderedDocument {
    /// The text.
    pub output: String,
}

/// A document in another format.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct ConvertedDocument {
    /// The document.
    #[schema(value_type = Object)]
    pub output: Raw,
    /// What the other format cannot say.
    pub losses: Vec<LossDocument>,
    /// What was mended, if that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repairs: Option<Vec<RepairDocument>>,
}

impl TryFrom<Converted> for ConvertedDocument {
    type Error = IrError;

    fn try_from(converted: Converted) -> Result<Self, IrError> {
        let repairs = converted.repairs;
        Ok(Self {
            output: Raw::parse(converted.json)?,
            losses: converted.losses.iter().map(Into::into).collect(),
            // Not asked for and nothing to mend stay apart: `None` is left out, an empty list is
            // shown.
            repairs: repairs.map(|issues| issues.into_iter().map(Into::into).collect()),
        })
    }
}

/// Something a format cannot say.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct LossDocument {
    /// Where it stood.
    pub path: String,
    /// What kind of thing it is.
    pub what: String,
    /// Why.
    pub why: String,
}

impl From<&Loss> for LossDocument {
    fn from(loss: &Loss) -> Self {
        // Taken from the serialized form, so that the word is the same wherever a loss is written
        // as JSON.
        let what = serde_json::to_value(loss.what).ok();
        Self {
            path: loss.path.clone(),
            what: what
                .and_then(|what| what.as_str().map(str::to_owned))
                .unwrap_or_default(),
            why: loss.why.clone(),
        }
    }
}

/// Something that was mended.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct RepairDocument {
    /// Which item, from 0.
    pub index: usize,
    /// What kind of mending.
    pub what: &'static str,
    /// Why.
    pub why: String,
}

impl From<Issue> for RepairDocument {
    fn from(issue: Issue) -> Self {
        Self {
            index: issue.index,
            what: issue.kind.as_str(),
            why: issue.what,
        }
    }
}
