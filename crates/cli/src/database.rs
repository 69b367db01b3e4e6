//! Where conversations are kept, and opening them.

use std::collections::BTreeSet;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use contexture::ir::ConversationId;
use contexture::store::{
    EntityKind, Error as StoreError, ListConversations, Maintenance, list_all,
};
use contexture::{Catalogue, Conversation, DatabaseAddress, Engine, EngineError, Owner};

use crate::options::globals::Globals;
use crate::output::exit::Exit;
use crate::output::failure::{Failure, Outcome};

/// The address of the database: `--db`, `CONTEXTURE_DB`, else a file in the user's data directory.
///
/// # Errors
/// No directory is named by the environment.
pub(crate) fn resolve_address(globals: &Globals) -> Outcome<String> {
    match &globals.db {
        // An empty variable is a slip in a script; a database without a name would be made
        // somewhere.
        Some(address) if address.is_empty() => {
            Err(Failure::usage("the name of the database is empty")
                .with_hint("give a file: --db FILE, or unset CONTEXTURE_DB"))
        }
        Some(address) => Ok(address.clone()),
        None => Ok(default_file()?.to_string_lossy().into_owned()),
    }
}

/// The file in the user's data directory.
fn default_file() -> Outcome<PathBuf> {
    let set = |name: &str| {
        env::var_os(name)
            .filter(|value| !value.is_empty())
            .map(PathBuf::from)
    };
    // The specification of these directories says that a relative path is to be ignored.
    let data = set("XDG_DATA_HOME").filter(|path| path.is_absolute());
    let data = data.or_else(|| set("HOME").map(|home| home.join(".local").join("share")));
    // Windows, where HOME is not set as a rule.
    let data = data.or_else(|| set("LOCALAPPDATA"));
    data.map(|data| data.join("contexture").join("contexture.db"))
        .ok_or_else(|| {
            Failure::new(
                Exit::Database,
                "no_data_directory",
                "no place for the database: neither XDG_DATA_HOME nor HOME is set",
            )
            .with_hint("name a file: --db FILE or CONTEXTURE_DB")
        })
}

/// So many conversations are read at a time to find a name like the one given.
const SEARCH_PAGE: usize = 500;
/// So many of them are named.
const MAX_SUGGESTIONS: usize = 3;
/// A shorter beginning of an id stands for none.
const MIN_ID_PREFIX: usize = 4;

/// Whether a database is made when there is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WhenMissing {
    /// It is made.
    Create,
    /// There is nothing to show: an error.
    Refuse,
}

/// Opens the database.
///
/// # Errors
/// The store's, or there is none and none is to be made.
pub(crate) async fn open_engine(globals: &Globals, missing: WhenMissing) -> Outcome<Engine> {
    let address = resolve_address(globals)?;
    let parsed: DatabaseAddress = address.parse()?;
    if let Some(file) = parsed.sqlite_file() {
        match missing {
            // SQLite would make an empty file by opening it.
            WhenMissing::Refuse if !file.exists() => {
                let message = format!("there is no database at `{}` yet", file.display());
                return Err(Failure::new(Exit::NotFound, "no_database", message)
                    .with_hint("`contexture import FILE` makes one, --db FILE names another"));
            }
            WhenMissing::Refuse => {}
            WhenMissing::Create => ensure_database_directory(file, globals)?,
        }
    }
    Ok(match missing {
        WhenMissing::Create => contexture::open(&address).await?,
        // Looking at a backup on protected storage needs no permission to change it; a command that
        // writes is told so when it does.
        WhenMissing::Refuse => contexture::open_for_reading(&address).await?,
    })
}

/// Only the default directory is made; a directory somebody names must exist, for it may be a slip.
fn ensure_database_directory(file: &Path, globals: &Globals) -> Outcome<()> {
    let Some(directory) = file.parent() else {
        return Ok(());
    };
    if directory.as_os_str().is_empty() || directory.is_dir() {
        return Ok(());
    }
    let shown = directory.display();
    // Also set by CONTEXTURE_DB: it is the same option.
    if globals.db.is_some() {
        let message = format!("no directory `{shown}` for the database");
        return Err(Failure::new(Exit::Database, "no_directory", message)
            .with_hint("make it, or name another file with --db"));
    }
    create_private_folder(directory).map_err(|error| {
        let message = format!("cannot make the directory `{shown}`: {error}");
        Failure::new(Exit::Database, "no_directory", message).with_hint(
            "name a database in a directory you may write to: --db FILE or CONTEXTURE_DB",
        )
    })
}

/// Makes a folder, and those above it, that only this user may look into.
fn create_private_folder(path: &Path) -> std::io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::DirBuilderExt as _;
        builder.mode(0o700);
    }
    builder.create(path)
}

/// Whose conversations.
///
/// # Errors
/// A name that breaks the rule for owners.
pub(crate) fn resolve_owner(globals: &Globals) -> Outcome<Owner> {
    Ok(globals.explicit_owner()?.unwrap_or_else(Owner::local))
}

/// The same conversation among these models.
///
/// # Errors
/// The store's.
pub(crate) async fn reopen_with_catalogue(
    chat: &Conversation,
    catalogue: Catalogue,
) -> Outcome<Conversation> {
    let engine = chat.engine().clone().with_catalogue(catalogue);
    // A handle keeps the engine it was opened with, so it is opened once more.
    let again = engine.conversation(chat.id().as_str());
    let again = again.owner(chat.owner().as_str());
    Ok(again.branch(chat.branch().as_str()).open_existing().await?)
}

