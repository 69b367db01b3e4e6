//! The front for those who have no store: items in, payload out.

use contexture_catalogue::Catalogue;
use contexture_ir::{Cancel, Item};
use contexture_tokens::{TokenCounter, counter_for};

use crate::compaction_schedule::{RoomAfterCompaction, retained_tokens};
use crate::compiler::document_plan::DocumentPlan;
use crate::compiler::inline_manifests::{
    CallRow, InlinedManifests, inline_manifests, manifests_limit, merge_spans, next_spans,
    trimmed_spans,
};
use crate::compiler::target::Target;
use crate::error::{CompileError, Refusal};
use crate::input::{CalibratedRange, CompileInput, CompileRequest, Contribution, PathItem};
use crate::pipeline::{Compiled, Scratch, compile};
use contexture_condense::ToolHints;
use contexture_report::{OmitReason, Omitted};

/// Compiles lists of items, without a store: each for itself, or as the next of a row of calls.
///
/// ```
/// use contexture_catalogue::Catalogue;
/// use contexture_compile::{Compiler, Contribution, Target, render_html};
/// use contexture_ir::{Message, Role};
///
/// let items = [Message::text(Role::User, "What is the capital of Mali?").into()];
/// let compiler = Compiler::new(Catalogue::builtin())
///     .with_contribution(Contribution::system("instructions", "Answer in one word."));
/// let compiled = compiler.compile(&items, &Target::openai_chat("gpt-4o").window(16_000))?;
/// assert!(compiled.payload.to_json().contains("Answer in one word."));
/// println!("{}", compiled.report); // a table; or as a page:
/// assert!(render_html(&compiled.report, "Mali").starts_with("<!doctype html>"));
/// # Ok::<(), contexture_compile::CompileError>(())
/// ```
#[derive(Debug)]
pub struct Compiler<'a> {
    catalogue: &'a Catalogue,
    contributions: Vec<Contribution>,
    counter: Option<&'a dyn TokenCounter>,
    narrowing: Option<CalibratedRange>,
    manifests: bool,
    tool_hints: Option<ToolHints>,
    cancel: Option<&'a Cancel>,
}

/// How often what a manifest pushed out is taken into it.
const ROUNDS: usize = 4;

/// Why something is trimmed and no manifest stands for it.
const TOO_LITTLE: &str = "what would stand for it is not shorter by 30 per cent, or has no room";

/// Most of the history that stays behind a manifest where calls follow, in per cent of its room.
const MOST_RETAINED: u8 = 40;

