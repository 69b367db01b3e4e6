//! Parses `SKILL.md`: YAML between two lines `---`, followed by Markdown.
//!
//! The YAML may be untrusted: it is bounded in size, depth and nodes, and aliases are disabled. A number or boolean
//! where a text is expected is read as written, so `version: 1.10` stays `1.10`.
//!
//! Not here: reading the file ([`super::files`]), and the rules for its fields ([`super::skill`]).

use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;

use serde::de::{Deserialize, DeserializeOwned, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::Value;

use super::skill::{AllowedTool, Skill, SkillError};

/// Maximum size of the front matter, in bytes.
const BYTES: usize = 64 * 1024;
/// Maximum number of nodes.
const NODES: usize = 2_000;
/// Maximum nesting depth.
const DEPTH: usize = 16;

/// A parsed `SKILL.md`.
pub(super) struct ParsedSkillFile {
    pub(super) skill: Skill,
    /// Fields that the specification does not define.
    pub(super) unknown: Vec<String>,
}

/// Parses the text of a `SKILL.md`.
pub(super) fn parse_skill_file(text: &str) -> Result<ParsedSkillFile, SkillError> {
    let (yaml, instructions) = split_front_matter(text)?;
    if yaml.len() > BYTES {
        return Err(SkillError::FrontMatterTooLarge {
            bytes: yaml.len(),
            limit: BYTES,
        });
    }
    let front: FrontMatter<BTreeMap<String, String>> = match parse_yaml(yaml) {
        Ok(front) => front,
        // Metadata should map texts to texts. Real files nest lists and numbers, which are kept as JSON text. If that
        // fails too, the first error is the more useful one.
        Err(error) => match parse_yaml::<BTreeMap<String, Value>>(yaml) {
            Ok(front) => front.flatten_metadata(),
            Err(_) => return Err(error),
        },
    };
    let missing = |field| SkillError::Missing { field };
    let trimmed = |text: String| text.trim().to_owned();
    let skill = Skill {
        name: trimmed(front.name.ok_or(missing("name"))?),
        description: trimmed(front.description.ok_or(missing("description"))?),
        license: front.license,
        compatibility: front.compatibility,
        metadata: front.metadata.unwrap_or_default(),
        allowed_tools: match front.allowed_tools {
            None => Vec::new(),
            Some(ToolsField::Text(text)) => AllowedTool::parse_all(&text),
            Some(ToolsField::List(list)) => {
                list.iter().map(|text| AllowedTool::parse(text)).collect()
            }
        },
        // The same skill must give the same prompt on every system, whatever its line endings.
        instructions: instructions.replace("\r\n", "\n").trim().to_owned(),
        folder: None,
    };
    skill.validate_fields()?;
    Ok(ParsedSkillFile {
        skill,
        unknown: front.unknown,
    })
}

/// Splits a file into the YAML and the text after it.
fn split_front_matter(text: &str) -> Result<(&str, &str), SkillError> {
    // Editors on Windows write a byte order mark.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut lines = text.split_inclusive('\n');
    let first = lines.next().unwrap_or_default();
    if first.trim_end() != "---" {
        return Err(SkillError::NoFrontMatter);
    }
    let from = first.len();
    let mut to = from;
    for line in lines {
        let next = to + line.len();
        // The first such line ends the YAML; later ones are thematic breaks of the Markdown.
        if line.trim_end() == "---" {
            let yaml = text.get(from..to).unwrap_or_default();
            return Ok((yaml, text.get(next..).unwrap_or_default()));
        }
        to = next;
    }
    Err(SkillError::Unclosed)
}

fn parse_yaml<M: DeserializeOwned>(yaml: &str) -> Result<FrontMatter<M>, SkillError> {
    // A skill's file is untrusted input: aliases and merge keys could expand a few bytes to gigabytes, so they are off,
    // and everything else is bounded.
    let options = serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_events: 4 * NODES,
            max_aliases: 0,
            max_anchors: 0,
            max_nodes: NODES,
            max_depth: DEPTH,
            flow_nesting_limit: DEPTH,
            max_documents: 1,
            max_merge_keys: 0,
        },
        with_snippet: false,
        strict_booleans: true,
    };
    serde_saphyr::from_str_with_options(yaml, options).map_err(|error| SkillError::FrontMatter {
        reason: error.to_string(),
    })
}

/// The fields of the front matter; `M` is the type of the metadata.
struct FrontMatter<M> {
    name: Option<String>,
    description: Option<String>,
    license: Option<String>,
    compatibility: Option<String>,
    metadata: Option<M>,
    allowed_tools: Option<ToolsField>,
    unknown: Vec<String>,
}

impl<M> Default for FrontMatter<M> {
    fn default() -> Self {
        Self {
            name: None,
            description: None,
            license: None,
            compatibility: None,
            metadata: None,
            allowed_tools: None,
            unknown: Vec::new(),
        }
    }
}

