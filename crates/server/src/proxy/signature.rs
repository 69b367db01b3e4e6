//! Signed requests: the client signed the body, so nothing of the request may change on its way.
//!
//! Such a request is forwarded with the bytes and headers that came, captured and stored as any other, and never rewritten.
//! A restriction that would have to change it refuses it instead: restrictions hold whatever else fails. A key that is
//! configured for the upstream replaces the signature, and with it this limit.

use axum::http::header::{AUTHORIZATION, HOST};
use axum::http::{HeaderMap, StatusCode};
use contexture::wire::HttpProfile;
use contexture_api::policy::PolicyConfig;

use crate::proxy::failure::ProxyFailure;
use crate::proxy::refusal::ProxyRefusal;

/// Whether a request may be changed on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RequestSignature {
    /// It may: nobody signed it.
    Unsigned,
    /// It may not: the client signed it together with its body.
    Signed,
}

impl RequestSignature {
    /// Returns whether a request is signed, by the headers that go out to a host of this profile.
    pub(crate) fn from_headers(profile: Option<&HttpProfile>, outgoing: &HeaderMap) -> Self {
        let authorization = outgoing
            .get(AUTHORIZATION)
            .and_then(|value| value.to_str().ok());
        match profile.zip(authorization) {
            Some((profile, value)) if profile.is_signed(value) => Self::Signed,
            _ => Self::Unsigned,
        }
    }

    /// Puts back the host that the client named: it is part of what a signature covers.
    pub(crate) fn restore_host(self, came: &HeaderMap, outgoing: &mut HeaderMap) {
        if self == Self::Signed
            && let Some(host) = came.get(HOST)
        {
            outgoing.insert(HOST, host.clone());
        }
    }

    /// Checks that a restriction of the policy left the request as it came.
    ///
    /// # Errors
    /// It is signed, and something had to be taken out of it.
    pub(crate) fn check_restriction(self, is_changed: bool) -> Result<(), ProxyRefusal> {
        match self == Self::Signed && is_changed {
            true => Err(ProxyRefusal::new(
                StatusCode::FORBIDDEN,
                "signed",
                "the request is signed, so what may not be sent cannot be taken out of it: configure a key for the upstream",
            )),
            false => Ok(()),
        }
    }

    /// Returns the policy that may rewrite the request, and why there is none though one is configured.
    pub(crate) fn limit_policy(
        self,
        policy: Option<PolicyConfig>,
    ) -> (Option<PolicyConfig>, Option<ProxyFailure>) {
        match (self, policy) {
            (Self::Signed, Some(_)) => {
                let why = "the client signed it, so it cannot be rewritten: configure a key for the upstream";
                (None, Some(ProxyFailure::new("signed", why)))
            }
            (_, policy) => (policy, None),
        }
    }
}

#[cfg(test)]
mod tests {
    use contexture::Format;

    use super::*;

    const SIGNED: &str = "AWS4-HMAC-SHA256 Credential=AKID/20261122/us-east-1/bedrock/aws4_request, SignedHeaders=host;x-amz-date, Signature=00";

    fn signature(scheme: Option<&'static str>, authorization: &str) -> RequestSignature {
        let profile = HttpProfile {
            request_signature: scheme,
            ..*Format::COMPATIBLE.spec().http().unwrap()
        };
        let mut headers = HeaderMap::new();
        headers.insert(AUTHORIZATION, authorization.parse().unwrap());
        RequestSignature::from_headers(Some(&profile), &headers)
    }

    #[test]
    fn request_is_signed_by_the_scheme_of_its_provider_only() {
        let scheme = Some("AWS4-HMAC-SHA256");
        assert_eq!(signature(scheme, SIGNED), RequestSignature::Signed);
        assert_eq!(signature(scheme, "Bearer key"), RequestSignature::Unsigned);
        assert_eq!(signature(None, SIGNED), RequestSignature::Unsigned);
        let none = RequestSignature::from_headers(None, &HeaderMap::new());
        assert_eq!(none, RequestSignature::Unsigned);
    }

    #[test]
    fn signed_request_is_neither_rewritten_nor_restricted() {
        let policy = || {
            Some(PolicyConfig {
                cache_marks: true,
                ..PolicyConfig::default()
            })
        };
        let (left, failure) = RequestSignature::Signed.limit_policy(policy());
        assert_eq!((left, failure.unwrap().what), (None, "signed"));
        // Without a policy there is nothing to report.
        assert_eq!(RequestSignature::Signed.limit_policy(None), (None, None));
        let unsigned = RequestSignature::Unsigned.limit_policy(policy());
        assert_eq!(unsigned, (policy(), None));
        RequestSignature::Signed
            .check_restriction(true)
            .unwrap_err();
        RequestSignature::Signed.check_restriction(false).unwrap();
        RequestSignature::Unsigned.check_restriction(true).unwrap();
    }

    #[test]
    fn signed_request_keeps_the_host_that_was_signed() {
        let mut came = HeaderMap::new();
        came.insert(
            HOST,
            "bedrock-runtime.us-east-1.amazonaws.com".parse().unwrap(),
        );
        let mut outgoing = HeaderMap::new();
        RequestSignature::Unsigned.restore_host(&came, &mut outgoing);
        assert!(outgoing.is_empty());
        RequestSignature::Signed.restore_host(&came, &mut outgoing);
        assert_eq!(outgoing, came);
    }
}
