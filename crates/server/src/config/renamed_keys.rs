//! Keys that have an older spelling. Both are accepted without end, by `#[serde(alias)]` at the field; here is what that
//! cannot say: a table with both spellings is an error that names both.

use toml::de::DeTable;

use crate::config::line_numbers::{ConfigFault, KeyPathStep};

/// A key with an older spelling.
struct RenamedKey {
    /// The table that it is in; `*` stands for any name.
    table: [&'static str; 2],
    old: &'static str,
    new: &'static str,
}

const RENAMED_KEYS: [RenamedKey; 4] = [
    RenamedKey {
        table: ["server", "limits"],
        old: "behind_bytes",
        new: "memory_bytes",
    },
    RenamedKey {
        table: ["server", "limits"],
        old: "store_queue_bytes",
        new: "memory_bytes",
    },
    RenamedKey {
        table: ["server", "limits"],
        old: "warm_bytes",
        new: "handle_cache_bytes",
    },
    RenamedKey {
        table: ["policies", "*"],
        old: "pays",
        new: "cost_condition",
    },
];

/// Returns the first key of a file that is given in both of its spellings. What is no TOML has none.
pub(crate) fn double_spelling(text: &str) -> Option<ConfigFault> {
    let document = DeTable::parse(text).ok()?;
    RENAMED_KEYS.iter().find_map(|key| {
        let [outer, inner] = key.table;
        let outer_table = document.get_ref().get(outer)?.get_ref().as_table()?;
        outer_table.iter().find_map(|(name, value)| {
            let name = name.get_ref();
            let is_meant = inner == "*" || inner == name.as_ref();
            let table = value.get_ref().as_table().filter(|_| is_meant)?;
            let has = |key: &str| table.get(key).is_some();
            let path = [outer, name.as_ref(), key.old].map(KeyPathStep::key);
            (has(key.old) && has(key.new)).then(|| {
                let why = format!(
                    "`{}` is the older spelling of `{}`; give one of them",
                    key.old, key.new
                );
                ConfigFault::new(path.into(), why)
            })
        })
    })
}
