//! Calls, read.

use std::collections::{BTreeMap, BTreeSet};

use contexture_ir::{Error, Extension, Extra, Fields, FunctionCall, Item, Part, Raw, quote};
use serde_json::value::RawValue;

use super::content::{SLUG, extension, wired};
use crate::carry::{hint, keep};
use crate::json::Object;
use crate::loss::{LossKind, Losses};
use crate::openai::{prefixed, unexpected};

/// The prefix of the fields inside a call's `function`.
pub(super) const FUNCTION: &str = "function.";
/// The hint of calls and outputs of the older `function_call` shape.
pub(super) const LEGACY: &str = "~legacy";

/// The calls of a document so far, and how to read the next ones.
#[derive(Default)]
pub(super) struct Calls {
    /// Whether a response is read, not a request.
    pub(super) answer: bool,
    /// Names by call id, to see whether an output's `name` says anything new.
    pub(super) names: BTreeMap<String, String>,
    /// Ids of calls of custom tools, whose outputs are items of their own kind.
    pub(super) customs: BTreeSet<String>,
    /// The id given to the last call of the older shape.
    pub(super) legacy: Option<String>,
}

impl Calls {
    /// Takes the calls out of a message's fields, the older shape last.
    pub(super) fn read(
        &mut self,
        index: usize,
        fields: &mut Fields<'_>,
        losses: &mut Losses,
    ) -> Result<Vec<Item>, Error> {
        let mut calls = self.current(index, fields, losses)?;
        calls.extend(self.older(index, fields)?);
        Ok(calls)
    }

    fn current(
        &mut self,
        index: usize,
        fields: &mut Fields<'_>,
        losses: &mut Losses,
    ) -> Result<Vec<Item>, Error> {
        if fields
            .get(&["tool_calls"])
            .is_none_or(|v| v.get() == "null" || is_empty_array(v))
        {
            return Ok(Vec::new());
        }
        let calls: Vec<&RawValue> = fields
            .take_as(&["tool_calls"], "an array of calls")?
            .unwrap_or_default();
        let read = |(at, call): (usize, &RawValue)| {
            self.call(index, at, call.get(), losses)
                .map_err(|error| error.at_index(at).at("tool_calls"))
        };
        calls.into_iter().enumerate().map(read).collect()
    }

    fn call(
        &mut self,
        index: usize,
        at: usize,
        text: &str,
        losses: &mut Losses,
    ) -> Result<Item, Error> {
        let mut fields = Fields::parse(text)?;
        let mut wire = Extra::new();
        let kind = fields.take_string(&["type"])?;
        let id = fields.take_string(&["id"])?;
        let position = if self.answer {
            fields.take_present(&["index"])?
        } else {
            None
        };
        match kind.as_deref() {
            Some("function") => {}
            None => hint(&mut wire, "~type", "absent"),
            Some("custom") => return self.custom(index, at, id, fields, losses),
            Some(other) => {
                return Ok(Item::Extension(Extension {
                    kind: format!("{SLUG}{other}"),
                    id: None,
                    raw: extension(other, "call", text)?,
                }));
            }
        }
        if let Some(position) = position {
            wire.set("~index", position.into());
        }
        let function = fields.take(&["function"])?.ok_or(Error::Missing {
            path: String::new(),
            field: "function",
        })?;
        let (name, arguments, rest) =
            read_function(function.get(), &mut wire).map_err(|error| error.at("function"))?;
        let call_id = id.unwrap_or_else(|| {
            hint(&mut wire, "~id", "absent");
            format!("call_{index}_{at}")
        });
        self.names.insert(call_id.clone(), name.clone());
        wire.extend(prefixed(FUNCTION, rest).collect());
        wire.extend(keep(fields.rest()));
        Ok(Item::FunctionCall(FunctionCall {
            extra: wired(wire),
            ..FunctionCall::new(call_id, name, arguments)
        }))
    }

    /// A call of a custom tool, in the shape Responses has for it.
    fn custom(
        &mut self,
        index: usize,
        at: usize,
        id: Option<String>,
        mut fields: Fields<'_>,
        losses: &mut Losses,
    ) -> Result<Item, Error> {
        let custom = fields.take(&["custom"])?.ok_or(Error::Missing {
            path: String::new(),
            field: "custom",
        })?;
        let read = |text| {
            let mut inner = Fields::parse(text)?;
            let name = inner.need_string(&["name"])?;
            Ok((name, inner.need_string(&["input"])?, inner.is_empty()))
        };
        let (name, input, whole) = read(custom.get()).map_err(|error: Error| error.at("custom"))?;
        if !whole || !fields.is_empty() {
            let path = format!("messages[{index}].tool_calls[{at}]");
            losses.push(
                path,
                LossKind::Field,
                "unknown fields of a custom tool's call",
            );
        }
        let call_id = id.unwrap_or_else(|| format!("call_{index}_{at}"));
        let mut object = Object::new();
        object
            .string("type", "custom_tool_call")
            .string("call_id", &call_id);
        object.string("name", &name).string("input", &input);
        self.customs.insert(call_id);
        Ok(Item::Extension(Extension {
            kind: "custom_tool_call".to_owned(),
            id: None,
            raw: Raw::parse(object.finish())?,
        }))
    }

    fn older(&mut self, index: usize, fields: &mut Fields<'_>) -> Result<Option<Item>, Error> {
        let Some(function) = fields.take_present(&["function_call"])? else {
            return Ok(None);
        };
        let mut wire = Extra::new();
        hint(&mut wire, LEGACY, "function_call");
        let (name, arguments, rest) =
            read_function(function.get(), &mut wire).map_err(|error| error.at("function_call"))?;
        wire.extend(prefixed(FUNCTION, rest).collect());
        let id = format!("call_{index}");
        self.legacy = Some(id.clone());
        self.names.insert(id.clone(), name.clone());
        Ok(Some(Item::FunctionCall(FunctionCall {
            extra: wired(wire),
            ..FunctionCall::new(id, name, arguments)
        })))
    }
}

/// The output of a custom tool, in the shape Responses has for it.
pub(super) fn custom_output(call_id: &str, parts: &[Part]) -> Result<Item, Error> {
    let texts: Vec<&str> = parts.iter().filter_map(Part::as_text).collect();
    let mut object = Object::new();
    object
        .string("type", "custom_tool_call_output")
        .string("call_id", call_id);
    object.raw("output", &quote(&texts.join("\n")));
    Ok(Item::Extension(Extension {
        kind: "custom_tool_call_output".to_owned(),
        id: None,
        raw: Raw::parse(object.finish())?,
    }))
}

pub(super) fn is_empty_array(value: &RawValue) -> bool {
    serde_json::from_str::<[(); 0]>(value.get()).is_ok()
}

/// Name and arguments; arguments that are not a string are kept as their text.
fn read_function(text: &str, wire: &mut Extra) -> Result<(String, String, Extra), Error> {
    let mut fields = Fields::parse(text)?;
    let name = fields.need_string(&["name"])?;
    let arguments = match fields.take_present(&["arguments"])? {
        None => {
            hint(wire, "~arguments", "absent");
            String::new()
        }
        Some(value) if value.get().starts_with('"') => serde_json::from_str(value.get())
            .map_err(|_| unexpected("a string", value.get()).at("arguments"))?,
        Some(value) => {
            hint(wire, "~arguments", "value");
            value.get().to_owned()
        }
    };
    Ok((name, arguments, fields.rest()))
}
