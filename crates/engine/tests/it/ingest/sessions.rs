//! Recorded sessions, replayed turn by turn through one owner.

use contexture_ir::Item;
use contexture_sessions::{ReadOptions, SessionFormat, read_sessions};
use contexture_store::PathEnd;
use contexture_testdata::tau_bench;

use super::client::{answer, conversations, owner, path, send};
use crate::support::engine;

/// What is said before each answer, and the answer.
fn turns(items: &[Item]) -> Vec<(Vec<Item>, Vec<Item>)> {
    let mut turns: Vec<(Vec<Item>, Vec<Item>)> = Vec::new();
    for item in items {
        match turns.last_mut() {
            Some((_, answered)) if item.is_model_output() => answered.push(item.clone()),
            Some((said, answered)) if answered.is_empty() => said.push(item.clone()),
            _ => turns.push((vec![item.clone()], Vec::new())),
        }
    }
    turns
}

fn sessions() -> Vec<Vec<Item>> {
    let options = ReadOptions {
        source_name: "tau",
        ..ReadOptions::default()
    };
    let sessions = read_sessions(SessionFormat::TauBench, &tau_bench(), &options).unwrap();
    let items =
        |session: &contexture_sessions::Session| session.transcript(&session.heads[0]).items;
    sessions.iter().map(items).collect()
}

fn written(items: &[Item]) -> String {
    items.iter().map(Item::to_json).collect()
}

async fn check(together: usize) {
    let engine = engine();
    let mut kept: Vec<String> = Vec::new();
    let sessions = sessions();
    for group in sessions.chunks(together) {
        let turns: Vec<_> = group.iter().map(|items| turns(items)).collect();
        let mut histories = vec![Vec::new(); group.len()];
        let most = turns.iter().map(Vec::len).max().unwrap();
        for turn in 0..most {
            for (history, turns) in histories.iter_mut().zip(&turns) {
                let Some((said, answered)) = turns.get(turn) else {
                    continue;
                };
                history.extend_from_slice(said);
                let sent = send(&engine, history).await;
                assert_eq!(sent.appended.len(), said.len());
                if !answered.is_empty() {
                    sent.record(&answer(answered)).await.unwrap();
                }
                history.extend_from_slice(answered);
                if turns.len() == turn + 1 {
                    let end = PathEnd::Branch(sent.chat.branch());
                    kept.push(written(&path(&sent, end).await));
                }
            }
        }
    }
    let mut wanted: Vec<String> = sessions.iter().map(|items| written(items)).collect();
    wanted.sort();
    kept.sort();
    assert!(wanted == kept, "what is kept is not what was said");
    let all = conversations(&engine, &owner()).await;
    assert_eq!((sessions.len(), all.len()), (200, 200));
    for id in all {
        assert_eq!(
            engine
                .conversation_info(&owner(), &id)
                .await
                .unwrap()
                .branches,
            1
        );
    }
}

#[tokio::test]
async fn one_after_the_other_each_is_a_conversation() {
    check(1).await;
}

#[tokio::test]
async fn all_at_the_same_time_each_is_a_conversation() {
    check(200).await;
}
