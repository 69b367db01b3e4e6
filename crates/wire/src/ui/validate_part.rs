//! One part of a UI message against its table: known fields in order, the rest named and dropped.
//!
//! Values are looked at, not parsed: what a field holds below the checked level stays text.

use std::borrow::Cow;

use contexture_ir::{Fields, Raw, replace_lone_surrogates};
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::value::RawValue;

use super::schema::{self, ApprovalAnswer, ExpectedValue, FieldTable, PartKind, ToolState};

/// What is wrong, and where below the value that was checked.
#[derive(Debug)]
pub(super) struct Problem {
    pub(super) path: String,
    pub(super) what: String,
}

impl Problem {
    pub(super) fn new(what: impl Into<String>) -> Self {
        Self {
            path: String::new(),
            what: what.into(),
        }
    }

    pub(super) fn wrong_value(what: &str, found: &str) -> Self {
        let mut short: String = found.chars().take(40).collect();
        if short.len() < found.len() {
            short.push('…');
        }
        Self::new(format!("expected {what}, found {short}"))
    }

    /// The same problem, seen from one level further out.
    pub(super) fn at_segment(mut self, segment: &str) -> Self {
        let dot = !self.path.is_empty() && !self.path.starts_with('[');
        self.path = format!("{segment}{}{}", if dot { "." } else { "" }, self.path);
        self
    }

    pub(super) fn at_index(self, index: usize) -> Self {
        self.at_segment(&format!("[{index}]"))
    }
}

/// A value as it came, or without the keys that were dropped below it.
#[derive(Clone, Debug)]
pub(super) enum CheckedValue<'a> {
    Original(&'a RawValue),
    Rewritten(Raw),
}

impl CheckedValue<'_> {
    pub(super) fn get(&self) -> &str {
        match self {
            Self::Original(raw) => raw.get(),
            Self::Rewritten(raw) => raw.get(),
        }
    }

    pub(super) fn to_raw(&self) -> Raw {
        match self {
            Self::Original(raw) => Raw::from(*raw),
            Self::Rewritten(raw) => raw.clone(),
        }
    }
}

/// Fields that passed, in the table's order.
#[derive(Debug, Default)]
pub(super) struct CheckedMembers<'a> {
    pub(super) list: Vec<(&'static str, CheckedValue<'a>)>,
    /// Unknown keys that were dropped, as paths.
    pub(super) dropped: Vec<String>,
    /// Whether they came in the table's order already, none dropped.
    pub(super) in_order: bool,
}

/// A part that passed.
#[derive(Debug)]
pub(super) struct CheckedPart<'a> {
    pub(super) kind: PartKind,
    pub(super) type_name: Cow<'a, str>,
    pub(super) members: CheckedMembers<'a>,
}

impl<'a> CheckedPart<'a> {
    /// A field's value.
    pub(super) fn get(&self, name: &str) -> Option<&CheckedValue<'a>> {
        let found = self.members.list.iter().find(|(key, _)| *key == name);
        found.map(|(_, value)| value)
    }

    /// The part as JSON, keys in the table's order.
    pub(super) fn to_raw(&self) -> Raw {
        Raw::from_value(&OrderedObject(Some(&self.type_name), &self.members.list))
            .unwrap_or_else(|_| Raw::null())
    }
}

/// An object written in the order given.
struct OrderedObject<'o, 'a>(Option<&'o str>, &'o [(&'static str, CheckedValue<'a>)]);

impl Serialize for OrderedObject<'_, '_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        if let Some(type_name) = self.0 {
            map.serialize_entry("type", type_name)?;
        }
        for (key, value) in self.1 {
            match value {
                CheckedValue::Original(raw) => map.serialize_entry(key, raw)?,
                CheckedValue::Rewritten(raw) => map.serialize_entry(key, raw)?,
            }
        }
        map.end()
    }
}

const PART_TYPES: &str = "a known part type (`text`, `reasoning`, `file`, `dynamic-tool`, …) or one beginning with `tool-` or `data-`";
const STATES: &str = "`input-streaming`, `input-available`, `approval-requested`, `approval-responded`, \
     `output-available`, `output-error` or `output-denied`";

