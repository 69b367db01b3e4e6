//! Who looks at pages, and whether a form may change something.

use axum::http::header::COOKIE;
use axum::http::{HeaderMap, HeaderValue};
use contexture_inspector::{Parameters, Viewer, WriteAccess};
use subtle::ConstantTimeEq as _;

use crate::access::Principal;
use crate::access::origins::{CallerKey, SEC_FETCH_SITE};
use crate::access::page_sessions::{CookieTransport, PageCaller};
use crate::config::{AccessScope, InspectorAccess};
use crate::problem::{Code, Problem};
use crate::state::App;

/// The cookie of a session.
pub(super) const COOKIE_NAME: &str = "contexture_session";

/// Somebody who may look.
pub(super) struct Looker {
    pub(super) principal: Principal,
    pub(super) viewer: Viewer,
    /// How their cookie is to be set again; `None` where nobody signs in.
    pub(super) renewal: Option<CookieTransport>,
}

/// Returns what pages let people do.
pub(super) fn inspector_access(app: &App) -> InspectorAccess {
    let server = &app.config().server;
    server.inspector.unwrap_or({
        // Behind a reverse proxy a server listens on loopback for the whole world, and then it has keys.
        match server.listen.ip().is_loopback() && !app.api_keys().is_key_required() {
            true => InspectorAccess::Write,
            false => InspectorAccess::Read,
        }
    })
}

/// Returns who looks; `None` if a key is needed and nobody has signed in.
///
/// # Errors
/// A page of another origin asks, or a name that is not this machine's.
pub(super) fn find_looker(app: &App, headers: &HeaderMap) -> Result<Option<Looker>, Problem> {
    let keys = app.api_keys();
    let caller = if keys.is_key_required() {
        let cookie = session_cookie(headers);
        let Some(caller) = cookie.and_then(|cookie| app.page_sessions().find(cookie)) else {
            return Ok(None);
        };
        app.origins().check_request(headers, CallerKey::Shown)?;
        caller
    } else {
        app.origins().check_request(headers, CallerKey::Missing)?;
        PageCaller {
            principal: keys.authorize_without_key()?.clone(),
            form_token: app.page_sessions().local_token().map(str::to_owned),
            renewal: None,
        }
    };
    let may_write = inspector_access(app) == InspectorAccess::Write
        && caller.principal.scopes().contains(&AccessScope::Write);
    let form_token = caller.form_token.filter(|_| may_write);
    Ok(Some(Looker {
        viewer: Viewer {
            owner: caller.principal.owner.to_string(),
            key: caller.principal.key.as_deref().map(str::to_owned),
            access: form_token.map_or(WriteAccess::ReadOnly, WriteAccess::Token),
        },
        principal: caller.principal,
        renewal: caller.renewal,
    }))
}

/// Checks that a form comes from a page that this server gave to this reader.
///
/// # Errors
/// It does not, or the reader may only look.
pub(super) fn check_form(
    app: &App,
    headers: &HeaderMap,
    looker: &Looker,
    form: &Parameters,
) -> Result<(), Problem> {
    let Some(expected) = looker.viewer.token() else {
        return Err(Problem::new(
            Code::MissingScope,
            "pages only read here: `server.inspector` in the configuration, or the scopes of the key, say so",
        ));
    };
    check_own_page(app, headers)?;
    let sent = form.get("token").unwrap_or_default();
    match bool::from(sent.as_bytes().ct_eq(expected.as_bytes())) {
        true => Ok(()),
        false => Err(Problem::new(
            Code::ForeignOrigin,
            "this form is of another session: load the page again",
        )),
    }
}

/// Checks that a browser sends a form from a page of this server.
///
/// # Errors
/// It says otherwise, or says nothing.
pub(super) fn check_own_page(app: &App, headers: &HeaderMap) -> Result<(), Problem> {
    app.origins().check_request(headers, CallerKey::Shown)?;
    let site = headers.get(SEC_FETCH_SITE).map(HeaderValue::as_bytes);
    match site {
        Some(b"same-origin") => Ok(()),
        _ => Err(Problem::new(
            Code::ForeignOrigin,
            "only a page of this server may send this form, from a browser that says so (`sec-fetch-site`)",
        )),
    }
}

/// Returns the cookie of a session, if the browser sent one.
pub(super) fn session_cookie(headers: &HeaderMap) -> Option<&str> {
    let cookies = headers.get_all(COOKIE).iter();
    let cookies = cookies.filter_map(|cookies| cookies.to_str().ok());
    let mut pairs = cookies.flat_map(|cookies| cookies.split(';'));
    pairs.find_map(|pair| {
        let (name, value) = pair.trim().split_once('=')?;
        (name == COOKIE_NAME).then_some(value)
    })
}
