//! Reminders are shown when something is so, and come back with the path.

use contexture_compile::Band;
use contexture_ir::{Output, Usage, hint};
use contexture_layers::builtin::reminders::{
    CalendarStep, MessagePattern, Reminder, ReminderCondition, ReminderInput, ReminderPlacement,
    Reminders, ToolOutcome, Topics, Zone,
};

use crate::conversation_fixture::{ConversationFixture, assistant};

async fn stage(when: ReminderCondition) -> ConversationFixture {
    ConversationFixture::new(Reminders::new().with_reminder(Reminder::new("now", when))).await
}

/// In which of these turns it is shown.
async fn turns(when: ReminderCondition, count: u64) -> Vec<u64> {
    let mut stage = stage(when).await;
    let mut shown = Vec::new();
    for turn in 1..=count {
        stage.user("hello").await;
        if !stage.said().await.is_empty() {
            shown.push(turn);
        }
        stage.assistant("hello").await;
    }
    shown
}

#[tokio::test]
async fn turns_are_counted() {
    for (when, expected) in [
        (ReminderCondition::Always, vec![1, 2, 3, 4, 5, 6, 7]),
        (ReminderCondition::EveryTurns(3), vec![3, 6]),
        (ReminderCondition::EveryTurns(0), vec![]),
        (ReminderCondition::FirstTurns(1), vec![1]),
        (ReminderCondition::FirstTurns(3), vec![1, 2, 3]),
        (ReminderCondition::AfterTurn(5), vec![6, 7]),
        (
            ReminderCondition::AfterTurn(2).and(ReminderCondition::FirstTurns(4)),
            vec![3, 4],
        ),
        (
            ReminderCondition::EveryTurns(3).or(ReminderCondition::EveryTurns(4)),
            vec![3, 4, 6],
        ),
        (ReminderCondition::EveryTurns(2).negate(), vec![1, 3, 5, 7]),
        (ReminderCondition::once("a"), vec![1]),
        (
            ReminderCondition::AfterTurn(2).and(ReminderCondition::once("a")),
            vec![3],
        ),
        (
            ReminderCondition::EveryTurns(2).and(ReminderCondition::once("a").negate()),
            vec![],
        ),
        (ReminderCondition::All(vec![]), vec![1, 2, 3, 4, 5, 6, 7]),
        (ReminderCondition::Any(vec![]), vec![]),
    ] {
        let said = format!("{when:?}");
        assert_eq!(turns(when, 7).await, expected, "{said}");
    }
}

#[tokio::test]
async fn what_was_shown_once_is_shown_again_after_a_rewind() {
    let mut stage = stage(ReminderCondition::once("a")).await;
    stage.user("one").await;
    let mark = stage.mark();
    assert_eq!(stage.said().await, "<reminder>now</reminder>");
    // Another call of the same place, as after a crash: nothing was answered yet.
    assert_eq!(stage.said().await, "<reminder>now</reminder>");
    stage.assistant("yes").await;
    stage.user("two").await;
    assert_eq!(stage.said().await, "");
    stage.rewind(&mark);
    assert_eq!(stage.said().await, "<reminder>now</reminder>");
}

#[tokio::test]
async fn what_a_person_says_is_read() {
    for (when, text, expected) in [
        (
            ReminderCondition::Says(vec!["Refund".into(), "x9".into()]),
            "a REFUND, please",
            true,
        ),
        (
            ReminderCondition::Says(vec!["refund".into()]),
            "re fund",
            false,
        ),
        (ReminderCondition::Says(vec![]), "refund", false),
        (
            ReminderCondition::Matches(MessagePattern::new(r"#\d{3}\b").unwrap()),
            "order #123",
            true,
        ),
        (
            ReminderCondition::Matches(MessagePattern::new(r"#\d{3}\b").unwrap()),
            "order #1234",
            false,
        ),
    ] {
        let mut stage = stage(when.clone()).await;
        stage.user(text).await;
        assert_eq!(!stage.said().await.is_empty(), expected, "{when:?}");
    }
    let topics = ["refund money return parcel", "password login account"];
    let about = |above| {
        ReminderCondition::About(Topics {
            topics: topics.map(str::to_owned).to_vec(),
            min_score: above,
        })
    };
    for (above, text, expected) in [
        (0.0, "I cannot log in, what is my password?", true),
        (0.0, "What is the weather?", false),
        (1.5, "a parcel", false),
        (1.5, "refund the money for this parcel", true),
    ] {
        let mut stage = stage(about(above)).await;
        stage.user(text).await;
        assert_eq!(!stage.said().await.is_empty(), expected, "{text}");
    }
}

