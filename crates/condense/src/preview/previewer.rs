//! Items, shortened: which of them, and where the shortened text stands.

use contexture_ir::{ContentHash, FunctionCallOutput, Item, Output, Part};
use contexture_tokens::TokenCounter;

use crate::link::Link;
use crate::preview::policy::PreviewPolicy;
use crate::preview::shorten::{Preview, PreviewFacts, shorten_output};

/// Makes previews by one policy, for one target.
#[derive(Clone, Copy, Debug)]
pub struct Previewer<'a> {
    /// Policy for all tools without one of their own.
    pub policy: &'a PreviewPolicy,
    /// What counts tokens, for thresholds in tokens.
    pub counter: &'a dyn TokenCounter,
}

/// An item that stands for a longer one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Previewed {
    /// The item to be sent.
    pub item: Item,
    /// What it stands for.
    pub facts: PreviewFacts,
}

impl Previewer<'_> {
    /// The preview of a text; `None` if it is not over the threshold.
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
    pub fn preview_text(&self, text: &str, link: Link) -> Option<Preview> {
        shorten_output(text, self.policy, link, self.counter)
    }

    /// The preview of a tool's output, where the policy wants one; `hash` is that of the item's stored bytes, `tool`
    /// the name of the tool that gave the output, where it is known.
    ///
    /// Of an output with parts the texts are taken together, as [`Item::text`] has them: their preview stands where
    /// the first of them stood, and pictures, files and unknown parts stay as they are. What a part says beside its
    /// text stays with the first; what others said is behind the link.
    #[must_use]
    pub fn preview_item(
        &self,
        item: &Item,
        hash: ContentHash,
        tool: Option<&str>,
    ) -> Option<Previewed> {
        let Item::FunctionCallOutput(output) = item else {
            return None;
        };
        // Some tools are never previewed; the one that reads previews back is one of them.
        let policy = self.policy.for_tool(tool)?;
        let shorten = |text: &str| shorten_output(text, policy, Link::new(hash), self.counter);
        let (output_now, facts) = match &output.output {
            Output::Text(text) => {
                let preview = shorten(text)?;
                (Output::Text(preview.text), preview.facts)
            }
            Output::Parts(parts) => {
                // One preview for all texts: previewed one by one, many short parts would never reach
                // the threshold.
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

/// The parts with one text instead of all texts.
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
