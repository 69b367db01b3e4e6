//! What a configuration may say, and what is said about one that is wrong.

use contexture::Owner;
use contexture_server::config::AccessScope;
use contexture_server::{Config, Overrides};

const WHOLE: &str = r#"
[server]
listen = "127.0.0.1:9000"
db = "support.db"
owner = "acme/ada"
[server.limits]
body_bytes = 1000
per_minute = 600

[[keys]]
name = "laptop"
sha256 = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"
owner = "acme/ada"
scopes = ["read"]

[upstreams.openai]
format = "openai"
base_url = "https://api.openai.com"
key_env = "OPENAI_API_KEY"
default = true

[policies.frugal]
window = { tokens = 16000 }
clear = { keep_recent = 5 }
preview = 5000
compact = "manifest"
tools = { deny = ["rm"], select = 20 }
memory = { of = "owner", placement = "tail", budget_tokens = 500, tools = true }
skills = ["skills"]
redact = { kinds = ["api_key"] }
cache_marks = true
limit_tokens = 32000
ingest_timeout_ms = 500
cost_condition = "fits"

[[routes]]
upstream = "openai"
model = "gpt-*"
key = "laptop"
policy = "frugal"
"#;

#[test]
fn everything_that_may_be_said() {
    let config = Config::parse(WHOLE, "contexture.toml").unwrap();
    assert_eq!(config.server.limits.body_bytes, 1000);
    assert_eq!(config.server.limits.headers, 100);
    assert_eq!(config.keys[0].scopes, [AccessScope::Read]);
    assert_eq!(config.upstreams["openai"].format.as_str(), "openai");
    let policy = &config.policies["frugal"];
    assert_eq!(policy.window.unwrap().tokens, Some(16000));
    assert_eq!(policy.clear.as_ref().unwrap().keep_recent, 5);
    assert!(policy.tools.allows("ls") && !policy.tools.allows("rm"));
    assert_eq!(
        policy.cost_condition,
        contexture_api::policy::CostCondition::Fits
    );
    assert_eq!(config.routes[0].model.as_deref(), Some("gpt-*"));
    assert!(!format!("{config:?}").contains("2cf24d"));
}

#[test]
fn older_spellings_of_keys_mean_the_same() {
    let old = "[server.limits]\nbehind_bytes = 7\nwarm_bytes = 8\n[policies.p]\npays = \"fits\"\n";
    let older =
        "[server.limits]\nstore_queue_bytes = 7\nwarm_bytes = 8\n[policies.p]\npays = \"fits\"\n";
    let new = "[server.limits]\nmemory_bytes = 7\nhandle_cache_bytes = 8\n[policies.p]\ncost_condition = \"fits\"\n";
    for text in [old, older, new] {
        let config = Config::parse(text, "c.toml").unwrap();
        assert_eq!(config.server.limits.memory_bytes, 7);
        assert_eq!(config.server.limits.handle_cache_bytes, 8);
        assert_eq!(
            config.policies["p"].cost_condition,
            contexture_api::policy::CostCondition::Fits
        );
    }
}

#[test]
fn key_in_both_spellings_is_an_error_that_names_both() {
    for (text, expected) in [
        (
            "[server.limits]\nmemory_bytes = 7\nbehind_bytes = 8\n",
            "c.toml:3: server.limits.behind_bytes: `behind_bytes` is the older spelling of `memory_bytes`; give one of them",
        ),
        (
            "[server.limits]\nwarm_bytes = 7\nhandle_cache_bytes = 8\n",
            "c.toml:2: server.limits.warm_bytes: `warm_bytes` is the older spelling of `handle_cache_bytes`; give one of them",
        ),
        (
            "[policies.p]\npays = \"fits\"\ncost_condition = \"fits\"\n",
            "c.toml:2: policies.p.pays: `pays` is the older spelling of `cost_condition`; give one of them",
        ),
    ] {
        let error = Config::parse(text, "c.toml").unwrap_err();
        assert_eq!(error.to_string(), expected);
    }
}

