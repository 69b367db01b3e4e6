//! The context engine for LLM agents.
//!
//! Before every model call an agent must decide what the model sees. Contexture **keeps** what
//! happened, an append-only tree of items that can be branched, rewound and checkpointed; **knows**
//! what else to say, fragments rendered to text; and **compiles** both, under a token budget, into a
//! payload that OpenAI, Anthropic or Gemini accepts: deterministic, explained, never invalid.
//!
//! # A conversation that is kept
//!
//! ```
//! # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
//! use contexture::{Engine, Target, hint, role, user};
//!
//! let engine = Engine::in_memory(); // or contexture::open("support.db").await?
//! let chat = engine.conversation("support-42").owner("acme/ada").open().await?;
//! chat.set([role("You are a support agent."), hint("Refunds above $50 need approval.")])?;
//!
//! let mut draft = chat.draft();
//! draft.push(user("Refund everything except the gloves"));
//! draft.commit().await?;
//!
//! let call = chat.compile(&Target::anthropic("claude-sonnet-4-5").window(200_000)).await?;
//! println!("{}", call.payload); // send it with any client …
//! # let response = r#"{"id":"msg_1","type":"message","role":"assistant","model":"claude-sonnet-4-5",
//! #   "content":[{"type":"text","text":"Done."}],"stop_reason":"end_turn","stop_sequence":null,
//! #   "usage":{"input_tokens":40,"output_tokens":3}}"#;
//! chat.record(&call, response).await?; // … and hand the answer's body back
//!
//! chat.checkpoint("before-refund").await?;
//! let resolved = chat.resolve().await?;
//! assert_eq!(resolved.messages.len(), 2);
//! # Ok::<(), contexture::EngineError>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Without a database and without async
//!
//! ```
//! use contexture::{Catalogue, Compiler, Format, Target, lift};
//!
//! let request = r#"{"messages":[{"role":"user","content":"Hi!"}]}"#;
//! let items = lift(Format::OpenAiChat, request)?.transcript.items;
//! let target = Target::openai_responses("gpt-4.1").window(8_000);
//! let compiled = Compiler::new(Catalogue::builtin()).compile(&items, &target)?;
//! println!("{}", compiled.payload);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # An agent
//!
//! ```
//! # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
//! use std::sync::Arc;
//!
//! use contexture::models::ScriptedModel;
//! use contexture::{Agent, Engine, Format, Target, run_turn_with_text};
//!
//! // Over HTTP with the feature `http-models`; this one says what is written here.
//! let model = Arc::new(ScriptedModel::with_texts(Format::OpenAiChat, ["Good morning, Ada."]));
//! let agent = Agent::new("porter", model, Target::openai_chat("gpt-4o"));
//! let chat = Engine::in_memory().conversation("lobby").open().await?;
//! let turn = run_turn_with_text(&chat, &agent, "Hello, I am Ada.").await?;
//! assert_eq!(turn.text, "Good morning, Ada.");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! With tools from functions, a sub-agent and a typed answer:
//!
//! ```
//! # use std::sync::Arc;
//! # use contexture::models::ScriptedModel;
//! # use contexture::{Engine, Format, ToolCall};
//! # use schemars::JsonSchema;
//! # use serde::Deserialize;
//! # #[derive(Deserialize, JsonSchema)]
//! # struct Order { number: String }
//! # #[derive(Deserialize, JsonSchema)]
//! # struct Reply { text: String }
//! # async fn find_order(order: Order, _: ToolCall) -> Result<String, String> { Ok(order.number) }
//! # async fn refund(order: Order, _: ToolCall) -> Result<String, String> { Ok(order.number) }
//! # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
//! # let model = Arc::new(ScriptedModel::with_texts(Format::Anthropic, [r#"{"text":"It was sent."}"#]));
//! # let clerk = Agent::new("clerk", model.clone(), Target::anthropic("claude-sonnet-4-5"));
//! # let chat = Engine::in_memory().conversation("desk").open().await?;
//! use contexture::runs::{SubAgent, TypedTool};
//! use contexture::tools::Policy;
//! use contexture::{Agent, Target, ToolBox, hint, role, run_turn_with_text};
//!
//! let mut tools = ToolBox::new(Policy::deny_all().allow("find_order").ask("refund"));
//! tools.add_typed(TypedTool::new("find_order", "Finds an order.", find_order).read_only())?;
//! tools.add_typed(TypedTool::new("refund", "Refunds an order.", refund))?;
//!
//! let agent = Agent::new("desk", model, Target::anthropic("claude-sonnet-4-5"))
//!     .with_instructions([role("You are a support agent."), hint("Be brief.")])?
//!     .with_tools(tools)?
//!     .with_sub_agent("ask_clerk", SubAgent::new(clerk, "Looks up orders."))?
//!     .with_output::<Reply>(); // the type of its last answer, checked and asked for again
//! let turn = run_turn_with_text(&chat, &agent, "Where is my order?").await?;
//! let reply: Reply = turn.output()?;
//! # assert_eq!(reply.text, "It was sent.");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The modules hold everything; the names below are those most programs need.
//!
//! # Features
//!
//! Only `sqlite` is on by default.
//!
//! * `http-models`: models over HTTP, as the module `models_http`. It brings an HTTP client and TLS (rustls).
//! * `offload`: copies of tool outputs as objects, in clouds too. Files and memory need no feature.
//! * `postgres`: the PostgreSQL store, as the module `store_postgres`; [`open`] takes `postgres://…` then.
//! * `sqlite`: the SQLite store, as the module `store_sqlite`; [`open`] takes paths then. It compiles SQLite: without it, or with
//!   a store of your own, `default-features = false` saves that.

