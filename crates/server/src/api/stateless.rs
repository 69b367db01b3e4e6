//! What needs no conversation: counting, rendering, converting.

use axum::extract::State;
use contexture::compile::Converter;
use contexture::ir::{Raw, parse_fragments};
use contexture::render::{self, Grouping};
use contexture::sessions::{SessionFormat, detect_format};
use contexture::tokens::{Encoding, TokenCount, counter_for};
use contexture::{EngineError, Format};
use serde::Deserialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::api::conventions::error_responses::WriteRefusals;
use crate::http::extractors::{Json, ReadAccess};
use crate::problem::{Code, Problem};
use crate::state::App;
use contexture_api::schema::{EncodingSchema, FormatSchema, FragmentSchema, RenderFormatSchema};
use contexture_api::{ConvertedDocument, CountsDocument, RenderedDocument};

pub(crate) fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(count_tokens))
        .routes(routes!(render_fragments))
        .routes(routes!(convert_document))
}

/// Texts whose tokens are counted.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct CountRequest {
    /// Texts to count, each by itself.
    texts: Vec<String>,
    /// Name of the encoding. Default: `o200k_base`.
    #[schema(value_type = Option<EncodingSchema>)]
    encoding: Option<String>,
    /// Name of a model whose encoding is used instead.
    model: Option<String>,
}

/// Counts the tokens of texts: exactly where the encoding is public, else an estimate with bounds.
#[utoipa::path(
    post, path = "/count", tag = "texts",
    request_body(content = CountRequest, example = json!({"texts": ["Where is my parcel?"], "model": "gpt-5.4"})),
    responses((status = 200, description = "Each, and their sum", body = CountsDocument), WriteRefusals)
)]
async fn count_tokens(
    State(app): State<App>,
    ReadAccess(_): ReadAccess,
    Json(request): Json<CountRequest>,
) -> Result<Json<CountsDocument>, Problem> {
    let encoding = requested_encoding(&app, &request)?;
    let counter = counter_for(encoding);
    let texts = request.texts.iter();
    let counts: Vec<TokenCount> = texts.map(|text| counter.count(text)).collect();
    Ok(Json(CountsDocument {
        total: counts.iter().copied().sum::<TokenCount>().into(),
        encoding: encoding.name().to_owned(),
        texts: counts.into_iter().map(Into::into).collect(),
    }))
}

/// Returns the encoding of the model, the one that is named, or the most common one.
fn requested_encoding(app: &App, request: &CountRequest) -> Result<Encoding, Problem> {
    match (&request.model, &request.encoding) {
        // A model has one encoding, so an `encoding` beside it is not looked at.
        (Some(model), _) => {
            let spec = app.engine().catalogue().resolve(model);
            Ok(spec.map_err(EngineError::from)?.encoding)
        }
        (None, None) => Ok(Encoding::O200kBase),
        (None, Some(name)) => name.parse().map_err(|_| {
            let known = Encoding::NAMES.join(", ");
            let detail = format!("unknown encoding {name:?}; known are {known}");
            Problem::new(Code::BadBody, detail)
        }),
    }
}

/// Fragments to be rendered.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct RenderRequest {
    /// Fragments to render, each `{"name", "data"}` or a serialised one.
    #[schema(value_type = Vec<FragmentSchema>)]
    fragments: Raw,
    /// Format of the text. Default: `xml`.
    #[schema(value_type = Option<RenderFormatSchema>)]
    format: Option<String>,
    /// Whether fragments of one name are grouped under its plural. Default: `off`.
    #[schema(inline)]
    group: Option<FragmentGrouping>,
}

#[derive(Clone, Copy, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
#[schema(as = Group)]
enum FragmentGrouping {
    /// Fragments are not grouped.
    Off,
    /// Fragments are grouped among the children of a fragment.
    Children,
    /// Fragments are grouped in the list itself, too.
    Everywhere,
}

