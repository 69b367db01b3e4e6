//! Names of an imported conversation, its branches and its checkpoints.

use contexture_ir::{BranchName, CheckpointName, ConversationId, NodeId};
use contexture_store::{Activation, BranchLabel, NewBranch, RefChange};

use super::job::ImportJob;
use crate::error::EngineError;

impl ImportJob<'_> {
    /// Calls the first branch of a conversation what the session calls it.
    pub(super) async fn name_first_branch(&mut self) -> Result<(), EngineError> {
        let main = BranchName::main();
        let Some(head) = self.session.heads.first() else {
            return Ok(());
        };
        let name = branch_name(&head.name)?;
        // Only a conversation that is new and empty: a name that people use is never changed.
        if name == main || self.branches != [(main.clone(), None)] {
            return Ok(());
        }
        let to = name.clone();
        self.change_ref(RefChange::RenameBranch { from: main, to }, None)
            .await?;
        self.branches = vec![(name, None)];
        Ok(())
    }

    /// Gives the names that storing the paths did not give: those of branches that end in the middle
    /// of a path, and of checkpoints. A name that is there stays where it is.
    pub(super) async fn name_remaining_refs(&self) -> Result<(), EngineError> {
        let about = &self.session.info;
        if about.branches.is_empty() && about.checkpoints.is_empty() {
            return Ok(());
        }
        let refs = self.engine.store().list_refs(self.owner, &self.id).await?;
        for branch in &about.branches {
            let name = branch_name(&branch.name)?;
            if refs.branches.iter().all(|known| known.name != name) {
                let new = NewBranch {
                    base: branch.node.and_then(|node| self.node_id(node)),
                    label: BranchLabel::Named(name),
                    activate: Activation::Keep,
                };
                self.change_ref(RefChange::CreateBranch(new), branch.at)
                    .await?;
            }
        }
        for checkpoint in &about.checkpoints {
            let name = CheckpointName::new(&checkpoint.name)?;
            let known = refs.checkpoints.iter().any(|known| known.name == name);
            if let Some(node) = checkpoint.node.and_then(|node| self.node_id(node))
                && !known
            {
                let set = RefChange::SetCheckpoint { name, node };
                self.change_ref(set, checkpoint.at).await?;
            }
        }
        Ok(())
    }

    async fn change_ref(&self, change: RefChange, at: Option<i64>) -> Result<(), EngineError> {
        let at_ms = at.unwrap_or(self.created_ms);
        let store = self.engine.store();
        store
            .change_ref(self.owner, &self.id, change, at_ms)
            .await?;
        Ok(())
    }
}

/// A session's id as a conversation's: characters that are not allowed become `-`, and a piece of the
/// original's hash keeps what became equal apart.
pub(super) fn conversation_id(source: &str) -> Result<ConversationId, EngineError> {
    if let Ok(id) = ConversationId::new(source) {
        return Ok(id);
    }
    let plain = sanitize_name(source, "._:-", 100);
    let short = short_hash("conversation id", source);
    Ok(ConversationId::new(
        format!("{}-{short}", plain.trim_matches('-')).trim_matches('-'),
    )?)
}

/// A session's name for a branch, changed where it breaks the rule.
pub(super) fn branch_name(name: &str) -> Result<BranchName, EngineError> {
    if let Ok(name) = BranchName::new(name) {
        return Ok(name);
    }
    let plain = sanitize_name(name, "._:-/", 200);
    let short: String = short_hash("branch name", name);
    Ok(BranchName::new(
        format!("{plain}-{short}").trim_matches('-'),
    )?)
}

/// A piece of a text's hash.
fn short_hash(domain: &str, text: &str) -> String {
    let hash = NodeId::derive(domain, &[text.as_bytes()]).to_string();
    hash.chars().take(8).collect()
}

/// The first `most` characters, those that are neither letters, digits nor among `marks` as `-`.
fn sanitize_name(text: &str, marks: &str, most: usize) -> String {
    let allowed = |c: char| c.is_ascii_alphanumeric() || marks.contains(c);
    text.chars()
        .map(|c| if allowed(c) { c } else { '-' })
        .take(most)
        .collect()
}
