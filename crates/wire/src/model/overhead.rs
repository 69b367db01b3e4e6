//! [`Overhead`]: the tokens that a format adds around the text it is given, as data.
//!
//! Bounds are plain pairs, at least and at most: this crate counts no tokens.

/// A token count as bounds: at least, at most.
pub type TokenPair = (u64, u64);

/// The tokens that a format adds around the text it is given.
///
/// Little of it is documented: OpenAI's three tokens a message and three for the answer (OpenAI Cookbook, "How to count
/// tokens with tiktoken") for models before GPT-4o, and the system prompt that comes with Anthropic's tools, which is a
/// fact of the model and stands in the catalogue. The rest is bounded by what recorded requests were billed;
/// `docs/design/0004-token-estimates.md` has the figures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Overhead {
    /// Tokens once a request.
    pub request: TokenPair,
    /// Tokens for the system prompt, if there is one.
    pub system: TokenPair,
    /// Tokens for each element of the array of messages.
    pub message: TokenPair,
    /// Tokens for each call of a function, beside its name and arguments.
    pub call: TokenPair,
    /// Tokens for each output of a function, beside its text.
    pub output: TokenPair,
    /// Tokens for each tool, beside the JSON of its definition.
    pub tool: TokenPair,
    /// Tokens once, if there are tools and the model's prompt for them is not known.
    pub tools: TokenPair,
    /// Per cent of a tool's JSON that it takes at least: providers write tools more briefly.
    pub tool_text: u64,
    /// Per cent of its JSON that a tool takes at most whose parameters have objects within objects: some providers write
    /// out what a nested schema means.
    pub nested_tool_text: u64,
    /// Tokens once, if the model is asked to think.
    pub reasoning: TokenPair,
    /// Tokens once, if the answer has a schema, beside its JSON.
    pub schema: TokenPair,
}

impl Overhead {
    /// The widest bounds of all known providers, for one of which nothing is known.
    pub const WIDEST: Self = Self {
        request: (0, 4),
        system: (0, 7),
        message: (0, 5),
        call: (0, 45),
        output: (0, 30),
        tool: (0, 14),
        tools: (0, 804),
        tool_text: 0,
        nested_tool_text: 160,
        reasoning: (0, 40),
        schema: (0, 200),
    };

    /// The overhead of a format that is never sent to a provider: none.
    pub const NONE: Self = Self {
        request: (0, 0),
        system: (0, 0),
        message: (0, 0),
        call: (0, 0),
        output: (0, 0),
        tool: (0, 0),
        tools: (0, 0),
        tool_text: 100,
        nested_tool_text: 100,
        reasoning: (0, 0),
        schema: (0, 0),
    };
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::format::Format;

    #[test]
    fn widest_bounds_hold_for_every_provider() {
        let widest = Overhead::WIDEST;
        for format in Format::PROVIDERS {
            let own = format.spec().overhead();
            let pairs = [
                (own.request, widest.request),
                (own.system, widest.system),
                (own.message, widest.message),
                (own.call, widest.call),
                (own.output, widest.output),
                (own.tool, widest.tool),
                (own.tools, widest.tools),
                (own.reasoning, widest.reasoning),
                (own.schema, widest.schema),
            ];
            for (inner, outer) in pairs {
                assert!(
                    outer.0 <= inner.0 && inner.1 <= outer.1,
                    "{format}: {inner:?} {outer:?}"
                );
            }
            assert!(widest.tool_text <= own.tool_text);
            assert!(widest.nested_tool_text >= own.nested_tool_text);
        }
    }
}
