//! Two servers over one database file: a client's next request goes to the one that has not recorded its answer.

use std::sync::Arc;
use std::time::Duration;

use contexture::Engine;
use contexture::store_sqlite::{SqliteOptions, SqliteStore};
use contexture_upstream_testkit::{Provider, ScriptedProvider};
use futures_util::future::join_all;
use serde_json::Value;
use tempfile::TempDir;

use super::full_speed::{Agent, Run, check_across, tool_loop_agents};
use super::own_talk::{MODES, text_streamed};
use super::{Proxied, chat, said, says};

const CHAT: &str = "/v1/chat/completions";

/// Two servers, each with a store of its own on the same file.
async fn pair<P: Provider>(provider: impl Fn() -> P, config: &str) -> ([Proxied; 2], TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("shared.db");
    let engine = || {
        let options = SqliteOptions {
            shared: true,
            ..SqliteOptions::default()
        };
        Engine::new(Arc::new(SqliteStore::open_with(&file, options).unwrap()))
    };
    let (one, two) = (engine(), engine());
    let one = Proxied::to(provider(), one, config).await;
    let two = Proxied::to(provider(), two, config).await;
    ([one, two], folder)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn tool_loop_across_servers_is_one_conversation() {
    let (servers, _folder) = pair(ScriptedProvider::default, "").await;
    let servers: Vec<&Proxied> = servers.iter().collect();
    let agents = tool_loop_agents();
    let runs = join_all(agents.iter().map(|agent| agent.run_across(&servers))).await;
    assert!(runs.iter().all(|run| run.heads.len() == 30));
    check_across(&servers, &runs).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn every_format_across_servers_is_one_conversation() {
    let (servers, _folder) = pair(ScriptedProvider::default, "").await;
    let servers: Vec<&Proxied> = servers.iter().collect();
    let mut runs: Vec<Run> = Vec::new();
    for format in text_streamed() {
        for mode in MODES {
            let agent = Agent {
                format,
                mode,
                name: None,
                pause: Duration::ZERO,
                first: format!("{format} {mode:?}\nupstream: again 5 look {{\"at\":\"x\"}}"),
                listing: true,
            };
            runs.push(agent.run_across(&servers).await);
        }
    }
    check_across(&servers, &runs).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn retry_on_another_server_waits_for_nothing() {
    let (servers, _folder) = pair(ScriptedProvider::default, "").await;
    let mut history = vec![says("hello")];
    for turn in 0..4 {
        for server in &servers {
            let answer = server.ask(CHAT, &chat(&history)).await;
            let outcome = server.outcome(&answer).await;
            assert_eq!(outcome["raced"], false, "{turn}: {outcome}");
            assert_eq!(outcome["failed"], Value::Null, "{turn}: {outcome}");
            if server.stand.address == servers[1].stand.address {
                history.extend([said(&answer), says(&format!("and {turn}?"))]);
            }
        }
    }
}
