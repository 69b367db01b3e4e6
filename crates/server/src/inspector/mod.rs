//! The inspector at `/ui`: pages for people, with what the API answers to them.
//!
//! Not here: what pages look like (`contexture-inspector`), and what they show (`api`).

mod own_api;
mod page_caller;
mod respond;

use axum::Router;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, Path, State};
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, ORIGIN, SET_COOKIE};
use axum::http::{HeaderMap, HeaderValue, StatusCode, Uri};
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::{get, post};
use contexture_inspector::{
    ApiError, FormRequest, PageRequest, Parameters, Reply, failure_page, find_asset, post_form,
    show_page, sign_in_page,
};

use crate::access::page_sessions::{CookieTransport, SESSION_LENGTH};
use crate::api::LAST_EVENT;
use crate::config::InspectorAccess;
use crate::problem::Problem;
use crate::state::App;
use own_api::OwnApi;
use page_caller::{
    COOKIE_NAME, Looker, check_form, check_own_page, find_looker, inspector_access, session_cookie,
};
use respond::{html_response, with_page_headers, write_reply};

/// Where pages are.
const ROOT: &str = "/ui";

/// Longest form: the longest field is a reason for a denial.
const FORM_BYTES: usize = 64 << 10;

/// What handlers share.
#[derive(Clone)]
struct Pages {
    app: App,
    api: Router,
}

/// Returns the routes of the pages; none where the configuration has switched them off.
pub(crate) fn router(app: &App, api: Router) -> Router<App> {
    if inspector_access(app) == InspectorAccess::Off {
        return Router::new();
    }
    let pages = Pages {
        app: app.clone(),
        api,
    };
    Router::new()
        .route("/ui", get(async || Redirect::permanent("/ui/")))
        .route("/ui/", get(show))
        .route("/ui/{*page}", get(show).post(change))
        .route("/ui/c/{conversation}/events", get(follow))
        .route("/ui/assets/{name}", get(load_asset))
        .route("/ui/sign-in", post(sign_in))
        .route("/ui/sign-out", post(sign_out))
        .layer(DefaultBodyLimit::max(FORM_BYTES))
        .with_state(pages)
}

/// Why a page is not shown.
enum PageRefusal {
    /// A key is needed.
    SignIn {
        /// The page that is wanted once there is one.
        wanted: String,
        /// What to say of a session that has ended.
        ended: Option<&'static str>,
    },
    Problem(Problem),
}

impl From<Problem> for PageRefusal {
    fn from(problem: Problem) -> Self {
        Self::Problem(problem)
    }
}

impl IntoResponse for PageRefusal {
    fn into_response(self) -> Response {
        match self {
            Self::SignIn { wanted, ended } => {
                html_response(StatusCode::UNAUTHORIZED, sign_in_page(&wanted, ended))
            }
            Self::Problem(problem) => fail(&problem),
        }
    }
}

/// Returns who looks.
///
/// # Errors
/// A key is needed, with which `wanted` is shown; or what [`find_looker`] refuses.
fn require_looker(app: &App, headers: &HeaderMap, wanted: &str) -> Result<Looker, PageRefusal> {
    find_looker(app, headers)?.ok_or_else(|| PageRefusal::SignIn {
        wanted: wanted.to_owned(),
        // Who has a cookie was signed in, and wonders.
        ended: session_cookie(headers).map(|_| SESSION_ENDED),
    })
}

/// Why somebody has to sign in again.
const SESSION_ENDED: &str = "You have been signed out: a session ends after twelve hours without use, after seven days, and when \
    the server is restarted. Sign in to go on where you were.";

/// Lets the cookie of a session last as long as the session, which was used just now.
fn renew_cookie(mut response: Response, headers: &HeaderMap, looker: &Looker) -> Response {
    if let (Some(transport), Some(cookie)) = (looker.renewal, session_cookie(headers))
        && let Ok(value) = HeaderValue::try_from(format_cookie(cookie, transport))
    {
        response.headers_mut().insert(SET_COOKIE, value);
    }
    response
}

fn format_cookie(session: &str, transport: CookieTransport) -> String {
    let secure = match transport {
        CookieTransport::HttpsOnly => "; Secure",
        CookieTransport::Any => "",
    };
    let seconds = SESSION_LENGTH.as_secs();
    format!(
        "{COOKIE_NAME}={session}; Path={ROOT}; HttpOnly; SameSite=Strict; Max-Age={seconds}{secure}"
    )
}

/// Shows a page, or asks for a key.
async fn show(
    State(pages): State<Pages>,
    uri: Uri,
    headers: HeaderMap,
) -> Result<Response, PageRefusal> {
    let app = &pages.app;
    let wanted = uri.path_and_query().map_or(ROOT, |wanted| wanted.as_str());
    let looker = require_looker(app, &headers, wanted)?;
    let permit = app.rate_limiter().acquire_permit(&looker.principal.owner)?;
    let request = PageRequest {
        path: uri.path().strip_prefix(ROOT).unwrap_or_default(),
        query: uri.query().unwrap_or_default(),
        viewer: &looker.viewer,
    };
    let reply = show_page(&OwnApi::new(&pages.api, &looker.principal), request).await;
    let response = renew_cookie(write_reply(reply), &headers, &looker);
    Ok(permit.attach_to_response(with_principal(response, &looker)))
}

