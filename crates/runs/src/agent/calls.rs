//! Running the calls of an answer: policy, layers, people; then tools, functions of layers, other agents.
//!
//! Not here: what a tool is ([`crate::ToolBox`]), child runs ([`super::children`]), how outputs are stored
//! (`outputs`).

use std::collections::BTreeSet;
use std::iter::Peekable;
use std::sync::Arc;
use std::vec::IntoIter;

use contexture_ir::{NodeId, Raw};
use contexture_layers::{Gate, Offered, Rerun, ToolRequest};
use contexture_store::StateChange;
use contexture_telemetry::Operation;
use contexture_tools::{Call as ToolsCall, Name, ToolId, Verdict, arguments};
use futures_util::future::{join, join_all};
use tokio::sync::mpsc;
use tracing::Instrument as _;

use super::approval::Decision;
use super::children::Delegated;
use super::entry::VERSION;
use super::event::RunNews;
use super::keys::started_key;
use super::outputs::told;
use super::run::{Run, json};
use super::situation::{Call, Calls, Next};
use crate::error::RunError;
use crate::tools::{Allowed, Lane, Pending, Permit, Resolution, ToolFailure, ToolOutput, answer};

/// What a call comes to.
enum Planned {
    /// This, without anything being run.
    Answer(Result<ToolOutput, ToolFailure>),
    /// A tool.
    Tool(Permit),
    /// A toolkit is loaded.
    Load(Name),
    /// A function of a layer.
    Function(Raw),
    /// Another agent's task.
    Task(String),
    /// Somebody has to decide first.
    Wait,
}

/// A call, what it comes to, and what the model is told with its output.
struct Plan {
    call: Call,
    planned: Planned,
    guidance: String,
}

/// A tool's call that was run.
struct Ran {
    call: Call,
    /// Whether its beginning was noted.
    marked: bool,
    guidance: String,
    result: Result<ToolOutput, ToolFailure>,
}

type Plans = Peekable<IntoIter<Plan>>;

impl Run {
    /// Runs calls. Those that wait for a person are left; gives those to decide about, of this run and of runs below it.
    pub(crate) async fn run_calls(&mut self, calls: Calls) -> Result<Vec<NodeId>, RunError> {
        let mut plans = Vec::new();
        for call in calls.calls.clone() {
            plans.push(self.plan(call).await?);
        }
        let (waiting, plans): (Vec<Plan>, Vec<Plan>) = plans
            .into_iter()
            .partition(|plan| matches!(plan.planned, Planned::Wait));
        if !plans.is_empty() {
            self.enter_step(calls.step);
        }
        self.mark_started(&plans).await?;
        let mut waits: Vec<NodeId> = waiting.iter().map(|plan| plan.call.node).collect();
        let mut left: BTreeSet<NodeId> = waits.iter().copied().collect();
        let mut plans = plans.into_iter().peekable();
        while let Some(plan) = plans.next() {
            let node = plan.call.node;
            let below = self.carry_out(&calls, plan, &mut plans).await?;
            if !below.is_empty() {
                left.insert(node);
                waits.extend(below);
            }
        }
        self.next = match waits.is_empty() {
            true => Next::Ask { refused: 0 },
            false => {
                let each = calls.calls.into_iter();
                Next::Run(Calls {
                    calls: each.filter(|call| left.contains(&call.node)).collect(),
                    ..calls
                })
            }
        };
        Ok(waits)
    }

    /// Carries out one call, or those that run beside each other. Gives the calls below that wait, and with them this
    /// one.
    async fn carry_out(
        &mut self,
        of: &Calls,
        plan: Plan,
        rest: &mut Plans,
    ) -> Result<Vec<NodeId>, RunError> {
        let Plan {
            call,
            planned,
            guidance,
        } = plan;
        let node = call.node;
        if !matches!(planned, Planned::Answer(_) | Planned::Wait) {
            let call = call.call.clone();
            self.tell(|| RunNews::ToolStarted { node, call });
        }
        match planned {
            Planned::Tool(permit) => self.tools(of, call, permit, guidance, rest).await?,
            Planned::Function(arguments) => self.function(of, &call, &arguments, &guidance).await?,
            Planned::Task(task) => {
                let operation = Operation::tool(&call.call.name, &call.call.call_id);
                let delegated = Box::pin(self.delegate(of, &call, &task));
                let delegated = delegated.instrument(operation.span().clone()).await?;
                let (result, changes) = match delegated {
                    Delegated::Done { result, changes } => (result, changes),
                    Delegated::Waits(calls) => {
                        operation.end(None);
                        return Ok(calls);
                    }
                };
                operation.end(result.as_ref().err().map(ToolFailure::kind));
                let output = told(answer(&call.call.call_id, result), &guidance);
                self.output(of, &call, output, changes).await?;
            }
            Planned::Load(kit) => {
                self.loaded.load(kit.clone());
                let change = self.loaded_change()?;
                let text = format!("{kit} is loaded: its tools can be called now");
                let output = answer(&call.call.call_id, Ok(text.into()));
                let output = told(output, &guidance);
                self.output(of, &call, output, vec![change]).await?;
            }
            Planned::Answer(result) => {
                let output = told(answer(&call.call.call_id, result), &guidance);
                self.output(of, &call, output, Vec::new()).await?;
            }
            Planned::Wait => {}
        }
        Ok(Vec::new())
    }

