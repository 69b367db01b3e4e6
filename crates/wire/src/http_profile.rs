//! How a provider is reached over HTTP, as data: addresses, keys, paths of calls, and how streams are framed.
//!
//! Nothing here does I/O. Paths are compared after percent-decoding; what is forwarded is the caller's to keep as it came.

use crate::framing::StreamFraming;

/// How a provider is reached over HTTP: data only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HttpProfile {
    /// The word by which a configuration names hosts that speak the format. Formats with the same word are spoken by the
    /// same hosts.
    pub upstream: &'static str,
    /// The names of the protocols that such hosts speak, for people.
    pub protocols: &'static str,
    /// The address that a proxy forwards to if its configuration names no upstream, without the version of the paths;
    /// `None` for providers whose address depends on the customer.
    pub upstream_url: Option<&'static str>,
    /// The requests at the root of a proxy that are for hosts of this format.
    pub roots: &'static [RootRule],
    /// The provider's own base URL, to which [`HttpProfile::path`] is added.
    pub base_url: &'static str,
    /// Environment variables that may hold another base URL, in the order they are tried.
    pub base_url_variables: &'static [&'static str],
    /// Environment variables that may hold the API key, in the order they are tried.
    pub api_key_variables: &'static [&'static str],
    /// The header that carries the API key.
    pub key_header: &'static str,
    /// What stands before the API key in its header.
    pub key_prefix: &'static str,
    /// How an `authorization` header begins that signs the body: such a request can only be forwarded as it came. `None`
    /// for providers whose clients sign nothing.
    pub request_signature: Option<&'static str>,
    /// A header that every request must have, with its value.
    pub version_header: Option<(&'static str, &'static str)>,
    /// The path of a call.
    pub path: CallPath,
    /// How the events of a streamed answer are framed.
    pub framing: StreamFraming,
}

/// A rule by which a request at the root of a proxy is recognised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RootRule {
    /// The prefix that the request's path must have, compared segment by segment.
    pub under: &'static str,
    /// What else the request must have.
    pub evidence: RootEvidence,
}

/// What shows, beside its path, which provider a request is meant for; weakest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RootEvidence {
    /// Nothing: the path alone decides.
    Path,
    /// A header with this name.
    Header(&'static str),
    /// The header that carries the provider's API key.
    KeyHeader,
    /// A last path segment with a verb after a colon.
    Verb,
}

/// How well a request fits a rule; of several formats the greatest one counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RootMatch {
    evidence: RootEvidence,
    path_bytes: usize,
}

/// Whether an answer is asked for whole or as a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResponseMode {
    /// The answer comes as one document.
    Whole,
    /// The answer comes in pieces, as it is made.
    Stream,
}

/// The path of a call, below a base URL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallPath {
    /// The same path for every call; the model is named in the body.
    Fixed(&'static [&'static str]),
    /// `<prefix>/<model><separator><verb>`, one verb for whole answers and one for streams.
    Model {
        /// The steps before the model.
        prefix: &'static [&'static str],
        /// What stands between model and verb: `:`, or `/` if the verb is a step of its own. Behind a `/` the model's own
        /// colons and slashes are percent-encoded.
        separator: char,
        /// The verb that asks for the whole answer.
        whole: &'static str,
        /// The verb that asks for a stream.
        stream: &'static str,
        /// The query that a streamed call needs; empty if it needs none.
        stream_query: &'static str,
    },
}

/// A call that a path names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathCall<'p> {
    /// The model, where the path names it.
    pub model: Option<&'p str>,
}

impl HttpProfile {
    /// Reports whether a host is the provider's own, whose habits are known, and not one that speaks its format.
    ///
    /// ```
    /// use contexture_wire::Format;
    ///
    /// let profile = Format::Anthropic.spec().http().unwrap();
    /// assert!(profile.is_own_host("api.anthropic.com"));
    /// assert!(!profile.is_own_host("llm.example"));
    /// let profile = Format::Bedrock.spec().http().unwrap();
    /// assert!(profile.is_own_host("bedrock-runtime.eu-west-1.amazonaws.com"));
    /// ```
    #[must_use]
    pub fn is_own_host(&self, host: &str) -> bool {
        let own = self.base_url.strip_prefix("https://").unwrap_or_default();
        let own = own.split('/').next().unwrap_or_default();
        if self.upstream_url.is_some() {
            return host.eq_ignore_ascii_case(own);
        }
        // The address depends on the customer: only the region in its middle may differ.
        let host = host.to_ascii_lowercase();
        let ends = own.split_once('.').and_then(|(first, rest)| {
            let (_, last) = rest.split_once('.')?;
            Some((first, last))
        });
        ends.is_some_and(|(first, last)| {
            let middle = host
                .strip_prefix(first)
                .and_then(|rest| rest.strip_suffix(last));
            middle.is_some_and(|middle| {
                let region = middle
                    .strip_prefix('.')
                    .and_then(|rest| rest.strip_suffix('.'));
                region.is_some_and(|region| !region.is_empty() && !region.contains('.'))
            })
        })
    }

