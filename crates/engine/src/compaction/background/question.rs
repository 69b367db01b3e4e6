//! The question for a summary: to whom it goes, what that costs, and what its answer must be.

use contexture_catalogue::{ModelSpec, Money};
use contexture_compile::compaction::{
    CoveredItem, read_summary, summary_lines, summary_reminder, summary_request,
};
use contexture_compile::{CacheRules, CacheUsage, Question, Rates, Target, predict_continued};
use contexture_ir::{ContentHash, FunctionCallOutput, Item, Message, Output, Role};
use contexture_models::{Model, ModelRequest};
use contexture_tokens::counter_for;
use contexture_wire::{DocumentKind, continue_request, lift};

use super::options::BackgroundSummary;
use crate::compaction::compactor::{CompactRequest, Compactor, CompactorError};
use crate::handle::{COMPACTION, SideCaller, SideUsageTracker, call_model};

/// How long a summary is taken to be before it is written, in tokens.
const EXPECTED_ANSWER: u64 = 2_000;
/// Over how many calls a shorter history has to save what its summary costs.
const CALLS: u128 = 5;

/// What is summed up, and what the model was sent last.
pub(super) struct SummarySubject<'a> {
    /// The request that the conversation's model answered last.
    pub(super) body: &'a str,
    pub(super) target: &'a Target,
    pub(super) span: &'a [CoveredItem<'a>],
    /// What the span shows, in tokens.
    pub(super) tokens: u64,
    pub(super) caller: SideCaller<'a>,
    pub(super) side_usage: Option<&'a dyn SideUsageTracker>,
}

/// To whom a question goes.
#[derive(Debug)]
pub(super) enum Way {
    /// To the conversation's own model: the request that goes on from the last one.
    Own(String),
    /// To another model, which is sent what is summed up.
    Other,
}

/// To whom a question goes, and the price of both ways in pico-dollars as far as it is known.
#[derive(Debug)]
pub(super) struct ChosenWay {
    pub(super) way: Way,
    pub(super) own_cost: Option<u128>,
    pub(super) other_cost: Option<u128>,
}

/// Why a question gave no summary.
#[derive(Debug)]
pub(super) struct NotWritten {
    pub(super) reason: String,
    /// Whether an answer came, and was paid for.
    pub(super) paid: bool,
}

impl NotWritten {
    pub(super) fn unpaid(reason: impl ToString) -> Self {
        Self {
            reason: reason.to_string(),
            paid: false,
        }
    }

    fn paid(reason: impl ToString) -> Self {
        Self {
            reason: reason.to_string(),
            paid: true,
        }
    }
}

impl BackgroundSummary {
    /// Chooses whom to ask; the reason where nobody can be asked, or where it does not pay.
    pub(super) fn choose_way(&self, subject: &SummarySubject<'_>) -> Result<ChosenWay, String> {
        let catalogue = subject.caller.engine.catalogue();
        let spec = subject.target.model_spec(catalogue);
        let spec = spec.map_err(|error| error.to_string())?;
        let own = self.own.as_ref();
        let own = own.map(|_| self.own_request(subject, &spec));
        let own_cost = match &own {
            Some(Ok(request)) => own_cost(subject, request, &spec),
            _ => None,
        };
        let other_cost = self.other.as_ref().and_then(|other| {
            let lines = summary_lines(subject.span, &self.options);
            let spec = other.target().model_spec(catalogue).ok()?;
            let counter = counter_for(spec.encoding);
            let lines = lines.iter().map(|line| counter.count(line).count);
            let question = Question {
                input: CacheUsage {
                    fresh: lines.sum(),
                    ..CacheUsage::default()
                },
                answer: EXPECTED_ANSWER,
            };
            question.cost(&spec.prices, spec.cache.kind)
        });
        let is_other_cheaper = own_cost
            .zip(other_cost)
            .is_some_and(|(own, other)| other < own);
        let way = match (own, &self.other) {
            (Some(Ok(_)), Some(_)) if is_other_cheaper => Way::Other,
            (Some(Ok(request)), _) => Way::Own(request),
            (_, Some(_)) => Way::Other,
            (Some(Err(why)), None) => return Err(why),
            (None, None) => return Err("no model is named that could write it".to_owned()),
        };
        if self.must_pay {
            let cost = match way {
                Way::Own(_) => own_cost,
                Way::Other => other_cost,
            };
            check_pays(subject, &spec, cost)?;
        }
        Ok(ChosenWay {
            way,
            own_cost,
            other_cost,
        })
    }

    /// Builds the question to the conversation's own model.
    fn own_request(
        &self,
        subject: &SummarySubject<'_>,
        spec: &ModelSpec,
    ) -> Result<String, String> {
        let text = summary_request(subject.span, &self.options);
        let message = Item::from(Message::text(Role::User, text));
        let format = subject.target.format();
        let answer = self.answer_room(spec);
        continue_request(format, subject.body, &[message], answer).map_err(|why| why.to_string())
    }

    fn answer_room(&self, spec: &ModelSpec) -> u64 {
        self.answer_tokens
            .min(spec.output_limit.unwrap_or(u64::MAX))
    }

    /// What its summaries depend on beside the span.
    pub(super) fn configuration(&self, way: &Way, target: &Target) -> String {
        let other = self.other.as_ref().filter(|_| matches!(way, Way::Other));
        if let Some(other) = other {
            return other.configuration();
        }
        let own = self.options.instructions.as_deref().unwrap_or_default();
        let own = ContentHash::of(own.as_bytes());
        format!("own model {}/{} {own}", target.format(), target.model())
    }

