//! API keys: the keys of the configuration, and the principal that calls with one of them or with none.
//!
//! With keys configured every request carries one, wherever it comes from. Without, the server listens on
//! loopback only, and whoever reaches it is the local owner; pages of other sites in a browser of the same
//! machine are refused, since they could reach it too.
//!
//! Not here: credentials for providers.

use std::net::IpAddr;
use std::sync::Arc;

use axum::http::HeaderMap;
use axum::http::header::{HOST, ORIGIN};
use contexture::Owner;

use crate::config::{AccessScope, KeyConfig, KeyHash};
use crate::problem::{Code, Problem};

/// The caller of a request: whose conversations it sees, and what it may do with them.
#[derive(Clone, Debug)]
pub(crate) struct Principal {
    pub(crate) owner: Owner,
    /// The name of the key; `None` without authentication.
    pub(crate) key: Option<Arc<str>>,
    scopes: Arc<[AccessScope]>,
}

impl Principal {
    /// Refuses a caller without this scope.
    pub(crate) fn require_scope(&self, scope: AccessScope) -> Result<(), Problem> {
        if self.scopes.contains(&scope) {
            return Ok(());
        }
        let detail = format!(
            "this key may not do that: it has no scope `{}`",
            scope.name()
        );
        Err(Problem::new(Code::MissingScope, detail))
    }
}

/// The keys of the configuration.
#[derive(Debug)]
pub(crate) struct ApiKeys {
    principals: Vec<(KeyHash, Principal)>,
    local_principal: Principal,
}

impl ApiKeys {
    pub(crate) fn new(keys: &[KeyConfig], local: &Owner) -> Self {
        let principal = |key: &KeyConfig| Principal {
            owner: key.owner.clone(),
            key: Some(key.name.as_str().into()),
            scopes: key.scopes.as_slice().into(),
        };
        let known = keys.iter().map(|key| (key.sha256, principal(key)));
        Self {
            principals: known.collect(),
            local_principal: Principal {
                owner: local.clone(),
                key: None,
                scopes: [
                    AccessScope::Read,
                    AccessScope::Write,
                    AccessScope::Proxy,
                    AccessScope::Admin,
                ]
                .into(),
            },
        }
    }

    /// Whether requests need a key.
    pub(crate) fn is_key_required(&self) -> bool {
        !self.principals.is_empty()
    }

    /// Returns whose key it is.
    pub(crate) fn principal_for_key(&self, key: &str) -> Option<&Principal> {
        let hash = KeyHash::of(key);
        let mut found = None;
        // All keys are compared, without an early exit: the time it takes must not tell how many were tried.
        for (known, principal) in &self.principals {
            if known.matches(&hash) {
                found = Some(principal);
            }
        }
        found
    }

    /// Returns the caller without a key: the local owner, unless keys are required or a page of another site asks.
    pub(crate) fn authorize_without_key(&self, headers: &HeaderMap) -> Result<&Principal, Problem> {
        if self.is_key_required() {
            let detail =
                "a key is needed: send it as `x-contexture-key`, or as `authorization: Bearer KEY`";
            return Err(Problem::new(Code::Unauthenticated, detail));
        }
        if is_foreign_origin(headers) {
            let detail =
                "without keys only programs of this machine may call, by a loopback address";
            return Err(Problem::new(Code::ForeignOrigin, detail));
        }
        Ok(&self.local_principal)
    }
}

/// Whether a browser may have sent this for a page of another site: judged by the name it has for us, and by the page's.
fn is_foreign_origin(headers: &HeaderMap) -> bool {
    // A page can point its own DNS name at 127.0.0.1 (DNS rebinding): then the host is foreign, though the address is not.
    let foreign_host = headers
        .get(HOST)
        .is_some_and(|host| !host.to_str().is_ok_and(is_loopback));
    let foreign_page = headers.get(ORIGIN).is_some_and(|origin| {
        let page = origin
            .to_str()
            .ok()
            .and_then(|origin| origin.split_once("://"));
        // `Origin: null`, of sandboxed pages, has no host either and counts as foreign.
        !page.is_some_and(|(_, host)| is_loopback(host))
    });
    foreign_host || foreign_page
}

fn is_loopback(authority: &str) -> bool {
    let host = match authority.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => authority
            .rsplit_once(':')
            .map_or(authority, |(host, _)| host),
    };
    host.eq_ignore_ascii_case("localhost")
        || host
            .parse::<IpAddr>()
            .is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_has_few_names() {
        for here in [
            "localhost",
            "LOCALHOST:8484",
            "127.0.0.1:80",
            "127.8.8.8",
            "[::1]:8484",
            "[::1]",
        ] {
            assert!(is_loopback(here), "{here}");
        }
        for elsewhere in [
            "",
            "localhost.evil.example",
            "127.0.0.1.nip.io:80",
            "10.0.0.1",
            "[::2]:1",
            "0.0.0.0",
        ] {
            assert!(!is_loopback(elsewhere), "{elsewhere}");
        }
    }
}
