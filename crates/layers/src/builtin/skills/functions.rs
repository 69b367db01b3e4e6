//! The functions of the layer: two that models call, two for programs.

use contexture_ir::Raw;
use serde_json::json;

use crate::builtin::function_args::schema_literal;
use crate::contract::{FunctionSpec, LayerId, OfferedTo};

/// Name of the tool that returns a skill's instructions.
pub(super) const LOAD: &str = "load_skill";
/// Name of the tool that returns a part of a skill's file.
pub(super) const READ: &str = "read_skill_file";
/// Lines of a file in one answer: the default, and the maximum.
pub(super) const LINES: u64 = 500;

pub(super) fn skill_functions(layer: &LayerId) -> Vec<FunctionSpec> {
    let name = json!({"type": "string", "description": "The skill's name, as listed."});
    let arguments = json!({"type": "string", "description": "What the skill is to be applied to, if anything."});
    let named = schema_literal(&json!({
        "type": "object",
        "additionalProperties": false,
        "required": ["name"],
        "properties": {"name": name, "arguments": arguments},
    }));
    let one = schema_literal(&json!({
        "type": "object",
        "additionalProperties": false,
        "required": ["name"],
        "properties": {"name": name},
    }));
    let file = schema_literal(&json!({
        "type": "object",
        "additionalProperties": false,
        "required": ["name", "path"],
        "properties": {
            "name": name,
            "path": {"type": "string", "description": "The file, as the instructions name it: references/guide.md."},
            "line": {"type": "integer", "minimum": 1, "description": "The first line. Default 1."},
            "column": {"type": "integer", "minimum": 0, "description": "Characters of that line to leave out. Default 0."},
            "lines": {"type": "integer", "minimum": 1, "maximum": LINES, "description": "How many lines."},
        },
    }));
    let spec = |name, description: &str, input: &Raw| {
        FunctionSpec::new(layer, name, description, input.clone())
    };
    let by_program = |mut spec: FunctionSpec| {
        spec.offered_to = OfferedTo::Host;
        spec
    };
    vec![
        spec("load", "Gives the instructions of a skill.", &named).with_tool_name(LOAD),
        spec(
            "read_file",
            "Gives a part of a text file that belongs to a skill. `next` says where to go on.",
            &file,
        )
        .with_tool_name(READ),
        by_program(spec(
            "activate",
            "Puts a skill's instructions before the history.",
            &named,
        )),
        by_program(spec("deactivate", "Makes a skill inactive.", &one)),
    ]
}
