//! Names of the tools that an agent's model is offered: one scope for the tool box, the target, sub-agents and layers.
//!
//! Providers refuse a request with two tools of one name, and a call of such a name would have two meanings. What an agent
//! brings is checked when it is built, what the layers of a conversation bring when a run of it begins.

use std::fmt;

use contexture_ir::ToolDefinition;
use contexture_layers::{LayerId, Layers, OfferedTo};
use contexture_wire::Format;

use super::config::Agent;

/// Why an agent cannot be built, or cannot run over a conversation.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AgentError {
    /// Two tools would have one name.
    #[error("{first} and {second} both offer a tool named {name:?}: rename one")]
    DuplicateTool {
        /// Name of both tools.
        name: String,
        /// Where the first comes from.
        first: ToolOrigin,
        /// Where the second comes from.
        second: ToolOrigin,
    },
    /// The run belongs to another agent.
    #[error(
        "the run belongs to agent {expected:?}, not to {found:?}: resume it with that agent, or say that it was renamed"
    )]
    OtherAgent {
        /// Name of the agent that began the run.
        expected: String,
        /// Name of the agent that was given.
        found: String,
    },
    /// An agent's instructions contain a message.
    #[error(
        "fragment `{name}` carries a message: an agent's instructions are data, messages belong to the conversation"
    )]
    NotInstructions {
        /// The fragment's name.
        name: String,
    },
    /// The target does not take the name of a sub-agent.
    #[error(
        "{format} takes no tool named {name:?}: name the sub-agent with letters, digits and `_`"
    )]
    BadName {
        /// Name of the sub-agent.
        name: String,
        /// Format of the target.
        format: Format,
    },
}

/// Where a tool comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ToolOrigin {
    /// The tools of the agent's target.
    Target,
    /// The agent's tool box.
    ToolBox,
    /// A sub-agent of the agent.
    SubAgent,
    /// A layer of the conversation.
    Layer(LayerId),
}

impl fmt::Display for ToolOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Target => f.write_str("the target"),
            Self::ToolBox => f.write_str("the tool box"),
            Self::SubAgent => f.write_str("a sub-agent"),
            Self::Layer(id) => write!(f, "the layer {id}"),
        }
    }
}

impl Agent {
    /// Where a tool of this name comes from, if the agent has one.
    fn tool_origin(&self, name: &str) -> Option<ToolOrigin> {
        if self.target_tools().any(|known| known == name) {
            return Some(ToolOrigin::Target);
        }
        if self.tools.registry().offers_name(name) {
            return Some(ToolOrigin::ToolBox);
        }
        self.agents
            .contains_key(name)
            .then_some(ToolOrigin::SubAgent)
    }

    fn target_tools(&self) -> impl Iterator<Item = &str> {
        self.target
            .tool_definitions()
            .iter()
            .map(ToolDefinition::name)
    }

    /// Checks the name of a sub-agent that is about to be added.
    pub(super) fn check_sub_agent_name(&self, name: &str) -> Result<(), AgentError> {
        if let Some(first) = self.tool_origin(name) {
            return Err(AgentError::DuplicateTool {
                name: name.to_owned(),
                first,
                second: ToolOrigin::SubAgent,
            });
        }
        // An adapter writes its own requests; which names it takes is not known.
        let rule = match self.target.adapter() {
            Some(_) => None,
            None => self.target.format().spec().name_rule(),
        };
        if rule.is_some_and(|rule| !rule.accepts(name)) {
            return Err(AgentError::BadName {
                name: name.to_owned(),
                format: self.target.format(),
            });
        }
        Ok(())
    }

    /// Checks the tool box, which was set last, against the target and the sub-agents.
    pub(super) fn check_toolbox_names(&self) -> Result<(), AgentError> {
        let registry = self.tools.registry();
        let target = self.target_tools().map(|name| (name, ToolOrigin::Target));
        let agents = self.agents.keys();
        let agents = agents.map(|name| (name.as_str(), ToolOrigin::SubAgent));
        let mut taken = target.chain(agents);
        match taken.find(|(name, _)| registry.offers_name(name)) {
            None => Ok(()),
            Some((name, first)) => Err(AgentError::DuplicateTool {
                name: name.to_owned(),
                first,
                second: ToolOrigin::ToolBox,
            }),
        }
    }

    /// Checks the tools that layers offer to models against those of the agent.
    pub(crate) fn check_layer_names(&self, layers: &Layers) -> Result<(), AgentError> {
        let offered = layers
            .functions()
            .filter(|(_, function)| function.offered_to == OfferedTo::Model);
        for (layer, function) in offered {
            if let Some(first) = self.tool_origin(&function.tool) {
                return Err(AgentError::DuplicateTool {
                    name: function.tool.clone(),
                    first,
                    second: ToolOrigin::Layer(layer.clone()),
                });
            }
        }
        Ok(())
    }
}
