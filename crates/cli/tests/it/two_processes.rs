//! Two servers on one PostgreSQL, one of them killed in the middle of its answers.

use std::time::Duration;

use contexture_upstream_testkit::{Gate, Received, ScriptedProvider, Upstream, UpstreamResponse};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::command::Place;
use crate::serving::Serving;

const VARIABLE: &str = "CONTEXTURE_TEST_POSTGRES";

/// How many talk at the same time.
const TALKS: usize = 12;

/// What the provider's key is, in the environment of the servers.
const KEY: &str = "sk-canary-of-the-environment";

/// The database of the tests.
pub(crate) fn database() -> String {
    let server = std::env::var(VARIABLE).unwrap_or_else(|_| {
        panic!(
            "this test needs a PostgreSQL server: run `cargo xtask test -p contexture-cli`, which starts one, or name \
             one in {VARIABLE}=postgres://superuser:password@host:port/postgres"
        )
    });
    let (start, _) = server.rsplit_once('/').unwrap();
    format!("{start}/postgres")
}

/// A server for an owner of its own.
fn serve(place: &Place, owner: &str) -> Serving {
    let line = format!("--config c.toml --owner {owner} --db {}", database());
    Serving::start(place, &line, &[("PROVIDER_KEY", KEY)])
}

/// An answer: its head, and its body as far as it came.
#[derive(Debug)]
pub(crate) struct Came {
    pub(crate) status: String,
    headers: String,
    body: String,
}

