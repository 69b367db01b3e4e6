//! Which header goes where: a table of what clients send and what providers get.

use contexture::Engine;
use contexture_server::{App, Config, NewKey, ServeError, Server};
use contexture_upstream_testkit::{Received, Upstream, UpstreamResponse as Scripted};
use reqwest::{Method, StatusCode};

use crate::proxy::configuration;
use crate::test_support::Stand;

/// One of the configuration's keys, another's, and the provider's own.
#[derive(Clone, Copy)]
enum Key {
    Ours,
    Theirs,
}

use Key::{Ours, Theirs};

const AUTHORIZATION: &str = "authorization";
const OPENAI: &str = "/openai/v1/models";
const ANTHROPIC: &str = "/anthropic/v1/models";
const GEMINI: &str = "/gemini/v1beta/models";
const CONFIGURED: &str = "sk-configured";

struct Row {
    path: &'static str,
    sent: &'static [(&'static str, Key)],
    /// What of the places for keys arrives where the configuration has no key for the upstream.
    passes: &'static [(&'static str, Key)],
}

/// With keys of ours; the first place with one of them says who calls.
const ROWS: [Row; 11] = [
    Row {
        path: OPENAI,
        sent: &[("x-contexture-key", Ours)],
        passes: &[],
    },
    Row {
        path: OPENAI,
        sent: &[("x-contexture-key", Ours), (AUTHORIZATION, Theirs)],
        passes: &[(AUTHORIZATION, Theirs)],
    },
    Row {
        path: ANTHROPIC,
        sent: &[
            ("x-contexture-key", Ours),
            ("x-api-key", Theirs),
            (AUTHORIZATION, Theirs),
        ],
        passes: &[("x-api-key", Theirs), (AUTHORIZATION, Theirs)],
    },
    Row {
        path: OPENAI,
        sent: &[("x-contexture-key", Ours), (AUTHORIZATION, Ours)],
        passes: &[],
    },
    Row {
        path: ANTHROPIC,
        sent: &[
            ("x-api-key", Ours),
            (AUTHORIZATION, Ours),
            ("api-key", Ours),
            ("x-goog-api-key", Ours),
        ],
        passes: &[],
    },
    Row {
        path: ANTHROPIC,
        sent: &[("x-api-key", Ours), (AUTHORIZATION, Theirs)],
        passes: &[(AUTHORIZATION, Theirs)],
    },
    Row {
        path: ANTHROPIC,
        sent: &[(AUTHORIZATION, Ours), ("x-api-key", Theirs)],
        passes: &[("x-api-key", Theirs)],
    },
    Row {
        path: GEMINI,
        sent: &[("x-goog-api-key", Ours), ("?key", Ours)],
        passes: &[],
    },
    Row {
        path: GEMINI,
        sent: &[("x-contexture-key", Ours), ("?key", Theirs)],
        passes: &[("?key", Theirs)],
    },
    Row {
        path: GEMINI,
        sent: &[("?key", Ours)],
        passes: &[],
    },
    Row {
        path: OPENAI,
        sent: &[("api-key", Ours)],
        passes: &[],
    },
];

/// The headers in which a provider may find a key, or something of another connection.
const WATCHED: [&str; 10] = [
    AUTHORIZATION,
    "x-api-key",
    "x-goog-api-key",
    "api-key",
    "cookie",
    "proxy-authorization",
    "x-contexture-key",
    "x-contexture-user",
    "keep-alive",
    "x-of-this-connection",
];

/// What arrived in the places that are watched.
fn arrived(received: &Received) -> Vec<(String, String)> {
    let headers = received.headers.iter().map(|(name, value)| {
        let value = String::from_utf8_lossy(value).into_owned();
        (name.to_ascii_lowercase(), value)
    });
    let watched = headers.filter(|(name, _)| WATCHED.contains(&name.as_str()));
    let query = received.target.split_once("key=");
    let query = query.map(|(_, key)| ("?key".to_owned(), key.to_owned()));
    let mut all: Vec<_> = watched.chain(query).collect();
    all.sort();
    all
}

fn written(places: &[(&str, Key)], key: &NewKey) -> Vec<(String, String)> {
    let value = |(name, whose): &(&str, Key)| {
        let word = if *name == AUTHORIZATION {
            "Bearer "
        } else {
            ""
        };
        let secret = match whose {
            Ours => key.secret(),
            Theirs => "sk-theirs",
        };
        ((*name).to_owned(), format!("{word}{secret}"))
    };
    let mut all: Vec<_> = places.iter().map(value).collect();
    all.sort();
    all
}

async fn send(stand: &Stand, row: &Row, key: &NewKey) -> StatusCode {
    let mut path = row.path.to_owned();
    let mut request = stand.request(Method::GET, "/");
    for (name, value) in written(row.sent, key) {
        match name.as_str() {
            "?key" => path = format!("{path}?key={value}"),
            name => request = request.header(name, value),
        }
    }
    let (client, request) = request.build_split();
    let mut request = request.unwrap();
    let url = format!("http://{}{path}", stand.address);
    *request.url_mut() = url.parse().unwrap();
    for (name, value) in [
        ("cookie", "session=1"),
        ("proxy-authorization", "Basic eDp5"),
        ("x-contexture-user", "ada"),
        ("connection", "keep-alive, x-of-this-connection"),
        ("keep-alive", "timeout=5"),
        ("x-of-this-connection", "1"),
    ] {
        request.headers_mut().insert(name, value.parse().unwrap());
    }
    client.execute(request).await.unwrap().status()
}

