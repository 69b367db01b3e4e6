//! Skills read from folders, once, when the server starts.
//!
//! Whatever is no skill is left out and told in the log: nothing that lies in a folder keeps the server from starting.

use std::collections::BTreeMap;
use std::path::PathBuf;

use contexture::layers::builtin::{Skill, SkillFolders, Skills};

use crate::config::Config;

/// The skills in these folders, by folder and name. This blocks on the file system.
pub(crate) fn load_skills(folders: &[PathBuf]) -> Vec<Skill> {
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

/// The skills that policies list to models, by policy.
pub(crate) fn load_skills_by_policy(config: &Config) -> BTreeMap<String, Skills> {
    let policies = config.policies.iter();
    let policies = policies.filter(|(_, policy)| !policy.skills.is_empty());
    let skills = policies.filter_map(|(name, policy)| {
        let skills = Skills::new(load_skills(&policy.skills));
        // Of two of one name only one was loaded.
        Some((name.clone(), skills.ok()?))
    });
    skills.collect()
}