/// Checks one part.
pub(super) fn check_part(mut fields: Fields<'_>) -> Result<CheckedPart<'_>, Problem> {
    // Asked first, because taking the member out loses its place.
    let leads = fields.iter().next().is_some_and(|(key, _)| key == "type");
    let type_name = match take_field(&mut fields, "type") {
        Some(raw) if raw.get().starts_with('"') => decode_string(raw.get()).0,
        Some(raw) => return Err(Problem::wrong_value(PART_TYPES, raw.get()).at_segment("type")),
        None => {
            return Err(Problem::new(format!("missing, expected {PART_TYPES}")).at_segment("type"));
        }
    };
    let (kind, shape) = match PartKind::from_type_name(&type_name) {
        Some(known) => known,
        None => tool_kind(&type_name, &fields)?,
    };
    let mut members = check_members(fields, shape)?;
    members.in_order &= leads;
    Ok(CheckedPart {
        kind,
        type_name,
        members,
    })
}

fn tool_kind(type_name: &str, fields: &Fields<'_>) -> Result<(PartKind, FieldTable), Problem> {
    let Some(dynamic) = PartKind::parse_tool_type(type_name) else {
        let found = contexture_ir::quote_json(type_name);
        return Err(Problem::wrong_value(PART_TYPES, &found).at_segment("type"));
    };
    let Some(word) = fields.get(&["state"]) else {
        return Err(Problem::new(format!("missing, expected {STATES}")).at_segment("state"));
    };
    match ToolState::from_wire(word.get().trim_matches('"')) {
        Some(state) => Ok((
            PartKind::Tool { dynamic, state },
            PartKind::tool_fields(dynamic, state),
        )),
        None => Err(Problem::wrong_value(STATES, word.get()).at_segment("state")),
    }
}

/// Takes the field of one name, which cannot be ambiguous.
pub(super) fn take_field<'a>(fields: &mut Fields<'a>, name: &'static str) -> Option<&'a RawValue> {
    fields.take_field(&[name]).ok().flatten()
}

/// Checks an object's fields against a table.
pub(super) fn check_members<'a>(
    mut fields: Fields<'a>,
    shape: FieldTable,
) -> Result<CheckedMembers<'a>, Problem> {
    let mut out = CheckedMembers {
        // Asked first, because the members are taken out below.
        in_order: is_in_order(&fields, shape),
        ..CheckedMembers::default()
    };
    for field in shape {
        match take_field(&mut fields, field.name) {
            None if field.required => {
                return Err(Problem::new("missing, a value is required").at_segment(field.name));
            }
            None => {}
            Some(raw) => {
                let value = check_value(raw, field.check, &mut out.dropped, field.name)
                    .map_err(|problem| problem.at_segment(field.name))?;
                out.list.push((field.name, value));
            }
        }
    }
    // What is left is unknown: validation drops it, so it is named and no error.
    out.dropped
        .extend(fields.iter().map(|(key, _)| key.to_owned()));
    out.in_order &= out.dropped.is_empty();
    Ok(out)
}

fn is_in_order(fields: &Fields<'_>, shape: FieldTable) -> bool {
    let mut rest = shape.iter();
    // The iterator only goes on, so each member must stand behind the one before it.
    fields
        .iter()
        .all(|(key, _)| rest.any(|field| field.name == key))
}

fn check_value<'a>(
    raw: &'a RawValue,
    check: ExpectedValue,
    dropped: &mut Vec<String>,
    name: &str,
) -> Result<CheckedValue<'a>, Problem> {
    let text = raw.get();
    let simple = |ok: bool, what: &str| {
        if ok {
            Ok(CheckedValue::Original(raw))
        } else {
            Err(Problem::wrong_value(what, text))
        }
    };
    // The text is valid JSON already, so its first character tells its type.
    match check {
        ExpectedValue::Text => simple(text.starts_with('"'), "a string"),
        ExpectedValue::Flag => simple(matches!(text, "true" | "false"), "a boolean"),
        ExpectedValue::True => simple(text == "true", "`true`"),
        ExpectedValue::False => simple(text == "false", "`false`"),
        ExpectedValue::Json => Ok(CheckedValue::Original(raw)),
        ExpectedValue::Never => simple(false, "nothing in this state"),
        ExpectedValue::TextState => simple(
            matches!(text, "\"streaming\"" | "\"done\""),
            "`streaming` or `done`",
        ),
        ExpectedValue::Encoding => {
            simple(matches!(text, "\"json\"" | "\"text\""), "`json` or `text`")
        }
        ExpectedValue::Object => simple(text.starts_with('{'), "an object"),
        ExpectedValue::Metadata => check_each_member(raw, '{', "an object"),
        ExpectedValue::TextRecord => check_each_member(raw, '"', "a string"),
        ExpectedValue::Approval(answer) => check_approval(raw, answer, dropped, name),
        ExpectedValue::Citations => check_each_element(raw, dropped, name, check_citation),
        ExpectedValue::SteeringParts => check_each_element(raw, dropped, name, check_steering),
    }
}

/// An object whose values all begin with `first`.
fn check_each_member<'a>(
    raw: &'a RawValue,
    first: char,
    what: &str,
) -> Result<CheckedValue<'a>, Problem> {
    let fields =
        Fields::parse(raw.get()).map_err(|_| Problem::wrong_value("an object", raw.get()))?;
    for (key, value) in fields.iter() {
        if !value.get().starts_with(first) {
            return Err(Problem::wrong_value(what, value.get()).at_segment(key));
        }
    }
    Ok(CheckedValue::Original(raw))
}

