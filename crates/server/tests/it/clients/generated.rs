//! Clients that are generated from the description of the API, and validators of it: they are what reads it.

use std::path::Path;
use std::process::Stdio;

use serde_json::Value;
use tempfile::TempDir;

use super::installed::Installed;
use crate::api_description::{description, operations};
use crate::test_support::Stand;

/// A folder with the description, the scripts and what they need.
struct Workplace {
    installed: Installed,
    folder: TempDir,
}

impl Workplace {
    fn new() -> Option<Self> {
        let installed = Installed::find()?;
        let folder = tempfile::tempdir().unwrap();
        installed.link(folder.path());
        let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clients/generated");
        for file in std::fs::read_dir(scripts).unwrap() {
            let file = file.unwrap();
            std::fs::copy(file.path(), folder.path().join(file.file_name())).unwrap();
        }
        let text = contexture_server::openapi();
        std::fs::write(folder.path().join("description.json"), text).unwrap();
        // Tells TypeScript and Node that the files are modules.
        std::fs::write(folder.path().join("package.json"), r#"{"type": "module"}"#).unwrap();
        Some(Self { installed, folder })
    }

    /// Runs a script, which must succeed, and returns what it printed.
    async fn run(&self, script: &str, arguments: &[&str]) -> String {
        let script = self.folder.path().join(script);
        let mut command = self.installed.command(&script, self.folder.path());
        let output = command.args(arguments).stdin(Stdio::null()).output().await;
        let output = output.unwrap();
        let said = String::from_utf8(output.stdout).unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{said}\n{errors}");
        said
    }
}

/// The ids of all operations, in order.
fn operation_ids() -> Vec<String> {
    let operations = operations(&description());
    let mut ids: Vec<String> = operations
        .iter()
        .map(|operation| operation.id().to_owned())
        .collect();
    ids.sort();
    ids
}

#[tokio::test]
async fn two_validators_find_nothing() {
    let Some(work) = Workplace::new() else { return };
    for validator in ["validate.py", "validate.mjs"] {
        assert_eq!(
            work.run(validator, &["description.json"]).await,
            "",
            "{validator}"
        );
    }
}

#[tokio::test]
async fn a_client_for_python_has_all_operations_and_works() {
    let Some(work) = Workplace::new() else { return };
    let stand = Stand::new().await;
    let base = format!("http://{}", stand.address);
    let said = work.run("client.py", &["description.json", &base]).await;
    let told: Value = serde_json::from_str(&said).unwrap();
    let modules = told["operations"].as_object().unwrap().values();
    let mut generated: Vec<String> = modules
        .flat_map(|names| names.as_array().unwrap())
        .map(|name| name.as_str().unwrap().to_owned())
        .collect();
    generated.sort();
    assert_eq!(generated, operation_ids());
    assert!(told["called"].as_array().unwrap().len() >= 10, "{said}");
    let warnings = told["said"].as_str().unwrap();
    assert!(!warnings.contains("will not be generated"), "{warnings}");
}

#[tokio::test]
async fn a_client_for_typescript_compiles_and_works() {
    let Some(work) = Workplace::new() else { return };
    let generator = "node_modules/openapi-typescript/bin/cli.js";
    work.run(
        generator,
        &["description.json", "--output", "description.d.ts"],
    )
    .await;
    work.run(
        "node_modules/typescript/bin/tsc",
        &["--project", "tsconfig.json"],
    )
    .await;
    let types = std::fs::read_to_string(work.folder.path().join("description.d.ts")).unwrap();
    let declared = types.split("export interface operations {").nth(1).unwrap();
    let mut generated: Vec<String> = declared
        .lines()
        // Operations are the members of the outermost object, which are indented once.
        .filter_map(|line| line.strip_prefix("    ")?.strip_suffix(": {"))
        .filter(|name| !name.starts_with(' '))
        .map(str::to_owned)
        .collect();
    generated.sort();
    assert_eq!(generated, operation_ids());
    let stand = Stand::new().await;
    let base = format!("http://{}", stand.address);
    let called: Value = serde_json::from_str(&work.run("client.ts", &[&base]).await).unwrap();
    assert!(called.as_array().unwrap().len() >= 10, "{called}");
}
