//! The result of a compile in the form that was asked for.
//!
//! A provider's request is what the compiler made. For UI messages it is the messages of what the
//! compiler sent: everything of the history but what its report lists as trimmed or repaired away.

use std::sync::Arc;

use contexture::compile::{Compiled, OmitReason, PathItem, Report};
use contexture::ir::{Audience, NodeId, Transcript, UiMessage, quote_json};
use contexture::store::{Node, PathEnd, ReadRequest, read_all_pages};
use contexture::wire::ui::{FoldAudience, FoldItem, FoldOptions, fold};
use contexture::{CompiledCall, Conversation, Format, Item};

use crate::commands::compile::compile_output::CompileOutput;
use crate::options::compile_request::CompileSettings;
use crate::output::failure::{Failure, Outcome};
use contexture::engine::parse_node_item;

/// Compiles a document.
///
/// # Errors
/// An unknown model, or the compiler's refusal.
pub(crate) fn compile_document(
    order: &CompileSettings,
    transcript: &Transcript,
    written_in: Option<Format>,
) -> Outcome<CompileOutput> {
    let Compiled {
        payload, report, ..
    } = order.compile_transcript(transcript, written_in)?;
    let payload = match order.to {
        Format::Ui => {
            let items: Vec<FoldItem<'_>> = transcript.items.iter().map(FoldItem::new).collect();
            let said = transcript
                .instructions
                .iter()
                .cloned()
                .map(|message| Item::from(message).text());
            build_ui_payload(order, said.collect(), items, &report)?
        }
        _ => payload.to_json(),
    };
    Ok(CompileOutput { payload, report })
}

/// What was compiled of a stored conversation.
///
/// # Errors
/// The store's.
pub(crate) async fn conversation_output(
    chat: &Conversation,
    order: &CompileSettings,
    call: CompiledCall,
) -> Outcome<CompileOutput> {
    let payload = match (order.to, call.base()) {
        (Format::Ui, Some(head)) => {
            let nodes = read_path_nodes(chat, head).await?;
            let items = nodes
                .iter()
                .map(|node| parse_node_item(node))
                .collect::<Result<Vec<_>, _>>()?;
            let ids: Vec<String> = nodes
                .iter()
                .map(|node| node.effective_message_id().into_owned())
                .collect();
            let folded = nodes
                .iter()
                .zip(&items)
                .zip(&ids)
                .map(|((node, item), id)| FoldItem {
                    message_id: Some(id),
                    response: node.response,
                    audience: node.audience,
                    ..FoldItem::new(item)
                });
            let resolved = chat.resolve().await?;
            build_ui_payload(
                order,
                vec![resolved.system_prompt],
                folded.collect(),
                &call.report,
            )?
        }
        _ => call.payload.to_json(),
    };
    Ok(CompileOutput {
        payload,
        report: call.report,
    })
}

/// The items that were compiled, as the compiler knows them.
///
/// # Errors
/// The store's.
pub(crate) async fn load_path_items(chat: &Conversation, head: NodeId) -> Outcome<Vec<PathItem>> {
    let nodes = read_path_nodes(chat, head).await?;
    let known = |node: &Arc<Node>| {
        Ok(PathItem {
            node: Some(node.id),
            hash: node.content_hash,
            audience: node.audience,
            origin: node.origin,
            ..PathItem::new(parse_node_item(node)?)
        })
    };
    nodes.iter().map(known).collect()
}

async fn read_path_nodes(chat: &Conversation, head: NodeId) -> Outcome<Vec<Arc<Node>>> {
    let request = ReadRequest::whole_path(PathEnd::Node(head));
    let store = &**chat.engine().store();
    let page = read_all_pages(store, chat.owner(), chat.id(), request).await;
    Ok(page.map_err(Failure::from)?.nodes)
}

/// `{"system", "messages"}`: the texts and fragments, and the messages of what was sent.
fn build_ui_payload(
    order: &CompileSettings,
    mut said: Vec<String>,
    mut items: Vec<FoldItem<'_>>,
    report: &Report,
) -> Outcome<String> {
    said.push(order.renderer.render(&order.system)?);
    // No blank lines for parts that say nothing.
    said.retain(|text| !text.is_empty());
    // Other reasons concern items that UI messages show in their own way.
    let left_out = |why: OmitReason| matches!(why, OmitReason::Trimmed | OmitReason::Repaired);
    for span in report.omitted.iter().filter(|span| left_out(span.reason)) {
        for item in items.iter_mut().take(span.last + 1).skip(span.first) {
            // Hidden and not removed: the report's positions count all items.
            item.audience = Audience::NONE;
        }
    }
    let options = FoldOptions {
        audience: FoldAudience::Model,
        ..FoldOptions::default()
    };
    let mut messages: Vec<UiMessage> = fold(&items, &options);
    // A message whose items were all left out would stand there empty.
    messages.retain(|message| !message.parts.is_empty());
    let system = quote_json(&said.join("\n\n"));
    let messages = serde_json::to_string(&messages).map_err(|error| {
        Failure::new(
            crate::output::exit::Exit::Fault,
            "messages",
            error.to_string(),
        )
    })?;
    Ok(format!("{{\"system\":{system},\"messages\":{messages}}}"))
}
