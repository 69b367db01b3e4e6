//! Asking the model: compile, call, let layers judge, record.

use std::sync::Arc;

use contexture_engine::{
    CompileOptions, CompiledCall, EngineError, RecordOptions, Recorded, RegistryTools,
};
use contexture_ir::{
    Audience, Extra, FunctionTool, Item, Message, Origin, Raw, Role, ToolDefinition, Usage,
};
use contexture_layers::Verdict;
use contexture_layers::builtin::Guardrails;
use contexture_llm::{ModelError, ModelRequest};
use contexture_store::{NewItem, StateChange};
use contexture_telemetry::ModelCall;
use contexture_wire::lift;
use tracing::Instrument as _;

use super::beside::Beside;
use super::entry::VERSION;
use super::event::RunNews;
use super::keys::{node_id, stop_key};
use super::run::{Run, json};
use super::situation::{Call, Calls, Next};
use super::spending::price;
use crate::cancel::Cancelled;
use crate::error::RunError;
use crate::retry::Retryable;
use crate::usage::Spent;

/// What a call of a model came to.
enum Streamed {
    Whole(String),
    /// What came until it was called off.
    Cut(String, Cancelled),
    Failed(ModelError),
}

impl Streamed {
    /// What kind of failure it was, if one.
    const fn failed(&self) -> Option<&'static str> {
        match self {
            Self::Whole(_) => None,
            Self::Cut(..) => Some("cancelled"),
            Self::Failed(error) => Some(error.kind()),
        }
    }
}

impl Run {
    /// Asks the model once more.
    pub(crate) async fn ask(&mut self, refused: u32) -> Result<(), RunError> {
        self.enter_step(self.step.saturating_add(1));
        let call = self.compiled().await?;
        self.tell(|| RunNews::Asking {
            model: call.report.target.model.clone(),
            tokens: call.report.totals.tokens,
        });
        let body = self.answered(&call).await?;
        let (verdict, kept, recorded) = self.judged(&call, &body).await?;
        if recorded.sibling {
            // Somebody was faster: the answer is kept on a branch of its own, and the model is asked about what is there.
            self.chat.again(&mut self.session).await?;
            self.goes_on_with(Next::Ask { refused });
            return Ok(());
        }
        let next = match verdict {
            Verdict::Retry { feedback } => {
                if refused >= self.refusals() {
                    return Err(RunError::Denied {
                        why: format!(
                            "layers refused {} answers, the last one saying: {feedback}",
                            refused + 1
                        ),
                    });
                }
                self.tell(|| RunNews::Refused { feedback });
                Next::Ask {
                    refused: refused + 1,
                }
            }
            Verdict::Stop { reason } => Next::End { text: reason },
            Verdict::Pass | Verdict::Fix(_) => self.behind(&call, &recorded, kept),
        };
        self.goes_on_with(next);
        Ok(())
    }

    /// What layers say to an answer, what is kept of it, and how it is stored. Where another changed a layer's state
    /// meanwhile, they are asked again.
    async fn judged(
        &mut self,
        call: &CompiledCall,
        body: &str,
    ) -> Result<(Verdict, Vec<Item>, Recorded), RunError> {
        let answer = lift(call.format(), body).map_err(EngineError::from)?;
        let mut said = answer.transcript.items;
        call.renames().restore(&mut said);
        loop {
            let verdict = self.session.after_model(&said).await?;
            let options = self.kept_as(&verdict)?;
            let kept = options.instead.clone();
            match self.record(call, body, options).await {
                Ok(recorded) => return Ok((verdict, kept.unwrap_or(said), recorded)),
                Err(error) => self.outrun(error).await?,
            }
        }
    }

