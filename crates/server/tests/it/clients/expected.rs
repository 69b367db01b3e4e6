//! What a client must have seen in a scenario, by the scenario's name, whatever the client.

use contexture_upstream_testkit::Upstream;

use super::script::Saw;

/// By the end of a scenario's name: of each of these, one word is in what was seen.
const WORDS: &[(&str, &[&[&str]])] = &[
    ("models", &[&["scripted-mini"]]),
    ("count", &[&["okens"]]),
    ("plain", &[&["東京"]]),
    ("tools_stream", &[&["Paris"]]),
    ("stream", &[&["word0 "], &["word39 "]]),
    ("tools", &[&["18 degrees and sunny", "one two"]]),
    // The Codex CLI says something itself before it says what it is asked to.
    ("session", &[&["Answer 30: ", "Answer 31: "]]),
    ("resumed", &[&["Answer 3: "]]),
    ("abort", &[&["word1", "word2"]]),
    ("once", &[&["東京"]]),
    ("limited", &[&["asks for an error", "429"]]),
    ("failing", &[&["asks for an error", "high demand"]]),
    (
        "cut",
        &[&[
            "\"failure\":{",
            "RUN_ERROR",
            "turn.failed",
            "\"type\":\"error\"",
        ]],
    ),
];
/// These end with an error, and no others do.
const FAIL: &[&str] = &["limited", "failing", "cut"];
/// What no client says where all is well.
const ERRORS: &[&str] = &["\"error\":\"", "turn.failed", "RUN_ERROR"];
/// A connection that the provider closes without an answer is the status 502 through the server. Clients try both again; this
/// one only the status.
const NOT_TRIED_AGAIN: (&str, &str) = ("google_genai.py", "lost_once");

/// Each scenario ended as it should.
pub(crate) fn check(client: &str, saw: &Saw) {
    assert!(!saw.is_empty());
    for (scenario, value) in saw {
        if (client, scenario.as_str()) == NOT_TRIED_AGAIN {
            assert_eq!(value["error"], "RemoteProtocolError");
            continue;
        }
        let text = value.to_string();
        let ends = |(end, _): &&(&str, &[&[&str]])| scenario.ends_with(end);
        let (end, groups) = WORDS
            .iter()
            .find(ends)
            .unwrap_or_else(|| panic!("{scenario} is not known"));
        for words in *groups {
            assert!(
                words.iter().any(|word| text.contains(word)),
                "{scenario}: none of {words:?} in {text}"
            );
        }
        if !FAIL.contains(end) {
            assert!(
                !ERRORS.iter().any(|error| text.contains(error)),
                "{scenario}: {text}"
            );
        }
    }
}

/// The client cannot tell whether the server is there.
pub(crate) fn compare(client: &str, saw: &Saw, sees: &Saw) {
    assert!(saw.keys().eq(sees.keys()));
    for (scenario, saw) in saw {
        let sees = &sees[scenario];
        if (client, scenario.as_str()) == NOT_TRIED_AGAIN {
            assert!(sees.to_string().contains("東京"), "{sees}");
            continue;
        }
        assert!(
            saw == sees,
            "{scenario}\n  without  {saw}\n  through  {sees}"
        );
    }
}

/// Who left early was noticed: that a stream was given up reaches the provider.
pub(crate) async fn clients_left(upstream: &Upstream, saw: &Saw) {
    let aborted = saw
        .keys()
        .filter(|scenario| scenario.ends_with("abort"))
        .count();
    upstream.wait_until(|seen| seen.left >= aborted).await;
}
