//! Paths of requests that are passed on: as the most lenient host could read them, so that none can be decoded on its way
//! into a path that nobody checked.
//!
//! Gateways in front of a host differ: some decode `%2f`, some decode twice, some cut a step at `;`. A path that any of
//! them could read as another one is refused.

use percent_encoding::percent_decode;

use crate::passthrough::UpstreamError;

/// The steps behind which an id stands that may have slashes, which clients escape: models and ARNs.
const BEFORE_IDS: [&str; 4] = ["model", "models", "guardrail", "async-invoke"];

/// How often a path is decoded. What is still escaped then is refused.
const MAX_ROUNDS: usize = 4;

/// Returns a path without its escapes, decoded until nothing changes, and without empty steps.
///
/// # Errors
/// [`UpstreamError::BadPath`] for a path that does not begin with `/`, or that has, escaped or not: a step `.` or `..`, a
/// backslash, a semicolon, a control character, bytes that are not UTF-8; or escaped: `?`, `#`, or a slash anywhere but in
/// the step behind `model`, `models`, `guardrail` or `async-invoke`.
pub fn decode_request_path(path: &str) -> Result<String, UpstreamError> {
    let bad = |why| UpstreamError::BadPath { why };
    let steps = path.strip_prefix('/');
    let steps = steps.ok_or_else(|| bad("it does not begin with /"))?;
    let mut decoded = String::with_capacity(path.len());
    let mut is_id = false;
    for step in steps.split('/') {
        let plain = decode_step(step).map_err(bad)?;
        if plain.contains('/') && !is_id {
            return Err(bad("it has an escaped slash where no id stands"));
        }
        for part in plain.split('/').filter(|part| !part.is_empty()) {
            decoded.extend(["/", part]);
        }
        is_id = BEFORE_IDS.contains(&plain.as_str());
    }
    Ok(decoded)
}

/// Decodes one step of a path, as it stands between two slashes.
fn decode_step(step: &str) -> Result<String, &'static str> {
    let mut plain = step.to_owned();
    for round in 0..=MAX_ROUNDS {
        check_spelling(&plain)?;
        // Escaped they belong to a step; decoded they would end the path.
        if plain.contains(['?', '#']) {
            return Err("it has an escaped ? or #");
        }
        let bytes: Vec<u8> = percent_decode(plain.as_bytes()).collect();
        let next = String::from_utf8(bytes).map_err(|_| "it has bytes that are not UTF-8")?;
        if next == plain {
            return Ok(plain);
        }
        if round == MAX_ROUNDS {
            break;
        }
        plain = next;
    }
    Err("it is escaped too often")
}

fn check_spelling(step: &str) -> Result<(), &'static str> {
    // Parsers of URLs take `\` for `/`, so it could hide a step.
    if step.contains('\\') {
        return Err("it has a backslash");
    }
    // Some hosts drop what follows, and then see another step: `..;x`.
    if step.contains(';') {
        return Err("it has a semicolon");
    }
    if step.contains(char::is_control) {
        return Err("it has a control character");
    }
    match step.split('/').any(|part| matches!(part, "." | "..")) {
        true => Err("it has a step . or .."),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_read_as_the_most_lenient_host_does() {
        for (path, plain) in [
            ("/v1/chat/completions", "/v1/chat/completions"),
            ("//v1///messages/", "/v1/messages"),
            ("/v1/ch%61t", "/v1/chat"),
            ("/v1/ch%2561t", "/v1/chat"),
            ("/v1/files/100%25", "/v1/files/100%"),
            ("/v1/files/a..b/...", "/v1/files/a..b/..."),
            ("/v1/models/org%2Fname", "/v1/models/org/name"),
            (
                "/model/arn%3Aaws%3Abedrock%3Aeu%3A1%3Ainference-profile%2Fx/converse",
                "/model/arn:aws:bedrock:eu:1:inference-profile/x/converse",
            ),
            ("/v1/f%C3%A9/x", "/v1/fé/x"),
        ] {
            assert_eq!(decode_request_path(path).unwrap(), plain, "{path}");
        }
    }

    #[test]
    fn a_path_that_could_become_another_is_refused() {
        let tricks = [
            "..",
            ".",
            "%2e%2E",
            ".%2e",
            "%252e%252e",
            "%25252e.",
            "..%2f..%2fadmin",
            "..;",
            "..;/x",
            "a;b",
            "%3b",
            "%253b",
            "a%2fb",
            "a%252Fb",
            "%5c..%5c",
            "..%5cx",
            "a%00",
            "a%0d%0ab",
            "%c0%ae%c0%ae",
            "%ff",
            "a%3fb",
            "a%23b",
            "%2525252525252e",
        ];
        for trick in tricks {
            for path in [
                format!("/v1/{trick}/x"),
                format!("/{trick}"),
                format!("/v1/files/{trick}?"),
            ] {
                let path = path.trim_end_matches('?');
                let refused = matches!(
                    decode_request_path(path),
                    Err(UpstreamError::BadPath { .. })
                );
                assert!(refused, "{path}: {:?}", decode_request_path(path));
            }
        }
        // An id may have slashes, but none that lead out of it.
        for path in [
            "/v1/models/a%2f..%2f..%2fadmin",
            "/v1/models/..%2fadmin",
            "/v1/models/%2e%2e",
            "x",
            "",
        ] {
            assert!(decode_request_path(path).is_err(), "{path}");
        }
    }
}
