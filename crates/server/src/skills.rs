//! Skills read from folders, once, when the server starts.
//!
//! Whatever is no skill is left out and told in the log: nothing that lies in a folder keeps the server from starting.

use std::path::PathBuf;

use contexture::layers::builtin::{Skill, SkillFolders};

/// The skills in these folders, by folder and name. This blocks on the file system.
pub(crate) fn load(folders: &[PathBuf]) -> Vec<Skill> {
    let all = folders.iter().fold(SkillFolders::new(), SkillFolders::with);
    let loaded = all.load();
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
