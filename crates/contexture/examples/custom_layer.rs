//! A layer of one's own: it keeps what was promised to a customer, shows it to the model in each call, and lets no refund pass that
//! was not promised.
//!
//! Run it with `cargo run -p contexture --example custom_layer`.

#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::error::Error;
use std::sync::Arc;

use async_trait::async_trait;
use contexture::ir::Raw;
use contexture::layers::{
    FunctionError, FunctionSpec, HookContext, LayerError, LayerId, LayerSpec, RecallInput,
    ToolGate, ToolRequest,
};
use contexture::models::{ModelResponse, ScriptedModel, text_response};
use contexture::tools::{Policy, Tool};
use contexture::{
    Agent, Contribution, Engine, Format, Layer, Layers, Target, ToolBox, ToolCall, ToolOutput,
    hint, role, run_turn_with_text,
};
use serde::{Deserialize, Serialize};

/// Keeps promises.
struct Promises {
    id: LayerId,
}

/// Its state: a value on the tree, so it rewinds with the conversation.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Promised {
    orders: Vec<String>,
}

/// The arguments of its function, and of the tool that it watches.
#[derive(Deserialize)]
struct OrderArguments {
    order: String,
}

#[async_trait]
impl Layer for Promises {
    type State = Promised;

    fn spec(&self) -> LayerSpec {
        LayerSpec::new(self.id.clone())
    }

    /// What the model reads in each call.
    async fn recall(
        &self,
        promised: &Promised,
        call: &RecallInput<'_>,
    ) -> Result<Vec<Contribution>, LayerError> {
        if promised.orders.is_empty() {
            return Ok(Vec::new());
        }
        let orders = promised.orders.join(", ");
        let text = format!("A refund is promised for: {orders}.");
        Ok(vec![call.contribution_from_fragments([hint(text)])])
    }

    /// Asked before each tool, by whatever route it is called.
    async fn before_tool(
        &self,
        promised: &mut Promised,
        call: &ToolRequest,
        _: &HookContext,
    ) -> Result<ToolGate, LayerError> {
        if call.tool != "refund" {
            return Ok(ToolGate::Allow);
        }
        let asked: OrderArguments = call
            .arguments
            .parse_as()
            .map_err(LayerError::from_message)?;
        Ok(match promised.orders.contains(&asked.order) {
            true => ToolGate::Allow,
            // The model reads why, and can act on it.
            false => ToolGate::Deny(format!(
                "no refund is promised for {}: promise it first",
                asked.order
            )),
        })
    }

    /// What models may call.
    fn functions(&self) -> Vec<FunctionSpec> {
        let schema =
            r#"{"type":"object","properties":{"order":{"type":"string"}},"required":["order"]}"#;
        let schema = Raw::parse(schema).ok();
        let function = |schema| {
            FunctionSpec::new(
                &self.id,
                "refund",
                "Notes that a refund is promised.",
                schema,
            )
        };
        schema.map(function).into_iter().collect()
    }

    async fn call_function(
        &self,
        promised: &mut Promised,
        _: &str,
        arguments: &Raw,
        _: &HookContext,
    ) -> Result<Raw, FunctionError> {
        // The schema was checked before.
        let asked: OrderArguments = arguments.parse_as().map_err(LayerError::from_message)?;
        promised.orders.push(asked.order);
        Ok(Raw::from_value(&"noted").map_err(LayerError::from_message)?)
    }
}

fn agent(model: &Arc<ScriptedModel>) -> Result<Agent, Box<dyn Error>> {
    let schema =
        r#"{"type":"object","properties":{"order":{"type":"string"}},"required":["order"]}"#;
    let refund = Tool::function("refund", "Refunds an order.", Raw::parse(schema)?);
    let mut tools = ToolBox::new(Policy::default());
    tools.add_tool(refund, |call: ToolCall| async move {
        Ok(ToolOutput::from(format!(
            "refunded {}",
            call.arguments.get()
        )))
    })?;
    let id = LayerId::new("promise")?;
    let agent = Agent::new("desk", model.clone(), Target::openai_chat("gpt-4o"))
        .with_instructions([role("You are the support desk of a shop.")])?
        .with_tools(tools)?
        .with_layers(Layers::new().with_layer(Promises { id })?);
    Ok(agent)
}

/// An answer that calls a tool.
fn calling(id: &str, tool: &str) -> ModelResponse {
    ModelResponse::new(format!(
        r#"{{"id":"1","object":"chat.completion","created":0,"model":"gpt-4o","choices":[{{"index":0,
        "message":{{"role":"assistant","content":null,"tool_calls":[{{"id":"{id}","type":"function",
        "function":{{"name":"{tool}","arguments":"{{\"order\":\"A-7\"}}"}}}}]}},"finish_reason":"tool_calls"}}]}}"#
    ))
}

/// Runs the example.
#[tokio::main]
pub(crate) async fn main() -> Result<(), Box<dyn Error>> {
    // The models read from scripts; `contexture::models_http::HttpModel` asks a provider.
    let model = Arc::new(ScriptedModel::new([
        Ok(calling("c1", "refund")),
        Ok(calling("c2", "promise_refund")),
        Ok(calling("c3", "refund")),
        Ok(ModelResponse::new(text_response(
            Format::OpenAiChat,
            "A-7 is refunded.",
        ))),
    ]));
    let chat = Engine::in_memory().conversation("ticket-7").open().await?;
    let turn = run_turn_with_text(&chat, &agent(&model)?, "My order A-7 is broken.").await?;
    println!("{}", turn.text);
    let asked = model.requests();
    // The first refund was denied, the promise noted, the second refund done.
    assert!(
        asked
            .iter()
            .any(|request| request.payload.contains("no refund is promised for A-7"))
    );
    let last = asked.last().ok_or("the model was not asked")?;
    assert!(last.payload.contains("A refund is promised for: A-7."));
    assert!(last.payload.contains("refunded {"));
    Ok(())
}
