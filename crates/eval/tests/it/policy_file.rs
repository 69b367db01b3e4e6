//! What may stand in the file of a policy.

use contexture_eval::PolicyUnderTest;

fn parse(text: &str, window: Option<u64>) -> Result<String, String> {
    let policy = PolicyUnderTest::parse(text, "frugal.toml".as_ref(), window, 8_000);
    policy
        .map(|policy| policy.to_toml())
        .map_err(|error| error.to_string())
}

#[test]
fn policy_is_read_with_or_without_its_section() {
    let expected = "limit_tokens = 8000\npreview = 5000\n";
    assert_eq!(parse("preview = 5000", None).unwrap(), expected);
    assert_eq!(
        parse("[policies.frugal]\npreview = 5000", None).unwrap(),
        expected
    );
    let own = "limit_tokens = 20000\npreview = 5000\n";
    assert_eq!(
        parse("preview = 5000\nlimit_tokens = 20000", None).unwrap(),
        own
    );
    assert_eq!(
        parse("preview = 5000\nlimit_tokens = 9000", Some(20_000)).unwrap(),
        own
    );
}

#[test]
fn bad_policy_is_an_error_that_names_the_fault() {
    for (text, expected) in [
        ("preview = ", "frugal.toml cannot be used"),
        ("previews = 5000", "previews"),
        ("preview = 5", "preview"),
        (
            "[policies.a]\n[policies.b]\n",
            "it has not exactly one policy",
        ),
        (
            "[server]\n[policies.a]\n",
            "it has `server` beside its policies",
        ),
        ("policies = 1\n", "`policies` is no table"),
    ] {
        let error = parse(text, None).unwrap_err();
        assert!(error.contains(expected), "{text:?}: {error}");
    }
}
