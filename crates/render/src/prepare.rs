//! The pass before every renderer: messages out, depth checked.
//!
//! After it, no tree is deeper than [`MAX_DEPTH`], so the renderers may recurse, and no message
//! stands anywhere. Nulls stay: each renderer leaves them out or keeps them.

use std::borrow::Cow;

use contexture_ir::{Body, Fragment, FragmentData, MAX_DEPTH};

use crate::renderer::RenderError;

/// The fragments a renderer shows. Borrowed, except where a message stands inside a fragment.
pub(crate) fn prepare_fragments(
    fragments: &[Fragment],
) -> Result<Vec<Cow<'_, Fragment>>, RenderError> {
    fragments
        .iter()
        .filter(|fragment| !fragment.is_message())
        .map(prepare_fragment)
        .collect()
}

fn prepare_fragment(fragment: &Fragment) -> Result<Cow<'_, Fragment>, RenderError> {
    let too_deep = || RenderError::TooDeep {
        name: fragment.name.clone(),
    };
    match fragment
        .data()
        .and_then(|data| scan_for_messages(data, MAX_DEPTH))
    {
        None => Err(too_deep()),
        Some(MessageScan::Data) => Ok(Cow::Borrowed(fragment)),
        Some(MessageScan::Message) => {
            let shown = decode_messages(fragment);
            // Checked again, because what a message decodes to is the application's and may be deep.
            if shown.is_deeper_than(MAX_DEPTH) {
                Err(too_deep())
            } else {
                Ok(Cow::Owned(shown))
            }
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum MessageScan {
    Data,
    Message,
}

/// Looks for messages; `None` if the tree is deeper than `limit`.
fn scan_for_messages(data: &FragmentData, limit: usize) -> Option<MessageScan> {
    let inspect_all = |items: &mut dyn Iterator<Item = &FragmentData>| {
        // Depth is counted down; at zero a container is too deep, while a leaf still fits.
        let below = limit.checked_sub(1)?;
        let mut found = MessageScan::Data;
        for item in items {
            // Goes on after the first message: the depth of the rest must be checked too.
            if scan_for_messages(item, below)? == MessageScan::Message {
                found = MessageScan::Message;
            }
        }
        Some(found)
    };
    match data {
        FragmentData::Array(items) => inspect_all(&mut items.iter()),
        FragmentData::Object(entries) => inspect_all(&mut entries.values()),
        FragmentData::Fragment(inner) => match &inner.body {
            Body::Data(data) => inspect_all(&mut std::iter::once(data)),
            _ => limit.checked_sub(1).map(|_| MessageScan::Message),
        },
        _ => Some(MessageScan::Data),
    }
}

/// The fragment with every message in it replaced by the data it decodes to.
fn decode_messages(fragment: &Fragment) -> Fragment {
    let data = match &fragment.body {
        Body::Data(data) => decode_messages_in_data(data),
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

fn decode_messages_in_data(data: &FragmentData) -> FragmentData {
    match data {
        FragmentData::Array(items) => {
            FragmentData::Array(items.iter().map(decode_messages_in_data).collect())
        }
        FragmentData::Object(entries) => FragmentData::Object(
            entries
                .iter()
                .map(|(key, value)| (key.clone(), decode_messages_in_data(value)))
                .collect(),
        ),
        FragmentData::Fragment(inner) => decode_messages(inner).into(),
        leaf => leaf.clone(),
    }
}

fn without_messages(data: FragmentData) -> FragmentData {
    // Left as it is: the caller checks the depth and refuses it.
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
