//! Answers and calls are held against rules.

use contexture_ir::{FunctionCall, FunctionTool, Item, Message, Part, Raw, Role, ToolDefinition};
use contexture_layers::builtin::{
    Answer, Forbidden, Guard, Guardrails, JsonOutput, MaxLength, OnHit, ToolCalls,
};
use contexture_layers::{Gate, Verdict};

use crate::stage::{Stage, assistant};

fn judged(guard: &impl Guard, text: &str) -> Verdict {
    guard.check(&Answer {
        items: &[assistant(text)],
    })
}

fn feedback(verdict: &Verdict) -> &str {
    match verdict {
        Verdict::Retry { feedback } => feedback,
        other => panic!("{other:?}"),
    }
}

#[test]
fn json_is_taken_as_it_is_out_of_its_fence_or_asked_for_again() {
    let schema = r#"{"type":"object","required":["n"],"properties":{"n":{"type":"integer"}}}"#;
    let guard = JsonOutput::of(&Raw::parse(schema).unwrap()).unwrap();
    assert_eq!(judged(&guard, " {\"n\":1}\n"), Verdict::Pass);
    assert_eq!(
        judged(&guard, "```json\n{\"n\":1}\n```"),
        Verdict::Fix(vec![assistant("{\"n\":1}")])
    );
    for (text, why) in [
        ("{\"n\":\"1\"}", "/n: expected"),
        ("Here you are: {\"n\":1}", "expected value at line 1"),
        ("```json\n{\"n\":1}\n```\nand ```", "expected value"),
        ("```python\n{\"n\":1}\n```", "expected value"),
        ("{\"n\":1", "EOF"),
        ("", "EOF"),
    ] {
        let verdict = judged(&guard, text);
        assert!(feedback(&verdict).contains(why), "{text}: {verdict:?}");
    }
    assert_eq!(judged(&JsonOutput::any(), "3"), Verdict::Pass);
    let call = Item::from(FunctionCall::new("1", "look", "{}"));
    let items = [assistant("Let me look."), call];
    assert_eq!(guard.check(&Answer { items: &items }), Verdict::Pass);
    assert!(JsonOutput::of(&Raw::parse("{\"type\":7}").unwrap()).is_err());
}

#[test]
fn what_must_not_be_said_is_replaced_or_ends_the_run() {
    let with = |on_hit| Forbidden::new(r"\bsecret-\d+\b", on_hit).unwrap();
    let replace = with(OnHit::Replace("[$0]".to_owned()));
    assert_eq!(
        judged(&replace, "a secret-12, secret-3"),
        Verdict::Fix(vec![assistant("a [$0], [$0]")])
    );
    assert_eq!(judged(&replace, "secret-x"), Verdict::Pass);
    let stop = with(OnHit::Stop("leak".to_owned()));
    assert!(matches!(judged(&stop, "secret-1"), Verdict::Stop { reason } if reason == "leak"));
    let retry = with(OnHit::Retry("not that".to_owned()));
    assert_eq!(feedback(&judged(&retry, "secret-1")), "not that");
    assert!(Forbidden::new("(", OnHit::Stop(String::new())).is_err());

    // Two parts that say it only together cannot be mended one by one.
    let across = Forbidden::new(r"a\nb", OnHit::Replace(String::new())).unwrap();
    let parts = vec![Part::output_text("a"), Part::output_text("b")];
    let items = [Item::from(Message::new(Role::Assistant, parts))];
    assert!(matches!(
        across.check(&Answer { items: &items }),
        Verdict::Stop { .. }
    ));
}

#[test]
fn length_is_counted_in_characters() {
    assert_eq!(judged(&MaxLength::new(3), "ééé"), Verdict::Pass);
    let verdict = judged(&MaxLength::new(3), "éééé");
    assert!(feedback(&verdict).contains("has 4 characters; at most 3"));
}

#[test]
fn calls_that_cannot_run_are_told_why() {
    let tool = ToolDefinition::Function(FunctionTool {
        name: "find".to_owned(),
        parameters: Some(
            Raw::parse(
                r#"{"type":"object","required":["q"],"properties":{"q":{"type":"string"}}}"#,
            )
            .unwrap(),
        ),
        ..FunctionTool::default()
    });
    let guard = ToolCalls::of([&tool]).unwrap().skills(["pdf"]);
    let judged = |guard: &ToolCalls, name: &str, arguments: &str| {
        let items = [Item::from(FunctionCall::new("1", name, arguments))];
        guard.check(&Answer { items: &items })
    };
    assert_eq!(judged(&guard, "find", r#"{"q":"x"}"#), Verdict::Pass);
    for (name, arguments, why) in [
        ("look", "{}", "there is no tool look; there are: find"),
        ("pdf", "{}", "pdf is a skill, not a tool"),
        ("find", "{\"q\":", "the arguments of find are not JSON"),
        ("find", "", "the arguments of find do not fit"),
        ("find", r#"{"q":1}"#, "/q: expected"),
    ] {
        let verdict = judged(&guard, name, arguments);
        assert!(feedback(&verdict).contains(why), "{verdict:?}");
    }
    let none = ToolCalls::default();
    assert!(feedback(&judged(&none, "x", "{}")).contains("answer in words"));
}

#[derive(Debug)]
struct Panics;

impl Guard for Panics {
    fn check(&self, _: &Answer<'_>) -> Verdict {
        panic!("broken")
    }
}

#[tokio::test]
async fn guards_see_what_those_before_them_mended_and_rules_hold_in_order() {
    let mend = Forbidden::new("b+", OnHit::Replace("c".to_owned())).unwrap();
    let guardrails = Guardrails::new()
        .with(mend)
        .with(MaxLength::new(2))
        .rule("crm/find", Gate::Allow)
        .rule("crm", Gate::Ask("customers' data".to_owned()))
        .rule("delete_*", Gate::Deny("never".to_owned()))
        .rule("*", Gate::Guide("be brief".to_owned()))
        .retrying(1);
    assert_eq!(guardrails.max_retries(), 1);
    let mut stage = Stage::new(guardrails).await;
    assert_eq!(stage.verdict(&[assistant("a")]).await, Verdict::Pass);
    assert_eq!(
        stage.verdict(&[assistant("abbb")]).await,
        Verdict::Fix(vec![assistant("ac")])
    );
    assert!(matches!(
        stage.verdict(&[assistant("aaa")]).await,
        Verdict::Retry { .. }
    ));
    assert_eq!(stage.gate("crm/find").await, Gate::Allow);
    assert!(matches!(stage.gate("crm/write").await, Gate::Ask(_)));
    assert!(matches!(stage.gate("Delete_All").await, Gate::Deny(_)));
    assert!(matches!(stage.gate("x").await, Gate::Guide(_)));
    assert!(stage.said().await.is_empty());
}

#[tokio::test]
async fn a_guard_that_breaks_lets_nothing_pass() {
    let mut stage = Stage::new(Guardrails::new().with(Panics)).await;
    let answer = [assistant("a")];
    let after = stage
        .layers
        .after_model(&mut stage.states, &answer, &stage.context);
    let error = after.await.unwrap_err();
    assert!(error.to_string().contains("broken"), "{error}");
}
