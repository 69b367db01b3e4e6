//! Model calls of a conversation: compiling them, storing their answers, replaying them.

use contexture_compile::{
    CalibratedRange, CompileError, CompileRequest, Compiled, CountedRequest, Report, RetryBudget,
    Target,
};
use contexture_ir::{Raw, ResponseId, Transcript, Usage};
use contexture_models::ModelError;
use contexture_store::PathEnd;
use contexture_wire::TooLong;

use crate::call::{
    CompileOptions, CompiledCall, KeptCall, LastTarget, Replayed, SentCall, budget_after_refusal,
    compile_call, compile_external, find_last_target, keep_call, learn_from_usage,
    list_response_ids, load_calibrated_range, load_kept_call, load_newest_kept_call, replay_call,
};
use crate::error::EngineError;
use crate::handle::{CallTiming, Conversation, TargetChoice};
use crate::inspect::{Inspection, inspect_conversation};
use crate::record::{RecordOptions, Recorded, record_call, record_failed_call};

impl Conversation {
    /// Loads the range by which counts of a request are calibrated for its model now; `None` if they are not.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// # use contexture_catalogue::Catalogue;
    /// # use contexture_compile::Target;
    /// # use contexture_engine::Engine;
    /// # let chat = Engine::in_memory().conversation("c").open().await?;
    /// let request = Target::anthropic("claude-sonnet-4-5").build_request(Catalogue::builtin())?;
    /// // Nothing was learned yet; see `learn_from_usage`.
    /// assert_eq!(chat.calibrated_range(&request).await, None);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub async fn calibrated_range(&self, request: &CompileRequest) -> Option<CalibratedRange> {
        load_calibrated_range(self, request).await
    }

    /// Learns how a model counts from what its provider reported for a request. Calls teach when their answers are
    /// recorded; this is for what was sent in another way.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// use contexture_compile::{CountedRequest, Target};
    /// use contexture_ir::Usage;
    /// # use contexture_catalogue::Catalogue;
    /// # use contexture_engine::Engine;
    /// # use contexture_ir::user;
    /// # let chat = Engine::in_memory().conversation("c").open().await?;
    ///
    /// let target = Target::anthropic("claude-sonnet-4-5");
    /// chat.save([user("How long is the way from Bamako to Niamey?")]).await?;
    /// let report = chat.compile(&target).await?.report;
    /// // Say the provider reports the middle of the counted range, each time.
    /// let middle = (report.totals.counted.low + report.totals.counted.high) / 2;
    /// let usage = Usage { input_tokens: Some(middle), ..Usage::default() };
    /// for _ in 0..10 {
    ///     chat.learn_from_usage(&CountedRequest::from(&report), Some(&usage)).await;
    /// }
    /// let request = target.build_request(Catalogue::builtin())?;
    /// assert!(chat.calibrated_range(&request).await.is_some());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub async fn learn_from_usage(&self, counting: &CountedRequest, usage: Option<&Usage>) {
        learn_from_usage(self, counting, usage).await
    }

    /// Learns from a provider's refusal of a call as too long, stores what was learned, and returns what the call may take
    /// when it is compiled once more: counted by the upper bound, within what the provider says it takes. `None` where that
    /// would be the same request, so that the refusal stands. `sent` is the report of the refused request.
    ///
    /// Compile with [`CompileAttempt::AfterRefusal`](crate::CompileAttempt::AfterRefusal), send that, and send nothing a third
    /// time. Runs and the proxy do this by themselves, before anything of the answer is seen.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// use contexture_compile::{BudgetCount, Target};
    /// use contexture_engine::{CompileAttempt, CompileOptions};
    /// use contexture_wire::Format;
    /// # use contexture_engine::Engine;
    /// # use contexture_ir::{assistant_text, user};
    /// # let chat = Engine::in_memory().conversation("c").open().await?;
    ///
    /// for round in 0..60 {
    ///     chat.save([user(format!("{round}: {}", "and so on ".repeat(20))), assistant_text("Go on.")]).await?;
    /// }
    /// chat.save([user("Where was I?")]).await?;
    /// let target = Target::anthropic("claude-sonnet-4-5").window(2_000).count(BudgetCount::Likely);
    /// let call = chat.compile(&target).await?;
    /// // The provider counts more than was likely.
    /// let body = r#"{"error": {"message": "prompt is too long: 1781 tokens > 1750 maximum"}}"#;
    /// let refused = Format::Anthropic.spec().too_long(400, body).ok_or("it is another refusal")?;
    /// let budget = chat.budget_after_refusal(&target, &call.report, refused).await;
    /// let target = target.retry_budget(budget.ok_or("nothing is tighter")?);
    /// let options = CompileOptions { attempt: CompileAttempt::AfterRefusal, ..CompileOptions::default() };
    /// let next = chat.compile_with(&target, options).await?;
    /// assert!(next.report.totals.upper <= next.report.target.limit);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub async fn budget_after_refusal(
        &self,
        target: &Target,
        sent: &Report,
        refused: TooLong,
    ) -> Option<RetryBudget> {
        budget_after_refusal(self, target, sent, refused).await
    }

    /// Compiles this branch for one model call, for a target, the name of a target, or
    /// [`TargetChoice::Default`].
    ///
    /// Nothing is stored; the plan of the call is stored with its answer, by
    /// [`record`](Conversation::record). The work is done on the calling thread: cold, about a third
    /// of a second a million tokens; after that in proportion to what is new.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// use contexture_compile::Target;
    /// # use contexture_engine::Engine;
    /// # use contexture_ir::{role, user};
    /// # let chat = Engine::in_memory().conversation("c").open().await?;
    ///
    /// chat.set([role("You are a support agent.")])?;
    /// chat.save([user("Where is my order?")]).await?;
    /// let call = chat.compile(&Target::openai_chat("gpt-4o").window(16_000)).await?;
    /// assert!(call.payload.to_json().contains("Where is my order?"));
    /// assert!(call.report.totals.tokens < 100);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`EngineError::NoTarget`] for a name that is not registered, [`EngineError::Catalogue`] for an unknown model, [`EngineError::Refused`] for what cannot be
    /// compiled, or the store's.
    pub async fn compile(
        &self,
        target: impl Into<TargetChoice<'_>>,
    ) -> Result<CompiledCall, EngineError> {
        compile_call(self, target.into(), CompileOptions::default()).await
    }

    /// Looks at all that the next call would have, without storing anything: the estimate, what each fragment takes and costs, the
    /// rendered system prompt and messages, the record and the drawn tree.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// use contexture_compile::Target;
    /// # use contexture_engine::Engine;
    /// # use contexture_ir::{hint, role, user};
    /// # let chat = Engine::in_memory().conversation("c").open().await?;
    ///
    /// chat.set([role("You are a support agent."), hint("Be brief.")])?;
    /// chat.save([user("Where is my order?")]).await?;
    /// let seen = chat.inspect(&Target::openai_chat("gpt-4o")).await?;
    /// let dearest = seen.fragments.iter().max_by_key(|one| one.tokens).unwrap();
    /// assert_eq!(dearest.name, "role");
    /// assert_eq!(dearest.cost.unwrap().pico_dollars(), u128::from(dearest.tokens) * 2_500_000);
    /// assert!(seen.resolved.system_prompt.contains("Be brief."));
    /// assert!(seen.tree.contains("Where is my order?"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`Self::compile`], of which it is one; what cannot be rendered.
    pub async fn inspect(
        &self,
        target: impl Into<TargetChoice<'_>>,
    ) -> Result<Inspection, EngineError> {
        inspect_conversation(self, target.into()).await
    }

    /// Compiles as [`Self::compile`], with options for this call.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// use contexture_compile::{Contribution, Target};
    /// use contexture_engine::CompileOptions;
    /// # use contexture_engine::Engine;
    /// # use contexture_ir::user;
    /// # let chat = Engine::in_memory().conversation("c").open().await?;
    ///
    /// chat.save([user("What is open?")]).await?;
    /// let file = [Contribution::context("open_file", "src/main.rs")];
    /// let options = CompileOptions { contributions: &file, ..CompileOptions::default() };
    /// let call = chat.compile_with(&Target::openai_chat("gpt-4o"), options).await?;
    /// assert!(call.payload.to_json().contains("src/main.rs"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`Self::compile`]; [`Refusal::Cancelled`](contexture_compile::Refusal::Cancelled).
    pub async fn compile_with<'a>(
        &self,
        target: impl Into<TargetChoice<'_>>,
        options: impl Into<CompileOptions<'a>>,
    ) -> Result<CompiledCall, EngineError> {
        compile_call(self, target.into(), options.into()).await
    }

    /// Compiles a history from outside: its instructions before its items, nothing of what is stored. Work that earlier
    /// compiles of this handle did is reused.
    ///
    /// Its counts are calibrated as those of the call it is compared with ([`CompiledCall::calibrated_range`]), or by what
    /// is known now ([`Self::calibrated_range`]).
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// use contexture_compile::Target;
    /// use contexture_ir::{Message, Role, Transcript};
    /// # use contexture_engine::Engine;
    /// # let chat = Engine::in_memory().conversation("c").open().await?;
    ///
    /// // What would the client's own history have cost?
    /// let mut history = Transcript::default();
    /// history.items.push(Message::text(Role::User, "Hello").into());
    /// let compiled = chat.compile_external(&history, &Target::openai_chat("gpt-4o"), None)?;
    /// assert!(compiled.report.totals.tokens > 0);
    /// # assert_eq!(chat.head().await?, None);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`Compiler::compile`](contexture_compile::Compiler::compile).
    pub fn compile_external(
        &self,
        transcript: &Transcript,
        target: &Target,
        narrowing: Option<CalibratedRange>,
    ) -> Result<Compiled, CompileError> {
        compile_external(self, transcript, target, narrowing)
    }

    /// Stores a model's answer to a compiled call, together with the plan of that call: one
    /// transaction. `response` is the provider's response body, in the format of the call.
    ///
    /// With it is kept what the call was compiled from, as far as
    /// [`Engine::with_record_level`](crate::Engine::with_record_level) says.
    ///
    /// The answer goes behind the head the call was compiled against. If the branch has moved since,
    /// it is kept on a branch of its own. Recording the same answer twice stores it once. Calls of tools
    /// whose names the provider refuses are stored under the names that were given. What the answer reports
    /// of its usage narrows the counts of later calls of the model; see
    /// [`Engine::without_calibration`](crate::Engine::without_calibration).
    ///
    /// A compaction that the provider made stands for all that the call was compiled from, until it is
    /// [taken back](Self::uncompact): its maker is sent it as it came, others its text, or a manifest if it has none.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// # use contexture_compile::Target;
    /// # use contexture_engine::{Engine, MessageView};
    /// # use contexture_ir::user;
    /// # let chat = Engine::in_memory().conversation("c").open().await?;
    /// chat.save([user("Hello")]).await?;
    /// let call = chat.compile(&Target::anthropic("claude-sonnet-4-5")).await?;
    /// # let response = r#"{"id":"msg_1","type":"message","role":"assistant","model":"claude-sonnet-4-5","content":[{"type":"text","text":"Hi."}],"stop_reason":"end_turn","stop_sequence":null,"usage":{"input_tokens":9,"output_tokens":3}}"#;
    /// // `response` is the body that the provider sent back.
    /// let recorded = chat.record(&call, response).await?;
    /// assert_eq!(chat.messages(MessageView::User).await?[1].joined_text(), "Hi.");
    /// assert!(chat.record(&call, response).await?.replayed, "the same answer is stored once");
    /// # assert!(!recorded.replayed);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`EngineError::Wire`] or [`EngineError::NotAResponse`] if `response` is no answer in that
    /// format, or the store's.
    pub async fn record(
        &self,
        call: &CompiledCall,
        response: &str,
    ) -> Result<Recorded, EngineError> {
        self.record_with(call, response, RecordOptions::default())
            .await
    }

    /// Records as [`Self::record`], with options for a step of a run.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// use contexture_engine::RecordOptions;
    /// use contexture_ir::Audience;
    /// # use contexture_compile::Target;
    /// # use contexture_engine::{Engine, MessageView};
    /// # use contexture_ir::user;
    /// # let chat = Engine::in_memory().conversation("c").open().await?;
    ///
    /// chat.save([user("Hello")]).await?;
    /// let call = chat.compile(&Target::anthropic("claude-sonnet-4-5")).await?;
    /// # let response = r#"{"id":"msg_1","type":"message","role":"assistant","model":"claude-sonnet-4-5","content":[{"type":"text","text":"Hi."}],"stop_reason":"end_turn","stop_sequence":null,"usage":{"input_tokens":9,"output_tokens":3}}"#;
    /// // Only later model calls see this answer; people do not.
    /// let options = RecordOptions { audience: Audience::MODEL, ..RecordOptions::default() };
    /// chat.record_with(&call, response, options).await?;
    /// assert_eq!(chat.messages(MessageView::User).await?.len(), 1);
    /// assert_eq!(chat.messages(MessageView::Model).await?.len(), 2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`Self::record`]; [`EngineError::Layers`] for a layer that must not fail; with layers of a run one that [is
    /// about a stale state](EngineError::is_stale_state): nothing is stored then, see [`Self::refresh_session`].
    pub async fn record_with(
        &self,
        call: &CompiledCall,
        response: &str,
        options: RecordOptions<'_>,
    ) -> Result<Recorded, EngineError> {
        let sent = SentCall::from_call(self.engine(), call);
        let recorded = record_call(self, &sent, response, options).await?;
        // An answer on a branch of its own is not where the conversation goes on.
        if !recorded.replayed && !recorded.on_sibling_branch {
            call.begin_work_after_answer(self);
        }
        Ok(recorded)
    }

    /// Keeps a compiled call until its answer comes, perhaps in another process, and returns its id: the same for the same
    /// call and note. Nothing of the conversation changes.
    ///
    /// It is kept for an hour at least, unless more than 32 others of the conversation are kept meanwhile. The note is its
    /// maker's own.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// # use contexture_compile::Target;
    /// # use contexture_engine::Engine;
    /// # use contexture_ir::{Raw, user};
    /// # let chat = Engine::in_memory().conversation("c").open().await?;
    /// chat.save([user("Hello")]).await?;
    /// let call = chat.compile(&Target::anthropic("claude-sonnet-4-5")).await?;
    /// let id = chat.keep_call(&call, Raw::null()).await?;
    /// # let response = r#"{"id":"msg_1","type":"message","role":"assistant","model":"claude-sonnet-4-5","content":[{"type":"text","text":"Hi."}],"stop_reason":"end_turn","stop_sequence":null,"usage":{"input_tokens":9,"output_tokens":3}}"#;
    /// // `response` is the body that the provider sent back.
    /// let kept = chat.kept_call(&id).await?.ok_or("it is kept for an hour")?;
    /// let recorded = chat.record_kept(&kept, response).await?;
    /// assert!(chat.kept_call("another").await?.is_none());
    /// # assert!(!recorded.replayed);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// The store's.
    pub async fn keep_call(&self, call: &CompiledCall, note: Raw) -> Result<String, EngineError> {
        keep_call(self, call, note).await
    }

    /// Returns a call that was [kept](Self::keep_call); `None` if it is not kept any more, or never was.
    ///
    /// # Errors
    /// The store's.
    pub async fn kept_call(&self, id: &str) -> Result<Option<KeptCall>, EngineError> {
        load_kept_call(self, id).await
    }

    /// Returns the call that was [kept](Self::keep_call) last, within the last hour; `None` if there is none.
    ///
    /// # Errors
    /// The store's.
    pub async fn newest_kept_call(&self) -> Result<Option<KeptCall>, EngineError> {
        load_newest_kept_call(self).await
    }

    /// Stores a model's answer to a call that was [kept](Self::keep_call), as [`Self::record`] does. The same answer again
    /// is stored once.
    ///
    /// # Errors
    /// As [`Self::record`].
    pub async fn record_kept(
        &self,
        kept: &KeptCall,
        response: &str,
    ) -> Result<Recorded, EngineError> {
        record_call(self, &kept.call, response, RecordOptions::default()).await
    }

    /// Records that a call got no answer, so that the record of calls has it: why, or `None` if it was called off. A store
    /// without such a record changes nothing, and a failure to store the row is logged.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// use contexture_engine::CallTiming;
    /// # use contexture_compile::Target;
    /// # use contexture_engine::Engine;
    /// # use contexture_ir::user;
    /// # use contexture_store::{CallOutcome, ListCalls};
    /// # let chat = Engine::in_memory().conversation("c").open().await?;
    /// chat.save([user("Hello")]).await?;
    /// let call = chat.compile(&Target::anthropic("claude-sonnet-4-5")).await?;
    /// chat.record_failed_call(&call, None, CallTiming::default()).await;
    /// # let calls = chat.engine().store().calls().unwrap();
    /// # let listed = calls.list_calls(chat.owner(), ListCalls::default()).await?.calls;
    /// # assert_eq!(listed[0].outcome, CallOutcome::Incomplete);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub async fn record_failed_call(
        &self,
        call: &CompiledCall,
        error: Option<&ModelError>,
        timing: CallTiming,
    ) {
        record_failed_call(self, call, error, timing).await;
    }

    /// Compiles a past call again from its record and compares the payload with the one that was sent.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// # use contexture_compile::Target;
    /// # use contexture_engine::Engine;
    /// # use contexture_ir::user;
    /// # let chat = Engine::in_memory().conversation("c").open().await?;
    /// chat.save([user("Hello")]).await?;
    /// let call = chat.compile(&Target::anthropic("claude-sonnet-4-5")).await?;
    /// # let response = r#"{"id":"msg_1","type":"message","role":"assistant","model":"claude-sonnet-4-5","content":[{"type":"text","text":"Hi."}],"stop_reason":"end_turn","stop_sequence":null,"usage":{"input_tokens":9,"output_tokens":3}}"#;
    /// let recorded = chat.record(&call, response).await?;
    /// let replayed = chat.replay(recorded.response).await?;
    /// assert!(replayed.is_equal());
    /// assert_eq!(replayed.payload.to_json(), call.payload.to_json());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `NotFound` for an answer that is not there; [`EngineError::Unreplayable`];
    /// [`EngineError::Refused`] if another compiler refuses it; or the store's.
    pub async fn replay(&self, response: ResponseId) -> Result<Replayed, EngineError> {
        replay_call(self, response).await
    }

    /// Lists the answers on a path, oldest first. Imported answers have items but no record.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// use contexture_store::PathEnd;
    /// # use contexture_compile::Target;
    /// # use contexture_engine::Engine;
    /// # use contexture_ir::user;
    /// # let chat = Engine::in_memory().conversation("c").open().await?;
    ///
    /// chat.save([user("Hello")]).await?;
    /// let call = chat.compile(&Target::anthropic("claude-sonnet-4-5")).await?;
    /// # let response = r#"{"id":"msg_1","type":"message","role":"assistant","model":"claude-sonnet-4-5","content":[{"type":"text","text":"Hi."}],"stop_reason":"end_turn","stop_sequence":null,"usage":{"input_tokens":9,"output_tokens":3}}"#;
    /// let recorded = chat.record(&call, response).await?;
    /// let ids = chat.response_ids(PathEnd::Branch(chat.branch())).await?;
    /// assert_eq!(ids, [recorded.response]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// The store's.
    pub async fn response_ids(&self, at: PathEnd) -> Result<Vec<ResponseId>, EngineError> {
        list_response_ids(self, at).await
    }

    /// Returns the name of the model that gave the newest recorded answer of this branch, as far as one is among its last 256
    /// items; without one the model of the request that the history was imported with. `None` if neither names one.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// # use contexture_compile::Target;
    /// # use contexture_engine::Engine;
    /// # use contexture_ir::user;
    /// # let chat = Engine::in_memory().conversation("c").open().await?;
    ///
    /// chat.save([user("Hello")]).await?;
    /// assert_eq!(chat.last_model().await?, None);
    /// let call = chat.compile(&Target::anthropic("claude-sonnet-4-5")).await?;
    /// # let response = r#"{"id":"msg_1","type":"message","role":"assistant","model":"claude-sonnet-4-5","content":[{"type":"text","text":"Hi."}],"stop_reason":"end_turn","stop_sequence":null,"usage":{"input_tokens":9,"output_tokens":3}}"#;
    /// chat.record(&call, response).await?;
    /// assert_eq!(chat.last_model().await?.as_deref(), Some("claude-sonnet-4-5"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// The store's.
    pub async fn last_model(&self) -> Result<Option<String>, EngineError> {
        let last = self.last_target().await?;
        Ok(last.map(|last| last.model))
    }

    /// Returns the model of [`Self::last_model`] with the format that it was asked in, as far as that is known: so a loop goes on as
    /// it was, without naming either.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// use contexture_catalogue::Catalogue;
    /// use contexture_compile::Target;
    /// use contexture_wire::Format;
    /// # use contexture_engine::Engine;
    /// # use contexture_ir::user;
    /// # let chat = Engine::in_memory().conversation("c").open().await?;
    ///
    /// chat.save([user("Hello")]).await?;
    /// let call = chat.compile(&Target::openai_chat("gpt-4o")).await?;
    /// # let response = r#"{"id":"c1","object":"chat.completion","model":"gpt-4o","choices":[{"index":0,"message":{"role":"assistant","content":"Hi."},"finish_reason":"stop"}]}"#;
    /// chat.record(&call, response).await?;
    /// let last = chat.last_target().await?.ok_or("an answer is recorded")?;
    /// // Not the Responses format, in which its provider is called by default.
    /// assert_eq!(last.request_format(Catalogue::builtin()), Format::OpenAiChat);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// The store's.
    pub async fn last_target(&self) -> Result<Option<LastTarget>, EngineError> {
        find_last_target(self, self.current_position()).await
    }
}