// The examples of these pages are tests too.
#![cfg_attr(doctest, doc = include_str!("../../../README.md"))]
#![cfg_attr(doctest, doc = include_str!("../../../docs/conversations.md"))]
#![cfg_attr(doctest, doc = include_str!("../../../docs/layers.md"))]
#![cfg_attr(doctest, doc = include_str!("../../../docs/runs.md"))]

mod open;

/// Items, parts, fragments, ids: `contexture-ir`.
pub use contexture_ir as ir;

/// Models: windows, prices, capabilities: `contexture-catalogue`.
pub use contexture_catalogue as catalogue;

/// Fragments to text: `contexture-render`.
pub use contexture_render as render;

/// Counting tokens: `contexture-tokens`.
pub use contexture_tokens as tokens;

/// Provider and UI formats to items and back: `contexture-wire`.
pub use contexture_wire as wire;

/// Tools: registry, selection, namespaces, toolkits, policy, arguments: `contexture-tools`.
pub use contexture_tools as tools;

/// Agents' session logs: `contexture-sessions`.
pub use contexture_sessions as sessions;

/// The compiler: `contexture-compile`.
pub use contexture_compile as compile;

/// Models that answer payloads: `contexture-models`.
pub use contexture_models as models;

/// The store's contract and the in-memory store: `contexture-store`.
pub use contexture_store as store;

/// The SQLite store, with the feature `sqlite`: `contexture-store-sqlite`.
#[cfg(feature = "sqlite")]
pub use contexture_store_sqlite as store_sqlite;

/// The PostgreSQL store, with the feature `postgres`: `contexture-store-postgres`.
#[cfg(feature = "postgres")]
pub use contexture_store_postgres as store_postgres;

/// Copies of tool outputs outside the database; as objects with the feature `offload`: `contexture-offload`.
pub use contexture_offload as offload;

/// Owners of state and policy that add to every call, and those built in: `contexture-layers`.
pub use contexture_layers as layers;

/// Models over HTTP, with the feature `http-models`: `contexture-models-http`.
#[cfg(feature = "http-models")]
pub use contexture_models_http as models_http;

/// Conversations, drafts and model calls: `contexture-engine`.
pub use contexture_engine as engine;

/// Spans and metrics, sent to an OpenTelemetry collector: `contexture-otlp`.
#[cfg(feature = "otlp")]
pub use contexture_otlp as otlp;

/// What traces and metrics are told: `contexture-telemetry`.
pub use contexture_telemetry as telemetry;

/// Runs of agents over conversations: `contexture-runs`.
pub use contexture_runs as runs;

// The names that most programs need, by what they are for. Everything else is in the modules above: other stores in `store`,
// `store_sqlite` and `store_postgres`, models over HTTP in `models_http`, requests of stateless clients in `engine`.

// Engines, conversations and their databases.
pub use contexture_engine::{
    CompileOptions, CompiledCall, Conversation, Draft, Engine, EngineError,
};
pub use contexture_store::Store;
pub use open::{DatabaseAddress, OpenError, open, open_for_reading};

// Messages, and fragments that the model reads before them. More builders of fragments are in `ir`.
pub use contexture_ir::{
    Fragment, Item, Message, Owner, UiMessage, UiRole, assistant, assistant_text, fragment, hint,
    message, role, user,
};
pub use contexture_render::XmlRenderer;

// What a call is compiled for, from and to.
pub use contexture_catalogue::Catalogue;
pub use contexture_compile::{Compiler, Contribution, Report, Target};
pub use contexture_wire::{Format, lift, lower};

// Agents: layers, tools and runs.
pub use contexture_layers::{Layer, Layers};
pub use contexture_runs::{
    Agent, Run, RunBudget, StopCondition, ToolBox, ToolCall, ToolOutput, Turn, TypedTool, run_turn,
    run_turn_with_text,
};
