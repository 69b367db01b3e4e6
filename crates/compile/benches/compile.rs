//! What a compile costs: tau-bench as one conversation, cold, warm and after one new item.

#![expect(clippy::unwrap_used, reason = "a benchmark")]

mod tau_bench;

use std::hint::black_box;
use std::time::{Duration, Instant};

use contexture_catalogue::Catalogue;
use contexture_compile::{CompileInput, PathItem, Plan, Scratch, Target, TokenCounter, compile};
use contexture_ir::{Item, Message, Role};
use contexture_tokens::{Encoding, counter_for};
use criterion::{Criterion, criterion_group, criterion_main};

fn compiles(c: &mut Criterion) {
    let counter: &dyn TokenCounter = counter_for(Encoding::O200kBase);
    counter.count("loads the vocabulary");
    let wide = Target::openai_chat("gpt-4o")
        .window(4_000_000)
        .reserve(1_000);
    let narrow = Target::openai_chat("gpt-4o").window(128_000);
    let catalogue = Catalogue::builtin();
    for (name, target) in [("whole", &wide), ("128k", &narrow)] {
        let request = target.build_request(catalogue).unwrap();
        for items in [0, 10_000] {
            let mut path = tau_bench::path(items);
            let plan = Plan::default();
            let run = |path: &[PathItem], plan: &Plan, scratch: &mut Scratch| {
                let input = CompileInput {
                    path: path.into(),
                    covers: &[],
                    dropped_rules: &[],
                    passes: &[],
                    contributions: &[],
                    plan,
                    request: &request,
                    counter,
                    cancel: None,
                };
                compile(&input, scratch).unwrap()
            };
            let label = format!("{name}/{} items", path.len());
            let mut group = c.benchmark_group(label);
            group.sample_size(10);
            group.bench_function("cold", |b| {
                b.iter(|| black_box(run(&path, &plan, &mut Scratch::new())));
            });
            let mut scratch = Scratch::new();
            let plan = run(&path, &plan, &mut scratch).plan;
            group.bench_function("warm", |b| {
                b.iter(|| black_box(run(&path, &plan, &mut scratch)));
            });
            let mut turn = 0;
            // A host keeps its path and adds to it; making the item is not counted.
            group.bench_function("one new item", |b| {
                b.iter_custom(|times| {
                    let mut spent = Duration::ZERO;
                    for _ in 0..times {
                        turn += 1;
                        let role = if turn % 2 == 0 {
                            Role::User
                        } else {
                            Role::Assistant
                        };
                        let item: Item = Message::text(role, format!("turn {turn}")).into();
                        path.push(PathItem::new(item));
                        let start = Instant::now();
                        let compiled = run(&path, &plan, &mut scratch);
                        spent += start.elapsed();
                        drop(black_box(compiled));
                    }
                    spent
                });
            });
            let payload = run(&path, &plan, &mut scratch).payload;
            group.bench_function("flatten", |b| b.iter(|| black_box(payload.to_json())));
            group.finish();
        }
    }
}

criterion_group!(benches, compiles);
criterion_main!(benches);
