//! A call for a history that its caller keeps: document and plan in, request and plan out. Nothing is stored.

use contexture::compile::{Band, Content, Contribution, DocumentPlan, Scratch};
use contexture::ir::{Cancel, Item, Raw, Transcript};
use contexture::wire::ui::lift_message;
use contexture::{Catalogue, Compiler, EngineError};

use crate::documents::{CompileDocument, CompiledDocument};
use crate::operations::message_input::{MessageRun, read_messages};
use crate::operations::request::ReadRequest;
use crate::operations::{Host, OperationError};

/// Compiles the history of a document. The scratch memory is that of the documents before, where there is one: only what is new of a
/// history is then counted and written.
///
/// # Errors
/// A member that cannot be followed, or the compiler's.
pub fn compile_document(
    catalogue: &Catalogue,
    asked: &CompileDocument,
    host: &Host<'_>,
    cancel: &Cancel,
    scratch: &mut Scratch,
) -> Result<CompiledDocument, OperationError> {
    let messages = asked.messages.as_deref().ok_or_else(|| {
        let detail = "is missing: the history to compile";
        OperationError::member("messages", detail)
    })?;
    refuse_stored_members(asked)?;
    let mut history = Transcript::default();
    for run in read_messages(messages, Some(cancel))? {
        add_run(&mut history, run);
    }
    let request = ReadRequest::read(asked, host, catalogue, None)?;
    let target = request.target(history.items.iter())?;
    let renderer = request.renderer()?;
    let spec = target.model_spec(catalogue).map_err(EngineError::from)?;
    let mut compiler = Compiler::new(catalogue).with_cancel(cancel);
    if !history.instructions.is_empty() {
        let content = Content::Instructions(history.instructions);
        compiler =
            compiler.with_contribution(Contribution::new("instructions", Band::System, content));
    }
    for contribution in request.contributions(&spec.capabilities, &renderer)? {
        compiler = compiler.with_contribution(contribution);
    }
    if let Some(policy) = request.policy.as_ref()
        && policy.compact.is_some()
    {
        let hints = policy.tools.tool_hints();
        compiler = compiler.with_manifests().with_tool_hints(hints);
    }
    let mut plan = asked
        .plan
        .as_ref()
        .map_or_else(DocumentPlan::default, |plan| {
            DocumentPlan::parse(plan.get())
        });
    if let Some(tokens) = asked.reported_input_tokens {
        plan.learn_from_usage(tokens);
    }
    let (compiled, plan) = compiler.compile_next(&history.items, &target, &plan, scratch)?;
    Ok(CompiledDocument {
        call: None,
        payload: Raw::parse(compiled.payload.to_json()).map_err(EngineError::from)?,
        report: Raw::from_value(&compiled.report).map_err(EngineError::from)?,
        plan: Some(Raw::parse(plan.to_json()).map_err(EngineError::from)?),
        own_tools: Vec::new(),
    })
}

fn add_run(history: &mut Transcript, run: MessageRun) {
    match run {
        MessageRun::Ui(messages) => {
            let items = messages
                .iter()
                .flat_map(|message| lift_message(message).items);
            history.items.extend(items);
        }
        MessageRun::Provider(transcript, _) => {
            // Instructions lead; in the middle of a history they are items, as in the request they came from.
            match history.items.is_empty() {
                true => history.instructions.extend(transcript.instructions),
                false => history
                    .items
                    .extend(transcript.instructions.into_iter().map(Item::from)),
            }
            history.items.extend(transcript.items);
        }
    }
}

/// Refuses what needs a store: notes and skills have a place and tools there.
fn refuse_stored_members(asked: &CompileDocument) -> Result<(), OperationError> {
    if !asked.skills.is_empty() {
        let detail =
            "skills are read by a tool of a stored conversation; say what they list in `system`";
        return Err(OperationError::member("skills", detail));
    }
    Ok(())
}
