//! A conversation small enough for a test: a path, layers, and their states as bytes, so that it can be rewound.

use std::sync::Arc;

use contexture_catalogue::Capabilities;
use contexture_compile::{Content, Contribution, PathItem};
use contexture_ir::{
    BranchName, ConversationId, FunctionCall, FunctionCallOutput, Item, Message, NodeId, Output,
    Owner, Raw, ResponseId, Role, Usage,
};
use contexture_layers::{
    AnswerVerdict, CombinedRecall, FunctionError, HookContext, Layer, LayerId, LayerSpec,
    LayerStates, Layers, ObservedItems, Projection, RecallCache, RecallInput, StoredState,
    ToolGate, ToolRequest,
};
use contexture_render::{Renderer, XmlRenderer};

/// The conversation.
pub(crate) struct ConversationFixture {
    pub(crate) layers: Layers,
    pub(crate) states: LayerStates,
    pub(crate) context: HookContext,
    pub(crate) path: Vec<PathItem>,
    pub(crate) window: u64,
    stored: Vec<(LayerId, StoredState)>,
}

/// A place to come back to.
#[derive(Clone)]
pub(crate) struct Mark {
    items: usize,
    context: HookContext,
    stored: Vec<(LayerId, StoredState)>,
}

impl ConversationFixture {
    pub(crate) async fn new(layer: impl Layer) -> Self {
        let chat = ConversationId::new("stage").unwrap();
        let context = HookContext::new(Owner::new("ada").unwrap(), chat, BranchName::main());
        Self::within(layer, context).await
    }

    pub(crate) async fn within(layer: impl Layer, context: HookContext) -> Self {
        let layers = Layers::new().with_layer(layer).unwrap();
        let mut states = layers.restore_states([]);
        layers.init_states(&mut states, &context).await.unwrap();
        let mut stage = Self {
            layers,
            states,
            context,
            path: Vec::new(),
            window: 100_000,
            stored: Vec::new(),
        };
        stage.keep();
        stage
    }

    /// Stores what changed.
    fn keep(&mut self) {
        for changed in self.layers.changed_states(&self.states) {
            self.stored.retain(|(id, _)| *id != changed.layer);
            self.stored.push((changed.layer, changed.current));
        }
        self.states.mark_committed();
    }

    /// Appends items: a person's, a tool's, or all of one answer.
    pub(crate) async fn append(&mut self, items: impl IntoIterator<Item = Item>) {
        self.answer(items, None).await;
    }

    pub(crate) async fn answer(
        &mut self,
        items: impl IntoIterator<Item = Item>,
        usage: Option<Usage>,
    ) {
        let items: Vec<Item> = items.into_iter().collect();
        let first = self.path.len();
        let node = |n: usize| NodeId::derive("test", &[&n.to_be_bytes()]);
        let nodes: Vec<NodeId> = (first..first + items.len()).map(node).collect();
        let model = items.iter().any(Item::is_model_output);
        let turns = items.iter().filter(|item| item.role() == Some(Role::User));
        self.context.turns += turns.count() as u64;
        self.context.responses += u64::from(model);
        self.context.head = nodes.last().copied();
        let seen = ObservedItems {
            items: &items,
            nodes: &nodes,
            response: model.then(|| ResponseId::derive("test", &[&first.to_be_bytes()])),
            usage: usage.as_ref(),
        };
        let observed = self
            .layers
            .observe(&mut self.states, seen, &self.context)
            .await;
        for outcome in observed.unwrap() {
            assert!(outcome.status.is_ok(), "{outcome:?}");
        }
        for (item, node) in items.into_iter().zip(nodes) {
            let node = Some(node);
            self.path.push(PathItem {
                node,
                ..PathItem::new(item)
            });
        }
        self.keep();
    }

    pub(crate) async fn user(&mut self, text: &str) {
        self.append([user(text)]).await;
    }

    pub(crate) async fn assistant(&mut self, text: &str) {
        self.append([assistant(text)]).await;
    }

