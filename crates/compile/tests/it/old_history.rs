//! What stands for old history, as a person and their agent see it: the person's words, what was done, and room to go on.

use contexture_catalogue::Catalogue;
use contexture_compile::compaction::{CallEffect, ToolHints};
use contexture_compile::{Compiled, Compiler, Target};
use contexture_ir::{FunctionCall, FunctionCallOutput, Item, Message, Output, Role};
use contexture_tokens::{Encoding, counter_for};
use contexture_wire::lift;
use serde_json::json;

fn says(role: Role, text: impl Into<String>) -> Item {
    Message::text(role, text).into()
}

/// A call and its output.
fn calls(id: &str, tool: &str, arguments: &serde_json::Value, output: String) -> [Item; 2] {
    [
        FunctionCall::new(id, tool, arguments.to_string()).into(),
        FunctionCallOutput::new(id, Output::Text(output)).into(),
    ]
}

/// A loop that reads one new file in each step.
fn files(steps: usize) -> Vec<Item> {
    let mut items = vec![says(Role::User, "Read the files.")];
    for step in 0..steps {
        let path = json!({"file_path": format!("src/module_{step}/file_{step}.rs")});
        let content = format!("fn f{step}() {{}}\n").repeat(20);
        items.extend(calls(&format!("c{step}"), "Read", &path, content));
        items.push(says(Role::Assistant, format!("ok {step}")));
        items.push(says(Role::User, "go on"));
    }
    items
}

/// A loop that books one flight in each step; every seventh booking fails.
fn bookings(steps: usize) -> Vec<Item> {
    let mut items = vec![says(Role::User, "Book my flights.")];
    for step in 0..steps {
        let arguments = json!({
            "user_id": format!("user_{step}"), "flight": format!("HAT{}", 100 + step),
        });
        let output = match step % 7 {
            6 => "Error: not enough seats on the flight".to_owned(),
            _ => json!({
                "reservation_id": format!("RES{step:03}"), "status": "confirmed",
                "passenger": {
                    "street": format!("{} Maple Drive", step * 7),
                    "suite": format!("Suite {}", 900 + step),
                },
            })
            .to_string(),
        };
        items.extend(calls(
            &format!("b{step}"),
            "book_reservation",
            &arguments,
            output,
        ));
        let text = "It is on its way to you. ".repeat(6);
        items.push(says(Role::Assistant, format!("Booked. {text}")));
        items.push(says(Role::User, "And the next one please."));
    }
    items
}

/// A person who says what matters in turns 2, 4 and 6, beside a tool that reports many numbers.
fn weather(turns: usize) -> Vec<Item> {
    let facts = [
        (2, "I am vegetarian and my daughter is allergic to peanuts."),
        (
            4,
            "Our budget is 1,800 euros in total; never book a hotel with stairs, my wife uses a wheelchair.",
        ),
        (
            6,
            "We decided: Porto first, then Lisbon. Do not suggest the Algarve again.",
        ),
    ];
    let mut items = Vec::new();
    for turn in 0..turns {
        let fact = facts.iter().find(|(at, _)| *at == turn);
        let fact = fact.map_or(String::new(), |(_, fact)| format!("{fact} "));
        items.push(says(
            Role::User,
            format!("{fact}Step {turn}: check the weather again please."),
        ));
        let rows = (0..60).map(|row| {
            format!(
                "{row:04} Lisbon sensor {turn}-{row} temperature {} humidity {}\n",
                row % 37,
                row % 91
            )
        });
        let arguments = json!({"city": "Lisbon", "day": turn});
        items.extend(calls(
            &format!("w{turn}"),
            "get_weather",
            &arguments,
            rows.collect::<String>(),
        ));
        let text = "Details follow. ".repeat(20);
        items.push(says(
            Role::Assistant,
            format!("Mild today ({turn}). {text}"),
        ));
    }
    items
}

const FACTS: [&str; 6] = [
    "vegetarian",
    "allergic to peanuts",
    "1,800 euros",
    "wheelchair",
    "Porto first, then Lisbon",
    "Do not suggest the Algarve again",
];

fn compacted(items: &[Item], target: &Target) -> Compiled {
    let compiler = Compiler::new(Catalogue::builtin()).with_manifests();
    compiler.compile(items, target).unwrap()
}

/// What a compile shows, an item a line.
fn view(compiled: &Compiled, target: &Target) -> Vec<String> {
    let payload = compiled.payload.to_json();
    let lifted = lift(target.format(), &payload).unwrap();
    let items = lifted.transcript.items.iter();
    items
        .map(|item| match item {
            Item::FunctionCall(call) => format!("{}({})", call.name, call.arguments),
            item => item.text(),
        })
        .collect()
}

/// The manifests of a view.
fn manifests(view: &[String]) -> Vec<&str> {
    let starts = |text: &&String| text.contains("Earlier here");
    view.iter().filter(starts).map(String::as_str).collect()
}

/// How many calls of a tool the manifests name or count, and how many of them they count as failed.
fn told(manifests: &[&str], tool: &str) -> (usize, usize) {
    let number = |text: &str| -> usize {
        let digits: String = text.chars().take_while(char::is_ascii_digit).collect();
        digits.parse().unwrap_or(0)
    };
    let (mut all, mut failed) = (0, 0);
    for line in manifests.iter().flat_map(|text| text.lines()) {
        let Some(rest) = line.trim_start().strip_prefix(tool) else {
            continue;
        };
        if let Some(rest) = rest.strip_prefix(" ×") {
            all += number(rest);
            let counted = rest.split([':', ',', ' ']).collect::<Vec<_>>();
            let at = counted.iter().position(|word| *word == "failed");
            failed += at.map_or(0, |at| number(counted[at - 1]));
        } else if rest.starts_with('(') {
            let times = rest.rsplit_once("(×").map_or(1, |(_, times)| number(times));
            all += times;
            failed += if rest.contains("→ failed") {
                times
            } else {
                0
            };
        }
    }
    (all, failed)
}