    /// Returns how well a request at the root of a proxy fits this provider; `None` if it is not for it.
    #[must_use]
    pub fn root_match(&self, path: &str, has_header: &dyn Fn(&str) -> bool) -> Option<RootMatch> {
        let fits = |rule: &&RootRule| {
            let is_under = path
                .strip_prefix(rule.under)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
            is_under
                && match rule.evidence {
                    RootEvidence::Path => true,
                    RootEvidence::Header(name) => has_header(name),
                    RootEvidence::KeyHeader => has_header(self.key_header),
                    RootEvidence::Verb => path
                        .rsplit('/')
                        .next()
                        .is_some_and(|last| last.contains(':')),
                }
        };
        let matches = self.roots.iter().filter(fits).map(|rule| RootMatch {
            evidence: rule.evidence,
            path_bytes: rule.under.len(),
        });
        matches.max()
    }

    /// Returns the path of a call, behind the host, that a client meant whose base URL has the version of the paths twice or not
    /// at all; `None` for every other path. The path is percent-decoded and without empty steps.
    #[must_use]
    pub fn with_one_version(&self, path: &str) -> Option<String> {
        let version = self.version()?;
        let call: String = self
            .path
            .steps()
            .iter()
            .flat_map(|step| ["/", step])
            .collect();
        let (before, after) = path.split_at_checked(path.find(&call)?)?;
        // Up to two versions, of this format or of another one whose base URL has one.
        let mut versions = before.split('/').skip(1);
        let is_mistaken = match (versions.next(), versions.next(), versions.next()) {
            (None, ..) => true,
            (Some(first), Some(second), None) => is_path_version(first) && is_path_version(second),
            _ => false,
        };
        let meant = format!("/{version}{after}");
        (is_mistaken && self.path.parse_call(&meant).is_some()).then_some(meant)
    }

    /// Returns the version that paths begin with behind the host: that of the call, or of the base URL.
    fn version(&self) -> Option<&'static str> {
        let steps = match self.path {
            CallPath::Fixed(steps) => steps,
            CallPath::Model { prefix, .. } => prefix,
        };
        let own = steps
            .first()
            .copied()
            .filter(|first| is_path_version(first));
        own.or_else(|| {
            let last = self.base_url.rsplit('/').next();
            last.filter(|last| is_path_version(last))
        })
    }

    /// Reports whether a request with this `authorization` header is signed together with its body.
    #[must_use]
    pub fn is_signed(&self, authorization: &str) -> bool {
        let authorization = authorization.trim_start().as_bytes();
        self.request_signature.is_some_and(|scheme| {
            // Schemes of `authorization` have no case.
            authorization
                .get(..scheme.len())
                .is_some_and(|start| start.eq_ignore_ascii_case(scheme.as_bytes()))
        })
    }
}

impl CallPath {
    /// Returns the call that a path is, percent-decoded and without empty steps; `None` if it is no call of a model.
    #[must_use]
    pub fn parse_call<'p>(&self, path: &'p str) -> Option<PathCall<'p>> {
        match self {
            Self::Fixed(steps) => {
                let end: String = without_version(steps)
                    .iter()
                    .flat_map(|step| ["/", step])
                    .collect();
                // Some hosts read paths in capitals: a policy must not be circumvented by spelling.
                path.to_ascii_lowercase()
                    .ends_with(&end)
                    .then_some(PathCall { model: None })
            }
            Self::Model { whole, stream, .. } => {
                let (model, verb) = self.split_model(path)?;
                let is_call = verb == *whole || verb == *stream;
                is_call.then_some(PathCall { model: Some(model) })
            }
        }
    }

    /// Returns the model that a path names, whatever is asked of it.
    #[must_use]
    pub fn model_in<'p>(&self, path: &'p str) -> Option<&'p str> {
        self.split_model(path).map(|(model, _)| model)
    }

    /// Returns the steps of a call's path, none of them percent-encoded.
    #[must_use]
    pub fn call_steps(&self, model: &str, mode: ResponseMode) -> Vec<String> {
        match self {
            Self::Fixed(steps) => steps.iter().map(|step| (*step).to_owned()).collect(),
            Self::Model {
                prefix,
                separator,
                whole,
                stream,
                ..
            } => {
                let verb = match mode {
                    ResponseMode::Whole => whole,
                    ResponseMode::Stream => stream,
                };
                // Some catalogues name models with the step that the path has already.
                let last = prefix.last().copied().unwrap_or_default();
                let name = model
                    .strip_prefix(last)
                    .and_then(|rest| rest.strip_prefix('/'))
                    .unwrap_or(model);
                let mut steps: Vec<String> = prefix.iter().map(|step| (*step).to_owned()).collect();
                if *separator == '/' {
                    steps.extend([name.to_owned(), (*verb).to_owned()]);
                } else {
                    steps.push(format!("{name}{separator}{verb}"));
                }
                steps
            }
        }
    }

    /// Returns the steps of every call, without a version.
    fn steps(&self) -> &[&'static str] {
        match self {
            Self::Fixed(steps) => without_version(steps),
            Self::Model { prefix, .. } => without_version(prefix),
        }
    }

    /// Splits a path into the model and the verb.
    fn split_model<'p>(&self, path: &'p str) -> Option<(&'p str, &'p str)> {
        let Self::Model {
            prefix, separator, ..
        } = self
        else {
            return None;
        };
        let before = format!("/{}/", prefix.last()?);
        let (_, rest) = match separator {
            // The model may have slashes, so whatever follows the first prefix belongs to it.
            '/' => path.split_once(&before)?,
            _ => path.rsplit_once(&before)?,
        };
        rest.rsplit_once(*separator)
    }
}

