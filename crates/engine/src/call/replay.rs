//! Compiling a past call again, byte for byte.
//!
//! The path, the plan, pins and compactions are read at the node the call was compiled from, which never changes. The
//! rest was stored with the answer. Nothing else goes into a payload: no clock, no catalogue, no fragments that a handle
//! has now.

use contexture_compile::{COMPILER, Payload, Report, Scratch, compile, load_call};
use contexture_ir::{ContentHash, NodeId, ResponseId};
use contexture_store::{PathEnd, PathPages, ReadRequest, ResponseInputs};

use super::inputs::{CallInputs, DECISIONS, TreeInputs};
use super::stored_inputs::{CALL_RECORD_VERSION, CallRecord, is_passed_through};
use crate::error::{EngineError, Unreplayable};
use crate::handle::{Conversation, find_adapter, load_path, load_state};

/// A past call, compiled again.
#[derive(Clone, Debug)]
pub struct Replayed {
    /// Whose call it was.
    pub response: ResponseId,
    /// The head it was compiled from; `None`: an empty path.
    pub base: Option<NodeId>,
    /// The payload as it is compiled now.
    pub payload: Payload,
    /// What that payload contains and leaves out.
    pub report: Report,
    /// The hash of the payload that was sent.
    pub sent_hash: ContentHash,
    /// The hash of the payload as it is compiled now.
    pub rebuilt_hash: ContentHash,
    /// The version of the compiler then.
    pub compiler: String,
    /// The first byte that differs, where the payload itself was kept.
    pub differs_at: Option<usize>,
}

impl Replayed {
    /// Whether the payload is the one that was sent, byte for byte.
    #[must_use]
    pub fn is_equal(&self) -> bool {
        self.sent_hash == self.rebuilt_hash
    }

    /// Whether it was compiled by another version, which alone may give other bytes.
    #[must_use]
    pub fn has_other_compiler_version(&self) -> bool {
        self.compiler != COMPILER
    }
}

/// Compiles a past call again from its record and compares the payload with the one that was sent.
pub(crate) async fn replay_call(
    chat: &Conversation,
    response: ResponseId,
) -> Result<Replayed, EngineError> {
    let stored = chat
        .store()
        .load_response(chat.owner(), chat.id(), response);
    let stored = stored.await?;
    let unreplayable = |why| EngineError::Unreplayable {
        response,
        reason: why,
    };
    let bytes = match stored.inputs {
        ResponseInputs::Recorded(bytes) => bytes,
        ResponseInputs::None => return Err(unreplayable(Unreplayable::NotRecorded)),
        ResponseInputs::Redacted => return Err(unreplayable(Unreplayable::Redacted)),
    };
    if is_passed_through(&bytes) {
        return Err(unreplayable(Unreplayable::PassedThrough));
    }
    let unreadable = |why: String| unreplayable(Unreplayable::Unreadable { reason: why });
    let record: CallRecord =
        serde_json::from_slice(&bytes).map_err(|error| unreadable(error.to_string()))?;
    // Older records are read, as all added fields are optional; a newer one may mean something else.
    if record.version > CALL_RECORD_VERSION {
        let version = record.version;
        return Err(unreplayable(Unreplayable::Newer { version }));
    }
    let sent: ContentHash = record
        .hash
        .parse()
        .map_err(|error: contexture_ir::Error| unreadable(error.to_string()))?;
    // Stored with level `hashes`, or with passes of layers, which are code and cannot be stored.
    let Some(call) = &record.call else {
        return Err(unreplayable(Unreplayable::NotRecorded));
    };
    let (request, contributions) = load_call(call, &|name| find_adapter(chat.engine(), name))
        .map_err(|error| unreadable(error.to_string()))?;
    let path;
    // Without a base the call was compiled from an empty path, which has no state either.
    let tree_inputs = match stored.base {
        Some(base) => {
            path = load_path(chat, ReadRequest::whole_path(PathEnd::Node(base))).await?;
            let state = load_state(chat, PathEnd::Node(base), DECISIONS).await?;
            TreeInputs::from_path(&path, &state, &record.plan)?
        }
        None => TreeInputs::default(),
    };
    let inputs = CallInputs {
        request,
        contributions,
        encoding: record.encoding,
        passes: Vec::new(),
    };
    // With empty scratch memory and no passes: nothing of this process may reach the bytes.
    let compiled = compile(
        &inputs.compile_input(&tree_inputs, &[], None),
        &mut Scratch::new(),
    )?;
    let (payload, report) = (compiled.payload, compiled.report);
    let rebuilt = payload.content_hash();
    let differs_at = record.payload.as_ref().filter(|_| rebuilt != sent);
    Ok(Replayed {
        response,
        base: stored.base,
        sent_hash: sent,
        rebuilt_hash: rebuilt,
        compiler: record.compiler,
        differs_at: differs_at.map(|sent| first_difference(sent, &payload)),
        payload,
        report,
    })
}

/// Lists the answers on a path, oldest first. Imported answers have items but no record.
pub(crate) async fn list_response_ids(
    chat: &Conversation,
    at: PathEnd,
) -> Result<Vec<ResponseId>, EngineError> {
    let request = ReadRequest::whole_path(at);
    let mut pages = PathPages::new(chat.store(), chat.owner(), chat.id(), request);
    let mut found: Vec<ResponseId> = Vec::new();
    while let Some(page) = pages.next().await? {
        for response in page.nodes.iter().filter_map(|node| node.response) {
            // The nodes of one answer are neighbours, so comparing with the last one is enough.
            if found.last() != Some(&response) {
                found.push(response);
            }
        }
    }
    Ok(found)
}

fn first_difference(sent: &str, rebuilt: &Payload) -> usize {
    let rebuilt = rebuilt.json_chunks().flat_map(str::bytes);
    let same = sent.bytes().zip(rebuilt).take_while(|(a, b)| a == b);
    same.count()
}
