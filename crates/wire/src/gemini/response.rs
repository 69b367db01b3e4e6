//! Responses: the first candidate is the answer, further ones are kept as they came.

use contexture_ir::{
    Error, Extra, Fields, FinishReason, Item, Raw, ResponseInfo, Transcript, Usage,
};
use serde_json::value::RawValue;

use super::ids::Ids;
use super::media::{nest, nested};
use super::names::{Names, peek, unexpected};
use super::words::FORMAT;
use super::{read, write};
use crate::Lowered;
use crate::carry::{hint, hinted, keep, tell_foreign_as};
use crate::entry::entries;
use crate::json::{Object, array};
use crate::loss::{LossKind, Losses};

/// Where the answer's own unknown fields are kept.
const CANDIDATE: &str = "(candidate)";
/// Where further candidates are kept.
const OTHERS: &str = "(candidates)";

pub(super) fn lift(mut fields: Fields<'_>) -> Result<Transcript, Error> {
    let mut names = Names::default();
    let mut kept = Extra::new();
    let mut info = ResponseInfo {
        id: names.take_string(&mut fields, "responseId")?,
        ..ResponseInfo::default()
    };
    let mut transcript = Transcript {
        model: names.take_string(&mut fields, "modelVersion")?,
        ..Transcript::default()
    };
    match names.take(&mut fields, "candidates")? {
        None => hint(&mut kept, "~candidates", "absent"),
        Some(list) => {
            let error = |error: Error| error.at("candidates");
            let list: Vec<&RawValue> = serde_json::from_str(list.get())
                .map_err(|_| error(unexpected("an array", list.get())))?;
            match list.as_slice() {
                [] => hint(&mut kept, "~candidates", "empty"),
                [first, others @ ..] => {
                    transcript.items = candidate(first, &mut info, &mut names, &mut kept)
                        .map_err(|e| error(e.at_index(0)))?;
                    if !others.is_empty() {
                        kept.set(OTHERS, Raw::from_value(&others)?);
                    }
                }
            }
        }
    }
    let blocked = peek(&fields, "promptFeedback").and_then(|feedback| {
        Some(peek(&Fields::parse(feedback.get()).ok()?, "blockReason").is_some())
    });
    if info.finish.is_none() && blocked == Some(true) {
        info.finish = Some(FinishReason::ContentFilter);
        hint(&mut kept, "~finishReason", "absent");
    }
    if let Some(value) = names.take(&mut fields, "usageMetadata")? {
        info.usage = Some(usage(value).map_err(|error| error.at("usageMetadata"))?);
    }
    names.note(&mut kept);
    kept.extend(keep(fields.rest()));
    transcript.response = Some(info);
    transcript.extra.set_wire(FORMAT, kept);
    Ok(transcript)
}

fn candidate(
    value: &RawValue,
    info: &mut ResponseInfo,
    names: &mut Names,
    kept: &mut Extra,
) -> Result<Vec<Item>, Error> {
    let mut fields = Fields::parse(value.get())?;
    let mut items = Vec::new();
    match fields.take_present(&["content"])? {
        None => hint(kept, "~content", "absent"),
        Some(content) => {
            let mut ids = Ids::of_response(info.id.as_deref());
            items = read::answer(content, &mut ids).map_err(|error| error.at("content"))?;
        }
    }
    if let Some(word) = names.take_string(&mut fields, "finishReason")? {
        let calls = items
            .iter()
            .any(|item| matches!(item, Item::FunctionCall(_)));
        let finish = finish_from(&word, calls);
        if finish_word(&finish) != Some(word.as_str()) {
            hint(kept, "~finishReason", &word);
        }
        info.finish = Some(finish);
    }
    nest(kept, CANDIDATE, fields)?;
    Ok(items)
}

/// The reason in our words; the provider says `STOP` where the model wants functions run.
pub(super) fn finish_from(word: &str, calls: bool) -> FinishReason {
    match word {
        "STOP" if calls => FinishReason::ToolCalls,
        "STOP" => FinishReason::Stop,
        "MAX_TOKENS" => FinishReason::Length,
        "SAFETY"
        | "RECITATION"
        | "BLOCKLIST"
        | "PROHIBITED_CONTENT"
        | "SPII"
        | "IMAGE_SAFETY"
        | "IMAGE_PROHIBITED_CONTENT"
        | "IMAGE_RECITATION"
        | "MODEL_ARMOR" => FinishReason::ContentFilter,
        other => FinishReason::Other(other.to_owned()),
    }
}

/// The provider's word; `None` for another format's, which are in small letters.
fn finish_word(finish: &FinishReason) -> Option<&str> {
    match finish {
        FinishReason::Stop | FinishReason::ToolCalls => Some("STOP"),
        FinishReason::Length => Some("MAX_TOKENS"),
        FinishReason::ContentFilter => Some("SAFETY"),
        FinishReason::Other(_) => None,
    }
}

