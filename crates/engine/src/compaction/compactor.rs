//! The trait of what summarises a span, and the two implementations that ask no model.

use std::fmt;

use async_trait::async_trait;
use contexture_catalogue::Catalogue;
use contexture_compile::CompileError;
use contexture_compile::compaction::{CoveredItem, SummaryError};
use contexture_ir::ContentHash;
use contexture_models::ModelError;
use contexture_wire::{Format, WireError};

use crate::handle::{SideCaller, SideUsageTracker};

/// One request to a compactor.
#[derive(Clone, Copy, Debug)]
pub struct CompactRequest<'a> {
    /// What the span shows, in order: an earlier compaction in the place of what it stands for.
    pub span: &'a [CoveredItem<'a>],
    /// What the caller wants kept.
    pub instructions: Option<&'a str>,
    /// Models and their prices.
    pub catalogue: &'a Catalogue,
    /// Where calls of a model are counted, if anywhere.
    pub side_usage: Option<&'a dyn SideUsageTracker>,
    /// For whom calls of a model are recorded.
    pub(crate) caller: SideCaller<'a>,
}

/// Sums up a span in words. The manifest goes beside whatever it says.
#[async_trait]
pub trait Compactor: fmt::Debug + Send + Sync {
    /// What its summaries depend on besides the span: one of the same span and configuration is used again.
    fn configuration(&self) -> String;

    /// A summary; `None`: the manifest is enough.
    ///
    /// # Errors
    /// [`CompactorError`]: then the manifest stands alone.
    async fn summarise(
        &self,
        request: CompactRequest<'_>,
    ) -> Result<Option<String>, CompactorError>;
}

/// A compactor that writes no summary, so that the manifest stands alone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ManifestOnly;

#[async_trait]
impl Compactor for ManifestOnly {
    fn configuration(&self) -> String {
        "manifest".to_owned()
    }

    async fn summarise(&self, _: CompactRequest<'_>) -> Result<Option<String>, CompactorError> {
        Ok(None)
    }
}

/// Puts in a summary that somebody wrote: a person, or a model that was asked elsewhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GivenSummary(String);

impl GivenSummary {
    /// The summary; `None` if it is blank.
    #[must_use]
    pub fn new(text: impl Into<String>) -> Option<Self> {
        let text = text.into();
        (!text.trim().is_empty()).then_some(Self(text))
    }
}

#[async_trait]
impl Compactor for GivenSummary {
    fn configuration(&self) -> String {
        format!("written {}", ContentHash::of(self.0.as_bytes()))
    }

    async fn summarise(&self, _: CompactRequest<'_>) -> Result<Option<String>, CompactorError> {
        Ok(Some(self.0.clone()))
    }
}

/// Why a compactor wrote no summary.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CompactorError {
    /// The model did not answer.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// The answer is no summary.
    #[error(transparent)]
    Summary(#[from] SummaryError),
    /// The question does not fit the summariser.
    #[error(transparent)]
    Compile(#[from] CompileError),
    /// The answer is not of its format.
    #[error(transparent)]
    Wire(#[from] WireError),
    /// The answer is no answer.
    #[error("the summariser's answer is no response in {format}")]
    NotAResponse {
        /// Format that the answer should have.
        format: Format,
    },
    /// Another compactor's reason.
    #[error("{reason}")]
    Other {
        /// Reason in plain words.
        reason: String,
    },
}
