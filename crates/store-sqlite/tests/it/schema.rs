//! What the tables and every statement of the crate keep to, so that a conversation can be moved,
//! deleted and sharded by its number alone, and so that the same design runs on other databases.
//!
//! Statements are found in the source: every string that begins like one. A rule that one of them
//! breaks on purpose is named with the reason, and a reason that no statement needs any more fails.
//!
//! What is not here: whether a statement uses its index (`plans`).

use std::collections::BTreeSet;
use std::path::Path;

use contexture_store_sqlite::SqliteStore;
use proc_macro2::{TokenStream, TokenTree};
use rusqlite::Connection;

/// Tables whose key is `conversation_no << 32 | number`.
const BY_KEY: [&str; 8] = [
    "nodes",
    "segments",
    "branches",
    "roots",
    "events",
    "responses",
    "runs",
    "streams",
];
/// Tables that name the conversation in a column.
const BY_COLUMN: [&str; 11] = [
    "metadata",
    "attributes",
    "checkpoints",
    "state_values",
    "blobs",
    "stream_chunks",
    "path_index",
    "exchanges",
    "calls",
    "call_sums",
    "deletions",
];
/// Tables that name the owner.
const BY_OWNER: [&str; 8] = [
    "attributes",
    "conversations",
    "key_values",
    "deletions",
    "path_index",
    "exchanges",
    "calls",
    "call_sums",
];
/// Rows about the file itself.
const OF_THE_FILE: [&str; 6] = [
    "format",
    "search_state",
    "processes",
    "sqlite_schema",
    "pragma_page_count",
    "pragma_page_size",
];

/// Statements, by how they begin, that do not name the conversation or the owner where they stand.
const ELSEWHERE: [(&str, &str); 14] = [
    (
        "SELECT min(owner) FROM conversations WHERE owner > ?",
        "the owners there are, one after another",
    ),
    (
        "SELECT min(owner) FROM (",
        "the maintenance of all owners' calls, one after another",
    ),
    (
        "SELECT c.updated_ms, c.id FROM conversations c WHERE {}",
        "the condition names the owner",
    ),
    (
        "SELECT c.id, c.title,",
        "the condition follows where it is used",
    ),
    (
        "SELECT conversation_no FROM deletions LIMIT",
        "what the file still has to remove",
    ),
    ("SELECT c.no, c.owner, c.title, m.metadata", "a migration"),
    (
        "SELECT rowid AS no FROM search_titles WHERE",
        "the owner is one of the terms, and the list's own condition",
    ),
    (
        "DELETE FROM exchanges WHERE process = ?",
        "what a process had under way that has ended",
    ),
    ("SELECT id, segment, depth, messages,", "a migration"),
    (
        "UPDATE search_state SET terms_version",
        "whether the file has any nodes",
    ),
    (
        "SELECT rowid FROM search WHERE search MATCH",
        "the range of keys is the conversation's",
    ),
    ("INSERT INTO search (search", "an order to the index"),
    (
        "INSERT INTO search_titles (search_titles",
        "an order to the index",
    ),
    (
        "SELECT no, key, version, value_check, value, scope_kind FROM key_values",
        "checking the file as a whole",
    ),
];

/// What no statement and no migration uses, and the few places that do.
const FORBIDDEN: [&str; 19] = [
    "RECURSIVE",
    "JSON_",
    "->",
    "TRIGGER",
    "VIEW",
    "TEMP ",
    "TEMPORARY",
    "ATTACH",
    "FOREIGN KEY",
    "REFERENCES",
    "AUTOINCREMENT",
    "CURRENT_TIME",
    "DATETIME(",
    "STRFTIME",
    "UNIXEPOCH",
    "RANDOM",
    "LAST_INSERT_ROWID",
    "OFFSET",
    "NEXTVAL",
];
const ALLOWED: [(&str, &str, &str); 5] = [
    (
        "AUTOINCREMENT",
        "0001_begin.sql",
        "a conversation's number is never used again",
    ),
    (
        "TRIGGER",
        "0004_search.sql",
        "the search index is SQLite's own, and must follow every deletion",
    ),
    ("TRIGGER", "0008_space.sql", "the same, under other numbers"),
    ("TRIGGER", "0009_packed.sql", "the same, of the new table"),
    ("TRIGGER", "0013_list_index.sql", "the same, of titles"),
];

