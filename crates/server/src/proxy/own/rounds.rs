//! An answer in rounds: calls of ours are answered and the model is asked again, until it says something that is the
//! client's.
//!
//! Each round is stored with what our tools gave, in one append, before the model is asked again.

use contexture::catalogue::Cost;
use contexture::client::{Passed, Passing, Upstream};
use contexture::ir::{FinishReason, Item, Transcript, Usage};
use contexture::wire::StreamEvent;
use contexture::{Ingested, OwnCall, Recorded};
use serde_json::Value;

use crate::app::App;
use crate::proxy::answer;
use crate::proxy::booking::{self, Answer};
use crate::proxy::failing::{fail_open, missed};
use crate::proxy::matching::Miss;
use crate::proxy::outcome::Telling;
use crate::proxy::own::merge::{Ending, merged};
use crate::proxy::own::showing::{Back, Came, Ended, Showing};
use crate::proxy::refusal::Refusal;
use crate::proxy::rewrite::{Recipe, Rewritten, Round, Weighed, now_ms};

/// How often calls of ours are answered before the model must answer.
const ROUNDS: usize = 8;
/// What Responses has beside calls of functions whose results the client owes.
const OWED: [&str; 5] = [
    "custom_tool_call",
    "computer_call",
    "local_shell_call",
    "apply_patch_call",
    "mcp_approval_request",
];

/// An answer that began, how to ask again, and where the client waits.
#[derive(Debug)]
pub(crate) struct Exchange {
    pub(crate) passed: Passed,
    pub(crate) host: Upstream,
    /// What was asked; only its body is another in each round.
    pub(crate) request: Passing,
    pub(crate) back: Back,
}

/// The rounds of one answer.
pub(crate) struct Rounds<'a> {
    pub(crate) app: &'a App,
    pub(crate) told: &'a Telling,
    pub(crate) ingested: Ingested,
    /// The model that was asked.
    pub(crate) model: Option<String>,
    pub(crate) weighed: Weighed,
    pub(crate) recipe: Recipe,
    /// Told what comes, as it comes.
    pub(crate) tell: &'a mut (dyn FnMut(Vec<StreamEvent>) + Send),
}

/// What was kept of the rounds so far.
#[derive(Default)]
struct Kept {
    documents: Vec<Value>,
    usage: Usage,
    cost: Option<Cost>,
    recorded: Option<Recorded>,
}

/// A round that was read.
struct Heard {
    answer: Transcript,
    own: Vec<OwnCall>,
}

