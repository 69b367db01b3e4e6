//! What a layer is told when it is asked for its words, and what layers said last.

use std::sync::Arc;

use contexture_catalogue::Capabilities;
use contexture_compile::{Content, Contribution, PathItem};
use contexture_ir::{Fragment, NodeId};
use contexture_render::XmlRenderer;

use crate::contract::hook_context::HookContext;
use crate::contract::spec::LayerSpec;

/// What a layer is told when it is asked for its words.
#[derive(Clone, Copy, Debug)]
pub struct RecallInput<'a> {
    /// Where and when.
    pub context: &'a HookContext,
    /// The path, whole.
    pub path: &'a [PathItem],
    /// What the person said last; empty if nobody has said anything.
    pub query: &'a str,
    /// What the model can do.
    pub capabilities: &'a Capabilities,
    /// Tokens the model can hold.
    pub window: u64,
    /// The layer, as it says of itself.
    pub spec: &'a LayerSpec,
}

impl RecallInput<'_> {
    /// Words at the layer's place, under its budget.
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

    /// Fragments as XML, of which the last are left out first.
    #[must_use]
    pub fn contribution_from_fragments(
        &self,
        fragments: impl IntoIterator<Item = Fragment>,
    ) -> Contribution {
        self.contribution(Content::Fragments {
            fragments: fragments.into_iter().collect(),
            renderer: Arc::new(XmlRenderer::default()),
        })
    }
}

/// What layers said last, for those that are late or fail.
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

    /// What the layer said at a head of this path.
    pub(crate) fn get(&self, layer: &str, path: &[PathItem]) -> Option<&[Contribution]> {
        let (_, head, said) = self.entries.iter().find(|(of, _, _)| of == layer)?;
        let on_path = match head {
            None => true,
            Some(_) => path.iter().rev().any(|item| item.node == *head),
        };
        on_path.then_some(said)
    }
}
