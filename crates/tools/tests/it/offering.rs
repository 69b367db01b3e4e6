//! Which tools are offered, why others are not, and that the order holds.

use contexture_tools::{
    Choice, Combine, Criterion, ExclusionReason, LoadedToolkits, OfferRequest, Policy, Tool,
    ToolId, ToolSupport,
};
use proptest::prelude::*;

use crate::fixtures::{names, offer, registry, tool};

fn mixed() -> contexture_tools::Registry {
    registry([
        tool("read_file", "Reads a file from disk").with_tags(["files"]),
        tool("write_file", "Writes text to a file").with_tags(["files", "danger"]),
        tool("get_weather", "Weather forecast for a place").with_tags(["weather"]),
        tool("think", "Notes a thought"),
        tool("send_mail", "Sends an e-mail to somebody").with_tags(["mail"]),
    ])
}

#[track_caller]
fn check(choice: &Choice, kept: &[&str], removed: &[(&str, &[ExclusionReason])]) {
    let offer = offer(&mixed(), choice, None);
    assert_eq!(names(&offer.tools), kept);
    let told = offer.excluded.iter();
    let told: Vec<(String, Vec<ExclusionReason>)> = told
        .map(|removed| (removed.tool.to_string(), removed.reasons.iter().collect()))
        .collect();
    let removed: Vec<(String, Vec<ExclusionReason>)> = removed
        .iter()
        .map(|(name, reason)| ((*name).to_owned(), reason.to_vec()))
        .collect();
    assert_eq!(told, removed);
    assert_eq!(
        offer.tools.len() + offer.excluded.len(),
        mixed().tools().len()
    );
}

#[test]
fn everything_by_default() {
    let all = [
        "get_weather",
        "read_file",
        "send_mail",
        "think",
        "write_file",
    ];
    check(&Choice::all_tools(), &all, &[]);
}

#[test]
fn untagged_tools_are_kept_by_tags() {
    check(
        &Choice::by_tags(["Files", "nothing"]),
        &["read_file", "think", "write_file"],
        &[
            ("get_weather", &[ExclusionReason::Tags]),
            ("send_mail", &[ExclusionReason::Tags]),
        ],
    );
}

#[test]
fn lists_meet_and_join() {
    let tags = || Choice::by_tags(["files"]);
    let names = Criterion::Names(vec!["READ_*".into(), "send_mail".into()]);
    check(
        &tags().with_criterion(names.clone()),
        &["read_file"],
        &[
            (
                "get_weather",
                &[ExclusionReason::Tags, ExclusionReason::Names],
            ),
            ("send_mail", &[ExclusionReason::Tags]),
            ("think", &[ExclusionReason::Names]),
            ("write_file", &[ExclusionReason::Names]),
        ],
    );
    check(
        &tags().with_criterion(names).with_combine(Combine::Union),
        &["read_file", "send_mail", "think", "write_file"],
        &[(
            "get_weather",
            &[ExclusionReason::Tags, ExclusionReason::Names],
        )],
    );
}

#[test]
fn a_task_keeps_the_best() {
    let others: &[(&str, &[ExclusionReason])] = &[
        ("read_file", &[ExclusionReason::Task]),
        ("send_mail", &[ExclusionReason::Task]),
        ("write_file", &[ExclusionReason::Task]),
    ];
    // A tool without tags is for no purpose in particular: it stays beside the best.
    check(
        &Choice::by_task("what's the weather like?", 1),
        &["get_weather", "think"],
        others,
    );
    // Nothing matches, so nothing says which to leave out.
    for text in ["hm", "", "Lies die Datei"] {
        let all = [
            "get_weather",
            "read_file",
            "send_mail",
            "think",
            "write_file",
        ];
        check(&Choice::by_task(text, 1), &all, &[]);
    }
    let none = offer(&mixed(), &Choice::by_task("weather", 0), None);
    assert!(none.tools.is_empty());
}

#[test]
fn denied_tools_are_hidden_only_when_asked() {
    let policy = Policy::default().deny("*_file");
    check(
        &Choice::all_tools().excluding(policy),
        &["get_weather", "send_mail", "think"],
        &[
            ("read_file", &[ExclusionReason::Denied]),
            ("write_file", &[ExclusionReason::Denied]),
        ],
    );
}