/// Opens a conversation that exists, on the named branch or the active one. The beginning of an id is
/// enough, if no other begins so.
///
/// # Errors
/// As [`open_engine`], or there is no such conversation or branch.
pub(crate) async fn open_conversation(
    globals: &Globals,
    id: &str,
    branch: Option<&str>,
) -> Outcome<Conversation> {
    let engine = open_engine(globals, WhenMissing::Refuse).await?;
    let owner = resolve_owner(globals)?;
    let open = async |id: &str| {
        let mut builder = engine.conversation(id).owner(owner.as_str());
        if let Some(branch) = branch {
            builder = builder.branch(branch);
        }
        builder.open_existing().await
    };
    match open(id).await {
        Ok(chat) => Ok(chat),
        Err(EngineError::Store(StoreError::NotFound {
            what: EntityKind::Conversation,
            name,
        })) => {
            // Only after the exact name was tried: the usual case reads no list.
            let near = find_similar_names(&engine, globals, &name).await?;
            // Only where exactly one begins so; guessing between two could change the wrong
            // conversation.
            if let [only] = near.prefix_matches.as_slice() {
                return Ok(open(only).await?);
            }
            let failure = Failure::from(StoreError::NotFound {
                what: EntityKind::Conversation,
                name,
            });
            // Likelier ones first, as only a few are named.
            let mut names = [near.prefix_matches, near.substring_matches].concat();
            names.truncate(MAX_SUGGESTIONS);
            Err(if names.is_empty() {
                failure
            } else {
                failure.with_hint(format!("did you mean {}?", names.join(", ")))
            })
        }
        Err(error) => Err(error.into()),
    }
}

/// Opens the conversation of a resource that changed last.
///
/// # Errors
/// As [`open_engine`], or the resource has none.
pub(crate) async fn open_newest_of_resource(
    globals: &Globals,
    resource: &str,
) -> Outcome<Conversation> {
    let engine = open_engine(globals, WhenMissing::Refuse).await?;
    let owner = resolve_owner(globals)?;
    let list = ListConversations {
        resource: Some(resource.to_owned()),
        limit: Some(1),
        ..ListConversations::default()
    };
    let page = engine.list_conversations(&owner, list).await?;
    let Some(newest) = page.conversations.first() else {
        let message = format!("the resource {resource:?} has no conversation");
        return Err(
            Failure::new(Exit::NotFound, "no_resource", message).with_hint(
                "`contexture conversations --json` lists those of this owner, with their resources",
            ),
        );
    };
    let builder = engine.conversation(&newest.id).owner(owner.as_str());
    Ok(builder.open_existing().await?)
}

/// Conversations whose ids are like a name.
#[derive(Default)]
struct SimilarNames {
    /// They begin with it.
    prefix_matches: Vec<String>,
    /// They have it in them, whatever the case, or are in it; as many as are shown.
    substring_matches: Vec<String>,
}

impl SimilarNames {
    /// Adds an id that is like the name somebody gave.
    fn add_if_similar(&mut self, id: &str, name: &str) {
        let (lower, small) = (id.to_lowercase(), name.to_lowercase());
        // With its exact case: this match opens a conversation, the others only suggest one.
        if name.len() >= MIN_ID_PREFIX && id.starts_with(name) {
            self.prefix_matches.push(id.to_owned());
        } else if self.substring_matches.len() < MAX_SUGGESTIONS
            && (lower.contains(&small) || (id.len() > 3 && small.contains(&lower)))
        {
            self.substring_matches.push(id.to_owned());
        }
    }
}

async fn find_similar_names(
    engine: &Engine,
    globals: &Globals,
    name: &str,
) -> Outcome<SimilarNames> {
    let owner = resolve_owner(globals)?;
    let mut found = SimilarNames::default();
    let mut list = ListConversations {
        limit: Some(SEARCH_PAGE),
        ..ListConversations::default()
    };
    loop {
        let page = engine.list_conversations(&owner, list.clone()).await?;
        for conversation in &page.conversations {
            found.add_if_similar(conversation.id.as_str(), name);
        }
        // Two that begin so are as bad as many.
        if page.next.is_none() || found.prefix_matches.len() >= MAX_SUGGESTIONS {
            return Ok(found);
        }
        list.after = page.next;
    }
}

/// What looks after the database.
///
/// # Errors
/// This kind of database has nothing of the sort.
pub(crate) fn require_maintenance(engine: &Engine) -> Outcome<&dyn Maintenance> {
    engine.store().maintenance().ok_or_else(|| {
        let message = "this database has no upkeep of ours";
        Failure::new(Exit::Refused, "no_upkeep", message)
            .with_hint("a database server has its own tools; `contexture export` works everywhere")
    })
}

/// The database, and the conversation that was named in it; without a name all of the owner's, or those of a resource.
///
/// # Errors
/// There is no such conversation, or the database or the list cannot be read.
pub(crate) async fn select_conversations(
    globals: &Globals,
    named: Option<&str>,
    resource: Option<&str>,
) -> Outcome<(Engine, BTreeSet<ConversationId>)> {
    if let Some(id) = named {
        let chat = open_conversation(globals, id, None).await?;
        return Ok((chat.engine().clone(), BTreeSet::from([chat.id().clone()])));
    }
    let engine = open_engine(globals, WhenMissing::Refuse).await?;
    let ids = list_all(&**engine.store(), &resolve_owner(globals)?, resource).await?;
    Ok((engine, ids))
}
