//! Previews of items: which items are shortened, and where the shortened text is placed.

use contexture_ir::{ContentHash, FunctionCallOutput, Item, Output, Part};
use contexture_tokens::TokenCounter;

use crate::link::Link;
use crate::preview::policy::PreviewPolicy;
use crate::preview::shorten::{Preview, PreviewFacts, shorten_output};

/// Builds previews by one policy, for one target.
#[derive(Clone, Copy, Debug)]
pub struct Previewer<'a> {
    /// Policy for all tools without one of their own.
    pub policy: &'a PreviewPolicy,
    /// Token counter, for thresholds in tokens.
    pub counter: &'a dyn TokenCounter,
}

/// An item shortened to a preview.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Previewed {
    /// The item to be sent.
    pub item: Item,
    /// Data about the original.
    pub facts: PreviewFacts,
}

impl Previewer<'_> {
    /// Returns the preview of a text; `None` if it is not over the threshold. Without a link it says that the rest is not
    /// available.
    ///
    /// ```
    /// use contexture_condense::{Link, PreviewPolicy, Previewer};
    /// use contexture_ir::ContentHash;
    /// use contexture_tokens::{Encoding, counter_for};
    ///
    /// let log = "all is well\n".repeat(10_000) + "error: it is not\n" + &"all is well\n".repeat(10_000);
    /// let previewer = Previewer {
    ///     policy: &PreviewPolicy::default(),
    ///     counter: counter_for(Encoding::O200kBase),
    /// };
    /// let link = Link::new(ContentHash::of(log.as_bytes()));
    /// let preview = previewer.preview_text(&log, link).ok_or("short")?;
    /// assert!(preview.text.contains("\n10001: error: it is not\n"));
    /// assert!(preview.text.contains(&link.to_string()));
    /// assert_eq!(previewer.preview_text(&preview.text, link), None);
    /// # Ok::<(), &str>(())
    /// ```
    #[must_use]
    pub fn preview_text(&self, text: &str, link: impl Into<Option<Link>>) -> Option<Preview> {
        shorten_output(text, self.policy, link.into(), self.counter)
    }

    /// Returns the preview of a tool's output, if the policy asks for one; `stored` is the hash of the item's stored bytes,
    /// `None` if nothing of it is stored; `tool` the name of the tool that gave the output, if it is known.
    ///
    /// In an output with parts the texts are joined, as [`Item::text`] does: their preview replaces the first of them,
    /// and images, files and unknown parts stay. Other fields of the first text part are kept; those of the others are
    /// only in the original.
    #[must_use]
    pub fn preview_item(
        &self,
        item: &Item,
        stored: impl Into<Option<ContentHash>>,
        tool: Option<&str>,
    ) -> Option<Previewed> {
        let Item::FunctionCallOutput(output) = item else {
            return None;
        };
        // Some tools are never previewed, among them the one that reads outputs back.
        let policy = self.policy.for_tool(tool)?;
        let link = stored.into().map(Link::new);
        let shorten = |text: &str| shorten_output(text, policy, link, self.counter);
        let (output_now, facts) = match &output.output {
            Output::Text(text) => {
                let preview = shorten(text)?;
                (Output::Text(preview.text), preview.facts)
            }
            Output::Parts(parts) => {
                // One preview for all texts: separately, many short parts would never reach the threshold.
                let preview = shorten(&item.text())?;
                (
                    Output::Parts(replace_texts(parts, preview.text)),
                    preview.facts,
                )
            }
        };
        let item = FunctionCallOutput {
            output: output_now,
            id: output.id.clone(),
            call_id: output.call_id.clone(),
            is_error: output.is_error,
            status: output.status,
            extra: output.extra.clone(),
        };
        Some(Previewed {
            item: item.into(),
            facts,
        })
    }
}

/// Returns the parts with one text in place of all texts.
fn replace_texts(parts: &[Part], text: String) -> Vec<Part> {
    let mut text = Some(text);
    let replaced = parts.iter().filter_map(|part| {
        if part.as_text().is_none() {
            return Some(part.clone());
        }
        let text = text.take()?;
        let mut part = part.clone();
        match &mut part {
            Part::InputText(own)
            | Part::OutputText(own)
            | Part::Refusal(own)
            | Part::SummaryText(own)
            | Part::ReasoningText(own) => own.text = text,
            Part::InputImage(_) | Part::InputFile(_) | Part::Extension(_) => {}
        }
        Some(part)
    });
    replaced.collect()
}
