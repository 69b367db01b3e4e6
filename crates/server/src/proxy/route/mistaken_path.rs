//! Paths of clients whose base URL has the version of the paths twice, or not at all: `/v1/v1/messages`, `/chat/completions`.
//!
//! Of a bare 404 some clients show the status alone. So the answer has the shape of the provider's errors, and says what the
//! base URL should be.

use axum::http::StatusCode;
use contexture::Format;
use contexture::models_http::decode_request_path;

use crate::config::UpstreamFormat;
use crate::proxy::refusal::ProxyRefusal;
use crate::proxy::route::target::RouteTarget;

/// What clients of OpenAI ask for beside calls of models.
const OPENAI_RESOURCES: [&str; 6] = [
    "models",
    "embeddings",
    "completions",
    "files",
    "batches",
    "moderations",
];

/// Returns the refusal of a path that leads to no upstream, where it is known what was meant; and the format of its client.
pub(crate) fn refuse_without_version(path: &str) -> Option<(UpstreamFormat, ProxyRefusal)> {
    let plain = decode_request_path(path).ok()?;
    let meant = Format::PROVIDERS.into_iter().find_map(|format| {
        let profile = format.spec().http()?;
        let meant = profile.with_one_version(&plain)?;
        Some((UpstreamFormat::from_word(profile.upstream)?, meant))
    });
    let first = plain.split('/').nth(1);
    let resource = || {
        first.filter(|first| OPENAI_RESOURCES.contains(first))?;
        let upstream = Format::COMPATIBLE.spec().http()?.upstream;
        Some((UpstreamFormat::from_word(upstream)?, format!("/v1{plain}")))
    };
    let (format, meant) = meant.or_else(resource)?;
    Some((format, refusal_for(&meant)))
}

/// Checks the path that an upstream would get.
///
/// # Errors
/// The version stands in it twice.
pub(crate) fn check_version(target: &RouteTarget<'_>) -> Result<(), ProxyRefusal> {
    let path = decode_request_path(target.path)?;
    // Of all formats: a base URL of one provider may stand in the settings of another one's client.
    let formats = Format::PROVIDERS.into_iter();
    let mut profiles = formats.filter_map(|format| format.spec().http());
    // Without any version it may be right: some hosts have none.
    let has_version = |meant: &String| path.len() > meant.len();
    let meant = profiles.find_map(|profile| profile.with_one_version(&path));
    match meant.filter(has_version) {
        None => Ok(()),
        Some(meant) => Err(refusal_for(&meant)),
    }
}

fn refusal_for(meant: &str) -> ProxyRefusal {
    let message = format!(
        "there is nothing at this path: did you mean {meant}? The client adds to its base URL what it thinks is missing: \
         for OpenAI's clients it ends in /v1, for those of Anthropic and Gemini it does not"
    );
    ProxyRefusal::new(StatusCode::NOT_FOUND, "unknown_path", message)
}
