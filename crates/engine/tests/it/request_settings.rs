//! What a request asked beside its messages is kept with its conversation, and asked again.

use contexture_compile::{Contribution, Target};
use contexture_engine::{
    CompileOptions, Conversation, Engine, ImportOptions, IngestRequest, SettingsSource, TestClock,
    TestIds, ToolFilter,
};
use contexture_ir::{FunctionTool, Owner, ToolDefinition};
use contexture_sessions::{ReadOptions, detect_format, read_sessions};
use contexture_wire::{Format, lift};
use serde_json::{Value, json};

use crate::support::engine;

fn request(tools: &[&str], temperature: f64) -> Value {
    let tools: Vec<Value> = tools
        .iter()
        .map(|name| {
            let parameters = json!({"type": "object", "properties": {}});
            json!({"type": "function", "function": {"name": name, "parameters": parameters}})
        })
        .collect();
    json!({
        "model": "gpt-4o", "temperature": temperature, "service_tier": "flex", "stream": true,
        "stream_options": {"include_usage": true}, "tool_choice": "auto", "tools": tools,
        "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hello"}],
    })
}

async fn import(engine: &Engine, body: &Value) -> Conversation {
    let text = body.to_string();
    let format = detect_format(&text, "request.json").unwrap().format;
    let options = ReadOptions {
        source_name: "request.json",
        keep_going: false,
    };
    let session = read_sessions(format, &text, &options).unwrap().remove(0);
    let options = ImportOptions {
        conversation: Some("c".parse().unwrap()),
        ..ImportOptions::default()
    };
    engine.import(&session, &options).await.unwrap();
    engine.conversation("c").open_existing().await.unwrap()
}

async fn ingest(engine: &Engine, body: &Value) -> Conversation {
    let transcript = lift(Format::OpenAiChat, &body.to_string())
        .unwrap()
        .transcript;
    let incoming = IngestRequest::new(&transcript);
    let ingested = engine.ingest(&Owner::local(), incoming).await.unwrap();
    ingested.chat
}

async fn compile(chat: &Conversation, target: &Target, options: CompileOptions<'_>) -> Value {
    let call = chat.compile_with(target, options).await.unwrap();
    serde_json::from_str(&call.payload.to_json()).unwrap()
}

fn tool_names(payload: &Value) -> Vec<&str> {
    let tools = payload["tools"].as_array().map_or(&[][..], Vec::as_slice);
    tools
        .iter()
        .map(|tool| tool["function"]["name"].as_str().unwrap())
        .collect()
}

#[tokio::test]
async fn an_imported_or_ingested_request_asks_the_same_again() {
    let body = request(&["search", "read"], 0.5);
    let (imported, ingested) = (engine(), engine());
    for chat in [
        import(&imported, &body).await,
        ingest(&ingested, &body).await,
    ] {
        let target = Target::openai_chat("gpt-4o");
        let payload = compile(&chat, &target, CompileOptions::default()).await;
        assert_eq!(tool_names(&payload), ["search", "read"]);
        for name in ["temperature", "service_tier", "tool_choice"] {
            assert_eq!(payload[name], body[name], "{name}");
        }
        // How that one answer was sent is no property of the conversation.
        assert!(payload.get("stream").is_none() && payload.get("stream_options").is_none());
        // In another format what has no place is told.
        let call = chat
            .compile(&Target::anthropic("claude-sonnet-4-5"))
            .await
            .unwrap();
        let losses = call.report.losses.iter().map(|loss| loss.path.as_str());
        assert!(losses.collect::<Vec<_>>().contains(&"service_tier"));
        let call = compile(
            &chat,
            &target,
            CompileOptions {
                settings: SettingsSource::Target,
                ..CompileOptions::default()
            },
        );
        let bare = call.await;
        assert!(tool_names(&bare).is_empty() && bare.get("temperature").is_none());
    }
}

