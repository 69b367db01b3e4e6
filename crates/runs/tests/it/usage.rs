//! A layer that counts, for a resource or a path, what its hooks are told: a hook too many or one that is lost shows.

use std::collections::BTreeMap;

use async_trait::async_trait;
use contexture_compile::Contribution;
use contexture_ir::{Item, Raw};
use contexture_layers::{
    AnswerVerdict, ChildEnd, ChildResult, FunctionError, FunctionSpec, HookContext, Layer,
    LayerError, LayerId, LayerSpec, ObservedItems, RecallInput, RunEnd, StateScope, ToolGate,
    ToolRequest,
};

/// Counts.
pub(crate) struct Tally {
    pub(crate) scope: StateScope,
    /// Whether `before_tool` counts too, which is asked again after a crash.
    pub(crate) gates: bool,
}

pub(crate) type Counts = BTreeMap<String, u64>;

pub(crate) fn count(counts: &mut Counts, what: &str, times: usize) {
    *counts.entry(what.to_owned()).or_default() += times as u64;
}

#[async_trait]
impl Layer for Tally {
    type State = Counts;

    fn spec(&self) -> LayerSpec {
        LayerSpec::new(LayerId::new("tally").unwrap()).with_scope(self.scope)
    }

    async fn recall(
        &self,
        _: &Counts,
        _: &RecallInput<'_>,
    ) -> Result<Vec<Contribution>, LayerError> {
        Ok(Vec::new())
    }

    async fn on_append(
        &self,
        counts: &mut Counts,
        items: Vec<Item>,
        _: &HookContext,
    ) -> Result<Vec<Item>, LayerError> {
        count(counts, "on_append", items.len());
        Ok(items)
    }

    async fn after_model(
        &self,
        counts: &mut Counts,
        _: &[Item],
        _: &HookContext,
    ) -> Result<AnswerVerdict, LayerError> {
        count(counts, "after_model", 1);
        Ok(AnswerVerdict::Pass)
    }

    async fn before_tool(
        &self,
        counts: &mut Counts,
        _: &ToolRequest,
        _: &HookContext,
    ) -> Result<ToolGate, LayerError> {
        count(counts, "before_tool", usize::from(self.gates));
        Ok(ToolGate::Allow)
    }

    async fn observe(
        &self,
        counts: &mut Counts,
        seen: &ObservedItems<'_>,
        _: &HookContext,
    ) -> Result<(), LayerError> {
        count(counts, "observe", seen.items.len());
        Ok(())
    }

    async fn on_return(
        &self,
        counts: &mut Counts,
        _: &Counts,
        _: &ChildEnd,
        _: &HookContext,
    ) -> Result<ChildResult, LayerError> {
        count(counts, "on_return", 1);
        Ok(ChildResult::Keep)
    }

    async fn on_complete(
        &self,
        counts: &mut Counts,
        _: &RunEnd,
        _: &HookContext,
    ) -> Result<(), LayerError> {
        count(counts, "on_complete", 1);
        Ok(())
    }

    fn functions(&self) -> Vec<FunctionSpec> {
        let schema = Raw::parse(r#"{"type":"object"}"#).unwrap();
        vec![FunctionSpec::new(
            &self.spec().id,
            "one",
            "One more.",
            schema,
        )]
    }

    async fn call_function(
        &self,
        counts: &mut Counts,
        _: &str,
        _: &Raw,
        _: &HookContext,
    ) -> Result<Raw, FunctionError> {
        count(counts, "call", 1);
        Ok(Raw::from_value(&counts["call"]).unwrap())
    }
}
