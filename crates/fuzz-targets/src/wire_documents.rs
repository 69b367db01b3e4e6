//! Documents of the wire formats: requests, answers, bare messages; UI messages; items.

use contexture_ir::{Item, Part, UiMessage, meaning_hash};
use contexture_wire::ui::{FoldItem, FoldOptions, fold, lift_message, validate, validate_json};
use contexture_wire::{Dialect, Format, Lifted, RepairRules, lift, lower, repair};

use crate::input::{
    assert_bounded, assert_json, assert_same_value, join_choice, pick_short, provider_documents,
    split_text_choice, value_of,
};

/// A document of any format: read, written in all formats, and read again in its own. Whether another format's reader
/// takes what is written of a hostile document is not checked: some members are passed on as they came.
pub(crate) fn check_document(data: &[u8]) {
    let Some((format, text)) = split_text_choice(&Format::ALL, data) else {
        return;
    };
    let Ok(lifted) = lift(format, text) else {
        return;
    };
    check_same_format(format, &lifted);
    for target in Format::ALL {
        let lowered = lower(&Dialect::of(target), lifted.kind, &lifted.transcript);
        let what = format!("{} as {}", format.as_str(), target.as_str());
        assert_json(&what, &lowered.json);
        assert_bounded(&what, text.len(), lowered.json.len());
    }
    check_repairs(&lifted);
}

/// In its own format a document is read again, and what was written once stays. That a recorded document comes back
/// whole is for the tests of the formats: of a hostile one odd members are written as the format has them.
fn check_same_format(format: Format, lifted: &Lifted) {
    let dialect = Dialect::of(format);
    let lowered = lower(&dialect, lifted.kind, &lifted.transcript);
    let again = lift(format, &lowered.json).unwrap();
    assert_eq!(again.kind, lifted.kind, "{}", lowered.json);
    let twice = lower(&dialect, again.kind, &again.transcript);
    assert_same_value(format.as_str(), &twice.json, &lowered.json);
}

/// A repaired history is legal: repairing it again finds nothing.
fn check_repairs(lifted: &Lifted) {
    let items: Vec<&Item> = lifted.transcript.items.iter().collect();
    for format in Format::PROVIDERS {
        let rules = RepairRules::for_format(format);
        let repaired = repair(&items, &rules).into_items();
        let refs: Vec<&Item> = repaired.iter().collect();
        let again = repair(&refs, &rules);
        assert!(
            again.issues.is_empty(),
            "{}: {:?}",
            format.as_str(),
            again.issues
        );
        assert_eq!(again.into_items(), repaired, "{}", format.as_str());
    }
}

/// Requests and answers of the providers, and the same as items and as UI messages.
pub(crate) fn documents() -> Vec<Vec<u8>> {
    let mut inputs = Vec::new();
    for (index, format) in Format::ALL.into_iter().enumerate() {
        let texts = if Format::PROVIDERS.contains(&format) {
            pick_short(provider_documents(format), 40)
        } else {
            converted_documents(format)
        };
        inputs.extend(texts.into_iter().map(|text| join_choice(index, text)));
    }
    inputs
}

/// Recorded documents, written in a format that no provider has.
fn converted_documents(target: Format) -> Vec<String> {
    let mut texts = Vec::new();
    for format in Format::PROVIDERS {
        for text in pick_short(provider_documents(format), 6) {
            // Recorded bodies of errors are no documents.
            if let Ok(lifted) = lift(format, &text) {
                texts.push(lower(&Dialect::of(target), lifted.kind, &lifted.transcript).json);
            }
        }
    }
    texts
}