/// A string of the crate.
struct Text {
    file: String,
    sql: String,
}

/// Every string literal outside tests; its line breaks undone as Rust does.
fn strings(tokens: TokenStream, found: &mut Vec<String>) {
    let mut before = [String::new(), String::new()];
    for token in tokens {
        let text = token.to_string();
        match &token {
            TokenTree::Group(_) if before == ["mod", "tests"] => {}
            TokenTree::Group(group) => strings(group.stream(), found),
            TokenTree::Literal(_) if text.starts_with('"') => {
                let mut lines = text.trim_matches('"').split("\\\n");
                let first = lines.next().unwrap_or_default();
                let rest: String = lines.map(str::trim_start).collect();
                found.push(format!("{first}{rest}"));
            }
            TokenTree::Literal(_) | TokenTree::Ident(_) | TokenTree::Punct(_) => {}
        }
        before.rotate_left(1);
        before[1] = text;
    }
}

fn files(folder: &str) -> Vec<(String, String)> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let mut folders = vec![directory.clone()];
    let mut all = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let name = path.strip_prefix(&directory).unwrap();
            let name = name.to_string_lossy().replace('\\', "/");
            all.push((name, std::fs::read_to_string(&path).unwrap()));
        }
    }
    all.sort();
    all
}

/// The statements of the crate, as they stand in its source.
fn statements() -> Vec<Text> {
    let verbs = ["SELECT ", "INSERT ", "UPDATE ", "DELETE ", "FROM "];
    let mut all = Vec::new();
    for (file, source) in files("src") {
        if ["query_plans.rs", "schema/tests.rs", "deepagents.rs"].contains(&file.as_str()) {
            continue;
        }
        let mut found = Vec::new();
        strings(source.parse().unwrap(), &mut found);
        let found = found.into_iter();
        let sql = found.filter(|text| verbs.iter().any(|verb| text.starts_with(verb)));
        all.extend(sql.map(|sql| Text {
            file: file.clone(),
            sql,
        }));
    }
    assert!(all.len() > 80, "only {} statements were found", all.len());
    all
}

/// The tables that a statement names.
fn tables(sql: &str) -> Vec<&str> {
    let words: Vec<&str> = sql.split([' ', '(', ')', ',', '.']).collect();
    words
        .windows(2)
        .filter(|pair| ["FROM", "JOIN", "INTO", "UPDATE"].contains(&pair[0]))
        .map(|pair| pair[1])
        .filter(|table| !["SET", ""].contains(table))
        .collect()
}

/// Whether a statement says of which conversation or owner a table's rows are.
fn names_its_rows(sql: &str, table: &str) -> bool {
    let says = |conditions: &[&str]| conditions.iter().any(|condition| sql.contains(condition));
    if OF_THE_FILE.contains(&table) {
        return true;
    }
    if sql.starts_with("INSERT") {
        // The key comes first, in the table and in every list of columns.
        let named = says(&["(conversation_no,", "(owner,", "(rowid,", "({COLUMNS})"]);
        return named || sql.contains(&format!("INTO {table} VALUES (?"));
    }
    let by_key = [
        " id = ",
        "b.id = ",
        " id >> 32 = ?",
        "b.id >> 32 = p.conversation_no",
        " id BETWEEN ?",
        "nodes.id BETWEEN no << 32",
        " id > ? AND",
        " id > ? ORDER",
    ];
    let by_column = ["conversation_no = "];
    let by_owner = ["owner = ?", " no = ?", "c.no = ", "c.owner = e.owner"];
    if table.starts_with('{') {
        return says(&by_key) || says(&by_column) || says(&["WHERE {condition}"]);
    }
    (BY_KEY.contains(&table) && says(&by_key))
        || (BY_COLUMN.contains(&table) && says(&by_column))
        || (BY_OWNER.contains(&table) && says(&by_owner))
        // By its number, found under the conversation just before.
        || (table == "blobs" && says(&[" no = ?"]))
        || (table == "search" && says(&["rowid = ?", "c.owner = ?"]))
}

