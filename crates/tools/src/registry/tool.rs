//! A tool as the host registers it, and the groups that tools may belong to.
//!
//! Not here: checking a definition ([`crate::registry::definition`]), or who is registered ([`crate::registry`]).

use std::collections::BTreeSet;

use contexture_ir::{Extra, FunctionTool, ProviderTool, Raw, ToolDefinition};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::names::{Name, ToolId};

/// A tool: what the model is told, and what the host knows besides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tool {
    /// What the model is told.
    pub definition: ToolDefinition,
    /// What it is about: by these it is chosen and found. A tool without tags is kept by every choice by tags.
    pub tags: BTreeSet<String>,
    /// What a policy may go by beside the name: `destructive`, `network`, … The model does not see them.
    pub marks: BTreeSet<String>,
    /// The namespace or toolkit it belongs to; absent for a tool that is offered by itself.
    pub group: Option<Name>,
    /// Whether the order of its parameters says something.
    pub order: PropertyOrder,
}

/// Whether the order in which a schema lists its properties is kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PropertyOrder {
    /// Sorted by name, so that equal definitions give equal bytes whatever map the host keeps them in.
    #[default]
    Sorted,
    /// As written: models write arguments in this order, and some tools want, say, the reason before the
    /// action.
    AsWritten,
}

impl Tool {
    /// A flat tool without tags or marks.
    #[must_use]
    pub fn new(definition: ToolDefinition) -> Self {
        Self {
            definition,
            tags: BTreeSet::new(),
            marks: BTreeSet::new(),
            group: None,
            order: PropertyOrder::Sorted,
        }
    }

    /// A function with a name, a description and the JSON Schema of its arguments.
    #[must_use]
    pub fn function(name: &str, description: &str, parameters: Raw) -> Self {
        Self::new(ToolDefinition::Function(FunctionTool {
            name: name.to_owned(),
            description: Some(description.to_owned()),
            parameters: Some(parameters),
            ..FunctionTool::default()
        }))
    }

    /// The same tool with these tags as well.
    #[must_use]
    pub fn with_tags<T: Into<String>>(mut self, tags: impl IntoIterator<Item = T>) -> Self {
        self.tags.extend(tags.into_iter().map(Into::into));
        self
    }

    /// The same tool with these marks as well.
    #[must_use]
    pub fn with_marks<T: Into<String>>(mut self, marks: impl IntoIterator<Item = T>) -> Self {
        self.marks.extend(marks.into_iter().map(Into::into));
        self
    }

    /// The same tool within a group.
    #[must_use]
    pub fn in_group(mut self, group: impl Into<Name>) -> Self {
        self.group = Some(group.into());
        self
    }

    /// The same tool with its parameters in this order.
    #[must_use]
    pub fn with_property_order(mut self, order: PropertyOrder) -> Self {
        self.order = order;
        self
    }

    /// The tool's id.
    #[must_use]
    pub fn id(&self) -> ToolId {
        ToolId {
            group: self.group.clone(),
            name: self.definition.name().into(),
        }
    }

    /// The function, if it is one.
    #[must_use]
    pub(crate) fn as_function(&self) -> Option<&FunctionTool> {
        match &self.definition {
            ToolDefinition::Function(function) => Some(function),
            ToolDefinition::Provider(_) => None,
        }
    }
}

/// How the tools of a group reach the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GroupKind {
    /// As one tool, whose argument `action` says which of them is meant.
    Namespace,
    /// Not before they are asked for, by the tool `load_toolkit` or the provider's own search.
    Toolkit,
}

/// A group of tools.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolGroup {
    /// Name of the group.
    pub name: Name,
    /// What its tools are for; the model reads it.
    pub description: String,
    /// How its tools reach the model.
    pub kind: GroupKind,
}

impl ToolGroup {
    /// A group offered as one tool.
    #[must_use]
    pub fn namespace(name: impl Into<Name>, description: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            description: description.into(),
            kind: GroupKind::Namespace,
        }
    }

    /// A group loaded on demand.
    #[must_use]
    pub fn toolkit(name: impl Into<Name>, description: impl Into<String>) -> Self {
        Self {
            kind: GroupKind::Toolkit,
            ..Self::namespace(name, description)
        }
    }
}

/// A tool as stored. Nested, not flattened: raw JSON does not survive serde's buffering.
#[derive(Serialize, Deserialize)]
struct ToolRecord {
    definition: DefinitionRecord,
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    tags: BTreeSet<String>,
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    marks: BTreeSet<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    group: Option<Name>,
    #[serde(default)]
    order: PropertyOrder,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum DefinitionRecord {
    Function {
        name: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        description: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        parameters: Option<Raw>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        strict: Option<bool>,
        #[serde(default, skip_serializing_if = "Extra::is_empty")]
        extra: Extra,
    },
    Provider {
        format: String,
        kind: String,
        raw: Raw,
    },
}

impl Serialize for Tool {
    // Cloned into a record of its own: the wire form of `ToolDefinition` belongs to another crate.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let definition = match self.definition.clone() {
            ToolDefinition::Function(function) => DefinitionRecord::Function {
                name: function.name,
                description: function.description,
                parameters: function.parameters,
                strict: function.strict,
                extra: function.extra,
            },
            ToolDefinition::Provider(tool) => DefinitionRecord::Provider {
                format: tool.format,
                kind: tool.kind,
                raw: tool.raw,
            },
        };
        let record = ToolRecord {
            definition,
            tags: self.tags.clone(),
            marks: self.marks.clone(),
            group: self.group.clone(),
            order: self.order,
        };
        record.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Tool {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let record = ToolRecord::deserialize(deserializer)?;
        let definition = match record.definition {
            DefinitionRecord::Function {
                name,
                description,
                parameters,
                strict,
                extra,
            } => ToolDefinition::Function(FunctionTool {
                name,
                description,
                parameters,
                strict,
                extra,
            }),
            DefinitionRecord::Provider { format, kind, raw } => {
                ToolDefinition::Provider(ProviderTool { format, kind, raw })
            }
        };
        Ok(Self {
            definition,
            tags: record.tags,
            marks: record.marks,
            group: record.group,
            order: record.order,
        })
    }
}
