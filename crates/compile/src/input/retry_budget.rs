//! What a call may take that follows one which the provider refused as too long.

use contexture_tokens::TokenBounds;
use contexture_wire::TooLong;

use crate::input::calibrated_range::BudgetCount;
use crate::input::request::CompileRequest;

/// The budget of a call that follows one which the provider refused as too long: counted by the upper bound, within what the
/// provider says it takes.
///
/// ```
/// use contexture_catalogue::Catalogue;
/// use contexture_compile::{BudgetCount, RetryBudget, Target, TokenBounds};
/// use contexture_wire::TooLong;
///
/// let target = Target::anthropic("claude-sonnet-4-5").count(BudgetCount::Likely);
/// let request = target.build_request(Catalogue::builtin())?;
/// let refused = TooLong { tokens: Some(201_000), limit: Some(200_000) };
/// let sent = TokenBounds::between(180_000, 210_000);
/// let budget = RetryBudget::after_refusal(&request, sent, refused).unwrap();
/// let next = target.clone().retry_budget(budget).build_request(Catalogue::builtin())?;
/// assert_eq!((next.count, next.window), (BudgetCount::Upper, request.window));
/// // Bounds that did not hold are not trusted a second time.
/// let sent = TokenBounds::between(160_000, 190_000);
/// let budget = RetryBudget::after_refusal(&request, sent, refused).unwrap();
/// let next = target.retry_budget(budget).build_request(Catalogue::builtin())?;
/// assert!(next.window < request.window);
/// # Ok::<(), contexture_catalogue::CatalogueError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryBudget {
    pub(crate) window: u64,
    pub(crate) reserve: u64,
}

impl RetryBudget {
    /// The budget behind a refusal; `None` where it would be that of the refused request, which would be refused again.
    /// `sent` is what was counted of the request, in tokens.
    #[must_use]
    pub fn after_refusal(
        request: &CompileRequest,
        sent: TokenBounds,
        refused: TooLong,
    ) -> Option<Self> {
        let space = request.limit();
        // The host may hold less than the model can.
        let mut next = refused.limit.map_or(space, |limit| limit.min(space));
        if let Some(tokens) = refused.tokens.filter(|tokens| *tokens > sent.high) {
            // It counts more than the upper bound: as much less is sent as that was short.
            let share = u128::from(next) * u128::from(sent.high) / u128::from(tokens);
            next = u64::try_from(share).unwrap_or(next);
        }
        let is_tighter = request.count != BudgetCount::Upper || next < space;
        is_tighter.then_some(Self {
            window: next.saturating_add(request.reserve),
            reserve: request.reserve,
        })
    }
}
