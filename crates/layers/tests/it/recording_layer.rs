//! A layer that writes down what it is asked and does what it is told, and the calls the tests make.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use contexture_catalogue::Capabilities;
use contexture_compile::{Content, Contribution, PathItem, Window};
use contexture_ir::{BranchName, ConversationId, Item, Message, NodeId, Owner, Raw, Role, hint};
use contexture_layers::{
    AnswerVerdict, ChildEnd, ChildResult, FunctionError, FunctionSpec, Hook, HookContext, Layer,
    LayerError, LayerId, LayerSpec, LayerStates, Layers, ObservedItems, Projection, RecallInput,
    RunEnd, StoredState, ToolGate, ToolRequest,
};
use contexture_render::{Renderer, XmlRenderer};

/// What a hook does.
#[derive(Clone, Debug, Default)]
pub(crate) enum Act {
    #[default]
    Well,
    Fail,
    Panic,
    Hang,
    /// It waits so many milliseconds, then does its work.
    After(u64),
    LeaveOut,
    SayNothing,
}

/// What was asked, in order.
pub(crate) type Log = Arc<Mutex<Vec<String>>>;

/// Its state counts the hooks that changed it.
#[derive(Clone)]
pub(crate) struct RecordingLayer {
    pub(crate) spec: LayerSpec,
    pub(crate) acts: BTreeMap<Hook, Act>,
    pub(crate) gate: ToolGate,
    pub(crate) verdict: AnswerVerdict,
    pub(crate) window: Option<u32>,
    pub(crate) log: Log,
}

impl RecordingLayer {
    pub(crate) fn new(id: &str, log: &Log) -> Self {
        Self {
            spec: LayerSpec::new(LayerId::new(id).unwrap()),
            acts: BTreeMap::new(),
            gate: ToolGate::Allow,
            verdict: AnswerVerdict::Pass,
            window: None,
            log: log.clone(),
        }
    }

    pub(crate) fn on(mut self, hook: Hook, act: Act) -> Self {
        self.acts.insert(hook, act);
        self
    }

    pub(crate) fn with(mut self, change: impl FnOnce(&mut LayerSpec)) -> Self {
        change(&mut self.spec);
        self
    }

    fn act(&self, hook: Hook) -> Act {
        self.acts.get(&hook).cloned().unwrap_or_default()
    }

    fn wrote(&self, what: &str) {
        let line = format!("{} {what}", self.spec.id);
        self.log.lock().unwrap().push(line);
    }

    async fn asked(&self, hook: Hook) -> Result<Act, LayerError> {
        self.wrote(hook.as_str());
        let act = self.act(hook);
        match act {
            Act::Fail => return Err(LayerError::from_message("as told")),
            Act::Panic => panic!("as told"),
            Act::Hang => std::future::pending().await,
            Act::After(ms) => tokio::time::sleep(Duration::from_millis(ms)).await,
            Act::Well | Act::LeaveOut | Act::SayNothing => {}
        }
        Ok(act)
    }

    /// Changes the state and tells before it does what it is told, so that a failure has something to undo.
    async fn changes(
        &self,
        state: &mut u64,
        hook: Hook,
        context: &HookContext,
    ) -> Result<(), LayerError> {
        *state += 1;
        context.emit(&self.spec.id, hook.as_str(), Raw::null());
        self.asked(hook).await?;
        Ok(())
    }
}

#[async_trait]
impl Layer for RecordingLayer {
    type State = u64;

    fn spec(&self) -> LayerSpec {
        self.spec.clone()
    }

    fn migrate_state(&self, version: u32, stored: &Raw) -> Result<u64, LayerError> {
        match version {
            0 => Ok(stored.as_string().unwrap_or_default().len() as u64),
            13 => panic!("an unlucky version"),
            _ => Err(LayerError::from_message("unknown")),
        }
    }

    fn validate_state(&self, state: &u64) -> Result<(), LayerError> {
        match state {
            1000 => Err(LayerError::from_message("a thousand is too many")),
            _ => Ok(()),
        }
    }

    async fn init(&self, context: &HookContext) -> Result<u64, LayerError> {
        context.emit(&self.spec.id, "init", Raw::null());
        self.asked(Hook::Init).await?;
        Ok(100)
    }

    async fn recall(
        &self,
        state: &u64,
        call: &RecallInput<'_>,
    ) -> Result<Vec<Contribution>, LayerError> {
        call.context.emit(&self.spec.id, "recall", Raw::null());
        match self.asked(Hook::Recall).await? {
            Act::SayNothing => Ok(Vec::new()),
            _ => Ok(vec![
                call.contribution_from_fragments([hint(format!("{state}"))]),
            ]),
        }
    }

    fn project_history(&self, _: &u64, projection: &mut Projection) {
        if let Some(turns) = self.window {
            projection.policy.window = Window::Turns(turns);
        }
        if !matches!(self.act(Hook::ProjectHistory), Act::Well) {
            panic!("as told");
        }
    }

    async fn on_append(
        &self,
        state: &mut u64,
        mut items: Vec<Item>,
        context: &HookContext,
    ) -> Result<Vec<Item>, LayerError> {
        self.changes(state, Hook::OnAppend, context).await?;
        items.push(said(self.spec.id.as_str()));
        Ok(items)
    }

    async fn after_model(
        &self,
        state: &mut u64,
        answer: &[Item],
        context: &HookContext,
    ) -> Result<AnswerVerdict, LayerError> {
        self.changes(state, Hook::AfterModel, context).await?;
        Ok(match &self.verdict {
            // Adds to what it was shown, so that the order can be read off.
            AnswerVerdict::Fix(more) => {
                AnswerVerdict::Fix(answer.iter().chain(more).cloned().collect())
            }
            other => other.clone(),
        })
    }