#[test]
fn flags_go_before_the_file_and_the_file_before_defaults() {
    let file = Config::parse(WHOLE, "contexture.toml").unwrap();
    let kept = file.clone().with_overrides(Overrides::default()).server;
    assert_eq!(kept.listen.port(), 9000);
    assert_eq!(kept.db.as_deref(), Some("support.db"));
    let said = file.with_overrides(Overrides {
        listen: Some("127.0.0.1:1".parse().unwrap()),
        db: Some("other.db".to_owned()),
        owner: Some(Owner::new("bob").unwrap()),
    });
    assert_eq!(said.server.listen.port(), 1);
    assert_eq!(said.server.db.as_deref(), Some("other.db"));
    assert_eq!(said.server.owner.as_str(), "bob");
    let default = Config::default().server;
    assert_eq!(default.listen.to_string(), "127.0.0.1:8484");
    assert_eq!(default.owner, Owner::local());
}

#[test]
fn what_is_wrong_is_named_with_its_line() {
    let key = |rest: &str| {
        format!(
            "[[keys]]\nname = \"a\"\nowner = \"o\"\nsha256 = \"{}\"\n{rest}",
            "0".repeat(64)
        )
    };
    let upstream = |rest: &str| format!("[upstreams.a]\nformat = \"openai\"\n{rest}");
    let cases: &[(String, &str)] = &[
        (
            "[server]\nlisen = 1".into(),
            "c.toml:2: server.lisen: unknown field `lisen`",
        ),
        ("[server".into(), "c.toml:1: "),
        (
            "[server]\nlisten = \"here\"".into(),
            "c.toml:2: server.listen: invalid socket address syntax",
        ),
        (
            "[server]\nowner = \"a b\"".into(),
            "c.toml:2: server.owner: ",
        ),
        (
            "[server.limits]\n\nheaders = 3".into(),
            "c.toml:3: server.limits.headers: 3 is too little; at least 16",
        ),
        (
            "[server.limits]\nbody_bytes = -1".into(),
            "c.toml:2: server.limits.body_bytes: ",
        ),
        (
            "[[keys]]\nname = \"a\"\nowner = \"o\"\nsha256 = \"secret\"".into(),
            "c.toml:4: keys[0].sha256: expected the key's SHA-256",
        ),
        (
            "[[keys]]\nname = \"a\"\nowner = \"o\"".into(),
            "c.toml:1: keys[0]: missing field `sha256`",
        ),
        (
            key("scopes = [\"root\"]"),
            "c.toml:5: keys[0].scopes: unknown variant `root`",
        ),
        (
            key(&key("")),
            "c.toml:6: keys[1].name: there is another key \"a\"",
        ),
        (
            upstream("base_url = \"file:///etc\""),
            "c.toml:3: upstreams.a.base_url: expected an address",
        ),
        (
            upstream("base_url = \"https://a:b@c\""),
            "c.toml:3: upstreams.a.base_url: no credentials belong",
        ),
        (
            upstream("base_url = \"https://\""),
            "c.toml:3: upstreams.a.base_url: expected https://HOST",
        ),
        (
            upstream("base_url = \"https://a/v1/chat/completions/\""),
            "c.toml:3: upstreams.a.base_url: expected the address in front of the paths of calls",
        ),
        (
            upstream("base_url = \"https://a?b=c\""),
            "c.toml:3: upstreams.a.base_url: neither a query",
        ),
        (
            upstream("base_url = \"https://a\"\nkey_env = \"A\"\nkey_file = \"b\""),
            "c.toml:5: upstreams.a.key_file: key_env says",
        ),
        (
            "[upstreams.api]\nformat = \"openai\"\nbase_url = \"https://a\"".into(),
            "c.toml:1: upstreams.api: paths under /api are taken",
        ),
        (
            "[upstreams.a]\nformat = \"gemini\"\nbase_url = \"https://a\"\ndefault = true\n\
             [upstreams.b]\nformat = \"gemini\"\nbase_url = \"https://b\"\ndefault = true"
                .into(),
            "c.toml:8: upstreams.b.default: a is the default for gemini already",
        ),
        (
            "[[routes]]\npolicy = \"p\"".into(),
            "c.toml:2: routes[0].policy: there is no policy \"p\"; none is configured",
        ),
        (
            "[policies.q]\n[[routes]]\nupstream = \"u\"\npolicy = \"q\"".into(),
            "c.toml:3: routes[0].upstream: there is no upstream \"u\"; none is configured",
        ),
        (
            "[policies.q]\nwindow = { turns = 1, tokens = 2 }".into(),
            "c.toml:2: policies.q.window: expected { turns = N } or { tokens = N }",
        ),
        (
            "[policies.q]\nwindow = { turns = 0 }".into(),
            "c.toml:2: policies.q.window: expected { turns = N }",
        ),
        (
            "[policies.q]\npreview = 599".into(),
            "c.toml:2: policies.q.preview: 599 is too little; at least 600",
        ),
        (
            "[policies.q]\nlimit_tokens = 1".into(),
            "c.toml:2: policies.q.limit_tokens: 1 is too little",
        ),
        (
            "[policies.q]\n[policies.q.tools]\nselect = 0".into(),
            "c.toml:3: policies.q.tools.select: 0 is too little; at least 1",
        ),
        (
            "[policies.q]\nmemory = { budget_tokens = 5 }".into(),
            "c.toml:2: policies.q.memory.budget_tokens: 5 is too little; at least 100",
        ),
        (
            "[policies.q]\nmemory = { of = \"all\" }".into(),
            "c.toml:2: policies.q.memory: unknown variant `all`, expected `user` or `owner`",
        ),
        (
            "[policies.q]\nredact = 1".into(),
            "c.toml:2: policies.q.redact: invalid type: integer `1`, expected true, false or a table",
        ),
        (
            "[policies.q]\nredact = { kinds = [\"passport\"] }".into(),
            "c.toml:2: policies.q.redact: unknown variant `passport`, expected one of `api_key`",
        ),
        (
            "[policies.q]\nredact = { kinds = [] }".into(),
            "c.toml:2: policies.q.redact: no kind is named",
        ),
        (
            "[policies.q]\nredact = { kind = \"api_key\" }".into(),
            "c.toml:2: policies.q.redact: unknown field `kind`, expected `kinds`",
        ),
        (
            "[policies.q]\nwindows = 1".into(),
            "c.toml:2: policies.q.windows: unknown field `windows`",
        ),
        (
            "[policies.\"a b\"]".into(),
            "c.toml:1: policies.a b: expected a name",
        ),
        (
            "[policies.q]\n[[routes]]\npolicy = \"p\"".into(),
            "c.toml:3: routes[0].policy: there is no policy \"p\"; there are q",
        ),
    ];
    for (text, expected) in cases {
        let error = Config::parse(text, "c.toml").unwrap_err().to_string();
        assert!(error.starts_with(expected), "{text}\n{error}\n{expected}");
        assert!(
            !error.contains("secret") && !error.contains('\n'),
            "{error}"
        );
    }
    let error = Config::load("no/such.toml".as_ref())
        .unwrap_err()
        .to_string();
    assert!(
        error.starts_with("no/such.toml: cannot be read: "),
        "{error}"
    );
}

