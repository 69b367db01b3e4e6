//! What was done in recorded sessions stays known when they are one long conversation in a small window: each call that
//! changed something is visible, named with its outcome, or counted in the line of its tool.

use std::collections::BTreeMap;

use contexture_compile::Target;
use contexture_engine::{PrepareOptions, Trigger};
use contexture_ir::Item;
use contexture_wire::{Format, lift};
use serde_json::Value;

use crate::support::chat;

/// The tools of the sessions that change something.
const CHANGING: [&str; 7] = [
    "book_reservation",
    "cancel_reservation",
    "send_certificate",
    "transfer_to_human_agents",
    "update_reservation_baggages",
    "update_reservation_flights",
    "update_reservation_passengers",
];

/// How often calls of a tool are visible, named and counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Told {
    visible: usize,
    named: usize,
    counted: usize,
}

/// The items of so many airline sessions, one after the other.
fn sessions(count: usize) -> Vec<Item> {
    let sessions: Vec<Value> = serde_json::from_str(&contexture_testdata::tau_bench()).unwrap();
    let items = sessions.iter().take(count).flat_map(|session| {
        let lifted = lift(Format::OpenAiChat, &session["traj"].to_string()).unwrap();
        lifted.transcript.items
    });
    items.collect()
}

/// What a request tells of each tool's calls.
fn told(payload: &str) -> BTreeMap<String, Told> {
    let mut told: BTreeMap<String, Told> = BTreeMap::new();
    let number = |text: &str| -> usize {
        let digits: String = text.chars().take_while(char::is_ascii_digit).collect();
        digits.parse().unwrap_or(0)
    };
    for item in lift(Format::OpenAiChat, payload).unwrap().transcript.items {
        if let Item::FunctionCall(call) = &item {
            told.entry(call.name.clone()).or_default().visible += 1;
        }
        let text = item.text();
        if !text.contains("Earlier here") {
            continue;
        }
        for line in text.lines() {
            let Some(tool) = CHANGING
                .iter()
                .find(|tool| line.trim_start().starts_with(**tool))
            else {
                continue;
            };
            let rest = line.trim_start().strip_prefix(tool).unwrap();
            let one = told.entry((*tool).to_owned()).or_default();
            if let Some(count) = rest.strip_prefix(" ×") {
                one.counted += number(count);
            } else {
                one.named += rest.rsplit_once("(×").map_or(1, |(_, times)| number(times));
            }
        }
    }
    told
}

async fn check(count: usize, window: u64, may_count: bool) {
    let chat = chat().await;
    let target = Target::openai_chat("gpt-4o").window(window);
    // As the proxy prepares a call.
    let options = PrepareOptions {
        trigger: Trigger::Overflow,
        ..PrepareOptions::default()
    };
    let items = sessions(count);
    let mut done: BTreeMap<String, usize> = BTreeMap::new();
    let (mut calls, mut compactions, mut largest) = (0, 0, 0);
    let mut next = items.iter().peekable();
    while next.peek().is_some() {
        let mut draft = chat.draft();
        // What the model said last, the outputs of its calls, and what the person said.
        let mut is_models = true;
        while let Some(item) = next.next_if(|item| is_models || !item.is_model_output()) {
            is_models &= item.is_model_output();
            if let Item::FunctionCall(call) = item
                && CHANGING.contains(&call.name.as_str())
            {
                *done.entry(call.name.clone()).or_default() += 1;
            }
            draft.push_item(item.clone());
        }
        draft.commit().await.unwrap();
        let prepared = chat.prepare(&target, &options).await.unwrap();
        calls += 1;
        compactions += prepared.compacted.len();
        let told = told(&prepared.call.payload.to_json());
        for (tool, made) in &done {
            let known = told.get(tool).copied().unwrap_or_default();
            let all = known.visible + known.named + known.counted;
            assert_eq!(all, *made, "call {calls}: {tool}: {known:?}");
            assert!(
                may_count || known.counted == 0,
                "call {calls}: {tool}: {known:?}"
            );
            largest = largest.max(known.counted);
        }
    }
    let made: usize = done.values().sum();
    println!(
        "{count} sessions, {window} tokens: {calls} calls, {compactions} compactions, {made} calls changed something, at most {largest} of a tool are counted only"
    );
    assert!(compactions > 1, "{compactions}");
}

#[tokio::test]
async fn what_twenty_sessions_did_is_named_in_every_request() {
    check(20, 16_000, false).await;
}

#[tokio::test]
async fn full_what_all_sessions_did_is_named_or_counted() {
    let soak = std::env::var_os("CONTEXTURE_SOAK").is_some();
    check(if soak { 200 } else { 40 }, 16_000, true).await;
}
