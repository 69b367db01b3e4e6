//! The records of a log that are kept beside the items they became.
//!
//! A record that became items is kept as a form: the record without what the items say. A record
//! that became none, or that its items would not give back exactly, is kept whole; one that could
//! not be read is kept as text. The kept records are the session's metadata:
//!
//! ```json
//! {"records": [{"form": {}}, {"whole": {}}, {"text": "…"}], "nodes": [0, 0, 1], "rest": {}}
//! ```
//!
//! `nodes` names for every imported node the index of its record; `rest` is what stands around the
//! records.

use contexture_ir::{Fields, Item, Raw};
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::value::RawValue;

use crate::error::SessionError;
use crate::json::is_same_json;
use crate::session::{ReadOptions, Session, SessionNode, Skipped};

/// A record as it is stored.
#[derive(Debug)]
pub(crate) enum StoredRecord {
    Form(Raw),
    Whole(Raw),
    Text(String),
}

/// All of a log's records.
#[derive(Debug, Default)]
pub(crate) struct Records {
    pub(crate) list: Vec<StoredRecord>,
    pub(crate) nodes: Vec<usize>,
    pub(crate) rest: Option<Raw>,
}

/// Puts items back into a form; `None` if they do not fit.
pub(crate) type TemplateFiller = fn(form: &Raw, items: &[&Item]) -> Option<String>;

/// Reads the records of a log one after the other.
pub(crate) trait RecordReader {
    /// What a record is called, and what is expected of one, for errors.
    const PLACE: &'static str;
    const EXPECTED: &'static str;

    /// What is kept of the records so far.
    fn records(&mut self) -> &mut Records;

    /// Reads a record; the error says what was found instead.
    fn read_record(&mut self, raw: &RawValue) -> Result<(), String>;
}

/// Reads all records of a log. Returns those that could not be read, with [`ReadOptions::keep_going`].
///
/// # Errors
/// Without it, the first that could not be.
pub(crate) fn read_records<R: RecordReader>(
    list: Vec<&RawValue>,
    options: &ReadOptions<'_>,
    reader: &mut R,
) -> Result<Vec<Skipped>, SessionError> {
    let mut skipped = Vec::new();
    for (index, raw) in list.into_iter().enumerate() {
        let Err(found) = reader.read_record(raw) else {
            continue;
        };
        if !options.keep_going {
            return Err(SessionError::Record {
                place: R::PLACE,
                number: index + 1,
                expected: R::EXPECTED,
                found,
                // Counted without the skipped ones before it.
                read: index - skipped.len(),
            });
        }
        // Kept whole and in its place, so that writing gives back what could not be read.
        let stored = StoredRecord::Whole(Raw::from(raw));
        reader.records().list.push(stored);
        skipped.push(Skipped {
            number: index + 1,
            what: found,
        });
    }
    Ok(skipped)
}

impl Records {
    /// Keeps a record that became `items`, which are the next nodes; the form if filling it gives
    /// the record back.
    pub(crate) fn add_record(
        &mut self,
        record: &RawValue,
        form: Option<Raw>,
        items: &[Item],
        fill: TemplateFiller,
    ) {
        let refs: Vec<&Item> = items.iter().collect();
        let exact = form.filter(|form| {
            // A record without items has nothing to fill, so it is kept whole.
            !items.is_empty()
                // Tried at once: the round trip is proved when reading, and writing needs no check.
                && fill(form, &refs).is_some_and(|text| is_same_json(&text, record.get()))
        });
        let number = self.list.len();
        // Each node names its record; nodes of one record follow each other.
        self.nodes.extend(std::iter::repeat_n(number, items.len()));
        self.list.push(match exact {
            Some(form) => StoredRecord::Form(form),
            None => StoredRecord::Whole(Raw::from(record)),
        });
    }

    pub(crate) fn to_metadata(&self) -> Raw {
        Raw::from_value(self).unwrap_or_else(|_| Raw::null())
    }

    pub(crate) fn from_metadata(metadata: &Raw) -> Result<Self, SessionError> {
        let damaged = |what: &str| SessionError::Metadata {
            what: what.to_owned(),
        };
        let fields = metadata.fields().ok_or_else(|| damaged("not an object"))?;
        let raw = |name: &'static str| fields.get(&[name]).map(RawValue::get);
        let list: Vec<&RawValue> = raw("records")
            .and_then(|text| serde_json::from_str(text).ok())
            .ok_or_else(|| damaged("`records` is not an array"))?;
        let nodes = raw("nodes")
            .and_then(|text| serde_json::from_str(text).ok())
            .ok_or_else(|| damaged("`nodes` is not an array of indices"))?;
        let kept = |record: &&RawValue| {
            StoredRecord::parse_stored(record.get())
                // A newer version may have written this metadata; losing its records silently would damage the
                // log.
                .ok_or_else(|| damaged("a record is of no known kind"))
        };
        Ok(Self {
            list: list.iter().map(kept).collect::<Result<_, _>>()?,
            nodes,
            rest: fields.get(&["rest"]).map(Raw::from),
        })
    }

    /// The records written again: `None` for one that is text. Nodes that belong to no record come
    /// as they stand, to be written behind.
    pub(crate) fn fill_records<'s>(
        &self,
        session: &'s Session,
        fill: TemplateFiller,
    ) -> (Vec<Result<String, &str>>, Vec<&'s SessionNode>) {
        // One list a record, so that items go back to the record they came from.
        let mut items: Vec<Vec<&Item>> = self.list.iter().map(|_| Vec::new()).collect();
        let mut added = Vec::new();
        for node in &session.tree {
            let record = node.imported.and_then(|index| self.nodes.get(index));
            // Nodes added since have no index, or one beyond those that were imported.
            match record.and_then(|record| items.get_mut(*record)) {
                Some(list) => list.push(&node.item),
                None => added.push(node),
            }
        }
        let filled = self
            .list
            .iter()
            .zip(&items)
            .filter_map(|(kept, items)| match kept {
                StoredRecord::Whole(raw) => Some(Ok(raw.get().to_owned())),
                StoredRecord::Text(text) => Some(Err(text.as_str())),
                // A record of a branch that is not written.
                StoredRecord::Form(_) if items.is_empty() => None,
                StoredRecord::Form(form) => Some(Ok(fill(form, items)?)),
            });
        (filled.collect(), added)
    }
}

impl StoredRecord {
    fn parse_stored(text: &str) -> Option<Self> {
        let fields = Fields::parse(text).ok()?;
        let (kind, value) = fields.iter().next()?;
        match kind {
            "form" => Some(Self::Form(Raw::from(value))),
            "whole" => Some(Self::Whole(Raw::from(value))),
            "text" => serde_json::from_str(value.get()).ok().map(Self::Text),
            _ => None,
        }
    }
}

impl Serialize for StoredRecord {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(1))?;
        match self {
            Self::Form(raw) => map.serialize_entry("form", raw)?,
            Self::Whole(raw) => map.serialize_entry("whole", raw)?,
            Self::Text(text) => map.serialize_entry("text", text)?,
        }
        map.end()
    }
}

impl Serialize for Records {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("records", &self.list)?;
        map.serialize_entry("nodes", &self.nodes)?;
        if let Some(rest) = &self.rest {
            map.serialize_entry("rest", rest)?;
        }
        map.end()
    }
}