#[test]
fn new_tools_come_last_and_nothing_moves() {
    let mut registry = mixed();
    let choice = Choice::by_task("weather forecast", 2);
    let first = offer(&registry, &choice, None);
    assert_eq!(names(&first.tools), ["get_weather", "read_file", "think"]);
    // Two tools that fit better push the second out of the two best, but not out of the offer.
    registry
        .register(tool("a_forecast", "Weather forecast"))
        .unwrap();
    registry
        .register(tool("b_forecast", "Weather forecast"))
        .unwrap();
    let second = offer(&registry, &choice, Some(&first.selection));
    assert_eq!(
        names(&second.tools),
        [
            "get_weather",
            "read_file",
            "think",
            "a_forecast",
            "b_forecast"
        ]
    );
    let third = offer(&registry, &choice, Some(&second.selection));
    assert_eq!(
        (&third.tools, &third.selection),
        (&second.tools, &second.selection)
    );
    // Asked anew, what stays keeps its order.
    let wider = Choice::by_task("weather forecast", 3);
    let anew = offer(&registry, &wider, Some(&second.selection));
    assert_eq!(
        names(&anew.tools),
        ["get_weather", "think", "a_forecast", "b_forecast"]
    );
    // A tool that is gone cannot be offered.
    registry.unregister(&ToolId::flat("get_weather"));
    let gone = offer(&registry, &choice, Some(&second.selection));
    assert_eq!(
        names(&gone.tools),
        ["read_file", "think", "a_forecast", "b_forecast"]
    );
}

proptest! {
    /// Whatever is added later, the bytes of the first offer begin the next one.
    #[test]
    fn adding_tools_extends_the_offer(
        before in prop::collection::btree_set("[a-e]{1,3}", 1..12),
        after in prop::collection::btree_set("[a-e]{1,3}", 1..12),
        task in "[a-e ]{0,12}",
        limit in 0usize..6,
    ) {
        let mut registry = registry(before.iter().map(|name| tool(name, name)));
        let ranked = registry.index().rank_units(&task, 1);
        let is_matched = ranked.first().is_some_and(|best| best.score > 0.0);
        let choice = Choice::by_task(task, limit);
        let first = offer(&registry, &choice, None);
        let expected = if is_matched || limit == 0 { limit.min(before.len()) } else { before.len() };
        prop_assert_eq!(first.tools.len(), expected);
        for name in after.difference(&before) {
            registry.register(tool(name, name)).unwrap();
        }
        let second = offer(&registry, &choice, Some(&first.selection));
        prop_assert!(second.tools.starts_with(&first.tools));
        prop_assert_eq!(
            second.tools.len() + second.excluded.len(),
            registry.tools().len()
        );
        let fresh = offer(&registry, &choice, None);
        for tool in &fresh.tools {
            prop_assert!(second.tools.contains(tool));
        }
    }
}

#[test]
fn words_of_any_script_find() {
    let registry = registry([
        tool("book_flight", "预订机票,选择航班和座位"),
        tool("get_weather", "查询城市天气预报"),
        tool("translate", "文章を翻訳する"),
        tool("hotelBooking", "Reserves rooms"),
    ]);
    for (task, expected) in [
        ("帮我查一下明天北京的天气", "get_weather"),
        ("我想订一张去上海的机票", "book_flight"),
        ("この文章を英語に翻訳して", "translate"),
        ("I need a room in a HOTEL", "hotelBooking"),
        ("booking flights", "book_flight"),
    ] {
        let best = registry.index().rank_units(task, 1);
        let contexture_tools::IndexedUnit::Tool(id) = best[0].unit else {
            panic!("{task}");
        };
        assert_eq!(id.name, expected, "{task}");
    }
}

#[test]
fn provider_tools_are_kept_by_every_task() {
    let search = contexture_ir::ToolDefinition::Provider(contexture_ir::ProviderTool {
        format: "anthropic".to_owned(),
        kind: "web_search_20250305".to_owned(),
        raw: crate::fixtures::raw(r#"{"type":"web_search_20250305","name":"web_search"}"#),
    });
    let registry = registry([Tool::new(search), tool("a", ""), tool("b", "")]);
    let offer = offer(&registry, &Choice::by_task("b", 1), None);
    assert_eq!(names(&offer.tools), ["b", "web_search_20250305"]);
}

/// A target that takes fewer tools than the task would keep: the best are offered, the others are told of.
#[test]
fn a_task_keeps_no_more_tools_than_the_target_takes() {
    let tools = (0..150).map(|at| tool(&format!("tool_{at}"), &format!("Finds thing {at}")));
    let registry = registry(tools);
    let all = Choice::all_tools();
    let best = Choice::by_task("find thing 7", 140);
    for (choice, limit, offered) in [
        (&best, None, 140),
        (&best, Some(128), 128),
        (&best, Some(0), 0),
        // Nothing says which of them to leave out.
        (&all, Some(128), 150),
    ] {
        let offer = registry.offer(OfferRequest {
            choice,
            loaded: &LoadedToolkits::default(),
            latched: None,
            support: ToolSupport::default(),
            limit,
        });
        assert_eq!(offer.tools.len(), offered, "{limit:?}");
        assert_eq!(offer.excluded.len(), 150 - offered, "{limit:?}");
        assert!(offered == 0 || names(&offer.tools).contains(&"tool_7"));
    }
}
