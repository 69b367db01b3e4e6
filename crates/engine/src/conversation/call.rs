//! Model calls of a conversation: compiling them, storing their answers, replaying them.

use contexture_compile::{
    CalibratedRange, CompileError, CompileRequest, Compiled, CountedRequest, Target,
};
use contexture_ir::{ResponseId, Transcript, Usage};
use contexture_store::PathEnd;

use crate::call::{
    CompileOptions, CompiledCall, Replayed, compile_call, compile_external, learn_from_usage,
    list_response_ids, load_calibrated_range, replay_call,
};
use crate::error::EngineError;
use crate::handle::{Conversation, TargetChoice};
use crate::record::{RecordOptions, Recorded, record_call};

impl Conversation {
    /// Loads the range by which counts of a request are calibrated for its model now; `None` if they are not.
    pub async fn calibrated_range(&self, request: &CompileRequest) -> Option<CalibratedRange> {
        load_calibrated_range(self, request).await
    }

    /// Learns how a model counts from what its provider reported for a request. Calls teach when their answers are
    /// recorded; this is for what was sent in another way.
    pub async fn learn_from_usage(&self, counting: &CountedRequest, usage: Option<&Usage>) {
        learn_from_usage(self, counting, usage).await
    }

    /// Compiles this branch for one model call, for a target, the name of a target, or
    /// [`TargetChoice::Default`].
    ///
    /// Nothing is stored; the plan of the call is stored with its answer, by
    /// [`record`](Conversation::record). The work is done on the calling thread: cold, about a third
    /// of a second a million tokens; after that in proportion to what is new.
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

    /// Compiles as [`Self::compile`], with options for this call.
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
    /// # Errors
    /// [`EngineError::Wire`] or [`EngineError::NotAResponse`] if `response` is no answer in that
    /// format, or the store's.
    pub async fn record(
        &self,
        call: &CompiledCall,
        response: &str,
    ) -> Result<Recorded, EngineError> {
        record_call(self, call, response, RecordOptions::default()).await
    }

    /// Records as [`Self::record`], with options for a step of a run.
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
        record_call(self, call, response, options).await
    }

    /// Compiles a past call again from its record and compares the payload with the one that was sent.
    ///
    /// # Errors
    /// `NotFound` for an answer that is not there; [`EngineError::Unreplayable`];
    /// [`EngineError::Refused`] if another compiler refuses it; or the store's.
    pub async fn replay(&self, response: ResponseId) -> Result<Replayed, EngineError> {
        replay_call(self, response).await
    }

    /// Lists the answers on a path, oldest first. Imported answers have items but no record.
    ///
    /// # Errors
    /// The store's.
    pub async fn response_ids(&self, at: PathEnd) -> Result<Vec<ResponseId>, EngineError> {
        list_response_ids(self, at).await
    }
}