impl FrontMatter<BTreeMap<String, Value>> {
    fn flatten_metadata(self) -> FrontMatter<BTreeMap<String, String>> {
        let text = |value: Value| match value {
            Value::String(text) => text,
            // `Value` formats itself as JSON.
            other => other.to_string(),
        };
        let flat = |(key, value)| (key, text(value));
        FrontMatter {
            metadata: self
                .metadata
                .map(|values| values.into_iter().map(flat).collect()),
            name: self.name,
            description: self.description,
            license: self.license,
            compatibility: self.compatibility,
            allowed_tools: self.allowed_tools,
            unknown: self.unknown,
        }
    }
}

impl<'de, M: DeserializeOwned> Deserialize<'de> for FrontMatter<M> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct FrontMatterVisitor<M>(PhantomData<M>);
        impl<'de, M: DeserializeOwned> Visitor<'de> for FrontMatterVisitor<M> {
            type Value = FrontMatter<M>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("fields and their values")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<FrontMatter<M>, A::Error> {
                let mut front = FrontMatter::default();
                while let Some(key) = map.next_key::<String>()? {
                    match key.as_str() {
                        "name" => front.name = map.next_value()?,
                        "description" => front.description = map.next_value()?,
                        "license" => front.license = map.next_value()?,
                        "compatibility" => front.compatibility = map.next_value()?,
                        "metadata" => front.metadata = map.next_value()?,
                        "allowed-tools" => front.allowed_tools = map.next_value()?,
                        _ => {
                            // Unknown fields are reported by name, so their values are skipped, not refused.
                            map.next_value::<IgnoredAny>()?;
                            front.unknown.push(key);
                        }
                    }
                }
                Ok(front)
            }
        }
        deserializer.deserialize_map(FrontMatterVisitor(PhantomData))
    }
}

/// Allowed tools, as one text or as a list.
enum ToolsField {
    Text(String),
    List(Vec<String>),
}

impl<'de> Deserialize<'de> for ToolsField {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ToolsVisitor;
        impl<'de> Visitor<'de> for ToolsVisitor {
            type Value = ToolsField;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text or a list of texts")
            }

            fn visit_str<E>(self, text: &str) -> Result<ToolsField, E> {
                Ok(ToolsField::Text(text.to_owned()))
            }

