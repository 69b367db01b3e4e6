//! Generated sessions with planted rules, in every payload: whatever the window, the target and the policy take out of view.

use std::collections::BTreeSet;

use contexture_catalogue::{Catalogue, Encoding};
use contexture_compile::{
    CompileInput, Compiled, Cover, HistoryPolicy, PathItem, Plan, Scratch, Target, compile,
    list_standing_rules,
};
use contexture_ir::{
    Compaction, FunctionCall, FunctionCallOutput, Item, Message, Origin, Output, Part, Role,
    TextPart,
};
use contexture_store_testkit::test_seed;
use contexture_testdata::{PlantedMessage, PlantedSpeaker, SeededNumbers, planted_session};
use contexture_tokens::counter_for;

use super::standing_rules::{policies, targets, user_texts};

const WINDOWS: [u64; 6] = [4_000, 8_000, 16_000, 32_000, 64_000, 128_000];

fn path_item(item: impl Into<Item>, origin: Origin) -> PathItem {
    let mut item = PathItem::new(item.into());
    item.origin = origin;
    item
}

/// The items of a message, as they are stored.
fn items_of(message: &PlantedMessage) -> Vec<PathItem> {
    let text = message.text.as_str();
    let says = |role, origin| vec![path_item(Message::text(role, text), origin)];
    match message.speaker {
        PlantedSpeaker::Person => says(Role::User, Origin::User),
        PlantedSpeaker::Tool => {
            let output = FunctionCallOutput::new("c", Output::Text(text.to_owned()));
            vec![
                path_item(FunctionCall::new("c", "look", "{}"), Origin::Model),
                path_item(output, Origin::Tool),
            ]
        }
        PlantedSpeaker::Model => says(Role::Assistant, Origin::Model),
        PlantedSpeaker::Layer => says(Role::User, Origin::Layer),
        PlantedSpeaker::Host => says(Role::Developer, Origin::System),
    }
}

/// A session as a path, and for each rule of it the text of its message.
struct Session {
    path: Vec<PathItem>,
    planted: Vec<(String, String)>,
}

impl Session {
    fn generate(numbers: &mut SeededNumbers) -> Self {
        let messages = planted_session(numbers);
        let planted = messages.iter().filter_map(|one| {
            let rule = one.rule.clone()?;
            Some((rule, one.text.clone()))
        });
        Self {
            planted: planted.collect(),
            path: messages.iter().flat_map(items_of).collect(),
        }
    }

    /// The same with a compaction for its first half.
    fn with_cover(&self) -> (Vec<PathItem>, Vec<Cover>) {
        let summary = "Some things were looked at.";
        let compaction = Compaction {
            summary: vec![Part::SummaryText(TextPart::new(summary))],
            ..Compaction::default()
        };
        let mut path = self.path.clone();
        let cover = Cover {
            compaction: path.len(),
            first: 1,
            last: path.len() / 2,
        };
        path.push(path_item(compaction, Origin::System));
        (path, vec![cover])
    }

    /// Checks that each rule that still holds is in a payload: in its own message or quoted, unless the report says that it has no
    /// room; and that nothing else is quoted. Returns how many are quoted.
    fn check(&self, path: &[PathItem], compiled: &Compiled, case: &str) -> usize {
        let texts = user_texts(compiled);
        let standing = compiled.report.standing.as_ref();
        let left_out: BTreeSet<&str> = standing
            .iter()
            .flat_map(|standing| standing.left_out.iter().map(|rule| rule.id.as_str()))
            .collect();
        let quoted: Vec<&str> = texts.iter().flat_map(|text| quoted_rules(text)).collect();
        for rule in list_standing_rules(path, &[]) {
            let (sentence, id) = (rule.text.as_str(), rule.id.to_string());
            let own = self.planted.iter().filter(|(rule, _)| rule == sentence);
            let in_view = own.clone().any(|(_, message)| {
                let holds = |text: &String| text.contains(message.as_str());
                texts.iter().any(holds)
            });
            assert!(own.count() > 0, "{case}: nobody planted {sentence:?}");
            assert!(
                in_view || quoted.contains(&sentence) || left_out.contains(id.as_str()),
                "{case}: {sentence:?} is neither in view nor quoted"
            );
        }
        for sentence in &quoted {
            assert!(
                self.planted.iter().any(|(rule, _)| rule == sentence),
                "{case}: nobody planted {sentence:?}"
            );
        }
        quoted.len()
    }
}

