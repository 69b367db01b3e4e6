//! Plans: decisions of an earlier compile, which a client may hand back changed.

use std::sync::LazyLock;

use contexture_catalogue::Catalogue;
use contexture_compile::{
    CompileInput, CompileRequest, Compiled, Contribution, PathItem, Plan, Refusal, Scratch, Target,
    TokenCounter, compile,
};
use contexture_testdata as testdata;
use contexture_tokens::TokenCount;
use contexture_wire::{Format, lift};

use crate::input::{assert_bounded, assert_json, join_choice, split_text_choice};

/// The targets, by the index that the input's first byte chooses.
const TARGETS: [(&str, &str); 4] = [
    ("anthropic", "claude-sonnet-4-5"),
    ("openai-responses", "gpt-5.6"),
    ("openai-chat", "gpt-4.1"),
    ("gemini", "gemini-3.1-pro-preview"),
];

fn format_of(name: &str) -> Format {
    name.parse().unwrap()
}

/// Four bytes a token: exact and fast, so that the compiler is tested and not the tokenizer.
#[derive(Debug)]
struct FourBytes;

impl TokenCounter for FourBytes {
    fn name(&self) -> &str {
        "four bytes"
    }

    fn count(&self, text: &str) -> TokenCount {
        TokenCount::exact(text.len().div_ceil(4) as u64)
    }
}

/// A history that does not fit its window, so that plans have something to decide.
struct Example {
    path: Vec<PathItem>,
    requests: Vec<CompileRequest>,
}

static EXAMPLE: LazyLock<Example> = LazyLock::new(|| {
    let (_, messages) = testdata::chat_histories().swap_remove(0);
    let items = lift(format_of("openai-chat"), &messages.to_string()).unwrap();
    // Long enough for several epochs, and short enough for thousands of compiles a second.
    let items = items.transcript.items.into_iter().take(40);
    let requests = TARGETS.map(|(format, model)| {
        let target = Target::new(format_of(format), model)
            .window(2_600)
            .reserve(400);
        target.build_request(Catalogue::builtin()).unwrap()
    });
    Example {
        path: PathItem::from_items(items),
        requests: requests.into(),
    }
});

/// A plan of any content: it is written and read as the same, and a payload made with it fits and is legal. A history
/// that can be compiled without a plan can be with one.
pub(crate) fn check_plan(data: &[u8]) {
    let Some((index, text)) = split_text_choice(&[0, 1, 2, 3], data) else {
        return;
    };
    let Ok(plan) = serde_json::from_str::<Plan>(text) else {
        return;
    };
    let written = serde_json::to_string(&plan).unwrap();
    assert_bounded("a plan", text.len(), written.len());
    assert_eq!(serde_json::from_str::<Plan>(&written).unwrap(), plan);
    let path = &EXAMPLE.path;
    match compile_with(index, path, &plan) {
        Ok(compiled) => check_payload(format_of(TARGETS[index].0), &compiled),
        Err(refusal) => {
            // Some plans leave no way, as none does; but nobody is refused for a plan alone.
            let without = compile_with(index, path, &Plan::default());
            assert!(without.is_err(), "a plan causes {refusal}: {text}");
        }
    }
}

fn compile_with(index: usize, path: &[PathItem], plan: &Plan) -> Result<Compiled, Refusal> {
    let contributions = [Contribution::system("test", "You answer briefly.")];
    let input = CompileInput {
        path: path.into(),
        covers: &[],
        dropped_rules: &[],
        passes: &[],
        contributions: &contributions,
        plan,
        request: &EXAMPLE.requests[index],
        counter: &FourBytes,
        cancel: None,
    };
    compile(&input, &mut Scratch::new())
}

fn check_payload(format: Format, compiled: &Compiled) {
    let json = compiled.payload.to_json();
    assert_json("a payload", &json);
    lift(format, &json).unwrap();
    let report = &compiled.report;
    assert!(report.totals.tokens <= report.target.limit);
    let segments: u64 = report.segments.iter().map(|segment| segment.tokens).sum();
    assert_eq!(segments, report.totals.tokens);
    let next = serde_json::to_string(&compiled.plan).unwrap();
    assert_eq!(serde_json::from_str::<Plan>(&next).unwrap(), compiled.plan);
}

/// Plans of real compiles, of a path that grows.
pub(crate) fn plans() -> Vec<Vec<u8>> {
    let mut inputs = Vec::new();
    for index in 0..TARGETS.len() {
        let mut plan = Plan::default();
        for end in (4..=EXAMPLE.path.len()).step_by(4) {
            if let Ok(compiled) = compile_with(index, &EXAMPLE.path[..end], &plan) {
                plan = compiled.plan;
                let json = serde_json::to_string(&plan).unwrap();
                inputs.push(join_choice(index, json));
            }
        }
    }
    inputs.push(join_choice(0, "{}"));
    inputs
}
