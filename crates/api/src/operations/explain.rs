//! What a call would be: its report, the texts behind it, and what it would cost after the call before.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use contexture::compile::{
    CacheUsage, ItemVerdict, PageItem, PathItem, Rates, Report, Target, Width, explain_items,
    render_html_with, render_table,
};
use contexture::engine::parse_node_item;
use contexture::ir::{Cancel, Item, NodeId, Raw, Transcript};
use contexture::store::{Node, PathEnd, ReadRequest};
use contexture::tokens::counter_for;
use contexture::wire::replace_history;
use contexture::{CompiledCall, Conversation, EngineError, Format, lift};

use crate::documents::{
    CompileDocument, DifferenceDocument, ExplainedDocument, ExplainedItemDocument,
    ExplainedTextDocument, SegmentItemsDocument, WhatIfDocument, dollars,
};
use crate::operations::past_call::compare_requests;
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
/// Newest calls of a conversation that are looked through for the one that gave an answer.
const NEWEST_CALLS: usize = 100;
/// Newest items of a branch that are looked through for an answer.
const NEWEST_ITEMS: u64 = 256;

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

/// Compiles a call as it would be with another model, window or policy, and compares it with the last one that was sent on the branch.
/// Nothing is stored: a policy's compaction is not made, and what it would cover is cut instead. Without a model and a format both are
/// those of that last call.
///
/// # Errors
/// As those of [`compile_conversation`].
pub async fn compile_what_if(
    chat: &Conversation,
    asked: &CompileDocument,
    host: &Host<'_>,
    cancel: &Cancel,
) -> Result<WhatIfDocument, OperationError> {
    let before = find_last_request(chat).await?;
    let mut asked = asked.clone();
    // A call in another format has no prefix in common with the last one.
    if asked.model.is_none() && asked.to.is_none() {
        asked.to = before.as_ref().map(|before| before.format.to_string());
    }
    let purpose = CompilePurpose::Explanation;
    let compiled = compile_conversation(chat, &asked, host, purpose, cancel).await?;
    let call = compiled.call;
    let payload = match &before {
        // A proxy leaves all else of its client's request as it came.
        Some(before)
            if before.is_clients && call.report.target.format == before.format.as_str() =>
        {
            replace_history(before.format, &before.json, &call.payload.to_json())
                .map_err(EngineError::from)?
        }
        _ => call.payload.to_json(),
    };
    let report = &call.report;
    let (now, next) = call_costs(chat, report);
    let (mut against, mut difference) = (None, None);
    if let Some(before) = before {
        // Requests of two formats have nothing that a cache could have in common.
        if Some(before.format) == report.target.format.parse().ok() {
            let requests = [before.json.as_str(), payload.as_str()];
            let model = Some(report.target.model.as_str());
            let found = compare_requests(chat.engine(), before.format, model, requests)?;
            difference = Some(DifferenceDocument::new(&found, before.is_exact));
        }
        against = Some(before.call);
    }
    Ok(WhatIfDocument {
        report: Raw::from_value(report).map_err(EngineError::from)?,
        payload: Raw::parse(payload).map_err(EngineError::from)?,
        dollars: now.map(|pico| dollars(pico.into())),
        next_dollars: next.map(dollars),
        against,
        difference,
    })
}

/// Returns what the input of a call costs, and what that of the next one costs that has nothing new, in 10⁻¹² dollars.
fn call_costs(chat: &Conversation, report: &Report) -> (Option<u64>, Option<u128>) {
    let cache = &report.cache;
    let spec = chat.engine().catalogue().resolve(&report.target.model).ok();
    let tokens = cache.predicted.total_tokens();
    let rates = spec.and_then(|spec| Rates::for_request(&spec.prices, cache.kind, tokens));
    let is_kept = cache.retention_seconds > 0;
    let next = rates.map(|rates| {
        let used = match is_kept {
            true => CacheUsage {
                read: tokens,
                ..CacheUsage::default()
            },
            false => CacheUsage {
                fresh: tokens,
                ..CacheUsage::default()
            },
        };
        used.input_cost(&rates)
    });
    (cache.cost, next)
}

