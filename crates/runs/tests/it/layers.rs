//! What built-in layers decide, carried out by runs: tools that a skill approves, answers that guardrails refuse.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use contexture_layers::builtin::{AllowedTool, Guardrails, MaxLength, Skill, Skills};
use contexture_layers::{Layers, ToolGate};
use contexture_runs::{ToolBox, ToolOutput, TurnEnd, run_turn_with_text};
use contexture_tools::Policy;

use crate::test_support::{agent, calling, chat, model, saying, tool};

/// A turn in which the model loads a skill that allows `asked` and `denied`, then calls a tool. How often the tool ran, and
/// how the turn ended.
async fn after_loading(
    policy: Policy,
    skills: Skills,
    rules: Guardrails,
    called: &str,
) -> (u32, TurnEnd) {
    let chat = chat().await;
    let layers = Layers::new().with_layer(skills).unwrap();
    chat.set_layers(layers.with_layer(rules).unwrap());
    let ran = Arc::new(AtomicU32::new(0));
    let mut tools = ToolBox::new(policy);
    for name in ["asked", "denied", "other"] {
        let ran = Arc::clone(&ran);
        tool(&mut tools, name, move || {
            ran.fetch_add(1, Ordering::SeqCst);
            Ok(ToolOutput::from("ran"))
        });
    }
    let model = model([
        calling(&[("c1", "load_skill", r#"{"name":"asks"}"#)]),
        calling(&[("c2", called, "{}")]),
        saying("Done."),
    ]);
    let turn = run_turn_with_text(&chat, &agent(&model).with_tools(tools).unwrap(), "Do it.").await;
    (ran.load(Ordering::SeqCst), turn.unwrap().end)
}

fn skills() -> Skills {
    let mut skill = Skill::new("asks", "Asks.", "Ask.").unwrap();
    let allowed = ["asked", "denied"].map(|tool| AllowedTool {
        tool: tool.into(),
        argument_pattern: None,
    });
    skill.allowed_tools = allowed.to_vec();
    Skills::new([skill]).unwrap()
}

#[tokio::test]
async fn what_an_active_skill_allows_is_not_asked_about() {
    let policy = || Policy::default().ask("asked").ask("other").deny("denied");
    let rules = Guardrails::new;
    let (ran, end) = after_loading(policy(), skills(), rules(), "asked").await;
    assert_eq!((ran, end), (1, TurnEnd::Completed));
    // Everything else that the policy, a person's rule or the program says goes before.
    let (ran, end) = after_loading(policy(), skills(), rules(), "denied").await;
    assert_eq!((ran, end), (0, TurnEnd::Completed));
    let sure = ToolGate::Ask("sure?".to_owned());
    for (skills, rules, called) in [
        (skills(), rules(), "other"),
        (skills().without_approvals(), rules(), "asked"),
        (skills(), rules().with_rule("asked", sure), "asked"),
    ] {
        let (ran, end) = after_loading(policy(), skills, rules, called).await;
        assert_eq!(ran, 0);
        assert!(matches!(end, TurnEnd::Waiting { .. }), "{end:?}");
    }
}

#[tokio::test]
async fn answer_retries_use_lower_limit_of_agent_and_guardrails() {
    // How often guardrails and agent allow, and how many answers there are in all.
    for (guardrails, refusals, answers) in [(0, 3, 1), (1, 3, 2), (3, 1, 2), (3, 3, 4)] {
        let chat = chat().await;
        let guardrails = Guardrails::new()
            .with_guard(MaxLength::new(3))
            .with_max_retries(guardrails);
        chat.set_layers(Layers::new().with_layer(guardrails).unwrap());
        let model = model((0..5).map(|_| saying("Far too long.")));
        let agent = agent(&model).with_max_refusals(refusals);
        let error = run_turn_with_text(&chat, &agent, "Be short.")
            .await
            .unwrap_err();
        assert_eq!(error.kind(), "denied");
        assert_eq!(model.requests().len(), answers);
    }
}
