//! A server that is killed while it answers: the same request under its key is made once, and soon.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::command::Place;
use crate::serving::Serving;
use crate::two_processes::{Came, ask_with, database};

/// Messages of one request: as many as a server takes, so that it runs for a while.
const MESSAGES: usize = 256;

const KEY: &str = "idempotency-key";

/// One request under a key, to a server that is killed meanwhile.
struct Attempt {
    conversation: String,
    key: String,
    body: String,
}

impl Attempt {
    fn new(round: usize) -> Self {
        let said = |number: usize| json!({"role": "user", "parts": [{"type": "text", "text": format!("{round}: {number}")}]});
        let messages: Vec<_> = (0..MESSAGES).map(said).collect();
        Self {
            conversation: format!("talk-{round}"),
            key: format!("{KEY}: round-{round}"),
            body: json!({"messages": messages}).to_string(),
        }
    }

    async fn send(&self, server: &str) -> Option<Came> {
        let path = format!("/api/v1/conversations/{}/messages", self.conversation);
        ask_with(server, "POST", &path, &self.key, &self.body).await
    }

    /// Sends it, and kills the server once the key is claimed.
    async fn send_and_kill(&self, mut serving: Serving) {
        let server = serving.address.clone();
        let body = json!({"id": self.conversation}).to_string();
        let made = ask_with(
            &server,
            "POST",
            "/api/v1/conversations",
            "accept: */*",
            &body,
        )
        .await;
        assert_eq!(made.unwrap().status, "201");
        // Of two at the same time one is told that the other is under way: then the key is claimed.
        tokio::select! {
            first = self.send(&server) => first.unwrap(),
            second = self.send(&server) => second.unwrap(),
        };
        // `kill -9`.
        serving.child.kill().unwrap();
        serving.child.wait().unwrap();
    }

    /// Asks how many items there are.
    async fn stored(&self, server: &str) -> usize {
        let path = format!("/api/v1/conversations/{}", self.conversation);
        let came = ask_with(server, "GET", &path, "accept: */*", "")
            .await
            .unwrap();
        came.json()["items"].as_u64().unwrap() as usize
    }
}

fn serve(place: &Place, db: &str) -> Serving {
    let owner = format!("killed-{}", std::process::id());
    Serving::start(place, &format!("--owner {owner} --db {db}"), &[])
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_request_is_made_again_at_once_on_sqlite() {
    let place = Place::new();
    let mut open = 0;
    for round in 0..40 {
        let attempt = Attempt::new(round);
        attempt.send_and_kill(serve(&place, "s.db")).await;
        let serving = serve(&place, "s.db");
        let came = attempt.send(&serving.address).await.unwrap();
        assert_eq!(came.status, "201", "{came:?}");
        assert_eq!(attempt.stored(&serving.address).await, MESSAGES);
        // Otherwise it was answered just before the server died.
        open += usize::from(came.header("idempotency-replayed").is_none());
        if open == 3 {
            return;
        }
    }
    panic!("the server was never killed between the claim and the answer");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_request_is_made_again_soon_on_postgres() {
    let place = Place::new();
    place.ok(&format!("--db {} migrate", database()));
    let db = database();
    for round in 0..40 {
        let attempt = Attempt::new(round);
        attempt.send_and_kill(serve(&place, &db)).await;
        let serving = serve(&place, &db);
        let came = attempt.send(&serving.address).await.unwrap();
        if came.status == "201" {
            continue;
        }
        let asked = Instant::now();
        assert_eq!(came.json()["code"], "in_progress", "{came:?}");
        let wait: u64 = came.header("retry-after").unwrap().parse().unwrap();
        assert!((1..=10).contains(&wait), "{wait}");
        // What the answer promises is what the test is about.
        tokio::time::sleep(Duration::from_secs(wait)).await;
        let came = attempt.send(&serving.address).await.unwrap();
        assert_eq!(came.status, "201", "after {:?}: {came:?}", asked.elapsed());
        assert_eq!(attempt.stored(&serving.address).await, MESSAGES);
        return;
    }
    panic!("the server was never killed between the claim and the answer");
}
