//! Input of `recall`, and a cache of the last contributions.

use std::sync::Arc;

use contexture_catalogue::Capabilities;
use contexture_compile::{Content, Contribution, PathItem};
use contexture_ir::{Fragment, NodeId};
use contexture_render::Renderer;

use crate::contract::hook_context::HookContext;
use crate::contract::spec::LayerSpec;

/// Input of a layer's `recall`.
#[derive(Clone, Copy, Debug)]
pub struct RecallInput<'a> {
    /// Context of the hook.
    pub context: &'a HookContext,
    /// All items of the path.
    pub path: &'a [PathItem],
    /// Text of the user's last message; empty if there is none.
    pub query: &'a str,
    /// Capabilities of the model.
    pub capabilities: &'a Capabilities,
    /// Context window of the model, in tokens.
    pub window: u64,
    /// Renderer of the conversation's handle, which writes fragments as text.
    pub renderer: &'a Arc<dyn Renderer>,
    /// Specification of the layer.
    pub spec: &'a LayerSpec,
}

impl RecallInput<'_> {
    /// Creates a contribution at the layer's position, within its budget.
    #[must_use]
    pub fn contribution(&self, content: Content) -> Contribution {
        let spec = self.spec;
        Contribution {
            stability: spec.stability,
            order: spec.order,
            budget: spec.budget,
            ..Contribution::new(spec.id.as_str(), spec.band, content)
        }
    }

    /// Creates a contribution of fragments, as the handle's renderer writes them; the last fragments are left out first.
    #[must_use]
    pub fn contribution_from_fragments(
        &self,
        fragments: impl IntoIterator<Item = Fragment>,
    ) -> Contribution {
        self.contribution(Content::Fragments {
            fragments: fragments.into_iter().collect(),
            renderer: Arc::clone(self.renderer),
        })
    }
}

/// The last contributions of layers, used for eventual recall and after failures.
#[derive(Clone, Debug, Default)]
pub struct RecallCache {
    entries: Vec<(String, Option<NodeId>, Vec<Contribution>)>,
}

impl RecallCache {
    pub(crate) fn insert(&mut self, layer: &str, head: Option<NodeId>, said: Vec<Contribution>) {
        self.remove(layer);
        self.entries.push((layer.to_owned(), head, said));
    }

    pub(crate) fn remove(&mut self, layer: &str) {
        self.entries.retain(|(of, _, _)| of != layer);
    }

    /// Returns the layer's last contribution, if it was made at a head of this path.
    pub(crate) fn get(&self, layer: &str, path: &[PathItem]) -> Option<&[Contribution]> {
        let (_, head, said) = self.entries.iter().find(|(of, _, _)| of == layer)?;
        let on_path = match head {
            None => true,
            Some(_) => path.iter().rev().any(|item| item.node == *head),
        };
        on_path.then_some(said)
    }
}
