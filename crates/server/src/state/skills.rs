//! Skills, read from folders once when the server starts.
//!
//! What is not a skill is left out and logged: no file in a folder keeps the server from starting.

use std::collections::BTreeMap;
use std::path::PathBuf;

use contexture::layers::builtin::{Skill, SkillFolders, Skills};

use crate::config::Config;

/// Loads the skills of these folders, ordered by folder and name. Blocks on the file system.
pub(crate) fn load_skills(folders: &[PathBuf]) -> Vec<Skill> {
    // Folders are searched in order: of two skills of one name the earlier folder's counts.
    let all = folders
        .iter()
        .fold(SkillFolders::new(), SkillFolders::with_folder);
    let loaded = all.load_skills();
    for refused in &loaded.refused {
        let path = refused.path.display();
        tracing::warn!(%path, error = %refused.error, "not a skill");
    }
    for (name, path) in &loaded.shadowed {
        let path = path.display();
        tracing::warn!(%path, name, "an earlier folder has another skill of this name");
    }
    loaded.skills
}

/// Loads the skills that policies list to models, by policy. Blocks on the file system.
pub(crate) fn load_skills_by_policy(config: &Config) -> BTreeMap<String, Skills> {
    let policies = config.policies.iter();
    let policies = policies.filter(|(_, policy)| !policy.skills.is_empty());
    let skills = policies.filter_map(|(name, policy)| {
        let skills = Skills::new(load_skills(&policy.skills));
        // Fails for two skills of one name only, and loading has dropped the later of those.
        Some((name.clone(), skills.ok()?))
    });
    skills.collect()
}
