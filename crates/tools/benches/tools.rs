//! What choosing among a thousand tools costs, and what reading and checking arguments does.
//!
//! Run with `cargo bench -p contexture-tools`. The goal is 0.1 ms for a selection with a built index.

#![expect(clippy::unwrap_used, reason = "a bench stops at the first fault")]

#[path = "../tests/it/large_registry.rs"]
mod large_registry;

use std::hint::black_box;

use contexture_ir::Raw;
use contexture_tools::{
    Choice, LoadedToolkits, OfferRequest, Policy, Registry, Tool, ToolSupport, arguments,
};
use criterion::{Criterion, criterion_group, criterion_main};

const TASK: &str = "The nightly deployment failed: find the pods that are crashing, roll the release back, open \
    an issue for the on-call engineer with the log lines, and post a message in the operations channel when it is done.";

fn selection(c: &mut Criterion) {
    let registry = large_registry::registry();
    let index = registry.index();
    c.bench_function("rank 1,000 tools", |b| {
        b.iter(|| index.rank_units(black_box(TASK), 20));
    });
    let (choice, loaded) = (Choice::by_task(TASK, 20), LoadedToolkits::default());
    let wish = |latched| OfferRequest {
        choice: &choice,
        loaded: &loaded,
        latched,
        support: ToolSupport::default(),
        limit: None,
    };
    c.bench_function("offer 20 of 1,000 tools", |b| {
        b.iter(|| registry.offer(wish(None)));
    });
    let first = registry.offer(wish(None));
    c.bench_function("offer 20 of 1,000 tools, latched", |b| {
        b.iter(|| registry.offer(wish(Some(&first.selection))));
    });
    c.bench_function("register and index 1,000 tools", |b| {
        b.iter(|| large_registry::registry().index().len());
    });
}

fn reading(c: &mut Criterion) {
    let whole = r#"{"path": "src/main.rs", "edits": [{"line": 12, "text": "fn main() {}"}], "dry_run": false}"#;
    let cut = r#"{path: 'src/main.rs', "edits": [{"line": 12, "text": "fn main() {"#;
    c.bench_function("read arguments", |b| {
        b.iter(|| arguments::parse_arguments(black_box(whole)));
    });
    c.bench_function("mend arguments", |b| {
        b.iter(|| arguments::parse_arguments(black_box(cut)));
    });
    let mut registry = Registry::new();
    let schema = r#"{"type":"object","properties":{"path":{"type":"string"},"edits":{"type":"array","items":
        {"type":"object","properties":{"line":{"type":"integer"},"text":{"type":"string"}}}}},"required":["path"]}"#;
    let tool = Tool::function("edit", "Edits a file", Raw::parse(schema).unwrap());
    registry.register(tool).unwrap();
    let call = contexture_tools::Call::new("edit", whole);
    c.bench_function("resolve and check a call", |b| {
        b.iter(|| {
            let resolved = registry.resolve(&call, &Policy::default(), &LoadedToolkits::default());
            registry.check_arguments(&resolved.unwrap())
        });
    });
}

criterion_group!(benches, selection, reading);
criterion_main!(benches);