    /// A call and its output.
    pub(crate) async fn tool(&mut self, name: &str, output: &str, is_error: Option<bool>) {
        let id = format!("call-{}", self.path.len());
        self.append([FunctionCall::new(id.as_str(), name, "{}").into()])
            .await;
        let mut output = FunctionCallOutput::new(id, Output::Text(output.to_owned()));
        output.is_error = is_error;
        self.append([output.into()]).await;
    }

    pub(crate) fn mark(&self) -> Mark {
        Mark {
            items: self.path.len(),
            context: self.context.clone(),
            stored: self.stored.clone(),
        }
    }

    /// The conversation as it was: a shorter path, the bytes stored there, the time as it is now.
    pub(crate) fn rewind(&mut self, mark: &Mark) {
        let now_ms = self.context.now_ms;
        self.path.truncate(mark.items);
        self.context = mark.context.clone();
        self.context.now_ms = now_ms;
        self.stored.clone_from(&mark.stored);
        self.states = self.layers.restore_states(self.stored.clone());
    }

    pub(crate) async fn gather(&self) -> CombinedRecall {
        let query = self.path.iter().rev().map(|item| &*item.item);
        let query = query.filter(|item| item.role() == Some(Role::User));
        let query = query.map(Item::text).next().unwrap_or_default();
        let spec = LayerSpec::new(LayerId::new("any").unwrap());
        let renderer: Arc<dyn Renderer> = Arc::new(XmlRenderer::default());
        let call = RecallInput {
            context: &self.context,
            path: &self.path,
            query: &query,
            capabilities: &Capabilities::default(),
            window: self.window,
            renderer: &renderer,
            spec: &spec,
        };
        let mut last = RecallCache::default();
        let gathered = self
            .layers
            .recall_all(&self.states, call, Projection::default(), &mut last);
        let gathered = gathered.await.unwrap();
        for outcome in &gathered.outcomes {
            assert!(outcome.status.is_ok(), "{outcome:?}");
        }
        gathered
    }

    /// All that is said, as text.
    pub(crate) async fn said(&self) -> String {
        let gathered = self.gather().await;
        let texts: Vec<String> = gathered.contributions.iter().map(text).collect();
        texts.join("\n")
    }

    pub(crate) async fn call(&mut self, tool: &str, arguments: &str) -> Result<Raw, FunctionError> {
        let arguments = Raw::parse(arguments).unwrap();
        let result = self
            .layers
            .call_function(&mut self.states, tool, &arguments, &self.context)
            .await;
        self.keep();
        result
    }

    pub(crate) async fn gate(&mut self, tool: &str) -> ToolGate {
        let request = ToolRequest {
            tool: tool.to_owned(),
            called_name: tool.to_owned(),
            call_id: "call".to_owned(),
            arguments: Raw::parse("{}").unwrap(),
        };
        let before = self
            .layers
            .before_tool(&mut self.states, &request, &self.context);
        let (gate, _) = before.await;
        self.keep();
        gate
    }

    pub(crate) async fn verdict(&mut self, answer: &[Item]) -> AnswerVerdict {
        let after = self
            .layers
            .after_model(&mut self.states, answer, &self.context);
        let (verdict, outcomes) = after.await.unwrap();
        for outcome in outcomes {
            assert!(outcome.status.is_ok(), "{outcome:?}");
        }
        self.keep();
        verdict
    }
}

/// What a contribution says.
pub(crate) fn text(said: &Contribution) -> String {
    match &said.content {
        Content::Text(text) => text.clone(),
        Content::Texts(texts) => texts.join("\n\n"),
        Content::Fragments {
            fragments,
            renderer,
        } => renderer.render(fragments).unwrap(),
        other => panic!("{other:?}"),
    }
}

pub(crate) fn user(text: &str) -> Item {
    Message::text(Role::User, text).into()
}

pub(crate) fn assistant(text: &str) -> Item {
    Message::text(Role::Assistant, text).into()
}
