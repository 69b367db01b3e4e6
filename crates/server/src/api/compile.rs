//! What a model sees of a conversation: resolved for a program, or compiled into a provider's request.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use contexture::compile::{
    Band, Content, Contribution, HistoryPolicy, PreviewPolicy, Previewing, Report, Target,
    TextSize, Width, Window, render_html, render_table,
};
use contexture::ir::{Cancel, Raw, parse_fragments};
use contexture::render::{Grouping, Renderer};
use contexture::{CompileOptions, CompiledCall, Conversation, EngineError, Format};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::api::conventions::conversation_path::{BranchParams, open_conversation};
use crate::api::conventions::error_responses::WriteRefusals;
use crate::api::stateless::{parse_format, parse_render_format};
use crate::http::body_faults::member_problem;
use crate::http::extractors::{Json, Path, Query, ReadAccess};
use crate::problem::Problem;
use crate::state::App;
use contexture_api::schema::{
    FragmentSchema, ProviderFormatSchema, RenderFormatSchema, UiMessageSchema,
};

pub(crate) fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(resolve_conversation))
        .routes(routes!(compile_conversation))
        .routes(routes!(explain_compile))
}

/// Options for resolving a branch.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct ResolveRequest {
    /// Format of the system prompt. Default: `xml`.
    #[schema(value_type = Option<RenderFormatSchema>)]
    format: Option<String>,
    /// Fragments to use instead of those that the path carries.
    #[schema(value_type = Option<Vec<FragmentSchema>>)]
    fragments: Option<Raw>,
}

/// The input of a model, as text and messages.
#[derive(Serialize, ToSchema)]
struct ResolvedDocument {
    /// Text of the system prompt, which comes before the messages.
    system_prompt: String,
    /// Messages of the branch, as `UIMessage` objects of the AI SDK.
    #[schema(value_type = Vec<UiMessageSchema>)]
    messages: Vec<contexture::ir::UiMessage>,
}

/// Returns the system prompt and the messages of a branch.
#[utoipa::path(
    post, path = "/conversations/{conversation}/resolve", tag = "compile",
    request_body(content = ResolveRequest, example = json!({"format": "markdown"})),
    params(("conversation" = String, Path, description = "Its id"), BranchParams),
    responses((status = 200, description = "Both", body = ResolvedDocument), WriteRefusals)
)]
async fn resolve_conversation(
    State(app): State<App>,
    ReadAccess(owner): ReadAccess,
    Path(id): Path<String>,
    Query(on): Query<BranchParams>,
    Json(asked): Json<ResolveRequest>,
) -> Result<Json<ResolvedDocument>, Problem> {
    let chat = open_conversation(&app, &owner, &id, on.branch.as_deref()).await?;
    if let Some(fragments) = &asked.fragments {
        chat.set(parse_fragments(fragments.get()).map_err(EngineError::from)?)?;
    }
    chat.set_renderer(parse_renderer(asked.format.as_deref())?);
    let resolved = chat.resolve().await?;
    Ok(Json(ResolvedDocument {
        system_prompt: resolved.system_prompt,
        messages: resolved.messages,
    }))
}

/// The model to compile for, and the limits of its request.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct CompileRequest {
    /// Format of the request. Default: that of the model's provider.
    #[schema(value_type = Option<ProviderFormatSchema>)]
    to: Option<String>,
    /// Name of the model that is called. Default: the model of the newest answer among the branch's last 256 items.
    model: Option<String>,
    /// Size of the context window in tokens. Default: the model's.
    window: Option<u64>,
    /// Tokens of the window that are kept free for the answer.
    reserve: Option<u64>,
    /// Top-level fields to add to the request, verbatim.
    #[schema(value_type = Option<BTreeMap<String, serde_json::Value>>)]
    params: Option<BTreeMap<String, Raw>>,
    /// Fragments to add to the system prompt.
    #[schema(value_type = Option<Vec<FragmentSchema>>)]
    system: Option<Raw>,
    /// Format in which `system` and the fragments of the path are rendered. Default: `xml`.
    #[schema(value_type = Option<RenderFormatSchema>)]
    renderer: Option<String>,
    /// Maximum number of turns to send, newest first.
    turns: Option<u32>,
    /// Number of characters above which an output is shown as a preview. Default: where it pays.
    preview: Option<u64>,
}

/// A compiled call: the request, and the report on it.
#[derive(Serialize, ToSchema)]
struct CompiledDocument {
    /// Request for the provider, to be sent as it is.
    #[schema(value_type = BTreeMap<String, serde_json::Value>)]
    payload: Raw,
    /// Report on what the request contains and leaves out; its schema is docs/schema/report.schema.json.
    #[schema(value_type = BTreeMap<String, serde_json::Value>)]
    report: Raw,
}

/// Compiles a branch into a provider's request, under a token budget. What cannot fit is refused, with what is required.
#[utoipa::path(
    post, path = "/conversations/{conversation}/compile", tag = "compile",
    request_body(content = CompileRequest, example = json!({"to": "anthropic", "model": "claude-sonnet-5", "window": 100000, "reserve": 4000})),
    params(("conversation" = String, Path, description = "Its id"), BranchParams),
    responses((status = 200, description = "The request, and what is in it", body = CompiledDocument), WriteRefusals)
)]
async fn compile_conversation(
    State(app): State<App>,
    ReadAccess(owner): ReadAccess,
    Path(id): Path<String>,
    Query(on): Query<BranchParams>,
    Extension(cancel): Extension<Cancel>,
    Json(asked): Json<CompileRequest>,
) -> Result<Json<CompiledDocument>, Problem> {
    let chat = open_conversation(&app, &owner, &id, on.branch.as_deref()).await?;
    let call = compile_call(&chat, &asked, &cancel).await?;
    Ok(Json(CompiledDocument {
        payload: Raw::parse(call.payload.to_json()).map_err(EngineError::from)?,
        report: Raw::from_value(&call.report).map_err(EngineError::from)?,
    }))
}

