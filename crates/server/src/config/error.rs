//! Why a configuration cannot be used.

use crate::config::line_numbers::{ConfigFault, line_number, line_of_path};

/// An error in a configuration: the file, the line, the key, and what is wrong with it.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{file}{}: {}{why}", LineSuffix(*line), KeyPrefix(key.as_deref()))]
pub struct ConfigError {
    /// Name of the configuration file.
    pub file: String,
    /// Line of the error, counted from 1; `None` if it is about no line.
    pub line: Option<usize>,
    /// Key of the error, such as `routes[1].policy`; `None` if it is about no key.
    pub key: Option<String>,
    /// Description of the error, in lower case and without a full stop.
    pub why: String,
}

impl ConfigError {
    pub(crate) fn new(file: &str, why: impl Into<String>) -> Self {
        Self {
            file: file.to_owned(),
            line: None,
            key: None,
            why: why.into(),
        }
    }

    /// The page of the documentation that describes the key, or all keys; `None` if the file itself is missing.
    #[must_use]
    pub fn page(&self) -> Option<&'static str> {
        const ALL: &str = "docs/http.md#configuration";
        let Some(key) = &self.key else {
            return self.line.map(|_| ALL);
        };
        let section = key.split(['.', '[']).next().unwrap_or_default();
        Some(match section {
            "policies" | "routes" | "models" => "docs/proxy.md#policies",
            _ if key.ends_with("dollars_per_day") => "docs/proxy.md#limits-in-dollars",
            "upstreams" => "docs/proxy.md#upstreams",
            "keys" => "docs/http.md#authentication",
            "retention" => "docs/operations.md#retention",
            _ => ALL,
        })
    }

    /// Converts the parser's error. The line itself is not shown, as it may hold a secret.
    pub(crate) fn from_syntax_error(file: &str, text: &str, error: &toml::de::Error) -> Self {
        let start = error.span().map(|span| span.start);
        Self {
            line: start.map(|start| line_number(text, start)),
            key: start.and_then(|start| key_on_line(text, start)),
            ..Self::new(file, syntax_fault(text, start, error.message()))
        }
    }

    pub(crate) fn from_fault(file: &str, text: &str, fault: &ConfigFault) -> Self {
        Self {
            line: line_of_path(text, &fault.path),
            key: Some(fault.key_path()),
            ..Self::new(file, fault.why.clone())
        }
    }
}

/// Returns what is wrong at a place of the file, and how a list of tables is written where one table stands in its place.
fn syntax_fault(text: &str, start: Option<usize>, message: &str) -> String {
    let why = in_words_of_file(message);
    let line = start.and_then(|start| {
        let begin = text.get(..start)?.rfind('\n').map_or(0, |end| end + 1);
        text.get(begin..)?.lines().next()
    });
    let header = line.map(str::trim).unwrap_or_default();
    match header
        .strip_prefix('[')
        .and_then(|rest| rest.split(']').next())
    {
        Some(name) if message.contains("expected a sequence") && !name.starts_with('[') => {
            format!("there may be several of these: write [[{name}]]")
        }
        _ => why,
    }
}

/// Returns the parser's message in the words of the file, which has no types of this program.
fn in_words_of_file(message: &str) -> String {
    const WORDS: [(&str, &str); 9] = [
        (
            "invalid socket address syntax",
            "invalid socket address syntax; expected an address and a port, such as 127.0.0.1:8484",
        ),
        ("expected usize", "expected a whole number"),
        ("expected u64", "expected a whole number"),
        ("expected u32", "expected a whole number"),
        (
            "expected a nonzero u32",
            "expected a whole number, at least 1",
        ),
        (
            "expected a sequence",
            "expected a list, such as [\"a\", \"b\"]",
        ),
        ("expected a map", "expected a table"),
        ("expected path string", "expected a path"),
        ("invalid type: map", "invalid type: a table"),
    ];
    let message = without_type_names(&message.replace('\n', ", "));
    WORDS.into_iter().fold(message, |message, (theirs, ours)| {
        message.replace(theirs, ours)
    })
}

/// Replaces what a parser says of types, `struct WindowConfig`, by what a file has in that place.
fn without_type_names(message: &str) -> String {
    let mut out: Vec<String> = Vec::new();
    let mut words = message.split(' ');
    while let Some(word) = words.next() {
        let in_file = match word {
            "struct" => "a table",
            "enum" => "a word or a table",
            _ => {
                out.push(word.to_owned());
                continue;
            }
        };
        let name = words.next().unwrap_or_default();
        // What stands behind the name belongs to the sentence.
        let rest = name.trim_start_matches(|c: char| c.is_alphanumeric() || c == '_');
        out.push(format!("{in_file}{rest}"));
    }
    out.join(" ")
}

