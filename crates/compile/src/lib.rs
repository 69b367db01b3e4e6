//! Items and contributions compiled into a provider payload under a token budget.
