//! Addresses that may be called.

use reqwest::Url;

use crate::error::ClientError;

/// An `http` or `https` address without user, query and fragment, to put paths behind.
pub(crate) fn parse_base_url(text: &str) -> Result<Url, ClientError> {
    let bad = |why: &str| ClientError::BadAddress {
        why: why.to_owned(),
    };
    let base = Url::parse(text.trim()).map_err(|error| bad(&error.to_string()))?;
    if !matches!(base.scheme(), "http" | "https") {
        return Err(bad("expected http:// or https://"));
    }
    if !base.username().is_empty() || base.password().is_some() {
        return Err(bad("it has a user or a password in it: give a key instead"));
    }
    if base.query().is_some() || base.fragment().is_some() {
        return Err(bad("it has a query or a fragment"));
    }
    Ok(base)
}
