//! A process that is killed at any instant, and another that goes on with its run: the run is the one nobody killed.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use contexture_layers::Rerun;
use contexture_store::{MemoryStore, Store};
use contexture_store_sqlite::{SqliteOptions, SqliteStore, Synchronous};

use crate::scripted_agent::{contents, go_on, set_up};

/// Each a call of the model and the step of its tools.
const STAGES: usize = 100;
/// How often one run is killed at most, so that there are several.
const MOST: usize = 25;
const DATABASE: &str = "CONTEXTURE_TEST_DATABASE";
const TASK: &str = "CONTEXTURE_TEST_TASK";

fn store(path: &Path, synchronous: Synchronous) -> Arc<dyn Store> {
    let options = SqliteOptions {
        synchronous,
        ..SqliteOptions::default()
    };
    Arc::new(SqliteStore::open_with(path, options).unwrap())
}

/// The child: goes on with the run, to its end if nobody kills it.
#[tokio::test]
#[ignore = "the process that `a_killed_run_goes_on_as_if_nobody_had` starts and kills"]
async fn works_until_it_is_killed() {
    let Some(database) = std::env::var_os(DATABASE) else {
        return;
    };
    let full = std::env::var(TASK).unwrap() == "full";
    let synchronous = if full {
        Synchronous::Full
    } else {
        Synchronous::Normal
    };
    let store = store(Path::new(&database), synchronous);
    go_on(store, STAGES, Rerun::Repeat).await.unwrap();
}

fn start(database: &Path, synchronous: Synchronous) -> Child {
    let test = "process_kill::works_until_it_is_killed";
    let full = matches!(synchronous, Synchronous::Full);
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--ignored", "--test-threads=1"])
        .env(DATABASE, database)
        .env(TASK, if full { "full" } else { "normal" })
        .stdout(Stdio::null())
        .spawn()
        .unwrap()
}

/// Runs one to its end, killed at most so many times at moments of `chance`, and says how often it was.
fn kill(database: &Path, synchronous: Synchronous, most: usize, chance: &mut u64) -> usize {
    let mut killed = 0;
    while killed < most {
        let mut child = start(database, synchronous);
        *chance = chance
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        std::thread::sleep(Duration::from_millis(20 + (*chance >> 33) % 400));
        if let Some(status) = child.try_wait().unwrap() {
            assert!(status.success(), "{status}");
            return killed;
        }
        child.kill().unwrap();
        child.wait().unwrap();
        killed += 1;
    }
    let status = start(database, synchronous).wait().unwrap();
    assert!(status.success(), "{status}");
    killed
}

#[test]
fn a_killed_run_goes_on_as_if_nobody_had() {
    let kills = match std::env::var_os("CONTEXTURE_SOAK") {
        Some(_) => 100,
        None => 5,
    };
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let wanted = runtime.block_on(async {
        let whole: Arc<dyn Store> = Arc::new(MemoryStore::new());
        set_up(Arc::clone(&whole)).await;
        let turn = go_on(Arc::clone(&whole), STAGES, Rerun::Repeat).await;
        let turn = turn.unwrap().unwrap();
        assert!(turn.usage.steps > 200, "{}", turn.usage);
        contents(&whole).await
    });
    let directory = tempfile::tempdir().unwrap();
    let (mut killed, mut runs, mut chance) = (0, 0, 20_261_122);
    while killed < kills {
        let synchronous = match runs % 2 {
            0 => Synchronous::Normal,
            _ => Synchronous::Full,
        };
        let path = directory.path().join(format!("{runs}.db"));
        runtime.block_on(set_up(store(&path, synchronous)));
        let most = (kills - killed).min(MOST);
        killed += kill(&path, synchronous, most, &mut chance);
        runs += 1;
        let is = runtime.block_on(contents(&store(&path, synchronous)));
        for (name, line) in &wanted {
            assert_eq!(is.get(name), Some(line), "{name}, killed {killed} times");
        }
        assert_eq!(is.len(), wanted.len());
    }
    println!(
        "{killed} times killed in {runs} runs of {} things each",
        wanted.len()
    );
}
