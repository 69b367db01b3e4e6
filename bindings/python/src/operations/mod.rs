//! The operations that Python can ask for, by name: each takes a JSON document and gives one.
//!
//! The documents are those of the HTTP API, and what an operation does is `contexture-api`'s or the engine's. The documents that
//! are defined here hold what HTTP says in paths and queries.

mod branches;
mod conversations;
mod messages;
mod model_calls;
mod notes;
mod rules;
mod search;
mod transfer;
mod usage;
mod values;

use std::collections::BTreeMap;

use contexture::engine::ConversationBuilder;
use contexture::ir::{BranchName, Cancel, ConversationId, NodeId};
use contexture::layers::builtin::Skill;
use contexture::{Conversation, DatabaseAddress, Engine, Owner, store_postgres};
use contexture_api::operations::Host;
use contexture_api::policy::PolicyConfig;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::failure::Failure;

/// Owner, conversation and branch of an operation.
pub(crate) type Place = (String, Option<String>, Option<String>);

/// Policies and skills that documents name.
#[derive(Debug, Default)]
pub(crate) struct Settings {
    pub(crate) policies: BTreeMap<String, PolicyConfig>,
    pub(crate) skills: Vec<Skill>,
}

/// An operation that is asked for.
#[derive(Debug)]
pub(crate) struct Request {
    operation: String,
    owner: String,
    conversation: Option<String>,
    branch: Option<String>,
    document: Vec<u8>,
    /// Bytes that are no JSON: of a blob, a value or a file.
    attachment: Vec<u8>,
    pub(crate) cancel: Cancel,
}

impl Request {
    /// Creates a request.
    pub(crate) fn new(
        operation: String,
        place: Place,
        document: &[u8],
        attachment: Option<&[u8]>,
    ) -> Self {
        let (owner, conversation, branch) = place;
        Self {
            operation,
            owner,
            conversation,
            branch,
            document: document.to_vec(),
            attachment: attachment.unwrap_or_default().to_vec(),
            cancel: Cancel::new(),
        }
    }

    /// Whether the database is to be brought to the format of this version, which comes before opening it.
    pub(crate) fn is_migration(&self) -> bool {
        self.operation == "migrate"
    }
}

/// What an operation gives.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) document: Vec<u8>,
    /// Bytes that are no JSON, or JSON that may never be looked at.
    pub(crate) attachments: Vec<Vec<u8>>,
}

impl Reply {
    fn new(document: &impl Serialize) -> Result<Self, Failure> {
        Self::with_attachments(document, Vec::new())
    }

    fn with_attachments(
        document: &impl Serialize,
        attachments: Vec<Vec<u8>>,
    ) -> Result<Self, Failure> {
        Ok(Self {
            document: serde_json::to_vec(document)?,
            attachments,
        })
    }

    fn empty() -> Self {
        Self {
            document: b"null".to_vec(),
            attachments: Vec::new(),
        }
    }
}

/// What an operation works on.
#[derive(Clone, Copy, Debug)]
struct Scope<'a> {
    engine: &'a Engine,
    settings: &'a Settings,
    request: &'a Request,
}

impl Scope<'_> {
    fn parse<T: DeserializeOwned>(&self) -> Result<T, Failure> {
        Ok(serde_json::from_slice(&self.request.document)?)
    }

    fn owner(&self) -> Result<Owner, Failure> {
        Ok(Owner::new(&self.request.owner)?)
    }

    fn conversation_id(&self) -> Result<ConversationId, Failure> {
        let id = self.request.conversation.as_deref();
        let id = id.ok_or_else(|| Failure::argument("conversation", "is missing"))?;
        Ok(ConversationId::new(id)?)
    }

    /// Names the conversation and its branch, to be opened.
    fn builder(&self) -> Result<ConversationBuilder, Failure> {
        let id = self.conversation_id()?;
        let builder = self.engine.conversation(id.as_str());
        let builder = builder.owner(&self.request.owner);
        Ok(match &self.request.branch {
            Some(branch) => builder.branch(branch),
            None => builder,
        })
    }

    /// Opens the conversation on its branch. It is never created here: a misspelt id would become an empty conversation.
    async fn chat(&self) -> Result<Conversation, Failure> {
        Ok(self.builder()?.open_existing().await?)
    }

    fn host(&self) -> Host<'_> {
        Host {
            policies: &self.settings.policies,
            skills: &self.settings.skills,
        }
    }
}