impl Rounds<'_> {
    /// Goes through them, and tells what became of it. Gives back the request if nothing came that could be kept.
    pub(crate) async fn answer(
        mut self,
        exchange: Exchange,
        mut sent: Rewritten,
    ) -> Option<Ingested> {
        let Exchange {
            mut passed,
            host,
            request,
            back,
        } = exchange;
        let (format, tools) = (self.recipe.format(), self.recipe.own().clone());
        let mut showing = Showing::of(format, &tools, &passed, back);
        let mut kept = Kept::default();
        loop {
            let came = showing.hear(format, passed, self.tell).await;
            let came = came.and_then(|came| Ok((self.read(&came)?, came)));
            let (answer, came) = match came {
                Ok(came) => came,
                Err(miss) => {
                    missed(self.told, &miss);
                    showing.end(None).await;
                    break;
                }
            };
            match came.ended {
                Ended::Broken => showing.cut().await,
                Ended::Short => showing.end(None).await,
                Ended::Whole => {}
            }
            let Some(answer) = answer else {
                // Nothing came that could be kept.
                showing.end(None).await;
                if kept.recorded.is_none() {
                    return Some(self.ingested);
                }
                break;
            };
            kept.documents.push(came.value());
            let own = tools.answer(&self.ingested.chat, &answer.items).await;
            let heard = Heard { answer, own };
            let goes_on = came.ended == Ended::Whole && heard.asks_only_for_ours();
            let ending = match goes_on {
                true => Ending::Early,
                false => Ending::Own,
            };
            let is_changed = goes_on || kept.documents.len() > 1 || !heard.own.is_empty();
            let whole =
                |kept: &Kept| is_changed.then(|| merged(format, &kept.documents, &tools, ending));
            let rounds = kept.documents.len();
            let is_last = !goes_on || rounds > ROUNDS || showing.is_over();
            if is_last {
                showing.end(whole(&kept).as_ref()).await;
            }
            if let Err(miss) = self.keep(&heard, &sent, &mut kept).await {
                missed(self.told, &miss);
                showing.end(whole(&kept).as_ref()).await;
                break;
            }
            if is_last {
                break;
            }
            let round = match rounds {
                ROUNDS => Round::Last,
                _ => Round::Later,
            };
            sent = match self.recipe.again(&mut self.ingested, round).await {
                Ok(sent) => sent,
                Err(miss) => {
                    fail_open(self.told, &miss);
                    showing.end(whole(&kept).as_ref()).await;
                    break;
                }
            };
            self.weighed.at_ms = now_ms(self.app.engine());
            let asked = host.send(Passing {
                body: sent.body.clone(),
                ..request.clone()
            });
            let asked = tokio::select! {
                asked = asked => asked,
                () = showing.over() => break,
            };
            passed = match asked {
                Ok(passed) if passed.status.is_success() => passed,
                failed => {
                    showing.fail(failed.map_err(Refusal::from)).await;
                    break;
                }
            };
            showing.again().await;
        }
        self.told.tell(|document| {
            if let Some(recorded) = &kept.recorded {
                document.answered(recorded, kept.cost.clone());
            }
            document.done = true;
        });
        None
    }

    fn read(&self, came: &Came) -> Result<Option<Transcript>, Miss> {
        let Some(document) = &came.document else {
            return Ok(None);
        };
        let answer = answer::read(self.recipe.format(), document)?;
        Ok(answer.map(|answer| Transcript {
            // Not every answer says whose it is.
            model: answer.model.or_else(|| self.model.clone()),
            ..answer
        }))
    }

    /// Stores a round.
    async fn keep(&mut self, heard: &Heard, sent: &Rewritten, kept: &mut Kept) -> Result<(), Miss> {
        let Heard { answer, own } = heard;
        let round = match kept.recorded {
            None => Round::First,
            Some(_) => Round::Later,
        };
        let said = Answer {
            weighed: Some(&self.weighed),
            sent: Some(sent),
            round,
            said: answer,
            own,
        };
        let mut recorded = booking::keep(self.app, self.told, &mut self.ingested, said).await?;
        kept.add(&mut recorded, self.ingested.cost(answer));
        kept.recorded = Some(recorded);
        Ok(())
    }
}

impl Heard {
    /// Whether the model waits for our tools and for nothing else.
    fn asks_only_for_ours(&self) -> bool {
        let finish = self
            .answer
            .response
            .as_ref()
            .and_then(|info| info.finish.as_ref());
        let others = |(place, item): (usize, &Item)| match item {
            Item::FunctionCall(_) => !self.own.iter().any(|own| own.place == place),
            Item::Extension(other) => OWED.contains(&other.kind.as_str()),
            _ => false,
        };
        let mut items = self.answer.items.iter().enumerate();
        !self.own.is_empty()
            && self.own.iter().all(|own| own.output.is_some())
            && matches!(finish, Some(FinishReason::ToolCalls | FinishReason::Stop))
            && !items.any(others)
    }
}

impl Kept {
    /// Adds up what the rounds used and cost.
    fn add(&mut self, recorded: &mut Recorded, cost: Option<Cost>) {
        let more = recorded.usage.take().unwrap_or_default();
        let sum = &mut self.usage;
        for (sum, more) in [
            (&mut sum.input_tokens, more.input_tokens),
            (&mut sum.output_tokens, more.output_tokens),
            (&mut sum.cache_read_tokens, more.cache_read_tokens),
        ] {
            if let Some(more) = more {
                *sum = Some(sum.unwrap_or(0).saturating_add(more));
            }
        }
        recorded.usage = Some(sum.clone());
        if let Some(cost) = cost {
            match &mut self.cost {
                Some(sum) => sum.pico_dollars = sum.pico_dollars.saturating_add(cost.pico_dollars),
                None => self.cost = Some(cost),
            }
        }
    }
}
