//! The libraries' errors in the words of the command line: which exit code, which hint.

use contexture::OpenError;
use contexture::catalogue::CatalogueError;
use contexture::compile::Refusal;
use contexture::engine::{EngineError, Unreplayable};
use contexture::ir::FragmentError;
use contexture::layers::LayersError;
use contexture::layers::builtin::SkillError;
use contexture::layers::builtin::memory::NoteError;
use contexture::render::RenderError;
use contexture::sessions::SessionError;
use contexture::store::{EntityKind, Error as StoreError, StorageFault};
use contexture::wire::WireError;
pub(crate) use contexture_api::problem::error_chain;
use serde_json::json;

use crate::output::exit::Exit;
use crate::output::failure::Failure;
use crate::output::printable::{group_thousands, pad_left, pad_right};

/// Why a text is not JSON; the place is counted from its own beginning.
pub(crate) fn not_json(error: &serde_json::Error) -> Failure {
    let (line, column) = (error.line(), error.column());
    // Nothing was there at all, which is mostly a command that failed before this one in a pipe.
    if error.is_eof() && (line, column) == (1, 0) {
        return Failure::bad_input("not_json", "it is empty, expected JSON");
    }
    if error.is_eof() {
        let message =
            format!("truncated JSON: it ends at line {line} column {column} within a value");
        return Failure::bad_input("not_json", message)
            .with_hint("was the file copied, or the stream read, to its end?");
    }
    let text = error.to_string();
    let what = text.split(" at line ").next().unwrap_or(&text);
    let message = format!("not JSON: line {line} column {column}: {what}");
    Failure::bad_input("not_json", message)
}

impl From<WireError> for Failure {
    fn from(error: WireError) -> Self {
        match &error {
            WireError::NotJson { source, .. } => not_json(source),
            WireError::WrongShape { format, .. } => {
                Self::bad_input("wrong_format", error_chain(&error)).with_hint(format!(
                    "is it really {format}? Without a format it is detected"
                ))
            }
            WireError::Tools(refusal) => Self::bad_input(refusal.kind(), error_chain(&error)),
            _ => Self::bad_input("invalid_document", error_chain(&error)),
        }
    }
}

impl From<FragmentError> for Failure {
    fn from(error: FragmentError) -> Self {
        match &error {
            FragmentError::Json { source } => not_json(source),
            _ => Self::bad_input("invalid_fragments", error_chain(&error)),
        }
    }
}

impl From<RenderError> for Failure {
    fn from(error: RenderError) -> Self {
        Self::bad_input("render", error_chain(&error))
    }
}

impl From<contexture::ir::Error> for Failure {
    fn from(error: contexture::ir::Error) -> Self {
        let kind = match &error {
            // Ids come from the command line, so it is that which is wrong.
            contexture::ir::Error::BadId { .. } => return Self::usage(error_chain(&error)),
            contexture::ir::Error::Json { source, .. } => return not_json(source),
            _ => "invalid_document",
        };
        Self::bad_input(kind, error_chain(&error))
    }
}

impl From<CatalogueError> for Failure {
    fn from(error: CatalogueError) -> Self {
        match &error {
            CatalogueError::UnknownModel {
                name,
                similar: near,
            } => unknown_model(name, near),
            CatalogueError::WrongProvider {
                model,
                provider,
                format,
                native,
            } => Self::bad_input(
                "wrong_provider",
                format!("{model} is a model of {provider}, which takes no {format} requests"),
            )
            .with_details(
                json!({ "model": model, "provider": provider, "format": format, "native": native }),
            )
            .with_hint(format!("ask it in {native}: --to {native}")),
            _ => Self::bad_input("models_file", error_chain(&error)),
        }
    }
}