/// The rules that a text of the request quotes.
fn quoted_rules(text: &str) -> Vec<&str> {
    let Some((_, rest)) = text.split_once("still in force.") else {
        return Vec::new();
    };
    let lines = rest.lines().take_while(|line| !line.starts_with("</"));
    let rules = lines.filter_map(|line| line.strip_prefix("- turn ")?.split_once(": "));
    rules.map(|(_, rule)| rule).collect()
}

fn compile_path(
    (path, covers): (&[PathItem], &[Cover]),
    plan: &Plan,
    target: &Target,
    scratch: &mut Scratch,
) -> Compiled {
    let request = target.build_request(Catalogue::builtin()).unwrap();
    let input = CompileInput {
        path: path.into(),
        covers,
        dropped_rules: &[],
        passes: &[],
        contributions: &[],
        plan,
        request: &request,
        counter: counter_for(Encoding::O200kBase),
        cancel: None,
    };
    compile(&input, scratch).unwrap()
}

#[test]
fn planted_rules_are_in_every_payload() {
    let seed = test_seed();
    let soak = std::env::var_os("CONTEXTURE_SOAK").is_some();
    let sessions = if soak { 1_000 } else { 3 };
    let mut numbers = SeededNumbers::new(seed);
    let (mut quoted, mut rules) = (0, 0);
    for number in 0..sessions {
        let session = Session::generate(&mut numbers);
        rules += session.planted.len();
        let all = policies();
        let policy: &HistoryPolicy = &all[numbers.next_below(all.len())];
        let (covered, covers) = session.with_cover();
        for (path, covers) in [(&session.path, &[][..]), (&covered, &covers[..])] {
            for target in targets() {
                let mut scratch = Scratch::new();
                for window in WINDOWS {
                    let target = target.clone().window(window).reserve(500);
                    let target = target.history(policy.clone());
                    let case = format!(
                        "session {number} of seed {seed}, {} {window}, {} covers, {policy:?}",
                        target.name(),
                        covers.len()
                    );
                    let path = (&path[..], covers);
                    let compiled = compile_path(path, &Plan::default(), &target, &mut scratch);
                    quoted += session.check(path.0, &compiled, &case);
                }
            }
        }
    }
    println!("{rules} rules in {sessions} sessions, quoted {quoted} times");
    assert!(quoted > rules, "{quoted} of {rules}");
}

/// Call after call, each with the plan of the one before, as a conversation goes.
#[test]
fn planted_rules_stay_while_a_session_grows() {
    let seed = test_seed();
    let soak = std::env::var_os("CONTEXTURE_SOAK").is_some();
    let mut numbers = SeededNumbers::new(seed);
    for number in 0..if soak { 100 } else { 2 } {
        let session = Session::generate(&mut numbers);
        let targets = targets();
        let target = targets[numbers.next_below(targets.len())].clone();
        let window = [4_000, 8_000, 16_000][numbers.next_below(3)];
        let target = target.window(window).reserve(500);
        let (mut plan, mut scratch) = (Plan::default(), Scratch::new());
        // Each turn has seven items, of which the last are a person's.
        for end in (7..=session.path.len()).step_by(7) {
            let path = &session.path[..end];
            let compiled = compile_path((path, &[]), &plan, &target, &mut scratch);
            let case = format!(
                "session {number} of seed {seed}, {end} items, {}",
                target.name()
            );
            session.check(path, &compiled, &case);
            plan = compiled.plan;
        }
    }
}
