//! Results of stateless calls: token counts, rendered fragments, converted documents.

use contexture::compile::Converted;
use contexture::ir::{Error as IrError, Raw};
use contexture::tokens::TokenCount;
use contexture::wire::{Issue, Loss};
use serde::Serialize;
use utoipa::ToSchema;

use crate::schema::{EncodingSchema, LossKindSchema, RepairKindSchema};

/// The number of tokens of a text.
#[derive(Clone, Copy, Debug, Serialize, ToSchema)]
pub struct CountDocument {
    /// Number of tokens; the best estimate if the count is not exact.
    pub tokens: u64,
    /// Whether the tokens were counted, not estimated.
    pub exact: bool,
    /// Lower bound of the estimate; absent if the count is exact.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub low: Option<u64>,
    /// Upper bound of the estimate; absent if the count is exact.
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

/// Token counts of several texts, and their sum.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct CountsDocument {
    /// Sum over all texts.
    #[serde(flatten)]
    pub total: CountDocument,
    /// Name of the encoding that was used.
    #[schema(value_type = EncodingSchema)]
    pub encoding: String,
    /// Count of each text, in the order given.
    pub texts: Vec<CountDocument>,
}

/// Fragments that were rendered as text.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct RenderedDocument {
    /// The rendered text, as a model reads it.
    pub output: String,
}

/// A document that was converted to another format.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct ConvertedDocument {
    /// The document in the new format.
    #[schema(value_type = serde_json::Value)]
    pub output: Raw,
    /// Content that the new format cannot express.
    pub losses: Vec<LossDocument>,
    /// Repairs of the history; absent if none were asked for.
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

/// Content that a format cannot express.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct LossDocument {
    /// Position of the content, such as `messages[3].content[0]`.
    pub path: String,
    /// Kind of the content.
    #[schema(value_type = LossKindSchema)]
    pub what: String,
    /// Reason for the loss, as a sentence fragment.
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

/// A repair that makes a history acceptable to its target.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct RepairDocument {
    /// Index of the item concerned, from 0; the number of items for the end of the history.
    pub index: usize,
    /// Kind of the problem that was repaired.
    #[schema(value_type = RepairKindSchema)]
    pub what: &'static str,
    /// Problem and repair, as a sentence fragment.
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
