//! Dropping standing rules: the host's word that a rule of the person's is not shown any more.
//!
//! Not here: which sentences are rules (`contexture-condense`), and which are shown (`contexture-compile`).

use contexture_compile::{RuleId, StandingRule, list_standing_rules};

use super::state::append_state;
use crate::error::EngineError;
use crate::handle::{Conversation, load_state_list, read_full_path};
use crate::state::DroppedRules;

/// Most rules that can be dropped at once on a path.
const MAX_DROPPED: usize = 1_000;

/// Lists the standing rules of this branch, oldest first, those that were dropped included.
pub(crate) async fn list_rules(chat: &Conversation) -> Result<Vec<StandingRule>, EngineError> {
    let dropped: DroppedRules = load_state_list(chat, chat.current_position()).await?;
    let path = read_full_path(chat, chat.current_position()).await?;
    Ok(list_standing_rules(&path.items, &dropped.rule_ids()))
}

/// Drops a rule and returns whether it was shown until then.
pub(crate) async fn drop_rule(chat: &Conversation, id: &str) -> Result<bool, EngineError> {
    let known = list_rules(chat).await?;
    let Some(rule) = known.into_iter().find(|rule| rule.id.as_str() == id) else {
        return Err(EngineError::UnknownRule { id: id.to_owned() });
    };
    if rule.is_dropped {
        return Ok(false);
    }
    let dropped: DroppedRules = load_state_list(chat, chat.current_position()).await?;
    let mut ids = dropped.rule_ids();
    if ids.len() >= MAX_DROPPED {
        return Err(EngineError::TooManyDroppedRules { most: MAX_DROPPED });
    }
    ids.push(rule.id);
    append_state(chat, None, dropped.change_to(ids)?).await?;
    Ok(true)
}

/// Takes a drop back and returns whether there was one.
pub(crate) async fn restore_rule(chat: &Conversation, id: &str) -> Result<bool, EngineError> {
    let dropped: DroppedRules = load_state_list(chat, chat.current_position()).await?;
    let ids: Vec<RuleId> = dropped.rule_ids();
    let kept: Vec<RuleId> = ids
        .iter()
        .filter(|own| own.as_str() != id)
        .cloned()
        .collect();
    if kept.len() == ids.len() {
        return Ok(false);
    }
    append_state(chat, None, dropped.change_to(kept)?).await?;
    Ok(true)
}
