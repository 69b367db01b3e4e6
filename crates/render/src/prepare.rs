//! The pass before every renderer: messages out, depth checked.
//!
//! After it, no tree is deeper than [`MAX_DEPTH`], so the renderers may recurse, and no message
//! stands anywhere. Nulls stay: each renderer leaves them out or keeps them.

use std::borrow::Cow;

use contexture_ir::{Body, Fragment, FragmentData, MAX_DEPTH};

use crate::error::RenderError;

/// The fragments a renderer shows. Borrowed, except where a message stands inside a fragment.
pub(crate) fn prepare(fragments: &[Fragment]) -> Result<Vec<Cow<'_, Fragment>>, RenderError> {
    fragments
        .iter()
        .filter(|fragment| !fragment.is_message())
        .map(prepare_one)
        .collect()
}

fn prepare_one(fragment: &Fragment) -> Result<Cow<'_, Fragment>, RenderError> {
    let too_deep = || RenderError::TooDeep {
        name: fragment.name.clone(),
    };
    match fragment.data().and_then(|data| inspect(data, MAX_DEPTH)) {
        None => Err(too_deep()),
        Some(Found::Data) => Ok(Cow::Borrowed(fragment)),
        Some(Found::Message) => {
            let shown = show(fragment);
            if shown.is_deeper_than(MAX_DEPTH) {
                Err(too_deep())
            } else {
                Ok(Cow::Owned(shown))
            }
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Found {
    Data,
    Message,
}

/// Looks for messages; `None` if the tree is deeper than `limit`.
fn inspect(data: &FragmentData, limit: usize) -> Option<Found> {
    let inspect_all = |items: &mut dyn Iterator<Item = &FragmentData>| {
        let below = limit.checked_sub(1)?;
        let mut found = Found::Data;
        for item in items {
            if inspect(item, below)? == Found::Message {
                found = Found::Message;
            }
        }
        Some(found)
    };
    match data {
        FragmentData::Array(items) => inspect_all(&mut items.iter()),
        FragmentData::Object(entries) => inspect_all(&mut entries.values()),
        FragmentData::Fragment(inner) => match &inner.body {
            Body::Data(data) => inspect_all(&mut std::iter::once(data)),
            _ => limit.checked_sub(1).map(|_| Found::Message),
        },
        _ => Some(Found::Data),
    }
}

/// The fragment with every message in it replaced by the data it decodes to.
fn show(fragment: &Fragment) -> Fragment {
    let data = match &fragment.body {
        Body::Data(data) => show_data(data),
        // A codec is the application's code, its data may hold anything: messages in it are dropped
        // rather than decoded again without end.
        Body::Message(codec) => without_messages(codec.decode()),
        Body::LastAssistant(text) => FragmentData::Text(text.clone()),
    };
    Fragment {
        id: fragment.id.clone(),
        ..Fragment::new(fragment.name.clone(), data)
    }
}

fn show_data(data: &FragmentData) -> FragmentData {
    match data {
        FragmentData::Array(items) => FragmentData::Array(items.iter().map(show_data).collect()),
        FragmentData::Object(entries) => FragmentData::Object(
            entries
                .iter()
                .map(|(key, value)| (key.clone(), show_data(value)))
                .collect(),
        ),
        FragmentData::Fragment(inner) => show(inner).into(),
        leaf => leaf.clone(),
    }
}

fn without_messages(data: FragmentData) -> FragmentData {
    if data.is_deeper_than(MAX_DEPTH) {
        return data;
    }
    match data {
        FragmentData::Array(items) => {
            FragmentData::Array(items.into_iter().map(without_messages).collect())
        }
        FragmentData::Object(entries) => FragmentData::Object(
            entries
                .into_iter()
                .map(|(key, value)| (key, without_messages(value)))
                .collect(),
        ),
        FragmentData::Fragment(inner) => match inner.body {
            Body::Data(data) => Fragment::new(inner.name, without_messages(data)).into(),
            _ => FragmentData::Null,
        },
        leaf => leaf,
    }
}
