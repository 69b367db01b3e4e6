//! Addresses of databases: `postgres://user:password@host:port/database?option=value`.
//!
//! The password is only in [`tokio_postgres::Config`] afterwards; errors repeat no part of the
//! address but host, port and database.

use std::path::PathBuf;

use contexture_store::Error;
use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode};

use crate::connection::tls::{self, CertificateCheck, Tls};

/// Address of a database: configuration of the client, and encryption.
pub(crate) struct DatabaseAddress {
    pub(crate) config: Config,
    pub(crate) tls: Tls,
    /// Host, port and database as a `postgres://` address without user and password, for errors.
    pub(crate) shown: PathBuf,
}

fn invalid_address(why: impl Into<String>) -> Error {
    Error::invalid_argument("database address", why)
}

impl DatabaseAddress {
    pub(crate) fn parse(address: &str) -> Result<Self, Error> {
        let expected = "expected postgres://user@host:port/database";
        if !["postgres://", "postgresql://"]
            .iter()
            .any(|scheme| address.starts_with(scheme))
        {
            return Err(invalid_address(expected));
        }
        let (rest, ssl) = take_ssl(address)?;
        // The parser's error may repeat its input, so it is not passed on.
        let mut config: Config = rest.parse().map_err(|_| invalid_address(expected))?;
        if config.get_application_name().is_none() {
            config.application_name("contexture");
        }
        let (mode, check) = ssl.resolve_mode()?;
        config.ssl_mode(mode);
        let tls = match mode {
            SslMode::Disable => Tls::Off(tokio_postgres::NoTls),
            _ => Tls::On(tls::make_connector(&check)?),
        };
        Ok(Self {
            shown: address_without_password(&config),
            config,
            tls,
        })
    }
}

/// Parameters of an address that concern encryption: `sslmode` and `sslrootcert`.
#[derive(Debug, Default)]
struct SslParameters {
    mode: Option<String>,
    roots: Option<String>,
}

impl SslParameters {
    /// Returns the TLS mode and the certificate check of `sslmode` and `sslrootcert`; `allow` is
    /// refused.
    fn resolve_mode(self) -> Result<(SslMode, CertificateCheck), Error> {
        let roots = self.roots;
        Ok(match self.mode.as_deref() {
            Some("disable") => (SslMode::Disable, CertificateCheck::Nothing),
            None | Some("prefer") => (SslMode::Prefer, CertificateCheck::Nothing),
            Some("require") => match roots {
                None => (SslMode::Require, CertificateCheck::Nothing),
                Some(roots) => (SslMode::Require, CertificateCheck::Issuer(roots)),
            },
            Some("verify-ca") => {
                let roots = roots.unwrap_or_else(|| tls::SYSTEM.to_owned());
                (SslMode::Require, CertificateCheck::Issuer(roots))
            }
            Some("verify-full") => {
                let roots = roots.unwrap_or_else(|| tls::SYSTEM.to_owned());
                (SslMode::Require, CertificateCheck::Name(roots))
            }
            Some(_) => {
                return Err(invalid_address(
                    "sslmode: expected disable, prefer, require, verify-ca or verify-full",
                ));
            }
        })
    }
}

/// Splits an address into the address without the parameters for encryption, and these parameters.
fn take_ssl(address: &str) -> Result<(String, SslParameters), Error> {
    let mut ssl = SslParameters::default();
    // A question mark before the last `@` belongs to the password.
    let host = address.rfind('@').unwrap_or(0);
    let tail = address.get(host..).unwrap_or_default();
    let Some((_, query)) = tail.split_once('?') else {
        return Ok((address.to_owned(), ssl));
    };
    let end = address.len() - query.len() - 1;
    let mut rest = address.get(..end).unwrap_or_default().to_owned();
    let mut separator = '?';
    for option in query.split('&').filter(|option| !option.is_empty()) {
        match option.split_once('=') {
            Some(("sslmode", value)) => ssl.mode = Some(value.to_owned()),
            Some(("sslrootcert", value)) => ssl.roots = Some(percent_decode(value)?),
            Some(("sslcert" | "sslkey", _)) => {
                return Err(invalid_address("certificates of clients are not supported"));
            }
            _ => {
                rest.push(separator);
                rest.push_str(option);
                separator = '&';
            }
        }
    }
    Ok((rest, ssl))
}

/// Decodes percent-encoding; an error if it is malformed or not UTF-8.
fn percent_decode(text: &str) -> Result<String, Error> {
    let wrong = || invalid_address("sslrootcert is not properly encoded");
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let mut digit = || char::from(rest.next()?).to_digit(16);
        let (high, low) = (digit().ok_or_else(wrong)?, digit().ok_or_else(wrong)?);
        bytes.push(u8::try_from(high * 16 + low).unwrap_or_default());
    }
    String::from_utf8(bytes).map_err(|_| wrong())
}

fn address_without_password(config: &Config) -> PathBuf {
    let mut text = String::from("postgres://");
    for (n, host) in config.get_hosts().iter().enumerate() {
        if n > 0 {
            text.push(',');
        }
        match host {
            Host::Tcp(name) => text.push_str(name),
            #[cfg(unix)]
            Host::Unix(path) => text.push_str(&path.to_string_lossy()),
        }
        let ports = config.get_ports();
        if let Some(port) = ports.get(n).or_else(|| ports.first()) {
            text.push_str(&format!(":{port}"));
        }
    }
    if let Some(database) = config.get_dbname() {
        text.push('/');
        text.push_str(database);
    }
    text.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(address: &str) -> Result<(SslMode, String), String> {
        let parsed = DatabaseAddress::parse(address).map_err(|error| error.to_string())?;
        let shown = parsed.shown.display().to_string();
        Ok((parsed.config.get_ssl_mode(), shown))
    }

    #[test]
    fn what_is_shown_has_no_password() {
        let check = |address: &str, mode, shown: &str| {
            assert_eq!(parse(address), Ok((mode, shown.to_owned())), "{address}");
        };
        check(
            "postgres://ada:s3cret@db.example.org:5433/chats",
            SslMode::Prefer,
            "postgres://db.example.org:5433/chats",
        );
        check(
            "postgresql://ada:s3%3Fcret@h/d?sslmode=disable",
            SslMode::Disable,
            "postgres://h:5432/d",
        );
        check(
            "postgres://ada@h/d?sslmode=require&connect_timeout=3",
            SslMode::Require,
            "postgres://h:5432/d",
        );
        check(
            "postgres://ada@a:1,b:2/d?sslmode=verify-full",
            SslMode::Require,
            "postgres://a:1,b:2/d",
        );
        check(
            "postgres://ada:s3cret@%2Frun%2Fpg/d",
            SslMode::Prefer,
            "postgres:///run/pg:5432/d",
        );
    }

    #[test]
    fn what_cannot_be_understood_is_not_repeated() {
        for address in [
            "mysql://ada:s3cret@h/d",
            "postgres://ada:s3cret@h:port/d",
            "postgres://ada:s3cret@h/d?s3cret=s3cret",
            "postgres://ada:s3cret@h/d?sslmode=s3cret",
            "postgres://ada:s3cret@h/d?sslmode=allow",
            "postgres://ada:s3cret@h/d?sslcert=s3cret",
            "postgres://ada:s3cret@h/d?sslmode=verify-ca&sslrootcert=%s3",
            "host=h password=s3cret",
        ] {
            let error = parse(address).unwrap_err();
            assert!(!error.contains("s3cret"), "{address}: {error}");
        }
    }
}
