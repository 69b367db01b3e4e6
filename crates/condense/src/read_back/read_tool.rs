//! The built-in tool by which a model reads what is not in view: its definition and its arguments.

use contexture_ir::{FunctionTool, Raw, ToolDefinition};
use serde_json::{Map, Value};

use crate::link::{Link, LinkError};
use crate::read_back::excerpt::TextPosition;
use crate::read_back::find::{FindOptions, Matcher, Pattern, PatternError};

/// The name of the built-in tool.
pub const READ_TOOL: &str = "read_context";

/// Maximum number of characters of a reply without its frame: below the default threshold of a preview.
const CHARACTERS: usize = 4_000;
/// Number of matching lines shown if the model asks for no other number.
const MATCHES: u64 = 50;
/// Number of search results by default, and the maximum.
const RESULTS: (u64, u64) = (5, 20);
/// Maximum number of context lines around a match.
const AROUND: u64 = 20;

const DESCRIPTION: &str = "Reads what this conversation keeps but no longer shows: shortened or cleared tool outputs \
and earlier messages. Give `uri`, a context://vfs/... link, to read it from line `offset` on; add `pattern` to get \
only the lines that match. Give `query` alone, without `uri`, to find which outputs and messages say something, \
best match first: a question, a few words, an identifier or a path; \"in double quotes\" is required, word* is a beginning. \
Answers are cut to about 4000 characters and say where to go on.";

/// JSON Schema of the arguments; unknown ones are refused. A literal, so that its bytes are always the same.
const PARAMETERS: &str = r#"{"type":"object","properties":{"uri":{"type":"string","description":"A link: context://vfs/ and 32 hexadecimal digits."},"offset":{"type":"integer","minimum":1,"description":"The line to begin with; 1 is the first."},"column":{"type":"integer","minimum":0,"description":"Characters of that line to skip, for very long lines."},"limit":{"type":"integer","minimum":1,"description":"At most so many lines, matching lines or results."},"pattern":{"type":"string","description":"Only lines with this text, in any case."},"regex":{"type":"boolean","description":"Whether pattern is a regular expression. Default false."},"context":{"type":"integer","minimum":0,"maximum":20,"description":"Lines to show around each matching line. Default 0."},"query":{"type":"string","description":"What to look for everywhere; without uri."}},"additionalProperties":false}"#;

/// The names of the arguments.
const NAMES: [&str; 8] = [
    "uri", "offset", "column", "limit", "pattern", "regex", "context", "query",
];

/// Returns the definition of the built-in tool; its bytes are always the same.
#[must_use]
pub fn read_tool() -> ToolDefinition {
    let parameters = Raw::parse(PARAMETERS);
    debug_assert!(parameters.is_ok(), "the schema is JSON");
    ToolDefinition::Function(FunctionTool {
        name: READ_TOOL.to_owned(),
        description: Some(DESCRIPTION.to_owned()),
        parameters: parameters.ok(),
        ..FunctionTool::default()
    })
}

/// Whether the built-in tool is among these tools.
#[must_use]
pub fn has_read_tool(tools: &[ToolDefinition]) -> bool {
    let is = |tool: &ToolDefinition| matches!(tool, ToolDefinition::Function(tool) if tool.name == READ_TOOL);
    tools.iter().any(is)
}

/// A parsed call of the built-in tool.
#[derive(Clone, Debug)]
pub enum ReadCall {
    /// Reads a part of the item that a link refers to.
    Read {
        /// Link to the item.
        link: Link,
        /// Where to begin.
        from: TextPosition,
        /// Maximum number of lines.
        lines: u64,
        /// Maximum number of characters.
        characters: usize,
    },
    /// Finds matching lines in the item that a link refers to.
    Find {
        /// Link to the item.
        link: Link,
        /// What to look for.
        matcher: Matcher,
        /// Which of the matching lines.
        which: FindOptions,
    },
    /// Searches everything that is stored for a query.
    Search {
        /// What to look for.
        query: String,
        /// Maximum number of results.
        limit: usize,
    },
}

