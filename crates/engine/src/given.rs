//! A history that is given, not read: compiled with the memory of a handle's compiles.
//!
//! For what a client sent, beside what is stored of it. Not here: calls of the conversation (`asked`).

use contexture_compile::{Band, CompileError, Compiled, Compiler, Content, Contribution, Target};
use contexture_ir::Transcript;

use crate::conversation::Conversation;

impl Conversation {
    /// Compiles a history as it is given: its instructions before its items, nothing of what is stored. What earlier
    /// compiles of this handle counted and wrote is not counted and written again.
    ///
    /// # Errors
    /// As [`Compiler::compile`].
    pub fn compile_given(
        &self,
        transcript: &Transcript,
        target: &Target,
    ) -> Result<Compiled, CompileError> {
        let mut compiler = Compiler::new(self.engine().catalogue());
        if !transcript.instructions.is_empty() {
            let content = Content::Instructions(transcript.instructions.clone());
            compiler = compiler.with(Contribution::new("instructions", Band::System, content));
        }
        self.with_scratch(|scratch| compiler.compile_with(&transcript.items, target, scratch))
    }
}

#[cfg(test)]
mod tests {
    use contexture_ir::{Message, Role};

    use super::*;
    use crate::engine::Engine;

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
                .compile_given(&given, &target)
                .unwrap()
                .payload
                .to_json();
            let instructions = Content::Instructions(given.instructions.clone());
            let instructions = Contribution::new("instructions", Band::System, instructions);
            let cold = Compiler::new(chat.engine().catalogue()).with(instructions);
            let cold = cold.compile(&given.items, &target).unwrap();
            assert_eq!(warm, cold.payload.to_json());
        }
    }
}
