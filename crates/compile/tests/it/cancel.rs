//! A compile that is called off gives nothing, and spoils nothing.

use std::sync::atomic::{AtomicUsize, Ordering};

use contexture_compile::{
    Cancel, CompileInput, Compiled, Pass, PassPoint, PathItem, Plan, Refusal, Scratch, ViewItem,
    compile,
};
use contexture_tokens::TokenCounter;
use contexture_wire::Format;

use crate::fixtures::{Quarter, assistant, request, user};

fn history() -> Vec<PathItem> {
    let items = (0..40).flat_map(|at| {
        [
            user(&format!("question {at}")),
            assistant(&format!("answer {at}")),
        ]
    });
    PathItem::from_items(items.chain([user("and now?")]))
}

fn run(
    path: &[PathItem],
    passes: &[&dyn Pass],
    counter: &dyn TokenCounter,
    cancel: Option<&Cancel>,
    scratch: &mut Scratch,
) -> Result<Compiled, Refusal> {
    let request = request(Format::Anthropic, 20_000);
    let input = CompileInput {
        path: path.into(),
        covers: &[],
        dropped_rules: &[],
        passes,
        contributions: &[],
        plan: &Plan::default(),
        request: &request,
        counter,
        cancel,
    };
    compile(&input, scratch)
}

/// Cancels when it is run.
#[derive(Debug)]
struct Canceller(Cancel, PassPoint, AtomicUsize);

impl Pass for Canceller {
    fn name(&self) -> &str {
        "canceller"
    }

    fn point(&self) -> PassPoint {
        self.1
    }

    fn transform_items(&self, items: Vec<ViewItem>) -> Vec<ViewItem> {
        self.0.cancel();
        self.2.fetch_add(1, Ordering::Relaxed);
        items
    }
}

/// Cancels once it has counted so often.
#[derive(Debug)]
struct CountsDown<'a>(&'a Cancel, AtomicUsize);

impl TokenCounter for CountsDown<'_> {
    fn name(&self) -> &str {
        Quarter.name()
    }

    fn count(&self, text: &str) -> contexture_tokens::TokenCount {
        if self.1.fetch_sub(1, Ordering::Relaxed) == 1 {
            self.0.cancel();
        }
        Quarter.count(text)
    }
}

#[test]
fn what_is_cancelled_before_gives_nothing() {
    let path = history();
    let cancel = Cancel::new();
    let mut scratch = Scratch::new();
    let before = run(&path, &[], &Quarter, Some(&cancel), &mut scratch).unwrap();
    cancel.clone().cancel();
    let refused = run(&path, &[], &Quarter, Some(&cancel), &mut scratch).unwrap_err();
    assert_eq!(refused, Refusal::Cancelled);
    assert_eq!(refused.kind(), "cancelled");
    let after = run(&path, &[], &Quarter, None, &mut scratch).unwrap();
    assert_eq!(after.payload.to_json(), before.payload.to_json());
    assert_eq!(after.report, before.report);
}

#[test]
fn what_is_cancelled_between_passes_goes_no_further() {
    let path = history();
    let cancel = Cancel::new();
    let first = Canceller(cancel.clone(), PassPoint::BeforeView, AtomicUsize::new(0));
    let second = Canceller(cancel.clone(), PassPoint::AfterView, AtomicUsize::new(0));
    let passes: [&dyn Pass; 2] = [&first, &second];
    let mut scratch = Scratch::new();
    let refused = run(&path, &passes, &Quarter, Some(&cancel), &mut scratch);
    assert_eq!(refused.unwrap_err(), Refusal::Cancelled);
    let ran = [&first, &second].map(|pass| pass.2.load(Ordering::Relaxed));
    assert_eq!(ran, [1, 0]);
}

#[test]
fn the_scratch_of_a_cancelled_compile_stays_good() {
    let path = history();
    let cold = run(&path, &[], &Quarter, None, &mut Scratch::new()).unwrap();
    let mut cancelled = 0;
    for counts in 1..200 {
        let cancel = Cancel::new();
        let counter = CountsDown(&cancel, AtomicUsize::new(counts));
        let mut scratch = Scratch::new();
        let outcome = run(&path, &[], &counter, Some(&cancel), &mut scratch);
        cancelled += usize::from(matches!(outcome, Err(Refusal::Cancelled)));
        let again = run(&path, &[], &Quarter, None, &mut scratch).unwrap();
        assert_eq!(again.payload.to_json(), cold.payload.to_json(), "{counts}");
        assert_eq!(again.report, cold.report, "{counts}");
    }
    assert!(cancelled > 50, "{cancelled}");
}
