//! Layers of conversations: their states rewind, are shared, and lose no update.

use async_trait::async_trait;
use contexture_compile::{Band, Contribution, Stability, Target};
use contexture_engine::{Conversation, Engine, EngineError, EngineEventKind, MessageView};
use contexture_ir::{Item, MessageId, Raw, assistant_text, hint, user};
use contexture_layers::{
    FunctionError, FunctionSpec, HookContext, Layer, LayerError, LayerId, LayerSpec, Layers,
    ObservedItems, RecallInput, StateScope,
};
use contexture_models::text_response;
use contexture_wire::Format;

use crate::support::engine;

/// Counts the items it is shown and what its function adds.
struct Count(StateScope);

#[async_trait]
impl Layer for Count {
    type State = u64;

    fn spec(&self) -> LayerSpec {
        LayerSpec::new(LayerId::new("count").unwrap())
            .with_position(Band::Tail, 1, Stability::Volatile)
            .with_scope(self.0)
    }

    async fn recall(
        &self,
        state: &u64,
        call: &RecallInput<'_>,
    ) -> Result<Vec<Contribution>, LayerError> {
        let said = hint(format!("{state} items, the last answers {:?}", call.query));
        Ok(vec![call.contribution_from_fragments([said])])
    }

    async fn observe(
        &self,
        state: &mut u64,
        seen: &ObservedItems<'_>,
        context: &HookContext,
    ) -> Result<(), LayerError> {
        *state += seen.items.len() as u64;
        context.emit(
            &self.spec().id,
            "count:grown",
            Raw::from_value(state).unwrap(),
        );
        Ok(())
    }

    fn functions(&self) -> Vec<FunctionSpec> {
        let schema =
            r#"{"type":"object","properties":{"by":{"type":"integer"}},"required":["by"]}"#;
        let schema = Raw::parse(schema).unwrap();
        vec![FunctionSpec::new(&self.spec().id, "add", "Adds.", schema)]
    }

    async fn call_function(
        &self,
        state: &mut u64,
        _: &str,
        arguments: &Raw,
        _: &HookContext,
    ) -> Result<Raw, FunctionError> {
        let by: std::collections::BTreeMap<String, u64> = arguments.parse_as().unwrap();
        *state += by["by"];
        Ok(Raw::from_value(state).unwrap())
    }

    async fn on_append(
        &self,
        _: &mut u64,
        items: Vec<Item>,
        _: &HookContext,
    ) -> Result<Vec<Item>, LayerError> {
        Ok(items)
    }
}

fn counting(scope: StateScope) -> Engine {
    engine().with_layers(Layers::new().with_layer(Count(scope)).unwrap())
}

fn target() -> Target {
    Target::openai_chat("gpt-4o")
}

async fn count(chat: &Conversation) -> u64 {
    chat.layer::<Count>().unwrap().state().await.unwrap()
}

async fn answer(chat: &Conversation, text: &str) {
    let call = chat.compile(&target()).await.unwrap();
    let body = text_response(Format::OpenAiChat, text);
    chat.record(&call, &body).await.unwrap();
}

#[tokio::test]
async fn what_a_layer_keeps_of_a_path_rewinds_with_it() {
    let chat = counting(StateScope::Path)
        .conversation("c")
        .open()
        .await
        .unwrap();
    chat.save([user("one"), assistant_text("two")])
        .await
        .unwrap();
    assert_eq!(count(&chat).await, 2);
    let call = chat.compile(&target()).await.unwrap();
    let then = call.payload.to_json();
    assert!(then.contains("2 items, the last answers"), "{then}");
    assert!(then.contains("count_add"), "{then}");
    assert!(call.outcomes[0].status.is_ok());
    chat.save([user("three")]).await.unwrap();
    answer(&chat, "four").await;
    assert_eq!(count(&chat).await, 4);

    let messages = chat.messages(MessageView::User).await.unwrap();
    let two = MessageId::new(messages[1].id.clone()).unwrap();
    chat.rewind(&two).await.unwrap();
    assert_eq!(count(&chat).await, 2);
    let now = chat.compile(&target()).await.unwrap();
    assert_eq!(now.payload.to_json(), then);
}

