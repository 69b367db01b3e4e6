//! What goes into a call: what the tree gives, and what comes beside it.

use contexture_catalogue::Encoding;
use contexture_compile::{
    Cancel, CompileInput, CompileRequest, Contribution, Cover, PathItem, Plan,
};
use contexture_tokens::counter_for;

/// What the tree gives to a call.
#[derive(Debug, Default)]
pub(crate) struct Given {
    pub(crate) items: Vec<PathItem>,
    pub(crate) covers: Vec<Cover>,
    pub(crate) plan: Plan,
}

/// What a call is compiled from beside the tree.
#[derive(Debug)]
pub(crate) struct CallInputs {
    pub(crate) request: CompileRequest,
    pub(crate) contributions: Vec<Contribution>,
    pub(crate) encoding: Encoding,
}

impl CallInputs {
    /// With what the tree gives, all that the call's payload depends on.
    pub(crate) fn input<'a>(
        &'a self,
        given: &'a Given,
        cancel: Option<&'a Cancel>,
    ) -> CompileInput<'a> {
        CompileInput {
            path: &given.items,
            covers: &given.covers,
            passes: &[],
            contributions: &self.contributions,
            plan: &given.plan,
            request: &self.request,
            counter: counter_for(self.encoding),
            cancel,
        }
    }
}
