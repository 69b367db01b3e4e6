//! How much of a long conversation a single request still tells, by the size of its window: what a person said, what was
//! done, and the facts of the outputs. Twenty recorded sessions stand one after the other as one conversation.

use std::collections::BTreeSet;

use contexture_catalogue::Catalogue;
use contexture_compile::{Compiler, Target};
use contexture_ir::{Item, Role};
use contexture_tokens::{Encoding, counter_for};
use contexture_wire::{Format, lift};
use serde_json::Value;

use crate::fixtures::sessions;
use crate::retention::facts;

/// The kinds that are measured.
const KINDS: [&str; 6] = [
    "sentences of people",
    "changing calls",
    "identifiers",
    "numbers",
    "paths",
    "error lines",
];

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

/// Windows, and the least share of people's sentences and of changing calls that a request in them tells.
const FLOORS: [(u64, f64, f64); 5] = [
    (4_000, 0.15, 0.30),
    (8_000, 0.28, 0.80),
    (16_000, 0.55, 0.90),
    (32_000, 0.95, 0.95),
    (64_000, 0.99, 0.99),
];

/// What of it a text tells, as `(found, all)` of each kind.
type Score = [(usize, usize); 6];

#[test]
fn people_and_changes_stay_in_reach_in_every_window() {
    let soak = std::env::var_os("CONTEXTURE_SOAK").is_some();
    let conversations = conversations();
    let chosen = if soak { conversations.len() } else { 2 };
    println!("of a whole conversation, {chosen} conversations, in one request:");
    println!(
        "  {:>7} {}  manifest of the window",
        "window",
        KINDS.map(|kind| format!("{kind:>20}")).join("")
    );
    let mut told_before = 0.0;
    for (window, sentences, changes) in FLOORS {
        let mut score = Score::default();
        let (mut manifest, mut largest) = (0, 0);
        for items in conversations.iter().take(chosen) {
            let target = Target::openai_chat("gpt-4o").window(window);
            let compiler = Compiler::new(Catalogue::builtin()).with_manifests();
            let Ok(compiled) = compiler.compile(items, &target) else {
                println!("  {window:>7} refused");
                continue;
            };
            let lifted = lift(Format::OpenAiChat, &compiled.payload.to_json()).unwrap();
            let shown = lifted.transcript.items;
            let told: u64 = shown
                .iter()
                .map(Item::text)
                .filter(|text| text.contains("Earlier here"))
                .map(|text| counter_for(Encoding::O200kBase).count(&text).count)
                .sum();
            manifest += told;
            largest = largest.max(told);
            add(&mut score, items, &shown);
        }
        let shares = score
            .map(|(found, all)| format!("{:>19.1}%", 100.0 * found as f64 / all.max(1) as f64));
        // What was done comes before what outputs said, and no manifest takes more than its share.
        assert!(largest <= window * 15 / 100, "{window}: {largest}");
        let of = |kind: usize| score[kind].0 as f64 / score[kind].1.max(1) as f64;
        assert!(
            of(1) + 0.001 >= of(3),
            "{window}: changing calls {}, numbers {}",
            of(1),
            of(3)
        );
        assert!(
            of(0) >= sentences && of(1) >= changes,
            "{window}: sentences {}, changing calls {}",
            of(0),
            of(1)
        );
        assert!(of(0) >= told_before, "{window}: a larger window tells less");
        told_before = of(0);
        println!(
            "  {window:>7} {}  {:.1} %, at most {:.1} %",
            shares.join(""),
            100.0 * manifest as f64 / (window * chosen as u64) as f64,
            100.0 * largest as f64 / window as f64
        );
    }
}

/// Twenty airline sessions each as one conversation, and the sessions of a software agent, each alone.
fn conversations() -> Vec<Vec<Item>> {
    let all = sessions();
    let items = |session: &crate::fixtures::Session| -> Vec<Item> {
        let items = session.path.iter().map(|one| Item::clone(&one.item));
        items.collect()
    };
    let (airline, agent) = all.split_at(200);
    let joined = airline
        .chunks(20)
        .map(|group| group.iter().flat_map(items).collect());
    joined.chain(agent.iter().map(items)).collect()
}

fn add(score: &mut Score, items: &[Item], shown: &[Item]) {
    let text: Vec<String> = shown.iter().map(Item::text).collect();
    let text = text.join("\n");
    let words: Vec<&str> = text.split_whitespace().collect();
    let line = words.join(" ");
    for sentence in sentences(items) {
        score[0].1 += 1;
        score[0].0 += usize::from(line.contains(&sentence));
    }
    let visible: BTreeSet<(&str, &str)> = shown.iter().filter_map(call).collect();
    let manifests: Vec<&str> = text.lines().collect();
    for (name, arguments) in items.iter().filter_map(call) {
        if !CHANGING.contains(&name) {
            continue;
        }
        let named = |line: &&str| line.contains(name) && line.contains(&key(arguments));
        score[1].1 += 1;
        score[1].0 +=
            usize::from(visible.contains(&(name, arguments)) || manifests.iter().any(named));
    }
    let whole: Vec<String> = items.iter().map(Item::text).collect();
    let (wanted, found) = (facts(&whole.join("\n")), facts(&text));
    for (kind, wanted) in wanted.iter().enumerate() {
        score[kind + 2].1 += wanted.len();
        score[kind + 2].0 += match kind {
            // A line may stand in another.
            3 => wanted
                .iter()
                .filter(|wanted| line.contains(wanted.as_str()))
                .count(),
            _ => wanted.intersection(&found[kind]).count(),
        };
    }
}

fn call(item: &Item) -> Option<(&str, &str)> {
    match item {
        Item::FunctionCall(call) => Some((&call.name, &call.arguments)),
        _ => None,
    }
}

/// By what a call is told from others of its tool: its first identifier.
fn key(arguments: &str) -> String {
    let arguments: Value = serde_json::from_str(arguments).unwrap_or_default();
    let of = |name: &str| arguments[name].as_str().map(str::to_owned);
    let first = of("reservation_id").or_else(|| of("user_id"));
    first
        .or_else(|| of("summary"))
        .unwrap_or_default()
        .chars()
        .take(40)
        .collect()
}

/// What people said, sentence by sentence, white space made one.
fn sentences(items: &[Item]) -> Vec<String> {
    let persons =
        |item: &&Item| matches!(item, Item::Message(message) if message.role == Role::User);
    let texts = items.iter().filter(persons).map(Item::text);
    let mut all = Vec::new();
    for text in texts.filter(|text| text.len() <= 2_000) {
        for line in text.lines() {
            for sentence in line.split_inclusive(['.', '!', '?']) {
                let words: Vec<&str> = sentence.split_whitespace().collect();
                let sentence = words.join(" ");
                if sentence.len() >= 12 {
                    all.push(sentence);
                }
            }
        }
    }
    all
}