            fn visit_seq<A: serde::de::SeqAccess<'de>>(
                self,
                mut list: A,
            ) -> Result<ToolsField, A::Error> {
                let mut all = Vec::new();
                while let Some(text) = list.next_element()? {
                    all.push(text);
                }
                Ok(ToolsField::List(all))
            }
        }
        deserializer.deserialize_any(ToolsVisitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(yaml: &str) -> Result<ParsedSkillFile, String> {
        parse_skill_file(&format!("---\n{yaml}\n---\nDo it.\n")).map_err(|error| error.to_string())
    }

    #[test]
    fn the_example_of_the_specification() {
        let read = check(
            "name: pdf-processing\ndescription: Extract PDF text, fill forms, merge files. Use when handling PDFs.\n\
             license: Apache-2.0\ncompatibility: Requires git, docker\nmetadata:\n  author: example-org\n  version: \"1.0\"\n\
             allowed-tools: Bash(git:*) Read",
        )
        .unwrap();
        let skill = read.skill;
        assert_eq!(skill.name, "pdf-processing");
        assert_eq!(skill.license.as_deref(), Some("Apache-2.0"));
        assert_eq!(skill.compatibility.as_deref(), Some("Requires git, docker"));
        assert_eq!(skill.metadata["version"], "1.0");
        assert_eq!(skill.allowed_tools.len(), 2);
        assert_eq!(skill.instructions, "Do it.");
        assert!(read.unknown.is_empty());
    }

    #[test]
    fn what_yaml_allows_is_read() {
        for (yaml, description) in [
            ("name: a\ndescription: >\n  one\n  two\n", "one two"),
            (
                "name: a\ndescription: |-\n  one\n  --- two\n",
                "one\n--- two",
            ),
            ("name: a\ndescription: one\n  two", "one two"),
            ("name: \"a\"\ndescription: 'it''s'", "it's"),
            (
                "# a note\nname: a # another\ndescription: \"x # y\"",
                "x # y",
            ),
            ("{name: a, description: flow}", "flow"),
            ("name: a\r\ndescription: lines\r", "lines"),
            ("name: a\ndescription: 12", "12"),
            ("name: a\ndescription: true", "true"),
        ] {
            let read = check(yaml).unwrap();
            assert_eq!(
                (&*read.skill.name, &*read.skill.description),
                ("a", description),
                "{yaml}"
            );
        }
        let about = "name: a\ndescription: b\n";
        let read = check(&format!("{about}metadata:\n  version: 1.10\n  off: no")).unwrap();
        assert_eq!(read.skill.metadata["version"], "1.10");
        assert_eq!(read.skill.metadata["off"], "no");
        let read = check(&format!("{about}metadata:\n  deep: {{a: [1]}}\n  x: y")).unwrap();
        assert_eq!(read.skill.metadata["deep"], r#"{"a":[1]}"#);
        assert_eq!(read.skill.metadata["x"], "y");
        for tools in [
            "[Read, \"Bash(git:*)\"]",
            "\n- Read\n- Bash(git:*)",
            "Read Bash(git:*)",
            "Read, Bash(git:*)",
        ] {
            let read = check(&format!("{about}allowed-tools: {tools}")).unwrap();
            assert_eq!(
                read.skill.allowed_tools[1],
                AllowedTool::parse("Bash(git:*)"),
                "{tools}"
            );
        }
        let read = check(&format!("{about}license:\nmodel: x\nhooks: {{a: [b]}}")).unwrap();
        assert_eq!(
            (read.skill.license, read.unknown),
            (None, vec!["model".to_owned(), "hooks".to_owned()])
        );
    }

    #[test]
    fn what_is_no_skill_says_why() {
        let long = "x".repeat(501);
        for (yaml, reason) in [
            ("description: b", "has no name"),
            ("name: a", "has no description"),
            ("name:\ndescription: b", "has no name"),
            ("name: A\ndescription: b", "no name of a skill"),
            (
                "name: a\ndescription: ''",
                "the description has 0 characters",
            ),
            ("name: [a]\ndescription: b", "cannot be read"),
            ("name: a\nname: c\ndescription: b", "cannot be read"),
            ("name: a\ndescription: use when: now", "cannot be read"),
            ("- a", "cannot be read"),
            ("just words", "cannot be read"),
            ("", "has no name"),
            (
                "name: a\ndescription: b\nallowed-tools: {a: b}",
                "cannot be read",
            ),
            (
                "name: a\ndescription: b\nallowed-tools: 12",
                "cannot be read",
            ),
            ("name: a\ndescription: b\nmetadata: text", "cannot be read"),
            (
                "name: a\ndescription: b\ncompatibility: ''",
                "the compatibility has 0 characters",
            ),
            (
                &format!("name: a\ndescription: b\ncompatibility: {long}"),
                "has 501 characters, expected 1 to 500",
            ),
            ("name: a\ndescription: b\n\tx: y", "cannot be read"),
        ] {
            let said = check(yaml).err().unwrap_or_default();
            assert!(said.contains(reason), "{yaml}: {said:?}");
        }
        for (text, reason) in [
            ("", "does not begin with front matter"),
            ("# Title\n---\nname: a\n---", "does not begin"),
            (" ---\nname: a\n---", "does not begin"),
            ("---\nname: a\n", "has no end"),
            ("---\nname: a\n ---", "has no end"),
        ] {
            let error = parse_skill_file(text).err().map(|error| error.to_string());
            assert!(error.is_some_and(|said| said.contains(reason)), "{text:?}");
        }
        let marked = "\u{feff}---\r\nname: a\r\ndescription: b\r\n---\r\none\r\ntwo\r\n";
        assert_eq!(
            parse_skill_file(marked).unwrap().skill.instructions,
            "one\ntwo"
        );
        assert!(
            parse_skill_file("---\nname: a\ndescription: b\n---")
                .unwrap()
                .skill
                .instructions
                .is_empty()
        );
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "(---\n)?((name|description|metadata|allowed-tools|.{0,9}): ?.{0,20}\n){0,6}(---\n)?.{0,20}") {
            if let Ok(read) = parse_skill_file(&text) {
                proptest::prop_assert!(read.skill.validate_fields().is_ok());
            }
        }
    }

    #[test]
    fn bombs_are_refused() {
        let about = "name: a\ndescription: b\n";
        let laughs = "x: &a [lol]\ny: &b [*a, *a]\nz: [*b, *b]";
        assert!(check(&format!("{about}{laughs}")).is_err());
        assert!(check(&format!("{about}x: &a b\ny: *a")).is_err());
        assert!(check(&format!("{about}x: &a b")).is_err());
        assert!(check(&format!("{about}x: {}", "[".repeat(30_000))).is_err());
        assert!(check(&format!("{about}x: {}{}", "[".repeat(40), "]".repeat(40))).is_err());
        let many = "- x\n".repeat(2_100);
        assert!(check(&format!("{about}x:\n{many}")).is_err());
        let large = check(&format!("{about}x: {}", "y".repeat(64 * 1024))).err();
        assert!(large.is_some_and(|said| said.contains("the limit is 65536")));
        assert!(check(&format!("{about}<<: {{c: d}}")).is_err());
    }
}