/// Returns the key in the line of a byte, with the section that it stands in: `policies.frugal.window`, `keys[0].name`.
fn key_on_line(text: &str, byte: usize) -> Option<String> {
    let before = text.get(..byte)?;
    let start = before.rfind('\n').map_or(0, |newline| newline + 1);
    let line = text.get(start..)?.lines().next()?.trim();
    let above = text.get(..start)?;
    if line.starts_with('[') {
        return section_name(above, line);
    }
    let key = line.split_once('=').map(|(key, _)| key.trim());
    let key = key.filter(|key| !key.is_empty())?;
    // The last header above, and what stands above that.
    let header = above
        .lines()
        .rev()
        .find(|line| line.trim().starts_with('['));
    let section = header.and_then(|header| {
        let end = above.rfind(header)?;
        section_name(above.get(..end)?, header.trim())
    });
    Some(match section {
        Some(section) => format!("{section}.{key}"),
        None => key.to_owned(),
    })
}

/// Returns the name in the header of a section, with a number if it is one of several: `keys[0]`.
fn section_name(above: &str, header: &str) -> Option<String> {
    let name = header.trim_start_matches('[').split(']').next()?.trim();
    if !header.starts_with("[[") {
        return Some(name.to_owned());
    }
    let is_same = |line: &&str| {
        let inner = line.trim().strip_prefix("[[");
        inner
            .and_then(|inner| inner.split(']').next())
            .map(str::trim)
            == Some(name)
    };
    Some(format!("{name}[{}]", above.lines().filter(is_same).count()))
}

struct LineSuffix(Option<usize>);

impl std::fmt::Display for LineSuffix {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.map_or(Ok(()), |line| write!(f, ":{line}"))
    }
}

struct KeyPrefix<'a>(Option<&'a str>);

impl std::fmt::Display for KeyPrefix<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.map_or(Ok(()), |key| write!(f, "{key}: "))
    }
}

#[cfg(test)]
mod tests {
    use crate::config::root::Config;

    #[test]
    fn errors_are_in_the_words_of_the_file() {
        for (text, expected) in [
            ("[policies.p]\nwindow = 5", "policies.p.window"),
            ("[models.m]\nwindow = \"big\"", "models.m.window"),
            ("[upstreams]\nopenai = 5", "upstreams.openai"),
            ("keys = 5", "keys"),
            (
                "[server.limits]\nconnections = []",
                "server.limits.connections",
            ),
            ("[[retention]]\nowner = 5\ndays = 1", "retention[0].owner"),
        ] {
            let error = Config::parse(text, "c.toml").unwrap_err();
            let said = error.to_string();
            assert!(said.contains(expected), "{said}");
            for word in ["struct", "Config", "enum", "usize", "u64", "::"] {
                assert!(!said.contains(word), "{word} in {said}");
            }
        }
    }

    #[test]
    fn a_table_in_the_place_of_a_list_says_how_it_is_written() {
        for name in ["retention", "keys", "routes"] {
            let text = format!("\n[{name}]\ndays = 1\n");
            let said = Config::parse(&text, "c.toml").unwrap_err().to_string();
            assert!(said.starts_with("c.toml:2: "), "{said}");
            assert!(said.ends_with(&format!("write [[{name}]]")), "{said}");
        }
    }

    #[test]
    fn errors_name_a_heading_that_is_there_and_tells_of_the_key() {
        let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../../");
        for (text, section) in [
            ("[policies.p]\nwindow = 5", "[policies."),
            ("[[routes]]\npolicy = 5", "[[routes]]"),
            ("[models.m]\nwindow = \"big\"", "[models."),
            ("[upstreams]\nopenai = 5", "[upstreams."),
            ("keys = 5", "contexture keys new"),
            ("[server]\nskills = 5", "skills = "),
            ("[server.limits]\nconnections = []", "[server.limits]"),
            ("[server.limits]\ndollars_per_day = []", "dollars_per_day"),
            ("[[retention]]\nowner = 5\ndays = 1", "[[retention]]"),
        ] {
            let error = Config::parse(text, "c.toml").unwrap_err();
            let (file, anchor) = error.page().unwrap().split_once('#').unwrap();
            let page = std::fs::read_to_string(format!("{root}{file}")).unwrap();
            let heading = |line: &str| {
                let words = line.trim_start_matches('#').trim().to_lowercase();
                line.starts_with("## ") && words.replace(' ', "-") == anchor
            };
            let mut lines = page.lines().skip_while(|line| !heading(line));
            assert!(lines.next().is_some(), "{file} has no heading {anchor}");
            let mut told = lines.take_while(|line| !line.starts_with("## "));
            assert!(
                told.any(|line| line.contains(section)),
                "{file}#{anchor}: {section}"
            );
        }
    }
}