#[tokio::test]
async fn past_calls_with_layers_are_compiled_again_byte_for_byte() {
    let chat = counting(StateScope::Path)
        .conversation("c")
        .open()
        .await
        .unwrap();
    chat.save([user("one")]).await.unwrap();
    answer(&chat, "two").await;
    chat.save([user("three")]).await.unwrap();
    answer(&chat, "four").await;
    let anew = chat.engine().conversation("c").open().await.unwrap();
    anew.set_layers(Layers::new());
    let at = contexture_store::PathEnd::Branch(chat.branch());
    let responses = anew.response_ids(at).await.unwrap();
    assert_eq!(responses.len(), 2);
    for response in responses {
        assert!(anew.replay(response).await.unwrap().is_equal());
    }
}

#[tokio::test]
async fn resource_layer_state_is_shared_and_survives_rewind() {
    let engine = counting(StateScope::Resource);
    let open = async |id: &str, resource: &str| {
        let chat = engine.conversation(id).resource(resource);
        chat.open().await.unwrap()
    };
    let (one, two) = (open("one", "ada").await, open("two", "ada").await);
    let other = open("three", "bob").await;
    one.save([user("a"), assistant_text("b")]).await.unwrap();
    two.save([user("c")]).await.unwrap();
    assert_eq!(count(&one).await, 3);
    assert_eq!(count(&two).await, 3);
    assert_eq!(count(&other).await, 0);
    let messages = one.messages(MessageView::User).await.unwrap();
    let first = MessageId::new(messages[0].id.clone()).unwrap();
    one.rewind(&first).await.unwrap();
    assert_eq!(count(&one).await, 3);
    // Another owner has nothing of it.
    let stranger = engine.conversation("one").owner("eve").resource("ada");
    assert_eq!(count(&stranger.open().await.unwrap()).await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn updates_at_once_all_count() {
    for scope in [StateScope::Path, StateScope::Resource, StateScope::Global] {
        let engine = counting(scope);
        let mut tasks = Vec::new();
        for task in 0..8 {
            let chat = engine.conversation("c").open().await.unwrap();
            tasks.push(tokio::spawn(async move {
                let by = Raw::parse(r#"{"by":1}"#).unwrap();
                for _ in 0..5 {
                    if task % 2 == 0 {
                        chat.call_function("count_add", &by).await.unwrap();
                    } else {
                        let add = |state: &mut u64, _: &HookContext| {
                            *state += 1;
                            Ok(())
                        };
                        let layer = chat.layer::<Count>().unwrap();
                        layer.update(add).await.unwrap();
                    }
                }
            }));
        }
        for task in tasks {
            task.await.unwrap();
        }
        let chat = engine.conversation("c").open().await.unwrap();
        assert_eq!(count(&chat).await, 40, "{scope:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_said_at_once_is_all_seen() {
    for scope in [StateScope::Path, StateScope::Global] {
        let engine = counting(scope);
        let mut tasks = Vec::new();
        for task in 0..6 {
            let chat = engine.conversation("c").open().await.unwrap();
            tasks.push(tokio::spawn(async move {
                for at in 0..4 {
                    let text = format!("{task} {at}");
                    chat.save([user(text.as_str())]).await.unwrap();
                }
            }));
        }
        for task in tasks {
            task.await.unwrap();
        }
        let chat = engine.conversation("c").open().await.unwrap();
        assert_eq!(count(&chat).await, 24, "{scope:?}");
    }
}

#[tokio::test]
async fn arguments_are_checked_and_news_are_told() {
    let engine = counting(StateScope::Path);
    let events = engine.subscribe();
    let chat = engine.conversation("c").open().await.unwrap();
    let wrong = Raw::parse(r#"{"by":"one"}"#).unwrap();
    let refused = chat.call_function("count_add", &wrong).await;
    let refused = refused.unwrap_err();
    assert!(matches!(refused, EngineError::Function(_)), "{refused}");
    assert_eq!(chat.info().await.unwrap().nodes, 0);
    chat.save([user("one")]).await.unwrap();
    let told = std::iter::from_fn(|| events.try_next());
    let told = told.filter_map(|event| match event.kind {
        EngineEventKind::Layer(event) => Some(event.name),
        _ => None,
    });
    assert_eq!(told.collect::<Vec<_>>(), ["count:grown"]);
}