/// An array of UI messages: what is valid stays valid, becomes items and folds into valid messages.
pub(crate) fn check_ui_messages(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    if let Ok(message) = UiMessage::parse(text) {
        let json = serde_json::to_string(&message).unwrap();
        assert_eq!(UiMessage::parse(&json).ok(), Some(message));
    }
    let Ok(messages) = validate_json(text) else {
        return;
    };
    assert_eq!(validate(&messages).as_ref().ok(), Some(&messages));
    let json = serde_json::to_string(&messages).unwrap();
    assert_eq!(validate_json(&json).as_ref().ok(), Some(&messages));
    let lifted: Vec<_> = messages.iter().map(lift_message).collect();
    let folded: Vec<FoldItem<'_>> = lifted
        .iter()
        .flat_map(|message| {
            let id = Some(message.message_id.as_str());
            message.items.iter().map(move |item| FoldItem {
                message_id: id.filter(|id| !id.is_empty()),
                ..FoldItem::new(item)
            })
        })
        .collect();
    let shown = fold(&folded, &FoldOptions::default());
    if let Err(error) = validate(&shown) {
        // No messages are no valid list of messages.
        assert!(shown.is_empty(), "{error}: {shown:?}");
    }
    assert_bounded(
        "folded messages",
        text.len(),
        serde_json::to_string(&shown).unwrap().len(),
    );
}

/// Recorded exchanges as UI messages, and parts of every kind.
pub(crate) fn ui_messages() -> Vec<Vec<u8>> {
    let recorded = converted_documents(Format::Ui);
    let recorded = recorded.iter().filter_map(|json| {
        // A request wraps its messages.
        let value = value_of(json)?;
        let list = value.get("messages").unwrap_or(&value).clone();
        list.is_array().then(|| list.to_string())
    });
    let own = [
        r#"[{"id":"a","role":"user","parts":[{"type":"text","text":"hi"},{"type":"file","mediaType":"image/png","url":"data:image/png;base64,AA=="}]}]"#,
        r#"[{"id":"b","role":"assistant","metadata":{"n":1},"parts":[{"type":"step-start"},{"type":"reasoning","text":"hm","state":"done"},{"type":"tool-look_up","toolCallId":"c","state":"output-available","input":{"q":1},"output":{"a":[1,2]}},{"type":"dynamic-tool","toolName":"x","toolCallId":"d","state":"output-error","input":{},"errorText":"no"},{"type":"source-url","sourceId":"s","url":"https://e.org"},{"type":"data-x","id":"1","data":null}]}]"#,
        r#"{"id":"a","role":"system","parts":[]}"#,
    ];
    let own = own.into_iter().map(str::to_owned);
    recorded.chain(own).map(String::into_bytes).collect()
}

/// Items and parts: what was read is written and read again as the same, and means the same.
pub(crate) fn check_items(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    if let Ok(item) = Item::parse(text) {
        check_item(&item);
        check_item(&item.tombstone());
        assert!(item.tombstone().is_tombstone());
        assert_bounded("an item", text.len(), item.to_json().len());
    }
    for item in Item::parse_all(text).unwrap_or_default() {
        check_item(&item);
    }
    for part in Part::parse_all(text).unwrap_or_default() {
        let json = serde_json::to_string(&part).unwrap();
        assert_eq!(Part::parse(&json).ok(), Some(part), "{json}");
    }
}

fn check_item(item: &Item) {
    let json = item.to_json();
    let again = Item::parse(&json).unwrap_or_else(|error| panic!("{error}: {json}"));
    assert_eq!(&again, item, "{json}");
    assert_eq!(again.to_json(), json);
    assert_eq!(meaning_hash(&again), meaning_hash(item), "{json}");
}

/// Items of recorded exchanges, each alone, and some lists of them.
pub(crate) fn items() -> Vec<Vec<u8>> {
    let mut texts = Vec::new();
    for format in Format::PROVIDERS {
        for text in pick_short(provider_documents(format), 12) {
            let Ok(lifted) = lift(format, &text) else {
                continue;
            };
            let items = lifted.transcript.items.iter();
            let all: Vec<String> = items.map(Item::to_json).collect();
            texts.push(format!("[{}]", all.join(",")));
            texts.extend(all);
        }
    }
    pick_short(texts, 150)
        .into_iter()
        .map(String::into_bytes)
        .collect()
}
