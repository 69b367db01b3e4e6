//! Names in title case, for headings: `styleGuide` → `Style Guide`.
//!
//! Answers are those of the JavaScript package `stringcase` 4.3.1 (MIT), so that headings equal those
//! of programs that use it: words are cut at capitals, `-`, `.`, `:`, `_` and white space; of a run of
//! capitals the last begins the next word (`HTTPServer` → `Http Server`); a few small words stay
//! small.

const SMALL: [&str; 9] = ["a", "the", "and", "or", "not", "but", "for", "of", ""];

/// The name in title case.
pub(super) fn title_case(name: &str) -> String {
    let snake = snake_case(name);
    let mut out = String::with_capacity(snake.len());
    for (index, word) in snake.split('_').enumerate() {
        if index > 0 {
            out.push(' ');
        }
        push_word(&mut out, word.trim_matches(is_space));
    }
    out
}

fn push_word(out: &mut String, word: &str) {
    let mut chars = word.chars();
    match chars.next() {
        // ECMAScript upper-cases one UTF-16 unit: characters beyond the basic plane stay.
        Some(first) if !SMALL.contains(&word) && u32::from(first) <= 0xFFFF => {
            out.extend(first.to_uppercase());
            out.push_str(chars.as_str());
        }
        _ => out.push_str(word),
    }
}

fn snake_case(name: &str) -> String {
    // The common case: already in the form that the rest would make.
    if !name.is_empty() && name.bytes().all(|b| b.is_ascii_lowercase() || b == b'_') {
        return name.to_owned();
    }
    let is_cut = |c: char| matches!(c, '-' | '.' | ':') || is_space(c);
    let name: Vec<char> = name
        .chars()
        .map(|c| if is_cut(c) { '_' } else { c })
        .collect();
    let mut out = String::with_capacity(name.len() + 8);
    // Without a small letter there are no seams to find, as in `HTTP_STATUS`.
    if !name.iter().any(char::is_ascii_lowercase) {
        name.iter().for_each(|c| out.extend(c.to_lowercase()));
        return collapse_underscores(&out);
    }
    let mut rest = name.as_slice();
    while let Some((first, after)) = rest.split_first() {
        let run = rest.iter().take_while(|c| c.is_ascii_uppercase()).count();
        let (capitals, behind) = rest.split_at(run);
        let Some((last, all_but_last)) = capitals.split_last() else {
            out.push(*first);
            rest = after;
            continue;
        };
        // No underscore before the first word.
        if rest.len() < name.len() {
            out.push('_');
        }
        out.extend(all_but_last.iter().map(char::to_ascii_lowercase));
        // Of a run of capitals the last begins the next word, unless the run ends the word.
        if run > 1 && behind.first() != Some(&'_') {
            out.push('_');
        }
        out.push(last.to_ascii_lowercase());
        rest = behind;
    }
    collapse_underscores(&out)
}

fn collapse_underscores(snake: &str) -> String {
    let mut out = String::with_capacity(snake.len());
    for c in snake.chars() {
        if c != '_' || !out.ends_with('_') {
            out.push(c);
        }
    }
    out
}

/// What `\s` and `trim` mean in ECMAScript.
fn is_space(c: char) -> bool {
    c.is_whitespace() && c != '\u{85}' || c == '\u{feff}'
}

#[cfg(test)]
mod tests {
    use super::title_case;

    #[test]
    fn titles() {
        for (name, expected) in [
            ("hint", "Hint"),
            ("a", "a"),
            ("styleGuide", "Style Guide"),
            ("userAPIKey", "User Api Key"),
            ("HTTPServer", "Http Server"),
            ("fooBarBAZ", "Foo Bar Ba Z"),
            ("v2API", "V2 Ap I"),
            ("level1", "Level1"),
            ("ABC", "Abc"),
            ("the_end", "the End"),
            ("table of contents", "Table of Contents"),
            ("_lead", " Lead"),
            ("名前", "名前"),
            ("", ""),
        ] {
            assert_eq!(title_case(name), expected, "{name:?}");
        }
    }
}