/// Why a call of the built-in tool cannot be answered; the texts are for the model.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ReadCallError {
    /// The arguments are not a JSON object.
    #[error("the arguments are no JSON object")]
    NotAnObject,
    /// The tool has no such argument.
    #[error("unknown argument {name:?}: expected {}", NAMES.join(", "))]
    Unknown {
        /// Its name, shortened.
        name: String,
    },
    /// An argument has the wrong type, or is out of range.
    #[error("argument `{name}`: expected {expected}")]
    Type {
        /// Name of the argument.
        name: &'static str,
        /// What it should be.
        expected: &'static str,
    },
    /// Neither or both of `uri` and `query` are given.
    #[error("expected either `uri`, to read or search one output, or `query`, to search all")]
    UriOrQuery,
    /// The link is invalid.
    #[error("argument `uri`: {0}")]
    Link(#[from] LinkError),
    /// The pattern is invalid.
    #[error("argument `pattern`: {0}")]
    Pattern(#[from] PatternError),
}

impl ReadCall {
    /// Parses a call's arguments. A null argument counts as absent, because some models must name all arguments.
    ///
    /// # Errors
    /// [`ReadCallError`].
    pub fn parse(arguments: &str) -> Result<Self, ReadCallError> {
        let arguments = ReadArguments::parse(arguments)?;
        let limit = arguments.integer_argument("limit", 1)?;
        let from = TextPosition {
            line: arguments.integer_argument("offset", 1)?.unwrap_or(1),
            column: arguments.integer_argument("column", 0)?.unwrap_or(0),
        };
        let context = arguments
            .integer_argument("context", 0)?
            .unwrap_or(0)
            .min(AROUND);
        let regex = arguments.flag_argument("regex")?;
        let pattern = arguments.text_argument("pattern")?;
        let link = match (
            arguments.text_argument("uri")?,
            arguments.text_argument("query")?,
        ) {
            (Some(uri), None) => uri.parse()?,
            (None, Some(query)) => {
                let limit = limit.unwrap_or(RESULTS.0).min(RESULTS.1);
                return Ok(Self::Search {
                    query: query.to_owned(),
                    limit: clamp_to_usize(limit),
                });
            }
            _ => return Err(ReadCallError::UriOrQuery),
        };
        let Some(pattern) = pattern else {
            return Ok(Self::Read {
                link,
                from,
                lines: limit.unwrap_or(u64::MAX),
                characters: CHARACTERS,
            });
        };
        let pattern = match regex {
            true => Pattern::Regex(pattern.to_owned()),
            false => Pattern::Text(pattern.to_owned()),
        };
        Ok(Self::Find {
            link,
            matcher: Matcher::new(&pattern)?,
            which: FindOptions {
                from: from.line,
                context: clamp_to_usize(context),
                limit: clamp_to_usize(limit.unwrap_or(MATCHES)),
                characters: CHARACTERS,
            },
        })
    }
}

fn clamp_to_usize(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

struct ReadArguments(Map<String, Value>);

impl ReadArguments {
    fn parse(text: &str) -> Result<Self, ReadCallError> {
        let arguments: Map<String, Value> =
            serde_json::from_str(text).map_err(|_| ReadCallError::NotAnObject)?;
        match arguments
            .keys()
            .find(|name| !NAMES.contains(&name.as_str()))
        {
            Some(name) => Err(ReadCallError::Unknown {
                name: name.chars().take(80).collect(),
            }),
            None => Ok(Self(arguments)),
        }
    }

    fn get(&self, name: &str) -> Option<&Value> {
        self.0.get(name).filter(|value| !value.is_null())
    }

    fn text_argument(&self, name: &'static str) -> Result<Option<&str>, ReadCallError> {
        let Some(value) = self.get(name) else {
            return Ok(None);
        };
        let expected = "text";
        let text = value
            .as_str()
            .ok_or(ReadCallError::Type { name, expected })?;
        Ok(Some(text))
    }

    fn integer_argument(
        &self,
        name: &'static str,
        least: u64,
    ) -> Result<Option<u64>, ReadCallError> {
        let Some(value) = self.get(name) else {
            return Ok(None);
        };
        let expected = match least {
            0 => "a whole number, 0 or more",
            _ => "a whole number, 1 or more",
        };
        let number = value.as_u64().filter(|number| *number >= least);
        let number = number.ok_or(ReadCallError::Type { name, expected })?;
        Ok(Some(number))
    }

    fn flag_argument(&self, name: &'static str) -> Result<bool, ReadCallError> {
        let Some(value) = self.get(name) else {
            return Ok(false);
        };
        let expected = "true or false";
        value
            .as_bool()
            .ok_or(ReadCallError::Type { name, expected })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const URI: &str = "context://vfs/0123456789abcdef0123456789abcdef";

    #[test]
    fn the_definition_names_the_arguments_that_are_read() {
        let schema: Value = serde_json::from_str(PARAMETERS).unwrap();
        let properties = schema["properties"].as_object().unwrap();
        assert_eq!(properties.keys().collect::<Vec<_>>(), NAMES);
        assert_eq!(read_tool(), read_tool());
        assert_eq!(read_tool().name(), READ_TOOL);
    }

    #[test]
    fn calls_are_read() {
        let read = ReadCall::parse(&format!(r#"{{"uri":"{URI}"}}"#)).unwrap();
        let ReadCall::Read {
            link, from, lines, ..
        } = read
        else {
            panic!("{read:?}");
        };
        assert_eq!(link.to_string(), URI);
        assert_eq!((from, lines), (TextPosition::line_start(1), u64::MAX));
        let all = format!(
            r#"{{"uri":"{URI}","offset":7,"column":null,"limit":3,"pattern":"a+","regex":true,"context":99,"query":null}}"#
        );
        let found = ReadCall::parse(&all).unwrap();
        let ReadCall::Find { which, .. } = found else {
            panic!("{found:?}");
        };
        assert_eq!((which.from, which.limit, which.context), (7, 3, 20));
        let search = ReadCall::parse(r#"{"query":"W123","limit":99}"#).unwrap();
        assert!(matches!(search, ReadCall::Search { query, limit: 20 } if query == "W123"));
    }

    #[test]
    fn what_cannot_be_answered_is_said_in_words_a_model_can_use() {
        for (arguments, expected) in [
            ("[]", "the arguments are no JSON object"),
            ("", "the arguments are no JSON object"),
            ("{}", "expected either `uri`"),
            (
                r#"{"uri":"context://vfs/0123456789abcdef0123456789abcdef","query":"x"}"#,
                "expected either `uri`",
            ),
            (r#"{"pattern":"x"}"#, "expected either `uri`"),
            (
                r#"{"uri":"context://vfs/../x"}"#,
                "argument `uri`: \"context://vfs/../x\" is no link",
            ),
            (r#"{"uri":7}"#, "argument `uri`: expected text"),
            (
                r#"{"url":"x"}"#,
                "unknown argument \"url\": expected uri, offset",
            ),
            (
                r#"{"query":"x","limit":0}"#,
                "argument `limit`: expected a whole number, 1 or more",
            ),
            (
                r#"{"query":"x","limit":-1}"#,
                "argument `limit`: expected a whole number, 1 or more",
            ),
            (
                r#"{"query":"x","limit":"5"}"#,
                "argument `limit`: expected a whole number, 1 or more",
            ),
            (
                r#"{"query":"x","column":1.5}"#,
                "argument `column`: expected a whole number, 0 or more",
            ),
            (
                r#"{"query":"x","regex":"no"}"#,
                "argument `regex`: expected true or false",
            ),
            (
                r#"{"uri":"context://vfs/0123456789abcdef0123456789abcdef","pattern":""}"#,
                "argument `pattern`: the pattern is empty",
            ),
        ] {
            let error = ReadCall::parse(arguments).unwrap_err().to_string();
            assert!(error.starts_with(expected), "{arguments}: {error}");
        }
    }
}