/// Tells a page what happens to its conversation, as it happens.
async fn follow(
    State(pages): State<Pages>,
    uri: Uri,
    headers: HeaderMap,
) -> Result<Response, PageRefusal> {
    let app = &pages.app;
    let looker = require_looker(app, &headers, "/ui/")?;
    // Held as long as the stream is open, as for those who follow the API.
    let permit = app.rate_limiter().acquire_permit(&looker.principal.owner)?;
    let steps = uri.path().strip_prefix("/ui/c/").unwrap_or_default();
    let path = match uri.query() {
        Some(query) => format!("/api/v1/conversations/{steps}?{query}"),
        None => format!("/api/v1/conversations/{steps}"),
    };
    let api = OwnApi::new(&pages.api, &looker.principal);
    Ok(match api.follow(&path, headers.get(LAST_EVENT)).await {
        Ok(events) => {
            // A page that is left open asks for nothing else.
            let events = renew_cookie(with_page_headers(events), &headers, &looker);
            permit.attach_to_response(events)
        }
        Err(error) => write_reply(Reply::Page {
            status: error.status,
            html: failure_page(None, &error),
        }),
    })
}

/// Does what the form of a page asks for.
async fn change(
    State(pages): State<Pages>,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Response, PageRefusal> {
    let app = &pages.app;
    let looker = require_looker(app, &headers, "/ui/")?;
    let form = Parameters::parse(&String::from_utf8_lossy(&body));
    if let Err(problem) = check_form(app, &headers, &looker, &form) {
        return Ok(with_principal(fail(&problem), &looker));
    }
    let permit = app.rate_limiter().acquire_permit(&looker.principal.owner)?;
    let request = FormRequest {
        path: uri.path().strip_prefix(ROOT).unwrap_or_default(),
        form: &form,
        viewer: &looker.viewer,
    };
    let reply = post_form(&OwnApi::new(&pages.api, &looker.principal), request).await;
    let response = renew_cookie(write_reply(reply), &headers, &looker);
    Ok(permit.attach_to_response(with_principal(response, &looker)))
}

/// Leaves in an answer who got it, for the audit log.
fn with_principal(mut response: Response, looker: &Looker) -> Response {
    response.extensions_mut().insert(looker.principal.clone());
    response
}

async fn load_asset(Path(name): Path<String>) -> Response {
    let Some(asset) = find_asset(&name) else {
        return with_page_headers(StatusCode::NOT_FOUND.into_response());
    };
    // The name has the hash of the content, so it never changes under this name.
    let headers = [
        (CONTENT_TYPE, asset.media_type),
        (CACHE_CONTROL, "public, max-age=31536000, immutable"),
    ];
    with_page_headers((headers, asset.text.as_str()).into_response())
}

/// Exchanges a key for a cookie.
async fn sign_in(
    State(pages): State<Pages>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Response, PageRefusal> {
    let app = &pages.app;
    // A foreign page could otherwise make a browser look at somebody else's conversations.
    check_own_page(app, &headers)?;
    let form = Parameters::parse(&String::from_utf8_lossy(&body));
    let next = form
        .get("next")
        // Only to a page of this server: `//host/` would lead elsewhere.
        .filter(|next| next.starts_with("/ui/") && !next.contains(['\\', '\r', '\n']))
        .unwrap_or("/ui/");
    let key = form.get("key");
    let principal = key.and_then(|key| app.api_keys().principal_for_key(key.trim()).cloned());
    let Some(principal) = principal else {
        let refused = "This key is not known. It is the text that `contexture keys new` printed.";
        let page = sign_in_page(next, Some(refused));
        return Ok(html_response(StatusCode::UNAUTHORIZED, page));
    };
    let is_secure = headers
        .get(ORIGIN)
        .is_some_and(|origin| origin.as_bytes().starts_with(b"https:"));
    let transport = match is_secure {
        true => CookieTransport::HttpsOnly,
        false => CookieTransport::Any,
    };
    let session = app.page_sessions().open(principal, transport);
    let session = session.map_err(|error| Problem::internal_error("no_randomness", &error))?;
    let cookie = format_cookie(&session.cookie, transport);
    let redirect = ([(SET_COOKIE, cookie)], Redirect::to(next));
    Ok(with_page_headers(redirect.into_response()))
}

async fn sign_out(State(pages): State<Pages>, headers: HeaderMap) -> Result<Response, PageRefusal> {
    check_own_page(&pages.app, &headers)?;
    if let Some(cookie) = session_cookie(&headers) {
        pages.app.page_sessions().close(cookie);
    }
    let cookie = format!("{COOKIE_NAME}=; Path={ROOT}; HttpOnly; SameSite=Strict; Max-Age=0");
    let redirect = ([(SET_COOKIE, cookie)], Redirect::to("/ui/"));
    Ok(with_page_headers(redirect.into_response()))
}

/// The page of a refusal of the server itself.
fn fail(problem: &Problem) -> Response {
    let error = ApiError {
        status: problem.status().as_u16(),
        code: problem.code().as_str().to_owned(),
        detail: problem.detail().to_owned(),
    };
    html_response(problem.status(), failure_page(None, &error))
}
