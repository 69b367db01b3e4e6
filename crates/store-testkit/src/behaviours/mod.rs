//! The table of all behaviours, in a good order for implementing a backend.
//!
//! Each module covers a part of the contract and holds its behaviours as functions; `tree` groups
//! those of the tree itself. A behaviour's name consists of its module's and its function's names.
//!
//! What is not here: how they are run ([`run_all`](crate::run_all)), the conversation that they
//! write to ([`Chat`](crate::Chat)).

mod abuse;
mod appended_values;
mod calls;
mod concurrency;
mod conversations;
mod erasing;
mod exported_values;
mod faults;
mod filtering;
mod finding;
mod following;
mod key_values;
mod limits;
mod owners;
mod porting;
mod presence;
mod searching;
mod streaming;
mod tree;
mod upkeep;
mod wake;

use self::tree::{
    appending, branching, bytes, fences, reading, redacting, replaying, responses, states,
};
use crate::behaviour::{Behaviour, Level};

/// Lists behaviours of one module, named after their functions.
macro_rules! table {
    ($($level:ident $module:ident: $($name:ident)*;)*) => {
        &[$($(Behaviour {
            name: concat!(stringify!($module), "::", stringify!($name)),
            level: Level::$level,
            run: |store| Box::pin($module::$name(store)),
        },)*)*]
    };
}

/// Every behaviour, in an order that puts the simple ones first.
#[must_use]
pub fn behaviours() -> &'static [Behaviour] {
    TABLE
}