#[tokio::test]
async fn a_provider_gets_the_key_that_is_meant_for_it_and_no_other() {
    let upstream = Upstream::start(|_: &Received| Scripted::text(200, "yes")).await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("key");
    std::fs::write(&file, CONFIGURED).unwrap();
    let key = NewKey::random().unwrap();
    let keys = format!(
        "[[keys]]\nname = \"k\"\nowner = \"o\"\nsha256 = \"{}\"\n",
        key.hash()
    );
    let open = configuration(&upstream.base_url(), &keys);
    let keyed = open.replace("base_url", &format!("key_file = {file:?}\nbase_url"));
    let [open, keyed] = [
        Stand::over(Engine::in_memory(), &open).await,
        Stand::over(Engine::in_memory(), &keyed).await,
    ];
    for (number, row) in ROWS.iter().enumerate() {
        let last = || {
            upstream
                .received_requests()
                .last()
                .map(|last| arrived(last))
                .unwrap()
        };
        assert_eq!(send(&open, row, &key).await, StatusCode::OK, "row {number}");
        assert_eq!(last(), written(row.passes, &key), "row {number}");
        assert_eq!(
            send(&keyed, row, &key).await,
            StatusCode::OK,
            "row {number}"
        );
        let place = match row.path {
            OPENAI => (AUTHORIZATION, format!("Bearer {CONFIGURED}")),
            ANTHROPIC => ("x-api-key", CONFIGURED.to_owned()),
            _ => ("x-goog-api-key", CONFIGURED.to_owned()),
        };
        assert_eq!(last(), [(place.0.to_owned(), place.1)], "row {number}");
    }
    assert_eq!(upstream.received_requests().len(), 2 * ROWS.len());
}

/// Addresses, and whether they are listened on without keys.
#[tokio::test]
async fn only_loopback_is_open() {
    let addresses = [
        ("127.0.0.1:0", true),
        ("127.0.0.2:0", true),
        ("[::1]:0", true),
        ("0.0.0.0:0", false),
        ("[::]:0", false),
        ("[::ffff:0.0.0.0]:0", false),
        ("[::ffff:127.0.0.1]:0", false),
        ("[::ffff:192.0.2.1]:0", false),
        ("10.0.0.1:0", false),
        ("169.254.0.1:0", false),
        ("[fe80::1]:0", false),
        ("255.255.255.255:0", false),
    ];
    for (address, open) in addresses {
        let config = format!("[server]\nlisten = \"{address}\"");
        let config = Config::parse(&config, "test.toml").unwrap();
        let bound = Server::bind(App::new(Engine::in_memory(), config).unwrap()).await;
        let refused = matches!(bound, Err(ServeError::NoKeys { .. }));
        assert_eq!(refused, !open, "{address}: {bound:?}");
    }
}

/// Names by which a browser may be led here, and pages that may lead it.
#[tokio::test]
async fn only_this_machines_names_are_answered() {
    let stand = Stand::with(&configuration("http://127.0.0.1:9", "")).await;
    let own = format!("http://localhost:{}", stand.address.port());
    let here = [
        ("host", "localhost"),
        ("host", "LOCALHOST:1"),
        ("host", "127.1.2.3:80"),
        ("host", "[::1]:80"),
        ("origin", &*own),
    ];
    let elsewhere = [
        ("host", "localhost.:80"),
        ("host", "localhost.evil.example"),
        ("host", "127.0.0.1.nip.io"),
        ("host", "2130706433"),
        ("host", "0x7f.1"),
        ("host", "0.0.0.0"),
        ("host", "169.254.169.254"),
        ("host", "[::ffff:10.0.0.1]"),
        ("host", "localhost@evil.example"),
        ("host", "localhost:80@evil.com"),
        ("origin", "http://localhost:3000"),
        ("origin", "https://[::1]"),
        ("host", ""),
        ("origin", "null"),
        ("origin", "http://evil.example"),
        ("origin", "http://localhost.evil.example"),
        ("origin", "http://localhost@evil.example"),
        ("origin", "file://"),
        ("origin", "chrome-extension://abcdef"),
    ];
    for path in ["/api/v1/conversations", "/openai/v1/models"] {
        for (name, value) in here {
            let request = stand.request(Method::GET, path).header(name, value);
            let status = stand.send(request).await.status;
            assert_ne!(status, StatusCode::FORBIDDEN, "{path} {name}: {value}");
        }
        for (name, value) in elsewhere {
            let request = stand.request(Method::GET, path).header(name, value);
            let status = stand.send(request).await.status;
            assert_eq!(status, StatusCode::FORBIDDEN, "{path} {name}: {value}");
        }
    }
}