#[test]
fn a_loop_over_many_files_keeps_manifest_and_room() {
    let target = Target::openai_chat("gpt-4o").window(3_000);
    let counter = counter_for(Encoding::O200kBase);
    for steps in [100, 200, 300, 1_000] {
        let items = files(steps);
        let compiled = compacted(&items, &target);
        let view = view(&compiled, &target);
        let manifests = manifests(&view);
        assert_eq!(manifests.len(), 1, "{steps} files");
        let tokens = counter.count(manifests[0]).count;
        assert!(tokens <= 3_000 * 15 / 100, "{steps} files: {tokens} tokens");
        // Most of the window is for what is new.
        let shown = view.iter().filter(|text| text.starts_with("Read(")).count();
        assert!(shown >= 5, "{steps} files: {shown} calls are shown");
        // The newest files that are no longer shown are named, the others counted.
        let newest = format!("src/module_{0}/file_{0}.rs", steps - shown - 1);
        assert!(manifests[0].contains(&newest), "{steps}: {}", manifests[0]);
        let named = manifests[0].matches("src/module_").count();
        let rest = format!("{} more", steps - shown - named);
        assert!(manifests[0].contains(&rest), "{rest}: {}", manifests[0]);
    }
}

#[test]
fn what_was_booked_is_named_or_counted_with_its_outcome() {
    for (window, steps) in [(3_000, 60), (8_000, 60), (3_000, 600), (16_000, 2_000)] {
        let target = Target::openai_chat("gpt-4o").window(window);
        let items = bookings(steps);
        let view = view(&compacted(&items, &target), &target);
        let shown = |text: &&String| text.starts_with("book_reservation(");
        let shown = view.iter().filter(shown).count();
        let manifests = manifests(&view);
        let expected = (0..steps - shown).filter(|step| step % 7 == 6).count();
        assert_eq!(
            told(&manifests, "book_reservation"),
            (steps - shown, expected),
            "{window}, {steps} bookings: {manifests:#?}"
        );
        let newest = steps - shown - 1;
        let line = manifests[0]
            .lines()
            .find(|line| line.contains(&format!("(user_{newest}")));
        let line = line.unwrap_or_else(|| panic!("booking {newest}: {manifests:#?}"));
        // Where not all have room, a booking is told by its most telling argument alone.
        let flight = format!("HAT{}", 100 + newest);
        assert!(
            line.contains(&flight) || line.contains(&format!("(user_{newest})")),
            "{line}"
        );
        let outcome = match newest % 7 {
            6 => "→ failed: Error: not enough seats".to_owned(),
            _ => format!("→ RES{newest:03} ok"),
        };
        assert!(line.contains(&outcome), "{line}");
        // What is inside an output belongs to its call, and not to a list without an owner.
        assert!(!manifests[0].contains("Maple Drive"), "{manifests:#?}");
    }
}

#[test]
fn what_a_person_said_stays_beside_a_chatty_tool() {
    for (window, step) in [(6_000, 1), (9_000, 8), (16_000, 16)] {
        let target = Target::anthropic("claude-sonnet-4-5")
            .window(window)
            .reserve(500);
        for turns in (8..=40).step_by(step) {
            let view = view(&compacted(&weather(turns), &target), &target);
            let text = view.join("\n");
            let missing: Vec<&&str> = FACTS.iter().filter(|fact| !text.contains(**fact)).collect();
            assert!(
                missing.is_empty(),
                "{window}, turn {turns}: {missing:?} of {text}"
            );
            let manifests = manifests(&view);
            let model = Catalogue::builtin().resolve(target.model()).unwrap();
            let counter = counter_for(model.encoding);
            // The same message has the standing rules before the manifest, and what the person says next behind its last
            // line; the line feed between them is not the manifest's.
            let manifest = |text: &str| {
                let end = text.find("Left out:").map_or(text.len(), |at| {
                    at + text[at..].find('\n').unwrap_or(text.len() - at)
                });
                let start = text.find("Earlier here").unwrap_or(0);
                counter.count(&text[start..end]).high
            };
            let tokens: u64 = manifests.iter().map(|one| manifest(one)).sum();
            assert!(tokens <= window * 15 / 100, "{window}, {turns}: {tokens}");
        }
    }
}

#[test]
fn the_hosts_word_says_which_calls_changed_something() {
    let mut items = vec![says(Role::User, "Keep my basket in order.")];
    for step in 0..60 {
        for tool in ["sync_basket", "check_basket"] {
            let arguments = json!({"basket": format!("B{step}")});
            let output = "in order ".repeat(20);
            items.extend(calls(&format!("{tool}{step}"), tool, &arguments, output));
        }
        items.push(says(Role::User, "And again please."));
    }
    let target = Target::openai_chat("gpt-4o").window(3_000).reserve(300);
    let named = |compiler: &Compiler<'_>| {
        let compiled = compiler.compile(&items, &target).unwrap();
        let view = view(&compiled, &target);
        ["sync_basket", "check_basket"].map(|tool| told(&manifests(&view), tool).0 > 0)
    };
    let by_name = Compiler::new(Catalogue::builtin()).with_manifests();
    assert_eq!(named(&by_name), [true, false]);
    let hints = ToolHints::default()
        .with_effect("sync_basket", CallEffect::Reads)
        .with_effect("check_basket", CallEffect::Changes);
    assert_eq!(named(&by_name.with_tool_hints(hints)), [false, true]);
}
