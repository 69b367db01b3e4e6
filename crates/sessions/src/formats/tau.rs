//! tau-bench results: an array of runs, each with the task, the reward and a `traj` of OpenAI chat
//! messages. One run is one session.

use contexture_ir::{ContentHash, Fields, Raw, Transcript};
use contexture_wire::{Dialect, DocumentKind, Format, lift, lower};
use serde_json::value::RawValue;

use crate::error::SessionError;
use crate::format::SessionFormat;
use crate::formats::request_body::{linear_tree, main_transcript};
use crate::json::{excerpt, is_same_json, with_member};
use crate::session::{ReadOptions, Session, SessionInfo, Skipped, title_of};

const EXPECTED: &str = "an array of runs, or one run: an object with `traj`";
const RUN: &str = "a tau-bench run";

pub(crate) fn read_sessions(
    text: &str,
    options: &ReadOptions<'_>,
) -> Result<Vec<Session>, SessionError> {
    let wrong = || SessionError::WrongShape {
        format: "tau-bench",
        expected: EXPECTED,
    };
    // One run by itself, as some tools write it.
    if text.trim_start().starts_with('{') {
        let raw: &RawValue = serde_json::from_str(text).map_err(|_| wrong())?;
        return Ok(vec![read_run(raw, options).map_err(|_| wrong())?]);
    }
    let runs: Vec<&RawValue> = serde_json::from_str(text).map_err(|_| wrong())?;
    let mut sessions: Vec<Session> = Vec::with_capacity(runs.len());
    let mut skipped = Vec::new();
    let mut fault = None;
    for (index, raw) in runs.into_iter().enumerate() {
        let number = index + 1;
        match read_run(raw, options) {
            // Runs that were skipped before this one are listed with it.
            Ok(session) => sessions.push(Session {
                skipped: std::mem::take(&mut skipped),
                ..session
            }),
            Err(found) => {
                skipped.push(Skipped {
                    number,
                    what: format!("expected {RUN}, found {found}"),
                });
                // The first fault is the one that is reported if nothing can be read.
                fault.get_or_insert(SessionError::Record {
                    place: "session",
                    number,
                    expected: RUN,
                    found,
                    read: index,
                });
                if !options.keep_going {
                    break;
                }
            }
        }
    }
    match (sessions.last_mut(), fault) {
        (Some(last), _) if options.keep_going => last.skipped.extend(skipped),
        // Nothing could be read, so there is nothing to go on with.
        (_, Some(fault)) => return Err(fault),
        _ => {}
    }
    Ok(sessions)
}

fn read_run(raw: &RawValue, options: &ReadOptions<'_>) -> Result<Session, String> {
    let fields = Fields::parse(raw.get()).map_err(|_| excerpt(raw.get()))?;
    let traj = fields
        .get(&["traj"])
        .ok_or_else(|| format!("no `traj` in {}", excerpt(raw.get())))?;
    let lifted = lift(Format::OpenAiChat, traj.get()).map_err(|error| error.to_string())?;
    // For writing the run back: without its trajectory, unless that cannot be written again from its items, as one with
    // a tool's name that the API refuses.
    let rest = match is_same_json(&write_trajectory(&lifted.transcript), traj.get()) {
        true => with_member(raw.get(), "traj", "null").unwrap_or_default(),
        false => raw.get().to_owned(),
    };
    let number = |name: &str| fields.get(&[name]).map_or("", |raw| raw.get());
    // Task and trial repeat between files and models, so the hash of the run is part of its id.
    let hash = ContentHash::of(raw.get().as_bytes());
    let (tree, heads) = linear_tree(lifted.transcript.items);
    Ok(Session {
        format: SessionFormat::TauBench,
        source_id: format!(
            "tau-bench:{}:{}:{}:{hash}",
            options.source_name,
            number("task_id"),
            number("trial"),
        ),
        title: title_of(&tree),
        instructions: lifted.transcript.instructions,
        tree,
        heads,
        metadata: Raw::parse(rest).map_err(|error| error.to_string())?,
        info: SessionInfo::default(),
        skipped: Vec::new(),
    })
}

pub(crate) fn write_session(session: &Session) -> Result<String, SessionError> {
    let transcript = main_transcript(session);
    let kept = session.metadata.fields();
    let kept = kept.as_ref().and_then(|run| run.get(&["traj"]));
    if kept.is_some_and(|traj| is_made_of(traj, &transcript)) {
        return Ok(session.metadata.get().to_owned());
    }
    let traj = write_trajectory(&transcript);
    with_member(session.metadata.get(), "traj", &traj).ok_or_else(|| SessionError::Metadata {
        what: "not an object".to_owned(),
    })
}

/// Reports whether a trajectory that was read has become exactly this history.
fn is_made_of(traj: &RawValue, transcript: &Transcript) -> bool {
    lift(Format::OpenAiChat, traj.get()).is_ok_and(|lifted| {
        lifted.transcript.items == transcript.items
            && lifted.transcript.instructions == transcript.instructions
    })
}

fn write_trajectory(transcript: &Transcript) -> String {
    let dialect = Dialect::of(Format::OpenAiChat);
    lower(&dialect, DocumentKind::Messages, transcript).json
}
