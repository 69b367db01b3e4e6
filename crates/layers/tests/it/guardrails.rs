//! Answers and calls are held against rules.

use contexture_ir::{
    Extra, FunctionCall, FunctionCallOutput, FunctionTool, Item, Message, Output, Part, Raw, Role,
    ToolDefinition,
};
use contexture_layers::builtin::{
    ForbiddenText, Guard, Guardrails, JsonOutput, MatchAction, MaxLength, ModelAnswer,
    OutputVerdict, ToolCalls,
};
use contexture_layers::{AnswerVerdict, ToolGate};

use crate::conversation_fixture::{ConversationFixture, assistant};

fn judged(guard: &impl Guard, text: &str) -> AnswerVerdict {
    guard.check_answer(&ModelAnswer {
        items: &[assistant(text)],
    })
}

fn feedback(verdict: &AnswerVerdict) -> &str {
    match verdict {
        AnswerVerdict::Retry { feedback } => feedback,
        other => panic!("{other:?}"),
    }
}

#[test]
fn json_is_taken_as_it_is_out_of_its_fence_or_asked_for_again() {
    let schema = r#"{"type":"object","required":["n"],"properties":{"n":{"type":"integer"}}}"#;
    let guard = JsonOutput::with_schema(&Raw::parse(schema).unwrap()).unwrap();
    assert_eq!(judged(&guard, " {\"n\":1}\n"), AnswerVerdict::Pass);
    assert_eq!(
        judged(&guard, "```json\n{\"n\":1}\n```"),
        AnswerVerdict::Fix(vec![assistant("{\"n\":1}")])
    );
    for (text, reason) in [
        ("{\"n\":\"1\"}", "/n: expected"),
        ("Here you are: {\"n\":1}", "expected value at line 1"),
        ("```json\n{\"n\":1}\n```\nand ```", "expected value"),
        ("```python\n{\"n\":1}\n```", "expected value"),
        ("{\"n\":1", "EOF"),
        ("", "EOF"),
    ] {
        let verdict = judged(&guard, text);
        assert!(feedback(&verdict).contains(reason), "{text}: {verdict:?}");
    }
    assert_eq!(judged(&JsonOutput::any_json(), "3"), AnswerVerdict::Pass);
    let call = Item::from(FunctionCall::new("1", "look", "{}"));
    let items = [assistant("Let me look."), call];
    assert_eq!(
        guard.check_answer(&ModelAnswer { items: &items }),
        AnswerVerdict::Pass
    );
    assert!(JsonOutput::with_schema(&Raw::parse("{\"type\":7}").unwrap()).is_err());
}

#[test]
fn what_must_not_be_said_is_replaced_or_ends_the_run() {
    let with = |on_hit| ForbiddenText::new(r"\bsecret-\d+\b", on_hit).unwrap();
    let replace = with(MatchAction::Replace("[$0]".to_owned()));
    assert_eq!(
        judged(&replace, "a secret-12, secret-3"),
        AnswerVerdict::Fix(vec![assistant("a [$0], [$0]")])
    );
    assert_eq!(judged(&replace, "secret-x"), AnswerVerdict::Pass);
    let stop = with(MatchAction::Stop("leak".to_owned()));
    assert!(
        matches!(judged(&stop, "secret-1"), AnswerVerdict::Stop { reason } if reason == "leak")
    );
    let retry = with(MatchAction::Retry("not that".to_owned()));
    assert_eq!(feedback(&judged(&retry, "secret-1")), "not that");
    assert!(ForbiddenText::new("(", MatchAction::Stop(String::new())).is_err());

    // Two parts that say it only together cannot be mended one by one.
    let across = ForbiddenText::new(r"a\nb", MatchAction::Replace(String::new())).unwrap();
    let parts = vec![Part::output_text("a"), Part::output_text("b")];
    let items = [Item::from(Message::new(Role::Assistant, parts))];
    assert!(matches!(
        across.check_answer(&ModelAnswer { items: &items }),
        AnswerVerdict::Stop { .. }
    ));
}