fn unknown_model(name: &str, near: &[String]) -> Failure {
    let message = format!("unknown model {name:?}");
    let failure = Failure::new(Exit::NotFound, "unknown_model", message)
        .with_details(json!({ "model": name, "near": near }));
    match near {
        [] => failure.with_hint("`contexture doctor --models` lists the known models"),
        near => failure.with_hint(format!("did you mean {}?", near.join(", "))),
    }
}

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Self {
        let kind = refusal.kind();
        let failure = Self::new(Exit::Refused, kind, refusal.to_string());
        match &refusal {
            Refusal::DoesNotFit {
                needed,
                allowed,
                window,
                reserve,
                segments,
            } => {
                let message = format!(
                    "the request does not fit: {} tokens needed, {} allowed (window {} − reserve {})",
                    group_thousands(*needed),
                    group_thousands(*allowed),
                    group_thousands(*window),
                    group_thousands(*reserve)
                );
                let wide = segments
                    .iter()
                    .map(|segment| segment.name.chars().count())
                    .max();
                // The refusal's own text has no thousands; people read these figures, programs the
                // details.
                let mut failure = Self { message, ..failure }.with_details(json!({
                    "needed": needed, "allowed": allowed, "window": window, "reserve": reserve,
                    "segments": segments,
                }));
                for segment in segments {
                    let tokens = pad_left(&group_thousands(segment.tokens), 9);
                    failure = failure.with_note(format!(
                        "required  {}  {tokens}",
                        pad_right(&segment.name, wide.unwrap_or(0))
                    ));
                }
                failure.with_hint("raise --window, lower --reserve, or shorten what is required")
            }
            Refusal::WindowTooSmall { .. } => {
                failure.with_hint("lower --reserve, or raise --window")
            }
            // From --param, so the command line is wrong and not the conversation.
            Refusal::BadParameter { .. } => Self {
                exit: Exit::Usage,
                ..failure
            },
            Refusal::UnsupportedTarget { .. } => Self {
                exit: Exit::Usage,
                ..failure
            },
            Refusal::NothingToSay { .. } => {
                failure.with_hint("the conversation is empty, or holds nothing a model may read")
            }
            Refusal::Unsound { .. } => Self {
                exit: Exit::Fault,
                ..failure
            }
            .with_hint("this is a fault of contexture; please report it with the input"),
            _ => failure,
        }
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        let failure = Self::new(store_exit(&error), error.kind(), error_chain(&error));
        match &error {
            StoreError::NotFound { what, name } => {
                let failure = Self {
                    message: format!("no {what} {name:?}"),
                    ..failure
                }
                .with_details(json!({ "what": what.to_string(), "name": name }));
                match what {
                    EntityKind::Conversation => {
                        failure.with_hint("`contexture conversations` lists those of this owner")
                    }
                    EntityKind::Branch => failure
                        .with_hint("`contexture branch list CONVERSATION` shows the branches"),
                    EntityKind::Checkpoint => {
                        failure.with_hint("`contexture log` shows the checkpoints, marked ◆")
                    }
                    EntityKind::Node | EntityKind::Message => {
                        failure.with_hint("`contexture log --all` shows every message with its id")
                    }
                    _ => failure,
                }
            }
            StoreError::Ambiguous { candidates, .. } => failure
                .with_details(json!({ "candidates": candidates }))
                .with_hint("give more of the id"),
            StoreError::HeadMoved { .. }
            | StoreError::StateConflict { .. }
            | StoreError::VersionConflict { .. } => {
                failure.with_hint("look at it again, and repeat")
            }
            StoreError::Busy { .. } => failure.with_hint("another process is writing; repeat"),
            StoreError::Interrupted { .. } => {
                failure.with_hint("narrow it down, or repeat when the machine has less to do")
            }
            StoreError::Unavailable { .. } => {
                failure.with_hint("is the server there, and are name, user and password right?")
            }
            StoreError::OutcomeUnknown { .. } => {
                failure.with_hint("repeat the command: what was stored is not stored twice")
            }
            StoreError::Newer { .. } => {
                failure.with_hint("upgrade contexture, or name another database with --db")
            }
            StoreError::Older { .. } => {
                failure.with_hint("`contexture migrate` makes or upgrades its tables")
            }
            // Before the faults of files: their hints would speak of directories and disk space
            // here.
            StoreError::Storage { path, .. } if path.to_string_lossy().starts_with("postgres") => {
                failure.with_hint("is the server there, and are name, user and password right?")
            }
            StoreError::Storage { fault, .. } => storage_failure(&error, failure, *fault),
            _ => failure,
        }
    }
}

fn store_exit(error: &StoreError) -> Exit {
    match error {
        StoreError::NotFound { .. } => Exit::NotFound,
        StoreError::Ambiguous { .. }
        | StoreError::AlreadyExists { .. }
        | StoreError::HeadMoved { .. }
        | StoreError::StateConflict { .. }
        | StoreError::VersionConflict { .. }
        | StoreError::IdConflict { .. }
        | StoreError::StaleFence { .. }
        | StoreError::BranchHeld { .. } => Exit::Conflict,
        StoreError::Limit { .. } | StoreError::Invalid { .. } | StoreError::NotOffered { .. } => {
            Exit::Refused
        }
        // What remains is the database's own: it is busy, newer, damaged or away.
        _ => Exit::Database,
    }
}

fn storage_failure(error: &StoreError, failure: Failure, fault: StorageFault) -> Failure {
    // What the database itself says adds nothing where the fault has a name.
    let failure = match fault {
        StorageFault::Io | StorageFault::Other | StorageFault::Corrupt => failure,
        _ => Failure {
            message: error.to_string(),
            ..failure
        },
    };
    match fault {
        StorageFault::Full => failure.with_hint("free some space, and repeat the command"),
        StorageFault::ReadOnly | StorageFault::CannotOpen => failure.with_hint(
            "name a database in a directory you may write to: --db FILE or CONTEXTURE_DB",
        ),
        StorageFault::NotADatabase => failure.with_hint("name another file with --db"),
        StorageFault::Corrupt => {
            failure.with_hint("keep a copy; `contexture doctor` shows what can still be read")
        }
        _ => failure,
    }
}