    /// Runs a tool, and those behind it that may run beside it. What one gives is stored while the others go on.
    async fn tools(
        &mut self,
        of: &Calls,
        call: Call,
        permit: Permit,
        guidance: String,
        rest: &mut Plans,
    ) -> Result<(), RunError> {
        let together = permit.lane() == Lane::Together;
        let mut batch = vec![(call, permit, guidance)];
        let beside = |plan: &Plan| matches!(&plan.planned, Planned::Tool(permit) if permit.lane() == Lane::Together);
        while together && let Some(plan) = rest.next_if(beside) {
            if let Planned::Tool(permit) = plan.planned {
                let (node, call) = (plan.call.node, plan.call.call.clone());
                self.tell(|| RunNews::ToolStarted { node, call });
                batch.push((plan.call, permit, plan.guidance));
            }
        }
        let (done, mut results) = mpsc::channel(batch.len());
        let (tools, abort) = (Arc::clone(&self.agent.tools), self.abort.clone());
        let run = async move {
            let each = batch.into_iter().map(async |(call, permit, guidance)| {
                let marked = permit.rerun() != Rerun::Again;
                let result = tools.run(permit, &abort).await;
                let ran = Ran {
                    call,
                    marked,
                    guidance,
                    result,
                };
                // Where nobody stores it any more, the store has failed.
                drop(done.send(ran).await);
            });
            join_all(each).await;
        };
        let store = async {
            while let Some(ran) = results.recv().await {
                self.ran(of, ran).await?;
            }
            Ok(())
        };
        join(run, store).await.1
    }

    /// Stores what a tool gave.
    async fn ran(&mut self, of: &Calls, ran: Ran) -> Result<(), RunError> {
        let mut changes = Vec::new();
        if ran.marked {
            changes.push(StateChange::remove(started_key(self.id, ran.call.node)?));
        }
        if let Ok(ToolOutput {
            completes: Some(value),
            ..
        }) = &ran.result
        {
            changes.extend(self.completed(value.clone())?);
        }
        let output = answer(&ran.call.call.call_id, ran.result);
        let output = told(output, &ran.guidance);
        self.output(of, &ran.call, output, changes).await
    }

    /// Notes that these tools begin, before they do, where a second time would not be the same.
    async fn mark_started(&mut self, plans: &[Plan]) -> Result<(), RunError> {
        let mut changes = Vec::new();
        for plan in plans {
            if let Planned::Tool(permit) = &plan.planned
                && permit.rerun() != Rerun::Again
            {
                let key = started_key(self.id, plan.call.node)?;
                let started = self.left.started(plan.call.node, permit.tool());
                changes.push(StateChange::put(key, VERSION, json(&started)));
            }
        }
        match changes.is_empty() {
            true => Ok(()),
            false => self.note("started", changes).await,
        }
    }

    /// What a call comes to: first what the policy says, then what layers say, then what a person says.
    async fn plan(&mut self, call: Call) -> Result<Plan, RunError> {
        let mut guidance = String::new();
        let planned = match self.reach(&call) {
            Reached::Not(failure) => Planned::Answer(Err(failure)),
            Reached::At {
                planned,
                request,
                mut why,
                pending,
            } => match self.session.before_tool(&request).await {
                Gate::Deny(reason) => Planned::Answer(Err(ToolFailure::Denied { why: reason })),
                gate => {
                    // What a person denied stays denied, whatever the policy says by now.
                    let denied =
                        matches!(self.left.decision(call.node), Some(Decision::Deny { .. }));
                    let mut asks = denied || why.is_some();
                    match gate {
                        Gate::Ask(said) => {
                            asks = true;
                            why = Some(said);
                        }
                        Gate::Guide(said) => guidance = said,
                        Gate::Approve => asks = denied,
                        Gate::Allow | Gate::Deny(_) => {}
                    }
                    let why = why.unwrap_or_default();
                    match asks {
                        false => allowed(planned, pending),
                        true => match self.decision(call.node, &request, &why).await {
                            Decision::Allow => allowed(planned, pending),
                            Decision::Later => Planned::Wait,
                            Decision::Deny { reason } => {
                                Planned::Answer(Err(ToolFailure::Denied { why: reason }))
                            }
                        },
                    }
                }
            },
        };
        Ok(Plan {
            planned: self.begun_before(&call, planned),
            call,
            guidance,
        })
    }

