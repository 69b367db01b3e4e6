//! Tools whose arguments and results are types of the program.

use std::time::Duration;

use contexture_ir::{Output, ToolDefinition};
use contexture_runs::{
    Abort, Allowed, NoArguments, Resolution, ToolBox, ToolCall, ToolConcurrency, ToolFailure,
    ToolOutput, TypedTool, run_turn_with_text,
};
use contexture_tools::{Call, LoadedToolkits, Policy, ToolError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::test_support::{agent, calling, chat, model, saying};

/// What nobody but the author of the program reads.
#[derive(Deserialize, JsonSchema)]
struct Refund {
    /// Number of the order, such as W8342.
    order: String,
    /// Cents.
    amount: u32,
    reason: Option<Reason>,
    #[serde(default)]
    items: Vec<RefundedItem>,
}

#[derive(Debug, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "snake_case")]
enum Reason {
    Damaged,
    Late,
}

#[derive(Deserialize, JsonSchema)]
struct RefundedItem {
    /// Its number on the bill.
    position: u8,
}

#[derive(Serialize)]
struct Refunded {
    z_order: String,
    amount: u32,
    reason: Option<Reason>,
    items: usize,
}

async fn refund(asked: Refund, _: ToolCall) -> Result<Refunded, String> {
    match asked.amount {
        0..=1_000 => Ok(Refunded {
            z_order: asked.order,
            amount: asked.amount,
            reason: asked.reason,
            items: asked.items.iter().filter(|item| item.position > 0).count(),
        }),
        more => Err(format!("{more} cents are more than 1000: ask for approval")),
    }
}

fn tools() -> ToolBox {
    let mut tools = ToolBox::default();
    let typed = TypedTool::new("refund", "Gives money back", refund);
    tools
        .add_typed(typed.with_timeout(Duration::from_secs(5)))
        .unwrap();
    let now = |_: NoArguments, _: ToolCall| async { Ok::<_, String>("noon") };
    tools
        .add_typed(TypedTool::new("now", "Tells the time", now).read_only())
        .unwrap();
    tools
}

async fn run(tools: &ToolBox, name: &str, arguments: &str) -> Result<ToolOutput, ToolFailure> {
    let call = Call::new(name, arguments);
    match tools.resolve_call(&call, "call_1", &LoadedToolkits::default())? {
        Resolution::Allowed(Allowed::Run(permit)) => tools.run_tool(permit, &Abort::new()).await,
        other => unreachable!("{other:?}"),
    }
}

fn schema(tools: &ToolBox, name: &str) -> Value {
    let tool = tools
        .registry()
        .tools()
        .find(|tool| tool.definition.name() == name);
    match &tool.unwrap().definition {
        ToolDefinition::Function(function) => {
            serde_json::from_str(function.parameters.as_ref().unwrap().get()).unwrap()
        }
        ToolDefinition::Provider(_) => unreachable!("a function"),
    }
}

#[test]
fn the_schema_is_of_the_types() {
    let tools = tools();
    let schema_of_refund = schema(&tools, "refund");
    let properties = &schema_of_refund["properties"];
    assert_eq!(
        properties["order"]["description"],
        "Number of the order, such as W8342."
    );
    assert_eq!(schema_of_refund["required"], json!(["order", "amount"]));
    // In the place where it is used: no provider has to follow a reference.
    let position = &properties["items"]["items"]["properties"]["position"];
    assert_eq!(position["description"], "Its number on the bill.");
    let text = schema_of_refund.to_string();
    for absent in [
        "$ref",
        "$schema",
        "$defs",
        "\"title\"",
        "nobody but the author",
    ] {
        assert!(!text.contains(absent), "{text}");
    }
    assert_eq!(schema(&tools, "now")["type"], "object");
}

#[tokio::test]
async fn arguments_and_results_are_values_of_the_types() {
    let tools = tools();
    let output = run(
        &tools,
        "refund",
        r#"{"order":"W1","amount":7,"reason":"late","items":[{"position":2}]}"#,
    );
    // In the order of the type's fields, not of their names.
    let expected = r#"{"z_order":"W1","amount":7,"reason":"late","items":1}"#;
    assert_eq!(
        output.await.unwrap().output,
        Output::Text(expected.to_owned())
    );
    let text = run(&tools, "now", "{}").await.unwrap();
    assert_eq!(text, ToolOutput::from("noon"));
}

#[tokio::test]
async fn failures_are_texts_that_a_model_can_act_on() {
    let tools = tools();
    for (arguments, expected) in [
        (
            r#"{"order":"W1","amount":1001}"#,
            "tool_failed: 1001 cents are more than 1000: ask for approval",
        ),
        (
            r#"{"order":"W1"}"#,
            "bad_arguments: refund: /amount: expected a value, for it is required, found nothing",
        ),
        (
            r#"{"order":"W1","amount":-1}"#,
            "bad_arguments: refund: /amount: ",
        ),
        (
            r#"{"order":"W1","amount":1,"reason":"lost"}"#,
            "bad_arguments: refund: /reason",
        ),
    ] {
        let failure = run(&tools, "refund", arguments).await.unwrap_err();
        let told = format!("{}: {failure}", failure.kind());
        assert!(told.starts_with(expected), "{arguments}: {told}");
    }
}

#[test]
fn what_only_reads_may_run_beside_others() {
    let tools = tools();
    let concurrency = |name: &str, arguments: &str| {
        let call = Call::new(name, arguments);
        match tools.resolve_call(&call, "call_1", &LoadedToolkits::default()) {
            Ok(Resolution::Allowed(Allowed::Run(permit))) => permit.options().concurrency,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(concurrency("now", "{}"), ToolConcurrency::Parallel);
    let asked = r#"{"order":"W1","amount":7}"#;
    assert_eq!(concurrency("refund", asked), ToolConcurrency::Exclusive);
}

#[test]
fn arguments_have_to_be_an_object() {
    let mut tools = ToolBox::default();
    let shout = |asked: String, _: ToolCall| async move { Ok::<_, String>(asked.to_uppercase()) };
    let refused = tools
        .add_typed(TypedTool::new("shout", "Shouts", shout))
        .unwrap_err();
    assert!(matches!(refused, ToolError::BadSchema { .. }), "{refused}");
}

#[tokio::test]
async fn a_model_is_offered_them_and_reads_what_they_say() {
    let chat = chat().await;
    let asked = r#"{"order":"W1","amount":5000}"#;
    let scripted = model([calling(&[("c1", "refund", asked)]), saying("I will ask.")]);
    let agent = agent(&scripted).with_tools(tools()).unwrap();
    let turn = run_turn_with_text(&chat, &agent, "refund W1")
        .await
        .unwrap();
    assert_eq!(turn.text, "I will ask.");
    let requests = scripted.requests();
    assert!(
        requests[0]
            .payload
            .contains("Number of the order, such as W8342.")
    );
    // What the program knows of a tool is not the model's business.
    assert!(
        !requests[0].payload.contains("readOnlyHint"),
        "{}",
        requests[0].payload
    );
    assert!(
        requests[1]
            .payload
            .contains("5000 cents are more than 1000: ask for approval")
    );
    // A policy decides about them as about others.
    let mut denied = tools();
    denied.set_policy(Policy::deny_all());
    assert!(run(&denied, "now", "{}").await.unwrap_err().kind() == "denied");
}