fn parse_node(text: &str) -> Result<NodeId, Failure> {
    Ok(text.parse::<NodeId>()?)
}

fn parse_branch(name: &str) -> Result<BranchName, Failure> {
    Ok(BranchName::new(name)?)
}

/// Creates the tables of a PostgreSQL database, or brings them to the format of this version.
///
/// # Errors
/// Another database, or the store's.
pub(crate) async fn migrate(address: &str) -> Result<Reply, Failure> {
    match address.parse()? {
        DatabaseAddress::Postgres(address) => {
            let format = store_postgres::migrate(&address).await?;
            Reply::new(&format)
        }
        _ => {
            let detail =
                "only PostgreSQL is migrated: a file is brought up to date when it is opened";
            Err(Failure::argument("address", detail))
        }
    }
}

/// Runs an operation.
///
/// # Errors
/// The operation's.
pub(crate) async fn run(
    engine: &Engine,
    settings: &Settings,
    request: &Request,
) -> Result<Reply, Failure> {
    let scope = &Scope {
        engine,
        settings,
        request,
    };
    match request.operation.as_str() {
        "append" => messages::append(scope).await,
        "branches" => branches::list(scope).await,
        "check" => model_calls::check(scope).await,
        "checkpoints" => branches::list_checkpoints(scope).await,
        "compactions" => messages::list_compactions(scope).await,
        "compile" => model_calls::compile(scope).await,
        "compile_messages" => model_calls::compile_messages(scope),
        "create_branch" => branches::create(scope).await,
        "delete_branch" => branches::delete(scope).await,
        "delete_checkpoint" => branches::delete_checkpoint(scope).await,
        "delete_conversation" => conversations::delete(scope).await,
        "delete_note" => notes::delete(scope).await,
        "delete_value" => values::delete(scope).await,
        "describe_call" => usage::describe_call(scope).await,
        "drop_rule" => rules::drop_rule(scope).await,
        "explain" => model_calls::explain(scope).await,
        "export" => transfer::export(scope).await,
        "export_lines" => transfer::export_lines(scope).await,
        "get_note" => notes::get(scope).await,
        "get_value" => values::get(scope).await,
        "handle" => model_calls::handle(scope).await,
        "import_lines" => transfer::import_lines(scope).await,
        "import_sessions" => transfer::import_sessions(scope).await,
        "ingest" => model_calls::ingest(scope).await,
        "items" => messages::list_items(scope).await,
        "list_calls" => usage::list_calls(scope).await,
        "list_conversations" => conversations::list(scope).await,
        "list_notes" => notes::list(scope).await,
        "list_pins" => rules::list_pins(scope).await,
        "list_rules" => rules::list_rules(scope).await,
        "list_values" => values::list(scope).await,
        "log" => messages::log(scope).await,
        "messages" => messages::list(scope).await,
        "move_branch" => branches::move_branch(scope).await,
        "open" => conversations::open(scope).await,
        "pin" => rules::pin(scope).await,
        "put_blob" => values::put_blob(scope).await,
        "put_note" => notes::put(scope).await,
        "put_value" => values::put(scope).await,
        "read_blob" => values::read_blob(scope).await,
        "record" => model_calls::record(scope).await,
        "resolve" => messages::resolve(scope).await,
        "restore_checkpoint" => branches::restore_checkpoint(scope).await,
        "restore_rule" => rules::restore_rule(scope).await,
        "rewind" => branches::rewind(scope).await,
        "search" => search::search(scope).await,
        "set_checkpoint" => branches::set_checkpoint(scope).await,
        "show" => conversations::show(scope).await,
        "switch_branch" => branches::switch(scope).await,
        "unpin" => rules::unpin(scope).await,
        "update" => conversations::update(scope).await,
        "usage" => usage::sum(scope).await,
        other => Err(Failure::argument(
            "operation",
            format!("there is no {other:?}"),
        )),
    }
}
