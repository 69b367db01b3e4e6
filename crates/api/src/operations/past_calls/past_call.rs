//! A past call with the parts of it that are asked for, and the difference of two requests.

use contexture::compile::{CacheDiff, DiffTarget, cache_diff};
use contexture::engine::{PastCall, PastRequest};
use contexture::ir::{CallId, Owner, Raw};
use contexture::sessions::{SessionFormat, detect_format};
use contexture::tokens::counter_for;
use contexture::{Engine, EngineError, Format};

use crate::documents::{
    CallAnswerDocument, CallDocument, CallReportDocument, CallRequestDocument, DiffDocument,
    DiffSideDocument, DifferenceDocument, RequestView,
};
use crate::operations::OperationError;
use crate::operations::request::parse_provider_format;

/// A part of a past call that is made again when it is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallPart {
    /// The request as it was sent.
    Sent,
    /// The request as its client sent it.
    Came,
    /// The report on the request, where it was compiled.
    Report,
    /// What the provider answered.
    Answer,
}

impl CallPart {
    /// All parts, in the order in which documents have them.
    pub const ALL: [Self; 4] = [Self::Sent, Self::Came, Self::Report, Self::Answer];

    /// Returns the lower-case word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Sent => "sent",
            Self::Came => "came",
            Self::Report => "report",
            Self::Answer => "answer",
        }
    }

    /// Returns the part of a word; `None` for an unknown one.
    #[must_use]
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|part| part.as_str() == word)
    }
}

/// Describes a call of the record, with some of its parts; `None` if the owner has none of this id.
///
/// # Errors
/// The engine's.
pub async fn describe_call(
    engine: &Engine,
    owner: &Owner,
    id: CallId,
    parts: &[CallPart],
) -> Result<Option<CallDocument>, OperationError> {
    let Some(call) = engine.past_call(owner, id).await? else {
        return Ok(None);
    };
    let mut document = CallDocument::with_band(call.record());
    let is_asked = |part: CallPart| parts.contains(&part);
    // Both come from one replay, which is the dear part of this.
    if is_asked(CallPart::Sent) || is_asked(CallPart::Report) {
        let sent = call.request_as_sent().await?;
        if is_asked(CallPart::Sent) {
            document.sent = Some(CallRequestDocument::new(sent.as_ref())?);
        }
        if is_asked(CallPart::Report) {
            document.report = Some(CallReportDocument::new(sent.as_ref())?);
        }
    }
    if is_asked(CallPart::Came) {
        let came = call.request_as_it_came().await?;
        document.came = Some(CallRequestDocument::new(came.as_ref())?);
    }
    if is_asked(CallPart::Answer) {
        let answer = call.answer().await?;
        document.answer = Some(CallAnswerDocument::new(answer.as_ref())?);
    }
    Ok(Some(document))
}

/// One of two requests, found.
struct DiffSide {
    json: String,
    format: Option<Format>,
    model: Option<String>,
    is_exact: bool,
}

/// Compares two requests as a provider's prompt cache does.
///
/// # Errors
/// A call is not known or cannot be shown, or a side is no request of the format.
pub async fn diff_requests(
    engine: &Engine,
    owner: &Owner,
    asked: &DiffDocument,
) -> Result<DifferenceDocument, OperationError> {
    let first = find_side(engine, owner, "first", &asked.first).await?;
    let second = find_side(engine, owner, "second", &asked.second).await?;
    let format = match &asked.format {
        Some(name) => parse_provider_format("format", name)?,
        // A text says nothing of its format, and is compared with a call mostly: the call's record decides.
        None => match second.format.or(first.format) {
            Some(format) => format,
            None => detect_request(&second.json)?,
        },
    };
    let named = asked.model.clone().or_else(|| second.model.clone());
    let found = compare_requests(
        engine,
        format,
        named.as_deref(),
        [&first.json, &second.json],
    )?;
    Ok(DifferenceDocument::new(
        &found,
        first.is_exact && second.is_exact,
    ))
}

/// Compares two requests of one format.
///
/// # Errors
/// One of them is no request of the format.
pub(crate) fn compare_requests(
    engine: &Engine,
    format: Format,
    model: Option<&str>,
    [first, second]: [&str; 2],
) -> Result<CacheDiff, OperationError> {
    let catalogue = engine.catalogue();
    // Without a model there are no prices, and every prefix counts as cached.
    let model = model.and_then(|name| catalogue.resolve(name).ok());
    let target = DiffTarget {
        format,
        model,
        counter: counter_for(
            model.map_or(contexture::tokens::Encoding::O200kBase, |model| {
                model.encoding
            }),
        ),
    };
    cache_diff(first, second, &target).map_err(|error| {
        let why = std::error::Error::source(&error).map(|why| format!(": {why}"));
        let detail = format!("{error}{}", why.unwrap_or_default());
        OperationError::member("format", format!("{format}: {detail}"))
    })
}

async fn find_side(
    engine: &Engine,
    owner: &Owner,
    member: &str,
    side: &DiffSideDocument,
) -> Result<DiffSide, OperationError> {
    match (&side.call, &side.request) {
        (None, Some(request)) => Ok(DiffSide {
            json: request.get().to_owned(),
            format: None,
            model: named_model(request),
            is_exact: true,
        }),
        (Some(call), None) => find_call_side(engine, owner, member, call, side.view).await,
        _ => {
            let detail = "expected a `call`, with `as` if need be, or a `request`";
            Err(OperationError::member(member, detail))
        }
    }
}

/// Returns the model that a request names.
fn named_model(request: &Raw) -> Option<String> {
    let fields = request.fields()?;
    serde_json::from_str(fields.get(&["model"])?.get()).ok()
}

async fn find_call_side(
    engine: &Engine,
    owner: &Owner,
    member: &str,
    call: &str,
    view: Option<RequestView>,
) -> Result<DiffSide, OperationError> {
    let member = format!("{member}.call");
    let unknown = || OperationError::member(&member, format!("there is no call {call:?}"));
    let id = parse_call_id(call).ok_or_else(unknown)?;
    let past = engine.past_call(owner, id).await?.ok_or_else(unknown)?;
    let request = load_request(&past, view.unwrap_or_default()).await?;
    let request = request.map_err(|why| OperationError::member(&member, why))?;
    let model = &past.record().names.model;
    Ok(DiffSide {
        format: Some(request.format),
        model: (!model.is_empty()).then(|| model.clone()),
        is_exact: request.is_exact,
        json: request.json,
    })
}

/// Returns a request of a call; else why there is none.
async fn load_request(
    past: &PastCall,
    view: RequestView,
) -> Result<Result<PastRequest, String>, EngineError> {
    let request = match view {
        RequestView::Sent => past.request_as_sent().await?,
        RequestView::Came => past.request_as_it_came().await?,
    };
    Ok(request.map_err(|why| why.to_string()))
}

/// Parses the id of a call as clients see it, `req_` in front or not.
#[must_use]
pub fn parse_call_id(text: &str) -> Option<CallId> {
    text.strip_prefix("req_").unwrap_or(text).parse().ok()
}

fn detect_request(text: &str) -> Result<Format, OperationError> {
    match detect_format(text, "").map(|found| found.format) {
        Ok(SessionFormat::Wire(format)) if Format::PROVIDERS.contains(&format) => Ok(format),
        _ => {
            let detail = "is missing: the requests do not say whose they are";
            Err(OperationError::member("format", detail))
        }
    }
}
