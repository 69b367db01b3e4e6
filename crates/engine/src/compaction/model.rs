//! A model as compactor.
//!
//! Its request is compiled like any other, for its own target and window. A span that does not fit is summarised in
//! parts, each together with the summary of the parts before it.

use std::sync::Arc;

use async_trait::async_trait;
use contexture_compile::compaction::{SummaryOptions, read_summary, summary_lines, summary_task};
use contexture_compile::{CompileError, Compiler, Contribution, Refusal, Target};
use contexture_ir::{ContentHash, Item, Message, Role};
use contexture_models::{Model, ModelRequest};
use contexture_tokens::{TokenCounter, counter_for};
use contexture_wire::{DocumentKind, lift};

use super::compactor::{CompactRequest, Compactor, CompactorError};
use crate::handle::{COMPACTION, call_model};

/// Of the space of a request the lines take at most so many per cent: counts may be estimates.
const FILL: u64 = 80;

/// A request that is refused for its length is told in halves, so many times.
const HALVINGS: usize = 8;

/// A compactor that asks a model.
#[derive(Clone, Debug)]
pub struct ModelCompactor {
    model: Arc<dyn Model>,
    target: Target,
    options: SummaryOptions,
}

impl ModelCompactor {
    /// Asks a model; `target` says which, and how large its window is.
    #[must_use]
    pub fn new(model: Arc<dyn Model>, target: Target) -> Self {
        Self {
            model,
            target,
            options: SummaryOptions::default(),
        }
    }

    /// How the span is told, and what is always kept.
    #[must_use]
    pub fn with_options(mut self, options: SummaryOptions) -> Self {
        self.options = options;
        self
    }

    /// Returns the model that is asked, and how large its window is.
    pub(super) const fn target(&self) -> &Target {
        &self.target
    }

    fn options_for(&self, request: &CompactRequest<'_>) -> SummaryOptions {
        let both = [self.options.instructions.as_deref(), request.instructions];
        let instructions: Vec<&str> = both.into_iter().flatten().collect();
        SummaryOptions {
            instructions: (!instructions.is_empty()).then(|| instructions.join("\n")),
            ..self.options.clone()
        }
    }

    async fn summarise_lines(
        &self,
        lines: &[String],
        so_far: Option<&str>,
        options: &SummaryOptions,
        request: &CompactRequest<'_>,
    ) -> Result<String, CompactorError> {
        let task = summary_task(lines, so_far, options);
        let compiled = Compiler::new(request.catalogue)
            .with_contribution(Contribution::system("summariser", task.system))
            .compile(&task.items, &self.target)?;
        let format = self.target.format();
        let (tracker, caller) = (request.side_usage, request.caller);
        let request = ModelRequest {
            format,
            model: self.target.model().to_owned(),
            payload: compiled.payload.to_json(),
        };
        let answer = call_model(&*self.model, request, caller).await?;
        let lifted = lift(format, &answer.body)?;
        // An error document of a provider can be well-formed JSON of another kind.
        if lifted.kind != DocumentKind::Response {
            return Err(CompactorError::NotAResponse { format });
        }
        let texts = lifted
            .transcript
            .items
            .iter()
            .filter_map(assistant_text)
            .collect::<Vec<_>>();
        let info = lifted.transcript.response.unwrap_or_default();
        // Counted before the text is judged: a useless answer was paid for too.
        if let Some(tracker) = tracker {
            let usage = info.usage.unwrap_or_default();
            tracker.record_call(COMPACTION, self.target.model(), &usage);
        }
        let finish = info.finish;
        Ok(read_summary(&texts.join("\n"), finish.as_ref())?)
    }
}

#[async_trait]
impl Compactor for ModelCompactor {
    fn configuration(&self) -> String {
        let own = self.options.instructions.as_deref().unwrap_or_default();
        // All that changes what a summary says, so that only a summary of the same configuration is reused.
        let rest = format!("{}\n{own}", self.options.longest_output);
        let rest = ContentHash::of(rest.as_bytes());
        format!(
            "model {}/{} {rest}",
            self.target.format(),
            self.target.model()
        )
    }

    async fn summarise(
        &self,
        request: CompactRequest<'_>,
    ) -> Result<Option<String>, CompactorError> {
        let options = self.options_for(&request);
        let lines = summary_lines(request.span, &options);
        let compile = self
            .target
            .build_request(request.catalogue)
            .map_err(CompileError::from)?;
        let spec = request
            .catalogue
            .resolve(self.target.model())
            .map_err(CompileError::from)?;
        let counter = counter_for(spec.encoding);
        // The frame of the task takes room in every part: counted once, at its upper bound.
        let task = summary_task(&[], None, &options);
        let frame = counter.count(&task.system).high
            + task
                .items
                .iter()
                .map(|item| counter.count(&item.text()).high)
                .sum::<u64>();
        // A summary of what came before stands beside the lines: as long as an answer may be.
        let space = compile
            .window
            .saturating_sub(compile.reserve.saturating_mul(2));
        // At least a little, for a tiny window: the provider refuses it if that is too much as well.
        let mut room = (space * FILL / 100).saturating_sub(frame).max(256);
        let mut halvings = 0;
        let mut so_far: Option<String> = None;
        let mut rest = lines.as_slice();
        // Each part is summarised with the summary so far, so the last one stands for all lines.
        while !rest.is_empty() {
            let (part, remaining) = split_to_fit(rest, room, counter);
            match self
                .summarise_lines(&part, so_far.as_deref(), &options, &request)
                .await
            {
                Ok(summary) => {
                    so_far = Some(summary);
                    rest = remaining;
                }
                // Our count may be an estimate: the provider has the last word. Halving ends after a few tries.
                Err(error) if is_too_long(&error) && halvings < HALVINGS => {
                    halvings += 1;
                    room = (room / 2).max(64);
                }
                Err(error) => return Err(error),
            }
        }
        Ok(so_far)
    }
}

/// As many lines as have room, at least one: if that is too long alone, its beginning.
fn split_to_fit<'a>(
    lines: &'a [String],
    room: u64,
    counter: &dyn TokenCounter,
) -> (Vec<String>, &'a [String]) {
    let mut taken = Vec::new();
    let mut left = room;
    for line in lines {
        match counter.count_up_to(line, left) {
            Some(count) => {
                left = left.saturating_sub(count.high + 1);
                taken.push(line.clone());
            }
            None if taken.is_empty() => {
                // A token is at least a byte.
                let most = usize::try_from(room).unwrap_or(usize::MAX);
                let end = (0..=most.min(line.len()))
                    .rev()
                    .find(|at| line.is_char_boundary(*at));
                taken.push(line.get(..end.unwrap_or(0)).unwrap_or_default().to_owned());
                break;
            }
            None => break,
        }
    }
    let remaining = lines.get(taken.len()..).unwrap_or_default();
    (taken, remaining)
}

fn is_too_long(error: &CompactorError) -> bool {
    use contexture_models::ModelError;
    match error {
        CompactorError::Compile(CompileError::Refused(refusal)) => {
            matches!(refusal, Refusal::DoesNotFit { .. })
        }
        CompactorError::Model(ModelError::Refused { too_long, .. }) => too_long.is_some(),
        _ => false,
    }
}

fn assistant_text(item: &Item) -> Option<String> {
    match item {
        Item::Message(Message {
            role: Role::Assistant,
            ..
        }) => Some(item.text()),
        _ => None,
    }
}