    /// How an answer is stored that layers say this to.
    fn kept_as(&self, verdict: &Verdict) -> Result<RecordOptions<'static>, RunError> {
        let mut options = RecordOptions {
            step: Some(self.run_step()),
            ..RecordOptions::default()
        };
        match verdict {
            Verdict::Pass => {}
            // Kept with the answer: whoever goes on with the run stops too.
            Verdict::Stop { reason } => {
                let stop = StateChange::put(stop_key(self.id)?, VERSION, json(reason));
                options.changes = vec![stop];
            }
            Verdict::Fix(items) => options.instead = Some(items.clone()),
            Verdict::Retry { feedback } => {
                options.audience = Audience::NONE;
                options.behind = vec![self.feedback(feedback)];
            }
        }
        Ok(options)
    }

    /// The call, compacted where it is due.
    async fn compiled(&self) -> Result<CompiledCall, RunError> {
        let mut tools: Vec<ToolDefinition> = Vec::new();
        for (name, agent) in &self.agent.agents {
            tools.push(delegation(name, &agent.description));
        }
        let mut target = self.agent.target.clone();
        if !tools.is_empty() {
            target = target.also_tools(tools);
        }
        let options = CompileOptions {
            layers: Some(&self.session),
            tools: Some(RegistryTools {
                registry: self.agent.tools.registry(),
                choice: &self.agent.choice,
                loaded: &self.loaded,
            }),
            ..CompileOptions::default()
        };
        let mut prepare = self.agent.prepare.clone();
        let key = node_id(self.id, "compaction", &self.step.to_le_bytes());
        prepare.compact.ledger = Some(Arc::<Beside>::clone(&self.beside));
        prepare.compact.key = Some(*key.as_bytes());
        let prepared = self.chat.prepare_with(&target, &prepare, options);
        Ok(prepared.await?.call)
    }

    /// The model's answer, asked for again where it failed in passing.
    async fn answered(&mut self, call: &CompiledCall) -> Result<String, RunError> {
        let mut attempt = 0;
        loop {
            attempt += 1;
            let request = ModelRequest {
                format: call.format(),
                model: call.report.target.model.clone(),
                payload: call.payload.to_json(),
            };
            let conversation = Some(self.chat.id().as_str());
            let mut told = ModelCall::begin(request.format, &request.model, conversation);
            let span = told.span().clone();
            let streaming = self.streamed(request, &mut told).instrument(span);
            let streamed = streaming.await;
            told.end(streamed.failed());
            match streamed {
                Streamed::Whole(body) => return Ok(body),
                Streamed::Cut(body, cancelled) => {
                    self.keep_cut(call, &body).await?;
                    return Err(cancelled.into());
                }
                Streamed::Failed(error) => {
                    let again = Retryable::is_retryable(&error);
                    let wait = self.agent.retry.wait(attempt, error.retry_after());
                    let Some(wait) = wait.filter(|_| again) else {
                        return Err(error.into());
                    };
                    let why = error.to_string();
                    self.tell(|| RunNews::Retrying { attempt, why });
                    self.abort.guard(tokio::time::sleep(wait)).await?;
                }
            }
        }
    }

    async fn streamed(&self, request: ModelRequest, told: &mut ModelCall) -> Streamed {
        let begun = self.abort.guard(self.agent.model.stream(request)).await;
        let mut stream = match begun {
            Err(cancelled) => return Streamed::Cut(String::new(), cancelled),
            Ok(Err(error)) => return Streamed::Failed(error),
            Ok(Ok(stream)) => stream,
        };
        loop {
            match self.abort.guard(stream.next()).await {
                Err(cancelled) => return Streamed::Cut(stream.so_far().body, cancelled),
                Ok(Some(Ok(event))) => {
                    told.event(&event);
                    self.tell(|| RunNews::Delta(event));
                }
                Ok(Some(Err(error))) => return Streamed::Failed(error),
                Ok(None) => return Streamed::Whole(stream.so_far().body),
            }
        }
    }

    /// Keeps what came of an answer that was cut off: people see it, models do not.
    async fn keep_cut(&mut self, call: &CompiledCall, body: &str) -> Result<(), RunError> {
        let Ok(lifted) = lift(call.format(), body) else {
            return Ok(());
        };
        if lifted.transcript.items.is_empty() {
            return Ok(());
        }
        loop {
            let options = RecordOptions {
                step: Some(self.run_step()),
                audience: Audience::USER,
                ..RecordOptions::default()
            };
            match self.record(call, body, options).await {
                Ok(_) => return Ok(()),
                Err(error) => self.outrun(error).await?,
            }
        }
    }

    async fn record(
        &mut self,
        call: &CompiledCall,
        body: &str,
        options: RecordOptions<'_>,
    ) -> Result<Recorded, RunError> {
        let options = RecordOptions {
            layers: Some(&mut self.session),
            ..options
        };
        let recorded = self.chat.record_with(call, body, options).await?;
        self.lost = 0;
        let usage = recorded.usage.clone().unwrap_or_default();
        self.spent
            .add(&self.price(&call.report.target.model, &usage));
        let (response, spent) = (recorded.response, self.spent());
        self.tell(|| RunNews::Answered { response, spent });
        Ok(recorded)
    }

    /// What the model is told of an answer that layers refuse.
    fn feedback(&self, feedback: &str) -> NewItem {
        let item = Item::Message(Message::text(Role::Developer, feedback));
        let id = node_id(self.id, "feedback", &self.step.to_le_bytes());
        NewItem {
            origin: Origin::Layer,
            audience: Audience::MODEL,
            ..self.chat.new_item(id, &item, Some(self.run_step()))
        }
    }

    /// How often an answer that layers refuse is asked for again: as the agent says, or its guardrails where that is less.
    fn refusals(&self) -> u32 {
        let guardrails = self.session.layers().layer::<Guardrails>();
        let most = guardrails.map_or(u32::MAX, |(_, guardrails)| guardrails.max_retries());
        self.agent.refusals.min(most)
    }

    /// What a call of a model cost.
    pub(crate) fn price(&self, model: &str, usage: &Usage) -> Spent {
        price(self.chat.engine().catalogue(), model, usage)
    }

    /// What comes after an answer.
    fn behind(&self, call: &CompiledCall, recorded: &Recorded, kept: Vec<Item>) -> Next {
        let mut calls = Vec::new();
        let mut text = String::new();
        for (node, item) in recorded.nodes.iter().zip(kept) {
            match item {
                Item::FunctionCall(call) => calls.push(Call { node: *node, call }),
                item @ Item::Message(_) => text.push_str(&item.text()),
                _ => {}
            }
        }
        match calls.is_empty() {
            true => Next::End { text },
            false => Next::Run(Calls {
                message: recorded.message.clone(),
                base: call.base(),
                step: self.step.saturating_add(1),
                calls,
            }),
        }
    }
}

/// An agent, offered as a tool.
fn delegation(name: &str, description: &str) -> ToolDefinition {
    let schema = r#"{"type":"object","properties":{"task":{"type":"string","description":"What is to be done, with all that is needed to do it"}},"required":["task"],"additionalProperties":false}"#;
    ToolDefinition::Function(FunctionTool {
        name: name.to_owned(),
        description: Some(description.to_owned()),
        parameters: Raw::parse(schema).ok(),
        strict: None,
        extra: Extra::default(),
    })
}
