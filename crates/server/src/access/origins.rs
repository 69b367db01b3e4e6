//! Origins: which pages in a browser may call, by one rule for the API, MCP and the proxy.
//!
//! A browser calls this server for any page that tells it to. The server's own pages may call: those of its own port, under
//! every loopback name that it listens on, and with keys also those of the name that it is called by. All others, of other
//! ports of this machine too, may call only if the configuration lists them. A page that hides its origin, as one that
//! loads an image does, is known by `sec-fetch-site` and needs a key.
//!
//! Not here: the answers that browsers ask for before and with a call (`http::cross_origin`).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use axum::http::header::{HOST, ORIGIN};
use axum::http::{HeaderMap, HeaderName, HeaderValue};

use crate::config::{Authority, PageOrigin};
use crate::problem::{Code, Problem};

/// Where a browser says how the page relates to the server (Fetch Metadata).
pub(crate) const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// Whether a caller has shown a key of this server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CallerKey {
    Shown,
    Missing,
}

/// The rule, with what it needs to know of the configuration.
#[derive(Debug)]
pub(crate) struct Origins {
    listens_on: IpAddr,
    needs_key: bool,
    listed: Vec<PageOrigin>,
}

impl Origins {
    pub(crate) fn new(listens_on: IpAddr, needs_key: bool, listed: &[PageOrigin]) -> Self {
        Self {
            listens_on,
            needs_key,
            listed: listed.to_vec(),
        }
    }

    /// Checks that no page of a foreign origin makes this request.
    ///
    /// # Errors
    /// One does, or may.
    pub(crate) fn check_request(&self, headers: &HeaderMap, key: CallerKey) -> Result<(), Problem> {
        // A page can point its own DNS name at 127.0.0.1 (DNS rebinding): then the host is foreign, though the address is not.
        // A key is not sent to such a name.
        if key == CallerKey::Missing && !has_loopback_host(headers) {
            return Err(foreign(
                "without keys only programs of this machine may call, by a loopback address",
            ));
        }
        if headers.contains_key(ORIGIN) {
            return match self.allowed_origin(headers) {
                Some(_) => Ok(()),
                None => Err(unlisted_origin()),
            };
        }
        // Browsers send no origin with images, links and forms that only read.
        let site = headers.get(SEC_FETCH_SITE).map(HeaderValue::as_bytes);
        let is_own = site.is_none_or(|site| matches!(site, b"same-origin" | b"none"));
        match key == CallerKey::Shown || is_own {
            true => Ok(()),
            false => Err(foreign("a page of another site may not call without a key")),
        }
    }

    /// Returns the origin of the page that makes a request, if pages of it may call.
    pub(crate) fn allowed_origin<'h>(&self, headers: &'h HeaderMap) -> Option<&'h HeaderValue> {
        let mut origins = headers.get_all(ORIGIN).iter();
        let origin = origins.next().filter(|_| origins.next().is_none())?;
        let text = origin.to_str().ok()?;
        let is_listed = self
            .listed
            .iter()
            .any(|one| one.as_str().eq_ignore_ascii_case(text));
        (is_listed || self.is_own(text, headers)).then_some(origin)
    }

    fn is_own(&self, origin: &str, headers: &HeaderMap) -> bool {
        let Some((scheme, authority)) = origin.split_once("://") else {
            // `Origin: null`, of sandboxed pages.
            return false;
        };
        let host = headers.get(HOST).and_then(|host| host.to_str().ok());
        let host = host.and_then(Authority::parse);
        let (Some(page), Some(host)) = (Authority::parse(authority), host) else {
            return false;
        };
        // The name that a proxy in front is called by, perhaps with TLS; whoever calls there shows a key.
        if self.needs_key && page == host {
            return true;
        }
        // The port that the browser called, which may be another one than is listened on: that of a container, say.
        let is_same_port = page.port.unwrap_or(80) == host.port.unwrap_or(80);
        scheme.eq_ignore_ascii_case("http")
            && is_same_port
            && host.is_loopback()
            && self.has_loopback_name(&page)
    }

    /// Whether a name leads to this server on the machine itself. Behind another loopback address may be another program.
    fn has_loopback_name(&self, page: &Authority<'_>) -> bool {
        let address = page.address();
        let Some(address) = address else {
            return page.is_loopback();
        };
        let is_listened_on = match self.listens_on {
            IpAddr::V4(Ipv4Addr::UNSPECIFIED) => address.is_ipv4(),
            IpAddr::V6(Ipv6Addr::UNSPECIFIED) => true,
            // Also where a container's port is forwarded from the machine's.
            own if !own.is_loopback() => true,
            own => own == address,
        };
        address.is_loopback() && is_listened_on
    }
}

/// Returns what a page is told whose origin may not call.
pub(crate) fn unlisted_origin() -> Problem {
    foreign(
        "pages of this origin may not call; `server.origins` in the configuration lists those that may",
    )
}

fn foreign(why: &str) -> Problem {
    Problem::new(Code::ForeignOrigin, why)
}

/// Whether a request names this machine; a program need not name any.
fn has_loopback_host(headers: &HeaderMap) -> bool {
    headers.get(HOST).is_none_or(|host| {
        let host = host.to_str().ok().and_then(Authority::parse);
        host.is_some_and(|host| host.is_loopback())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a page of this origin gets that calls this host.
    fn verdict(rule: &Origins, host: &str, origin: &str, key: CallerKey) -> bool {
        let mut headers = HeaderMap::new();
        headers.insert(HOST, host.parse().unwrap());
        headers.insert(ORIGIN, origin.parse().unwrap());
        rule.check_request(&headers, key).is_ok()
    }

    #[test]
    fn only_its_own_origin_and_listed_ones_may_call() {
        let listed =
            ["https://app.example.com", "http://localhost:3000"].map(|one| one.parse().unwrap());
        let rule = Origins::new(Ipv4Addr::LOCALHOST.into(), false, &listed);
        for (host, origin, expected) in [
            ("127.0.0.1:8484", "http://127.0.0.1:8484", true),
            ("127.0.0.1:8484", "http://localhost:8484", true),
            ("localhost:8484", "http://127.0.0.1:8484", true),
            ("localhost", "http://localhost:80", true),
            ("localhost:8484", "https://localhost:8484", false),
            ("localhost:8484", "http://[::1]:8484", false),
            ("localhost:8484", "http://localhost:8485", false),
            ("localhost:8484", "http://localhost", false),
            ("localhost:8484", "http://localhost:8484@evil.com", false),
            ("localhost:8484", "http://localhost.evil.com:8484", false),
            ("localhost:8484", "null", false),
            ("localhost:8484", "https://app.example.com", true),
            ("localhost:8484", "https://APP.example.com", true),
            ("localhost:8484", "http://app.example.com", false),
            ("localhost:8484", "http://localhost:3000", true),
            ("evil.com:8484", "http://evil.com:8484", false),
            ("evil.com:8484", "https://app.example.com", false),
        ] {
            let found = verdict(&rule, host, origin, CallerKey::Missing);
            assert_eq!(found, expected, "{origin} at {host}");
        }
        let keyed = Origins::new(Ipv4Addr::UNSPECIFIED.into(), true, &[]);
        for (host, origin, expected) in [
            ("ctx.example.com", "https://ctx.example.com", true),
            ("ctx.example.com", "https://app.example.com", false),
            ("localhost:8484", "http://127.0.0.1:8484", true),
            ("localhost:8484", "http://localhost:3000", false),
        ] {
            let found = verdict(&keyed, host, origin, CallerKey::Shown);
            assert_eq!(found, expected, "{origin} at {host}");
        }
    }
}
