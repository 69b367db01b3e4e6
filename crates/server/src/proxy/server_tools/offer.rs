//! The offer: when a request may offer a server tool.

use contexture::ir::{Item, ResponseFormat, ToolChoice};
use contexture::{CompiledCall, Format, lift};

use crate::proxy::capture::ingest::ParsedRequest;
use crate::proxy::server_tools::tools::ServerTool;

/// Whether a request allows a server tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OfferPermission {
    /// A model may call it.
    Free,
    /// Only if the history has calls of it: the client chooses the tools, or wants JSON, which joined texts of several rounds
    /// are not, or may continue from a round that is not the last.
    IfInHistory,
    /// It would be taken for a tool of the client, or the answers could not be merged.
    Never,
}

impl OfferPermission {
    /// Returns whether a request allows this tool.
    pub(crate) fn for_tool(tool: &ServerTool, format: Format, request: &ParsedRequest) -> Self {
        let mut theirs = request.transcript.tools.iter();
        let has_it = theirs.any(|one| one.name() == tool.name());
        let member = |name: &str| request.body_field(name);
        let Some(edits) = format.spec().proxy().filter(|_| !has_it) else {
            return Self::Never;
        };
        if !edits.is_single_answer(&member) {
            return Self::Never;
        }
        let options = &request.transcript.options;
        let chooses = !matches!(options.tool_choice, None | Some(ToolChoice::Auto));
        let wants_json = !matches!(options.response_format, None | Some(ResponseFormat::Text));
        match chooses || wants_json || edits.is_continued_by_first_id(&member) {
            true => Self::IfInHistory,
            false => Self::Free,
        }
    }

    /// Whether a compiled call should offer the tool: it omits content that the tool reads, or its history has calls of it,
    /// which a provider may refuse without the definition.
    pub(crate) fn should_offer(self, tool: &ServerTool, call: &CompiledCall) -> bool {
        match self {
            // Previews and placeholders name the link by which the tool reads the rest.
            Self::Free => !call.report.rewritten.is_empty() || has_calls_of(tool, call),
            Self::IfInHistory => has_calls_of(tool, call),
            Self::Never => false,
        }
    }
}

/// Whether the history of a call has calls of a tool.
fn has_calls_of(tool: &ServerTool, call: &CompiledCall) -> bool {
    let is_call =
        |item: &Item| matches!(item, Item::FunctionCall(call) if call.name == tool.name());
    let name = format!("\"{}\"", tool.name());
    // Parsing the payload is expensive: done only where the name occurs in it at all.
    call.payload
        .json_chunks()
        .any(|piece| piece.contains(&name))
        && lift(call.format(), &call.payload.to_json())
            .is_ok_and(|lifted| lifted.transcript.items.iter().any(is_call))
}