    async fn before_tool(
        &self,
        state: &mut u64,
        _: &ToolRequest,
        context: &HookContext,
    ) -> Result<ToolGate, LayerError> {
        self.changes(state, Hook::BeforeTool, context).await?;
        Ok(self.gate.clone())
    }

    async fn observe(
        &self,
        state: &mut u64,
        _: &ObservedItems<'_>,
        context: &HookContext,
    ) -> Result<(), LayerError> {
        self.changes(state, Hook::Observe, context).await
    }

    async fn on_spawn(&self, parent: &u64, _: &HookContext) -> Result<Option<u64>, LayerError> {
        Ok(match self.asked(Hook::OnSpawn).await? {
            Act::LeaveOut => None,
            _ => Some(parent + 1),
        })
    }

    async fn on_parent_update(
        &self,
        child: &mut u64,
        parent: &u64,
        context: &HookContext,
    ) -> Result<(), LayerError> {
        self.changes(child, Hook::OnParentUpdate, context).await?;
        *child = *parent;
        Ok(())
    }

    async fn on_return(
        &self,
        parent: &mut u64,
        child: &u64,
        _: &ChildEnd,
        context: &HookContext,
    ) -> Result<ChildResult, LayerError> {
        self.changes(parent, Hook::OnReturn, context).await?;
        *parent += child;
        Ok(ChildResult::Keep)
    }

    async fn on_complete(
        &self,
        state: &mut u64,
        _: &RunEnd,
        context: &HookContext,
    ) -> Result<(), LayerError> {
        self.changes(state, Hook::OnComplete, context).await
    }

    async fn dispose(&self, _: &u64) -> Result<(), LayerError> {
        self.asked(Hook::Dispose).await?;
        Ok(())
    }

    fn functions(&self) -> Vec<FunctionSpec> {
        let number = || Raw::parse(r#"{"type":"integer"}"#).unwrap();
        let mut set = FunctionSpec::new(&self.spec.id, "set", "Sets the number.", number());
        set.output = Some(number());
        vec![set]
    }

    /// Sets the state; the result is the number, but 7 gives a text, which is no number.
    async fn call_function(
        &self,
        state: &mut u64,
        _: &str,
        arguments: &Raw,
        context: &HookContext,
    ) -> Result<Raw, FunctionError> {
        self.changes(state, Hook::Function, context).await?;
        *state = arguments.parse_as().unwrap_or_default();
        Ok(match *state {
            7 => Raw::string("seven"),
            _ => arguments.clone(),
        })
    }
}

pub(crate) fn context() -> HookContext {
    let owner = Owner::new("anna").unwrap();
    let conversation = ConversationId::new("c").unwrap();
    HookContext::new(owner, conversation, BranchName::main())
}

pub(crate) fn list(probes: impl IntoIterator<Item = RecordingLayer>) -> Layers {
    let none = Layers::new();
    probes
        .into_iter()
        .fold(none, |list, probe| list.with_layer(probe).unwrap())
}

/// The layers' first states, settled.
pub(crate) async fn begun(layers: &Layers) -> LayerStates {
    let mut states = layers.restore_states([]);
    layers.init_states(&mut states, &context()).await.unwrap();
    states.mark_committed();
    states
}

pub(crate) fn recall<'a>(
    context: &'a HookContext,
    path: &'a [PathItem],
    spec: &'a LayerSpec,
) -> RecallInput<'a> {
    static NOTHING: LazyLock<Capabilities> = LazyLock::new(Capabilities::default);
    static XML: LazyLock<Arc<dyn Renderer>> = LazyLock::new(|| Arc::new(XmlRenderer::default()));
    RecallInput {
        context,
        path,
        query: "",
        capabilities: &NOTHING,
        window: 8_000,
        renderer: &XML,
        spec,
    }
}

pub(crate) fn id(text: &str) -> LayerId {
    LayerId::new(text).unwrap()
}

pub(crate) fn stored(version: u32, json: &str) -> StoredState {
    StoredState {
        version,
        bytes: json.as_bytes().into(),
    }
}

/// Something a person says.
pub(crate) fn said(text: &str) -> Item {
    Message::text(Role::User, text).into()
}

/// What a contribution says, as the model reads it.
pub(crate) fn text(contribution: &Contribution) -> String {
    match &contribution.content {
        Content::Text(text) => text.clone(),
        Content::Texts(texts) => texts.join("\n\n"),
        Content::Fragments {
            fragments,
            renderer,
        } => renderer.render(fragments).unwrap(),
        other => format!("{other:?}"),
    }
}

/// All contributions, a line each: whose, and what.
pub(crate) fn texts(said: &[Contribution]) -> Vec<String> {
    let lines = said.iter();
    lines
        .map(|said| format!("{}: {}", said.source, text(said)))
        .collect()
}

/// A path with these nodes.
pub(crate) fn path(nodes: &[u8]) -> Vec<PathItem> {
    let items = nodes.iter().map(|n| PathItem {
        node: Some(node(*n)),
        ..PathItem::new(said("x"))
    });
    items.collect()
}

pub(crate) fn node(n: u8) -> NodeId {
    NodeId::derive("test", &[&[n]])
}

/// The states as they would be stored.
pub(crate) fn written(layers: &Layers, states: &LayerStates) -> Vec<(String, String)> {
    let changed = layers.changed_states(states).into_iter();
    let pairs = changed.map(|changed| {
        let text = String::from_utf8(changed.current.bytes.to_vec()).unwrap();
        (changed.layer.to_string(), text)
    });
    pairs.collect()
}

pub(crate) fn taken(log: &Log) -> Vec<String> {
    std::mem::take(&mut *log.lock().unwrap())
}
