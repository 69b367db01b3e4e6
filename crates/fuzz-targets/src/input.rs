//! How an input is cut into the parts that a target needs, what targets assert of what they wrote, and seeds out of
//! recordings.

use contexture_testdata as testdata;
use contexture_wire::Format;
use serde_json::Value;

/// Longer recordings are left out: mutations of them are slow and reach nothing new.
const LONGEST: usize = 8 << 10;

/// Cuts a choice off the input: its first byte says which of `choices` is meant, so that one target covers all formats.
/// `None` for an empty input.
pub(crate) fn split_choice<'d, T: Copy>(choices: &[T], data: &'d [u8]) -> Option<(T, &'d [u8])> {
    let (first, rest) = data.split_first()?;
    Some((choices[usize::from(*first) % choices.len()], rest))
}

/// As [`split_choice`], for parsers of text. `None` also if the rest is not UTF-8.
pub(crate) fn split_text_choice<'d, T: Copy>(
    choices: &[T],
    data: &'d [u8],
) -> Option<(T, &'d str)> {
    let (choice, rest) = split_choice(choices, data)?;
    Some((choice, std::str::from_utf8(rest).ok()?))
}

/// The input that [`split_choice`] reads as the choice of this index and these bytes.
pub(crate) fn join_choice(index: usize, rest: impl AsRef<[u8]>) -> Vec<u8> {
    let mut data = vec![u8::try_from(index).unwrap()];
    data.extend_from_slice(rest.as_ref());
    data
}

/// Fails if the output is out of all proportion to the input. The factor allows for what a format adds around an empty
/// element; growth that is quadratic or exponential passes it within a few thousand bytes.
#[track_caller]
pub(crate) fn assert_bounded(what: &str, input: usize, output: usize) {
    let most = input.saturating_mul(64) + (64 << 10);
    assert!(
        output <= most,
        "{what}: {output} bytes were made of {input}"
    );
}

/// The JSON value of a text; `None` if a value cannot hold it, as numbers beyond 64-bit floats or half a character.
pub(crate) fn value_of(json: &str) -> Option<Value> {
    serde_json::from_str(json).ok()
}

/// Fails if a text is no JSON.
#[track_caller]
pub(crate) fn assert_json(what: &str, json: &str) {
    if let Err(error) = serde_json::from_str::<&serde_json::value::RawValue>(json) {
        panic!("{what} is no JSON: {error}\n{json}");
    }
}

/// Fails if two JSON texts have different values. Numbers are compared by what they are worth: `-0` is `0.0`. A text that
/// [`value_of`] cannot hold is not compared.
#[track_caller]
pub(crate) fn assert_same_value(what: &str, written: &str, read: &str) {
    let (Some(left), Some(right)) = (value_of(written), value_of(read)) else {
        return;
    };
    assert!(
        is_same(&left, &right),
        "{what}: written {written}\nread {read}"
    );
}

fn is_same(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => {
            left == right || left.as_f64() == right.as_f64()
        }
        (Value::Array(left), Value::Array(right)) => {
            let mut pairs = left.iter().zip(right);
            left.len() == right.len() && pairs.all(|(left, right)| is_same(left, right))
        }
        (Value::Object(left), Value::Object(right)) => {
            let is_kept = |(key, value)| {
                let kept = left.get(key);
                kept.is_some_and(|kept| is_same(kept, value))
            };
            left.len() == right.len() && right.iter().all(is_kept)
        }
        _ => left == right,
    }
}

/// Keeps at most `most` of the short texts, evenly spread over them.
pub(crate) fn pick_short(texts: Vec<String>, most: usize) -> Vec<String> {
    let short: Vec<String> = texts
        .into_iter()
        .filter(|text| text.len() <= LONGEST)
        .collect();
    let step = short.len().div_ceil(most).max(1);
    short.into_iter().step_by(step).collect()
}

/// The recorded requests and answers of a provider.
pub(crate) fn provider_documents(format: Format) -> Vec<String> {
    let mut texts = Vec::new();
    for exchange in testdata::exchanges(format.as_str()) {
        texts.push(exchange.request.get().to_owned());
        texts.extend(exchange.response.map(|answer| answer.get().to_owned()));
    }
    texts
}

/// The bytes of the recorded streams of a provider.
pub(crate) fn provider_streams(format: Format) -> Vec<Vec<u8>> {
    let exchanges = testdata::exchanges(format.as_str()).into_iter();
    let streams = exchanges.filter_map(|exchange| {
        let text = exchange.stream.map(String::into_bytes);
        text.or(exchange.event_stream)
    });
    let mut streams: Vec<Vec<u8>> = streams.filter(|bytes| bytes.len() <= LONGEST).collect();
    streams.truncate(20);
    streams
}
