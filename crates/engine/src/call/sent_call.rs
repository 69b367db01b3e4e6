//! What is needed of a compiled call to store its answer: data, so that it can be kept until the answer comes, and another
//! process can store that.
//!
//! Not here: storing the answer (`record`), where a call is kept (`kept_call`).

use std::sync::{Arc, OnceLock};

use contexture_catalogue::Encoding;
use contexture_compile::{CallBand, CountedRequest, Plan};
use contexture_ir::{BranchName, CallId, NodeId, Raw};
use contexture_store::CallPrediction;
use contexture_wire::{Format, ToolNameMap};
use serde::{Deserialize, Serialize};

use super::compile::CompiledCall;
use super::predicted_cost::{is_cut, predict_cost};
use super::stored_inputs::encode_inputs;
use crate::handle::Engine;

/// A compiled call without its payload and its report.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct SentCall {
    /// Head that it was compiled at.
    #[serde(with = "as_text::optional")]
    pub(crate) base: Option<NodeId>,
    /// Branch whose head that was.
    #[serde(with = "as_text")]
    pub(crate) branch: BranchName,
    /// Format of the request, and of the answer.
    pub(crate) format: Format,
    /// Model that was asked.
    pub(crate) model: String,
    /// Encoding that its tokens were counted in.
    pub(crate) encoding: Encoding,
    /// Tools that the provider knows by other names.
    #[serde(default, skip_serializing_if = "ToolNameMap::is_empty")]
    pub(crate) renames: ToolNameMap,
    /// State entry that the plan is stored under.
    pub(crate) plan_key: String,
    /// Plan of the next call.
    pub(crate) plan: Plan,
    /// What the call was compiled from, as it is stored with the answer.
    inputs: Raw,
    /// What was counted of it.
    pub(crate) counted: CountedRequest,
    /// Tokens that were expected to be read from the provider's cache.
    pub(crate) predicted_read: u64,
    /// What is shown of the call later.
    #[serde(default)]
    pub(crate) band: Vec<u8>,
    /// What the request was expected to cost, and what with all of its history.
    #[serde(default)]
    pub(crate) prediction: Option<CallPrediction>,
    /// Whether it has not all of its history as it is.
    #[serde(default)]
    pub(crate) is_cut: bool,
    /// Id of the exchange with the provider, once its answer is stored: storing it again is no other exchange.
    #[serde(skip)]
    pub(crate) exchange: Arc<OnceLock<CallId>>,
}

impl SentCall {
    /// Takes what is needed of a call, as far as the engine's record level says.
    pub(crate) fn from_call(engine: &Engine, call: &CompiledCall) -> Self {
        Self {
            base: call.base,
            branch: call.branch.clone(),
            format: call.format,
            model: call.inputs.request.model.clone(),
            encoding: call.inputs.encoding,
            renames: call.renames.clone(),
            plan_key: call.plan_key.clone(),
            plan: call.plan.clone(),
            inputs: encode_inputs(engine, call),
            counted: CountedRequest::from(&call.report),
            predicted_read: call.report.cache.predicted.read,
            band: CallBand::from_report(&call.report).to_bytes(),
            prediction: Some(predict_cost(&call.report, &call.inputs.request.cache)),
            is_cut: is_cut(&call.report),
            exchange: Arc::clone(&call.exchange),
        }
    }

    /// Returns what the call was compiled from, as it is stored.
    pub(crate) fn stored_inputs(&self) -> Arc<[u8]> {
        self.inputs.get().as_bytes().into()
    }
}

/// Writes ids and names as their texts.
mod as_text {
    use std::fmt::Display;
    use std::str::FromStr;

    use serde::de::Error as _;
    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<T: Display, S: Serializer>(
        value: &T,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.collect_str(value)
    }

    pub(super) fn deserialize<'de, T, D>(deserializer: D) -> Result<T, D::Error>
    where
        T: FromStr<Err: Display>,
        D: Deserializer<'de>,
    {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(D::Error::custom)
    }

    pub(super) mod optional {
        use std::fmt::Display;
        use std::str::FromStr;

        use serde::de::Error as _;
        use serde::{Deserialize, Deserializer, Serialize, Serializer};

        pub(in super::super) fn serialize<T: Display, S: Serializer>(
            value: &Option<T>,
            serializer: S,
        ) -> Result<S::Ok, S::Error> {
            value.as_ref().map(T::to_string).serialize(serializer)
        }

        pub(in super::super) fn deserialize<'de, T, D>(
            deserializer: D,
        ) -> Result<Option<T>, D::Error>
        where
            T: FromStr<Err: Display>,
            D: Deserializer<'de>,
        {
            let text: Option<String> = Option::deserialize(deserializer)?;
            text.map(|text| text.parse().map_err(D::Error::custom))
                .transpose()
        }
    }
}