#[test]
fn folders_of_policies_are_there() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("contexture.toml");
    let load = |skills: &str| {
        let text = format!("[policies.q]\nskills = [{:?}, {skills:?}]\n", folder.path());
        std::fs::write(&file, text).unwrap();
        Config::load(&file)
    };
    assert_eq!(load("/").unwrap().policies["q"].skills.len(), 2);
    let error = load("no/such/folder").unwrap_err().to_string();
    let expected = ":2: policies.q.skills[1]: no/such/folder is no folder that can be read: ";
    assert!(error.contains(expected), "{error}");
    load("/dev/null").unwrap_err();
}

#[test]
fn the_example_is_a_configuration() {
    let text = include_str!("../../../../deploy/contexture.toml");
    let config = Config::parse(text, "deploy/contexture.toml").unwrap();
    assert_eq!(config.upstreams.len(), 2);
    assert!(config.keys.is_empty());
    // Its keys are written as one would write them.
    let keys: String = text
        .lines()
        .skip_while(|line| *line != "# [[keys]]")
        .take_while(|line| line.starts_with('#'))
        .map(|line| format!("{}\n", line.trim_start_matches("# ")))
        .collect();
    let config = Config::parse(&keys, "deploy/contexture.toml").unwrap();
    assert_eq!(config.keys.len(), 1);
}
