//! Options of one compile call that are not stored with the conversation.

use std::fmt;

use contexture_catalogue::ModelSpec;
use contexture_compile::{Cancel, CompileRequest, Contribution, OfferedTools, PathItem};
use contexture_ir::{Message, NodeId, Transcript};
use contexture_tools::{Choice, LoadedToolkits, OfferRequest, Registry, ToolSupport};

use crate::hooks::LayerSession;

/// How to compile a call; see [`Conversation::compile_with`](crate::Conversation::compile_with). A list of
/// contributions is options that say these too.
///
/// ```
/// use contexture_compile::Cancel;
/// use contexture_engine::CompileOptions;
///
/// let cancel = Cancel::new();
/// // Kept by another thread, say: one that notices that nobody waits any more.
/// let elsewhere = cancel.clone();
/// let options = CompileOptions { cancel: Some(&cancel), ..CompileOptions::default() };
/// # elsewhere.cancel();
/// # assert!(options.cancel.is_some_and(Cancel::is_cancelled));
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct CompileOptions<'a> {
    /// Node at which the history ends. Default: the head of the handle's branch.
    pub at: Option<NodeId>,
    /// What is said too, behind what the handle says. Default: nothing.
    pub contributions: &'a [Contribution],
    /// The messages that lead, in the place of those that an imported or ingested history was stored with.
    /// Default: those.
    pub instructions: Option<&'a [Message]>,
    /// Tools out of a registry, offered behind the target's own. Default: none.
    pub tools: Option<RegistryTools<'a>>,
    /// The layers of a run, in the states the run has them in. Default: the handle's, in those stored.
    pub layers: Option<&'a LayerSession>,
    /// Where tools and options come from that the target does not say. Default: the stored request.
    pub settings: SettingsSource,
    /// Which tools of the stored request may be offered. Default: all.
    pub stored_tools: Option<ToolFilter<'a>>,
    /// Whether it is the first compile of the call, or follows one that the provider refused. Default: the first.
    pub attempt: CompileAttempt,
    /// What may call the compile off from another thread; it is looked at between the passes. Default:
    /// nothing.
    pub cancel: Option<&'a Cancel>,
}

/// Takes tools out of a stored request, which has its tools and options and no history, by what the items of the path say. A choice of a
/// tool that it takes out is forgotten.
#[derive(Clone, Copy)]
pub struct ToolFilter<'a>(pub &'a (dyn Fn(&mut Transcript, &[PathItem]) + Send + Sync));

impl fmt::Debug for ToolFilter<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ToolFilter(..)")
    }
}

/// Which compile of a call it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CompileAttempt {
    /// The first: its counts are those that its epoch began with.
    #[default]
    First,
    /// The one behind a refusal of the first as too long, within the
    /// [budget after it](crate::Conversation::budget_after_refusal). Its counts are the newest: those of the epoch
    /// have just been found to be too low.
    AfterRefusal,
}

/// Where a compile takes settings from that its target does not say: tools, options, members that only one format has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SettingsSource {
    /// From the request that the history was imported or ingested with, if there is one: each option that the target
    /// leaves open, and its tools if neither the target nor the call has any. Whether the answer is streamed, and names of
    /// histories that a provider keeps, are not among them.
    #[default]
    StoredRequest,
    /// From nowhere else: what the target does not say is not said.
    Target,
}

/// Which tools of a registry a call offers. Their order and what a task was judged by hold from call to call
/// on a path: they are kept in the plan, and rewind with it. What is left out is in the report, with its
/// reasons.
#[derive(Clone, Copy, Debug)]
pub struct RegistryTools<'a> {
    /// The tools there are.
    pub registry: &'a Registry,
    /// Which are wanted.
    pub choice: &'a Choice,
    /// Which toolkits were loaded.
    pub loaded: &'a LoadedToolkits,
}

impl RegistryTools<'_> {
    /// The request with these tools.
    pub(crate) fn add_to_request(
        &self,
        request: CompileRequest,
        latched: Option<&OfferedTools>,
        model: &ModelSpec,
    ) -> CompileRequest {
        // The choice of the call before holds while its task does: a tool list that changes in every call would end
        // the cached prefix at its very beginning.
        let latched = latched.map(|latched| latched.to_selection(self.choice));
        let offer = self.registry.offer(OfferRequest {
            choice: self.choice,
            loaded: self.loaded,
            latched: latched.as_ref(),
            support: ToolSupport::for_model(model, request.target_name()),
            // What the request offers already has its place among those the model takes.
            limit: model
                .tool_limit
                .map(|limit| limit.saturating_sub(request.tools.len())),
        });
        request.with_offer(offer)
    }
}

impl<'a> From<&'a [Contribution]> for CompileOptions<'a> {
    fn from(also: &'a [Contribution]) -> Self {
        Self {
            contributions: also,
            ..Self::default()
        }
    }
}

impl<'a, const N: usize> From<&'a [Contribution; N]> for CompileOptions<'a> {
    fn from(also: &'a [Contribution; N]) -> Self {
        Self::from(also.as_slice())
    }
}

impl<'a> From<&'a Vec<Contribution>> for CompileOptions<'a> {
    fn from(also: &'a Vec<Contribution>) -> Self {
        Self::from(also.as_slice())
    }
}
