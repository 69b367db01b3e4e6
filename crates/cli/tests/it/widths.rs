//! Output keeps to the terminal's width: pages of all that is printed, at three widths, and no line wider at any.

use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

use contexture::engine::{TestClock, TestIds};
use contexture::ir::CallId;
use contexture::ir::{FunctionCall, FunctionCallOutput, Output};
use contexture::store::{CallDetails, CallNames, CallOutcome, CallRecord, CallTokens};
use contexture::{Owner, assistant_text, user};
use serde_json::json;
use unicode_width::UnicodeWidthStr as _;

use crate::command::{Place, example};

/// New year 2025: far enough back that every age is a date.
const START_MS: i64 = 1_735_689_600_000;
/// A branch with a name as agents make them.
const LONG_BRANCH: &str = "feature/rewrite-the-refund-flow-for-partial-orders";

/// What is printed for people. `{last}` is the node of the newest message of the active branch.
const LINES: [&str; 27] = [
    "conversations",
    "log support-42",
    "log support-42 --state",
    "show support-42 {last}",
    "show support-42 {call}",
    "search refund",
    "branch list support-42",
    "branch switch support-42 main",
    "checkpoint support-42",
    "calls --upstream openai",
    "usage --by model,outcome --upstream openai",
    "runs",
    "memory list --conversation support-42",
    "skills list skills",
    "stats",
    "stats support-42",
    "import session.traj --conversation marshmallow",
    "import folder",
    "compile session.traj --to anthropic --window 16k -o request.json",
    "explain session.traj --to openai-chat --window 8600 --items",
    "diff first.json second.json --model gpt-4o",
    "count session.traj",
    "doctor --db none.db",
    "prune --older-than 90d",
    "checkpoint support-42 before-refund --branch main",
    "compile support-43 --to anthropic",
    "compile long.json --to openai-chat --window 60 --reserve 10",
];

/// Commands that print what goes on behind their first lines.
const FIRST_LINES: [(&str, usize); 1] = [("doctor --models", 12)];

/// What must be copied whole and may therefore be wider than the terminal.
const WHOLE: [&str; 1] = [LONG_BRANCH];