#[tokio::test]
async fn what_the_target_says_wins() {
    let chat = ingest(&engine(), &request(&["search"], 0.5)).await;
    let own = FunctionTool {
        name: "mine".to_owned(),
        ..FunctionTool::default()
    };
    let target = Target::openai_chat("gpt-4o")
        .tools(vec![ToolDefinition::Function(own)])
        .param("temperature", contexture_ir::Raw::parse("0.1").unwrap());
    let payload = compile(&chat, &target, CompileOptions::default()).await;
    assert_eq!(tool_names(&payload), ["mine"]);
    assert_eq!(payload["temperature"], json!(0.1));
}

#[tokio::test]
async fn settings_follow_the_path() {
    let engine = engine();
    let mut body = request(&["search"], 0.5);
    let chat = ingest(&engine, &body).await;
    let first = chat.head().await.unwrap().unwrap();
    body["tools"] = json!([]);
    body["temperature"] = json!(0.9);
    let messages = body["messages"].as_array_mut().unwrap();
    messages.push(json!({"role": "assistant", "content": "Hi."}));
    messages.push(json!({"role": "user", "content": "And now?"}));
    let text = body.to_string();
    let transcript = lift(Format::OpenAiChat, &text).unwrap().transcript;
    let id = chat.id().clone();
    let incoming = IngestRequest {
        conversation: Some(&id),
        ..IngestRequest::new(&transcript)
    };
    let chat = engine.ingest(&Owner::local(), incoming).await.unwrap().chat;
    let target = Target::openai_chat("gpt-4o");
    let payload = compile(&chat, &target, CompileOptions::default()).await;
    assert_eq!(
        (tool_names(&payload).len(), &payload["temperature"]),
        (0, &json!(0.9))
    );
    chat.rewind_to(first).await.unwrap();
    let payload = compile(&chat, &target, CompileOptions::default()).await;
    assert_eq!(
        (tool_names(&payload), &payload["temperature"]),
        (vec!["search"], &json!(0.5))
    );
}

#[tokio::test]
async fn a_call_with_inherited_settings_is_replayed_the_same() {
    let engine = Engine::in_memory()
        .with_clock(TestClock::new(1_000))
        .with_ids(TestIds::default());
    let chat = import(&engine, &request(&["search"], 0.5)).await;
    let said = [Contribution::tail("clock", "It is noon.")];
    let call = chat
        .compile_with(&Target::openai_chat("gpt-4o"), &said)
        .await
        .unwrap();
    let answer = json!({
        "id": "c", "object": "chat.completion", "created": 1, "model": "gpt-4o",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": "Hi."}, "finish_reason": "stop"}],
    });
    let recorded = chat.record(&call, &answer.to_string()).await.unwrap();
    let replayed = chat.replay(recorded.response).await.unwrap();
    assert_eq!(replayed.payload.to_json(), call.payload.to_json());
}

#[tokio::test]
async fn the_model_of_an_imported_request_is_the_last_one() {
    let engine = engine();
    let chat = import(&engine, &request(&["look"], 0.5)).await;
    assert_eq!(chat.last_model().await.unwrap().as_deref(), Some("gpt-4o"));
    // A client names its model in each request, and its answers do.
    let chat = ingest(&engine, &request(&["look"], 0.5)).await;
    assert_eq!(chat.last_model().await.unwrap(), None);
}

#[tokio::test]
async fn tools_of_the_request_may_be_forbidden() {
    let engine = engine();
    let mut body = request(&["look", "shell"], 0.5);
    body["tool_choice"] = json!({"type": "function", "function": {"name": "shell"}});
    let chat = import(&engine, &body).await;
    let target = Target::openai_chat("gpt-4o");
    let payload = compile(&chat, &target, CompileOptions::default()).await;
    assert_eq!(tool_names(&payload), ["look", "shell"]);
    assert_eq!(payload["tool_choice"], body["tool_choice"]);
    let options = CompileOptions {
        stored_tools: Some(ToolFilter(&|request, path| {
            assert_eq!(path.len(), 1, "it may look at the history");
            request.tools.retain(|tool| tool.name() != "shell");
        })),
        ..CompileOptions::default()
    };
    let payload = compile(&chat, &target, options).await;
    assert_eq!(tool_names(&payload), ["look"]);
    assert_eq!(payload["tool_choice"], Value::Null);
}