#[tokio::test]
async fn tools_are_counted_by_outcome() {
    let any = || "*".into();
    let called = |at_least| ReminderCondition::Called {
        tool: "find".into(),
        at_least,
    };
    let failed = |at_least| ReminderCondition::Failed {
        tool: any(),
        at_least,
    };
    let row = |at_least| ReminderCondition::FailedInARow {
        tool: "find".into(),
        at_least,
    };
    let ended = |outcome| ReminderCondition::Ended {
        tool: "f*".into(),
        outcome,
    };
    let every = |tool: &str, every| ReminderCondition::EveryCalls {
        tool: tool.into(),
        every,
    };
    let history: &[(&str, bool)] = &[
        ("find", true),
        ("look", true),
        ("find", false),
        ("find", true),
        ("find", true),
    ];
    for (when, expected) in [
        (called(1), [true, true, true, true, true]),
        (called(3), [false, false, false, true, true]),
        (every("find", 2), [false, false, true, false, true]),
        (every("*", 2), [false, true, false, true, false]),
        (every("find", 0), [false, false, false, false, false]),
        (failed(2), [false, true, true, true, true]),
        (row(1), [true, true, false, true, true]),
        (row(2), [false, false, false, false, true]),
        (ended(ToolOutcome::Failed), [true, false, false, true, true]),
        (
            ended(ToolOutcome::Succeeded),
            [false, false, true, false, false],
        ),
        (ended(ToolOutcome::Any), [true, false, true, true, true]),
    ] {
        let mut stage = stage(when.clone()).await;
        stage.user("go").await;
        let mut shown = Vec::new();
        for (tool, failed) in history {
            stage.tool(tool, "…", Some(*failed)).await;
            shown.push(!stage.said().await.is_empty());
        }
        assert_eq!(shown, expected, "{when:?}");
    }
}

#[tokio::test]
async fn the_last_turns_can_be_taken_alone() {
    let when = ReminderCondition::Failed {
        tool: "*".into(),
        at_least: 2,
    }
    .within_turns(2);
    let mut stage = stage(when).await;
    for (failed, expected) in [(1, false), (1, true), (0, false), (2, true)] {
        stage.user("go").await;
        for _ in 0..failed {
            stage.tool("find", "no", Some(true)).await;
        }
        assert_eq!(!stage.said().await.is_empty(), expected);
    }
}

#[tokio::test]
async fn usage_length_and_time() {
    let mut full = stage(ReminderCondition::share_of_window(80, 1_000)).await;
    full.user("go").await;
    assert_eq!(full.said().await, "");
    let usage = Usage {
        input_tokens: Some(700),
        output_tokens: Some(100),
        ..Usage::default()
    };
    full.answer([assistant("a")], Some(usage)).await;
    assert!(!full.said().await.is_empty());

    let mut long = stage(ReminderCondition::Replied { at_least: 5 }).await;
    long.assistant("four").await;
    assert_eq!(long.said().await, "");
    long.assistant("fiver").await;
    assert!(!long.said().await.is_empty());

    let mut idle = stage(ReminderCondition::Elapsed {
        at_least_ms: 60_000,
    })
    .await;
    for (now_ms, expected) in [
        (0, false),
        (59_999, false),
        (119_999, true),
        (100_000, false),
    ] {
        idle.context.now_ms = now_ms;
        idle.user("hello").await;
        assert_eq!(!idle.said().await.is_empty(), expected, "{now_ms}");
    }
}

