//! `contexture replay`: a past request, compiled again.

use clap::Args;
use contexture::engine::{Conversation, EngineError, Replayed, Unreplayable};
use contexture::ir::ResponseId;
use contexture::store::{Error as StoreError, PathEnd};
use serde_json::{Value, json};

use crate::database;
use crate::options::globals::Globals;
use crate::output::exit::Exit;
use crate::output::failure::{Failure, Outcome};
use crate::output::write;

/// Compile a past request again, byte for byte
///
/// A program that records answers keeps what each request was compiled from. The request is written
/// as it is compiled now; that it is the one that was sent, or is not, is told beside it.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  contexture replay support-42 last
  contexture replay support-42 --all

Ends with 1 if a request differs, or with --all cannot be compiled again. A request that a proxy
passed on as it came was not compiled, which is told and no finding.")]
pub(crate) struct Arguments {
    /// The conversation
    conversation: String,
    /// The answer to the request: the beginning of its id, or `last`
    #[arg(required_unless_present = "all", conflicts_with = "all")]
    response: Option<String>,
    /// Try every request of the branch, and say a line about each
    #[arg(long)]
    all: bool,
    /// The branch; default: the active one
    #[arg(long, value_name = "BRANCH")]
    branch: Option<String>,
}

/// Runs the command.
///
/// # Errors
/// There is no such conversation or answer, or its request cannot be compiled again.
pub(crate) async fn run(arguments: &Arguments, globals: &Globals) -> Outcome {
    let branch = arguments.branch.as_deref();
    let chat = database::open_conversation(globals, &arguments.conversation, branch).await?;
    let known = chat.response_ids(PathEnd::Branch(chat.branch())).await?;
    match &arguments.response {
        Some(name) => replay_one(&chat, find_response(&known, name)?, globals).await,
        None => replay_all(&chat, &known, globals).await,
    }
}

fn find_response(known: &[ResponseId], name: &str) -> Outcome<ResponseId> {
    let none = |what: String| {
        Failure::new(Exit::NotFound, "not_found", what)
            .with_hint("`contexture replay CONVERSATION --all` lists the answers of a branch")
    };
    if name == "last" {
        let last = known.last().copied();
        return last.ok_or_else(|| none("no answer is on this branch".to_owned()));
    }
    // Two are enough to know that it is ambiguous.
    let mut found = known.iter().filter(|id| id.to_string().starts_with(name));
    match (found.next(), found.next()) {
        (Some(id), None) => Ok(*id),
        (None, _) => Err(none(format!("answer {name:?} is not on this branch"))),
        (Some(_), Some(_)) => Err(Failure::usage(format!("answer {name:?} is ambiguous"))),
    }
}

async fn replay_one(chat: &Conversation, id: ResponseId, globals: &Globals) -> Outcome {
    let replayed = chat.replay(id).await?;
    if globals.json {
        let mut shown = replay_document(id, Ok(&replayed));
        if let Value::Object(shown) = &mut shown {
            shown.insert("payload".to_owned(), replayed.payload.to_json().into());
        }
        write::print_json(&shown)?;
    } else {
        write::print_text(&format!("{}\n", replayed.payload))?;
        if !globals.quiet {
            write::print_note(&format!("{}\n", describe_replay(Ok(&replayed))));
        }
    }
    Ok(exit_code(replayed.is_equal()))
}

async fn replay_all(chat: &Conversation, known: &[ResponseId], globals: &Globals) -> Outcome {
    let mut equal = true;
    let mut rows = Vec::new();
    for id in known {
        let replayed = chat.replay(*id).await;
        if let Err(error) = &replayed
            && !matches!(
                error,
                EngineError::Unreplayable { .. }
                    | EngineError::Refused(_)
                    | EngineError::Store(StoreError::NotFound { .. })
            )
        {
            replayed?;
            continue;
        }
        // A request that was passed through was not compiled, so there is nothing that could differ.
        equal &= match &replayed {
            Ok(replayed) => replayed.is_equal(),
            Err(error) => is_passed_through(error),
        };
        if globals.json {
            rows.push(replay_document(*id, replayed.as_ref()));
        } else {
            write::print_sentence(&format!("{id}  {}\n", describe_replay(replayed.as_ref())))?;
        }
    }
    if globals.json {
        write::print_json(&rows)?;
    }
    Ok(exit_code(equal))
}

const fn exit_code(equal: bool) -> Exit {
    if equal { Exit::Done } else { Exit::Findings }
}

/// What became of it, in one line.
fn describe_replay(replayed: Result<&Replayed, &EngineError>) -> String {
    match replayed {
        Ok(replayed) if replayed.is_equal() => {
            format!("equal: {} bytes", replayed.payload.len())
        }
        Ok(replayed) => {
            let at = replayed.differs_at.map(|at| format!(" at byte {at}"));
            let by = replayed
                .has_other_compiler_version()
                .then(|| format!(": compiled by version {}", replayed.compiler));
            let (at, by) = (at.unwrap_or_default(), by.unwrap_or_default());
            format!("differs{at}{by}")
        }
        Err(error) if is_passed_through(error) => {
            "passed on as it came: nothing was compiled".to_owned()
        }
        Err(error) => format!("unreplayable: {}", unreplayable_reason(error)),
    }
}

const fn is_passed_through(error: &EngineError) -> bool {
    matches!(
        error,
        EngineError::Unreplayable {
            reason: Unreplayable::PassedThrough,
            ..
        }
    )
}

fn unreplayable_reason(error: &EngineError) -> String {
    match error {
        EngineError::Unreplayable { reason: why, .. } => why.to_string(),
        EngineError::Store(_) => "only its items are kept".to_owned(),
        other => other.to_string(),
    }
}

fn replay_document(id: ResponseId, replayed: Result<&Replayed, &EngineError>) -> Value {
    match replayed {
        Ok(replayed) => json!({
            "response": id.to_string(),
            "outcome": if replayed.is_equal() { "equal" } else { "differs" },
            "base": replayed.base.map(|base| base.to_string()),
            "bytes": replayed.payload.len(),
            "sent": replayed.sent_hash.to_string(),
            "rebuilt": replayed.rebuilt_hash.to_string(),
            "compiler": replayed.compiler,
            "differs_at": replayed.differs_at,
        }),
        Err(error) => json!({
            "response": id.to_string(),
            "outcome": if is_passed_through(error) { "passed_through" } else { "unreplayable" },
            "why": unreplayable_reason(error),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_passed_on_is_no_finding() {
        let response = ResponseId::from_bytes([7; 16]);
        let error = |reason| EngineError::Unreplayable { response, reason };
        for (error, outcome, told) in [
            (
                error(Unreplayable::PassedThrough),
                "passed_through",
                "passed on as it came",
            ),
            (error(Unreplayable::Redacted), "unreplayable", "redacted"),
        ] {
            let document = replay_document(response, Err(&error));
            assert_eq!(document["outcome"], outcome);
            let text = describe_replay(Err(&error));
            assert!(text.contains(told), "{text}");
            assert_eq!(text.starts_with("unreplayable"), outcome == "unreplayable");
        }
    }
}
