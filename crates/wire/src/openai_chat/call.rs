//! Calls, read.

use std::collections::{BTreeMap, BTreeSet};

use contexture_ir::{Error, Extension, Extra, Fields, FunctionCall, Item};
use serde_json::value::RawValue;

use super::content::{SLUG, extension, wired};
use super::custom;
use crate::carry::{hint, keep};
use crate::loss::Losses;
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
            Some("custom") => {
                let call_id = id.unwrap_or_else(|| format!("call_{index}_{at}"));
                let path = format!("messages[{index}].tool_calls[{at}]");
                let item = custom::read_call(&call_id, fields, &path, losses)?;
                self.customs.insert(call_id);
                return Ok(item);
            }
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