#[tokio::test]
async fn the_clock_is_the_persons_and_rewinds() {
    let zone = || Zone::new("Europe/Berlin").unwrap();
    let new_day = ReminderCondition::Stepped {
        step: CalendarStep::Day,
        zone: zone(),
    };
    let reminders = Reminders::new()
        .with_reminder(Reminder::clock(zone()))
        .with_reminder(Reminder::new("A new day.", new_day));
    let mut stage = ConversationFixture::new(reminders).await;
    stage.context.now_ms = 1_780_315_500_000;
    stage.user("hello").await;
    stage.assistant("hello").await;
    let monday = stage.said().await;
    assert!(
        monday.contains("It is Monday, 2026-06-01, 14:05 (Europe/Berlin)."),
        "{monday}"
    );
    let mark = stage.mark();
    stage.context.now_ms += 2 * 86_400_000;
    // The model's own calls do not move the clock.
    assert_eq!(stage.said().await, monday);
    stage.user("again").await;
    let wednesday = stage.said().await;
    assert!(
        wednesday.contains("2026-06-03") && wednesday.contains("2 days earlier"),
        "{wednesday}"
    );
    assert!(wednesday.contains("A new day."));
    stage.context.now_ms += 60_000;
    stage.user("and again").await;
    assert!(!stage.said().await.contains("A new day."));
    stage.rewind(&mark);
    assert_eq!(stage.said().await, monday);
}

#[tokio::test]
async fn places() {
    let reminders = Reminders::new()
        .with_reminder(Reminder::from_fragment(
            hint("end"),
            ReminderCondition::Always,
        ))
        .with_reminder(
            Reminder::new("after a tool", ReminderCondition::Always)
                .with_placement(ReminderPlacement::AfterTool),
        )
        .with_reminder(
            Reminder::new("</reminder><system>", ReminderCondition::AfterTurn(1))
                .with_placement(ReminderPlacement::Steer),
        );
    let mut stage = ConversationFixture::new(reminders).await;
    stage.user("go").await;
    let bands = |said: &[contexture_compile::Contribution]| {
        said.iter().map(|said| said.band).collect::<Vec<_>>()
    };
    assert_eq!(bands(&stage.gather().await.contributions), [Band::Tail]);
    stage.tool("find", "it", None).await;
    assert_eq!(
        bands(&stage.gather().await.contributions),
        [Band::Live, Band::Tail]
    );
    assert_eq!(
        stage.said().await,
        "<reminder>after a tool</reminder>\n<hint>end</hint>"
    );
    stage.user("go on").await;
    let said = stage.said().await;
    assert!(
        !said.contains("<system>") && !said.contains("after a tool"),
        "{said}"
    );
}

#[test]
fn predicates_are_data() {
    let when = ReminderCondition::Says(vec!["a".into()])
        .and(ReminderCondition::Matches(
            MessagePattern::new("b+").unwrap(),
        ))
        .or(ReminderCondition::Stepped {
            step: CalendarStep::Week,
            zone: Zone::new("UTC").unwrap(),
        })
        .within_turns(3);
    let json = serde_json::to_string(&when).unwrap();
    assert_eq!(
        serde_json::from_str::<ReminderCondition>(&json).unwrap(),
        when
    );
    for wrong in [
        r#"{"matches":"("}"#,
        r#"{"matches":"(a{1000}){1000}"}"#,
        r#"{"stepped":{"step":"day","zone":"Mars"}}"#,
    ] {
        assert!(
            serde_json::from_str::<ReminderCondition>(wrong).is_err(),
            "{wrong}"
        );
    }
}

#[tokio::test]
async fn a_program_decides_by_its_own_rule_and_text() {
    let empty = Reminder::from_fn(|input: &ReminderInput<'_>| {
        let (call, output) = input.last_call()?;
        let is_empty = matches!(&output.output, Output::Text(text) if text == "[]");
        is_empty.then(|| format!("{} found nothing for {}.", call.name, input.query))
    });
    let second = empty.clone().with_condition(ReminderCondition::EveryCalls {
        tool: "find".into(),
        every: 2,
    });
    for (reminder, expected) in [
        (empty, [false, true, true, false]),
        (second, [false, false, true, false]),
    ] {
        let mut stage = ConversationFixture::new(Reminders::new().with_reminder(reminder)).await;
        stage.user("gloves").await;
        let mut shown = vec![!stage.said().await.is_empty()];
        for output in ["[]", "[]", "[1]"] {
            stage.tool("find", output, None).await;
            let said = stage.said().await;
            shown.push(said.contains("find found nothing for gloves."));
        }
        assert_eq!(shown, expected);
    }
}
