//! A program's own target: Cohere's chat API, for which there is no format.

use std::sync::Arc;

use contexture::compile::{AdapterError, Contribution, TargetAdapter};
use contexture::engine::TargetChoice;
use contexture::ir::{
    FunctionCall, FunctionCallOutput, Item, Message, Output, Raw, Role, ToolDefinition, Transcript,
};
use contexture::wire::{Format, RepairRules};
use contexture::{Catalogue, Compiler, Engine, EngineError, Target, assistant_text, user};
use serde_json::{Value, json};

/// Writes requests for `POST /v2/chat`.
#[derive(Debug)]
struct Cohere;

impl TargetAdapter for Cohere {
    fn name(&self) -> &str {
        "cohere"
    }

    fn encode_request(&self, request: &Transcript) -> Result<Raw, AdapterError> {
        let mut messages: Vec<Value> = Vec::new();
        for message in &request.instructions {
            let text = Item::from(message.clone()).text();
            messages.push(json!({"role": "system", "content": text}));
        }
        for item in &request.items {
            push_item(&mut messages, item)?;
        }
        let mut body = serde_json::Map::new();
        body.insert("model".to_owned(), json!(request.model));
        body.insert("messages".to_owned(), messages.into());
        let limit = request.options.max_output_tokens;
        body.insert("max_tokens".to_owned(), json!(limit));
        if !request.tools.is_empty() {
            let tools: Result<Vec<Value>, _> = request.tools.iter().map(tool_json).collect();
            body.insert("tools".to_owned(), tools?.into());
        }
        for (name, value) in request.extra.iter() {
            let value = serde_json::from_str(value.get());
            let value = value.map_err(|error| AdapterError::new(error.to_string()))?;
            body.insert(name.to_owned(), value);
        }
        Ok(Raw::from_value(&body)?)
    }

    fn repair_rules(&self) -> RepairRules {
        RepairRules {
            user_first: true,
            user_last: true,
            ..RepairRules::for_format(Format::Items)
        }
    }
}

fn push_item(messages: &mut Vec<Value>, item: &Item) -> Result<(), AdapterError> {
    match item {
        Item::Message(message) => {
            messages.push(json!({"role": message.role.as_str(), "content": item.text()}));
        }
        Item::FunctionCall(call) => {
            let call = json!({
                "id": call.call_id,
                "type": "function",
                "function": {"name": call.name, "arguments": call.arguments},
            });
            // Parallel calls are one message, as the API wants it.
            let open = messages
                .last_mut()
                .and_then(|last| last.get_mut("tool_calls"));
            match open.and_then(Value::as_array_mut) {
                Some(calls) => calls.push(call),
                None => messages.push(json!({"role": "assistant", "tool_calls": [call]})),
            }
        }
        Item::FunctionCallOutput(output) => messages.push(json!({
            "role": "tool",
            "tool_call_id": output.call_id,
            "content": item.text(),
        })),
        _ => {
            return Err(AdapterError::new(
                "only messages, calls and outputs can be sent",
            ));
        }
    }
    Ok(())
}

fn tool_json(tool: &ToolDefinition) -> Result<Value, AdapterError> {
    match tool {
        ToolDefinition::Function(tool) => Ok(json!({
            "type": "function",
            "function": {
                "name": tool.name,
                "description": tool.description,
                "parameters": tool.parameters.as_ref().map(|schema| {
                    serde_json::from_str::<Value>(schema.get()).unwrap_or_default()
                }),
            },
        })),
        ToolDefinition::Provider(_) => Err(AdapterError::new("providers' tools are not known")),
    }
}

fn cohere() -> Target {
    Target::custom(Arc::new(Cohere), "command-a-03-2025").window(256_000)
}

