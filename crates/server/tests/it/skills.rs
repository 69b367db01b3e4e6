//! Skills: listed, read, and the files beside them.

use std::path::Path;

use serde_json::{Value, json};

use crate::test_support::Stand;

/// Writes a skill into a folder of skills, with a file beside it.
fn skill(folder: &Path, name: &str, called: &str) {
    let own = folder.join(name);
    std::fs::create_dir_all(own.join("references")).unwrap();
    let text = format!(
        "---\nname: {called}\ndescription: Fills in forms.\nallowed-tools: Bash(pdftk:*) Read\n---\nStep by step.\n"
    );
    std::fs::write(own.join("SKILL.md"), text).unwrap();
    std::fs::write(own.join("references/fields.md"), "Name, date.").unwrap();
}

/// The configuration that shows these folders.
pub(crate) fn shown(folders: &[&Path]) -> String {
    format!("[server]\nskills = {}\n", json!(folders))
}

/// A folder with one skill, `forms`, and a file `references/fields.md`.
pub(crate) fn forms() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    skill(folder.path(), "forms", "forms");
    folder
}

#[tokio::test]
async fn skills_are_listed_and_read() {
    let folder = forms();
    let stand = Stand::with(&shown(&[folder.path()])).await;
    let listed = stand.get("/api/v1/skills").await.ok();
    let expected = json!({
        "name": "forms", "description": "Fills in forms.", "license": null, "compatibility": null,
        "metadata": {}, "allowed_tools": ["Bash(pdftk:*)", "Read"],
    });
    assert_eq!(listed, json!({"skills": [expected]}));
    let shown = stand.get("/api/v1/skills/forms").await.ok();
    assert_eq!(shown["instructions"], "Step by step.");
    let file = stand
        .get("/api/v1/skills/forms/file?path=references/fields.md")
        .await
        .ok();
    assert_eq!(
        file,
        json!({"skill": "forms", "path": "references/fields.md", "text": "Name, date."})
    );
    stand
        .get("/api/v1/skills/tables")
        .await
        .refused(404, "not_found");
}

#[tokio::test]
async fn what_lies_in_folders_stops_nobody_and_leads_nowhere() {
    let folder = forms();
    let at = folder.path();
    skill(at, "other", "spreadsheets");
    std::fs::create_dir(at.join("bytes")).unwrap();
    std::fs::write(at.join("bytes/SKILL.md"), b"---\n\xff\n---\n").unwrap();
    std::os::unix::fs::symlink("/", at.join("root")).unwrap();
    std::os::unix::fs::symlink("/etc/passwd", at.join("forms/link")).unwrap();
    let second = forms();
    let none = at.join("none");
    let stand = Stand::with(&shown(&[
        at,
        second.path(),
        &none,
        &at.join("forms/SKILL.md"),
    ]))
    .await;
    let listed = stand.get("/api/v1/skills").await.ok();
    let names: Vec<&Value> = listed["skills"]
        .as_array()
        .unwrap()
        .iter()
        .map(|skill| &skill["name"])
        .collect();
    assert_eq!(names, ["forms"]);
    for (path, status, code) in [
        ("", 400, "bad_query"),
        ("../other/SKILL.md", 400, "bad_query"),
        ("/etc/passwd", 400, "bad_query"),
        ("references/../SKILL.md", 400, "bad_query"),
        ("none.md", 404, "not_found"),
        ("references", 422, "file_type"),
        ("link", 422, "file_type"),
    ] {
        let answer = stand
            .find("/api/v1/skills/forms/file", &[("path", path)])
            .await;
        answer.refused(status, code);
        assert!(
            !answer.text.contains(at.to_str().unwrap()),
            "{}",
            answer.text
        );
    }
}
