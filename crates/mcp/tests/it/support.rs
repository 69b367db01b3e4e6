//! A client of the official SDK at the other end of a pipe, and recorded sessions for it to read.

use contexture::engine::{ImportOptions, TestClock, TestIds};
use contexture::ir::{ConversationId, FunctionCall, FunctionCallOutput, Output};
use contexture::sessions::{ReadOptions, detect_format, read_sessions};
use contexture::{Engine, Owner, user};
use contexture_mcp::{Access, Caller, serve};
use contexture_testdata::{self as data, Validator};
use rmcp::ServiceExt as _;
use rmcp::model::{CallToolRequestParams, CallToolResult, JsonObject, ReadResourceRequestParams};
use rmcp::service::{RoleClient, RunningService, ServiceError};
use serde_json::{Value, json};
use tokio::task::JoinHandle;

/// The recorded session of a coding agent, with long outputs.
pub(crate) const CODING: &str = "coding";
/// A recorded session of an airline's agent, about the customer `mia`.
pub(crate) const AIRLINE: &str = "airline-0";
/// A small conversation with one long output.
pub(crate) const SMALL: &str = "small";
/// Another owner's conversation.
pub(crate) const STRANGE: &str = "strange";

pub(crate) fn ada() -> Owner {
    Owner::new("acme/ada").unwrap()
}

pub(crate) fn eve() -> Owner {
    Owner::new("acme/eve").unwrap()
}

pub(crate) fn empty() -> Engine {
    Engine::in_memory()
        .with_clock(TestClock::new(1_000))
        .with_ids(TestIds::default())
}

/// Recorded sessions of two owners.
pub(crate) async fn recorded() -> Engine {
    let engine = empty();
    let trajectory = "marshmallow-1867.function-calling-long.traj";
    let coding = data::read_text(&format!("swe-agent/{trajectory}"));
    keep(&engine, &coding, trajectory, ada(), CODING, None).await;
    let airline = first_of(&data::tau_bench());
    keep(
        &engine,
        &airline,
        "airline.json",
        ada(),
        AIRLINE,
        Some("mia"),
    )
    .await;
    small(&engine, &ada(), SMALL, "the quick brown fox").await;
    small(&engine, &eve(), STRANGE, "a secret of eve").await;
    engine
}

fn first_of(sessions: &str) -> String {
    let sessions: Vec<Value> = serde_json::from_str(sessions).unwrap();
    serde_json::to_string(&sessions[..1]).unwrap()
}

async fn keep(
    engine: &Engine,
    text: &str,
    name: &str,
    owner: Owner,
    id: &str,
    resource: Option<&str>,
) {
    let options = ReadOptions {
        source_name: name,
        ..ReadOptions::default()
    };
    let sessions =
        read_sessions(detect_format(text, name).unwrap().format, text, &options).unwrap();
    let options = ImportOptions {
        owner,
        conversation: Some(ConversationId::new(id).unwrap()),
        resource: resource.map(str::to_owned),
        ..ImportOptions::default()
    };
    engine.import(&sessions[0], &options).await.unwrap();
}

/// A question, and a call with an output of 5,000 lines that says it in line 4,321.
pub(crate) async fn small(engine: &Engine, owner: &Owner, id: &str, said: &str) {
    let chat = engine.conversation(id).owner(owner.as_str());
    let chat = chat.title("Small").open().await.unwrap();
    chat.save([user(format!("Where does it say {said}?"))])
        .await
        .unwrap();
    let lines = (1..=5_000).map(|line| match line {
        4_321 => format!("{line}: {said}\n"),
        line => format!("{line}: nothing\n"),
    });
    let mut draft = chat.draft();
    draft.push_item(FunctionCall::new("c1", "grep", r#"{"in":"log"}"#));
    draft.push_item(FunctionCallOutput::new("c1", Output::Text(lines.collect())));
    draft.commit().await.unwrap();
}

/// A client, and the server it talks to.
pub(crate) struct Client {
    pub(crate) peer: RunningService<RoleClient, ()>,
    server: JoinHandle<()>,
}

impl Client {
    /// A client that acts for Ada.
    pub(crate) async fn of(engine: &Engine, access: Access) -> Self {
        Self::of_owner(engine, ada(), access).await
    }

    pub(crate) async fn of_owner(engine: &Engine, owner: Owner, access: Access) -> Self {
        let (ours, theirs) = tokio::io::duplex(1 << 20);
        let (input, output) = tokio::io::split(theirs);
        let caller = Caller::new(owner, access);
        let engine = engine.clone();
        let server = tokio::spawn(async move {
            serve(engine, caller, input, output).await.unwrap();
        });
        let peer = ().serve(ours).await.unwrap();
        Self { peer, server }
    }

    pub(crate) async fn recorded() -> Self {
        Self::of(&recorded().await, Access::Write).await
    }

    /// Calls a tool, as the protocol answers it.
    pub(crate) async fn call(
        &self,
        tool: &str,
        arguments: Value,
    ) -> Result<CallToolResult, ServiceError> {
        let arguments: JsonObject = serde_json::from_value(arguments).unwrap();
        let request = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments);
        self.peer.call_tool(request).await
    }

    /// What a tool answers: it must be what its schema says, and its text the same.
    pub(crate) async fn ask(&self, tool: &str, arguments: Value) -> Value {
        let result = self.call(tool, arguments.clone()).await.unwrap();
        assert_eq!(
            result.is_error,
            Some(false),
            "{tool} {arguments}: {result:?}"
        );
        let answer = result.structured_content.unwrap();
        let text = &result.content[0].as_text().unwrap().text;
        assert_eq!(serde_json::from_str::<Value>(text).unwrap(), answer);
        let listed = self.peer.list_all_tools().await.unwrap();
        let listed = listed
            .into_iter()
            .find(|listed| listed.name == tool)
            .unwrap();
        if let Some(schema) = &listed.output_schema {
            let schema = Value::Object((**schema).clone());
            let findings = Validator::new(&schema).validation_errors(&answer);
            assert!(findings.is_empty(), "{tool}: {findings:?}");
        }
        let schema = Value::Object((*listed.input_schema).clone());
        let findings = Validator::new(&schema).validation_errors(&arguments);
        assert!(findings.is_empty(), "{tool} is asked wrongly: {findings:?}");
        answer
    }

    /// What a tool says of a call that failed, and its word for programs.
    pub(crate) async fn refused(&self, tool: &str, arguments: Value) -> (String, String) {
        let result = self.call(tool, arguments.clone()).await.unwrap();
        assert_eq!(
            result.is_error,
            Some(true),
            "{tool} {arguments}: {result:?}"
        );
        let text = result.content[0].as_text().unwrap().text.clone();
        let meta = serde_json::to_value(result.meta.unwrap()).unwrap();
        let kind = meta["contexture/error"]["kind"].as_str().unwrap();
        (kind.to_owned(), text)
    }

    /// A resource's text.
    pub(crate) async fn resource(&self, uri: &str) -> Result<String, ServiceError> {
        let request = ReadResourceRequestParams::new(uri);
        let read = self.peer.read_resource(request).await?;
        let read = serde_json::to_value(read).unwrap();
        assert_eq!(read["contents"][0]["uri"], json!(uri));
        Ok(read["contents"][0]["text"].as_str().unwrap().to_owned())
    }

    /// Leaves; the server ends then.
    pub(crate) async fn leave(self) {
        self.peer.cancel().await.unwrap();
        self.server.await.unwrap();
    }
}

/// The text of a field.
pub(crate) fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value[field]
        .as_str()
        .unwrap_or_else(|| panic!("{field}: {value}"))
}
