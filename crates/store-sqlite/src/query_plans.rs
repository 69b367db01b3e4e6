//! Tests that the statements on hot paths use their index: a full scan would be correct but slow.

use contexture_store::{
    CallOrder, ConversationCursor, ListConversations, MetadataFilter, NodeKind, rules,
};
use rusqlite::Connection;

use crate::conversations::filter::ListCondition;
use crate::conversations::list_index;
use crate::refs::branch;
use crate::rows::node_row;
use crate::{calls, conversations, key_values, search, streams};

fn query_plan(conn: &Connection, sql: &str) -> String {
    let mut statement = conn.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
    // Parameters stay unbound, since only the plan is read.
    let mut rows = statement.raw_query();
    let mut plan = String::new();
    while let Some(row) = rows.next().unwrap() {
        plan.push_str(&row.get::<_, String>(3).unwrap());
        plan.push('\n');
    }
    plan
}

#[test]
fn every_lookup_is_a_search() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("plans.db");
    drop(crate::SqliteStore::open(&path).unwrap());
    let conn = Connection::open(&path).unwrap();
    let check = |sql: &str, index: &str| {
        let plan = query_plan(&conn, sql);
        assert!(plan.contains(index), "{sql}\n{plan}");
        assert!(!plan.contains("SCAN"), "{sql}\n{plan}");
        assert!(!plan.contains("TEMP B-TREE"), "{sql}\n{plan}");
    };
    for analysed in [false, true] {
        if analysed {
            conn.execute_batch("ANALYZE").unwrap();
        }
        check(
            &node_row::by_id_sql(),
            "nodes_by_id (<expr>=? AND <expr>=?)",
        );
        check(
            &node_row::by_message_sql(),
            "nodes_by_message (<expr>=? AND message_id=?)",
        );
        for sql in [node_row::at_sql(), node_row::after_sql()] {
            check(&sql, "INTEGER PRIMARY KEY (rowid");
        }
        check(
            &node_row::scan_sql(),
            "INTEGER PRIMARY KEY (rowid>? AND rowid<?)",
        );
        check(
            &branch::by_name_sql(),
            "branches_by_name (<expr>=? AND name=?)",
        );
        check(
            &branch::all_sql(),
            "INTEGER PRIMARY KEY (rowid>? AND rowid<?)",
        );
        check(
            branch::COUNT_LIKE,
            "branches_by_name (<expr>=? AND name>? AND name<?)",
        );
        let owner = contexture_ir::Owner::local();
        let by_time = ListConversations::default();
        let filtered = ListConversations {
            after: Some(ConversationCursor {
                updated_ms: 0,
                id: contexture_ir::ConversationId::new("c").unwrap(),
            }),
            metadata: Some(MetadataFilter::field_equals("project", "aurora").unwrap()),
            ..ListConversations::default()
        };
        let of_resource = ListConversations {
            resource: Some("user".to_owned()),
            ..ListConversations::default()
        };
        for (list, index) in [
            (by_time, "conversations_by_time (owner=?)"),
            (filtered, "conversations_by_time (owner=? AND updated_ms<?)"),
            (
                of_resource,
                "conversations_by_resource (owner=? AND resource=?)",
            ),
        ] {
            let condition = ListCondition::from_list(&owner, &list);
            check(&conversations::list_sql(&condition, None), index);
            let scanned = ListCondition::from_list(&owner, &list.without_conditions());
            // "COVERING": skipping reads no conversation.
            let covering = format!("COVERING INDEX {index}");
            check(&conversations::scan_end_sql(&scanned), &covering);
        }
        check(
            &node_row::copies_sql(),
            "nodes_by_source (<expr>=? AND copied_from=?)",
        );
        check(
            &node_row::of_kind_sql(NodeKind::Compaction),
            "nodes_compactions (id>? AND id<?)",
        );
        check(
            &streams::list_sql(),
            "INTEGER PRIMARY KEY (rowid>? AND rowid<?)",
        );
        check(
            streams::CHUNKS,
            "PRIMARY KEY (conversation_no=? AND epoch=? AND seq>? AND seq<?)",
        );
        for order in [CallOrder::NewestFirst, CallOrder::OldestFirst] {
            for (of_conversation, index) in [
                (false, "PRIMARY KEY (owner=? AND id>? AND id<?)"),
                (
                    true,
                    "calls_by_conversation (conversation_no=? AND id>? AND id<?)",
                ),
            ] {
                check(&calls::list_sql(order, of_conversation), index);
            }
        }
        check(&calls::OPEN, "calls_open (owner=? AND id>? AND id<?)");
        // Of a page of conversations only their own calls are read.
        let (open, last) = (calls::OPEN_OF_CONVERSATION, calls::LAST_MODEL);
        check(open, "calls_by_conversation (conversation_no=? AND id>?)");
        check(last, "calls_by_conversation (conversation_no=?)");
        check(
            key_values::LIST_ALL,
            "key_values_live (owner=? AND (scope_kind,scope,key)>(?,?,?))",
        );
    }
}

/// Checks that a search reads the index in its own order and other rows by their keys.
#[test]
fn a_search_reads_what_the_index_gives() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("search.db");
    drop(crate::SqliteStore::open(&path).unwrap());
    let conn = Connection::open(&path).unwrap();
    // In SQLite's plan, `M` means a MATCH and `><` a range of rowids.
    for (sql, index, tables) in [(search::IN_RANGE, "M1><", 0), (search::OF_OWNER, "M1", 1)] {
        let plan = query_plan(&conn, sql);
        let first = plan.lines().next().unwrap();
        let through_index =
            first.starts_with("SCAN search VIRTUAL TABLE") && first.ends_with(index);
        assert!(through_index, "{sql}\n{plan}");
        let by_key = "USING INTEGER PRIMARY KEY (rowid=?)";
        assert_eq!(plan.matches(by_key).count(), tables, "{sql}\n{plan}");
        assert!(!plan.contains("TEMP B-TREE"), "{sql}\n{plan}");
    }
}

/// Checks that a filtered list reads its index, and then each proposed conversation by its number.
#[test]
fn a_filtered_list_reads_what_its_index_gives() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("lists.db");
    drop(crate::SqliteStore::open(&path).unwrap());
    let conn = Connection::open(&path).unwrap();
    let owner = contexture_ir::Owner::local();
    let equals = MetadataFilter::field_equals("project", "aurora").unwrap();
    let by_value = "attributes_by_value (owner=? AND key=? AND kind=? AND value=?)";
    for (title, metadata, index) in [
        (
            Some("aurora"),
            None,
            "SCAN search_titles VIRTUAL TABLE INDEX 0:M1",
        ),
        (None, Some(equals.clone()), by_value),
        (
            None,
            Some(MetadataFilter::Any(vec![equals.clone(), equals])),
            by_value,
        ),
    ] {
        let list = ListConversations {
            title: title.map(str::to_owned),
            metadata,
            ..ListConversations::default()
        };
        let condition = ListCondition::from_list(&owner, &list);
        let indexed = rules::indexed_conditions(&owner, &list);
        let proposed = list_index::proposal_query(&owner, &indexed[0]);
        let plan = query_plan(&conn, &conversations::list_sql(&condition, Some(&proposed)));
        assert!(plan.contains(index), "{list:?}\n{plan}");
        assert!(!plan.contains("SCAN c\n"), "{list:?}\n{plan}");
        let by_number = "SEARCH c USING INTEGER PRIMARY KEY (rowid=?)";
        assert!(plan.contains(by_number), "{list:?}\n{plan}");
    }
}
