//! Pagination: page lengths, and cursors that say where the next page begins.
//!
//! A cursor carries a checksum over owner, list and position, so that one of another list, or a made-up one, is refused. It
//! is no secret: it leads nowhere but into the owner's own lists.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use contexture::Owner;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use utoipa::IntoParams;

use crate::problem::{Code, Problem};

/// The longest page, in entries.
pub(crate) const MAX_LIMIT: usize = 500;

/// The length of a page after another one, if none is asked for.
const DEFAULT_LIMIT: usize = 100;

const CHECK_BYTES: usize = 8;
// Never changed: cursors that clients hold would stop working.
const DOMAIN: &str = "contexture 2026-11 place in a list";

/// Checks the length of a page.
pub(crate) fn page_length(limit: Option<usize>, default: usize) -> Result<usize, Problem> {
    let length = limit.unwrap_or(default);
    if (1..=MAX_LIMIT).contains(&length) {
        return Ok(length);
    }
    Err(Problem::new(
        Code::BadQuery,
        format!("`limit` is {length}; from 1 to {MAX_LIMIT}"),
    ))
}

/// The page of a list that is short as a rule: without a length all of it.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct PageParams {
    /// Maximum number of entries. Default: all of them, or 100 with `after`.
    #[param(minimum = 1, maximum = 500)]
    pub(crate) limit: Option<usize>,
    /// Value of `next` of the previous page. Default: the first page.
    pub(crate) after: Option<String>,
}

impl PageParams {
    /// Returns the length that is asked for; `None` for all of the list.
    pub(crate) fn length(&self) -> Result<Option<usize>, Problem> {
        match (self.limit, &self.after) {
            (None, None) => Ok(None),
            (limit, _) => page_length(limit, DEFAULT_LIMIT).map(Some),
        }
    }

    /// Returns the place after which the page begins, in a list of the owner's; `None` for the first page.
    pub(crate) fn cursor_position<T: DeserializeOwned>(
        &self,
        owner: &Owner,
        list: &str,
    ) -> Result<Option<T>, Problem> {
        let cursor = self.after.as_deref();
        cursor
            .map(|cursor| decode_cursor(owner, list, cursor))
            .transpose()
    }
}

/// Cuts the page that is asked for out of a list, with the cursor of the next one. `key` names an entry in the list.
pub(crate) fn cut_page<T>(
    owner: &Owner,
    list: &str,
    mut entries: Vec<T>,
    asked: &PageParams,
    key: impl Fn(&T) -> String,
) -> Result<(Vec<T>, Option<String>), Problem> {
    let Some(length) = asked.length()? else {
        return Ok((entries, None));
    };
    if let Some(last) = asked.cursor_position::<String>(owner, list)? {
        let index = entries.iter().position(|entry| key(entry) == last);
        let Some(index) = index else {
            let detail = "what this page would follow is no longer in the list: begin again";
            return Err(Problem::new(Code::BadCursor, detail));
        };
        entries.drain(..=index);
    }
    let is_last = entries.len() <= length;
    entries.truncate(length);
    let last = entries.last().filter(|_| !is_last);
    let next = last.map(|last| encode_cursor(owner, list, &key(last)));
    Ok((entries, next))
}

/// Encodes a position in a list of the owner's.
pub(crate) fn encode_cursor(owner: &Owner, list: &str, place: &impl Serialize) -> String {
    let place = serde_json::to_vec(place).unwrap_or_default();
    let mut bytes = cursor_checksum(owner, list, &place).to_vec();
    bytes.extend(place);
    URL_SAFE_NO_PAD.encode(bytes)
}

/// Decodes the position that a cursor names in this list.
pub(crate) fn decode_cursor<T: DeserializeOwned>(
    owner: &Owner,
    list: &str,
    cursor: &str,
) -> Result<T, Problem> {
    let found = URL_SAFE_NO_PAD.decode(cursor).ok().and_then(|bytes| {
        let (checksum, place) = bytes.split_at_checked(CHECK_BYTES)?;
        (checksum == cursor_checksum(owner, list, place))
            .then(|| serde_json::from_slice(place).ok())?
    });
    found.ok_or_else(|| {
        let detail = "this cursor was not given by this list: take `next` of a page as it is";
        Problem::new(Code::BadCursor, detail)
    })
}

fn cursor_checksum(owner: &Owner, list: &str, place: &[u8]) -> [u8; CHECK_BYTES] {
    let mut hasher = blake3::Hasher::new_derive_key(DOMAIN);
    for part in [owner.as_str().as_bytes(), list.as_bytes(), place] {
        // Length-prefixed, so that no two splits of the same bytes have one checksum.
        hasher.update(&(part.len() as u64).to_le_bytes());
        hasher.update(part);
    }
    let mut out = [0; CHECK_BYTES];
    hasher.finalize_xof().fill(&mut out);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_given_is_taken() {
        let (ada, bob) = (Owner::new("ada").unwrap(), Owner::new("bob").unwrap());
        let given = encode_cursor(&ada, "conversations", &(7, "c"));
        assert_eq!(
            decode_cursor::<(i64, String)>(&ada, "conversations", &given).unwrap(),
            (7, "c".to_owned())
        );
        let mut forged = given.clone().into_bytes();
        forged[12] ^= 1;
        let forged = String::from_utf8(forged).unwrap();
        for (owner, list, cursor) in [
            (&bob, "conversations", given.as_str()),
            (&ada, "search", &given),
            (&ada, "conversations", &forged),
            (&ada, "conversations", ""),
            (&ada, "conversations", "é"),
        ] {
            decode_cursor::<(i64, String)>(owner, list, cursor).unwrap_err();
        }
    }
}