#[test]
fn every_statement_names_the_conversation_or_the_owner() {
    let mut excused = BTreeSet::new();
    let mut wrong = Vec::new();
    for Text { file, sql } in statements() {
        if let Some((begin, _)) = ELSEWHERE.iter().find(|(begin, _)| sql.starts_with(begin)) {
            excused.insert(*begin);
            continue;
        }
        if let Some(table) = tables(&sql)
            .into_iter()
            .find(|table| !names_its_rows(&sql, table))
        {
            wrong.push(format!("{file}, rows of {table}: {sql}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let all = ELSEWHERE.map(|(begin, _)| begin);
    assert_eq!(excused, BTreeSet::from(all), "an excuse that nothing needs");
}

#[test]
fn a_statement_over_all_conversations_is_noticed() {
    for sql in [
        "SELECT item FROM nodes WHERE node_id = ?",
        "SELECT count(*) FROM blobs",
        "DELETE FROM checkpoints WHERE name = ?",
        "UPDATE conversations SET title = ? WHERE id = ?",
        "SELECT rowid FROM search WHERE search MATCH ?",
        "INSERT INTO attributes (key, value) VALUES (?, ?)",
        "SELECT length(value) FROM {table} LIMIT ?",
    ] {
        let tables = tables(sql);
        assert!(!tables.is_empty(), "{sql}");
        let named = tables.iter().all(|table| names_its_rows(sql, table));
        assert!(!named, "{sql}");
    }
}

#[test]
fn nothing_is_used_that_other_databases_lack() {
    let mut texts = statements();
    for (file, sql) in files("migrations") {
        let code = sql
            .lines()
            .map(|line| line.split("--").next().unwrap_or_default());
        let sql = code.collect::<Vec<_>>().join(" ");
        texts.push(Text { file, sql });
    }
    let mut allowed = BTreeSet::new();
    for Text { file, sql } in texts {
        let upper = sql.to_uppercase();
        for word in FORBIDDEN.into_iter().filter(|word| upper.contains(word)) {
            let known = ALLOWED.iter().find(|(a, b, _)| (*a, *b) == (word, &file));
            let (word, file, _) = known.unwrap_or_else(|| panic!("{file} uses {word}: {sql}"));
            allowed.insert((*word, *file));
        }
    }
    let all = ALLOWED.map(|(word, file, _)| (word, file));
    assert_eq!(allowed, BTreeSet::from(all), "an excuse that nothing needs");
}

/// Every index, the primary keys' included, begins with the conversation or the owner.
#[test]
fn every_key_begins_with_the_conversation_or_the_owner() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("schema.db");
    drop(SqliteStore::open(&path).unwrap());
    let conn = Connection::open(&path).unwrap();
    let list = |sql: &str| -> Vec<(String, String)> {
        let mut statement = conn.prepare(sql).unwrap();
        let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)));
        rows.unwrap().map(Result::unwrap).collect()
    };
    let ours =
        "FROM sqlite_schema s WHERE s.name NOT LIKE 'search%' AND s.name NOT LIKE 'sqlite_%'";
    // The first column of each table's primary key.
    let keys = list(&format!(
        "SELECT s.name, t.name FROM (SELECT name {ours} AND s.type = 'table') s, \
         pragma_table_info(s.name) t WHERE t.pk = 1"
    ));
    assert!(keys.len() > 10);
    for (table, column) in keys {
        let wanted = match table.as_str() {
            table if BY_KEY.contains(&table) => "id",
            // Rows with a number of their own, reached through an index that names the owner or the
            // conversation.
            "conversations" | "blobs" | "key_values" => "no",
            "path_index" | "exchanges" | "calls" | "call_sums" => "owner",
            // The one table of processes, which belong to nobody.
            "processes" => "id",
            _ => "conversation_no",
        };
        assert_eq!(column, wanted, "{table}");
    }
    // The first column of each other index.
    let indexes = list(&format!("SELECT s.name, s.sql {ours} AND s.type = 'index'"));
    assert!(indexes.len() > 10);
    for (index, sql) in indexes {
        let (_, columns) = sql.split_once('(').unwrap();
        let begins = ["id >> 32,", "conversation_no", "owner,", "id)"];
        let named = begins.iter().any(|begin| columns.starts_with(begin));
        assert!(named, "{index}: {sql}");
    }
}
