//! Making the tools of a request ones that a provider accepts: each name once, and schemas in the form it takes.

use std::borrow::Cow;
use std::collections::BTreeMap;

use contexture_ir::{FunctionTool, Raw, ToolDefinition, Transcript};
use serde_json::{Map, Value, json};

use crate::model::format::Format;
use crate::model::format_extras::{ALONE, original_key};
use crate::model::loss::{Loss, LossKind, Losses};
use crate::model::repair_rules::{ToolRefusal, ToolRules};

/// The member of a request that lists its tools.
const LIST: &str = "tools";
/// Schemas nested deeper are left as they are.
const DEEPEST: usize = 64;
/// Words beside the properties of a schema that combine it with others.
const COMBINING: [&str; 3] = ["anyOf", "oneOf", "allOf"];
/// Words of a schema whose values are examples and not schemas.
const EXAMPLES: [&str; 4] = ["const", "default", "enum", "examples"];

/// The tools to offer, and what was done to them.
#[derive(Clone, Debug, PartialEq)]
pub struct RepairedTools<'t> {
    /// The tools, in order.
    pub tools: Cow<'t, [ToolDefinition]>,
    /// What was changed or left out; paths begin with `tools[index]`.
    pub losses: Vec<Loss>,
}

/// Makes a list of tools one that a target accepts; a legal list is returned as it is.
///
/// Equal tools become one. A schema of arguments that combines others is written as its properties, with the rest as
/// text in the tool's description.
///
/// # Errors
/// [`ToolRefusal`] for different tools of one name, and for more than `limit` tools.
pub fn repair_tools(
    target: Format,
    tools: &[ToolDefinition],
    limit: Option<usize>,
) -> Result<RepairedTools<'_>, ToolRefusal> {
    let rules = target.spec().tool_rules();
    let mut losses = Losses::default();
    let mut kept: Vec<Cow<'_, ToolDefinition>> = Vec::with_capacity(tools.len());
    let mut first_of: BTreeMap<Cow<'_, str>, (usize, &ToolDefinition)> = BTreeMap::new();
    for (index, tool) in tools.iter().enumerate() {
        let path = format!("tools[{index}]");
        if let Some(name) = called_name(tool) {
            match first_of.get(&name) {
                Some((_, other)) if are_equal(other, tool) => {
                    losses.push(path, LossKind::Tool, "the same tool again; offered once");
                    continue;
                }
                Some((first, _)) => {
                    return Err(ToolRefusal::DuplicateName {
                        name: name.into_owned(),
                        first: *first,
                        second: index,
                    });
                }
                None => drop(first_of.insert(name, (index, tool))),
            }
        }
        kept.push(mend_tool(tool, rules, &path, &mut losses));
    }
    if let Some(limit) = limit.filter(|limit| kept.len() > *limit) {
        let count = kept.len();
        return Err(ToolRefusal::TooMany { count, limit });
    }
    Ok(RepairedTools {
        tools: match losses.is_empty() {
            true => Cow::Borrowed(tools),
            false => kept.into_iter().map(Cow::into_owned).collect(),
        },
        losses: losses.into_vec(),
    })
}

/// Forgets in which of several equal shapes functions were written, so that each format writes them in its usual one.
///
/// Without it a tool that came without its `type`, say, is written without, which hosts of that shape take and others do not.
pub fn forget_tool_shapes(tools: &mut [ToolDefinition]) {
    for tool in tools {
        let ToolDefinition::Function(function) = tool else {
            continue;
        };
        for (format, fields) in function.extra.wire_fields_by_format() {
            let own = fields.iter().filter(|(key, _)| original_key(key).is_some());
            let own = own.map(|(key, value)| (key.to_owned(), value.clone()));
            function.extra.set_wire_fields(&format, own.collect());
        }
    }
}

/// Takes an empty list of tools, which some providers refuse, out of a request; returns what is lost.
pub fn remove_empty_tools(target: Format, request: &mut Transcript) -> Option<Loss> {
    let members = target.spec().members()?;
    if target.spec().tool_rules().empty_list || !request.tools.is_empty() {
        return None;
    }
    let mut own = request.extra.wire_fields(target.as_str());
    let empty = own.get(LIST).is_some_and(|tools| tools.get() == "[]");
    if !empty {
        return None;
    }
    own.remove(LIST);
    // A choice among no tools is refused as well.
    for choice in members.tool_choice {
        own.remove(choice);
    }
    own.remove(ALONE);
    request.extra.set_wire_fields(target.as_str(), own);
    Some(Loss {
        path: LIST.to_owned(),
        what: LossKind::Field,
        why: "an empty list of tools is refused".into(),
    })
}

/// The name by which the model calls a tool; `None` for a provider's tool that has none.
fn called_name(tool: &ToolDefinition) -> Option<Cow<'_, str>> {
    match tool {
        ToolDefinition::Function(tool) => Some(Cow::Borrowed(&tool.name)),
        ToolDefinition::Provider(tool) => {
            let fields = tool.raw.fields()?;
            let name = fields.get(&["name"])?;
            serde_json::from_str(name.get()).ok().map(Cow::Owned)
        }
    }
}