#[test]
fn length_is_counted_in_characters() {
    assert_eq!(judged(&MaxLength::new(3), "ééé"), AnswerVerdict::Pass);
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
    let guard = ToolCalls::from_tools([&tool]).unwrap().with_skills(["pdf"]);
    let judged = |guard: &ToolCalls, name: &str, arguments: &str| {
        let items = [Item::from(FunctionCall::new("1", name, arguments))];
        guard.check_answer(&ModelAnswer { items: &items })
    };
    assert_eq!(judged(&guard, "find", r#"{"q":"x"}"#), AnswerVerdict::Pass);
    for (name, arguments, reason) in [
        ("look", "{}", "there is no tool look; there are: find"),
        ("pdf", "{}", "pdf is a skill, not a tool"),
        ("find", "{\"q\":", "the arguments of find are not JSON"),
        ("find", "", "the arguments of find do not fit"),
        ("find", r#"{"q":1}"#, "/q: expected"),
    ] {
        let verdict = judged(&guard, name, arguments);
        assert!(feedback(&verdict).contains(reason), "{verdict:?}");
    }
    let none = ToolCalls::default();
    assert!(feedback(&judged(&none, "x", "{}")).contains("answer in words"));
}

#[derive(Debug)]
struct Panics;

impl Guard for Panics {
    fn check_answer(&self, _: &ModelAnswer<'_>) -> AnswerVerdict {
        panic!("broken")
    }
}

#[tokio::test]
async fn guards_run_in_order_on_fixed_answer_and_first_rule_wins() {
    let mend = ForbiddenText::new("b+", MatchAction::Replace("c".to_owned())).unwrap();
    let guardrails = Guardrails::new()
        .with_guard(mend)
        .with_guard(MaxLength::new(2))
        .with_rule("crm/find", ToolGate::Allow)
        .with_rule("crm", ToolGate::Ask("customers' data".to_owned()))
        .with_rule("delete_*", ToolGate::Deny("never".to_owned()))
        .with_rule("*", ToolGate::Guide("be brief".to_owned()))
        .with_max_retries(1);
    assert_eq!(guardrails.max_retries(), 1);
    let mut stage = ConversationFixture::new(guardrails).await;
    assert_eq!(stage.verdict(&[assistant("a")]).await, AnswerVerdict::Pass);
    assert_eq!(
        stage.verdict(&[assistant("abbb")]).await,
        AnswerVerdict::Fix(vec![assistant("ac")])
    );
    assert!(matches!(
        stage.verdict(&[assistant("aaa")]).await,
        AnswerVerdict::Retry { .. }
    ));
    assert_eq!(stage.gate("crm/find").await, ToolGate::Allow);
    assert!(matches!(stage.gate("crm/write").await, ToolGate::Ask(_)));
    assert!(matches!(stage.gate("Delete_All").await, ToolGate::Deny(_)));
    assert!(matches!(stage.gate("x").await, ToolGate::Guide(_)));
    assert!(stage.said().await.is_empty());
}

#[tokio::test]
async fn a_guard_that_breaks_lets_nothing_pass() {
    let mut stage = ConversationFixture::new(Guardrails::new().with_guard(Panics)).await;
    let answer = [assistant("a")];
    let after = stage
        .layers
        .after_model(&mut stage.states, &answer, &stage.context);
    let error = after.await.unwrap_err();
    assert!(error.to_string().contains("broken"), "{error}");
}

#[tokio::test]
async fn a_program_guards_calls_and_outputs_by_its_own_rules() {
    let guardrails = Guardrails::new()
        .with_rule("pay", ToolGate::Guide("mind the currency".to_owned()))
        .with_call_guard(|call| match call.tool.as_str() {
            "pay" => ToolGate::Ask("really?".to_owned()),
            "panic" => panic!("no rule"),
            _ => ToolGate::Allow,
        })
        .with_call_guard(|call| match call.called_name.as_str() {
            "delete" => ToolGate::Deny("never".to_owned()),
            _ => ToolGate::Approve,
        })
        .with_output_guard(|output| match &output.output {
            Output::Text(text) if text.contains("password") => {
                OutputVerdict::Replace("withheld".to_owned())
            }
            _ => OutputVerdict::Pass,
        });
    let mut stage = ConversationFixture::new(guardrails).await;
    // The strictest verdict counts, that of the rule included.
    assert_eq!(stage.gate("pay").await, ToolGate::Ask("really?".to_owned()));
    assert_eq!(
        stage.gate("delete").await,
        ToolGate::Deny("never".to_owned())
    );
    assert_eq!(stage.gate("look").await, ToolGate::Approve);
    assert!(matches!(stage.gate("panic").await, ToolGate::Deny(_)));
    let output = |text: &str| {
        Item::FunctionCallOutput(FunctionCallOutput {
            id: None,
            call_id: "c".to_owned(),
            output: Output::Text(text.to_owned()),
            is_error: None,
            status: None,
            extra: Extra::default(),
        })
    };
    let items = vec![
        output("a password"),
        assistant("a password"),
        output("fine"),
    ];
    let appending = stage
        .layers
        .on_append(&mut stage.states, items, &stage.context);
    let (items, _) = appending.await.unwrap();
    assert_eq!(
        items,
        [output("withheld"), assistant("a password"), output("fine")]
    );
}

/// An output that could not be checked is not stored.
#[tokio::test]
async fn an_output_guard_that_breaks_lets_nothing_in() {
    let guardrails = Guardrails::new().with_output_guard(|_| panic!("broken"));
    let mut stage = ConversationFixture::new(guardrails).await;
    let items = vec![Item::FunctionCallOutput(FunctionCallOutput::new(
        "c",
        Output::Text("fine".to_owned()),
    ))];
    let appending = stage
        .layers
        .on_append(&mut stage.states, items, &stage.context);
    let error = appending.await.unwrap_err();
    assert!(error.to_string().contains("broken"), "{error}");
}
