//! One line of `compile --jsonl`.

use contexture::ir::fragments_from_value;
use contexture::ir::{FragmentRegistry, Raw};
use contexture::{Format, render};
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;

use crate::commands::compile::compile_output::CompileOutput;
use crate::commands::compile::view::compile_document;
use crate::options::compile_request::CompileSettings;
use crate::output::error_messages::not_json;
use crate::output::failure::{Failure, Outcome};
use crate::session::{self, SessionHints};

/// What a line that does not say it means.
pub(crate) struct LineDefaults {
    pub(crate) settings: CompileSettings,
    pub(crate) from: Option<String>,
    pub(crate) to: Option<Format>,
}

/// A line. Unknown fields are refused: a misspelt `window` must not be the model's own.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CompileLine {
    from: Option<String>,
    input: Raw,
    to: Option<String>,
    model: Option<String>,
    window: Option<u64>,
    reserve: Option<u64>,
    system: Option<Value>,
    renderer: Option<String>,
    #[serde(default)]
    params: BTreeMap<String, Raw>,
}

/// Compiles what a line orders.
///
/// # Errors
/// The line is not an order, its input is not what it says, or the compiler refuses.
pub(crate) fn compile_line(line: &str, defaults: &LineDefaults) -> Outcome<String> {
    let line: CompileLine = serde_json::from_str(line).map_err(|error| {
        // Only what is JSON and not a line of ours gets the hint about its fields.
        if !error.is_data() {
            return not_json(&error);
        }
        let text = error.to_string();
        let what = text.split(" at line ").next().unwrap_or(&text);
        Failure::bad_input("bad_line", what)
            .with_hint("a line is {\"from\", \"input\", \"to\", \"model\", \"window\", \"reserve\", \"system\"}")
    })?;
    let order = line_settings(&line, defaults)?;
    let from = line.from.as_deref().or(defaults.from.as_deref());
    // A log of several lines comes as a string; no document is one.
    let log = line.input.as_string();
    let input = log.as_deref().unwrap_or(line.input.get());
    let opened = session::parse_session(
        input,
        &SessionHints {
            from,
            ..SessionHints::default()
        },
    )?;
    let order = order.for_document(&opened.transcript, opened.written_in);
    let CompileOutput { payload, report } =
        compile_document(&order, &opened.transcript, opened.written_in)?;
    let report = serde_json::to_string(&report).map_err(|error| {
        Failure::new(
            crate::output::exit::Exit::Fault,
            "report",
            error.to_string(),
        )
    })?;
    // Put together as text: parsing the payload again could change its numbers or the order of its
    // keys.
    Ok(format!("{{\"payload\":{payload},\"report\":{report}}}"))
}

/// The format that the line names, else that of the options.
fn line_format(line: &CompileLine, defaults: &LineDefaults) -> Outcome<Format> {
    match (&line.to, defaults.to) {
        (Some(name), _) => name
            .parse()
            .map_err(|error: contexture::wire::UnknownFormat| {
                Failure::bad_input("unknown_format", error.to_string())
            }),
        (None, Some(format)) => Ok(format),
        (None, None) => Err(Failure::bad_input("bad_line", "missing field `to`")),
    }
}

fn line_settings(line: &CompileLine, defaults: &LineDefaults) -> Outcome<CompileSettings> {
    let mut order = defaults.settings.clone();
    // What the line says goes before the options.
    order.to = line_format(line, defaults)?;
    order.model = line.model.clone().or(order.model);
    order.window = line.window.or(order.window);
    order.reserve = line.reserve.or(order.reserve);
    for (name, value) in &line.params {
        // A line's value replaces the option's; twice the same name would reach the request.
        order.params.retain(|(known, _)| known != name);
        order.params.push((name.clone(), value.clone()));
    }
    if let Some(system) = &line.system {
        order.system = fragments_from_value(system.clone(), &FragmentRegistry::new())
            .map_err(|error| Failure::from(error).with_context("system"))?;
    }
    if let Some(name) = &line.renderer {
        let format: render::Format = name.parse().map_err(|error: render::UnknownFormat| {
            Failure::bad_input("unknown_format", error.to_string())
        })?;
        order.renderer = Arc::from(format.renderer(render::Grouping::Off));
    }
    Ok(order)
}
