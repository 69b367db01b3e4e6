//! One part of a UI message against its table: known fields in order, the rest named and dropped.
//!
//! Values are looked at, not parsed: what a field holds below the checked level stays text.

use std::borrow::Cow;
use std::fmt;

use contexture_ir::{Fields, Raw};
use serde::de::{Deserialize, Deserializer, Visitor};
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::value::RawValue;

use super::schema::{self, Answer, Check, PartKind, Shape, ToolState};

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

    pub(super) fn expected(what: &str, found: &str) -> Self {
        let mut short: String = found.chars().take(40).collect();
        if short.len() < found.len() {
            short.push('…');
        }
        Self::new(format!("expected {what}, found {short}"))
    }

    /// The same problem, seen from one level further out.
    pub(super) fn at(mut self, segment: &str) -> Self {
        let dot = !self.path.is_empty() && !self.path.starts_with('[');
        self.path = format!("{segment}{}{}", if dot { "." } else { "" }, self.path);
        self
    }

    pub(super) fn at_index(self, index: usize) -> Self {
        self.at(&format!("[{index}]"))
    }
}

/// A value as it came, or without the keys that were dropped below it.
#[derive(Clone, Debug)]
pub(super) enum Val<'a> {
    Kept(&'a RawValue),
    Made(Raw),
}

impl Val<'_> {
    pub(super) fn get(&self) -> &str {
        match self {
            Self::Kept(raw) => raw.get(),
            Self::Made(raw) => raw.get(),
        }
    }

    pub(super) fn to_raw(&self) -> Raw {
        match self {
            Self::Kept(raw) => Raw::from(*raw),
            Self::Made(raw) => raw.clone(),
        }
    }
}

/// Fields that passed, in the table's order.
#[derive(Debug, Default)]
pub(super) struct Members<'a> {
    pub(super) list: Vec<(&'static str, Val<'a>)>,
    /// Unknown keys that were dropped, as paths.
    pub(super) dropped: Vec<String>,
    /// Whether they came in the table's order already, none dropped.
    pub(super) in_order: bool,
}

/// A part that passed.
#[derive(Debug)]
pub(super) struct Checked<'a> {
    pub(super) kind: PartKind,
    pub(super) type_name: Cow<'a, str>,
    pub(super) members: Members<'a>,
}

impl<'a> Checked<'a> {
    /// A field's value.
    pub(super) fn get(&self, name: &str) -> Option<&Val<'a>> {
        let found = self.members.list.iter().find(|(key, _)| *key == name);
        found.map(|(_, value)| value)
    }

    /// The part as JSON, keys in the table's order.
    pub(super) fn to_raw(&self) -> Raw {
        Raw::from_value(&Object(Some(&self.type_name), &self.members.list))
            .unwrap_or_else(|_| Raw::null())
    }
}

/// An object written in the order given.
struct Object<'o, 'a>(Option<&'o str>, &'o [(&'static str, Val<'a>)]);

impl Serialize for Object<'_, '_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        if let Some(type_name) = self.0 {
            map.serialize_entry("type", type_name)?;
        }
        for (key, value) in self.1 {
            match value {
                Val::Kept(raw) => map.serialize_entry(key, raw)?,
                Val::Made(raw) => map.serialize_entry(key, raw)?,
            }
        }
        map.end()
    }
}

const PART_TYPES: &str = "a known part type (`text`, `reasoning`, `file`, `dynamic-tool`, …) or one beginning with `tool-` or `data-`";
const STATES: &str = "`input-streaming`, `input-available`, `approval-requested`, `approval-responded`, \
     `output-available`, `output-error` or `output-denied`";