/// Returns the steps without a leading version, which hosts of other providers write differently.
fn without_version<'s>(steps: &'s [&'static str]) -> &'s [&'static str] {
    match steps {
        [first, rest @ ..] if is_path_version(first) => rest,
        all => all,
    }
}

/// Whether a step of a path is a version of an API: `v1`, `v1beta`.
///
/// ```
/// use contexture_wire::is_path_version;
///
/// assert!(is_path_version("v1") && is_path_version("v1beta"));
/// assert!(!is_path_version("video") && !is_path_version("openai"));
/// ```
#[must_use]
pub fn is_path_version(step: &str) -> bool {
    step.strip_prefix('v')
        .is_some_and(|number| number.starts_with(|c: char| c.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Format;

    const CONVERSE: CallPath = CallPath::Model {
        prefix: &["model"],
        separator: '/',
        whole: "converse",
        stream: "converse-stream",
        stream_query: "",
    };

    #[test]
    fn model_with_slashes_and_colons_is_read_from_path() {
        for (path, model) in [
            (
                "/model/us.anthropic.claude-v1:0/converse",
                "us.anthropic.claude-v1:0",
            ),
            (
                "/model/arn:aws:bedrock:eu-west-1:1:inference-profile/x/converse-stream",
                "arn:aws:bedrock:eu-west-1:1:inference-profile/x",
            ),
            ("/model/a/model/b/converse", "a/model/b"),
        ] {
            assert_eq!(
                CONVERSE.parse_call(path),
                Some(PathCall { model: Some(model) }),
                "{path}"
            );
        }
        assert_eq!(CONVERSE.parse_call("/model/x/count-tokens"), None);
        assert_eq!(CONVERSE.model_in("/model/x/count-tokens"), Some("x"));
        assert_eq!(CONVERSE.parse_call("/models/x/converse"), None);
        assert_eq!(
            CONVERSE.call_steps("a/b:0", ResponseMode::Stream),
            ["model", "a/b:0", "converse-stream"]
        );
    }

    #[test]
    fn calls_of_each_provider_are_found_below_any_prefix() {
        for format in Format::PROVIDERS {
            let path = format.spec().http().unwrap().path;
            let steps = path.call_steps("some-model", ResponseMode::Whole);
            let called = format!("/prefix/{}", steps.join("/"));
            assert!(path.parse_call(&called).is_some(), "{format}");
            assert!(path.parse_call("/v1/embeddings").is_none(), "{format}");
        }
    }

    #[test]
    fn version_that_is_missing_or_doubled_is_noticed() {
        let mut versioned = 0;
        for format in Format::PROVIDERS {
            let profile = format.spec().http().unwrap();
            let Some(version) = profile.version() else {
                continue;
            };
            versioned += 1;
            let steps = profile.path.call_steps("some-model", ResponseMode::Whole);
            let steps: Vec<&str> = steps.iter().map(String::as_str).collect();
            let rest = steps.strip_prefix(&[version]).unwrap_or(&steps).join("/");
            let right = format!("/{version}/{rest}");
            assert_eq!(profile.with_one_version(&right), None, "{format}");
            for wrong in [
                format!("/{rest}"),
                format!("/{version}/{version}/{rest}"),
                format!("/v1/{version}/{rest}"),
            ] {
                assert_eq!(
                    profile.with_one_version(&wrong),
                    Some(right.clone()),
                    "{wrong}"
                );
            }
            for other in [
                format!("/openai/{rest}"),
                format!("/api/{version}/{rest}"),
                "/".to_owned(),
            ] {
                assert_eq!(profile.with_one_version(&other), None, "{other}");
            }
        }
        assert!(versioned >= 4, "{versioned}");
    }

    #[test]
    fn signature_is_recognised_by_its_scheme() {
        let plain = *Format::PROVIDERS[0].spec().http().unwrap();
        let signing = HttpProfile {
            request_signature: Some("AWS4-HMAC-SHA256"),
            ..plain
        };
        assert!(
            signing.is_signed("AWS4-HMAC-SHA256 Credential=x, SignedHeaders=host, Signature=y")
        );
        assert!(signing.is_signed("aws4-hmac-sha256 Credential=x"));
        assert!(!signing.is_signed("Bearer AWS4-HMAC-SHA256"));
        assert!(!signing.is_signed(""));
        assert!(!plain.is_signed("AWS4-HMAC-SHA256 Credential=x"));
    }
}