/// A database with all that there is to list: the same ids and times in every run.
async fn scene() -> (Place, Vec<(&'static str, String)>) {
    let place = Place::new();
    let database = place.database();
    std::fs::create_dir_all(database.parent().unwrap()).unwrap();
    let engine = contexture::open(&database.to_string_lossy()).await.unwrap();
    let engine = engine
        .with_clock(TestClock::new(START_MS))
        .with_ids(TestIds::default());
    let chat = engine.conversation("support-42").resource("ada");
    let chat = chat.title("Order #W8342 arrived broken, and what to do about the gloves");
    let chat = chat.open().await.unwrap();
    let asked = chat
        .save([user(
            "Hi, my order #W8342 arrived broken: the box was open, the gloves are torn, and the shoes are missing.",
        )])
        .await
        .unwrap();
    chat.pin(asked.nodes[0]).await.unwrap();
    let mut draft = chat.draft();
    draft.push_item(FunctionCall::new("c1", "find_order", r#"{"id":"W8342"}"#));
    draft.push_item(FunctionCallOutput::new(
        "c1",
        Output::Text("3 items".to_owned()),
    ));
    let call = draft.commit().await.unwrap();
    let call = call.head.unwrap().to_string();
    chat.checkpoint("before-refund").await.unwrap();
    chat.create_branch(LONG_BRANCH).await.unwrap();
    chat.save([assistant_text(
        "I see the three items. Shall I refund the gloves and the shoes, or send them again?\n\n```\nrefund --order W8342 --items gloves,shoes\n```\n\n以下の商品を返金します。手袋と靴をもう一度お送りすることもできますので、どちらがよいかお知らせください。",
    )])
    .await
    .unwrap();
    let last = chat.head().await.unwrap().unwrap().to_string();
    chat.pin(chat.head().await.unwrap().unwrap()).await.unwrap();
    let other = engine.conversation("0198c1de-7f3a-7c22-9b1e-4f6d2a8b9c10");
    let other = other.open().await.unwrap();
    other
        .save([user("Compare the prices of the three suppliers, please.")])
        .await
        .unwrap();
    record_calls(&engine).await;
    write_files(&place);
    for line in [
        "memory set diet no-peanuts-and-no-walnuts-either-and-tell-the-kitchen-about-it-too -c support-42",
        "run said.txt --script answers.jsonl -c trip",
    ] {
        place.ok(line);
    }
    (place, vec![("{last}", last), ("{call}", call)])
}

async fn record_calls(engine: &contexture::Engine) {
    let call = |(number, outcome): (usize, CallOutcome)| CallRecord {
        outcome,
        names: CallNames {
            upstream: "openai".to_owned(),
            model: "gpt-5.4-with-a-name-that-fills-a-narrow-terminal".to_owned(),
            ..CallNames::default()
        },
        details: CallDetails {
            status: Some(200),
            tokens: Some(CallTokens {
                input: 1_234_567,
                output: 89,
                ..CallTokens::default()
            }),
            pico_dollars: Some(250_000_000_000),
            ..CallDetails::default()
        },
        ..CallRecord::new(
            CallId::from_time(
                START_MS + i64::try_from(number).unwrap() * 3_600_000,
                [0; 10],
            ),
            "",
        )
    };
    let calls = CallOutcome::ALL.into_iter().enumerate().map(call).collect();
    let record = engine.store().calls().unwrap();
    record.record_calls(&Owner::local(), calls).await.unwrap();
}

/// The files that the commands read.
fn write_files(place: &Place) {
    let session = std::fs::read(example("marshmallow-1867.traj")).unwrap();
    place.write("session.traj", &session);
    std::fs::create_dir_all(place.path("folder/.hidden")).unwrap();
    place.write("folder/notes.md", "# Notes");
    place.write("folder/session.traj", &session);
    place.write("said.txt", "What shall I pack?\n");
    place.write("answers.jsonl", "\"Rice crackers.\"\n");
    for (name, about) in [
        (
            "pdf-forms",
            "Fills in forms that are PDF documents, and reads what others have filled in.",
        ),
        ("notes", "Writes release notes."),
    ] {
        std::fs::create_dir_all(place.path(&format!("skills/{name}"))).unwrap();
        let text = format!("---\nname: {name}\ndescription: {about}\n---\n# How\n");
        place.write(&format!("skills/{name}/SKILL.md"), text);
    }
    let request = |system: &str| {
        json!({"model": "gpt-4o", "messages": [
            {"role": "system", "content": format!("You are a support agent. {}", "Be brief. ".repeat(400))},
            {"role": "user", "content": system},
        ]})
    };
    place.write(
        "first.json",
        request("Hello, where is my parcel?").to_string(),
    );
    let mut second = request("Hello, where is my parcel?");
    second["messages"][0]["content"] =
        json!("Today is Monday. You are a support agent of the shop, and you are brief.");
    place.write("second.json", second.to_string());
    let long = json!([{"role": "system", "content": "Follow the twelve rules of the house, in their order. ".repeat(9)}, {"role": "user", "content": "hi"}]);
    place.write("long.json", long.to_string());
}

/// What a command prints on both streams at a width.
fn printed(place: &Place, line: &str, columns: usize) -> String {
    let mut command = place.command();
    let output = command
        .env("COLUMNS", columns.to_string())
        .args(line.split_whitespace())
        .output()
        .unwrap();
    String::from_utf8(output.stdout).unwrap() + &String::from_utf8(output.stderr).unwrap()
}

fn fill_in(line: &str, places: &[(&str, String)]) -> String {
    let fill = |line: String, (name, id): &(&str, String)| line.replace(name, id);
    places.iter().fold(line.to_owned(), fill)
}

/// All commands one below the other, with what differs from run to run made equal.
fn page(place: &Place, places: &[(&str, String)], columns: usize) -> String {
    let mut page = String::new();
    for line in LINES {
        let text = printed(place, &fill_in(line, places), columns);
        let _ = writeln!(page, "$ contexture {line}\n{}", made_equal(line, &text));
    }
    page
}

/// Ages of what the command itself wrote a moment ago, its ids, and what is the machine's.
fn made_equal(line: &str, text: &str) -> String {
    let is_own = [
        "conversations",
        "runs",
        "memory",
        "doctor",
        "stats",
        "prune",
    ]
    .iter()
    .any(|word| line.starts_with(word));
    if !is_own {
        return text.to_owned();
    }
    let word = |word: &str| match word.trim_end() {
        "now" => word.replace("now", "0 s"),
        id if id.len() == 12 && id.bytes().all(|byte| byte.is_ascii_hexdigit()) => {
            word.replace(id, &"0".repeat(12))
        }
        _ => word.replace(|c: char| c.is_ascii_digit(), "0"),
    };
    text.split_inclusive([' ', '\n']).map(word).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_are_as_they_were_at_three_widths() {
    for columns in [50, 80, 120] {
        // A place for each width: some of the commands write.
        let (place, places) = scene().await;
        let page = page(&place, &places, columns);
        let file = format!("tests/it/expected/width-{columns}.txt");
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
        if std::env::var_os("UPDATE_GOLDENS").is_some() {
            std::fs::write(&file, &page).unwrap();
        }
        let expected = std::fs::read_to_string(&file).unwrap();
        assert!(page == expected, "{}:\n{page}", file.display());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_line_is_wider_than_the_terminal() {
    let (place, places) = scene().await;
    for columns in [50, 80, 120, 200] {
        let rest = FIRST_LINES.map(|(line, _)| line);
        for line in LINES.into_iter().chain(rest) {
            let text = printed(&place, &fill_in(line, &places), columns);
            for shown in text.lines() {
                let is_whole = WHOLE.iter().any(|whole| shown.contains(whole));
                assert!(
                    is_whole || shown.width() <= columns,
                    "{line} at {columns}: {} columns: {shown}",
                    shown.width()
                );
            }
        }
    }
}

#[cfg(unix)]
#[test]
fn a_terminal_is_asked_how_wide_it_is() {
    let place = Place::new();
    let command = assert_cmd::cargo::cargo_bin!("contexture");
    // A terminal of 50 columns, in which no variable says so.
    let shell = format!(
        "stty cols 50; {} compile nothing.json --to anthropic",
        command.display()
    );
    let Ok(run) = Command::new("script")
        .args(["-qec", &shell, "/dev/null"])
        .env_remove("COLUMNS")
        .env("XDG_DATA_HOME", place.path("data"))
        .output()
    else {
        println!("NOT TESTED: there is no program `script`");
        return;
    };
    let text = String::from_utf8(run.stdout).unwrap();
    assert!(text.contains("no such file"), "{text}");
    for line in text.lines() {
        let plain = anstream_stripped(line);
        assert!(plain.width() <= 50, "{plain}");
    }
}

/// The line without colours.
fn anstream_stripped(line: &str) -> String {
    let mut out = String::new();
    let mut in_colour = false;
    for c in line.trim_end().chars() {
        match (in_colour, c) {
            (_, '\u{1b}') => in_colour = true,
            (true, 'm') => in_colour = false,
            (true, _) => {}
            (false, c) => out.push(c),
        }
    }
    out
}