/// The last request that was sent on a branch.
struct LastRequest {
    call: String,
    format: Format,
    json: String,
    is_exact: bool,
    /// Whether a client sent it through the proxy.
    is_clients: bool,
}

async fn find_last_request(chat: &Conversation) -> Result<Option<LastRequest>, OperationError> {
    let engine = chat.engine();
    let request = ReadRequest::last_nodes(PathEnd::Branch(chat.branch()), NEWEST_ITEMS);
    let path = engine.store().read_path(chat.owner(), chat.id(), request);
    let path = path.await.map_err(EngineError::from)?;
    let Some(response) = path.nodes.iter().rev().find_map(|node| node.response) else {
        return Ok(None);
    };
    let rows = chat.newest_calls(NEWEST_CALLS).await?;
    let row = rows.iter().find(|row| row.response == Some(response));
    let Some(row) = row else { return Ok(None) };
    let Some(past) = engine.past_call(chat.owner(), row.id).await? else {
        return Ok(None);
    };
    let sent = past.request_as_sent().await?;
    Ok(sent.ok().map(|sent| LastRequest {
        call: format!("req_{}", row.id),
        format: sent.format,
        json: sent.json,
        is_exact: sent.is_exact,
        is_clients: past.record().body_hash.is_some(),
    }))
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
    let verdicts = item_verdicts(chat, report, &path)?;
    let sent = sent_transcript(report, &call.payload.to_json())?;
    let items = explain_path(&path, &verdicts, &sent);
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
    let sent = sent_transcript(report, payload)?;
    let items = explain_path(path, &verdicts, &sent);
    Ok(items
        .iter()
        .map(ExplainedItemDocument::to_page_item)
        .collect())
}

fn sent_transcript(report: &Report, payload: &str) -> Result<Transcript, OperationError> {
    let format = report.target.format.parse();
    let format: Format = format.unwrap_or(Format::DEFAULT_TARGET);
    let sent = lift(format, payload).map_err(EngineError::from)?;
    Ok(sent.transcript)
}

fn explain_path(
    path: &[PathItem],
    verdicts: &BTreeMap<usize, ItemVerdict>,
    sent: &Transcript,
) -> Vec<ExplainedItemDocument> {
    let mut shown = SentOutputs::new(&sent.items);
    // From behind: where a call id is used twice, what is sent is the newest.
    let mut items: Vec<ExplainedItemDocument> = path
        .iter()
        .enumerate()
        .rev()
        .map(|(index, one)| explain_item(index, one, verdicts.get(&index), &mut shown))
        .collect();
    items.reverse();
    items
}

fn explain_item(
    index: usize,
    one: &PathItem,
    verdict: Option<&ItemVerdict>,
    shown: &mut SentOutputs,
) -> ExplainedItemDocument {
    let sent = shown.take_output(&one.item);
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
    let store = chat.engine().store();
    Ok(store
        .read_path(chat.owner(), chat.id(), request)
        .await?
        .nodes)
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
    chat: &Conversation,
    report: &Report,
    path: &[PathItem],
) -> Result<BTreeMap<usize, ItemVerdict>, OperationError> {
    let catalogue = chat.engine().catalogue();
    let target = &report.target;
    let format: Format = target.format.parse().unwrap_or(Format::DEFAULT_TARGET);
    let asked = Target::new(format, &target.model).window(target.window);
    let request = asked.build_request(catalogue).map_err(EngineError::from)?;
    let spec = asked.model_spec(catalogue).map_err(EngineError::from)?;
    let counter = counter_for(spec.encoding);
    let verdicts = explain_items(report, path, &request, counter);
    Ok(verdicts.into_iter().map(|one| (one.index, one)).collect())
}