impl Came {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut lines = self
            .headers
            .lines()
            .filter_map(|line| line.split_once(": "));
        lines
            .find(|(known, _)| known.eq_ignore_ascii_case(name))
            .map(|(_, value)| value)
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

/// Asks, and reads until the connection ends, however it does. `None` if no head came.
async fn ask(address: &str, method: &str, path: &str, body: &str) -> Option<Came> {
    ask_with(address, method, path, "x-contexture-wait: ingest", body).await
}

/// The same with this header.
pub(crate) async fn ask_with(
    address: &str,
    method: &str,
    path: &str,
    header: &str,
    body: &str,
) -> Option<Came> {
    let mut stream = TcpStream::connect(address).await.ok()?;
    // HTTP/1.0: the body comes without chunks, and the connection ends with it.
    let head = format!(
        "{method} {path} HTTP/1.0\r\nhost: localhost\r\ncontent-type: application/json\r\n\
         {header}\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(head.as_bytes()).await.ok()?;
    let mut bytes = Vec::new();
    // A connection that is cut has said what it has said.
    let _ = stream.read_to_end(&mut bytes).await;
    let text = String::from_utf8(bytes).unwrap();
    let (head, body) = text.split_once("\r\n\r\n")?;
    let (status, headers) = head.split_once("\r\n")?;
    assert!(!text.contains(KEY), "{text}");
    Some(Came {
        status: status.split(' ').nth(1)?.to_owned(),
        headers: headers.to_owned(),
        body: body.to_owned(),
    })
}

/// A client that re-sends all it knows, to whichever server answers.
struct Talk {
    number: usize,
    history: Vec<Value>,
    conversation: Option<String>,
    /// What was acknowledged: the questions that were answered, and the answers.
    acknowledged: usize,
}

impl Talk {
    fn new(number: usize) -> Self {
        Self {
            number,
            history: Vec::new(),
            conversation: None,
            acknowledged: 0,
        }
    }

    /// Says something, to the first of the servers that gives a whole answer.
    async fn say(&mut self, text: &str, servers: &[&str]) -> Came {
        let text = format!("{text}, says number {}", self.number);
        self.history.push(json!({"role": "user", "content": text}));
        let body = json!({"model": "gpt-4.1", "messages": self.history}).to_string();
        for server in servers {
            let came = ask(server, "POST", "/v1/chat/completions", &body).await;
            let Some(came) = came.filter(|came| came.status == "200") else {
                continue;
            };
            let Ok(answer) = serde_json::from_str::<Value>(&came.body) else {
                continue;
            };
            let said = &answer["choices"][0]["message"]["content"];
            self.history
                .push(json!({"role": "assistant", "content": said}));
            self.acknowledged = self.history.len();
            return came;
        }
        panic!("no server has answered number {}", self.number);
    }
}

/// Waits until what came of a request is stored.
async fn stored(server: &str, came: &Came) -> Value {
    let id = came.header("x-contexture-request").unwrap();
    loop {
        let outcome = ask(server, "GET", &format!("/api/v1/requests/{id}"), "").await;
        let outcome = outcome.unwrap().json();
        if outcome["done"] == true {
            assert_eq!(outcome["failed"], Value::Null, "{outcome}");
            return outcome;
        }
        tokio::task::yield_now().await;
    }
}

/// Answers at once, but what is said to be cut only half, until the gate opens.
fn halting(gate: &Gate) -> impl Fn(&Received) -> UpstreamResponse + Send + Sync + use<> {
    use contexture_upstream_testkit::Provider as _;
    let gate = gate.clone();
    move |request| {
        assert_eq!(
            request.header("authorization"),
            Some(&*format!("Bearer {KEY}"))
        );
        let answer = ScriptedProvider::default().respond_to(request);
        let messages = request.json();
        let last = messages["messages"]
            .as_array()
            .and_then(|all| all.last().cloned());
        let cut = last.is_some_and(|last| last.to_string().contains("slowly"));
        match cut {
            true => answer.in_pieces_of(20).gated_by(&gate),
            false => answer,
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn one_is_killed_and_the_other_goes_on() {
    let gate = Gate::new_closed();
    let upstream = Upstream::start(halting(&gate)).await;
    let place = Place::new();
    let config = format!(
        "[upstreams.openai]\nformat = \"openai\"\nbase_url = \"{}\"\nkey_env = \"PROVIDER_KEY\"\n",
        upstream.base_url()
    );
    place.write("c.toml", config);
    let owner = format!("two-{}", std::process::id());
    place.ok(&format!("--db {} migrate", database()));
    let mut first = serve(&place, &owner);
    let second = serve(&place, &owner);
    let (one, two) = (first.address.clone(), second.address.clone());

    // A turn each, by turns on either server: what one stored, the other finds.
    let mut talks: Vec<_> = (0..TALKS).map(Talk::new).collect();
    for talk in &mut talks {
        let came = talk.say("hello", &[&one]).await;
        let outcome = stored(&one, &came).await;
        talk.conversation = outcome["conversation"].as_str().map(str::to_owned);
        let came = talk.say("and on", &[&two]).await;
        let outcome = stored(&two, &came).await;
        assert_eq!(outcome["matched"], "prefix", "{outcome}");
        assert_eq!(
            outcome["conversation"].as_str(),
            talk.conversation.as_deref()
        );
    }

    // All ask the first, which is killed when each of them has half an answer; they ask the other.
    let before = upstream.received_requests().len();
    let asking: Vec<_> = talks
        .into_iter()
        .map(|mut talk| {
            let (one, two) = (one.clone(), two.clone());
            tokio::spawn(async move {
                let came = talk.say("slowly", &[&one, &two]).await;
                (talk, came)
            })
        })
        .collect();
    upstream
        .wait_until(|seen| seen.received.len() == before + TALKS)
        .await;
    // `kill -9`.
    first.child.kill().unwrap();
    upstream.wait_until(|seen| seen.left == TALKS).await;
    gate.release_chunks(TALKS * 10_000);
    let mut after = Vec::new();
    for asked in asking {
        let (talk, came) = asked.await.unwrap();
        let outcome = stored(&two, &came).await;
        assert_eq!(
            outcome["conversation"].as_str(),
            talk.conversation.as_deref(),
            "{outcome}"
        );
        after.push(talk);
    }

    // Nothing acknowledged is lost, nothing is there twice, and it goes on.
    for talk in &mut after {
        let came = talk.say("and now", &[&one, &two]).await;
        let outcome = stored(&two, &came).await;
        assert_eq!(outcome["matched"], "prefix", "{outcome}");
        let id = talk.conversation.as_deref().unwrap();
        assert_eq!(outcome["conversation"], id);
        let path = format!("/api/v1/conversations/{id}/items?limit=500");
        let listed = ask(&two, "GET", &path, "").await.unwrap();
        let text = listed.json().to_string();
        for message in &talk.history {
            let said = message["content"].as_str().unwrap();
            let said = serde_json::to_string(said).unwrap();
            assert_eq!(
                text.matches(said.trim_matches('"')).count(),
                1,
                "{said} in {text}"
            );
        }
        assert_eq!(talk.acknowledged, 8);
    }
    let listed = ask(&two, "GET", "/api/v1/conversations?limit=500", "").await;
    let listed = listed.unwrap().json();
    assert_eq!(listed["conversations"].as_array().unwrap().len(), TALKS);
}

/// An agent that runs a tool until the model is done, each request to the other server.
struct Agent {
    name: Option<String>,
    /// Time that its tool takes.
    pause: Duration,
}

/// Requests of an agent's loop.
const STEPS: usize = 30;

impl Agent {
    /// Runs its loop; returns the answers, in order.
    async fn run(&self, servers: &[&str; 2]) -> Vec<Came> {
        let Self { name, pause } = self;
        let calls = STEPS - 1;
        let first = format!("{name:?} {pause:?}\nupstream: again {calls} look {{\"at\":\"x\"}}");
        let mut history = vec![json!({"role": "user", "content": first})];
        let header = match name {
            Some(name) => format!("x-contexture-conversation: {name}"),
            None => "accept: application/json".to_owned(),
        };
        let look = json!({"name": "look", "parameters": {"type": "object"}});
        let tools = json!([{"type": "function", "function": look}]);
        let mut all: Vec<Came> = Vec::new();
        loop {
            let body = json!({"model": "gpt-4.1", "messages": history, "tools": tools}).to_string();
            let server = servers[all.len() % 2];
            let came = ask_with(server, "POST", "/v1/chat/completions", &header, &body).await;
            let came = came.unwrap();
            assert_eq!(came.status, "200", "{came:?}");
            let message = came.json()["choices"][0]["message"].take();
            all.push(came);
            let Some(call) = message["tool_calls"][0]["id"].as_str().map(str::to_owned) else {
                return all;
            };
            history.push(message);
            tokio::time::sleep(*pause).await;
            let output = format!("output {}", all.len());
            history.push(json!({"role": "tool", "tool_call_id": call, "content": output}));
        }
    }

    /// It is one conversation with one branch, and each item is there once.
    async fn check(servers: &[&str; 2], all: &[Came]) {
        assert_eq!(all.len(), STEPS);
        let mut conversations = Vec::new();
        for (came, server) in all.iter().zip(servers.iter().cycle()) {
            let outcome = stored(server, came).await;
            assert_eq!(outcome["raced"], false, "{outcome}");
            conversations.push(outcome["conversation"].as_str().unwrap().to_owned());
        }
        conversations.dedup();
        assert_eq!(conversations.len(), 1, "{conversations:?}");
        let path = format!("/api/v1/conversations/{}", conversations[0]);
        let conversation = ask(servers[0], "GET", &path, "").await.unwrap().json();
        assert_eq!(conversation["branches"], 1, "{conversation}");
        // A question, a text and a call and its output in each step, and the last answer.
        assert_eq!(conversation["items"], 3 * STEPS - 1, "{conversation}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn tool_loops_across_servers_stay_whole() {
    let upstream = Upstream::start(ScriptedProvider::default()).await;
    let place = Place::new();
    let config = format!(
        "[upstreams.openai]\nformat = \"openai\"\nbase_url = \"{}\"\n",
        upstream.base_url()
    );
    place.write("c.toml", config);
    let owner = format!("loops-{}", std::process::id());
    place.ok(&format!("--db {} migrate", database()));
    let running = [serve(&place, &owner), serve(&place, &owner)];
    let servers = running.each_ref().map(|server| server.address.clone());
    let agents: Vec<Agent> = [0, 5, 20, 50]
        .into_iter()
        .flat_map(|pause| [None, Some(format!("agent-{pause}"))].map(|name| (pause, name)))
        .map(|(pause, name)| Agent {
            name,
            pause: Duration::from_millis(pause),
        })
        .collect();
    let count = agents.len();
    let run = |agent: Agent| {
        let servers = servers.clone();
        tokio::spawn(async move { agent.run(&servers.each_ref().map(|one| &**one)).await })
    };
    let runs: Vec<_> = agents.into_iter().map(run).collect();
    for run in runs {
        let servers = servers.each_ref().map(|one| &**one);
        Agent::check(&servers, &run.await.unwrap()).await;
    }
    let listed = ask(&servers[1], "GET", "/api/v1/conversations?limit=500", "").await;
    let listed = listed.unwrap().json();
    assert_eq!(listed["conversations"].as_array().unwrap().len(), count);
}