type ElementCheck = fn(Fields<'_>) -> Result<(Option<&'static str>, CheckedMembers<'_>), Problem>;

/// An array whose elements pass; written anew only where an element lost a key.
fn check_each_element<'a>(
    raw: &'a RawValue,
    dropped: &mut Vec<String>,
    name: &str,
    element: ElementCheck,
) -> Result<CheckedValue<'a>, Problem> {
    let list: Vec<&RawValue> =
        serde_json::from_str(raw.get()).map_err(|_| Problem::wrong_value("an array", raw.get()))?;
    let before = dropped.len();
    let mut made = Vec::with_capacity(list.len());
    for (index, value) in list.into_iter().enumerate() {
        let checked = parse_object(value)
            .and_then(element)
            .map_err(|problem| problem.at_index(index))?;
        let prefix = format!("{name}[{index}]");
        dropped.extend(
            checked
                .1
                .dropped
                .iter()
                .map(|key| format!("{prefix}.{key}")),
        );
        made.push(
            Raw::from_value(&OrderedObject(checked.0, &checked.1.list))
                .unwrap_or_else(|_| Raw::null()),
        );
    }
    // Rewritten only where something was dropped; otherwise the bytes stay as they came.
    if dropped.len() == before {
        return Ok(CheckedValue::Original(raw));
    }
    Ok(CheckedValue::Rewritten(
        Raw::from_value(&made).unwrap_or_else(|_| Raw::null()),
    ))
}

pub(super) fn parse_object(value: &RawValue) -> Result<Fields<'_>, Problem> {
    Fields::parse(value.get()).map_err(|_| Problem::wrong_value("an object", value.get()))
}

fn check_steering(
    mut fields: Fields<'_>,
) -> Result<(Option<&'static str>, CheckedMembers<'_>), Problem> {
    let (word, shape) = match take_field(&mut fields, "type").map(RawValue::get) {
        Some("\"text\"") => ("text", schema::STEERING_TEXT),
        Some("\"file\"") => ("file", schema::FILE),
        other => {
            let found = other.unwrap_or("nothing");
            return Err(Problem::wrong_value("`text` or `file`", found).at_segment("type"));
        }
    };
    Ok((Some(word), check_members(fields, shape)?))
}

fn check_citation(
    fields: Fields<'_>,
) -> Result<(Option<&'static str>, CheckedMembers<'_>), Problem> {
    let mut members = check_members(fields, schema::CITATION)?;
    for (key, value) in &members.list {
        // A JSON number may have a fraction; a position in a text may not.
        let index = matches!(*key, "startIndex" | "endIndex");
        if index && value.get().parse::<u64>().is_err() {
            return Err(Problem::wrong_value("a whole number", value.get()).at_segment(key));
        }
    }
    if let Some((_, slot)) = members.list.iter_mut().find(|(key, _)| *key == "source") {
        let (made, dropped) = {
            let inner = check_source(slot.get()).map_err(|problem| problem.at_segment("source"))?;
            let made = Raw::from_value(&OrderedObject(Some("source"), &inner.list));
            (made.unwrap_or_else(|_| Raw::null()), inner.dropped)
        };
        if !dropped.is_empty() {
            *slot = CheckedValue::Rewritten(made);
            let names = dropped.iter().map(|key| format!("source.{key}"));
            members.dropped.extend(names);
        }
    }
    Ok((None, members))
}

fn check_source(text: &str) -> Result<CheckedMembers<'_>, Problem> {
    let mut fields = Fields::parse(text).map_err(|_| Problem::wrong_value("an object", text))?;
    match take_field(&mut fields, "type").map(RawValue::get) {
        Some("\"source\"") => {}
        other => {
            let found = other.unwrap_or("nothing");
            return Err(Problem::wrong_value("`source`", found).at_segment("type"));
        }
    }
    let shape = match fields.get(&["sourceType"]).map(RawValue::get) {
        Some("\"url\"") => schema::CITATION_URL,
        Some("\"document\"") => schema::CITATION_DOCUMENT,
        other => {
            let found = other.unwrap_or("nothing");
            return Err(Problem::wrong_value("`url` or `document`", found).at_segment("sourceType"));
        }
    };
    check_members(fields, shape)
}

fn check_approval<'a>(
    raw: &'a RawValue,
    answer: ApprovalAnswer,
    dropped: &mut Vec<String>,
    name: &str,
) -> Result<CheckedValue<'a>, Problem> {
    let members = check_members(parse_object(raw)?, schema::approval_fields(answer))?;
    if members.dropped.is_empty() {
        return Ok(CheckedValue::Original(raw));
    }
    dropped.extend(members.dropped.iter().map(|key| format!("{name}.{key}")));
    let made = Raw::from_value(&OrderedObject(None, &members.list));
    Ok(CheckedValue::Rewritten(
        made.unwrap_or_else(|_| Raw::null()),
    ))
}

/// The text inside a JSON string, and whether it came through whole. JavaScript can write half of a
/// surrogate pair, which is no Unicode text: each becomes U+FFFD.
pub(super) fn decode_string(json: &str) -> (Cow<'_, str>, bool) {
    let inner = json.strip_prefix('"').and_then(|s| s.strip_suffix('"'));
    match inner {
        Some(plain) if !plain.contains('\\') => (Cow::Borrowed(plain), true),
        _ => match serde_json::from_str::<String>(json) {
            Ok(text) => (Cow::Owned(text), true),
            Err(_) => {
                let text = serde_json::from_str(&replace_lone_surrogates(json));
                (Cow::Owned(text.unwrap_or_default()), false)
            }
        },
    }
}
