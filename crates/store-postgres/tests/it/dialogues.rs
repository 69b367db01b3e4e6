//! Long dialogues with questions and the turns that answer them, read from LoCoMo's form or
//! generated in the same form.
//!
//! Not here: searching.

use contexture_ir::{NodeId, Role};
use contexture_store::rules::typed_request;
use contexture_store::{NewItem, SearchScope};
use contexture_store_testkit::chat::message_item;
use serde_json::Value;

/// A conversation of two people in sessions, and questions to it.
pub(crate) struct Dialogue {
    pub(crate) name: String,
    pub(crate) turns: Vec<DialogueTurn>,
    pub(crate) questions: Vec<EvidenceQuestion>,
}

pub(crate) struct DialogueTurn {
    node: NodeId,
    session: u64,
    text: String,
    created_ms: i64,
}

/// A question with the nodes that hold its answer.
pub(crate) struct EvidenceQuestion {
    pub(crate) text: String,
    pub(crate) evidence: Vec<NodeId>,
}

impl Dialogue {
    pub(crate) fn items(&self) -> impl Iterator<Item = NewItem> {
        self.turns.iter().map(|turn| NewItem {
            id: turn.node,
            created_ms: turn.created_ms,
            ..message_item(Role::User, &turn.text)
        })
    }

    /// Returns the share of the sessions of the evidence that have a hit.
    pub(crate) fn session_share(&self, evidence: &[NodeId], hits: &[NodeId]) -> f64 {
        let session = |node: &NodeId| {
            self.turns
                .iter()
                .find(|turn| turn.node == *node)
                .map(|turn| turn.session)
        };
        let mut wanted: Vec<u64> = evidence.iter().filter_map(session).collect();
        wanted.sort_unstable();
        wanted.dedup();
        let found: Vec<u64> = hits.iter().filter_map(session).collect();
        let hits = wanted
            .iter()
            .filter(|session| found.contains(session))
            .count();
        hits as f64 / wanted.len().max(1) as f64
    }

    fn node(name: &str, turn: &str) -> NodeId {
        NodeId::derive("dialogue", &[name.as_bytes(), turn.as_bytes()])
    }
}

/// Reads dialogues in LoCoMo's form.
pub(crate) fn parse_dialogues(json: &str) -> Vec<Dialogue> {
    let all: Value = serde_json::from_str(json).unwrap();
    all.as_array().unwrap().iter().map(parse_dialogue).collect()
}

fn parse_dialogue(sample: &Value) -> Dialogue {
    let name = sample["sample_id"].as_str().unwrap().to_owned();
    let mut turns = Vec::new();
    for session in 1..1000 {
        let Some(said) = sample["conversation"][format!("session_{session}")].as_array() else {
            continue;
        };
        let date = sample["conversation"][format!("session_{session}_date_time")].as_str();
        let begun = session_start(date.unwrap());
        for (minute, turn) in (0..).zip(said) {
            let text = |key: &str| turn[key].as_str().unwrap_or_default();
            let spoken = format!(
                "{}: {} {}",
                text("speaker"),
                text("text"),
                text("blip_caption")
            );
            turns.push(DialogueTurn {
                node: Dialogue::node(&name, text("dia_id")),
                session,
                text: spoken.trim_end().to_owned(),
                created_ms: begun + minute * 60_000,
            });
        }
    }
    let asked = sample["qa"].as_array().unwrap().iter();
    let questions = asked.filter_map(|question| {
        let evidence = question["evidence"].as_array()?.iter();
        let evidence =
            evidence.map(|turn| Dialogue::node(&name, turn.as_str().unwrap_or_default()));
        Some(EvidenceQuestion {
            text: question["question"].as_str()?.to_owned(),
            evidence: evidence.collect(),
        })
    });
    let questions = questions.filter(|question: &EvidenceQuestion| !question.evidence.is_empty());
    Dialogue {
        questions: questions.collect(),
        name,
        turns,
    }
}

/// Returns the time of `1:56 pm on 8 May, 2023`, of which the hour is left out.
fn session_start(text: &str) -> i64 {
    let (_, date) = text.split_once(" on ").unwrap();
    let parts: Vec<&str> = date
        .split([' ', ','])
        .filter(|part| !part.is_empty())
        .collect();
    let months = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ];
    let month = months
        .iter()
        .position(|month| parts[1].starts_with(month))
        .unwrap()
        + 1;
    let day: u32 = parts[0].parse().unwrap();
    let typed = format!("after:{}-{month:02}-{day:02}", parts[2]);
    typed_request(&typed, SearchScope::Owner).since_ms.unwrap()
}

