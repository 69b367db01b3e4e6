//! What a call sends and leaves out: its report, and the texts behind it.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use std::sync::Arc;

use contexture::compile::{
    ItemVerdict, PageItem, PathItem, Report, Target, Width, explain_items, render_html_with,
    render_table,
};
use contexture::engine::{PastRequest, parse_node_item};
use contexture::ir::{CallId, Cancel, Item, NodeId, Owner, Raw, Transcript};
use contexture::store::{Node, PathEnd, ReadRequest, read_all_pages};
use contexture::tokens::counter_for;
use contexture::{CompiledCall, Conversation, Engine, EngineError, Format, lift};

use crate::documents::{
    CallItemsDocument, CompileDocument, ExplainedDocument, ExplainedItemDocument,
    ExplainedTextDocument, SegmentItemsDocument,
};
use crate::operations::{CompilePurpose, Host, OperationError, compile_conversation};

/// What an explanation has beside the report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExplainDetail {
    /// Nothing but the report.
    Report,
    /// The texts of what is sent and left out, with the ids of their nodes.
    Text,
}

/// Columns of a table in a document.
const TABLE_WIDTH: usize = 120;

/// Explains what a compile would send and leave out. Nothing is stored.
///
/// # Errors
/// As those of [`compile_conversation`].
pub async fn explain_conversation(
    chat: &Conversation,
    asked: &CompileDocument,
    host: &Host<'_>,
    detail: ExplainDetail,
    cancel: &Cancel,
) -> Result<ExplainedDocument, OperationError> {
    let purpose = CompilePurpose::Explanation;
    let call = compile_conversation(chat, asked, host, purpose, cancel)
        .await?
        .call;
    let text = match detail {
        ExplainDetail::Report => None,
        ExplainDetail::Text => Some(explain_texts(chat, &call).await?),
    };
    let items = text.iter().flat_map(|text| &text.items);
    let items: Vec<PageItem> = items.map(ExplainedItemDocument::to_page_item).collect();
    Ok(ExplainedDocument {
        table: render_table(&call.report, Width(TABLE_WIDTH)),
        html: render_html_with(&call.report, chat.id().as_str(), &items),
        report: Raw::from_value(&call.report).map_err(EngineError::from)?,
        text,
    })
}

/// Returns the texts of what a call sends and leaves out.
async fn explain_texts(
    chat: &Conversation,
    call: &CompiledCall,
) -> Result<ExplainedTextDocument, OperationError> {
    let report = &call.report;
    let nodes = match call.base() {
        Some(base) => read_nodes(chat, base).await?,
        None => Vec::new(),
    };
    let path = nodes
        .iter()
        .map(|node| path_item(node))
        .collect::<Result<Vec<_>, _>>()?;
    let verdicts = item_verdicts(chat.engine(), report, &path)?;
    let sent = sent_transcript(report_format(report), &call.payload.to_json())?;
    let items = explain_path(&path, 0..path.len(), &verdicts, &sent);
    let segments = report.segments.iter().enumerate();
    let segments = segments.filter_map(|(segment, row)| {
        let (first, last) = row.span?;
        Some(SegmentItemsDocument {
            segment,
            first,
            last,
        })
    });
    let system = sent.instructions.into_iter();
    Ok(ExplainedTextDocument {
        system: system.map(|message| Item::from(message).text()).collect(),
        segments: segments.collect(),
        items,
    })
}

/// Returns the text of each item of a path, and what a payload that was compiled from it has in its place, as a page of the
/// report shows them.
///
/// `verdicts` are those of [`explain_items`] for the same report and path.
///
/// # Errors
/// The payload cannot be read.
pub fn build_page_items(
    report: &Report,
    path: &[PathItem],
    verdicts: &[ItemVerdict],
    payload: &str,
) -> Result<Vec<PageItem>, OperationError> {
    let verdicts = verdicts
        .iter()
        .map(|one| (one.index, one.clone()))
        .collect();
    let sent = sent_transcript(report_format(report), payload)?;
    let items = explain_path(path, 0..path.len(), &verdicts, &sent);
    Ok(items
        .iter()
        .map(ExplainedItemDocument::to_page_item)
        .collect())
}

/// Describes what was sent in the place of items of a past call's history: of those of these indexes. `None` if the owner has no
/// call of this id.
///
/// The request is made again of what was stored, so that is what a request made here says of it; texts come from the tree.
///
/// # Errors
/// The engine's.
pub async fn explain_call_items(
    engine: &Engine,
    owner: &Owner,
    id: CallId,
    indexes: Range<usize>,
) -> Result<Option<CallItemsDocument>, OperationError> {
    let Some(past) = engine.past_call(owner, id).await? else {
        return Ok(None);
    };
    let (sent, base) = (past.request_as_sent().await?, past.base().await?);
    let missing = |why: &dyn std::fmt::Display| CallItemsDocument {
        missing: Some(why.to_string()),
        ..CallItemsDocument::default()
    };
    let (sent, base) = match (sent, base) {
        (Ok(sent), Ok(base)) => (sent, base),
        (Err(why), _) | (_, Err(why)) => return Ok(Some(missing(&why))),
    };
    let nodes = match (past.conversation(), base) {
        (Some(chat), Some(base)) => read_nodes(chat, base).await?,
        _ => Vec::new(),
    };
    let path = nodes
        .iter()
        .map(|node| path_item(node))
        .collect::<Result<Vec<_>, _>>()?;
    describe_items(engine, &sent, &path, indexes).map(Some)
}

