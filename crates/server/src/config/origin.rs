//! Origins of pages in browsers, and the host and port that they and `host` headers have.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

/// An origin that a configuration may list: `https://app.example.com`, with a port where it is not the scheme's own.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PageOrigin(String);

impl PageOrigin {
    /// Returns the origin as browsers send it.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for PageOrigin {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const RULE: &str = "expected an origin as browsers send it, such as `https://app.example.com` or `http://localhost:3000`";
        let origin = text.to_ascii_lowercase();
        let (scheme, authority) = origin.split_once("://").ok_or(RULE)?;
        let is_scheme = scheme.starts_with(|c: char| c.is_ascii_alphabetic())
            && scheme
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c));
        match is_scheme && Authority::parse(authority).is_some() {
            true => Ok(Self(origin)),
            false => Err(RULE),
        }
    }
}

impl fmt::Display for PageOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The host and port of an origin or a `host` header.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Authority<'a> {
    pub(crate) host: &'a str,
    pub(crate) port: Option<u16>,
}

impl PartialEq for Authority<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.host.eq_ignore_ascii_case(other.host) && self.port == other.port
    }
}

impl<'a> Authority<'a> {
    /// Reads `host`, `host:port` or `[address]:port`, and nothing else: no user, no path.
    pub(crate) fn parse(text: &'a str) -> Option<Self> {
        let end = match text.strip_prefix('[') {
            Some(rest) => rest.find(']')? + 2,
            None => text.find(':').unwrap_or(text.len()),
        };
        let (host, port) = text.split_at_checked(end)?;
        let port = match port.strip_prefix(':') {
            // Not `parse` alone, which takes a sign.
            Some(port) if port.bytes().all(|byte| byte.is_ascii_digit()) => {
                Some(port.parse().ok()?)
            }
            None if port.is_empty() => None,
            _ => return None,
        };
        let authority = Self { host, port };
        let is_name = |c: char| c.is_ascii_alphanumeric() || "-._".contains(c);
        let is_host = !host.is_empty() && host.chars().all(is_name);
        (is_host || authority.address().is_some()).then_some(authority)
    }

    /// Returns the address, if the host is one.
    pub(crate) fn address(&self) -> Option<IpAddr> {
        let inner = self
            .host
            .strip_prefix('[')
            .and_then(|host| host.strip_suffix(']'));
        match inner {
            Some(inner) => inner.parse::<Ipv6Addr>().ok().map(IpAddr::V6),
            None => self.host.parse::<Ipv4Addr>().ok().map(IpAddr::V4),
        }
    }

    /// Whether it is this machine's name for itself.
    pub(crate) fn is_loopback(&self) -> bool {
        self.host.eq_ignore_ascii_case("localhost")
            || self.address().is_some_and(|address| address.is_loopback())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_has_few_names() {
        let is_loopback = |text| Authority::parse(text).is_some_and(|host| host.is_loopback());
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
            "localhost.",
            "localhost.evil.example",
            "localhost:80@evil.com",
            "localhost:80:80",
            "localhost:",
            "localhost/x",
            "127.0.0.1.nip.io:80",
            "10.0.0.1",
            "[::1",
            "[::1]x",
            "[::2]:1",
            "::1",
            "0.0.0.0",
        ] {
            assert!(!is_loopback(elsewhere), "{elsewhere}");
        }
    }

    #[test]
    fn origins_of_a_configuration_are_origins() {
        for text in [
            "https://app.example.com",
            "http://[::1]:1",
            "vscode-webview://abc",
            "app://obsidian.md",
        ] {
            assert!(text.parse::<PageOrigin>().is_ok(), "{text}");
        }
        for text in [
            "",
            "*",
            "null",
            "app.example.com",
            "https://a/",
            "https://a/b",
            "https://*.a",
            "https://u@a",
        ] {
            assert!(text.parse::<PageOrigin>().is_err(), "{text}");
        }
    }
}