/// Renders fragments to the text a model reads.
#[utoipa::path(
    post, path = "/render", tag = "texts",
    request_body(content = RenderRequest, example = json!({"fragments": [{"name": "role", "data": "You answer briefly."}], "format": "markdown"})),
    responses((status = 200, description = "The text", body = RenderedDocument), WriteRefusals)
)]
async fn render_fragments(
    ReadAccess(_): ReadAccess,
    Json(asked): Json<RenderRequest>,
) -> Result<Json<RenderedDocument>, Problem> {
    let grouping = match asked.group {
        None | Some(FragmentGrouping::Off) => Grouping::Off,
        Some(FragmentGrouping::Children) => Grouping::Children,
        Some(FragmentGrouping::Everywhere) => Grouping::Everywhere,
    };
    let fragments = parse_fragments(asked.fragments.get()).map_err(EngineError::from)?;
    let renderer = parse_render_format(asked.format.as_deref())?.renderer(grouping);
    let output = renderer.render(&fragments).map_err(EngineError::from)?;
    Ok(Json(RenderedDocument { output }))
}

/// Parses the name of a format of rendered text; `xml` if there is none.
pub(crate) fn parse_render_format(name: Option<&str>) -> Result<render::Format, Problem> {
    let name = name.unwrap_or("xml");
    name.parse().map_err(|_| {
        let known = render::Format::ALL.map(render::Format::as_str).join(", ");
        Problem::new(
            Code::BadBody,
            format!("unknown format {name:?}; known are {known}"),
        )
    })
}

/// A document to be converted.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct ConvertRequest {
    /// A request, a response or a list of messages.
    #[schema(value_type = serde_json::Value)]
    document: Raw,
    /// Format of the document. Default: detected.
    #[schema(value_type = Option<FormatSchema>)]
    from: Option<String>,
    /// Format to convert the document to.
    #[schema(value_type = FormatSchema)]
    to: String,
    /// Name of the model it is for, where models of one format differ.
    model: Option<String>,
    /// Whether to make the history one that a provider accepts. Default: no.
    repair: Option<bool>,
}

/// Converts a document. What the other format cannot express is listed, never dropped silently.
#[utoipa::path(
    post, path = "/convert", tag = "texts",
    request_body(content = ConvertRequest, example = json!({"document": {"model": "gpt-5.4", "messages": [{"role": "user", "content": "Where is my parcel?"}]}, "from": "openai-chat", "to": "anthropic"})),
    responses((status = 200, description = "The document in the other format", body = ConvertedDocument), WriteRefusals)
)]
async fn convert_document(
    State(app): State<App>,
    ReadAccess(_): ReadAccess,
    Json(asked): Json<ConvertRequest>,
) -> Result<Json<ConvertedDocument>, Problem> {
    let text = asked.document.get();
    let from = match &asked.from {
        Some(name) => parse_format(name)?,
        None => detect_wire_format(text)?,
    };
    let mut converter = Converter::new(app.engine().catalogue(), parse_format(&asked.to)?);
    if let Some(model) = &asked.model {
        converter = converter.for_model(model).map_err(EngineError::from)?;
    }
    if asked.repair == Some(true) {
        converter = converter.with_repairs();
    }
    let converted = converter.convert(from, text).map_err(EngineError::from)?;
    let document = ConvertedDocument::try_from(converted);
    Ok(Json(document.map_err(EngineError::from)?))
}

/// Parses the name of a format of conversations.
pub(crate) fn parse_format(name: &str) -> Result<Format, Problem> {
    name.parse().map_err(|_| {
        let known = Format::ALL.map(Format::as_str).join(", ");
        Problem::new(
            Code::BadBody,
            format!("unknown format {name:?}; known are {known}"),
        )
    })
}

/// Detects the format of a document by its structure.
pub(crate) fn detect_wire_format(text: &str) -> Result<Format, Problem> {
    match detect_format(text, "").map_err(EngineError::from)?.format {
        SessionFormat::Wire(format) => Ok(format),
        log => {
            let detail = format!(
                "a log of format {log}, expected a request, a response or a list of messages"
            );
            Err(Problem::new(Code::BadBody, detail))
        }
    }
}
