//! Calls, read.

use std::collections::{BTreeMap, BTreeSet};

use contexture_ir::{Error, Extension, Extra, Fields, FunctionCall, Item};
use serde_json::value::RawValue;

use super::content::{SLUG, extra_from_wire, wrap_extension};
use super::custom;
use crate::model::format_extras::{set_hint, to_extras};
use crate::model::loss::Losses;
use crate::openai::shared::{unexpected_value, with_key_prefix};

/// The prefix of the fields inside a call's `function`.
pub(super) const FUNCTION: &str = "function.";
/// The hint of calls and outputs of the older `function_call` shape.
pub(super) const LEGACY: &str = "~legacy";

/// The calls of a document so far, and how to read the next ones.
#[derive(Default)]
pub(super) struct CallParser {
    /// Whether a response is read, not a request.
    pub(super) is_response: bool,
    /// Names by call id, to see whether an output's `name` says anything new.
    pub(super) names_by_id: BTreeMap<String, String>,
    /// Ids of calls of custom tools, whose outputs are items of their own kind.
    pub(super) custom_call_ids: BTreeSet<String>,
    /// The id given to the last call of the older shape.
    pub(super) last_legacy_id: Option<String>,
}

impl CallParser {
    /// Takes the calls out of a message's fields, the older shape last.
    pub(super) fn parse_calls(
        &mut self,
        index: usize,
        fields: &mut Fields<'_>,
        losses: &mut Losses,
    ) -> Result<Vec<Item>, Error> {
        let mut calls = self.parse_tool_calls(index, fields, losses)?;
        // Some hosts repeat a call in the older shape; a message has its calls in one of the two.
        if calls.is_empty() {
            calls.extend(self.parse_legacy_call(index, fields)?);
        }
        Ok(calls)
    }

    fn parse_tool_calls(
        &mut self,
        index: usize,
        fields: &mut Fields<'_>,
        losses: &mut Losses,
    ) -> Result<Vec<Item>, Error> {
        // `null` and an empty list are no calls; they stay among the message's members.
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
            self.parse_tool_call(index, at, call.get(), losses)
                .map_err(|error| error.at_index(at).at_segment("tool_calls"))
        };
        calls.into_iter().enumerate().map(read).collect()
    }

    fn parse_tool_call(
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
        // Some hosts number the calls of an answer, as they would in a stream.
        let position = if self.is_response {
            fields.take_present(&["index"])?
        } else {
            None
        };
        match kind.as_deref() {
            Some("function") => {}
            None => set_hint(&mut wire, "~type", "absent"),
            Some("custom") => {
                // An id that is made up comes from the place, so that reading again gives the same
                // one.
                let call_id = id.unwrap_or_else(|| format!("call_{index}_{at}"));
                let path = format!("messages[{index}].tool_calls[{at}]");
                let item = custom::parse_custom_call(&call_id, fields, &path, losses)?;
                // Its output is read later and has to know that the call was of this kind.
                self.custom_call_ids.insert(call_id);
                return Ok(item);
            }
            Some(other) => {
                return Ok(Item::Extension(Extension {
                    kind: format!("{SLUG}{other}"),
                    id: None,
                    raw: wrap_extension(other, "call", text)?,
                }));
            }
        }
        if let Some(position) = position {
            wire.set("~index", position.into());
        }
        self.parse_function_call((index, at), id, fields, wire)
    }

    /// Reads the call of a function, whose fields of this format are `wire` so far.
    fn parse_function_call(
        &mut self,
        (index, at): (usize, usize),
        id: Option<String>,
        mut fields: Fields<'_>,
        mut wire: Extra,
    ) -> Result<Item, Error> {
        let function = fields.take_field(&["function"])?.ok_or(Error::Missing {
            path: String::new(),
            field: "function",
        })?;
        let (name, arguments, rest) = parse_function(function.get(), &mut wire)
            .map_err(|error| error.at_segment("function"))?;
        // Some hosts send no id; one is derived from the place, and the hint says so.
        let call_id = id.unwrap_or_else(|| {
            set_hint(&mut wire, "~id", "absent");
            format!("call_{index}_{at}")
        });
        self.names_by_id.insert(call_id.clone(), name.clone());
        wire.extend(with_key_prefix(FUNCTION, rest).collect());
        wire.extend(to_extras(fields.into_extra()));
        Ok(Item::FunctionCall(FunctionCall {
            extra: extra_from_wire(wire),
            ..FunctionCall::new(call_id, name, arguments)
        }))
    }

    fn parse_legacy_call(
        &mut self,
        index: usize,
        fields: &mut Fields<'_>,
    ) -> Result<Option<Item>, Error> {
        // Some hosts send the older shape empty with every answer. It calls nothing and stays among the message's
        // members.
        if fields.get(&["function_call"]).is_none_or(is_empty_function) {
            return Ok(None);
        }
        let Some(function) = fields.take_present(&["function_call"])? else {
            return Ok(None);
        };
        let mut wire = Extra::new();
        set_hint(&mut wire, LEGACY, "function_call");
        let (name, arguments, rest) = parse_function(function.get(), &mut wire)
            .map_err(|error| error.at_segment("function_call"))?;
        wire.extend(with_key_prefix(FUNCTION, rest).collect());
        // The older form has no ids, so the message's place gives one.
        let id = format!("call_{index}");
        self.last_legacy_id = Some(id.clone());
        self.names_by_id.insert(id.clone(), name.clone());
        Ok(Some(Item::FunctionCall(FunctionCall {
            extra: extra_from_wire(wire),
            ..FunctionCall::new(id, name, arguments)
        })))
    }
}

pub(super) fn is_empty_array(value: &RawValue) -> bool {
    // An array of length zero can be read from an empty list only.
    serde_json::from_str::<[(); 0]>(value.get()).is_ok()
}

/// Whether a function has neither a name nor arguments.
fn is_empty_function(function: &RawValue) -> bool {
    let is_blank = |value: &RawValue| matches!(value.get(), "null" | "\"\"");
    Fields::parse(function.get()).is_ok_and(|fields| {
        ["name", "arguments"]
            .into_iter()
            .all(|name| fields.get(&[name]).is_none_or(is_blank))
    })
}

/// Name and arguments; arguments that are not a string are kept as their text.
fn parse_function(text: &str, wire: &mut Extra) -> Result<(String, String, Extra), Error> {
    let mut fields = Fields::parse(text)?;
    let name = fields.need_string(&["name"])?;
    let arguments = match fields.take_present(&["arguments"])? {
        None => {
            set_hint(wire, "~arguments", "absent");
            String::new()
        }
        Some(value) if value.get().starts_with('"') => serde_json::from_str(value.get())
            .map_err(|_| unexpected_value("a string", value.get()).at_segment("arguments"))?,
        // Some hosts send the value itself where its text belongs.
        Some(value) => {
            set_hint(wire, "~arguments", "value");
            value.get().to_owned()
        }
    };
    Ok((name, arguments, fields.into_extra()))
}