impl<'a> Compiler<'a> {
    /// A compiler that knows the catalogue's models.
    ///
    /// ```
    /// use contexture_catalogue::Catalogue;
    /// use contexture_compile::{Compiler, Target};
    /// use contexture_ir::{Message, Role};
    ///
    /// let items = [Message::text(Role::User, "Hello").into()];
    /// let compiled = Compiler::new(Catalogue::builtin()).compile(&items, &Target::openai_chat("gpt-4o"))?;
    /// assert!(compiled.payload.to_json().contains("Hello"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub const fn new(catalogue: &'a Catalogue) -> Self {
        Self {
            catalogue,
            contributions: Vec::new(),
            counter: None,
            narrowing: None,
            manifests: false,
            tool_hints: None,
            cancel: None,
        }
    }

    /// Stands a manifest for what does not fit: what the user said, the calls that changed something, the tasks, errors,
    /// files and identifiers of it. All manifests take at most 15 % of the window. Without, what does not fit is left out.
    ///
    /// ```
    /// # use contexture_catalogue::Catalogue;
    /// # use contexture_compile::{Compiler, Target};
    /// # use contexture_ir::{Item, Message, Role};
    /// // A ticket number early in a history that no longer fits.
    /// let mut items: Vec<Item> = vec![
    ///     Message::text(Role::User, "Help me.").into(),
    ///     Message::text(Role::Assistant, "Your ticket is R7X-4411.").into(),
    /// ];
    /// for part in 0..20 {
    ///     let text = format!("Part {part}: {}", "and so on, ".repeat(100));
    ///     items.push(Message::text(Role::User, text).into());
    ///     items.push(Message::text(Role::Assistant, "Read.").into());
    /// }
    /// let target = Target::openai_chat("gpt-4o").window(3_000).reserve(300);
    /// let compiler = Compiler::new(Catalogue::builtin());
    /// assert!(!compiler.compile(&items, &target)?.payload.to_json().contains("R7X-4411"));
    /// let compiler = compiler.with_manifests();
    /// assert!(compiler.compile(&items, &target)?.payload.to_json().contains("R7X-4411"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub const fn with_manifests(mut self) -> Self {
        self.manifests = true;
        self
    }

    /// Says which tools only read and which change something, whatever their names and annotations say: manifests name the calls
    /// that changed something. Default: nothing.
    ///
    /// ```
    /// use contexture_compile::compaction::{CallEffect, ToolHints};
    /// # use contexture_catalogue::Catalogue;
    /// # use contexture_compile::Compiler;
    ///
    /// let hints = ToolHints::default().with_effect("check_basket", CallEffect::Changes);
    /// let compiler = Compiler::new(Catalogue::builtin()).with_manifests().with_tool_hints(hints);
    /// ```
    #[must_use]
    pub fn with_tool_hints(mut self, hints: ToolHints) -> Self {
        self.tool_hints = Some(hints);
        self
    }

    /// Says this too, in every compile.
    ///
    /// ```
    /// # use contexture_catalogue::Catalogue;
    /// # use contexture_compile::{Compiler, Contribution, Target};
    /// # use contexture_ir::{Message, Role};
    /// let compiler = Compiler::new(Catalogue::builtin())
    ///     .with_contribution(Contribution::system("instructions", "Answer in one word."));
    /// let items = [Message::text(Role::User, "Hello").into()];
    /// let compiled = compiler.compile(&items, &Target::openai_chat("gpt-4o"))?;
    /// assert!(compiled.payload.to_json().contains("Answer in one word."));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn with_contribution(mut self, contribution: Contribution) -> Self {
        self.contributions.push(contribution);
        self
    }

    /// Counts with this instead of the model's own counter.
    ///
    /// ```
    /// use contexture_catalogue::Encoding;
    /// use contexture_tokens::counter_for;
    /// # use contexture_catalogue::Catalogue;
    /// # use contexture_compile::{Compiler, Target};
    /// # use contexture_ir::{Message, Role};
    ///
    /// // Exact counts for a model whose own counter only estimates.
    /// let compiler = Compiler::new(Catalogue::builtin()).with_counter(counter_for(Encoding::O200kBase));
    /// let items = [Message::text(Role::User, "Hello").into()];
    /// let compiled = compiler.compile(&items, &Target::anthropic("claude-sonnet-4-5"))?;
    /// assert_eq!(compiled.report.target.encoding, counter_for(Encoding::O200kBase).name());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub const fn with_counter(mut self, counter: &'a dyn TokenCounter) -> Self {
        self.counter = Some(counter);
        self
    }

    /// Narrows counts so; see [`Calibration`](crate::Calibration). Default: they are not.
    ///
    /// ```
    /// use contexture_compile::{Calibration, CountedRequest};
    /// # use contexture_catalogue::Catalogue;
    /// # use contexture_compile::{Compiler, Target};
    /// # use contexture_ir::{Message, Role};
    ///
    /// let items = [Message::text(Role::User, "How long is the way from Bamako to Niamey?").into()];
    /// let target = Target::anthropic("claude-sonnet-4-5");
    /// let compiler = Compiler::new(Catalogue::builtin());
    /// let before = compiler.compile(&items, &target)?.report.totals.tokens;
    /// # let report = compiler.compile(&items, &target)?.report;
    /// let mut calibration = Calibration::default();
    /// for _ in 0..10 {
    ///     // The provider counts at the lower end of the range, every time.
    ///     calibration.learn_from_usage(&CountedRequest::from(&report), report.totals.counted.low);
    /// }
    /// let range = calibration.calibrated_range_of(&target.build_request(Catalogue::builtin())?);
    /// let compiler = compiler.with_calibrated_range(range);
    /// assert!(compiler.compile(&items, &target)?.report.totals.tokens < before);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub const fn with_calibrated_range(mut self, narrowing: Option<CalibratedRange>) -> Self {
        self.narrowing = narrowing;
        self
    }

    /// Lets another thread call compiles off. Default: nothing does.
    ///
    /// ```
    /// use contexture_compile::{Cancel, CompileError, Refusal};
    /// # use contexture_catalogue::Catalogue;
    /// # use contexture_compile::{Compiler, Target};
    /// # use contexture_ir::{Message, Role};
    ///
    /// let cancel = Cancel::new();
    /// let compiler = Compiler::new(Catalogue::builtin()).with_cancel(&cancel);
    /// let items = [Message::text(Role::User, "Hello").into()];
    /// // As whoever notices that nobody waits any more does.
    /// cancel.cancel();
    /// let error = compiler.compile(&items, &Target::openai_chat("gpt-4o")).unwrap_err();
    /// assert!(matches!(error, CompileError::Refused(Refusal::Cancelled)));
    /// ```
    #[must_use]
    pub const fn with_cancel(mut self, cancel: &'a Cancel) -> Self {
        self.cancel = Some(cancel);
        self
    }

    /// Compiles the items for the target.
    ///
    /// ```
    /// use contexture_compile::{CompileError, Refusal};
    /// # use contexture_catalogue::Catalogue;
    /// # use contexture_compile::{Compiler, Target};
    /// # use contexture_ir::{Message, Role};
    ///
    /// let items = [Message::text(Role::User, "word ".repeat(10_000)).into()];
    /// let target = Target::openai_chat("gpt-4o").window(4_000);
    /// let error = Compiler::new(Catalogue::builtin()).compile(&items, &target).unwrap_err();
    /// assert!(matches!(error, CompileError::Refused(Refusal::DoesNotFit { .. })));
    /// ```
    ///
    /// # Errors
    /// [`CompileError`].
    pub fn compile(&self, items: &[Item], target: &Target) -> Result<Compiled, CompileError> {
        self.compile_with(items, target, &mut Scratch::new())
    }

    /// As [`Self::compile`], without counting and writing again what earlier compiles with this scratch did.
    ///
    /// ```
    /// use contexture_compile::Scratch;
    /// # use contexture_catalogue::Catalogue;
    /// # use contexture_compile::{Compiler, Target};
    /// # use contexture_ir::{Item, Message, Role};
    ///
    /// let compiler = Compiler::new(Catalogue::builtin());
    /// let target = Target::openai_chat("gpt-4o");
    /// let mut scratch = Scratch::new();
    /// let mut items: Vec<Item> = vec![Message::text(Role::User, "Hello").into()];
    /// compiler.compile_with(&items, &target, &mut scratch)?;
    /// items.push(Message::text(Role::Assistant, "Hi.").into());
    /// // Only the new item is counted and written.
    /// let compiled = compiler.compile_with(&items, &target, &mut scratch)?;
    /// assert_eq!(compiled.payload.to_json(), compiler.compile(&items, &target)?.payload.to_json());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`CompileError`].
    pub fn compile_with(
        &self,
        items: &[Item],
        target: &Target,
        scratch: &mut Scratch,
    ) -> Result<Compiled, CompileError> {
        self.compile_from(
            items,
            target,
            (DocumentPlan::default(), CallRow::One),
            scratch,
        )
        .map(|(compiled, _)| compiled)
    }

    /// Compiles a history as the next call behind others, whose decisions hold: between two calls the request only grows at
    /// its end, unless an epoch begins. Returns the plan of the call after this one.
    ///
    /// ```
    /// use contexture_compile::{DocumentPlan, HistoryPolicy, Scratch};
    /// # use contexture_catalogue::Catalogue;
    /// # use contexture_compile::{Compiler, Target};
    /// # use contexture_ir::{Item, Message, Role};
    ///
    /// let compiler = Compiler::new(Catalogue::builtin()).with_manifests();
    /// // Between calls some room is left: what was cut stays cut until that is used up.
    /// let target = Target::openai_chat("gpt-4o").window(3_000).history(HistoryPolicy::default());
    /// let (mut plan, mut scratch) = (DocumentPlan::default(), Scratch::new());
    /// let (mut items, mut epochs) = (Vec::<Item>::new(), 0);
    /// for round in 0..100 {
    ///     items.push(Message::text(Role::User, format!("{round}: {}", "and so on, ".repeat(20))).into());
    ///     items.push(Message::text(Role::Assistant, "Read.").into());
    ///     let (compiled, next) = compiler.compile_next(&items, &target, &plan, &mut scratch)?;
    ///     epochs += usize::from(compiled.report.epoch.opened);
    ///     plan = next;
    /// }
    /// assert!(epochs < 20);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`CompileError`].
    pub fn compile_next(
        &self,
        items: &[Item],
        target: &Target,
        plan: &DocumentPlan,
        scratch: &mut Scratch,
    ) -> Result<(Compiled, DocumentPlan), CompileError> {
        self.compile_from(items, target, (plan.clone(), CallRow::Next), scratch)
    }

    fn compile_from(
        &self,
        items: &[Item],
        target: &Target,
        (mut plan, row): (DocumentPlan, CallRow),
        scratch: &mut Scratch,
    ) -> Result<(Compiled, DocumentPlan), CompileError> {
        let spec = target.model_spec(self.catalogue)?;
        let mut request = target.build_request_for(&spec)?;
        let counter = self.counter.unwrap_or(counter_for(spec.encoding));
        let path = PathItem::from_items(items.iter().cloned());
        // What an epoch began with holds through it, as known content may count otherwise under new knowledge.
        let newest = self
            .narrowing
            .or_else(|| plan.calibration.calibrated_range_of(&request));
        let is_known = plan.plan.prefix.is_some();
        request.calibrated_range = if is_known {
            plan.plan.calibrated_range
        } else {
            newest
        };
        let mut run = |request: &CompileRequest, inlined: &InlinedManifests| {
            let input = CompileInput {
                path: (&inlined.path).into(),
                covers: &inlined.covers,
                dropped_rules: &[],
                passes: &[],
                contributions: &self.contributions,
                plan: &plan.plan,
                request,
                counter,
                cancel: self.cancel,
            };
            compile(&input, scratch)
        };
        let before = match self.manifests {
            true => plan.spans_on(&path),
            false => Vec::new(),
        };
        let hints = ToolHints::from_definitions(&request.tools);
        let hints = match &self.tool_hints {
            Some(own) => hints.overridden_by(own),
            None => hints,
        };
        let standing = inline_manifests(&path, &before, (&request, row), &hints, counter);
        let mut compiled = run(&request, &standing);
        let begins = match &compiled {
            Ok(compiled) => compiled.report.epoch.opened,
            Err(refusal) => matches!(refusal, Refusal::DoesNotFit { .. }),
        };
        if begins && request.calibrated_range != newest {
            request.calibrated_range = newest;
            compiled = run(&request, &standing);
        }
        let mut compiled = compiled?;
        let mut spans = before.clone();
        let mut new = match self.manifests {
            true => trimmed_spans(&before, items.len(), &compiled.report.omitted),
            false => Vec::new(),
        };
        // The history is cut further than it would be without a manifest, so that calls follow before the next one.
        if !new.is_empty() && row == CallRow::Next {
            request.history.trim.low_water = retained_percent(&path, &compiled, &request);
            compiled = run(&request, &standing)?;
            new = trimmed_spans(&before, items.len(), &compiled.report.omitted);
        }
        // Each manifest takes room and can push out more, which the next round covers as well. A few
        // rounds settle it; the last one that compiled stands.
        for _ in 0..ROUNDS {
            let all = manifests_limit(&request);
            let next = next_spans(&before, &standing.tokens, &new, items.len(), all);
            if next == spans {
                break;
            }
            let inlined = inline_manifests(&path, &next, (&request, row), &hints, counter);
            // A manifest for which there is no room is none.
            let again = match run(&request, &inlined) {
                Ok(again) => again,
                Err(Refusal::Cancelled) => return Err(Refusal::Cancelled.into()),
                Err(_) => break,
            };
            let pushed_out = trimmed_spans(&before, items.len(), &again.report.omitted);
            new = merge_spans(new, pushed_out);
            (spans, compiled) = (inlined.with_manifest(&next), again);
        }
        let is_original =
            |span: &&Omitted| span.reason == OmitReason::Trimmed && span.last < items.len();
        if self.manifests
            && compiled
                .report
                .omitted
                .iter()
                .any(|span| is_original(&span))
        {
            compiled.report.compaction_declined = Some(TOO_LITTLE);
        }
        plan.update(&path, spans, &compiled);
        Ok((compiled, plan))
    }
}

