//! A request that goes on from another: the same bytes, with more messages behind its history.
//!
//! What a provider has cached of the first request is read by the second, because nothing of its prefix differs. Only members of
//! which the provider says that they are no part of it may: a stream, the limit of the answer, whether the answer is kept
//! ([`FreeMembers`](crate::FreeMembers)). They are replaced where they stand; every other byte is copied.
//!
//! Not here: what is asked (a summary, in `contexture-condense`), and what reading the cache saves (`contexture-prompt-cache`).

use std::ops::Range;

use contexture_ir::{Fields, Item, ResponseFormat, ToolChoice, Transcript, slice_range};
use serde_json::value::RawValue;

use crate::document::{lift, lower_run};
use crate::model::conversion::DocumentKind;
use crate::model::format::Format;
use crate::model::paired_item::{Side, paired_items};
use crate::model::prompt_cache::FreeMembers;
use crate::turns::{MESSAGE_END, continued_message, role_runs, spoken_side};

/// The member by which a request asks its provider to shorten the history itself.
pub(crate) const CONTEXT_EDITS: &str = "context_management";

/// A text shorter than this is no use: a limit of the answer below it is an obstacle where it cannot be raised.
const LEAST_ANSWER: u64 = 2_048;

/// Why a request cannot be continued with a question of another kind. Each reads as the end of "not asked: …".
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ContinueObstacle {
    /// It cannot be read, or is no request.
    #[error("the request cannot be read as one of {format}")]
    Unreadable {
        /// The format it should have.
        format: Format,
    },
    /// It has no list of messages to go on from.
    #[error("the request has no list of messages")]
    NoMessages,
    /// Its last message cannot be continued without changing it.
    #[error(
        "the provider takes no two messages of one side, and the last one cannot be continued as it is written"
    )]
    NoSeam,
    /// The model has to call a tool, or one of some.
    #[error("the request forces a tool call")]
    ForcedTool,
    /// The answer has to follow a schema, or to be JSON.
    #[error("the request prescribes the form of its answer")]
    AnswerForm,
    /// Several answers are asked for, or one in the background.
    #[error("the request asks for several answers, or for one in the background")]
    SeveralAnswers,
    /// The provider holds a part of the history.
    #[error("the provider holds a part of the history")]
    ProviderHistory,
    /// The provider shortens the history itself.
    #[error("the provider is asked to shorten the history itself")]
    ProviderEdits,
    /// It ends with the beginning of its answer.
    #[error("the request begins its own answer")]
    Prefill,
    /// The answer may not be long enough, and its limit must stay.
    #[error(
        "the answer is limited to {limit} tokens, and this provider's limit is not known to be free to change"
    )]
    ShortAnswer {
        /// The limit of the answer, in tokens.
        limit: u64,
    },
}

/// Returns a request with items behind its history, for an answer of up to `answer_tokens` tokens. All else stays as it is written,
/// but for the format's [free members](crate::FreeMembers).
///
/// ```
/// use contexture_ir::{Item, Message, Role};
/// use contexture_wire::{Format, continue_request};
///
/// let sent = r#"{"model":"gpt-4o","messages":[{"role":"user","content":"hi"}],"stream":true}"#;
/// let more = [Item::from(Message::text(Role::User, "Sum up."))];
/// let next = continue_request(Format::OpenAiChat, sent, &more, 4_096)?;
/// assert!(next.starts_with(r#"{"model":"gpt-4o","messages":[{"role":"user","content":"hi"},{"#));
/// assert!(next.ends_with(r#"],"stream":false}"#));
/// # Ok::<(), contexture_wire::ContinueObstacle>(())
/// ```
///
/// # Errors
/// [`ContinueObstacle`].
pub fn continue_request(
    format: Format,
    request: &str,
    items: &[Item],
    answer_tokens: u64,
) -> Result<String, ContinueObstacle> {
    let unreadable = ContinueObstacle::Unreadable { format };
    let lifted = lift(format, request).map_err(|_| unreadable)?;
    let members = format.spec().members();
    let (DocumentKind::Request, Some(members)) = (lifted.kind, members) else {
        return Err(unreadable);
    };
    let fields = Fields::parse(request).map_err(|_| unreadable)?;
    if let Some(obstacle) = find_obstacle(format, &fields, &lifted.transcript) {
        return Err(obstacle);
    }
    let history = fields.get(&[members.history]);
    let history = history.ok_or(ContinueObstacle::NoMessages)?;
    let mut edits = vec![append_messages(format, request, history, items)?];
    let free = &format.spec().cache_key().free;
    edits.extend(set_free_members(request, &fields, free)?);
    edits.extend(raise_limit(
        request,
        &fields,
        free,
        &lifted.transcript,
        answer_tokens,
    )?);
    apply_edits(request, edits).ok_or(unreadable)
}

/// A part of a text, and what stands there instead.
type Edit = (Range<usize>, String);