/// Whether two tools say the same, however their schemas are spaced.
fn are_equal(first: &ToolDefinition, second: &ToolDefinition) -> bool {
    let (ToolDefinition::Function(one), ToolDefinition::Function(other)) = (first, second) else {
        return first == second;
    };
    let value = |tool: &FunctionTool| -> Option<Value> {
        serde_json::from_str(tool.parameters.as_ref()?.get()).ok()
    };
    let bare = |tool: &FunctionTool| FunctionTool {
        parameters: None,
        ..tool.clone()
    };
    one == other
        || bare(one) == bare(other) && value(one).is_some_and(|own| Some(own) == value(other))
}

fn mend_tool<'t>(
    tool: &'t ToolDefinition,
    rules: ToolRules,
    path: &str,
    losses: &mut Losses,
) -> Cow<'t, ToolDefinition> {
    let ToolDefinition::Function(function) = tool else {
        return Cow::Borrowed(tool);
    };
    let Some(schema) = function.parameters.as_ref().map(Raw::get) else {
        return Cow::Borrowed(tool);
    };
    // Most schemas need nothing; looking for the words spares parsing them.
    let has = |word: &str| schema.contains(&format!("\"{word}\""));
    let combined = !rules.combined_schemas && COMBINING.into_iter().any(has);
    let arrays = !rules.open_arrays && has("array");
    if !combined && !arrays {
        return Cow::Borrowed(tool);
    }
    let Ok(Value::Object(mut fields)) = serde_json::from_str(schema) else {
        return Cow::Borrowed(tool);
    };
    let place = format!("{path}.parameters");
    let constraint = combined
        .then(|| split_combined_schema(&mut fields))
        .flatten();
    if constraint.is_some() {
        let why = "a combined schema is refused; its properties are optional ones, the rest is in the description";
        losses.push(place.as_str(), LossKind::Value, why);
    }
    let opened = arrays && close_arrays(&mut fields, DEEPEST);
    if opened {
        let why = "an array without `items` is refused; it gets items of any kind";
        losses.push(place, LossKind::Value, why);
    }
    if constraint.is_none() && !opened {
        return Cow::Borrowed(tool);
    }
    Cow::Owned(ToolDefinition::Function(with_schema(
        function,
        &Value::Object(fields),
        constraint.as_ref(),
    )))
}

/// The tool with another schema, and what the schema no longer says in its description.
fn with_schema(tool: &FunctionTool, schema: &Value, constraint: Option<&Value>) -> FunctionTool {
    let mut mended = tool.clone();
    if let Ok(schema) = Raw::from_value(schema) {
        mended.parameters = Some(schema);
    }
    if let Some(constraint) = constraint {
        let text = format!("The arguments must also match this JSON schema: {constraint}");
        mended.description = Some(match &tool.description {
            Some(own) if !own.is_empty() => format!("{own}\n\n{text}"),
            _ => text,
        });
    }
    mended
}

/// Takes what combines a schema with others out of its top, and adds their properties to its own as optional ones.
/// Returns what was taken out; `None` if nothing was.
fn split_combined_schema(fields: &mut Map<String, Value>) -> Option<Value> {
    let mut constraint = Map::new();
    for word in COMBINING {
        if let Some(branches) = fields.shift_remove(word) {
            constraint.insert(word.to_owned(), branches);
        }
    }
    let branches = constraint.values().filter_map(Value::as_array).flatten();
    let theirs = branches.filter_map(|branch| branch.get("properties")?.as_object());
    let theirs: Vec<(&String, &Value)> = theirs.flatten().collect();
    if !theirs.is_empty() {
        let own = fields.entry("properties").or_insert_with(|| json!({}));
        for (name, schema) in theirs {
            if let Some(own) = own.as_object_mut() {
                own.entry(name.as_str()).or_insert_with(|| schema.clone());
            }
        }
    }
    (!constraint.is_empty()).then_some(Value::Object(constraint))
}

/// Gives every array in a schema that does not say what its items are items of any kind; returns whether there was one.
fn close_arrays(fields: &mut Map<String, Value>, depth: usize) -> bool {
    let is_array = match fields.get("type") {
        Some(Value::String(kind)) => kind == "array",
        Some(Value::Array(kinds)) => kinds.iter().any(|kind| kind == "array"),
        _ => false,
    };
    let mut changed = false;
    if is_array && !fields.contains_key("items") {
        fields.insert("items".to_owned(), json!({}));
        changed = true;
    }
    let Some(depth) = depth.checked_sub(1) else {
        return changed;
    };
    let inner = fields.iter_mut();
    let inner = inner.filter(|(word, _)| !EXAMPLES.contains(&word.as_str()));
    for (_, value) in inner {
        match value {
            Value::Object(fields) => changed |= close_arrays(fields, depth),
            Value::Array(all) => {
                for fields in all.iter_mut().filter_map(Value::as_object_mut) {
                    changed |= close_arrays(fields, depth);
                }
            }
            _ => {}
        }
    }
    changed
}
