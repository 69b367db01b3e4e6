//! Which tools may be used, and whether several at once.

use contexture_ir::{Error, Fields, RequestOptions, ToolChoice};
use serde_json::value::RawValue;

use super::spec::FORMAT;
use super::spec::NAME_RULE;
use crate::model::json::ObjectWriter;
use crate::model::loss::{LossKind, Losses};

/// Reads `tool_choice` into `options.tool_choice` and `options.parallel_tool_calls`; a choice without a typed form is
/// stored as JSON.
pub(super) fn parse_tool_choice(
    value: &RawValue,
    options: &mut RequestOptions,
) -> Result<(), Error> {
    let mut fields = Fields::parse(value.get())?;
    let kind = fields.need_string(&["type"])?;
    let parallel = fields.take_as::<bool>(&["disable_parallel_tool_use"], "a boolean")?;
    let name = fields.take_string(&["name"])?;
    let choice = match (kind.as_str(), name) {
        ("auto", None) => Some(ToolChoice::Auto),
        ("any", None) => Some(ToolChoice::Required),
        ("none", None) if parallel.is_none() => Some(ToolChoice::None),
        ("tool", Some(name)) => Some(ToolChoice::Function { name }),
        _ => None,
    };
    options.parallel_tool_calls = parallel.map(|disabled| !disabled);
    options.tool_choice = Some(match choice {
        Some(choice) if fields.is_empty() => choice,
        _ => ToolChoice::Other {
            format: FORMAT.to_owned(),
            raw: value.into(),
        },
    });
    Ok(())
}

/// Writes `tool_choice`; `None` if it would equal the provider's default or no tools are offered.
pub(super) fn encode_tool_choice(
    options: &RequestOptions,
    offered: bool,
    losses: &mut Losses,
) -> Option<String> {
    let parallel = options.parallel_tool_calls;
    if !offered {
        if options.tool_choice.is_some() {
            let why = "a choice without tools is refused";
            losses.push("options.tool_choice", LossKind::Option, why);
        }
        return None;
    }
    let (kind, name) = match &options.tool_choice {
        Some(ToolChoice::Other { format, raw }) if format == FORMAT => {
            return Some(raw.get().to_owned());
        }
        Some(ToolChoice::Other { format, .. }) => {
            let why = format!("a choice of {format}; the model decides");
            losses.push("options.tool_choice", LossKind::Tool, why);
            ("auto", None)
        }
        // Without a choice only a ban on parallel calls must be said.
        None if parallel != Some(false) => return None,
        None | Some(ToolChoice::Auto) => ("auto", None),
        Some(ToolChoice::None) => return Some("{\"type\":\"none\"}".to_owned()),
        Some(ToolChoice::Required) => ("any", None),
        Some(ToolChoice::Function { name }) => {
            let name = NAME_RULE.sanitize_name(name, "options.tool_choice", losses);
            ("tool", Some(name))
        }
    };
    let mut object = ObjectWriter::new();
    object.string("type", kind);
    object.string_if_some("name", name);
    let disabled = parallel.map(|parallel| if parallel { "false" } else { "true" });
    object.raw_if_some("disable_parallel_tool_use", disabled);
    Some(object.finish())
}