    async fn decision(&self, node: NodeId, request: &ToolRequest, why: &str) -> Decision {
        match self.left.decision(node) {
            Some(decision) => decision.clone(),
            None => {
                let asked = self.agent.approver.decide(request, why);
                self.abort.guard(asked).await.unwrap_or(Decision::Later)
            }
        }
    }

    /// A tool that was begun by a process that died: as its policy says.
    fn begun_before(&self, call: &Call, planned: Planned) -> Planned {
        let Planned::Tool(permit) = &planned else {
            return planned;
        };
        if !self.left.is_begun(call.node) {
            return planned;
        }
        match permit.rerun() {
            Rerun::Again => planned,
            Rerun::Ask => match self.left.decision_since_begun(call.node) {
                Some(Decision::Allow) => planned,
                Some(Decision::Deny { reason }) => Planned::Answer(Err(ToolFailure::Denied {
                    why: reason.clone(),
                })),
                _ => Planned::Wait,
            },
            Rerun::Unknown => Planned::Answer(Err(ToolFailure::failed(format_args!(
                "{} was begun and cut off: nobody knows whether it did its work; look before calling it again",
                permit.tool()
            )))),
        }
    }

    /// Which tool a call reaches, and whether the policy lets it run.
    fn reach(&self, call: &Call) -> Reached {
        let name = &call.call.name;
        let function = self.session.layers().function(name);
        let offered = function.is_some_and(|(_, function)| function.offered == Offered::Model);
        let delegated = self.agent.agents.contains_key(name);
        if !offered && !delegated {
            let resolved = self.agent.tools.resolve(
                &ToolsCall::from(&call.call),
                &call.call.call_id,
                &self.loaded,
            );
            return match resolved {
                Err(failure) => Reached::Not(failure),
                Ok(Resolution::Ask(pending)) => Reached::At {
                    planned: Planned::Wait,
                    request: pending.request(),
                    why: Some(String::new()),
                    pending: Some(pending),
                },
                Ok(Resolution::Allowed(Allowed::Run(permit))) => Reached::At {
                    request: permit.request(),
                    planned: Planned::Tool(permit),
                    why: None,
                    pending: None,
                },
                Ok(Resolution::Allowed(Allowed::Load(kit))) => Reached::At {
                    request: request(call, &Raw::null()),
                    planned: Planned::Load(kit),
                    why: None,
                    pending: None,
                },
            };
        }
        let verdict = self
            .agent
            .tools
            .policy()
            .decide_name(&ToolId::flat(name))
            .verdict;
        if verdict == Verdict::Deny {
            let why = format!("{name} is denied");
            return Reached::Not(ToolFailure::Denied { why });
        }
        let read = match arguments::read(&call.call.arguments) {
            Ok(read) => read.raw,
            Err(error) => {
                let why = format!("{name}: {error}");
                return Reached::Not(ToolFailure::BadArguments { why });
            }
        };
        let planned = match delegated {
            false => Planned::Function(read.clone()),
            true => match read.to::<Task>() {
                Ok(task) => Planned::Task(task.task),
                Err(_) => {
                    let why = format!("{name}: expected an object with the text \"task\"");
                    return Reached::Not(ToolFailure::BadArguments { why });
                }
            },
        };
        Reached::At {
            request: request(call, &read),
            planned,
            why: (verdict == Verdict::Ask).then(String::new),
            pending: None,
        }
    }
}

/// Where a call leads.
enum Reached {
    /// Nowhere.
    Not(ToolFailure),
    /// To something that may run, or about which somebody is to be asked if there is a `why`.
    At {
        planned: Planned,
        request: ToolRequest,
        why: Option<String>,
        pending: Option<Pending>,
    },
}

#[derive(serde::Deserialize)]
struct Task {
    task: String,
}

fn request(call: &Call, arguments: &Raw) -> ToolRequest {
    ToolRequest {
        tool: call.call.name.clone(),
        called: call.call.name.clone(),
        call_id: call.call.call_id.clone(),
        arguments: arguments.clone(),
    }
}

/// What was asked about, once it is allowed.
fn allowed(planned: Planned, pending: Option<Pending>) -> Planned {
    match pending.map(Pending::approve) {
        None => planned,
        Some(Allowed::Run(permit)) => Planned::Tool(permit),
        Some(Allowed::Load(kit)) => Planned::Load(kit),
    }
}