pub(super) fn usage(value: &RawValue) -> Result<Usage, Error> {
    let mut fields = Fields::parse(value.get())?;
    let kept = Fields::parse(value.get())?.rest();
    let mut names = Names::default();
    let mut count = |name| names.take_as::<u64>(&mut fields, name, "a whole number");
    let prompt = count("promptTokenCount")?;
    let tools = count("toolUsePromptTokenCount")?;
    let answer = count("candidatesTokenCount")?;
    let reasoning_tokens = count("thoughtsTokenCount")?;
    let mut usage = Usage {
        input_tokens: sum(prompt, tools),
        output_tokens: sum(answer, reasoning_tokens),
        total_tokens: count("totalTokenCount")?,
        cache_read_tokens: count("cachedContentTokenCount")?,
        cache_write_tokens: None,
        reasoning_tokens,
        extra: Extra::new(),
    };
    usage.extra.set_wire(FORMAT, kept);
    Ok(usage)
}

fn sum(a: Option<u64>, b: Option<u64>) -> Option<u64> {
    match (a, b) {
        (None, None) => None,
        _ => Some(a.unwrap_or(0).saturating_add(b.unwrap_or(0))),
    }
}

pub(super) fn lower(transcript: &Transcript) -> Lowered {
    let kept = transcript.extra.wire(FORMAT);
    let names = Names::of(&kept);
    let none = ResponseInfo::default();
    let info = transcript.response.as_ref().unwrap_or(&none);
    let mut losses = Losses::default();
    tell_foreign_as(&transcript.extra, FORMAT, "", LossKind::Field, &mut losses);

    let mut object = Object::new();
    let absent = hinted(&kept, "~candidates").filter(|_| transcript.items.is_empty());
    match absent.as_deref() {
        Some("absent") => {}
        Some(_) => {
            object.raw("candidates", "[]");
        }
        None => {
            let first = candidate_text(transcript, info, &names, &kept, &mut losses);
            let others: Vec<Raw> = kept
                .get(OTHERS)
                .and_then(|raw| raw.to().ok())
                .unwrap_or_default();
            let all = std::iter::once(first).chain(others.iter().map(|raw| raw.get().to_owned()));
            object.raw("candidates", &array(all));
        }
    }
    if let Some(usage) = &info.usage {
        let json = usage_text(usage, &mut losses);
        object.renamed("usageMetadata", &names.spell("usageMetadata"), &json);
    }
    if let Some(model) = &transcript.model {
        let json = contexture_ir::quote(model);
        object.renamed("modelVersion", &names.spell("modelVersion"), &json);
    }
    if let Some(id) = &info.id {
        let json = contexture_ir::quote(id);
        object.renamed("responseId", &names.spell("responseId"), &json);
    }
    let mut rest = kept;
    rest.remove(CANDIDATE);
    rest.remove(OTHERS);
    object.carried(&rest);
    Lowered {
        json: object.finish(),
        losses: losses.into_vec(),
    }
}

fn candidate_text(
    transcript: &Transcript,
    info: &ResponseInfo,
    names: &Names,
    kept: &Extra,
    losses: &mut Losses,
) -> String {
    let (content, inner) = write::answer(entries(&transcript.items).into_iter());
    losses.absorb("items", inner);
    let bare = kept.get("~content").is_some() && transcript.items.is_empty();
    let empty = "{\"role\":\"model\",\"parts\":[]}".to_owned();
    let mut object = Object::new();
    if !bare {
        object.raw("content", &content.unwrap_or(empty));
    }
    if let Some(word) = finish_text(info, kept, &transcript.items, losses) {
        let json = contexture_ir::quote(&word);
        object.renamed("finishReason", &names.spell("finishReason"), &json);
    }
    object.carried(&nested(kept, CANDIDATE));
    object.finish()
}

fn finish_text(
    info: &ResponseInfo,
    kept: &Extra,
    items: &[Item],
    losses: &mut Losses,
) -> Option<String> {
    let finish = info.finish.as_ref()?;
    let calls = items
        .iter()
        .any(|item| matches!(item, Item::FunctionCall(_)));
    let own = hinted(kept, "~finishReason");
    if let Some(word) = own.filter(|word| finish_from(word, calls) == *finish) {
        return Some(word);
    }
    if let Some(word) = finish_word(finish) {
        return Some(word.to_owned());
    }
    losses.push(
        "response.finish",
        LossKind::Value,
        "an unknown reason becomes OTHER",
    );
    Some("OTHER".to_owned())
}

fn usage_text(usage: &Usage, losses: &mut Losses) -> String {
    if usage
        .extra
        .wires()
        .iter()
        .any(|(format, _)| format != FORMAT)
    {
        let why = "the counts are kept, the provider's own account of them is not";
        losses.push("response.usage", LossKind::Field, why);
    }
    let mut object = Object::new();
    let own = usage.extra.wire(FORMAT);
    if !own.is_empty() {
        object.carried(&keep(own));
        return object.finish();
    }
    let thoughts = usage.reasoning_tokens;
    let answer = usage
        .output_tokens
        .map(|all| all.saturating_sub(thoughts.unwrap_or(0)));
    let mut add = |key: &'static str, count: Option<u64>| {
        object.maybe(key, count.map(|count| count.to_string()).as_deref());
    };
    add("promptTokenCount", usage.input_tokens);
    add("cachedContentTokenCount", usage.cache_read_tokens);
    add("candidatesTokenCount", answer);
    add("thoughtsTokenCount", thoughts);
    add(
        "totalTokenCount",
        usage
            .total_tokens
            .or_else(|| sum(usage.input_tokens, usage.output_tokens)),
    );
    object.finish()
}