/// To how many per cent of its room a history is trimmed when a manifest is made for what goes: the policy's mark, or less
/// where less leaves room for steps like those that are shown.
fn retained_percent(path: &[PathItem], compiled: &Compiled, request: &CompileRequest) -> u8 {
    let report = &compiled.report;
    let of = |is_wanted: &dyn Fn(&str) -> bool| -> u64 {
        let wanted = report.segments.iter().filter(|one| is_wanted(one.band));
        wanted.map(|one| one.tokens).sum()
    };
    let (history, fixed) = (of(&|band| band == "history"), of(&|band| band != "history"));
    let shown = |index: usize| {
        !report
            .omitted
            .iter()
            .any(|one| (one.first..=one.last).contains(&index))
    };
    // A step is what the model says before something else is said.
    let models = |at: usize| path.get(at).is_some_and(|one| one.item.is_model_output());
    let last_omitted = report
        .omitted
        .iter()
        .map(|one| one.last + 1)
        .max()
        .unwrap_or(0);
    let first_shown = last_omitted.min(path.len());
    let steps = (first_shown..path.len())
        .filter(|at| shown(*at) && models(*at) && !models(at.wrapping_sub(1)));
    let limit = report.target.limit;
    let room = limit.saturating_sub(fixed).max(1);
    let mark = u64::from(request.history.trim.low_water.min(MOST_RETAINED));
    let retained = retained_tokens(&RoomAfterCompaction {
        trigger: limit,
        fixed,
        compactions: manifests_limit(request),
        step: history / (steps.count() as u64).max(1),
        most: room * mark / 100,
    });
    u8::try_from(retained * 100 / room).unwrap_or(MOST_RETAINED)
}
