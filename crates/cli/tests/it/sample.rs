//! A conversation to look at: made with the library, looked at with the command.

use contexture::engine::ConversationBuilder;
use contexture::ir::{FunctionCall, FunctionCallOutput, Output};
use contexture::{Conversation, assistant_text, hint, role, user};

use crate::command::Place;

/// The conversation `support-42`: two turns, a call, a checkpoint `before-refund`, and after a rewind
/// a second branch `main-v2`, the active one.
pub(crate) fn support(place: &Place) {
    wait(async {
        let chat = open(place, "support-42").await;
        chat.set([role("You are a support agent."), hint("Be brief.")])
            .unwrap();
        chat.save([user("Hi, my order #W8342 arrived broken")])
            .await
            .unwrap();
        let mut draft = chat.draft();
        draft.push_item(FunctionCall::new("c1", "find_order", r#"{"id":"W8342"}"#));
        draft.push_item(FunctionCallOutput::new(
            "c1",
            Output::Text("3 items".to_owned()),
        ));
        draft.commit().await.unwrap();
        chat.save([assistant_text("I see the three items.")])
            .await
            .unwrap();
        chat.checkpoint("before-refund").await.unwrap();
        let asked = chat.save([user("Refund everything")]).await.unwrap();
        chat.save([assistant_text("Done: all three refunded.")])
            .await
            .unwrap();
        chat.rewind(&asked.messages[0]).await.unwrap();
        chat.save([assistant_text("Shall I refund the gloves too?")])
            .await
            .unwrap();
    });
}

/// A conversation of a resource, with one turn.
pub(crate) fn of_resource(place: &Place, id: &str, resource: &str) {
    wait(async {
        let chat = builder(place, id).await.resource(resource);
        let chat = chat.open().await.unwrap();
        chat.save([user("Hello"), assistant_text("Good morning.")])
            .await
            .unwrap();
    });
}

/// A conversation in which a user says these texts.
pub(crate) fn said(place: &Place, id: &str, texts: &[&str]) {
    wait(async {
        let chat = open(place, id).await;
        for text in texts {
            chat.save([user(*text)]).await.unwrap();
        }
    });
}

/// A conversation of so many short messages on one branch.
pub(crate) fn long(place: &Place, id: &str, messages: usize) {
    wait(async {
        let chat = open(place, id).await;
        let indices: Vec<usize> = (0..messages / 2).collect();
        // As many at once as one append may carry.
        for some in indices.chunks(1_000) {
            let mut draft = chat.draft();
            for index in some {
                draft.push(user(format!("question {index}")));
                draft.push(assistant_text(format!("answer {index}")));
            }
            draft.commit().await.unwrap();
        }
    });
}

/// As [`long`], with messages of some length.
pub(crate) fn wordy(place: &Place, id: &str, messages: usize) {
    wait(async {
        let chat = open(place, id).await;
        let mut draft = chat.draft();
        for index in 0..messages / 2 {
            let more = "and so on at some length, ".repeat(60);
            draft.push(user(format!(
                "question {index} about order W{index}00: {more}"
            )));
            draft.push(assistant_text(format!("answer {index}: {more}")));
        }
        draft.commit().await.unwrap();
    });
}

/// So many empty conversations, `many-0` and so on.
pub(crate) fn many(place: &Place, count: usize) {
    wait(async {
        let database = place.database();
        std::fs::create_dir_all(database.parent().unwrap()).unwrap();
        let engine = contexture::open(&database.to_string_lossy()).await.unwrap();
        let mut opening = tokio::task::JoinSet::new();
        for index in 0..count {
            // Many at a time share commits.
            if opening.len() >= 500 {
                opening.join_next().await.unwrap().unwrap();
            }
            let builder = engine.conversation(format!("many-{index}"));
            opening.spawn(async move { builder.title("One of many").open().await.unwrap() });
        }
        opening.join_all().await;
    });
}

async fn open(place: &Place, id: &str) -> Conversation {
    let chat = builder(place, id).await.title("Broken order");
    chat.open().await.unwrap()
}

async fn builder(place: &Place, id: &str) -> ConversationBuilder {
    let database = place.database();
    std::fs::create_dir_all(database.parent().unwrap()).unwrap();
    let engine = contexture::open(&database.to_string_lossy()).await.unwrap();
    engine.conversation(id)
}

fn wait(future: impl Future<Output = ()>) {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap()
        .block_on(future);
}
