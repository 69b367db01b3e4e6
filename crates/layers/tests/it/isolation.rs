//! A layer that fails, panics or is late changes nothing but its own words and its own state.

use contexture_ir::RunId;
use contexture_layers::{ChildEnd, Hook, HookOutcome, Layers, ObservedItems, Projection, RunEnd};
use proptest::prelude::*;

use crate::recording_layer::{
    Act, Log, RecordingLayer, context, list, recall, said, texts, written,
};

const HOOKS: [Hook; 12] = [
    Hook::Init,
    Hook::OnAppend,
    Hook::Recall,
    Hook::ProjectHistory,
    Hook::AfterModel,
    Hook::BeforeTool,
    Hook::Observe,
    Hook::OnSpawn,
    Hook::OnParentUpdate,
    Hook::OnReturn,
    Hook::OnComplete,
    Hook::Dispose,
];

fn acts() -> impl Strategy<Value = Act> {
    prop_oneof![
        Just(Act::Fail),
        Just(Act::Panic),
        Just(Act::Hang),
        Just(Act::After(50_000)),
    ]
}

/// All that can be seen of a run from outside, by layer.
#[derive(Debug, PartialEq)]
struct Seen {
    words: Vec<String>,
    outcomes: Vec<HookOutcome>,
    states: Vec<(String, String)>,
    child: Vec<(String, String)>,
    told: Vec<(String, String)>,
    appended: Vec<contexture_ir::Item>,
}

impl Seen {
    /// Without what is one layer's own.
    fn without(mut self, id: &str) -> Self {
        let own = format!("{id}:");
        self.words.retain(|line| !line.starts_with(&own));
        self.outcomes.retain(|one| one.layer.as_str() != id);
        self.states.retain(|(layer, _)| layer != id);
        self.child.retain(|(layer, _)| layer != id);
        self.told.retain(|(layer, _)| layer != id);
        self.appended.retain(|item| *item != said(id));
        self
    }
}

async fn run(layers: &Layers) -> Seen {
    let context = context();
    let mut states = layers.restore_states([]);
    layers.init_states(&mut states, &context).await.unwrap();
    let (appended, _) = layers
        .on_append(&mut states, vec![said("hello")], &context)
        .await
        .unwrap();
    let spec = layers.specs().next().unwrap().clone();
    let call = recall(&context, &[], &spec);
    let last = &mut <_>::default();
    let gathered = layers
        .recall_all(&states, call, Projection::default(), last)
        .await
        .unwrap();
    layers
        .after_model(&mut states, &[said("answer")], &context)
        .await
        .unwrap();
    let request = contexture_layers::ToolRequest {
        tool: "t".to_owned(),
        called_name: "t".to_owned(),
        call_id: "1".to_owned(),
        arguments: contexture_ir::Raw::null(),
    };
    layers.before_tool(&mut states, &request, &context).await;
    let seen = ObservedItems {
        items: &[],
        nodes: &[],
        response: None,
        usage: None,
    };
    layers.observe(&mut states, seen, &context).await.unwrap();
    let mut outcomes = gathered.outcomes;
    let mut child = layers.restore_states([]);
    let spawned = layers.on_spawn(&states, &mut child, &context).await;
    outcomes.extend(spawned.unwrap());
    let updated = layers.on_parent_update(&mut child, &states, &context).await;
    outcomes.extend(updated.unwrap());
    let end = ChildEnd {
        run: RunId::derive("test", &[]),
        end: RunEnd::Completed,
        result: None,
        usage: <_>::default(),
    };
    let returned = layers.on_return(&mut states, &child, &end, &context).await;
    outcomes.extend(returned.unwrap().1);
    let done = RunEnd::Completed;
    outcomes.extend(layers.on_complete(&mut states, &done, &context).await);
    outcomes.extend(layers.dispose(&states).await);
    let told = context.drain_events().into_iter();
    Seen {
        words: texts(&gathered.contributions),
        outcomes,
        states: written(layers, &states),
        child: written(layers, &child),
        told: told
            .map(|event| (event.layer.to_string(), event.name))
            .collect(),
        appended,
    }
}

fn four(bad: &RecordingLayer) -> Layers {
    let log = Log::default();
    list(["a", "b", "c", "d"].map(|id| {
        if id == bad.spec.id.as_str() {
            bad.clone()
        } else {
            RecordingLayer::new(id, &log)
        }
    }))
}

proptest! {
    #[test]
    fn a_bad_layer_harms_only_itself(
        who in prop::sample::select(vec!["a", "b", "c", "d"]),
        bad in prop::collection::btree_map(prop::sample::select(&HOOKS[..]), acts(), 1..4),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .unwrap();
        runtime.block_on(async {
            let well = RecordingLayer::new(who, &Log::default());
            let ill = RecordingLayer { acts: bad.clone(), ..well.clone() };
            let (good, ill) = (run(&four(&well)).await, run(&four(&ill)).await);
            assert_ne!(good, ill, "the failure is seen, in what is its own");
            assert_eq!(good.without(who), ill.without(who));
        });
    }
}
