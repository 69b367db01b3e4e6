//! What every statement of the crate keeps to.

use std::path::Path;

use proc_macro2::{TokenStream, TokenTree};

use crate::server::Database;

/// Every string literal of a file, its escapes undone as far as they matter here. Those of a
/// `concat!` are one.
fn strings(tokens: TokenStream, found: &mut Vec<String>) {
    let mut before = [String::new(), String::new()];
    for token in tokens {
        let text = token.to_string();
        match &token {
            TokenTree::Group(group) if before == ["concat", "!"] => {
                let mut parts = Vec::new();
                strings(group.stream(), &mut parts);
                found.push(parts.concat());
            }
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

/// The SQL of the crate, and where it stands.
fn sql() -> Vec<(String, String)> {
    let mut all = Vec::new();
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut folders = vec![directory.clone()];
    let mut files = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                files.push(path);
            }
        }
    }
    for path in files {
        let name = path.strip_prefix(&directory).unwrap();
        let name = name.to_string_lossy().replace('\\', "/");
        let source = std::fs::read_to_string(&path).unwrap();
        let mut found = Vec::new();
        strings(source.parse().unwrap(), &mut found);
        let is_part = |text: &String| {
            [
                "contexture.",
                "SELECT",
                "WHERE",
                "AND ",
                "INSERT",
                "UPDATE",
                "DELETE",
                "SET ",
            ]
            .iter()
            .any(|word| text.contains(word))
        };
        all.extend(
            found
                .into_iter()
                .filter(is_part)
                .map(|text| (name.clone(), text)),
        );
    }
    all
}

#[test]
fn data_statements_name_the_conversation_or_the_owner() {
    let mut seen = 0;
    for (file, text) in sql() {
        let verb = text.split(' ').next().unwrap_or_default();
        let is_whole = ["INSERT", "UPDATE", "DELETE", "SELECT"].contains(&verb)
            && text.contains(" contexture.");
        // The format has one row for all, and processes belong to nobody.
        let of_processes = text.contains("contexture.processes") || text.contains("process = ANY");
        // The owner is one of the terms of a title, and a migration makes those of all.
        let of_titles = file == "conversations/list_index.rs" && text.contains("title_terms");
        // The maintenance goes through the calls of all owners, one after another.
        let of_owners = text.starts_with("SELECT min(owner) FROM contexture.conversations")
            || text.starts_with("SELECT owner FROM contexture.calls")
            || text.starts_with("SELECT owner, id FROM contexture.listings WHERE terms_version")
            || text.starts_with("SELECT n.owner FROM ((SELECT owner FROM contexture.calls");
        if of_owners || !is_whole || file == "schema.rs" || of_processes || of_titles {
            continue;
        }
        seen += 1;
        let after = |word: &str| text.split_once(word).map(|(_, rest)| rest.to_owned());
        let named = match verb {
            "INSERT" => after("(").is_some_and(|columns| {
                columns.starts_with("conversation,") || columns.starts_with("owner,")
            }),
            _ => {
                let conditions = after(" WHERE ")
                    .or_else(|| after(" ON "))
                    .unwrap_or_default();
                conditions.contains("conversation =") || conditions.contains("owner = $")
            }
        };
        assert!(named, "{file}: {text}");
    }
    assert!(seen > 50, "only {seen} statements were found");
}

#[test]
fn nothing_depends_on_a_session_or_a_trigger() {
    let migrations = Path::new(env!("CARGO_MANIFEST_DIR")).join("migrations");
    let mut all = sql();
    for entry in std::fs::read_dir(migrations).unwrap() {
        let path = entry.unwrap().path();
        let lines = std::fs::read_to_string(&path).unwrap();
        let code = lines
            .lines()
            .map(|line| line.split("--").next().unwrap_or_default());
        all.push((
            path.display().to_string(),
            code.collect::<Vec<_>>().join(" "),
        ));
    }
    for (file, text) in all {
        let upper = text.to_uppercase();
        for word in [
            "RECURSIVE",
            "LISTEN",
            "NOTIFY",
            "PG_ADVISORY",
            "TRIGGER",
            "SEQUENCE",
            "SERIAL",
            "NEXTVAL",
            "IDENTITY",
            "PREPARE",
            "TEMP ",
            "TEMPORARY",
            "JSON",
            "REFERENCES",
            "CURSOR",
            "NOW()",
            "CURRENT_TIMESTAMP",
            "RANDOM()",
        ] {
            assert!(!upper.contains(word), "{file}: {word} in {text}");
        }
        let sets_session = upper.contains("SET ")
            && upper.split("SET ").skip(1).any(|rest| {
                rest.starts_with("SESSION")
                    || rest.starts_with("SEARCH_PATH")
                    || rest.starts_with("LOCK_TIMEOUT")
            });
        assert!(!sets_session, "{file}: {text}");
    }
}

/// Rows that belong together stand together, and may be kept on a server of their own.
#[tokio::test]
async fn every_key_begins_with_the_conversation_or_the_owner() {
    let database = Database::migrated().await;
    let client = database.client().await;
    let keys = client
        .query(
            "SELECT i.relname::text, coalesce(a.attname::text, pg_get_indexdef(x.indexrelid, 1, true)) \
             FROM pg_index x JOIN pg_class i ON i.oid = x.indexrelid \
             JOIN pg_class t ON t.oid = x.indrelid JOIN pg_am m ON m.oid = i.relam \
             LEFT JOIN pg_attribute a ON a.attrelid = t.oid AND a.attnum = x.indkey[0] \
             WHERE t.relnamespace = 'contexture'::regnamespace AND m.amname = 'btree' \
             AND t.relname NOT IN ('schema_version', 'processes')",
            &[],
        )
        .await
        .unwrap();
    assert!(keys.len() > 25, "{}", keys.len());
    for row in &keys {
        let (index, first): (&str, &str) = (row.get(0), row.get(1));
        assert!(
            ["conversation", "owner"].contains(&first),
            "{index}: {first}"
        );
    }
    drop(client);
    database.drop().await;
}
