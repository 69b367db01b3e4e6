//! A chat that is stored: two questions, an edit that opens a branch, and the way back.
//!
//! Run it with `cargo run -p contexture --example chat`.

#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::error::Error;

use contexture::{
    Conversation, Engine, Fragment, Target, UiMessage, UiRole, hint, message, role, user,
};

/// Runs the example.
#[tokio::main]
pub(crate) async fn main() -> Result<(), Box<dyn Error>> {
    // In memory here. A file keeps it: `contexture::open("chat.db").await?`.
    let engine = Engine::in_memory();
    let chat = engine.conversation("trip").owner("ada").open().await?;
    chat.set([role("You plan trips."), hint("Prices are in euros.")])?;

    ask(&chat, user("Where should I go in May?"), "Try Lisbon.").await?;
    chat.checkpoint("first-idea").await?;
    ask(&chat, user("And in winter?"), "Tromsø, for the lights.").await?;

    // A message that is saved again with other text is an edit: it opens a branch, and the old one stays.
    let messages = chat.resolve().await?.messages;
    let question = messages.first().ok_or("no message")?;
    let mut edited = UiMessage::text(UiRole::User, "Where should I go in June?");
    edited.id.clone_from(&question.id);
    let committed = chat.save([message(edited)]).await?;
    println!("edited on branch {}", committed.branch);
    assert!(committed.opened_branch);

    // A checkpoint brings the conversation back to where it was.
    chat.restore("first-idea").await?;
    for shown in chat.resolve().await?.messages {
        println!("{}: {}", shown.role.as_str(), shown.joined_text());
    }
    Ok(())
}

/// Stores a question, compiles the request and stores the answer.
async fn ask(chat: &Conversation, question: Fragment, answer: &str) -> Result<(), Box<dyn Error>> {
    let mut draft = chat.draft();
    draft.push(question);
    draft.commit().await?;
    let target = Target::anthropic("claude-sonnet-4-5").window(200_000);
    let call = chat.compile(&target).await?;
    // Send `call.payload` with any HTTP client. This body stands for what the provider answers.
    let body = format!(
        r#"{{"id":"msg_1","type":"message","role":"assistant","model":"claude-sonnet-4-5","stop_reason":"end_turn",
        "stop_sequence":null,"content":[{{"type":"text","text":"{answer}"}}],"usage":{{"input_tokens":40,"output_tokens":5}}}}"#
    );
    chat.record(&call, &body).await?;
    println!(
        "{} tokens sent, answered: {answer}",
        call.report.totals.tokens
    );
    Ok(())
}
