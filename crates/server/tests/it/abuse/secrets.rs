//! No key is written down: not in a log, not in the database, not in an error, not in a figure.

use std::path::Path;
use std::time::Duration;

use contexture_server::{App, Config, NewKey};
use contexture_upstream_testkit::{
    Received, ScriptedProvider, Upstream, UpstreamResponse as Scripted,
};
use reqwest::Method;
use serde_json::json;

use super::canary::{Canary, none_in};
use super::capture::Capture;
use crate::proxy::{chat, configuration, says};
use crate::test_support::{Answer, Stand};

const GEMINI: &str = "/v1beta/models/gemini-2.5-flash:generateContent";

/// Every place in which clients put keys.
const PLACES: [(&str, &str); 7] = [
    ("x-contexture-key", ""),
    ("authorization", "Bearer "),
    ("authorization", "Basic "),
    ("x-api-key", ""),
    ("x-goog-api-key", ""),
    ("api-key", ""),
    ("cookie", "session="),
];

/// Requests of every kind.
const ASKED: [(&str, &str); 12] = [
    ("POST", "/v1/chat/completions"),
    ("POST", "/v1/responses"),
    ("POST", "/v1/messages"),
    ("POST", GEMINI),
    ("GET", "/v1/models"),
    ("DELETE", "/openai/v1/files/1"),
    ("GET", "/gone/v1/models"),
    ("POST", "/gone/v1/chat/completions"),
    ("GET", "/openai/../x"),
    ("GET", "/api/v1/conversations"),
    ("POST", "/api/v1/conversations"),
    ("GET", "/nothing/here"),
];

/// What is said to the provider, for an answer, errors, one that repeats the key, an answer that breaks off.
const SAID: [&str; 5] = [
    "Hi",
    "upstream: status 500",
    "upstream: drop 100",
    "repeat",
    BROKEN,
];

/// In a body that cannot be read.
const BROKEN: &str = "broken";

/// Repeats what it got where it is told to; else as scripted.
fn repeating(request: &Received) -> Scripted {
    use contexture_upstream_testkit::Provider as _;
    let text = String::from_utf8_lossy(&request.body);
    if request.method == "POST" && !text.contains("repeat") {
        return ScriptedProvider::default().respond_to(request);
    }
    let headers: Vec<_> = request
        .headers
        .iter()
        .map(|(name, value)| format!("{name}: {}", String::from_utf8_lossy(value)))
        .collect();
    let message = format!("Incorrect API key: {} {headers:?}", request.target);
    Scripted::json(401, &json!({"error": {"message": message}}))
        .with_header("x-echo", &headers.join("; "))
}

struct Scene {
    stand: Stand,
    _upstream: Upstream,
    folder: tempfile::TempDir,
    config: Config,
}

impl Scene {
    /// `key` is what the upstreams' configuration says of their key.
    async fn new(key: &str, more: &str) -> Self {
        let upstream = Upstream::start(repeating).await;
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("contexture.db");
        let engine = contexture::open(file.to_str().unwrap()).await.unwrap();
        // A port that was free a moment ago.
        let gone = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let gone = gone.local_addr().unwrap();
        let config = format!(
            "{}[upstreams.gone]\nformat = \"openai\"\nbase_url = \"http://{gone}\"\n{more}",
            configuration(&upstream.base_url(), "").replace(
                "[upstreams.openai]\n",
                "[upstreams.openai]\ndefault = true\n"
            )
        );
        let config = config.replace("base_url", &format!("{key}\nbase_url"));
        Self {
            stand: Stand::over(engine, &config).await,
            _upstream: upstream,
            folder,
            config: Config::parse(&config, "test.toml").unwrap(),
        }
    }

    /// Asks everything with a key in a header, or in the query.
    async fn ask_all(&self, header: Option<(&str, String)>, query: &str) -> Vec<Answer> {
        let mut answers = Vec::new();
        for (method, path) in ASKED {
            let said = if method == "POST" && !path.starts_with("/api") {
                &SAID[..]
            } else {
                &[""]
            };
            for said in said {
                let body = if path == GEMINI {
                    json!({"contents": [{"role": "user", "parts": [{"text": said}]}]})
                } else if path.starts_with("/api") {
                    json!({})
                } else {
                    let mut body = chat(&[says(said)]);
                    body["input"] = json!(said);
                    body["max_tokens"] = json!(10);
                    body
                };
                let mut request = self
                    .stand
                    .request(
                        Method::from_bytes(method.as_bytes()).unwrap(),
                        &format!("{path}{query}"),
                    )
                    .header("content-type", "application/json");
                if let Some((name, value)) = &header {
                    request = request.header(*name, value);
                }
                if method == "POST" {
                    let body = body.to_string();
                    let end = if *said == BROKEN {
                        body.len() - 1
                    } else {
                        body.len()
                    };
                    request = request.body(body[..end].to_owned());
                }
                answers.push(answer(request).await);
            }
        }
        answers
    }

    /// Every byte that is on disk.
    fn stored(&self) -> Vec<u8> {
        let files = std::fs::read_dir(self.folder.path()).unwrap();
        let files: Vec<_> = files.map(|file| file.unwrap().path()).collect();
        let names = |end: &str| {
            files
                .iter()
                .any(|file| file.to_string_lossy().ends_with(end))
        };
        assert!(names(".db") && names("-wal"), "{files:?}");
        files
            .iter()
            .flat_map(|file: &std::path::PathBuf| read(file))
            .collect()
    }
}