/// Checks one part.
pub(super) fn check_part(mut fields: Fields<'_>) -> Result<Checked<'_>, Problem> {
    let leads = fields.iter().next().is_some_and(|(key, _)| key == "type");
    let type_name = match take(&mut fields, "type")? {
        Some(raw) if raw.get().starts_with('"') => decode(raw.get()).0,
        Some(raw) => return Err(Problem::expected(PART_TYPES, raw.get()).at("type")),
        None => return Err(Problem::new(format!("missing, expected {PART_TYPES}")).at("type")),
    };
    let (kind, shape) = match PartKind::of(&type_name) {
        Some(known) => known,
        None => tool_kind(&type_name, &fields)?,
    };
    let mut members = check_members(fields, shape)?;
    members.in_order &= leads;
    Ok(Checked {
        kind,
        type_name,
        members,
    })
}

fn tool_kind(type_name: &str, fields: &Fields<'_>) -> Result<(PartKind, Shape), Problem> {
    let Some(dynamic) = PartKind::tool(type_name) else {
        let found = contexture_ir::quote(type_name);
        return Err(Problem::expected(PART_TYPES, &found).at("type"));
    };
    let Some(word) = fields.get(&["state"]) else {
        return Err(Problem::new(format!("missing, expected {STATES}")).at("state"));
    };
    match ToolState::from_wire(word.get().trim_matches('"')) {
        Some(state) => Ok((
            PartKind::Tool { dynamic, state },
            PartKind::tool_shape(dynamic, state),
        )),
        None => Err(Problem::expected(STATES, word.get()).at("state")),
    }
}

fn take<'a>(fields: &mut Fields<'a>, name: &'static str) -> Result<Option<&'a RawValue>, Problem> {
    fields
        .take(&[name])
        .map_err(|_| Problem::new("stands twice").at(name))
}

/// Checks an object's fields against a table.
pub(super) fn check_members<'a>(
    mut fields: Fields<'a>,
    shape: Shape,
) -> Result<Members<'a>, Problem> {
    let mut out = Members {
        in_order: stands_in_order(&fields, shape),
        ..Members::default()
    };
    for field in shape {
        match take(&mut fields, field.name)? {
            None if field.required => {
                return Err(Problem::new("missing, a value is required").at(field.name));
            }
            None => {}
            Some(raw) => {
                let value = check_value(raw, field.check, &mut out.dropped, field.name)
                    .map_err(|problem| problem.at(field.name))?;
                out.list.push((field.name, value));
            }
        }
    }
    out.dropped
        .extend(fields.iter().map(|(key, _)| key.to_owned()));
    out.in_order &= out.dropped.is_empty();
    Ok(out)
}

fn stands_in_order(fields: &Fields<'_>, shape: Shape) -> bool {
    let mut rest = shape.iter();
    fields
        .iter()
        .all(|(key, _)| rest.any(|field| field.name == key))
}

fn check_value<'a>(
    raw: &'a RawValue,
    check: Check,
    dropped: &mut Vec<String>,
    name: &str,
) -> Result<Val<'a>, Problem> {
    let text = raw.get();
    let simple = |ok: bool, what: &str| {
        if ok {
            Ok(Val::Kept(raw))
        } else {
            Err(Problem::expected(what, text))
        }
    };
    match check {
        Check::Text => simple(text.starts_with('"'), "a string"),
        Check::Flag => simple(matches!(text, "true" | "false"), "a boolean"),
        Check::True => simple(text == "true", "`true`"),
        Check::False => simple(text == "false", "`false`"),
        Check::Json => Ok(Val::Kept(raw)),
        Check::Never => simple(false, "nothing in this state"),
        Check::TextState => simple(
            matches!(text, "\"streaming\"" | "\"done\""),
            "`streaming` or `done`",
        ),
        Check::Encoding => simple(matches!(text, "\"json\"" | "\"text\""), "`json` or `text`"),
        Check::Object => simple(text.starts_with('{'), "an object"),
        Check::Metadata => each_member(raw, '{', "an object"),
        Check::TextRecord => each_member(raw, '"', "a string"),
        Check::Approval(answer) => check_approval(raw, answer, dropped, name),
        Check::Citations => each_element(raw, dropped, name, check_citation),
        Check::SteeringParts => each_element(raw, dropped, name, check_steering),
    }
}

/// An object whose values all begin with `first`.
fn each_member<'a>(raw: &'a RawValue, first: char, what: &str) -> Result<Val<'a>, Problem> {
    let fields = Fields::parse(raw.get()).map_err(|_| Problem::expected("an object", raw.get()))?;
    for (key, value) in fields.iter() {
        if !value.get().starts_with(first) {
            return Err(Problem::expected(what, value.get()).at(key));
        }
    }
    Ok(Val::Kept(raw))
}

type Element = fn(Fields<'_>) -> Result<(Option<&'static str>, Members<'_>), Problem>;

/// An array whose elements pass; written anew only where an element lost a key.
fn each_element<'a>(
    raw: &'a RawValue,
    dropped: &mut Vec<String>,
    name: &str,
    element: Element,
) -> Result<Val<'a>, Problem> {
    let list: Vec<&RawValue> =
        serde_json::from_str(raw.get()).map_err(|_| Problem::expected("an array", raw.get()))?;
    let before = dropped.len();
    let mut made = Vec::with_capacity(list.len());
    for (index, value) in list.into_iter().enumerate() {
        let checked = object(value)
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
            Raw::from_value(&Object(checked.0, &checked.1.list)).unwrap_or_else(|_| Raw::null()),
        );
    }
    if dropped.len() == before {
        return Ok(Val::Kept(raw));
    }
    Ok(Val::Made(
        Raw::from_value(&made).unwrap_or_else(|_| Raw::null()),
    ))
}

pub(super) fn object(value: &RawValue) -> Result<Fields<'_>, Problem> {
    Fields::parse(value.get()).map_err(|_| Problem::expected("an object", value.get()))
}

