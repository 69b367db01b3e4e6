//! The result of a compile in the form that was asked for.
//!
//! A provider's request is what the compiler made. For UI messages it is the messages of what the
//! compiler sent: everything of the history but what its report lists as trimmed or repaired away.

use std::sync::Arc;

use contexture::compile::{Compiled, OmitReason, PathItem, Report};
use contexture::ir::{Audience, NodeId, Transcript, UiMessage, quote};
use contexture::store::{At, Node, ReadRequest};
use contexture::wire::ui::{FoldAudience, FoldItem, FoldOptions, fold};
use contexture::{CompiledCall, Conversation, Format, Item};

use crate::commands::compile::product::Product;
use crate::failure::{Failure, Outcome};
use crate::order::Order;
use contexture::engine::item;

/// Compiles a document.
///
/// # Errors
/// An unknown model, or the compiler's refusal.
pub(crate) fn of_transcript(
    order: &Order,
    transcript: &Transcript,
    written_in: Option<Format>,
) -> Outcome<Product> {
    let Compiled {
        payload, report, ..
    } = order.compile(transcript, written_in)?;
    let payload = match order.to {
        Format::Ui => {
            let items: Vec<FoldItem<'_>> = transcript.items.iter().map(FoldItem::new).collect();
            let said = transcript
                .instructions
                .iter()
                .cloned()
                .map(|message| Item::from(message).text());
            ui(order, said.collect(), items, &report)?
        }
        _ => payload.to_json(),
    };
    Ok(Product { payload, report })
}

/// What was compiled of a stored conversation.
///
/// # Errors
/// The store's.
pub(crate) async fn of_conversation(
    chat: &Conversation,
    order: &Order,
    call: CompiledCall,
) -> Outcome<Product> {
    let payload = match (order.to, call.base()) {
        (Format::Ui, Some(head)) => {
            let nodes = nodes(chat, head).await?;
            let items = nodes
                .iter()
                .map(|node| item(node))
                .collect::<Result<Vec<_>, _>>()?;
            let ids: Vec<String> = nodes
                .iter()
                .map(|node| node.message().into_owned())
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
            let resolved = chat.resolve(&*order.renderer).await?;
            ui(
                order,
                vec![resolved.system_prompt],
                folded.collect(),
                &call.report,
            )?
        }
        _ => call.payload.to_json(),
    };
    Ok(Product {
        payload,
        report: call.report,
    })
}

/// The items that were compiled, as the compiler knows them.
///
/// # Errors
/// The store's.
pub(crate) async fn path_of(chat: &Conversation, head: NodeId) -> Outcome<Vec<PathItem>> {
    let nodes = nodes(chat, head).await?;
    let known = |node: &Arc<Node>| {
        Ok(PathItem {
            node: Some(node.id),
            hash: node.content_hash,
            audience: node.audience,
            ..PathItem::new(item(node)?)
        })
    };
    nodes.iter().map(known).collect()
}

async fn nodes(chat: &Conversation, head: NodeId) -> Outcome<Vec<Arc<Node>>> {
    let request = ReadRequest::whole(At::Node(head));
    let store = chat.engine().store();
    let page = store.read(chat.owner(), chat.id(), request).await;
    Ok(page.map_err(Failure::from)?.nodes)
}

/// `{"system", "messages"}`: the texts and fragments, and the messages of what was sent.
fn ui(
    order: &Order,
    mut said: Vec<String>,
    mut items: Vec<FoldItem<'_>>,
    report: &Report,
) -> Outcome<String> {
    said.push(order.renderer.render(&order.system)?);
    said.retain(|text| !text.is_empty());
    let left_out = |why: OmitReason| matches!(why, OmitReason::Trimmed | OmitReason::Repaired);
    for span in report.omitted.iter().filter(|span| left_out(span.why)) {
        for item in items.iter_mut().take(span.last + 1).skip(span.first) {
            item.audience = Audience::NONE;
        }
    }
    let options = FoldOptions {
        audience: FoldAudience::Model,
        ..FoldOptions::default()
    };
    let mut messages: Vec<UiMessage> = fold(&items, &options);
    messages.retain(|message| !message.parts.is_empty());
    let system = quote(&said.join("\n\n"));
    let messages = serde_json::to_string(&messages)
        .map_err(|error| Failure::new(crate::exit::Exit::Fault, "messages", error.to_string()))?;
    Ok(format!("{{\"system\":{system},\"messages\":{messages}}}"))
}
