//! Calls of a model: compiled, recorded, their tools answered and checked, explained.

use contexture::compile::Scratch;
use contexture::ir::Raw;
use contexture_api::operations::{
    self, CompilePurpose, ExplainDetail, check_call, compile_conversation, compile_document,
    explain_conversation, handle_calls, ingest_request, keep_compiled, record_answer,
};
use contexture_api::{
    CheckDocument, CompileDocument, CompiledDocument, HandleDocument, IngestDocument,
    RecordDocument,
};
use serde::{Deserialize, Serialize};

use super::{Reply, Scope, parse_branch};
use crate::failure::Failure;

/// A compiled call without its two large members, which go beside it: the request is sent as it is, and a report is seldom read.
#[derive(Debug, Serialize)]
struct CallEnvelope<'a> {
    call: &'a Option<String>,
    plan: &'a Option<Raw>,
    own_tools: &'a [String],
}

fn compiled_reply(compiled: &CompiledDocument) -> Result<Reply, Failure> {
    let envelope = CallEnvelope {
        call: &compiled.call,
        plan: &compiled.plan,
        own_tools: &compiled.own_tools,
    };
    let bytes = |raw: &Raw| raw.get().as_bytes().to_vec();
    let attachments = vec![bytes(&compiled.payload), bytes(&compiled.report)];
    Reply::with_attachments(&envelope, attachments)
}

pub(super) async fn compile(scope: &Scope<'_>) -> Result<Reply, Failure> {
    let asked: CompileDocument = scope.parse()?;
    let chat = scope.chat().await?;
    let (host, purpose, cancel) = (scope.host(), CompilePurpose::Call, &scope.request.cancel);
    let compiled = compile_conversation(&chat, &asked, &host, purpose, cancel).await?;
    compiled_reply(&keep_compiled(&chat, compiled).await?)
}

pub(super) fn compile_messages(scope: &Scope<'_>) -> Result<Reply, Failure> {
    let asked: CompileDocument = scope.parse()?;
    let (catalogue, host) = (scope.engine.catalogue(), scope.host());
    let (cancel, mut scratch) = (&scope.request.cancel, Scratch::new());
    let compiled = compile_document(catalogue, &asked, &host, cancel, &mut scratch)?;
    compiled_reply(&compiled)
}

pub(super) async fn ingest(scope: &Scope<'_>) -> Result<Reply, Failure> {
    let asked: IngestDocument = scope.parse()?;
    let (owner, conversation) = (scope.owner()?, scope.conversation_id()?);
    let branch = scope.request.branch.as_deref().map(parse_branch);
    let branch = branch.transpose()?;
    let branch = branch.as_ref();
    let ingested = ingest_request(scope.engine, &owner, &conversation, branch, &asked).await?;
    Reply::new(&ingested)
}

pub(super) async fn record(scope: &Scope<'_>) -> Result<Reply, Failure> {
    let asked: RecordDocument = scope.parse()?;
    let chat = scope.chat().await?;
    Reply::new(&record_answer(&chat, &asked, &scope.host()).await?)
}

pub(super) async fn handle(scope: &Scope<'_>) -> Result<Reply, Failure> {
    let asked: HandleDocument = scope.parse()?;
    let chat = scope.chat().await?;
    Reply::new(&handle_calls(&chat, &asked, &scope.host()).await?)
}

pub(super) async fn check(scope: &Scope<'_>) -> Result<Reply, Failure> {
    let asked: CheckDocument = scope.parse()?;
    let chat = scope.chat().await?;
    Reply::new(&check_call(&chat, &asked, &scope.host()).await?)
}

/// What to explain.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ExplainRequest {
    call: CompileDocument,
    /// Whether to add the texts of what is sent and left out.
    text: bool,
    /// Whether to compare the call with the last one of the branch, and say what it would cost.
    what_if: bool,
}

pub(super) async fn explain(scope: &Scope<'_>) -> Result<Reply, Failure> {
    let asked: ExplainRequest = scope.parse()?;
    let chat = scope.chat().await?;
    let (host, cancel) = (scope.host(), &scope.request.cancel);
    if asked.what_if {
        let compared = operations::compile_what_if(&chat, &asked.call, &host, cancel).await?;
        return Reply::new(&compared);
    }
    let detail = match asked.text {
        true => ExplainDetail::Text,
        false => ExplainDetail::Report,
    };
    Reply::new(&explain_conversation(&chat, &asked.call, &host, detail, cancel).await?)
}
