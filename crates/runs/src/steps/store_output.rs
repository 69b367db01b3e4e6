//! Outputs of calls: as layers let them in, each stored by an append of its own.
//!
//! Not here: what gives them (`calls`).

use contexture_ir::{FunctionCallOutput, Item, Origin, Output, Part, Raw};
use contexture_store::{NewItem, StateChange};
use contexture_telemetry::Operation;
use tracing::Instrument as _;

use crate::agent::RunEventKind;
use crate::error::RunError;
use crate::execution::{AppendBatch, LiveRun, UnansweredCall, UnansweredCalls};
use crate::record::{nth_node_id, output_node_id};
use crate::tools::{ToolFailure, ToolOutput, function_call_output};

/// Stores an output.
pub(crate) async fn store_output(
    run: &mut LiveRun,
    of: &UnansweredCalls,
    call: &UnansweredCall,
    output: FunctionCallOutput,
    changes: Vec<StateChange>,
) -> Result<(), RunError> {
    let said = vec![Item::FunctionCallOutput(output)];
    let place = |run: &LiveRun, items| Ok(batch_of_output(run, of, call, items));
    let said = run.append_items(said, changes, place).await?;
    notify_tool_done(run, call, &said);
    Ok(())
}

/// Calls a function of a layer; what it changed is stored with its output.
pub(crate) async fn call_layer_function(
    run: &mut LiveRun,
    of: &UnansweredCalls,
    call: &UnansweredCall,
    arguments: &Raw,
    guidance: &str,
) -> Result<(), RunError> {
    loop {
        let operation = Operation::for_tool(&call.call.name, &call.call.call_id);
        let called = run.session.call_function(&call.call.name, arguments);
        let called = called.instrument(operation.span().clone()).await;
        operation.end(called.as_ref().err().map(|_| "function"));
        let result = match called {
            Ok(result) => Ok(ToolOutput::from(result_text(&result))),
            Err(error) => Err(ToolFailure::from_message(error)),
        };
        let output = append_guidance(function_call_output(&call.call.call_id, result), guidance);
        let said = vec![Item::FunctionCallOutput(output)];
        let said = run.session.on_append(said).await?;
        let said = batch_of_output(run, of, call, said);
        if run.try_append(&said, Vec::new()).await? {
            notify_tool_done(run, call, &said.items);
            return Ok(());
        }
    }
}

/// The output of a call as layers let it in, and what they put behind it. A call has to have one: of one that they
/// leave out the model is told that.
fn batch_of_output(
    run: &LiveRun,
    of: &UnansweredCalls,
    call: &UnansweredCall,
    items: Vec<Item>,
) -> AppendBatch {
    let (mut output, mut behind) = (None, Vec::new());
    for item in items {
        match item {
            Item::FunctionCallOutput(given) if output.is_none() => output = Some(given),
            item => behind.push(item),
        }
    }
    let withheld = || {
        let why = format!("{} was called, and its output is withheld", call.call.name);
        function_call_output("", Err(ToolFailure::from_message(why)))
    };
    let output = FunctionCallOutput {
        call_id: call.call.call_id.clone(),
        ..output.unwrap_or_else(withheld)
    };
    let first = output_node_id(run.id, call.node);
    let mut said = AppendBatch::default();
    let items = std::iter::once(Item::FunctionCallOutput(output)).chain(behind);
    for (index, item) in items.enumerate() {
        let new = run
            .chat
            .new_item(nth_node_id(first, index), &item, Some(run.run_step()));
        said.nodes.push(match index {
            0 => NewItem {
                answers: Some(call.node),
                message_id: Some(of.message.clone()),
                origin: Origin::Tool,
                ..new
            },
            _ => new,
        });
        said.items.push(item);
    }
    said
}

fn notify_tool_done(run: &LiveRun, call: &UnansweredCall, said: &[Item]) {
    if let Some(Item::FunctionCallOutput(output)) = said.first() {
        let node = output_node_id(run.id, call.node);
        let output = output.clone();
        run.notify_observer(|| RunEventKind::ToolDone { node, output });
    }
}

/// A result as the model reads it: a text as it is, anything else as JSON.
fn result_text(result: &Raw) -> String {
    result
        .as_string()
        .unwrap_or_else(|| result.get().to_owned())
}

/// The output with what layers say behind it.
pub(crate) fn append_guidance(
    mut output: FunctionCallOutput,
    guidance: &str,
) -> FunctionCallOutput {
    if !guidance.is_empty() {
        match &mut output.output {
            Output::Text(text) => {
                text.push_str("\n\n");
                text.push_str(guidance);
            }
            Output::Parts(parts) => parts.push(Part::input_text(guidance)),
        }
    }
    output
}
