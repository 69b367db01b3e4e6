//! `instructions`: as they were written, cut from the end, back after a rewind.

use contexture_compile::{Band, Budget, Stability};
use contexture_ir::{guardrail, hint, user};
use contexture_layers::builtin::{InstructionText, Instructions};
use contexture_layers::{LayerError, LayerId};

use crate::layer_fixture::{HOSTILE, LayerFixture};
use crate::recording_layer::stored;

#[tokio::test]
async fn a_text_stands_as_it_was_written() {
    let long = "x".repeat(100_000);
    let texts = ["One.", "One.\n\nTwo.\n\n\n\n  Three.\n", "\n\n", &long];
    for text in texts.iter().chain(&HOSTILE) {
        let desk = LayerFixture::with(Instructions::new(*text)).await;
        assert_eq!(desk.shown().await, *text);
        let said = desk.said().await;
        assert_eq!(said[0].source, "instructions");
        assert_eq!(said[0].band, Band::System);
        assert_eq!(said[0].stability, Stability::Frozen);
        assert!(said[0].is_required(), "without a maximum they are not cut");
    }
    let nothing = LayerFixture::with(Instructions::new("")).await;
    assert!(nothing.said().await.is_empty());
}

#[tokio::test]
async fn fragments_are_escaped() {
    for hostile in HOSTILE {
        let words = InstructionText::from_fragments([hint(hostile), hint("after")]).unwrap();
        let desk = LayerFixture::with(Instructions::new(words)).await;
        let shown = desk.shown().await;
        assert_eq!(shown.matches("<hint>").count(), 2, "{shown}");
        assert!(!shown.contains("<system>"), "{shown}");
    }
    assert!(
        InstructionText::from_fragments([user("hello")]).is_err(),
        "a message"
    );
}

#[tokio::test]
async fn a_maximum_cuts_them_from_the_end() {
    let text = (0..200).map(|n| format!("Rule {n}: be brief."));
    let text = text.collect::<Vec<_>>().join("\n\n");
    let rules = (0..200).map(|n| {
        guardrail(contexture_ir::Guardrail {
            rule: format!("Rule {n}: be brief."),
            ..<_>::default()
        })
    });
    let fragments = InstructionText::from_fragments(rules).unwrap();
    for words in [InstructionText::from(text), fragments] {
        let layer = Instructions::new(words);
        let layer = layer.with_spec(|spec| spec.budget = Budget::at_most(200));
        let desk = LayerFixture::with(layer).await;
        let payload = desk.compiled().await.unwrap().payload.to_json();
        assert!(payload.contains("Rule 0:"));
        assert!(!payload.contains("Rule 199:"));
    }
}

#[tokio::test]
async fn they_are_loaded_once_and_a_rewind_brings_back_the_old_ones() {
    let layer = Instructions::from_loader(async |context| {
        let text = format!("For {}.", context.owner.as_str());
        Ok(InstructionText::from(text))
    });
    let mut desk = LayerFixture::with(layer).await;
    assert_eq!(desk.shown().await, "For anna.");
    let first = desk.stored();
    assert_eq!(first, stored(1, r#"{"text":"For anna."}"#));
    let second = stored(1, r#"{"text":"For everybody."}"#);
    desk.rewind(&second);
    assert_eq!(desk.shown().await, "For everybody.");
    desk.rewind(&first);
    assert_eq!(desk.shown().await, "For anna.");
    assert!(desk.layers.changed_states(&desk.states).is_empty());
}

#[tokio::test]
async fn words_that_cannot_be_loaded_are_left_out_and_told() {
    let layer = Instructions::from_loader(async |_| Err(LayerError::from_message("no such file")));
    let layer = layer.with_spec(|spec| spec.id = LayerId::new("house-rules").unwrap());
    let layers = contexture_layers::Layers::new().with_layer(layer).unwrap();
    let mut states = layers.restore_states([]);
    let context = crate::recording_layer::context();
    let outcomes = layers.init_states(&mut states, &context).await.unwrap();
    let outcome = format!("{outcomes:?}");
    assert!(outcome.contains("house-rules") && outcome.contains("no such file"));
    assert!(layers.changed_states(&states).is_empty());
}

#[tokio::test]
async fn stored_words_that_are_none_leave_the_layer_out() {
    let mut desk = LayerFixture::with(Instructions::new("One.")).await;
    desk.rewind(&stored(1, r#"{"fragments":[{"no":"fragment"}]}"#));
    let spec = desk.layers.specs().next().unwrap().clone();
    let call = crate::recording_layer::recall(&desk.context, &[], &spec);
    let gathered = desk
        .layers
        .recall_all(&desk.states, call, <_>::default(), &mut <_>::default())
        .await
        .unwrap();
    assert!(gathered.contributions.is_empty());
    assert!(!gathered.outcomes[0].status.is_ok());
}