static TABLE: &[Behaviour] = table! {
    Base conversations:
        a_new_one_has_an_empty_active_main
        an_id_is_taken_once
        a_record_names_its_last_event
        ids_belong_to_owners
        lists_show_the_latest_first_in_pages
        lists_can_be_of_one_resource
        metadata_is_replaced_merged_and_removed
        metadata_values_are_kept_as_written
        titles_come_and_go
        an_update_may_insist_on_a_version
        an_append_makes_it_recent
        deletion_takes_everything
        a_deleted_id_starts_afresh;
    Base appending:
        at_the_tip
        at_the_head
        a_moved_head_is_refused_and_nothing_stored
        a_moved_head_may_open_a_sibling
        a_sibling_of_the_beginning
        on_a_new_branch_at_a_node
        on_a_new_empty_branch
        a_new_branch_without_items
        a_new_branch_may_become_active
        a_taken_branch_name_is_refused
        an_unknown_branch_is_refused
        an_unknown_base_is_refused
        nothing_to_append_is_refused
        outputs_answer_calls_on_their_path
        copies_name_their_source
        every_field_comes_back;
    Base replaying:
        a_repeated_append_is_a_replay
        after_the_head_has_moved
        of_a_new_branch
        of_a_sibling
        other_bytes_are_a_conflict
        a_part_is_a_conflict
        another_order_is_a_conflict
        an_id_twice_is_a_conflict
        ids_belong_to_conversations;
    Base fences:
        a_stale_writer_is_refused_and_learns_it
        a_stale_writer_cannot_open_a_sibling
        a_claim_is_of_one_branch
        a_claim_names_its_holder_until_it_is_released
        of_claims_at_once_one_wins
        writers_without_a_claim_may_write
        a_repetition_is_no_new_write
        a_new_branch_has_no_writer;
    Base branching:
        automatic_names_follow_the_formula
        asides_count_on
        rewinds_in_a_row_count_on
        names_never_outgrow_their_rule
        a_renamed_branch_is_the_same_branch
        a_moved_branch_goes_on_from_its_new_head
        a_branch_is_moved_from_the_expected_head_only
        of_concurrent_moves_one_succeeds
        both_sides_of_a_fork_grow
        a_fork_at_a_fork
        alternating_growth_reads_back
        deletion_frees_the_name_only
        the_active_branch_stays
        unknown_names_are_not_found
        checkpoints_are_set_moved_and_deleted
        names_of_checkpoints_are_given_once;
    Base reading:
        parts_and_pages
        pages_end_by_their_bytes
        a_path_is_constant
        single_nodes
        nodes_by_prefix
        nodes_by_message
        counters_count_messages_and_turns
        counters_skip_hidden_nodes
        compactions_are_remembered
        since_the_newest_compaction
        nodes_by_source_and_kind
        two_paths_are_compared
        paths_part_where_they_forked
        the_graph_has_each_node_once;
    Abuse bytes:
        are_kept_as_they_are
        hostile_text_changes_nothing
        large_items
        large_blobs_and_values;
    Abuse limits:
        every_limit_has_a_name;
    Abuse streaming:
        every_limit_has_a_name;
    Base states:
        rewind_with_the_head
        patches_can_start_late
        conditions_are_checked_against_the_current_head
        removal_and_no_change
        parts_can_be_read
        patches_that_contradict_themselves
        long_histories_stay_readable;
    Base streaming:
        an_unknown_stream_cannot_end
        chunks_come_back_in_order
        reopening_fences_the_old_writer
        a_cursor_belongs_to_its_epoch
        epochs_never_return
        a_repetition_changes_nothing
        an_end_is_an_end
        a_writer_is_asked_to_stop
        the_final_item_takes_the_chunks_with_it
        streams_are_listed_as_they_were_opened
        only_so_many_are_kept_after_their_end
        a_conversations_streams_go_with_it
        redaction_removes_ended_streams
        streams_leave_the_tree_alone
        of_many_openers_the_last_writes;
    Faults following:
        a_writer_on_a_store_that_fails_loses_nothing;
    Base following:
        readers_see_all_of_a_running_stream
        each_change_wakes
        a_reader_goes_on_at_every_chunk
        a_waiting_reader_learns_what_happened
        a_slow_reader_gets_an_error
        small_chunks_are_gathered
        a_dropped_writer_ends_nothing
        a_waiting_writer_learns_of_a_cancellation;
    Base key_values:
        blobs_are_kept_once
        blobs_come_with_appends
        entries_are_versioned
        entries_keep_to_their_scope
        pages_of_entries_end_by_their_bytes
        a_conversations_entries_go_with_it
        events_tell_everything_in_order
        failures_leave_no_event;
    Base appended_values:
        entries_come_with_their_nodes
        a_conflict_stores_nothing
        a_refused_append_writes_none
        a_repetition_changes_no_value
        a_late_answer_brings_them_to_its_branch
        owners_are_isolated
        limits_and_contradictions_are_refused
        writers_at_once_lose_no_update;
    Base wake:
        followers_see_each_event_once
        each_event_wakes_a_follower
        a_deletion_ends_what_follows;
    Base concurrency:
        of_many_heads_one_wins
        of_many_tips_all_succeed
        rewinds_all_get_names
        a_dropped_append_is_whole_or_nothing
        readers_see_prefixes
        a_late_append_to_a_deleted_conversation
        a_deletion_among_writers_and_readers
        overlapping_turns_lose_nothing
        appends_of_a_thousand_tasks;
    Base filtering:
        titles_contain_a_text
        times_bound_the_list
        metadata_satisfies_a_filter
        filters_follow_changes
        a_page_looks_at_so_many_and_says_so;
    Base redacting:
        a_tombstone_keeps_shape_and_position
        twice_is_once
        an_unknown_node_changes_nothing
        a_repeated_redacted_append_conflicts
        state_and_blobs_go_with_it
        derived_values_go_with_it
        provenance_is_followed;
    Base responses:
        come_back_as_they_were
        are_stored_once_and_with_their_items
        a_redaction_takes_what_has_seen_it
        a_redacted_value_takes_all
        go_with_their_conversation;
    Base finding:
        marks_come_with_their_nodes
        heads_come_first_and_then_the_latest
        a_conversation_may_be_asked_for
        marks_are_added_and_other_versions_go
        marks_go_with_their_conversation
        owners_are_isolated
        limits_and_strange_marks_are_refused;
    Base presence:
        a_process_raises_its_own_number
        a_dead_process_goes_with_its_exchanges
        marks_come_and_go_with_appends
        a_replay_changes_its_mark
        a_refused_append_marks_nothing
        marks_are_in_no_list_and_no_export
        marks_go_with_a_deleted_conversation
        marks_of_owners_are_isolated;
    Base calls:
        calls_come_with_their_answers
        a_repeated_call_changes_nothing
        rows_equal_sums_before_and_after_roll_ups
        rows_stay_until_they_are_in_a_roll_up
        a_sweep_takes_bounded_steps
        calls_are_listed_by_time_in_pages
        calls_outlive_their_conversation
        a_late_call_names_no_deleted_conversation
        erasing_an_owner_takes_its_calls
        owners_are_isolated
        bodies_are_read_alone_and_removed_in_time
        bodies_go_with_what_is_redacted_or_deleted
        limits_of_calls_have_names;
    Base erasing:
        a_resource_goes_and_the_rest_stays
        an_owner_is_erased_completely
        it_goes_on_where_it_was_dropped
        values_are_listed_across_scopes_in_pages;
    Base porting:
        what_was_exported_comes_back_equal
        an_export_comes_in_pieces
        many_conversations_come_back_equal
        the_first_refusal_of_many_is_told
        answers_bring_what_they_were_computed_from
        a_changed_text_is_refused_and_leaves_nothing
        a_wrong_line_is_named
        what_is_there_stays_and_what_is_half_is_begun_anew;
    Base exported_values:
        values_come_back_after_they_were_erased
        a_changed_text_of_values_leaves_nothing;
    Base searching:
        every_store_finds_the_same
        any_text_is_a_query
        any_word_matches_when_requested
        rare_words_find_and_frequent_ones_rank
        a_named_day_adds_weight
        newer_statements_replace_older_ones
        statements_of_others_replace_nothing
        most_updates_come_first
        look_alikes_replace_nothing
        snippets_are_plain_text_with_places
        what_was_said_is_found
        scopes_bound_where_it_looks
        filters_bound_what_it_finds
        pages_are_contiguous
        limits_have_names
        what_is_beyond_the_limits_is_the_older
        what_is_removed_is_not_found;
    Base upkeep:
        what_is_sound_has_no_findings
        statistics_count_a_conversation
        owners_are_listed_with_what_they_have
        blobs_that_nothing_names_go_after_a_while
        collecting_gives_way_to_writers;
    Ownership owners:
        nobody_learns_of_a_strangers_conversation
        equal_bytes_of_two_owners_have_other_ids;
    Faults faults:
        repeating_any_failed_write_converges
        what_is_acknowledged_is_there_once;
    Abuse abuse:
        numbers_at_their_ends
        references_out_of_the_conversation
        names_that_look_like_something_else
        nested_rewinds
        ten_thousand_items_at_once;
};