fn read(file: &Path) -> Vec<u8> {
    std::fs::read(file).unwrap()
}

/// The answer; of one that breaks off, what came.
async fn answer(request: reqwest::RequestBuilder) -> Answer {
    let mut response = request.send().await.unwrap();
    let (status, headers) = (response.status(), response.headers().clone());
    let mut bytes = Vec::new();
    while let Ok(Some(piece)) = response.chunk().await {
        bytes.extend_from_slice(&piece);
    }
    let text = String::from_utf8_lossy(&bytes).into_owned();
    Answer {
        status,
        headers,
        text,
    }
}

/// What is ours of the answers: errors of the proxy and of the API, and what became of requests.
async fn ours(scene: &Scene, answers: &[Answer]) -> String {
    let mut all = String::new();
    for answer in answers {
        let provider = answer.headers.contains_key("x-echo");
        if !provider {
            all.push_str(&format!("{:?} {}\n", answer.headers, answer.text));
        }
        let Some(id) = answer.headers.get("x-contexture-request") else {
            continue;
        };
        let path = format!("/api/v1/requests/{}", id.to_str().unwrap());
        let until_done = async {
            loop {
                let outcome = scene.stand.get(&path).await;
                if outcome.json()["done"] == true {
                    break outcome;
                }
                tokio::task::yield_now().await;
            }
        };
        let outcome = tokio::time::timeout(Duration::from_secs(60), until_done).await;
        all.push_str(&outcome.unwrap().text);
    }
    all
}

async fn look(canaries: &[Canary], scene: &Scene, answers: &[Answer], capture: &Capture) {
    let ours = ours(scene, answers).await;
    assert!(ours.contains("\"done\":true"), "something was listened to");
    none_in(canaries, "answers", &ours);
    let figures = scene.stand.get("/metrics").await.text;
    assert!(
        figures.contains("contexture_proxy_missed_total"),
        "{figures}"
    );
    none_in(canaries, "figures", &figures);
    none_in(canaries, "the database", scene.stored());
    let app = App::new(scene.stand.engine.clone(), scene.config.clone()).unwrap();
    none_in(
        canaries,
        "the configuration",
        format!("{:?} {app:?} {app:#?}", scene.config),
    );
    let logged = capture.text();
    assert!(logged.contains("a request was passed on"), "{logged}");
    none_in(canaries, "the log", logged);
}

#[tokio::test]
async fn keys_of_clients_pass_and_are_not_kept() {
    const SECRET: &str = "sk-canary-of-the-client/7Qz+4==";
    const IN_QUERY: &str = "AIza-canary-of-a-query-81xk";
    let capture = Capture::begin();
    let scene = Scene::new("", "").await;
    let mut answers = Vec::new();
    for (name, word) in PLACES {
        let key = Some((name, format!("{word}{SECRET}")));
        answers.extend(scene.ask_all(key, "").await);
    }
    let query = format!("?key={IN_QUERY}&alt=json");
    answers.extend(scene.ask_all(None, &query).await);
    let echoed = answers
        .iter()
        .filter(|answer| answer.text.contains("canary"));
    assert!(
        echoed.count() > 10,
        "the provider's answers pass as they are"
    );
    let canaries = [
        Canary::new("the client's key", SECRET),
        Canary::new("the query's key", IN_QUERY),
    ];
    look(&canaries, &scene, &answers, &capture).await;
}

#[tokio::test]
async fn our_keys_and_the_upstreams_are_not_written_down() {
    const UPSTREAM: &str = "sk-canary-of-the-upstream/3Rv+9==";
    const STRANGER: &str = "ctx_canary_of_a_stranger_66";
    let capture = Capture::begin();
    let keys = tempfile::tempdir().unwrap();
    let file = keys.path().join("key");
    std::fs::write(&file, UPSTREAM).unwrap();
    let key = NewKey::random().unwrap();
    let configured = format!(
        "[[keys]]\nname = \"team\"\nsha256 = \"{}\"\nowner = \"team\"\nscopes = [\"read\", \"write\", \"proxy\", \"admin\"]\n",
        key.hash()
    );
    let mut scene = Scene::new(
        &format!("key_file = {:?}", file.to_str().unwrap()),
        &configured,
    )
    .await;
    let mut answers = Vec::new();
    for secret in [STRANGER, key.secret()] {
        for (name, word) in PLACES {
            let key = Some((name, format!("{word}{secret}")));
            answers.extend(scene.ask_all(key, "").await);
        }
        answers.extend(
            scene
                .ask_all(None, &format!("?key={secret}&alt=json"))
                .await,
        );
    }
    // Where ours is at the head and another's at the place of the provider's.
    scene.stand.as_bearer(Some(key.secret()));
    let theirs = Some(("authorization", format!("Bearer {STRANGER}")));
    answers.extend(scene.ask_all(theirs, "").await);
    let canaries = [
        Canary::new("our key", key.secret()),
        Canary::new("the upstream's key", UPSTREAM),
        Canary::new("a stranger's key", STRANGER),
    ];
    look(&canaries, &scene, &answers, &capture).await;
}
