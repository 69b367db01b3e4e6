//! Compiling a conversation for one model call.

use std::sync::Arc;

use contexture_compile::{
    Advice, Band, CompileInput, Compiled, Content, Contribution, PathItem, Payload, Plan, Report,
    Target, compile,
};
use contexture_ir::{BranchName, NodeId};
use contexture_render::{Renderer, XmlRenderer};
use contexture_store::{At, ReadRequest, StateKey, StateRequest};
use contexture_tokens::counter_for;
use contexture_wire::{Format, Renames};

use crate::conversation::Conversation;
use crate::error::EngineError;
use crate::instructions::Instructions;

/// A compiled call: what to send, why it looks so, and what is needed to store the answer.
#[derive(Clone, Debug)]
pub struct CompiledCall {
    /// The request to send.
    pub payload: Payload,
    /// What is in it and why.
    pub report: Report,
    /// What to consider before the next call.
    pub advice: Option<Advice>,
    pub(crate) plan: Plan,
    pub(crate) plan_key: String,
    pub(crate) base: Option<NodeId>,
    pub(crate) branch: BranchName,
    pub(crate) format: Format,
    pub(crate) renames: Renames,
}

impl CompiledCall {
    pub(crate) fn new(
        compiled: Compiled,
        format: Format,
        plan_key: String,
        branch: BranchName,
        base: Option<NodeId>,
    ) -> Self {
        Self {
            payload: compiled.payload,
            report: compiled.report,
            advice: compiled.advice,
            plan: compiled.plan,
            plan_key,
            base,
            branch,
            format,
            renames: compiled.renames,
        }
    }

    /// The format of the request, and of the answer.
    #[must_use]
    pub const fn format(&self) -> Format {
        self.format
    }

    /// The head the call was compiled against.
    #[must_use]
    pub const fn base(&self) -> Option<NodeId> {
        self.base
    }
}

impl Conversation {
    /// Compiles what this branch says for one model call.
    ///
    /// Nothing is stored; the plan of the call is stored with its answer, by
    /// [`record`](Conversation::record). The work is done on the calling thread: cold, about a third
    /// of a second a million tokens; after that in proportion to what is new.
    ///
    /// # Errors
    /// [`EngineError::Catalogue`] for an unknown model, [`EngineError::Refused`] for what cannot be
    /// compiled, or the store's.
    pub async fn compile(&self, target: &Target) -> Result<CompiledCall, EngineError> {
        self.compile_with(target, &[]).await
    }

    /// As [`Self::compile`], saying this too.
    pub async fn compile_with(
        &self,
        target: &Target,
        also: &[Contribution],
    ) -> Result<CompiledCall, EngineError> {
        let request = target.request(self.engine().catalogue())?;
        let branch = self.branch();
        let path = self
            .path(ReadRequest::whole(At::Branch(branch.clone())))
            .await?;
        // Everything else is read at the node the path ended at, so that all of it is of one instant.
        let at = path.head.map_or(At::Branch(branch.clone()), At::Node);
        let mut contributions = said_before(&self.instructions(at.clone()).await?)?;
        contributions.extend_from_slice(also);
        let plan_key = format!("@plan/{}/{}", target.format(), target.model());
        let plan = self.plan(&plan_key, at.clone()).await?;
        let covers = self.covers_at(at.clone()).await?.on(&path.nodes);
        let pins = self.pins_at(at).await?;
        let items: Vec<PathItem> = path
            .nodes
            .iter()
            .zip(&path.items)
            .map(|(node, item)| PathItem {
                node: Some(node.id),
                item: Arc::clone(item),
                hash: node.content_hash,
                audience: node.audience,
                pinned: pins.nodes.contains(&node.id),
            })
            .collect();
        let spec = self.engine().catalogue().resolve(target.model())?;

        let input = CompileInput {
            path: &items,
            covers: &covers,
            passes: &[],
            contributions: &contributions,
            plan: &plan,
            request: &request,
            counter: counter_for(spec.encoding),
        };
        let compiled = self.with_scratch(|scratch| compile(&input, scratch))?;
        Ok(CompiledCall::new(
            compiled,
            target.format(),
            plan_key,
            branch,
            path.head,
        ))
    }

    /// The plan of the last call that is on this path; a first call has an empty one.
    async fn plan(&self, key: &str, at: At) -> Result<Plan, EngineError> {
        let key = StateKey::new(key)?;
        let request = StateRequest {
            prefix: key.as_str().to_owned(),
            ..StateRequest::all(at)
        };
        let state = self.store().state(self.owner(), self.id(), request).await?;
        // A plan is an optimisation: one that cannot be read is as good as none.
        let read = state
            .value(&key)
            .and_then(|bytes| serde_json::from_slice(bytes).ok());
        Ok(read.unwrap_or_default())
    }
}

/// What is said before the history, as contributions: an imported history's own messages, then the
/// fragments as XML.
fn said_before(instructions: &Instructions) -> Result<Vec<Contribution>, EngineError> {
    let mut contributions = Vec::new();
    if !instructions.messages.is_empty() {
        let content = Content::Instructions(instructions.messages.clone());
        contributions.push(Contribution::new("instructions", Band::System, content));
    }
    let text = XmlRenderer::default().render(&instructions.fragments)?;
    if !text.is_empty() {
        contributions.push(Contribution::system("fragments", text));
    }
    Ok(contributions)
}