    /// Asks, and reads the summary.
    pub(super) async fn ask(
        &self,
        way: Way,
        subject: &SummarySubject<'_>,
    ) -> Result<String, NotWritten> {
        match (way, &self.own, &self.other) {
            (Way::Own(request), Some(model), _) => self.ask_own(&**model, request, subject).await,
            (Way::Other, _, Some(other)) => {
                let request = CompactRequest {
                    span: subject.span,
                    instructions: self.options.instructions.as_deref(),
                    catalogue: subject.caller.engine.catalogue(),
                    side_usage: subject.side_usage,
                    caller: subject.caller,
                };
                let written = other.summarise(request).await;
                let written = written.map_err(|error| NotWritten {
                    paid: matches!(error, CompactorError::Summary(_)),
                    reason: error.to_string(),
                })?;
                written.ok_or_else(|| NotWritten::paid("it wrote nothing"))
            }
            _ => Err(NotWritten::unpaid("no model is named that could write it")),
        }
    }

    async fn ask_own(
        &self,
        model: &dyn Model,
        mut request: String,
        subject: &SummarySubject<'_>,
    ) -> Result<String, NotWritten> {
        let (format, name) = (subject.target.format(), subject.target.model());
        let spec = subject.target.model_spec(subject.caller.engine.catalogue());
        let spec = spec.map_err(NotWritten::unpaid)?;
        let mut is_reminded = false;
        loop {
            let question = ModelRequest {
                format,
                model: name.to_owned(),
                payload: request.clone(),
            };
            let answer = call_model(model, question, subject.caller).await;
            let answer = answer.map_err(|error| NotWritten {
                reason: error.to_string(),
                paid: is_reminded,
            })?;
            let lifted = lift(format, &answer.body).map_err(NotWritten::paid)?;
            // An error document of a provider can be well-formed JSON of another kind.
            if lifted.kind != DocumentKind::Response {
                return Err(NotWritten::paid("its answer is no response"));
            }
            let info = lifted.transcript.response.unwrap_or_default();
            // Counted before the text is judged: a useless answer was paid for too.
            if let Some(tracker) = subject.side_usage {
                let usage = info.usage.unwrap_or_default();
                tracker.record_call(COMPACTION, name, &usage);
            }
            let mut items = lifted.transcript.items;
            let outputs = refuse_calls(&items);
            if outputs.is_empty() {
                let texts = items.iter().filter(|item| is_said(item)).map(Item::text);
                let text = texts.collect::<Vec<_>>().join("\n");
                return read_summary(&text, info.finish.as_ref()).map_err(NotWritten::paid);
            }
            if is_reminded {
                return Err(NotWritten::paid(
                    "it called a tool twice instead of writing",
                ));
            }
            is_reminded = true;
            let (_, reminder) = summary_reminder();
            items.extend(outputs);
            items.push(Message::text(Role::User, reminder).into());
            // Behind the same bytes once more, so that only its own call is new to the cache.
            request = continue_request(format, &request, &items, self.answer_room(&spec))
                .map_err(NotWritten::paid)?;
        }
    }
}

/// Returns an output for each call of a tool in an answer.
fn refuse_calls(items: &[Item]) -> Vec<Item> {
    let calls = items.iter().filter_map(|item| match item {
        Item::FunctionCall(call) => Some(&call.call_id),
        _ => None,
    });
    let (refusal, _) = summary_reminder();
    calls
        .map(|id| FunctionCallOutput::new(id.clone(), Output::Text(refusal.to_owned())).into())
        .collect()
}

/// Whether an item is what the model says, and not what it thinks.
fn is_said(item: &Item) -> bool {
    matches!(item, Item::Message(message) if message.role == Role::Assistant)
}

/// Predicts what a question to the conversation's own model costs, in pico-dollars.
fn own_cost(subject: &SummarySubject<'_>, request: &str, spec: &ModelSpec) -> Option<u128> {
    let format = subject.target.format();
    let rules = CacheRules::for_model(spec, format);
    let counter = counter_for(spec.encoding);
    let input = predict_continued(format, (subject.body, request), &rules, counter).ok()?;
    let question = Question {
        input,
        answer: EXPECTED_ANSWER,
    };
    question.cost(&spec.prices, spec.cache.kind)
}

/// Checks that a question costs less than a history that is shorter by the span saves over some calls.
fn check_pays(
    subject: &SummarySubject<'_>,
    spec: &ModelSpec,
    cost: Option<u128>,
) -> Result<(), String> {
    let rates = Rates::for_request(&spec.prices, spec.cache.kind, subject.tokens);
    let (Some(cost), Some(rates)) = (cost, rates) else {
        return Err("whether it pays is not known: the catalogue has no price".to_owned());
    };
    let shorter = u128::from(subject.tokens.saturating_sub(EXPECTED_ANSWER));
    let saved = shorter * u128::from(rates.read) * CALLS;
    match cost <= saved {
        true => Ok(()),
        false => Err(format!(
            "it would cost {} and the shorter history saves {} over {CALLS} calls",
            dollars(cost),
            dollars(saved)
        )),
    }
}

fn dollars(pico: u128) -> String {
    Money::from_pico_dollars(pico).to_rounded_string()
}
