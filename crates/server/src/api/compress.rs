//! `POST /v1/compress`: the socket that gateways have for compressors. Messages in, fewer tokens out.
//!
//! Nothing is stored and no model is asked. Long outputs of tools are shown as previews; what would not become shorter
//! stays as it came, and so does everything that cannot be read.

use axum::Extension;
use axum::extract::State;
use contexture::Compiler;
use contexture::compile::{
    Band, Clear, Content, Contribution, HistoryPolicy, PreviewPolicy, Previewing, Target,
};
use contexture::ir::{Cancel, Raw};
use contexture::wire::lift_unless_cancelled;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::api::conventions::error_responses::WriteRefusals;
use crate::api::stateless::detect_wire_format;
use crate::http::extractors::{Json, ReadAccess};
use crate::problem::{Code, Problem};
use crate::state::App;

/// Model whose tokens are counted if the request names none.
const DEFAULT_MODEL: &str = "gpt-5.4";
/// Window size in tokens from which nothing needs to be removed.
const UNLIMITED_WINDOW: u64 = 1 << 40;

pub(crate) fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(compress_messages))
}

/// Messages to be shortened. Other fields are ignored.
#[derive(Deserialize, ToSchema)]
struct CompressRequest {
    /// Messages in the format of Chat Completions or of Messages.
    #[schema(value_type = Vec<BTreeMap<String, serde_json::Value>>)]
    messages: Raw,
    /// Name of the model they are for. Default: `gpt-5.4`.
    model: Option<String>,
}

/// The shortened messages, with their token counts.
#[derive(Serialize, ToSchema)]
struct CompressedDocument {
    /// Messages in the format they came in.
    #[schema(value_type = Vec<serde_json::Value>)]
    messages: Raw,
    /// Tokens of the messages as received.
    tokens_before: u64,
    /// Tokens of the messages as returned.
    tokens_after: u64,
    /// Tokens saved: `tokens_before` less `tokens_after`.
    tokens_saved: u64,
    /// Ratio of `tokens_after` to `tokens_before`; 1 if nothing was counted.
    compression_ratio: f64,
    /// Names of the applied changes: `preview`, or none.
    transforms_applied: Vec<&'static str>,
}

/// Makes messages shorter, never longer. The same messages give the same bytes.
#[utoipa::path(
    post, path = "/v1/compress", tag = "texts",
    request_body(content = CompressRequest, example = json!({"model": "gpt-5.4", "messages": [{"role": "user", "content": "Where is my parcel?"}]})),
    responses((status = 200, description = "The messages", body = CompressedDocument), WriteRefusals)
)]
async fn compress_messages(
    State(app): State<App>,
    ReadAccess(_): ReadAccess,
    Extension(cancel): Extension<Cancel>,
    Json(asked): Json<CompressRequest>,
) -> Result<Json<CompressedDocument>, Problem> {
    if !asked.messages.get().trim_start().starts_with('[') {
        return Err(Problem::new(Code::BadBody, "`messages`: expected a list"));
    }
    let model = asked.model.as_deref().unwrap_or(DEFAULT_MODEL);
    let compiler = Compiler::new(app.engine().catalogue()).with_cancel(&cancel);
    let shorter = shorten_messages(compiler, model, &asked.messages, &cancel);
    let (before, after, messages) = match shorter {
        Some((before, after, Some(messages))) => (before, after, Some(messages)),
        Some((before, ..)) => (before, before, None),
        None => (0, 0, None),
    };
    Ok(Json(CompressedDocument {
        tokens_before: before,
        tokens_after: after,
        tokens_saved: before - after,
        compression_ratio: if before == 0 {
            1.0
        } else {
            after as f64 / before as f64
        },
        transforms_applied: messages.iter().map(|_| "preview").collect(),
        messages: messages.unwrap_or(asked.messages),
    }))
}

/// Member of a request that holds the history, in the formats that can be shortened here.
const MESSAGES: &str = "messages";

/// Returns the tokens before and after, and the messages if they became shorter; `None` for what cannot be read.
fn shorten_messages(
    mut compiler: Compiler<'_>,
    model: &str,
    messages: &Raw,
    cancel: &Cancel,
) -> Option<(u64, u64, Option<Raw>)> {
    let format = detect_wire_format(messages.get()).ok()?;
    // Callers send and get back a list of messages.
    let members = format.spec().members();
    if members.is_none_or(|members| members.history != MESSAGES) {
        return None;
    }
    let lifted = lift_unless_cancelled(format, messages.get(), Some(cancel));
    let transcript = lifted.ok()?.transcript;
    let whole = HistoryPolicy {
        clear: Clear::Never,
        preview: None,
        ..HistoryPolicy::for_one_call()
    };
    let previewed = HistoryPolicy {
        preview: Some(PreviewPolicy {
            when: Previewing::Always,
            ..PreviewPolicy::default()
        }),
        ..whole.clone()
    };
    let target = Target::new(format, model)
        .window(UNLIMITED_WINDOW)
        .marker_policy(None);
    if !transcript.instructions.is_empty() {
        let content = Content::Instructions(transcript.instructions.clone());
        compiler =
            compiler.with_contribution(Contribution::new("instructions", Band::System, content));
    }
    let compile = |history| {
        let target = target.clone().history(history);
        compiler.compile(&transcript.items, &target).ok()
    };
    // Of the first only the count is kept: both at once would take twice the memory.
    let before_tokens = compile(whole)?.report.totals.tokens;
    let after = compile(previewed)?;
    let after_tokens = after.report.totals.tokens;
    if after_tokens >= before_tokens {
        return Some((before_tokens, before_tokens, None));
    }
    let payload = Raw::parse(after.payload.to_json()).ok()?;
    let messages = payload.fields()?.get(&[MESSAGES])?.get().to_owned();
    Some((
        before_tokens,
        after_tokens,
        Some(Raw::parse(messages).ok()?),
    ))
}
