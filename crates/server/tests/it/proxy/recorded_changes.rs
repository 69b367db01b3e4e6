//! What was done stays known through the proxy: recorded sessions as one long conversation in a window of 16,000 tokens.

use std::collections::BTreeMap;

use contexture::ir::Item;
use contexture::{Format, lift};

use super::never_worse::{Course, MIDDLE, Session, sessions};

const POLICY: &str = "compact = \"manifest\"\nlimit_tokens = 16000\ncost_condition = \"fits\"\n";

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

/// So many airline sessions, one after the other.
fn joined(count: usize) -> Session {
    let mut sessions = sessions().into_iter().take(count);
    let mut all = sessions.next().unwrap();
    all.name = format!("first-{count}");
    for session in sessions {
        all.items.extend(session.items);
    }
    all
}

/// How often calls of each tool are visible or named in a request, and how often counted.
fn told(body: &str) -> BTreeMap<&'static str, (usize, usize)> {
    let mut told: BTreeMap<&'static str, (usize, usize)> = BTreeMap::new();
    let number = |text: &str| -> usize {
        let digits: String = text.chars().take_while(char::is_ascii_digit).collect();
        digits.parse().unwrap_or(0)
    };
    for item in lift(Format::OpenAiChat, body).unwrap().transcript.items {
        if let Item::FunctionCall(call) = &item
            && let Some(tool) = CHANGING.iter().find(|tool| **tool == call.name)
        {
            told.entry(tool).or_default().0 += 1;
        }
        let text = item.text();
        for line in text.lines().filter(|_| text.contains("Earlier here")) {
            let line = line.trim_start();
            let Some(tool) = CHANGING.iter().find(|tool| line.starts_with(**tool)) else {
                continue;
            };
            let rest = line.strip_prefix(tool).unwrap();
            let one = told.entry(tool).or_default();
            match rest.strip_prefix(" ×") {
                Some(count) => one.1 += number(count),
                None => one.0 += rest.rsplit_once("(×").map_or(1, |(_, times)| number(times)),
            }
        }
    }
    told
}

/// Checks each request of so many sessions; returns what was seen in a line.
async fn check(count: usize, may_count: bool) -> String {
    let session = joined(count);
    let course = Course::new((Format::OpenAiChat, "gpt-4.1"), MIDDLE, 20_000, POLICY).await;
    let bill = course.run(&session).await;
    let received = course.proxied.upstream.received_requests();
    assert_eq!(received.len(), bill.calls);
    let (mut made, mut counted, mut done) = (0, 0, BTreeMap::new());
    for (length, request) in session.calls().zip(&received) {
        for item in &session.items[made..length] {
            if let Item::FunctionCall(call) = item {
                *done.entry(call.name.as_str()).or_insert(0) += 1;
            }
        }
        made = length;
        let told = told(std::str::from_utf8(&request.body).unwrap());
        for tool in CHANGING {
            let (known, folded) = told.get(tool).copied().unwrap_or_default();
            let all = done.get(tool).copied().unwrap_or_default();
            assert_eq!(known + folded, all, "{tool} at item {length}");
            assert!(
                may_count || folded == 0,
                "{tool} at item {length}: {folded} are counted only"
            );
            counted = counted.max(folded);
        }
    }
    let all: usize = CHANGING.iter().filter_map(|tool| done.get(tool)).sum();
    format!(
        "{count} sessions, {} calls, {all} changed something; at most {counted} of a tool are counted only",
        bill.calls
    )
}

/// In a soak the first twenty, and all sessions, whose calls do not all have room in a sixth of the window.
#[tokio::test]
async fn full_sessions_name_or_count_what_was_done_in_every_request() {
    if std::env::var_os("CONTEXTURE_SOAK").is_none() {
        println!("{}", check(4, false).await);
    } else {
        println!("{}", check(20, false).await);
        println!("{}", check(200, true).await);
    }
}
