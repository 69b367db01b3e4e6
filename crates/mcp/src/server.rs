//! The protocol's requests, answered for a caller.
//!
//! Work is done on threads of its own ([`Workers`]), so that a long compile holds up nobody; a call that is called off is
//! answered at once, and what of it had begun to be stored is stored whole.

use std::sync::Arc;

use contexture::Engine;
use contexture::compile::Cancel;
use http::request::Parts;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, Implementation, ListResourceTemplatesResult,
    ListResourcesResult, ListToolsResult, PaginatedRequestParams, ReadResourceRequestParams,
    ReadResourceResponse, ServerCapabilities, ServerConfig, Tool,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer, ServerHandler};
use tokio::sync::oneshot;

use crate::caller::{Access, Caller};
use crate::resources;
use crate::tool::ToolEntry;
use crate::tool_context::ToolContext;
use crate::tools;
use crate::workers::Workers;

/// Instructions that clients give their models about this server.
const INSTRUCTIONS: &str = "Contexture keeps conversations of agents: every message, tool call and tool output. \
    Find what was said with search_conversations, read it with read_conversation and read_link (context://vfs/... \
    links stand for outputs that were shortened), keep what later sessions need with the memory tools, and watch the \
    context window with check_budget.";

/// Function that returns the caller of an HTTP request; `None` if the caller is unknown.
pub(crate) type CallerResolver = Arc<dyn Fn(&Parts) -> Option<Caller> + Send + Sync>;

/// The callers for whom requests are answered.
#[derive(Clone)]
pub(crate) enum Callers {
    /// One caller for all requests: the program at the other end of the pipe.
    Fixed(Caller),
    /// A caller of its own for each request.
    PerRequest(CallerResolver),
}

/// The handler of MCP requests for an engine.
#[derive(Clone)]
pub(crate) struct McpServer {
    engine: Engine,
    callers: Callers,
    workers: Workers,
}

impl McpServer {
    pub(crate) const fn new(engine: Engine, callers: Callers, workers: Workers) -> Self {
        Self {
            engine,
            callers,
            workers,
        }
    }

    /// Returns the caller of a request, or an error if the caller is unknown.
    fn identify_caller(&self, context: &RequestContext<RoleServer>) -> Result<Caller, ErrorData> {
        let caller = match &self.callers {
            Callers::Fixed(caller) => Some(caller.clone()),
            // The HTTP service puts the request's head among the extensions; without it nobody is
            // known.
            Callers::PerRequest(whose) => context
                .extensions
                .get::<Parts>()
                .and_then(|parts| whose(parts)),
        };
        caller.ok_or_else(|| ErrorData::invalid_request("it is not known who asks", None))
    }

    fn tool_context(&self, caller: Caller) -> ToolContext {
        ToolContext {
            engine: self.engine.clone(),
            owner: caller.owner,
            cancel: Cancel::new(),
        }
    }

    /// Hands the work of a call to the workers, and waits until it ends or the request is cancelled.
    async fn run_cancellable<T: Send + 'static>(
        &self,
        call: ToolContext,
        context: &RequestContext<RoleServer>,
        work: impl Future<Output = T> + Send + 'static,
    ) -> Result<T, ErrorData> {
        // Whoever stops waiting, in whatever way, cancels the work. What of it has begun to be stored goes to its end.
        let _waiting = call.cancel.cancel_on_drop();
        let (sender, receiver) = oneshot::channel();
        self.workers.spawn(call.owner, async move {
            // Nobody may be waiting any more.
            let _ = sender.send(work.await);
        });
        tokio::select! {
            // Cancelled and done at once counts as cancelled: nobody waits for the answer.
            biased;
            () = context.ct.cancelled() => {
                Err(ErrorData::internal_error("the request was cancelled", None))
            }
            // What a panic says may name what nobody shall see.
            done = receiver => done.map_err(|_| ErrorData::internal_error("the request failed", None)),
        }
    }
}

/// Whether a caller is offered a tool and may call it.
fn can_call(caller: &Caller, entry: &ToolEntry) -> bool {
    let is_allowed = caller.access == Access::Write || entry.required_access == Access::Read;
    let selected = caller.tools.as_ref();
    is_allowed && selected.is_none_or(|tools| tools.has_tool(&entry.definition.name))
}

impl ServerHandler for McpServer {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_tools()
            .enable_resources()
            .build();
        let about =
            Implementation::new("contexture", env!("CARGO_PKG_VERSION")).with_title("Contexture");
        ServerConfig::new(capabilities)
            .with_server_info(about)
            .with_instructions(INSTRUCTIONS)
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        tools::find_tool(name).map(|entry| entry.definition.clone())
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let caller = self.identify_caller(&context)?;
        let listed = tools::ALL.iter().filter(|entry| can_call(&caller, entry));
        let listed = listed.map(|entry| entry.definition.clone()).collect();
        Ok(ListToolsResult::with_all_items(listed))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let caller = self.identify_caller(&context)?;
        // Not listing a tool forbids nothing: a client may call it all the same. To who may not, it
        // is unknown.
        let entry = tools::find_tool(&request.name).filter(|entry| can_call(&caller, entry));
        let entry = entry.ok_or_else(|| {
            // The name comes from outside and may be of any length.
            let name: String = request.name.chars().take(80).collect();
            ErrorData::invalid_params(format!("unknown tool: {name}"), None)
        })?;
        let tool_context = self.tool_context(caller);
        let arguments = request.arguments.unwrap_or_default();
        let answer = (entry.handler)(tool_context.clone(), arguments);
        let answer = self.run_cancellable(tool_context, &context, answer).await?;
        Ok(answer
            // A tool's own failure is an answer, so that the model reads it and can do better.
            // Errors of the protocol are for the client.
            .unwrap_or_else(|error| error.into_result())
            .into())
    }

    async fn list_resources(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let tool_context = self.tool_context(self.identify_caller(&context)?);
        let cursor = request.and_then(|request| request.cursor);
        self.run_cancellable(tool_context.clone(), &context, async move {
            resources::list_resources(&tool_context, cursor.as_deref()).await
        })
        .await?
    }

    async fn list_resource_templates(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        Ok(resources::resource_templates())
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let tool_context = self.tool_context(self.identify_caller(&context)?);
        let read = self.run_cancellable(tool_context.clone(), &context, async move {
            resources::read_resource(&tool_context, &request.uri).await
        });
        // First whether it was cancelled or panicked, then what the resource says.
        Ok(read.await??.into())
    }
}
