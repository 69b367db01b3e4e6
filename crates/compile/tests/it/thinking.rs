//! Thinking that its model binds to all that stood before it: no payload holds a signed block behind another system prompt, other tools or other
//! messages than those it was answered to.
//!
//! A checker of its own remembers for each block the payload that it was answered to, and looks at nothing of the compile but its payloads.

use std::collections::{BTreeMap, BTreeSet};

use contexture_catalogue::Catalogue;
use contexture_compile::{
    CacheState, Clear, ClearPolicy, CompileInput, CompileRequest, Compiled, Contribution, Cover,
    EditedThinking, EpochReason, OmitReason, PathItem, Plan, PreviewPolicy, Previewing, Refusal,
    Rewriting, Scratch, Target, TextSize, compile,
};
use contexture_ir::{FunctionTool, Item, Raw, ToolDefinition};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::fixtures::{Quarter, assistant, call, output, user};
use crate::invariants::check_report;

const MODEL: &str = "claude-fable-5-1";

fn thought(signature: &str, text: &str) -> Item {
    let item = json!({
        "type": "reasoning",
        "summary": [],
        "content": [{"type": "reasoning_text", "text": text}],
        "signature": signature,
        "format": "anthropic-claude-v1",
    });
    Item::parse(&item.to_string()).unwrap()
}

/// A compaction as its maker left it: ours has no format.
fn compaction(format: Option<&str>) -> Item {
    let mut item = json!({
        "type": "compaction",
        "summary": [{"type": "summary_text", "text": "what was done before"}],
        "ctx:covers": null,
    });
    if let Some(format) = format {
        item["format"] = format.into();
    }
    Item::parse(&item.to_string()).unwrap()
}