const PEOPLE: [&str; 6] = ["Mira", "Tobias", "Salma", "Henrik", "Wanda", "Ruben"];
/// Base and past forms.
const ACTIONS: [(&str, &str); 12] = [
    ("buy", "bought"),
    ("paint", "painted"),
    ("repair", "repaired"),
    ("visit", "visited"),
    ("write", "wrote"),
    ("bake", "baked"),
    ("build", "built"),
    ("lose", "lost"),
    ("sell", "sold"),
    ("borrow", "borrowed"),
    ("photograph", "photographed"),
    ("find", "found"),
];
const THINGS: [&str; 24] = [
    "canoe",
    "violin",
    "greenhouse",
    "lantern",
    "quilt",
    "telescope",
    "bookshelf",
    "bicycle",
    "teapot",
    "kite",
    "clock",
    "harbour",
    "poem",
    "bridge",
    "carpet",
    "necklace",
    "garden",
    "map",
    "sculpture",
    "fountain",
    "drum",
    "mirror",
    "puzzle",
    "windmill",
];
const REASONS: [&str; 12] = [
    "for the school fair",
    "because of the storm",
    "after the wedding",
    "with my cousin",
    "near the old mill",
    "for a neighbour",
    "during the holidays",
    "at the flea market",
    "before moving house",
    "on a rainy morning",
    "in the mountains",
    "for charity",
];
const CHAT: [&str; 12] = [
    "That sounds wonderful, tell me more.",
    "I have been busy at work again.",
    "How are the children?",
    "The weather is terrible today.",
    "I should sleep more.",
    "We watched a film last night.",
    "My back hurts a little.",
    "Coffee tomorrow?",
    "Thanks for asking!",
    "I am reading a long novel.",
    "Traffic was bad this morning.",
    "Let us cook together soon.",
];

/// A generator of numbers that is the same everywhere.
struct Lcg(u64);

impl Lcg {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % end
    }
}

/// Generates dialogues: in each session, two facts among chat. A third of the facts stand in an
/// answer whose question has the words, so that only its neighbour tells what it is about.
pub(crate) fn generate_dialogues(count: usize) -> Vec<Dialogue> {
    (0..count).map(generate_dialogue).collect()
}

fn generate_dialogue(number: usize) -> Dialogue {
    let mut random = Lcg(number as u64 + 1);
    let name = format!("generated-{number}");
    let people = [PEOPLE[number % 6], PEOPLE[(number + 1) % 6]];
    let mut dialogue = Dialogue {
        turns: Vec::new(),
        questions: Vec::new(),
        name,
    };
    let mut facts: Vec<(usize, usize)> = (0..ACTIONS.len())
        .flat_map(|action| (0..THINGS.len()).map(move |thing| (action, thing)))
        .collect();
    for session in 1..=25 {
        let mut said: Vec<(usize, String)> = Vec::new();
        for fact in 0..2 {
            for _ in 0..5 {
                said.push((said.len() % 2, CHAT[random.below(CHAT.len())].to_owned()));
            }
            let (action, thing) = facts.swap_remove(random.below(facts.len()));
            let (base, past) = ACTIONS[action];
            let (thing, reason) = (THINGS[thing], REASONS[random.below(REASONS.len())]);
            let who = said.len() % 2;
            let evidence = if (session + fact) % 3 == 0 {
                said.push((1 - who, format!("Why did you {base} the {thing}?")));
                said.push((who, format!("It was {reason}, you know me.")));
                said.len()
            } else {
                said.push((who, format!("Last week I {past} {thing}s {reason}.")));
                said.len()
            };
            let who = people[who];
            dialogue.questions.push(EvidenceQuestion {
                text: format!("When and why did {who} {base} a {thing}?"),
                evidence: vec![Dialogue::node(
                    &dialogue.name,
                    &format!("D{session}:{evidence}"),
                )],
            });
        }
        for (place, (who, text)) in (1..).zip(said) {
            dialogue.turns.push(DialogueTurn {
                node: Dialogue::node(&dialogue.name, &format!("D{session}:{place}")),
                session,
                text: format!("{}: {text}", people[who]),
                created_ms: 1_680_000_000_000 + session as i64 * 259_200_000 + place * 60_000,
            });
        }
    }
    dialogue
}