/// Finds what speaks against going on from a request with a question of ours.
fn find_obstacle(
    format: Format,
    fields: &Fields<'_>,
    transcript: &Transcript,
) -> Option<ContinueObstacle> {
    let spec = format.spec();
    let member = |name: &str| fields.get(&[name]).filter(|value| value.get() != "null");
    let held = spec.members().map_or(&[][..], |all| all.provider_history);
    if held.iter().any(|name| member(name).is_some()) {
        return Some(ContinueObstacle::ProviderHistory);
    }
    let cuts = |(name, value): (&str, &RawValue)| spec.asks_to_cut(name, value.get());
    if member(CONTEXT_EDITS).is_some() || fields.iter().any(cuts) {
        return Some(ContinueObstacle::ProviderEdits);
    }
    if spec
        .proxy()
        .is_some_and(|edits| !edits.is_single_answer(&member))
    {
        return Some(ContinueObstacle::SeveralAnswers);
    }
    // A choice that only one format knows may name the tools that must be called, so it counts as forced.
    let is_free = matches!(
        transcript.options.tool_choice,
        None | Some(ToolChoice::Auto | ToolChoice::None)
    );
    if !is_free {
        return Some(ContinueObstacle::ForcedTool);
    }
    if !matches!(
        transcript.options.response_format,
        None | Some(ResponseFormat::Text)
    ) {
        return Some(ContinueObstacle::AnswerForm);
    }
    let spoken = transcript.items.iter().rev();
    let last = spoken.filter_map(|item| spoken_side(item, format)).next();
    (last == Some(Side::Model)).then_some(ContinueObstacle::Prefill)
}

/// Puts items behind the last message of a history.
fn append_messages(
    format: Format,
    request: &str,
    history: &RawValue,
    items: &[Item],
) -> Result<Edit, ContinueObstacle> {
    let messages: Vec<&RawValue> =
        serde_json::from_str(history.get()).map_err(|_| ContinueObstacle::NoMessages)?;
    let last = messages.last().ok_or(ContinueObstacle::NoMessages)?;
    let place = slice_range(request, last.get()).ok_or(ContinueObstacle::NoMessages)?;
    let entries = paired_items(items);
    let dialect = format.spec().dialect();
    let runs = role_runs(&entries, format);
    let chunks: Vec<String> = runs
        .iter()
        .map(|run| lower_run(&dialect, run).json)
        .filter(|chunk| !chunk.is_empty())
        .collect();
    let added = chunks.join(",");
    // The last message is of the user's side: only more of that side has to stand in the same message.
    let is_same_side = runs.first().is_none_or(|run| run.side == Side::User);
    if !is_same_side || !format.spec().structure().alternating_turns {
        return Ok((place.end..place.end, format!(",{added}")));
    }
    // The parts go into the last message, behind those that it has.
    let skipped = continued_message(format, last.get(), &added);
    let parts = skipped.and_then(|skipped| added.get(skipped..));
    let parts = parts.ok_or(ContinueObstacle::NoSeam)?;
    let seam = place.end.saturating_sub(MESSAGE_END.len());
    Ok((seam..place.end, format!(",{parts}")))
}

/// Asks for a whole answer that the provider does not keep.
fn set_free_members(
    request: &str,
    fields: &Fields<'_>,
    free: &FreeMembers,
) -> Result<Vec<Edit>, ContinueObstacle> {
    let mut edits = Vec::new();
    for (name, value) in free.not_streamed {
        if let Some(before) = fields.get(&[name]) {
            edits.push((value_range(request, before)?, (*value).to_owned()));
        }
    }
    let Some(stored) = free.stored else {
        return Ok(edits);
    };
    match fields.get(&[stored.member]) {
        Some(before) => edits.push((value_range(request, before)?, "false".to_owned())),
        // Where nothing is kept unless asked for, hosts that do not know the member are not sent it.
        None if stored.by_default => {
            let end = request.rfind('}').ok_or(ContinueObstacle::NoMessages)?;
            edits.push((end..end, format!(",\"{}\":false", stored.member)));
        }
        None => {}
    }
    Ok(edits)
}

/// Raises the limit of an answer where it is too low.
fn raise_limit(
    request: &str,
    fields: &Fields<'_>,
    free: &FreeMembers,
    transcript: &Transcript,
    answer_tokens: u64,
) -> Result<Option<Edit>, ContinueObstacle> {
    let options = &transcript.options;
    let thinking = options.reasoning.as_ref();
    // Thoughts are counted as part of the answer, and come before its text.
    let thinking = thinking.and_then(|thinking| thinking.budget_tokens);
    let needed = |text: u64| text.saturating_add(thinking.unwrap_or(0));
    let Some(limit) = options
        .max_output_tokens
        .filter(|limit| *limit < needed(answer_tokens))
    else {
        return Ok(None);
    };
    match fields.get(free.output_limit) {
        Some(before) => {
            let raised = needed(answer_tokens).to_string();
            Ok(Some((value_range(request, before)?, raised)))
        }
        None if limit < needed(LEAST_ANSWER) => Err(ContinueObstacle::ShortAnswer { limit }),
        None => Ok(None),
    }
}

fn value_range(request: &str, value: &RawValue) -> Result<Range<usize>, ContinueObstacle> {
    slice_range(request, value.get()).ok_or(ContinueObstacle::NoMessages)
}

/// Replaces parts of a text that do not overlap.
fn apply_edits(text: &str, mut edits: Vec<Edit>) -> Option<String> {
    edits.sort_by_key(|(range, _)| range.start);
    let mut edited = String::with_capacity(text.len() + 8_192);
    let mut done = 0;
    for (range, new) in edits {
        edited.push_str(text.get(done..range.start)?);
        edited.push_str(&new);
        done = range.end;
    }
    edited.push_str(text.get(done..)?);
    Some(edited)
}