fn weather_call() -> Vec<Item> {
    vec![
        Message::text(Role::User, "What is the weather in Bamako?").into(),
        FunctionCall::new("call_1", "weather", r#"{"city":"Bamako"}"#).into(),
        FunctionCallOutput::new("call_1", Output::Text("39 °C".to_owned())).into(),
    ]
}

fn parse(json: &str) -> Value {
    serde_json::from_str(json).unwrap_or_default()
}

#[test]
fn adapter_writes_what_the_compiler_decided_to_send() {
    let compiler = Compiler::new(Catalogue::builtin())
        .with_contribution(Contribution::system("instructions", "Answer in one word."));
    let target = cohere()
        .reserve(1_000)
        .param("seed", Raw::parse("7").unwrap());
    let compiled = compiler.compile(&weather_call(), &target).unwrap();
    assert_eq!(
        parse(&compiled.payload.to_json()),
        json!({
            "model": "command-a-03-2025",
            "messages": [
                {"role": "system", "content": "Answer in one word."},
                {"role": "user", "content": "What is the weather in Bamako?"},
                {"role": "assistant", "tool_calls": [{
                    "id": "call_1",
                    "type": "function",
                    "function": {"name": "weather", "arguments": "{\"city\":\"Bamako\"}"},
                }]},
                {"role": "tool", "tool_call_id": "call_1", "content": "39 °C"},
            ],
            "max_tokens": 1_000,
            "seed": 7,
        })
    );
    assert_eq!(compiled.report.target.format, "cohere");
    assert_eq!(compiled.payload.len(), compiled.payload.to_json().len());
}

#[test]
fn adapter_budget_trims_history_and_repairs_it() {
    let mut items = Vec::new();
    for turn in 0..200 {
        items.push(
            Message::text(
                Role::User,
                format!("Question {turn}: {}", "word ".repeat(50)),
            )
            .into(),
        );
        items.push(Message::text(Role::Assistant, format!("Answer {turn}.")).into());
    }
    // A call that nobody answered, and the model speaking last.
    items.push(FunctionCall::new("open", "weather", "{}").into());
    let target = cohere().window(4_000).reserve(500);
    let compiled = Compiler::new(Catalogue::builtin())
        .compile(&items, &target)
        .unwrap();
    let body = parse(&compiled.payload.to_json());
    let messages = body["messages"].as_array().unwrap();
    assert!(messages.len() < 100, "{}", messages.len());
    assert_eq!(messages[0]["role"], "user");
    let last = messages.last().unwrap();
    assert_eq!(
        (&last["role"], &last["tool_call_id"]),
        (&json!("tool"), &json!("open"))
    );
    assert!(compiled.report.totals.tokens <= 3_500);
    assert!(!compiled.report.omitted.is_empty());
}

#[test]
fn adapter_error_refuses_the_compile() {
    let target = cohere().tools(vec![ToolDefinition::Provider(
        contexture::ir::ProviderTool {
            format: "anthropic".to_owned(),
            kind: "bash_20250124".to_owned(),
            raw: Raw::parse("{}").unwrap(),
        },
    )]);
    let compiler = Compiler::new(Catalogue::builtin());
    let error = compiler.compile(&weather_call(), &target).unwrap_err();
    assert_eq!(
        error.to_string(),
        "target adapter `cohere`: providers' tools are not known"
    );
}

#[test]
fn unknown_model_needs_a_window() {
    let target = Target::custom(Arc::new(Cohere), "command-a-03-2025-unheard-of");
    let compiler = Compiler::new(Catalogue::builtin());
    let error = compiler.compile(&weather_call(), &target).unwrap_err();
    assert!(
        error.to_string().contains("command-a-03-2025-unheard-of"),
        "{error}"
    );
    assert!(
        compiler
            .compile(&weather_call(), &target.window(8_000))
            .is_ok()
    );
}

#[tokio::test]
async fn adapter_by_name_goes_with_its_source() {
    let engine = Engine::in_memory();
    engine.register_targets("cohere-plugin", [("cohere".to_owned(), cohere())]);
    let chat = engine.conversation("c").open().await.unwrap();
    chat.save([user("Hello.")]).await.unwrap();
    let call = chat.compile("cohere").await.unwrap();
    let body = parse(&call.payload.to_json());
    assert_eq!(
        body["messages"][0],
        json!({"role": "user", "content": "Hello."})
    );

    // The program turns the provider's answer into a document of items.
    let answer = json!({
        "items": [{"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Hi."}]}],
        "response": {"id": "r1", "finish": "stop", "usage": {"input_tokens": 5, "output_tokens": 2}},
    });
    let recorded = chat.record(&call, &answer.to_string()).await.unwrap();
    let replayed = chat.replay(recorded.response).await.unwrap();
    assert!(replayed.is_equal());

    assert_eq!(engine.unregister_targets("cohere-plugin"), ["cohere"]);
    let gone = chat.compile("cohere").await.unwrap_err();
    assert!(matches!(gone, EngineError::NoTarget { .. }), "{gone}");
    let unreplayable = chat.replay(recorded.response).await.unwrap_err();
    let EngineError::Unreplayable { reason, .. } = unreplayable else {
        panic!("{unreplayable}");
    };
    let why = reason.to_string();
    assert!(
        why.contains("target adapter `cohere` is not registered"),
        "{why}"
    );
    // For one call it needs no registration.
    let target = cohere();
    let call = chat.compile(TargetChoice::Given(&target)).await.unwrap();
    assert_eq!(
        parse(&call.payload.to_json())["messages"][1]["content"],
        "Hi."
    );
}

#[tokio::test]
async fn targets_of_two_adapters_share_no_plan() {
    #[derive(Debug)]
    struct Other;

    impl TargetAdapter for Other {
        fn name(&self) -> &str {
            "other"
        }

        fn encode_request(&self, request: &Transcript) -> Result<Raw, AdapterError> {
            Ok(Raw::from_value(&json!({"count": request.items.len()}))?)
        }
    }

    let chat = Engine::in_memory().conversation("c").open().await.unwrap();
    chat.save([user("Hello."), assistant_text("Hi."), user("Go on.")])
        .await
        .unwrap();
    let other = Target::custom(Arc::new(Other), "command-a-03-2025").window(256_000);
    let first = chat.compile(&cohere()).await.unwrap();
    let second = chat.compile(&other).await.unwrap();
    assert_eq!(second.payload.to_json(), r#"{"count":3}"#);
    assert_eq!(first.report.target.format, "cohere");
    assert_eq!(second.report.target.format, "other");
}
