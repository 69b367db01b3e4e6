//! One line of `compile --jsonl`.

use std::collections::BTreeMap;
use std::sync::Arc;

use contexture::compile::BudgetCount;
use contexture::compile::Scratch;
use contexture::ir::{Cancel, FragmentRegistry, Raw, fragments_from_value};
use contexture::{Catalogue, Format, render};
use contexture_api::CompileDocument;
use contexture_api::operations::{Host, OperationError, compile_document};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;

use crate::commands::compile::compile_output::CompileOutput;
use crate::commands::compile::view;
use crate::options::compile_request::CompileSettings;
use crate::output::error_messages::not_json;
use crate::output::exit::Exit;
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
    count: Option<BudgetCount>,
    system: Option<Value>,
    renderer: Option<String>,
    #[serde(default)]
    params: BTreeMap<String, Raw>,
}

/// What tells a document of the API, which has its history in a member of its own, from a line with an `input`.
#[derive(Deserialize)]
struct Kind {
    messages: Option<IgnoredAny>,
}

/// Compiles what a line orders: a document of the API (`POST /api/v1/compile`), or an `input`. What earlier lines counted and wrote
/// is in the scratch memory.
///
/// # Errors
/// The line is not an order, its input is not what it says, or the compiler refuses.
pub(crate) fn compile_line(
    line: &str,
    defaults: &LineDefaults,
    scratch: &mut Scratch,
) -> Outcome<String> {
    let is_document = serde_json::from_str::<Kind>(line).is_ok_and(|kind| kind.messages.is_some());
    match is_document {
        true => compile_document_line(line, defaults, scratch),
        false => compile_input_line(line, defaults),
    }
}

/// Compiles a document of the API: with a plan in and a plan out, as a server does.
fn compile_document_line(
    line: &str,
    defaults: &LineDefaults,
    scratch: &mut Scratch,
) -> Outcome<String> {
    let mut asked: CompileDocument = serde_json::from_str(line)
        .map_err(|error| Failure::bad_input("bad_line", error.to_string()))?;
    let settings = &defaults.settings;
    asked.model = asked.model.or_else(|| settings.model.clone());
    asked.window = asked.window.or(settings.window);
    asked.reserve = asked.reserve.or(settings.reserve);
    asked.count = asked.count.or(settings.count);
    asked.to = asked.to.or_else(|| defaults.to.map(|to| to.to_string()));
    let (policies, catalogue) = (BTreeMap::new(), Catalogue::builtin());
    let host = Host {
        policies: &policies,
        skills: &[],
    };
    let compiled = compile_document(catalogue, &asked, &host, &Cancel::new(), scratch)?;
    serde_json::to_string(&compiled)
        .map_err(|error| Failure::new(Exit::Fault, "report", error.to_string()))
}

fn compile_input_line(line: &str, defaults: &LineDefaults) -> Outcome<String> {
    let line: CompileLine = serde_json::from_str(line).map_err(|error| {
        // Only what is JSON and not a line of ours gets the hint about its fields.
        if !error.is_data() {
            return not_json(&error);
        }
        let text = error.to_string();
        let what = text.split(" at line ").next().unwrap_or(&text);
        Failure::bad_input("bad_line", what)
            .with_hint("a line is {\"from\", \"input\", \"to\", \"model\", \"window\", \"reserve\", \"system\"}, or a document with \"messages\" as `POST /api/v1/compile` takes it")
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
        view::compile_document(&order, &opened.transcript, opened.written_in)?;
    let report = serde_json::to_string(&report)
        .map_err(|error| Failure::new(Exit::Fault, "report", error.to_string()))?;
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
    order.count = line.count.or(order.count);
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

impl From<OperationError> for Failure {
    fn from(error: OperationError) -> Self {
        match error {
            OperationError::Engine(error) => error.into(),
            OperationError::Message(detail) => Self::bad_input("bad_message", detail),
            member @ OperationError::Member { .. } => {
                Self::bad_input("bad_line", member.to_string())
            }
        }
    }
}
