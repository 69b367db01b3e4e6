//! Where conversations are kept, and opening them.

use std::collections::BTreeSet;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use contexture::ir::ConversationId;
use contexture::store::{Error as StoreError, ListConversations, Maintenance, Thing, list_all};
use contexture::{Catalogue, Conversation, Engine, EngineError, Owner, PostgresStore};

use crate::exit::Exit;
use crate::failure::{Failure, Outcome};
use crate::globals::Globals;

/// The address of the database: `--db`, `CONTEXTURE_DB`, else a file in the user's data directory.
///
/// # Errors
/// No directory is named by the environment.
pub(crate) fn address(globals: &Globals) -> Outcome<String> {
    match &globals.db {
        Some(address) if address.is_empty() => {
            Err(Failure::usage("the name of the database is empty")
                .hint("give a file: --db FILE, or unset CONTEXTURE_DB"))
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
    let data = data.or_else(|| set("LOCALAPPDATA"));
    data.map(|data| data.join("contexture").join("contexture.db"))
        .ok_or_else(|| {
            Failure::new(
                Exit::Database,
                "no_data_directory",
                "no place for the database: neither XDG_DATA_HOME nor HOME is set",
            )
            .hint("name a file: --db FILE or CONTEXTURE_DB")
        })
}

/// So many conversations are read at a time to find a name like the one given.
const PAGE: usize = 500;
/// So many of them are named.
const SHOWN: usize = 3;
/// A shorter beginning of an id stands for none.
const SHORTEST: usize = 4;

/// Whether a database is made when there is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Missing {
    /// It is made.
    Make,
    /// There is nothing to show: an error.
    Refuse,
}

/// Opens the database.
///
/// # Errors
/// The store's, or there is none and none is to be made.
pub(crate) async fn open(globals: &Globals, missing: Missing) -> Outcome<Engine> {
    let address = address(globals)?;
    if is_postgres(&address) {
        return Ok(Engine::new(Arc::new(PostgresStore::open(&address).await?)));
    }
    if let Some(file) = file(&address) {
        match missing {
            Missing::Refuse if !file.exists() => {
                let message = format!("there is no database at `{}` yet", file.display());
                return Err(Failure::new(Exit::NotFound, "no_database", message)
                    .hint("`contexture import FILE` makes one, --db FILE names another"));
            }
            Missing::Refuse => {}
            Missing::Make => make_directory(file, globals)?,
        }
    }
    Ok(Engine::open(&address).await?)
}

/// Only the default directory is made; a directory somebody names must exist, for it may be a slip.
fn make_directory(file: &Path, globals: &Globals) -> Outcome<()> {
    let Some(directory) = file.parent() else {
        return Ok(());
    };
    if directory.as_os_str().is_empty() || directory.is_dir() {
        return Ok(());
    }
    let shown = directory.display();
    if globals.db.is_some() {
        let message = format!("no directory `{shown}` for the database");
        return Err(Failure::new(Exit::Database, "no_directory", message)
            .hint("make it, or name another file with --db"));
    }
    fs::create_dir_all(directory).map_err(|error| {
        let message = format!("cannot make the directory `{shown}`: {error}");
        Failure::new(Exit::Database, "no_directory", message)
            .hint("name a database in a directory you may write to: --db FILE or CONTEXTURE_DB")
    })
}

/// Whether an address names a PostgreSQL database.
pub(crate) fn is_postgres(address: &str) -> bool {
    address.starts_with("postgres://") || address.starts_with("postgresql://")
}

/// The file of an address, if it names one.
pub(crate) fn file(address: &str) -> Option<&Path> {
    match address.split_once(':') {
        Some(("memory", _)) => None,
        Some(("sqlite", path)) => Some(Path::new(path.strip_prefix("//").unwrap_or(path))),
        Some((_, rest)) if rest.starts_with("//") => None,
        _ => Some(Path::new(address)),
    }
}

/// Whose conversations.
///
/// # Errors
/// A name that breaks the rule for owners.
pub(crate) fn owner(globals: &Globals) -> Outcome<Owner> {
    Ok(globals.owner_given()?.unwrap_or_else(Owner::local))
}

/// The same conversation among these models.
///
/// # Errors
/// The store's.
pub(crate) async fn among(chat: &Conversation, catalogue: Catalogue) -> Outcome<Conversation> {
    let engine = chat.engine().clone().with_catalogue(catalogue);
    let again = engine.conversation(chat.id().as_str());
    let again = again.owner(chat.owner().as_str());
    Ok(again.branch(chat.branch().as_str()).existing().await?)
}

/// Opens a conversation that exists, on the named branch or the active one. The beginning of an id is
/// enough, if no other begins so.
///
/// # Errors
/// As [`open`], or there is no such conversation or branch.
pub(crate) async fn conversation(
    globals: &Globals,
    id: &str,
    branch: Option<&str>,
) -> Outcome<Conversation> {
    let engine = open(globals, Missing::Refuse).await?;
    let owner = owner(globals)?;
    let open = async |id: &str| {
        let mut builder = engine.conversation(id).owner(owner.as_str());
        if let Some(branch) = branch {
            builder = builder.branch(branch);
        }
        builder.existing().await
    };
    match open(id).await {
        Ok(chat) => Ok(chat),
        Err(EngineError::Store(StoreError::NotFound {
            what: Thing::Conversation,
            name,
        })) => {
            let near = resembling(&engine, globals, &name).await?;
            if let [only] = near.begin.as_slice() {
                return Ok(open(only).await?);
            }
            let failure = Failure::from(StoreError::NotFound {
                what: Thing::Conversation,
                name,
            });
            let mut names = [near.begin, near.hold].concat();
            names.truncate(SHOWN);
            Err(if names.is_empty() {
                failure
            } else {
                failure.hint(format!("did you mean {}?", names.join(", ")))
            })
        }
        Err(error) => Err(error.into()),
    }
}

/// Opens the conversation of a resource that changed last.
///
/// # Errors
/// As [`open`], or the resource has none.
pub(crate) async fn of_resource(globals: &Globals, resource: &str) -> Outcome<Conversation> {
    let engine = open(globals, Missing::Refuse).await?;
    let owner = owner(globals)?;
    let list = ListConversations {
        resource: Some(resource.to_owned()),
        limit: Some(1),
        ..ListConversations::default()
    };
    let page = engine.conversations(&owner, list).await?;
    let Some(newest) = page.conversations.first() else {
        let message = format!("the resource {resource:?} has no conversation");
        return Err(Failure::new(Exit::NotFound, "no_resource", message).hint(
            "`contexture conversations --json` lists those of this owner, with their resources",
        ));
    };
    let builder = engine.conversation(&newest.id).owner(owner.as_str());
    Ok(builder.existing().await?)
}

/// Conversations whose ids are like a name.
#[derive(Default)]
struct Resembling {
    /// They begin with it.
    begin: Vec<String>,
    /// They have it in them, whatever the case, or are in it; as many as are shown.
    hold: Vec<String>,
}

async fn resembling(engine: &Engine, globals: &Globals, name: &str) -> Outcome<Resembling> {
    let owner = owner(globals)?;
    let small = name.to_lowercase();
    let mut found = Resembling::default();
    let mut list = ListConversations {
        limit: Some(PAGE),
        ..ListConversations::default()
    };
    loop {
        let page = engine.conversations(&owner, list.clone()).await?;
        for conversation in &page.conversations {
            let id = conversation.id.as_str();
            let lower = id.to_lowercase();
            if name.len() >= SHORTEST && id.starts_with(name) {
                found.begin.push(id.to_owned());
            } else if found.hold.len() < SHOWN
                && (lower.contains(&small) || (id.len() > 3 && small.contains(&lower)))
            {
                found.hold.push(id.to_owned());
            }
        }
        // Two that begin so are as bad as many.
        if page.next.is_none() || found.begin.len() >= SHOWN {
            return Ok(found);
        }
        list.after = page.next;
    }
}

/// What looks after the database.
///
/// # Errors
/// This kind of database has nothing of the sort.
pub(crate) fn upkeep(engine: &Engine) -> Outcome<&dyn Maintenance> {
    engine.store().maintenance().ok_or_else(|| {
        let message = "this database has no upkeep of ours";
        Failure::new(Exit::Refused, "no_upkeep", message)
            .hint("a database server has its own tools; `contexture export` works everywhere")
    })
}

/// The database, and the conversation that was named in it; without a name all of the owner's, or those of a resource.
///
/// # Errors
/// There is no such conversation, or the database or the list cannot be read.
pub(crate) async fn chosen(
    globals: &Globals,
    named: Option<&str>,
    resource: Option<&str>,
) -> Outcome<(Engine, BTreeSet<ConversationId>)> {
    if let Some(id) = named {
        let chat = conversation(globals, id, None).await?;
        return Ok((chat.engine().clone(), BTreeSet::from([chat.id().clone()])));
    }
    let engine = open(globals, Missing::Refuse).await?;
    let ids = list_all(&**engine.store(), &owner(globals)?, resource).await?;
    Ok((engine, ids))
}
