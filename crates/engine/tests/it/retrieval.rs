//! What was said in recorded sessions is found again when it is asked for.

use contexture_compile::Target;
use contexture_ir::user;
use contexture_layers::Layers;
use contexture_layers::builtin::Retrieval;

use crate::recalling::{Library, Recall, Wording};
use crate::support::{engine, open_file};

/// Half of the sessions; `cargo xtask bench retrieval` asks all.
#[tokio::test]
async fn what_was_said_is_found_again() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("sessions.db");
    let engine = open_file(&path);
    let library = Library::of(engine, 100).await;
    for (wording, least) in [(Wording::AsSaid, 90), (Wording::Without, 72)] {
        let recall = library.recall(wording).await;
        println!("{wording:?}: {recall:?}");
        let Recall {
            asked,
            at_10,
            at_20,
        } = recall;
        assert!(asked >= 20, "{recall:?}");
        assert!(at_10 * 100 >= asked * least, "{wording:?}: {recall:?}");
        assert!(at_20 >= at_10, "{recall:?}");
    }
}

/// A person's message is a question, whatever signs and however much pasted text it has.
#[tokio::test]
async fn a_message_finds_what_it_asks_for() {
    let engine = engine().with_layers(Layers::new().with_layer(Retrieval::new()).unwrap());
    let said = [
        "My parcel number is W123.",
        "Grace said the parcel is lost.",
        "My parcel number is W456.",
    ];
    let chat = engine.conversation("before").open().await.unwrap();
    for text in said {
        chat.save([user(text)]).await.unwrap();
    }
    let log: String = (0..300).map(|n| format!("line{n} ")).collect();
    let pasted = format!("{log}\nWhat is the number of my parcel?");
    let messages = [
        "What is the number of my parcel?",
        "He wrote \"see you on Monday then\". What is the number of my parcel?",
        "{\"id\": 7, \"state\": \"open\"} number of my parcel*",
        &pasted,
    ];
    for (number, message) in messages.into_iter().enumerate() {
        let chat = engine.conversation(format!("now-{number}")).open();
        let chat = chat.await.unwrap();
        chat.save([user(message)]).await.unwrap();
        let call = chat.compile(&Target::openai_chat("gpt-4o")).await.unwrap();
        let payload = call.payload.to_json();
        let [newer, older] = ["W456", "W123"].map(|number| payload.find(number));
        assert!(newer.is_some() && newer < older, "{message}\n{payload}");
        // What is so no more says until when.
        assert_eq!(payload.matches("<until>").count(), 1, "{payload}");
    }
}
