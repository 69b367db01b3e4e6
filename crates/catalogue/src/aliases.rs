//! The rules that take the names people and gateways use to the names in the table.
//!
//! Rules, each tried on what the ones before left over, the first that names a model winning:
//!
//! 1. Case does not matter, and `.`, `_` and `@` count as `-`: `claude-opus-4.8`, `claude-sonnet-4-5@20250929`.
//! 2. What stands before the last `/` is a route: `models/…`, `openrouter/anthropic/…`, `publishers/google/models/…`.
//! 3. `region.vendor.` before the name, `-v1` and a tag from `:` on are a cloud's or gateway's:
//!    `us.anthropic.claude-3-haiku-20240307-v1:0`, `deepseek/deepseek-r1:free`.
//! 4. A date or version at the end names a snapshot of the model: `-20260901`, `-2025-11-13`, `-09-2025`, `-0613`,
//!    `-001`, `-latest`, `-default`; so does `-preview` together with a date.
//! 5. A name without date stands for the newest dated model of that name.
//!
//! Nothing else is guessed: `gpt-5.1-mine` is not `gpt-5.1`.

/// Vendors as they stand in names of Amazon Bedrock.
const VENDORS: [&str; 9] = [
    "anthropic",
    "openai",
    "deepseek",
    "mistral",
    "meta",
    "google",
    "qwen",
    "moonshot",
    "xai",
];

/// The form in which names are compared.
pub(crate) fn normalize_name(name: &str) -> String {
    name.trim()
        .chars()
        .map(|c| match c {
            // Bedrock, Vertex and people write versions with any of these; the table uses dashes.
            '.' | '_' | '@' => '-',
            c => c.to_ascii_lowercase(),
        })
        .collect()
}

/// The normal forms a name may stand for, most literal first.
pub(crate) fn candidate_names(name: &str) -> Vec<String> {
    // From literal to liberal. Every step works on what the step before left, so the first match is the closest
    // reading.
    let name = name.trim();
    let mut found: Vec<String> = Vec::new();
    let mut add = |name: &str| {
        let name = normalize_name(name);
        if !name.is_empty() && !found.contains(&name) {
            found.push(name);
        }
    };
    add(name);
    let name = name.rsplit('/').next().unwrap_or(name);
    add(name);
    let name = without_vendor(name);
    let name = name.split(':').next().unwrap_or(name);
    add(name);
    let name = ["-v1", "-v2"]
        .into_iter()
        .find_map(|version| name.strip_suffix(version))
        .unwrap_or(name);
    add(name);
    let name = normalize_name(name);
    // A snapshot falls back to the undated model, never to another snapshot.
    if let Some(base) = strip_date_suffix(&name) {
        add(base);
        if let Some(base) = base.strip_suffix("-preview") {
            add(base);
        }
    }
    found
}

/// Cuts `region.vendor.` off.
fn without_vendor(name: &str) -> &str {
    let mut rest = name;
    // Two labels at most, region and vendor. More dots belong to the name itself, as in `claude-opus-4.8`.
    for _ in 0..2 {
        let Some((label, tail)) = rest.split_once('.') else {
            break;
        };
        rest = tail;
        if VENDORS.contains(&label) {
            return rest;
        }
    }
    name
}

/// A normal name without the date or version at its end.
pub(crate) fn strip_date_suffix(name: &str) -> Option<&str> {
    // Digits per dash-separated group, longest shapes first: `2025-11-13` must not be taken for a lone `13`.
    const SHAPES: [&[usize]; 6] = [&[4, 2, 2], &[8], &[2, 4], &[2, 2], &[4], &[3]];
    if let Some(base) = ["-latest", "-default"]
        .into_iter()
        .find_map(|suffix| name.strip_suffix(suffix))
    {
        return Some(base);
    }
    // The shape is matched from the end, since the name before it may hold digits and dashes of its own.
    SHAPES.into_iter().find_map(|shape| {
        let base = shape.iter().rev().try_fold(name, |name, &digits| {
            let (base, part) = name.rsplit_once('-')?;
            (part.len() == digits && part.bytes().all(|byte| byte.is_ascii_digit())).then_some(base)
        })?;
        (!base.is_empty()).then_some(base)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_and_versions_come_off() {
        for (name, expected) in [
            ("gpt-5-1-2025-11-13", Some("gpt-5-1")),
            ("claude-sonnet-5-20260901", Some("claude-sonnet-5")),
            (
                "gemini-3-flash-preview-09-2025",
                Some("gemini-3-flash-preview"),
            ),
            (
                "gemini-2-5-pro-preview-05-06",
                Some("gemini-2-5-pro-preview"),
            ),
            ("gpt-4-0613", Some("gpt-4")),
            ("gemini-2-0-flash-001", Some("gemini-2-0-flash")),
            ("chatgpt-latest", Some("chatgpt")),
            ("gpt-5-1", None),
            ("o1", None),
            ("-20250101", None),
            ("", None),
        ] {
            assert_eq!(strip_date_suffix(name), expected, "{name}");
        }
    }
}