fn check_steering(mut fields: Fields<'_>) -> Result<(Option<&'static str>, Members<'_>), Problem> {
    let (word, shape) = match take(&mut fields, "type")?.map(RawValue::get) {
        Some("\"text\"") => ("text", schema::STEERING_TEXT),
        Some("\"file\"") => ("file", schema::FILE),
        other => {
            let found = other.unwrap_or("nothing");
            return Err(Problem::expected("`text` or `file`", found).at("type"));
        }
    };
    Ok((Some(word), check_members(fields, shape)?))
}

fn check_citation(fields: Fields<'_>) -> Result<(Option<&'static str>, Members<'_>), Problem> {
    let mut members = check_members(fields, schema::CITATION)?;
    for (key, value) in &members.list {
        let index = matches!(*key, "startIndex" | "endIndex");
        if index && value.get().parse::<u64>().is_err() {
            return Err(Problem::expected("a whole number", value.get()).at(key));
        }
    }
    if let Some((_, slot)) = members.list.iter_mut().find(|(key, _)| *key == "source") {
        let (made, dropped) = {
            let inner = check_source(slot.get()).map_err(|problem| problem.at("source"))?;
            let made = Raw::from_value(&Object(Some("source"), &inner.list));
            (made.unwrap_or_else(|_| Raw::null()), inner.dropped)
        };
        if !dropped.is_empty() {
            *slot = Val::Made(made);
            let names = dropped.iter().map(|key| format!("source.{key}"));
            members.dropped.extend(names);
        }
    }
    Ok((None, members))
}

fn check_source(text: &str) -> Result<Members<'_>, Problem> {
    let mut fields = Fields::parse(text).map_err(|_| Problem::expected("an object", text))?;
    match take(&mut fields, "type")?.map(RawValue::get) {
        Some("\"source\"") => {}
        other => {
            let found = other.unwrap_or("nothing");
            return Err(Problem::expected("`source`", found).at("type"));
        }
    }
    let shape = match fields.get(&["sourceType"]).map(RawValue::get) {
        Some("\"url\"") => schema::CITATION_URL,
        Some("\"document\"") => schema::CITATION_DOCUMENT,
        other => {
            let found = other.unwrap_or("nothing");
            return Err(Problem::expected("`url` or `document`", found).at("sourceType"));
        }
    };
    check_members(fields, shape)
}

fn check_approval<'a>(
    raw: &'a RawValue,
    answer: Answer,
    dropped: &mut Vec<String>,
    name: &str,
) -> Result<Val<'a>, Problem> {
    let members = check_members(object(raw)?, schema::approval(answer))?;
    if members.dropped.is_empty() {
        return Ok(Val::Kept(raw));
    }
    dropped.extend(members.dropped.iter().map(|key| format!("{name}.{key}")));
    let made = Raw::from_value(&Object(None, &members.list));
    Ok(Val::Made(made.unwrap_or_else(|_| Raw::null())))
}

/// The text inside a JSON string, and whether it came through whole. JavaScript can write half of a
/// surrogate pair, which is no Unicode text: each becomes U+FFFD.
pub(super) fn decode(json: &str) -> (Cow<'_, str>, bool) {
    let inner = json.strip_prefix('"').and_then(|s| s.strip_suffix('"'));
    match inner {
        Some(plain) if !plain.contains('\\') => (Cow::Borrowed(plain), true),
        _ => match serde_json::from_str::<String>(json) {
            Ok(text) => (Cow::Owned(text), true),
            Err(_) => (Cow::Owned(decode_lossy(json)), false),
        },
    }
}

fn decode_lossy(json: &str) -> String {
    let wtf8 = serde_json::from_str::<Bytes>(json).unwrap_or_default().0;
    let mut out = Vec::with_capacity(wtf8.len());
    let mut rest = wtf8.as_slice();
    while let Some((first, after)) = rest.split_first() {
        // Half a pair is ED A0..BF xx: no valid text begins so.
        if let ([0xed, 0xa0..=0xbf, _], Some(behind)) =
            (rest.get(..3).unwrap_or_default(), rest.get(3..))
        {
            out.extend_from_slice("\u{fffd}".as_bytes());
            rest = behind;
        } else {
            out.push(*first);
            rest = after;
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// The bytes of a JSON string: serde_json hands lone surrogates (as WTF-8) only to readers of bytes.
#[derive(Default)]
struct Bytes(Vec<u8>);

impl<'de> Deserialize<'de> for Bytes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;
        impl Visitor<'_> for Reader {
            type Value = Bytes;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string")
            }

            fn visit_bytes<E>(self, bytes: &[u8]) -> Result<Bytes, E> {
                Ok(Bytes(bytes.to_vec()))
            }
        }
        deserializer.deserialize_bytes(Reader)
    }
}
