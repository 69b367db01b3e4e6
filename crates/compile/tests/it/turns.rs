//! Providers that refuse two messages in a row of one side are sent none.

use contexture_compile::{Band, Content, Contribution, PathItem, Plan, Scratch};
use contexture_ir::Item;
use contexture_wire::Format;
use proptest::prelude::*;
use serde_json::Value;

use crate::fixtures::{assistant, call, once, output, request, user, with};

/// `u` a person, `a` the model, `c` a call with its output, each with a text of its own.
fn path(script: &str) -> Vec<PathItem> {
    let items = script.chars().enumerate().flat_map(|(at, letter)| {
        let text = format!("{letter}{at} {}", "word ".repeat(at % 7 * 4));
        let id = format!("call_{at}");
        match letter {
            'u' => vec![user(&text)],
            'a' => vec![assistant(&text)],
            _ => vec![call(&id, "{}"), output(&id, &text)],
        }
    });
    items.map(|item: Item| PathItem::new(item)).collect()
}

/// What the host says before the history and behind it.
fn contributions(bands: &[Band]) -> Vec<Contribution> {
    let said = bands.iter().enumerate().map(|(at, band)| {
        let content = Content::Text(format!("host {at}"));
        Contribution::new(format!("c{at}"), *band, content)
    });
    said.collect()
}

/// Checks that sides alternate, and that no text of the host is there twice, and the newest words once.
fn check(payload: &str, script: &str, bands: usize) {
    let body: Value = serde_json::from_str(payload).unwrap();
    let messages = body["messages"].as_array().unwrap();
    for pair in messages.windows(2) {
        assert_ne!(pair[0]["role"], pair[1]["role"], "{script}: {payload}");
    }
    // What is not pinned may be left out for want of room.
    for at in 0..bands {
        assert!(
            payload.matches(&format!("host {at}")).count() <= 1,
            "{payload}"
        );
    }
    let last = script.char_indices().last().unwrap();
    assert_eq!(
        payload.matches(&format!("\"{}{} ", last.1, last.0)).count(),
        1,
        "{payload}"
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn bedrock_never_sees_one_side_twice_in_a_row(
        script in "[uac]{1,24}",
        bands in prop::collection::vec(
            prop::sample::select(vec![Band::System, Band::Anchor, Band::Live, Band::Tail]), 0..4),
        limit in 150_u64..1_200,
    ) {
        let path = path(&script);
        let said = contributions(&bands);
        let request = request(Format::Bedrock, limit);
        // A window that the newest turn alone does not fit into is refused.
        if let Ok(cold) = once(&path, &said, &request) {
            check(&cold.payload.to_json(), &script, bands.len());
            let (plan, mut scratch) = (Plan::default(), Scratch::new());
            // Most of it comes from the scratch, the rest is new.
            let _ = with(&path[..path.len() / 2], &said, &request, &plan, &mut scratch);
            let warm = with(&path, &said, &request, &plan, &mut scratch).unwrap();
            prop_assert_eq!(warm.payload.to_json(), cold.payload.to_json());
        }
    }
}
