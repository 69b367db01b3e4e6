//! Options of summaries in the background: whom to ask, from when on, and who pays.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use contexture_compile::compaction::SummaryOptions;
use contexture_ir::{ConversationId, Owner};
use contexture_models::Model;
use contexture_store::CallNames;

use crate::compaction::ModelCompactor;

/// A summary that a model writes in the background, before a compaction is due; see
/// [`Strategy::Summary`](crate::Strategy::Summary).
///
/// The conversation's own model is asked behind the request that it answered last, so its provider reads nearly all of the
/// input from its cache. Another model has nothing of it cached and is sent the part that is summed up. With both, the cheaper
/// way by the catalogue's prices is taken.
#[derive(Clone, Debug)]
pub struct BackgroundSummary {
    pub(super) payer: Option<Arc<dyn SummaryPayer>>,
    pub(super) own: Option<Arc<dyn Model>>,
    pub(super) other: Option<ModelCompactor>,
    /// From which share of a request's space on a summary is made, in per cent. Default 70. It is never later than shortly
    /// before the compaction.
    pub from_percent: u8,
    /// How long the model's answer may be, its analysis included, in tokens. Default 8,192.
    pub answer_tokens: u64,
    /// What the summary should hold beside what is always asked for.
    pub options: SummaryOptions,
    /// Whether a summary is only made if it costs less than the shorter history saves over five calls. Default: false.
    pub must_pay: bool,
}

impl BackgroundSummary {
    const fn new(own: Option<Arc<dyn Model>>, other: Option<ModelCompactor>) -> Self {
        Self {
            payer: None,
            own,
            other,
            from_percent: 70,
            answer_tokens: 8_192,
            options: SummaryOptions {
                instructions: None,
                longest_output: 4_000,
            },
            must_pay: false,
        }
    }

    /// Asks the model of the conversation, which answers the target that calls are prepared for.
    #[must_use]
    pub const fn by_own_model(model: Arc<dyn Model>) -> Self {
        Self::new(Some(model), None)
    }

    /// Asks another model, and only that one.
    #[must_use]
    pub const fn by_other_model(other: ModelCompactor) -> Self {
        Self::new(None, Some(other))
    }

    /// Also asks another model, where that is cheaper or the conversation's own cannot be asked.
    #[must_use]
    pub fn or_by_other_model(mut self, other: ModelCompactor) -> Self {
        self.other = Some(other);
        self
    }

    /// Names who pays for the questions, for the record of calls and for limits of what may be spent. Default: nobody is named,
    /// and nothing limits them.
    #[must_use]
    pub fn paid_by(mut self, payer: Arc<dyn SummaryPayer>) -> Self {
        self.payer = Some(payer);
        self
    }
}

/// Whom a summary is asked of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SummaryModel {
    /// The conversation's own model.
    Own,
    /// The other one.
    Other,
}

/// Who pays for the questions of a [`BackgroundSummary`].
#[async_trait]
pub trait SummaryPayer: fmt::Debug + Send + Sync {
    /// The names under which a question is recorded. The model's is filled in from the question itself.
    fn names(&self, asked: SummaryModel) -> CallNames;

    /// Checks that a conversation may spend more, before its question is asked.
    ///
    /// # Errors
    /// Why it may not: the summary is then missing, with these words as the reason.
    async fn may_ask(&self, owner: &Owner, conversation: &ConversationId) -> Result<(), String>;
}