fn describe_items(
    engine: &Engine,
    sent: &PastRequest,
    path: &[PathItem],
    indexes: Range<usize>,
) -> Result<CallItemsDocument, OperationError> {
    // Of a request that went as it came nothing was decided, so no item has a verdict.
    let verdicts = match &sent.report {
        Some(report) => item_verdicts(engine, report, path)?,
        None => BTreeMap::new(),
    };
    let transcript = sent_transcript(sent.format, &sent.json)?;
    let items = explain_path(path, indexes, &verdicts, &transcript);
    let system = transcript.instructions.into_iter();
    Ok(CallItemsDocument {
        items,
        path_items: path.len(),
        system: system.map(|message| Item::from(message).text()).collect(),
        exact: Some(sent.is_exact),
        missing: None,
    })
}

fn report_format(report: &Report) -> Format {
    let format = report.target.format.parse();
    format.unwrap_or(Format::DEFAULT_TARGET)
}

fn sent_transcript(format: Format, payload: &str) -> Result<Transcript, OperationError> {
    let sent = lift(format, payload).map_err(EngineError::from)?;
    Ok(sent.transcript)
}

/// Explains the items of these indexes.
fn explain_path(
    path: &[PathItem],
    indexes: Range<usize>,
    verdicts: &BTreeMap<usize, ItemVerdict>,
    sent: &Transcript,
) -> Vec<ExplainedItemDocument> {
    let mut shown = SentOutputs::new(&sent.items);
    let mut items = Vec::new();
    // From behind: where a call id is used twice, what is sent is the newest. So those behind the wanted ones are passed too.
    for (index, one) in path.iter().enumerate().skip(indexes.start).rev() {
        let sent = shown.take_output(&one.item);
        if indexes.contains(&index) {
            items.push(explain_item(index, one, verdicts.get(&index), sent));
        }
    }
    items.reverse();
    items
}

fn explain_item(
    index: usize,
    one: &PathItem,
    verdict: Option<&ItemVerdict>,
    sent: Option<String>,
) -> ExplainedItemDocument {
    let text = item_text(&one.item);
    ExplainedItemDocument {
        index,
        node: one.node.map(|node| node.to_string()).unwrap_or_default(),
        kind: one.item.kind().to_owned(),
        verdict: verdict.map(|verdict| verdict.verdict),
        rule: verdict.map(|verdict| verdict.rule.clone()),
        tokens: verdict.map(|verdict| verdict.tokens),
        sent_tokens: verdict.map(|verdict| verdict.shown),
        // Where nothing was decided about it, it stands there as it is.
        sent: match verdict {
            Some(verdict) if verdict.shown == 0 => None,
            Some(_) => sent,
            None => Some(text.clone()),
        },
        text,
    }
}

/// What a model reads of an item.
fn item_text(item: &Item) -> String {
    match item {
        Item::FunctionCall(call) => format!("{}({})", call.name, call.arguments),
        item => item.text(),
    }
}

/// The outputs in a request, by the calls they answer.
struct SentOutputs(BTreeMap<String, VecDeque<String>>);

impl SentOutputs {
    fn new(items: &[Item]) -> Self {
        let mut by_call: BTreeMap<String, VecDeque<String>> = BTreeMap::new();
        for item in items {
            if let Item::FunctionCallOutput(output) = item {
                let texts = by_call.entry(output.call_id.clone()).or_default();
                texts.push_back(item.text());
            }
        }
        Self(by_call)
    }

    /// Takes the newest output that is sent for the call of this one.
    fn take_output(&mut self, item: &Item) -> Option<String> {
        let Item::FunctionCallOutput(output) = item else {
            return None;
        };
        self.0.get_mut(&output.call_id)?.pop_back()
    }
}

async fn read_nodes(chat: &Conversation, head: NodeId) -> Result<Vec<Arc<Node>>, EngineError> {
    let request = ReadRequest::whole_path(PathEnd::Node(head));
    let store = &**chat.engine().store();
    let path = read_all_pages(store, chat.owner(), chat.id(), request).await?;
    Ok(path.nodes)
}

fn path_item(node: &Node) -> Result<PathItem, EngineError> {
    Ok(PathItem {
        node: Some(node.id),
        hash: node.content_hash,
        audience: node.audience,
        ..PathItem::new(parse_node_item(node)?)
    })
}

/// Returns what became of each item that is not sent as it is.
fn item_verdicts(
    engine: &Engine,
    report: &Report,
    path: &[PathItem],
) -> Result<BTreeMap<usize, ItemVerdict>, OperationError> {
    let catalogue = engine.catalogue();
    let target = &report.target;
    let asked = Target::new(report_format(report), &target.model).window(target.window);
    let request = asked.build_request(catalogue).map_err(EngineError::from)?;
    let spec = asked.model_spec(catalogue).map_err(EngineError::from)?;
    let counter = counter_for(spec.encoding);
    let verdicts = explain_items(report, path, &request, counter);
    Ok(verdicts.into_iter().map(|one| (one.index, one)).collect())
}
