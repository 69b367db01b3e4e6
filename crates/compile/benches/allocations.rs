//! What a compile asks of the allocator: tau-bench as one conversation, cold, and after one new item.
//!
//! Not here: times, which counting would change; they are in `compile`.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a benchmark: its figures go to the terminal"
)]

mod tau_bench;

use allocation_counter::{AllocationInfo, measure};
use contexture_catalogue::Catalogue;
use contexture_compile::{CompileInput, Compiled, PathItem, Plan, Scratch, Target, compile};
use contexture_ir::{Item, Message, Role};
use contexture_tokens::{Encoding, counter_for};

fn main() {
    let counter = counter_for(Encoding::O200kBase);
    counter.count("loads the vocabulary");
    let catalogue = Catalogue::builtin();
    for (name, window) in [("whole", 4_000_000), ("128k", 128_000)] {
        let target = Target::openai_chat("gpt-4o").window(window);
        let request = target.build_request(catalogue).unwrap();
        let run = |path: &[PathItem], plan: &Plan, scratch: &mut Scratch| -> Compiled {
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
        let (mut path, mut plan, mut scratch) =
            (tau_bench::path(0), Plan::default(), Scratch::new());
        let cold = measure(|| plan = run(&path, &plan, &mut scratch).plan);
        print(name, "cold", path.len(), &cold);
        let mut next = |turn: usize| {
            let role = [Role::User, Role::Assistant][turn % 2];
            let item: Item = Message::text(role, format!("turn {turn}")).into();
            path.push(PathItem::new(item));
            measure(|| plan = run(&path, &plan, &mut scratch).plan)
        };
        let mut all: Vec<AllocationInfo> = (0..21).map(&mut next).collect();
        all.sort_by_key(|one| one.bytes_total);
        print(name, "one new item, median of 21", path.len(), &all[10]);
        print(name, "one new item, the most of 21", path.len(), &all[20]);
    }
}

fn print(window: &str, what: &str, items: usize, info: &AllocationInfo) {
    let kilobytes = info.bytes_total.div_ceil(1_000);
    println!(
        "{window}/{items} items/{what}: {kilobytes} kB in {} allocations",
        info.count_total
    );
}
