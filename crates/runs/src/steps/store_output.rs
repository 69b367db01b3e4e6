//! Stores the outputs of calls, each in an append of its own, after layers were asked about it.
//!
//! One append per output, so that a crash between two tools loses only unfinished work. Not here: running tools
//! (`tool_step`).

use contexture_engine::{EngineError, parse_node_item};
use contexture_ir::{FunctionCallOutput, Item, Origin, Output, Part, Raw};
use contexture_store::{Error as StoreError, NewItem, StateChange};
use contexture_telemetry::Operation;
use tracing::Instrument as _;

use crate::agent::RunEventKind;
use crate::error::RunError;
use crate::execution::{AppendBatch, LiveRun, UnansweredCall, UnansweredCalls};
use crate::record::{find_node, nth_node_id, output_node_id};
use crate::tools::{ToolFailure, ToolOutput, function_call_output};

/// Stores an output with changes of state, and notifies the observer.
pub(crate) async fn store_output(
    run: &mut LiveRun,
    of: &UnansweredCalls,
    call: &UnansweredCall,
    output: FunctionCallOutput,
    changes: Vec<StateChange>,
) -> Result<(), RunError> {
    let items = vec![Item::FunctionCallOutput(output)];
    let place = |run: &LiveRun, items| Ok(batch_of_output(run, of, call, items));
    // The observer is notified after the append, so never of an output that a crash could still lose.
    let stored = match run.append_items(items, changes, place).await {
        Ok(stored) => stored,
        Err(error) if is_answered(run, call, &error) => late_output_of(run, call).await?,
        Err(error) => return Err(error),
    };
    notify_tool_done(run, call, &stored);
    Ok(())
}

/// Whether the append was refused because the call has an output.
fn is_answered(run: &LiveRun, call: &UnansweredCall, error: &RunError) -> bool {
    let output = output_node_id(run.id, call.node);
    matches!(
        error,
        RunError::Engine(EngineError::Store(StoreError::IdConflict { node, .. })) if *node == output
    )
}

/// Accepts the output that an earlier driver stored after this one took the run up.
///
/// # Errors
/// [`RunError::Superseded`] if it is this driver that is late.
async fn late_output_of(run: &mut LiveRun, call: &UnansweredCall) -> Result<Vec<Item>, RunError> {
    run.check_current().await?;
    run.chat.refresh_session(&mut run.session).await?;
    let (chat, output) = (&run.chat, output_node_id(run.id, call.node));
    let stored = find_node(chat.engine(), chat.owner(), chat.id(), output).await?;
    let items = stored.map(|node| parse_node_item(&node)).transpose()?;
    Ok(items.into_iter().collect())
}

/// Calls a function of a layer and stores its output together with the layer's new state.
pub(crate) async fn call_layer_function(
    run: &mut LiveRun,
    of: &UnansweredCalls,
    call: &UnansweredCall,
    arguments: &Raw,
    guidance: &str,
) -> Result<(), RunError> {
    // The function runs again if another writer changed its layer's state, because its result was computed from the old
    // state.
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
        let items = vec![Item::FunctionCallOutput(output)];
        // Inside the loop, like the call: layers see the output that will be stored.
        let items = run.session.on_append(items).await?;
        let batch = batch_of_output(run, of, call, items);
        if run.try_append(&batch, Vec::new()).await? {
            notify_tool_done(run, call, &batch.items);
            return Ok(());
        }
    }
}

/// Builds the batch of a call's output: the output itself, then items that layers added.
pub(crate) fn batch_of_output(
    run: &LiveRun,
    of: &UnansweredCalls,
    call: &UnansweredCall,
    items: Vec<Item>,
) -> AppendBatch {
    let (mut output, mut behind) = (None, Vec::new());
    for item in items {
        match item {
            Item::FunctionCallOutput(own) if output.is_none() => output = Some(own),
            // Anything else that a layer added, a second output included, follows as an item of its own.
            item => behind.push(item),
        }
    }
    // Providers reject a call without an output, so one that layers removed is replaced by a note to the model.
    let withheld = || {
        let reason = format!("{} was called, and its output is withheld", call.call.name);
        function_call_output("", Err(ToolFailure::from_message(reason)))
    };
    let output = FunctionCallOutput {
        // Set again, because a layer may have built a new output.
        call_id: call.call.call_id.clone(),
        ..output.unwrap_or_else(withheld)
    };
    // Derived from the call's node: an append that is repeated after a crash finds its output stored.
    let first = output_node_id(run.id, call.node);
    let mut batch = AppendBatch::default();
    let items = std::iter::once(Item::FunctionCallOutput(output)).chain(behind);
    for (index, item) in items.enumerate() {
        let new = run
            .chat
            .new_item(nth_node_id(first, index), &item, Some(run.run_step()));
        batch.nodes.push(match index {
            0 => NewItem {
                answers: Some(call.node),
                message_id: Some(of.message.clone()),
                origin: Origin::Tool,
                ..new
            },
            _ => new,
        });
        batch.items.push(item);
    }
    batch
}

/// Notifies the observer of a stored output.
fn notify_tool_done(run: &LiveRun, call: &UnansweredCall, stored: &[Item]) {
    if let Some(Item::FunctionCallOutput(output)) = stored.first() {
        let node = output_node_id(run.id, call.node);
        let output = output.clone();
        run.notify_observer(|| RunEventKind::ToolFinished { node, output });
    }
}

/// Formats a result for the model: a string without quotes, anything else as JSON.
fn result_text(result: &Raw) -> String {
    result
        .as_string()
        .unwrap_or_else(|| result.get().to_owned())
}

/// Appends the guidance of layers to an output.
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
            // A part of its own, so that images and files of the output stay unchanged.
            Output::Parts(parts) => parts.push(Part::input_text(guidance)),
        }
    }
    output
}
