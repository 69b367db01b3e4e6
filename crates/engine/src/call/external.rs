//! A history that is given, not read: compiled with the memory of a handle's compiles.
//!
//! For what a client sent, beside what is stored of it. Not here: calls of the conversation (`asked`).

use contexture_compile::{
    Band, CalibratedRange, CompileError, Compiled, Compiler, Content, Contribution, Target,
};
use contexture_ir::Transcript;

use crate::handle::Conversation;

/// Compiles a history as it is given: its instructions before its items, nothing of what is stored. What earlier
/// compiles of this handle counted and wrote is not counted and written again.
pub(crate) fn compile_external(
    chat: &Conversation,
    transcript: &Transcript,
    target: &Target,
    narrowing: Option<CalibratedRange>,
) -> Result<Compiled, CompileError> {
    let mut compiler = Compiler::new(chat.engine().catalogue()).with_calibrated_range(narrowing);
    if !transcript.instructions.is_empty() {
        let content = Content::Instructions(transcript.instructions.clone());
        compiler =
            compiler.with_contribution(Contribution::new("instructions", Band::System, content));
    }
    chat.with_scratch(|scratch| compiler.compile_with(&transcript.items, target, scratch))
}

#[cfg(test)]
mod tests {
    use crate::handle::Engine;
    use contexture_compile::{CountedRequest, TokenBounds};
    use contexture_ir::{Message, Role, Usage};

    use super::*;

    #[tokio::test]
    async fn a_warm_handle_writes_the_same() {
        let chat = Engine::in_memory().conversation("c").open().await.unwrap();
        let mut given = Transcript {
            instructions: vec![Message::text(Role::System, "Be brief.")],
            ..Transcript::default()
        };
        let target = Target::openai_chat("gpt-4o");
        for n in 0..4 {
            given
                .items
                .push(Message::text(Role::User, format!("Question {n}")).into());
            let warm = chat
                .compile_external(&given, &target, None)
                .unwrap()
                .payload
                .to_json();
            let instructions = Content::Instructions(given.instructions.clone());
            let instructions = Contribution::new("instructions", Band::System, instructions);
            let cold = Compiler::new(chat.engine().catalogue()).with_contribution(instructions);
            let cold = cold.compile(&given.items, &target).unwrap();
            assert_eq!(warm, cold.payload.to_json());
        }
    }

    #[tokio::test]
    async fn what_is_given_counts_as_the_call_beside_it() {
        let chat = Engine::in_memory().conversation("c").open().await.unwrap();
        let target = Target::anthropic("claude-sonnet-4-5");
        let mut given = Transcript::default();
        for n in 0..8 {
            let question =
                Message::text(Role::User, format!("Question {n}: {}", "why? ".repeat(50)));
            given.items.push(question.clone().into());
            let mut draft = chat.draft();
            draft.push_item(question);
            draft.commit().await.unwrap();
            let plain = chat.compile_external(&given, &target, None).unwrap();
            let counting = CountedRequest::from(&plain.report);
            let TokenBounds { low, high } = counting.counted;
            let usage = Usage {
                input_tokens: Some(low + (high - low) / 5),
                ..Usage::default()
            };
            chat.learn_from_usage(&counting, Some(&usage)).await;
        }
        let request = target.build_request(chat.engine().catalogue()).unwrap();
        let narrowing = chat.calibrated_range(&request).await;
        assert!(narrowing.is_some());
        let call = chat.compile(&target).await.unwrap();
        assert_eq!(call.calibrated_range(), narrowing);
        let tokens = |narrowing| {
            let compiled = chat.compile_external(&given, &target, narrowing).unwrap();
            (compiled.report.totals.low, compiled.report.totals.tokens)
        };
        let totals = &call.report.totals;
        assert_eq!(tokens(narrowing), (totals.low, totals.tokens));
        assert!(tokens(None).1 > totals.tokens);
    }
}
