//! Whether the folders are there that policies need.

use std::fs;

use crate::config::locate::{ConfigFault, KeyPathStep};
use crate::config::whole::Config;

/// The first folder of a policy's skills that is none.
pub(crate) fn first_folder_fault(config: &Config) -> Option<ConfigFault> {
    config.policies.iter().find_map(|(name, policy)| {
        let folders = policy.skills.iter().enumerate();
        let mut missing = folders.filter_map(|(index, folder)| {
            let error = fs::read_dir(folder).err()?;
            let [table, field] = ["policies", "skills"].map(KeyPathStep::key);
            let path = vec![
                table,
                KeyPathStep::key(name),
                field,
                KeyPathStep::Index(index),
            ];
            let why = format!(
                "{} is no folder that can be read: {error}",
                folder.display()
            );
            Some(ConfigFault::new(path, why))
        });
        missing.next()
    })
}
