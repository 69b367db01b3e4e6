//! How fast rules are found: MB of text a second over the messages of the recorded sessions, and the longest time for one message.
//!
//! Run with `cargo bench -p contexture-condense`. Best of several runs. The goals: 100 MB/s over a path that is read for the first
//! time, all its items counted; at most 1 ms for a new message of a person.

#![expect(clippy::print_stdout, reason = "the figures are the result")]

use std::hint::black_box;
use std::time::{Duration, Instant};

use contexture_condense::find_statements;
use contexture_ir::{FunctionCallOutput, Item, Message, Origin, Output, Role};
use contexture_testdata as data;

/// How often everything is measured.
const RUNS: usize = 7;

/// The messages of the recorded histories as a path has them, each with its length in bytes.
fn recorded_items() -> Vec<(Origin, Item, usize)> {
    let mut items = Vec::new();
    for (_, history) in data::chat_histories() {
        for message in history.as_array().into_iter().flatten() {
            let Some(text) = message["content"].as_str() else {
                continue;
            };
            let (origin, item) = match message["role"].as_str() {
                Some("user") => (Origin::User, Message::text(Role::User, text).into()),
                Some("tool") => {
                    let output = Output::Text(text.to_owned());
                    (Origin::Tool, FunctionCallOutput::new("c", output).into())
                }
                _ => (Origin::Model, Message::text(Role::Assistant, text).into()),
            };
            items.push((origin, item, text.len()));
        }
    }
    items
}

/// The least time of several runs over some items, and their bytes.
fn measure<'i>(
    items: impl Iterator<Item = &'i (Origin, Item, usize)> + Clone,
) -> (Duration, usize) {
    let bytes = items.clone().map(|(_, _, bytes)| bytes).sum();
    let runs = (0..RUNS).map(|_| {
        let start = Instant::now();
        for (origin, item, _) in items.clone() {
            black_box(find_statements(*origin, item));
        }
        start.elapsed()
    });
    (runs.min().unwrap_or_default(), bytes)
}

fn print_rate(name: &str, (time, bytes): (Duration, usize)) {
    let megabytes = bytes as f64 / 1e6;
    let rate = megabytes / time.as_secs_f64();
    println!("{name:<28} {megabytes:>7.2} MB  {time:>10.2?}  {rate:>8.1} MB/s");
}

fn main() {
    let items = recorded_items();
    let users = items.iter().filter(|(origin, ..)| *origin == Origin::User);
    // The patterns are built once, by the first message that needs them.
    let start = Instant::now();
    for (origin, item, _) in users.clone().take(100) {
        black_box(find_statements(*origin, item));
    }
    println!(
        "the first 100 messages, patterns built: {:.2?}",
        start.elapsed()
    );
    print_rate("whole paths", measure(items.iter()));
    print_rate("messages of people", measure(users.clone()));
    // No word of a rule in it: what a long pasted text costs.
    let plain =
        "The total of the second column is wrong since the update of last week.\n".repeat(55);
    let plain_item = (
        Origin::User,
        Item::from(Message::text(Role::User, plain.as_str())),
        plain.len(),
    );
    let many = std::iter::repeat_n(&plain_item, 1_000);
    print_rate("text without a rule's words", measure(many));
    let slowest = users.map(|one| measure(std::iter::once(one)).0).max();
    println!(
        "slowest message of a person: {:.2?}",
        slowest.unwrap_or_default()
    );
    let dense = "Never push to main without asking me, and always answer in German.\n".repeat(58);
    let dense_item = (
        Origin::User,
        Item::from(Message::text(Role::User, dense.as_str())),
        dense.len(),
    );
    let (time, bytes) = measure(std::iter::once(&dense_item));
    println!("a message of {bytes} bytes, all rules: {time:.2?}");
}