impl From<OpenError> for Failure {
    fn from(error: OpenError) -> Self {
        match error {
            OpenError::Store(error) => error.into(),
            error => Self::usage(error_chain(&error)),
        }
    }
}

impl From<EngineError> for Failure {
    fn from(error: EngineError) -> Self {
        match error {
            EngineError::Store(error) => error.into(),
            EngineError::Name(error) => error.into(),
            EngineError::Fragment(error) => error.into(),
            EngineError::Wire(error) => error.into(),
            EngineError::Session(error) => error.into(),
            EngineError::Catalogue(error) => error.into(),
            EngineError::Render(error) => error.into(),
            EngineError::NotImported { .. } => {
                Self::new(Exit::Refused, "not_imported", error_chain(&error)).with_hint(
                    "write it as a wire format: --to openai-chat, anthropic, ui, items, …",
                )
            }
            EngineError::Refused(refusal) => refusal.into(),
            EngineError::NoLink { .. }
            | EngineError::Evicted { .. }
            | EngineError::UnknownRule { .. } => {
                Self::new(Exit::NotFound, error.kind(), error_chain(&error))
            }
            EngineError::Unreplayable {
                reason: Unreplayable::PassedThrough,
                ..
            } => Self::new(Exit::Refused, "unreplayable", error_chain(&error))
                .with_hint("`contexture calls --conversation ID` shows what it used and cost"),
            EngineError::Unreplayable { .. } => {
                Self::new(Exit::Refused, "unreplayable", error_chain(&error))
            }
            EngineError::EmptyBranch { .. } => {
                Self::new(Exit::Refused, "empty_branch", error_chain(&error))
            }
            EngineError::NothingToCompact { .. } => {
                Self::new(Exit::Refused, "nothing_to_compact", error_chain(&error))
            }
            EngineError::CoverOverlap { .. } => {
                Self::new(Exit::Refused, "cover_overlap", error_chain(&error))
                    .with_hint("`contexture log --json` lists what compactions stand for")
            }
            EngineError::NotInEffect { .. } => {
                Self::new(Exit::Refused, "not_in_effect", error_chain(&error))
            }
            EngineError::ConversationExists { .. } => {
                Self::new(Exit::Conflict, "already_exists", error_chain(&error)).with_hint(
                    "it does not begin like this session; name another with --conversation",
                )
            }
            EngineError::OtherResource { .. } => {
                Self::new(Exit::Conflict, error.kind(), error_chain(&error))
                    .with_hint("leave out --resource, or name another conversation")
            }
            EngineError::StoredItem { .. } | EngineError::StoredState { .. } => {
                Self::new(Exit::Database, "damaged", error_chain(&error))
            }
            EngineError::Layers(_) | EngineError::LayerState(_) => {
                Self::new(Exit::Database, error.kind(), error_chain(&error))
            }
            _ => Self::bad_input("invalid", error_chain(&error)),
        }
    }
}

impl From<LayersError> for Failure {
    fn from(error: LayersError) -> Self {
        EngineError::from(error).into()
    }
}

impl From<SkillError> for Failure {
    fn from(error: SkillError) -> Self {
        Self::bad_input(error.kind(), error.to_string())
    }
}

impl From<NoteError> for Failure {
    fn from(error: NoteError) -> Self {
        let message = error.to_string();
        match &error {
            NoteError::NoNote { .. } => Self::new(Exit::NotFound, "no_note", message),
            // The note itself is well; there is no room for it.
            NoteError::TooMany { .. } | NoteError::Full { .. } => {
                Self::new(Exit::Refused, "memory_full", message)
            }
            _ => Self::bad_input("invalid_note", message),
        }
    }
}

impl From<SessionError> for Failure {
    fn from(error: SessionError) -> Self {
        let every = "name the format: --from NAME; `contexture help import` lists them";
        match error {
            SessionError::Wire(error) => error.into(),
            SessionError::NotJson { source, .. } => not_json(&source),
            SessionError::UnknownName { .. } => {
                Self::new(Exit::Usage, "unknown_format", error_chain(&error))
            }
            SessionError::Unknown { .. } => {
                Self::bad_input("unknown_format", error_chain(&error)).with_hint(every)
            }
            SessionError::NoItems { .. } => {
                Self::bad_input("no_items", error_chain(&error)).with_hint(every)
            }
            SessionError::WrongShape { .. } => Self::bad_input("wrong_format", error_chain(&error))
                .with_hint("is it really that? Without a format it is detected"),
            SessionError::Record { .. } => {
                let failure = Self::bad_input("bad_record", error_chain(&error));
                failure.with_hint(
                    "`contexture import --keep-going` stores what can be read and lists the rest",
                )
            }
            SessionError::CannotWrite { .. } | SessionError::OnlyRead { .. } => {
                Self::new(Exit::Refused, "cannot_write", error_chain(&error))
            }
            _ => Self::bad_input("session", error_chain(&error)),
        }
    }
}