/// The report on a compile, in three forms.
#[derive(Serialize, ToSchema)]
struct ExplainedDocument {
    /// Report on the request, by the schema docs/schema/report.schema.json.
    #[schema(value_type = BTreeMap<String, serde_json::Value>)]
    report: Raw,
    /// Same report as a table of text.
    table: String,
    /// Same report as an HTML page with a picture of the window.
    html: String,
}

/// Explains what a compile sends and what it leaves out, without the request itself.
#[utoipa::path(
    post, path = "/conversations/{conversation}/explain", tag = "compile",
    request_body(content = CompileRequest, example = json!({"to": "openai-chat", "model": "gpt-5.4", "turns": 20})),
    params(("conversation" = String, Path, description = "Its id"), BranchParams),
    responses((status = 200, description = "The report in three forms", body = ExplainedDocument), WriteRefusals)
)]
async fn explain_compile(
    State(app): State<App>,
    ReadAccess(owner): ReadAccess,
    Path(id): Path<String>,
    Query(on): Query<BranchParams>,
    Extension(cancel): Extension<Cancel>,
    Json(asked): Json<CompileRequest>,
) -> Result<Json<ExplainedDocument>, Problem> {
    let chat = open_conversation(&app, &owner, &id, on.branch.as_deref()).await?;
    let report: Report = compile_call(&chat, &asked, &cancel).await?.report;
    Ok(Json(ExplainedDocument {
        table: render_table(&report, Width(120)),
        html: render_html(&report, &id),
        report: Raw::from_value(&report).map_err(EngineError::from)?,
    }))
}

async fn compile_call(
    chat: &Conversation,
    asked: &CompileRequest,
    cancel: &Cancel,
) -> Result<CompiledCall, Problem> {
    let mut target = default_target(chat, asked.to.as_deref(), asked.model.as_deref()).await?;
    // Our own document formats can be converted to, but no model takes them as a request.
    if !Format::PROVIDERS.contains(&target.format()) {
        let known = Format::PROVIDERS.map(Format::as_str).join(", ");
        let detail = format!("no model reads {}; expected {known}", target.format());
        return Err(member_problem("to", &detail));
    }
    if let Some(window) = asked.window {
        target = target.window(window);
    }
    if let Some(reserve) = asked.reserve {
        target = target.reserve(reserve);
    }
    for (name, value) in asked.params.iter().flatten() {
        target = target.param(name, value.clone());
    }
    let mut history = HistoryPolicy::default();
    if let Some(turns) = asked.turns {
        history.window = Window::Turns(turns);
    }
    if let Some(characters) = asked.preview {
        history.preview = Some(PreviewPolicy {
            threshold: TextSize::Characters(characters),
            when: Previewing::Always,
            ..PreviewPolicy::default()
        });
    }
    let renderer = parse_renderer(asked.renderer.as_deref())?;
    chat.set_renderer(Arc::clone(&renderer));
    let contributions = system_contributions(asked, renderer)?;
    let options = CompileOptions {
        contributions: &contributions,
        cancel: Some(cancel),
        ..CompileOptions::default()
    };
    Ok(chat.compile_with(&target.history(history), options).await?)
}

/// Returns a target of this format and model. What is not said follows from the newest answer of the branch.
///
/// # Errors
/// `bad_body` for a format that is not known, or without a model where no answer names one.
pub(crate) async fn default_target(
    chat: &Conversation,
    format: Option<&str>,
    model: Option<&str>,
) -> Result<Target, Problem> {
    let model = match model {
        Some(model) => model.to_owned(),
        None => chat.last_model().await?.ok_or_else(|| {
            let detail = "is missing, and no answer among the last items of this branch names one";
            member_problem("model", detail)
        })?,
    };
    let format = match format {
        Some(name) => parse_format(name)?,
        // A model that is not known is refused where its window is needed, with its own error.
        None => {
            let spec = chat.engine().catalogue().resolve(&model);
            Format::of_provider(spec.map_or("", |spec| spec.provider.as_str()))
        }
    };
    Ok(Target::new(format, model))
}

fn parse_renderer(format: Option<&str>) -> Result<Arc<dyn Renderer>, Problem> {
    Ok(Arc::from(
        parse_render_format(format)?.renderer(Grouping::Off),
    ))
}

/// Returns the fragments as contributions to the system prompt.
fn system_contributions(
    asked: &CompileRequest,
    renderer: Arc<dyn Renderer>,
) -> Result<Vec<Contribution>, Problem> {
    let Some(system) = &asked.system else {
        return Ok(Vec::new());
    };
    let fragments = parse_fragments(system.get()).map_err(EngineError::from)?;
    // An empty contribution would still appear in the report.
    if fragments.is_empty() {
        return Ok(Vec::new());
    }
    let content = Content::Fragments {
        fragments,
        renderer,
    };
    Ok(vec![Contribution::new("fragments", Band::System, content)])
}