fn tool(name: &str) -> ToolDefinition {
    ToolDefinition::Function(FunctionTool {
        name: name.to_owned(),
        parameters: Some(Raw::parse(r#"{"type":"object"}"#).unwrap()),
        ..FunctionTool::default()
    })
}

fn request(window: u64) -> CompileRequest {
    let target = Target::anthropic(MODEL).window(window).reserve(500);
    let target = target.tools(vec![tool("look_up")]).marker_policy(None);
    target.build_request(Catalogue::builtin()).unwrap()
}

/// A block and the prefix that it stands behind: model, system prompt, tools, messages, and the blocks before it in its own.
struct Prefixed {
    signature: String,
    prefix: Value,
}

fn head(payload: &Value) -> Value {
    json!([payload["model"], payload["system"], payload["tools"]])
}

fn signed_blocks(payload: &Value) -> Vec<Prefixed> {
    let messages = payload["messages"].as_array().unwrap();
    let mut found = Vec::new();
    for (at, message) in messages.iter().enumerate() {
        let blocks = message["content"].as_array().map_or(&[][..], Vec::as_slice);
        for (place, block) in blocks.iter().enumerate() {
            if let Some(signature) = block["signature"].as_str() {
                found.push(Prefixed {
                    signature: signature.to_owned(),
                    prefix: json!([head(payload), messages[..at], blocks[..place]]),
                });
            }
        }
    }
    found
}

/// What each block was answered to.
#[derive(Default)]
struct Provider {
    bound: BTreeMap<String, Value>,
    /// How many blocks were sent behind what they were answered to.
    kept: usize,
}

impl Provider {
    /// The first block behind another prefix than its own.
    fn mismatch(&mut self, payload: &Value) -> Option<String> {
        let blocks = signed_blocks(payload);
        let wrong = blocks
            .iter()
            .find(|block| self.bound[&block.signature] != block.prefix);
        self.kept += blocks.len();
        wrong.map(|block| format!("{}: {}", block.signature, payload))
    }

    /// Answers a payload with some blocks, which are bound to it.
    fn answer(&mut self, payload: &Value, answer: &[Item]) {
        let mut said: Vec<Value> = Vec::new();
        for item in answer {
            let item: Value = serde_json::from_str(&item.to_json()).unwrap();
            let block = match item["type"].as_str().unwrap() {
                "reasoning" => {
                    let signature = item["signature"].as_str().unwrap();
                    let prefix = json!([head(payload), payload["messages"], said]);
                    self.bound.insert(signature.to_owned(), prefix);
                    let text = &item["content"][0]["text"];
                    json!({"type": "thinking", "thinking": text, "signature": signature})
                }
                "function_call" => {
                    let input: Value =
                        serde_json::from_str(item["arguments"].as_str().unwrap()).unwrap();
                    json!({"type": "tool_use", "id": item["call_id"], "name": item["name"], "input": input})
                }
                _ => json!({"type": "text", "text": item["content"][0]["text"]}),
            };
            said.push(block);
        }
    }
}

/// What a host changes before a call.
#[derive(Clone, Copy, Debug)]
enum Change {
    Nothing,
    System,
    Tool,
    Compact,
    Uncompact,
    Previews(Previewing),
    Window(u64),
    Limit,
    DropBlocks(bool),
    Tail,
    Pin,
    Insert,
}

/// What the model answers, and what follows.
#[derive(Clone, Copy, Debug)]
enum Answer {
    /// Calls, and the length of their outputs.
    Calls(usize, usize),
    Text,
}

#[derive(Clone, Debug)]
struct Turn {
    change: Change,
    answer: Answer,
    thoughts: bool,
    /// Compiled before, without an answer.
    twice: bool,
}

fn turn() -> impl Strategy<Value = Turn> {
    let change = prop_oneof![
        20 => Just(Change::Nothing),
        1 => Just(Change::System),
        1 => Just(Change::Tool),
        2 => Just(Change::Compact),
        1 => Just(Change::Uncompact),
        1 => Just(Change::Previews(Previewing::Always)),
        1 => Just(Change::Previews(Previewing::Worthwhile { calls: 20 })),
        2 => (1_500..12_000u64).prop_map(Change::Window),
        1 => Just(Change::Limit),
        1 => any::<bool>().prop_map(Change::DropBlocks),
        1 => Just(Change::Tail),
        1 => Just(Change::Pin),
        1 => Just(Change::Insert),
    ];
    let answer = prop_oneof![
        4 => (1..3usize, prop_oneof![Just(40), 200..6_000usize])
            .prop_map(|(calls, bytes)| Answer::Calls(calls, bytes)),
        1 => Just(Answer::Text),
    ];
    let flags = (proptest::bool::weighted(0.8), proptest::bool::weighted(0.2));
    (change, answer, flags).prop_map(|(change, answer, (thoughts, twice))| Turn {
        change,
        answer,
        thoughts,
        twice,
    })
}

/// A host that keeps what is answered, and its plan with it.
struct Host {
    path: Vec<PathItem>,
    covers: Vec<Cover>,
    request: CompileRequest,
    system: String,
    tail: bool,
    plan: Plan,
    scratch: Scratch,
    provider: Provider,
    count: usize,
    /// How many items the last payload was of.
    sent: usize,
}

impl Host {
    fn new(request: CompileRequest) -> Self {
        Self {
            path: PathItem::from_items([user("Fix the bug.")]),
            covers: Vec::new(),
            request,
            system: "Be brief.".to_owned(),
            tail: false,
            plan: Plan::default(),
            scratch: Scratch::new(),
            provider: Provider::default(),
            count: 0,
            sent: 0,
        }
    }

    fn compile(&mut self) -> Result<Compiled, Refusal> {
        let mut contributions = vec![Contribution::system("system", self.system.clone())];
        if self.tail {
            contributions.push(Contribution::tail("state", format!("step {}", self.count)));
        }
        let input = CompileInput {
            path: (&self.path).into(),
            covers: &self.covers,
            dropped_rules: &[],
            passes: &[],
            contributions: &contributions,
            plan: &self.plan,
            request: &self.request,
            counter: &Quarter,
            cancel: None,
        };
        compile(&input, &mut self.scratch)
    }

    fn push(&mut self, items: impl IntoIterator<Item = Item>) {
        self.path.extend(PathItem::from_items(items));
    }

    fn change(&mut self, change: Change) {
        let newest = self.path.len() - 1;
        self.tail = false;
        match change {
            Change::Nothing => {}
            Change::System => self.system.push_str(" Be kind."),
            Change::Tool => {
                let name = format!("tool_{}", self.request.tools.len());
                self.request.tools.push(tool(&name));
            }
            Change::Compact => {
                // Up to the newest round, whose calls keep their outputs.
                let model = |at: &usize| self.path[*at].item.is_model_output();
                let mut steps = (1..newest).filter(model);
                let start = steps.rfind(|at| !self.path[*at - 1].item.is_model_output());
                if let Some(start) = start.filter(|start| *start > 2) {
                    let at = self.path.len();
                    self.push([compaction(None)]);
                    self.covers.push(Cover {
                        compaction: at,
                        first: 1,
                        last: start - 1,
                    });
                }
            }
            Change::Uncompact => drop(self.covers.pop()),
            Change::Previews(when) => {
                self.request.history.preview = Some(PreviewPolicy {
                    threshold: TextSize::Bytes(600),
                    when,
                    ..PreviewPolicy::default()
                });
            }
            Change::Window(window) => self.request.window = window,
            Change::Limit => self.request.reserve += 1,
            Change::DropBlocks(drops) => {
                self.request.params = drops.then(drop_block).into_iter().collect();
            }
            Change::Tail => self.tail = true,
            Change::Pin => self.path[newest / 2].pinned = true,
            // Nobody may do this to a path; who does it loses thinking, not the call.
            Change::Insert => {
                let at = (newest / 2).min(self.sent.saturating_sub(1));
                self.path.insert(at, PathItem::new(user("By the way.")));
            }
        }
    }

    /// One call; `None` if it is refused.
    fn call(&mut self, turn: &Turn) -> Option<Compiled> {
        self.change(turn.change);
        if turn.twice {
            let first = self.compile().ok();
            let again = self.compile().ok();
            let json = |compiled: &Option<Compiled>| {
                compiled.as_ref().map(|compiled| compiled.payload.to_json())
            };
            assert_eq!(
                json(&first),
                json(&again),
                "two compiles in a row are equal"
            );
        }
        let compiled = self.compile().ok()?;
        check_report(&compiled, &self.path, "thinking");
        let payload = parsed(&compiled);
        self.count += 1;
        self.sent = self.path.len();
        let mut answer = Vec::new();
        if turn.thoughts {
            let text = format!(
                "Thought {}. {}",
                self.count,
                "Hm. ".repeat(self.count % 7 * 20)
            );
            answer.push(thought(&format!("sig{}", self.count), &text));
        }
        let ids: Vec<String> = match turn.answer {
            Answer::Text => Vec::new(),
            Answer::Calls(calls, _) => (0..calls)
                .map(|at| format!("c{}_{at}", self.count))
                .collect(),
        };
        match turn.answer {
            Answer::Text => answer.push(assistant("Done.")),
            Answer::Calls(..) => {
                let of = |id: &String| call(id, &json!({"q": self.count % 5}).to_string());
                answer.extend(ids.iter().map(of));
            }
        }
        self.provider.answer(&payload, &answer);
        self.push(answer);
        match turn.answer {
            Answer::Text => self.push([user("And now?")]),
            Answer::Calls(_, bytes) => {
                let text = format!("line {} ", self.count).repeat(bytes / 8);
                self.push(ids.iter().map(|id| output(id, &text)));
            }
        }
        self.plan = compiled.plan.clone();
        Some(compiled)
    }

    /// Refuses a payload that the provider would refuse for its thinking.
    fn check(&mut self, compiled: &Compiled, length: usize) -> Result<(), String> {
        if !self.request.params.is_empty() {
            return Ok(());
        }
        if let Some(wrong) = self.provider.mismatch(&parsed(compiled)) {
            return Err(wrong);
        }
        let sent = signatures(compiled);
        let Some(frontier) = compiled.plan.thinking_from else {
            return Ok(());
        };
        // What the plan says of the payload holds, whatever the path was answered to.
        let out = (frontier.edit..frontier.index.min(length)).filter_map(|at| self.path.get(at));
        let out = out.map(|item| signature(&item.item));
        match out.flatten().find(|signature| sent.contains(signature)) {
            Some(signature) => Err(format!("{signature} is left out by the plan, and sent")),
            None => Ok(()),
        }
    }
}

fn drop_block() -> (String, Raw) {
    let value = r#"{"type":"adaptive","block_binding":{"prefix_mismatch_behavior":"drop_block"}}"#;
    ("thinking".to_owned(), Raw::parse(value).unwrap())
}

fn parsed(compiled: &Compiled) -> Value {
    serde_json::from_str(&compiled.payload.to_json()).unwrap()
}

fn signatures(compiled: &Compiled) -> BTreeSet<String> {
    let blocks = signed_blocks(&parsed(compiled)).into_iter();
    blocks.map(|block| block.signature).collect()
}

fn signature(item: &Item) -> Option<String> {
    match item {
        Item::Reasoning(thinking) => thinking.signature.clone(),
        _ => None,
    }
}

/// Goes through a session, and counts the payloads that the provider would refuse and the blocks that were kept.
fn run(turns: &[Turn], request: CompileRequest) -> (Vec<String>, usize) {
    let mut host = Host::new(request);
    let mut wrong = Vec::new();
    for turn in turns {
        let length = host.path.len();
        // The answer to a refused payload is bound to it all the same: the checker goes on.
        match host.call(turn) {
            Some(compiled) => wrong.extend(host.check(&compiled, length).err()),
            None => host.request.window = 40_000,
        }
    }
    (wrong, host.provider.kept)
}

fn policy() -> impl Strategy<Value = ClearPolicy> {
    let percent = prop_oneof![Just(100), 20..100u8];
    (percent, 0..3usize, any::<bool>()).prop_map(|(trigger, keep_recent, keep)| ClearPolicy {
        trigger,
        keep_recent,
        keep_reasoning: keep.then_some(1),
        ..ClearPolicy::default()
    })
}

/// A case is a session of up to forty calls.
fn cases() -> ProptestConfig {
    let soak = std::env::var_os("CONTEXTURE_SOAK").is_some();
    ProptestConfig {
        cases: if soak { 10_000 } else { 64 },
        ..ProptestConfig::default()
    }
}

proptest! {
    #![proptest_config(cases())]

    #[test]
    fn thinking_stands_behind_what_it_was_answered_to(
        turns in proptest::collection::vec(turn(), 1..40),
        window in 1_500..8_000u64,
        clear in policy(),
        as_text in any::<bool>(),
        cold in any::<bool>(),
    ) {
        let mut request = request(window);
        request.history.clear = Clear::By(clear);
        if as_text {
            request.history.edited_thinking = EditedThinking::AsText;
        }
        if cold {
            request.cache.state = CacheState::Cold;
        }
        let (wrong, _) = run(&turns, request);
        prop_assert!(wrong.is_empty(), "{}", wrong[0]);
    }
}

/// Fourteen rounds of thinking and a call with a long output.
fn rounds(turns: usize) -> Vec<Turn> {
    let turn = Turn {
        change: Change::Nothing,
        answer: Answer::Calls(1, 6_000),
        thoughts: true,
        twice: false,
    };
    vec![turn; turns]
}

#[test]
fn the_checker_sees_what_a_model_would_refuse() {
    let mut unbound = request(16_000);
    unbound.bound_thinking = false;
    let (wrong, _) = run(&rounds(30), unbound);
    assert!(
        !wrong.is_empty(),
        "outputs are cleared before signed thinking"
    );
    let (wrong, kept) = run(&rounds(30), request(16_000));
    assert_eq!(wrong, Vec::<String>::new());
    assert!(kept > 50, "{kept}: not all of it goes");
}

/// A compaction whose span is pinned whole hides nothing, and still stands before what was thought before it was made.
#[test]
fn a_compaction_of_what_is_pinned_is_an_edit() {
    let turn = |change, thoughts| Turn {
        change,
        thoughts,
        answer: Answer::Calls(1, 40),
        twice: false,
    };
    let turns = [
        turn(Change::Nothing, false),
        turn(Change::Pin, true),
        turn(Change::Compact, false),
    ];
    let (wrong, _) = run(&turns, request(40_000));
    assert_eq!(wrong, Vec::<String>::new());
}

/// A path of rounds, each answered to all before it.
fn imported(rounds: usize, bytes: usize) -> Vec<PathItem> {
    let mut items = vec![user("Fix the bug.")];
    for at in 0..rounds {
        let id = format!("c{at}");
        items.push(thought(
            &format!("sig{at}"),
            &format!("Thought {at}, at length. ").repeat(5),
        ));
        items.push(call(&id, &json!({"q": at}).to_string()));
        items.push(output(&id, &"line ".repeat(bytes / 5)));
    }
    PathItem::from_items(items)
}

fn compiled(path: &[PathItem], request: &CompileRequest, plan: &Plan) -> Compiled {
    let contributions = [Contribution::system("system", "Be brief.")];
    let input = CompileInput {
        path: path.into(),
        covers: &[],
        dropped_rules: &[],
        passes: &[],
        contributions: &contributions,
        plan,
        request,
        counter: &Quarter,
        cancel: None,
    };
    compile(&input, &mut Scratch::new()).unwrap()
}

/// What a report says is left out because it is bound.
fn left_out(compiled: &Compiled) -> Vec<usize> {
    let own = compiled.report.omitted.iter();
    let own = own.filter(|span| span.reason == OmitReason::BoundThinking);
    own.flat_map(|span| span.first..=span.last).collect()
}

fn placeholders(compiled: &Compiled) -> Vec<usize> {
    let rewritten = compiled.report.rewritten.iter();
    let cleared = rewritten.filter(|one| one.rewriting == Rewriting::Cleared);
    cleared.map(|one| one.index).collect()
}

#[test]
fn an_edit_takes_the_thinking_behind_it_and_no_other() {
    let path = imported(14, 6_000);
    let whole = compiled(&path, &request(100_000), &Plan::default());
    assert_eq!(signatures(&whole).len(), 14);
    assert_eq!((left_out(&whole), whole.plan.thinking_from), (vec![], None));

    let request = request(16_000);
    let first = compiled(&path, &request, &Plan::default());
    let edit = placeholders(&first)[0];
    let behind: Vec<usize> = (0..path.len())
        .filter(|at| *at > edit && signature(&path[*at].item).is_some())
        .collect();
    assert!(!behind.is_empty());
    assert_eq!(left_out(&first), behind);
    assert_eq!(signatures(&first).len(), 14 - behind.len());
    let rows = first.report.segments.iter();
    let row = rows.clone().find(|row| row.source == "thinking").unwrap();
    assert!(row.omitted_tokens > 25 * behind.len() as u64, "{row:?}");
    assert_eq!(row.label, format!("{} thoughts", behind.len()));
    let frontier = first.plan.thinking_from.unwrap();
    assert_eq!((frontier.edit, frontier.index), (edit, path.len()));

    // What is answered to that is sent, and the plan travels as JSON.
    let mut longer = path;
    let more = [
        thought("new", "Now."),
        call("c99", "{}"),
        output("c99", "ok"),
    ];
    longer.extend(PathItem::from_items(more));
    let plan = serde_json::to_string(&first.plan).unwrap();
    let next = compiled(&longer, &request, &serde_json::from_str(&plan).unwrap());
    assert!(signatures(&next).contains("new"));
    assert_eq!(left_out(&next), behind);
    assert!(!next.report.epoch.opened);
}

#[test]
fn what_stands_before_the_history_takes_all_of_it() {
    let path = imported(4, 400);
    let request = request(100_000);
    let before = compiled(&path, &request, &Plan::default());
    let next = |request: &CompileRequest, plan: &Plan| compiled(&path, request, plan);
    let mut tools = request.clone();
    tools.tools.push(tool("another"));
    let mut model = request.clone();
    model.model = "claude-opus-5-5".to_owned();
    for (request, reason) in [
        (&tools, EpochReason::ToolsChanged),
        (&model, EpochReason::TargetChanged),
    ] {
        let after = next(request, &before.plan);
        assert_eq!(after.report.epoch.reason, reason);
        assert!(signatures(&after).is_empty(), "{reason:?}");
        assert_eq!(left_out(&after).len(), 4);
    }
    let mut system = before.plan.clone();
    system.prefix.as_mut().unwrap().system = contexture_ir::ContentHash::of(b"other");
    assert!(signatures(&next(&request, &system)).is_empty());
    // Another limit for the answer edits nothing.
    let mut limit = request.clone();
    limit.reserve += 100;
    let after = next(&limit, &before.plan);
    assert_eq!(after.report.epoch.reason, EpochReason::TargetChanged);
    assert_eq!(signatures(&after).len(), 4);
    // Nor does it where nothing binds thinking.
    let mut unbound = tools;
    unbound.bound_thinking = false;
    assert_eq!(signatures(&next(&unbound, &before.plan)).len(), 4);
}

#[test]
fn a_policy_keeps_what_it_says_as_text() {
    let mut path = imported(14, 6_000);
    let hidden = r#"{"type":"reasoning","summary":[],"encrypted_content":"AAAA","format":"anthropic-claude-v1"}"#;
    path.insert(38, PathItem::new(Item::parse(hidden).unwrap()));
    let mut request = request(16_000);
    request.history.edited_thinking = EditedThinking::AsText;
    let first = compiled(&path, &request, &Plan::default());
    let shown = first.report.rewritten.iter();
    let shown: Vec<_> = shown
        .filter(|one| one.rewriting == Rewriting::ThinkingText)
        .collect();
    assert!(shown.len() > 3, "{}", shown.len());
    assert_eq!(left_out(&first), [38], "only its maker can read it");
    let json = first.payload.to_json();
    assert!(
        json.contains(r"<thinking>\nThought 13, at length."),
        "{json}"
    );
    let next = compiled(&path, &request, &first.plan);
    assert_eq!(next.payload.to_json(), json);
}

#[test]
fn a_request_that_has_the_provider_drop_blocks_keeps_them() {
    let path = imported(14, 6_000);
    let mut request = request(16_000);
    request.params.push(drop_block());
    let first = compiled(&path, &request, &Plan::default());
    assert!(!placeholders(&first).is_empty());
    assert_eq!(left_out(&first), Vec::<usize>::new());
    assert!(signatures(&first).contains("sig13"));
    assert!(
        first
            .payload
            .to_json()
            .contains(r#""block_binding":{"prefix_mismatch_behavior":"drop_block"}"#)
    );
    // It has to be said in every request: the next one says it no longer.
    request.params.clear();
    let next = compiled(&path, &request, &first.plan);
    assert!(signatures(&next).is_empty());
}

#[test]
fn thinking_behind_words_of_one_call_goes_with_them() {
    let mut host = Host::new(request(100_000));
    let tail = |change| Turn {
        change,
        ..rounds(1)[0].clone()
    };
    for change in [
        Change::Nothing,
        Change::Tail,
        Change::Nothing,
        Change::Nothing,
    ] {
        let length = host.path.len();
        let compiled = host.call(&tail(change)).unwrap();
        assert_eq!(host.check(&compiled, length), Ok(()));
    }
    let last = host.compile().unwrap();
    let sent: Vec<String> = signatures(&last).into_iter().collect();
    assert_eq!(
        sent,
        ["sig1", "sig3", "sig4"],
        "the second was answered behind a tail"
    );
    assert_eq!(last.plan.epoch, 1);
}

#[test]
fn an_open_turn_keeps_its_thinking_for_moneys_sake() {
    let mut request = request(60_000);
    request.history.clear = Clear::By(ClearPolicy {
        trigger: 5,
        low_water: 1,
        keep_recent: 0,
        calls: 100_000,
        ..ClearPolicy::default()
    });
    let mut host = Host::new(request);
    for turn in rounds(12) {
        let compiled = host.call(&turn).unwrap();
        assert_eq!(placeholders(&compiled), Vec::<usize>::new());
    }
    // The turn is over, and the next words are a person's.
    host.call(&Turn {
        answer: Answer::Text,
        ..rounds(1)[0].clone()
    })
    .unwrap();
    let next = host.compile().unwrap();
    assert!(
        !placeholders(&next).is_empty(),
        "{:?}",
        next.report.cache.rewriting
    );
    assert!(next.report.cache.rewriting.unwrap().rewrite);
    // Its price is that of thinking it again.
    host.request.bound_thinking = false;
    let unbound = host.compile().unwrap().report.cache.rewriting.unwrap();
    assert!(next.report.cache.rewriting.unwrap().cost > unbound.cost);
}

#[test]
fn a_providers_own_compaction_keeps_what_is_thought_behind_it() {
    for (format, kept) in [(Some("anthropic-claude-v1"), vec!["sig9"]), (None, vec![])] {
        let path = imported(6, 400);
        let request = request(100_000);
        let before = compiled(&path, &request, &Plan::default());
        // The answer: what stands for the whole path, and what was thought behind it.
        let mut longer = path.clone();
        let answer = [
            compaction(format),
            thought("sig9", "Go on."),
            call("c9", "{}"),
            output("c9", "ok"),
        ];
        longer.extend(PathItem::from_items(answer));
        let covers = [Cover {
            compaction: path.len(),
            first: 0,
            last: path.len() - 1,
        }];
        let contributions = [Contribution::system("system", "Be brief.")];
        let input = CompileInput {
            path: (&longer).into(),
            covers: &covers,
            dropped_rules: &[],
            passes: &[],
            contributions: &contributions,
            plan: &before.plan,
            request: &request,
            counter: &Quarter,
            cancel: None,
        };
        let next = compile(&input, &mut Scratch::new()).unwrap();
        let sent: Vec<String> = signatures(&next).into_iter().collect();
        assert_eq!(sent, kept, "{format:?}");
    }
}

#[test]
fn plans_from_before_open_and_trust_nothing_that_was_edited() {
    let path = imported(14, 6_000);
    let mut unbound = request(16_000);
    unbound.bound_thinking = false;
    let before = compiled(&path, &unbound, &Plan::default());
    let plan = serde_json::to_value(&before.plan).unwrap();
    assert!(plan.get("thinking_from").is_none() && plan["sent"].get("newest").is_none());
    let plan: Plan = serde_json::from_value(plan).unwrap();
    let next = compiled(&path, &request(16_000), &plan);
    let edit = placeholders(&next)[0];
    let behind = left_out(&next);
    assert!(behind.iter().all(|at| *at > edit) && behind.len() == 14 - signatures(&next).len());
    assert!(!signatures(&next).contains("sig13"));
}
