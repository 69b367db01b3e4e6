//! A question finds its evidence, and every store gives the same hits in the same order.

use std::sync::Arc;

use contexture_ir::NodeId;
use contexture_store::{MemoryStore, NewItem, SearchRequest, SearchScope, Store};
use contexture_store_postgres::PostgresStore;
use contexture_store_sqlite::SqliteStore;
use contexture_store_testkit::Chat;

use crate::dialogues::{Dialogue, generate_dialogues, parse_dialogues};
use crate::server::Database;

/// What a store finds: the hits of each question, with their scores, and how much of the evidence is among the first
/// ten of each, on average.
struct Answers {
    pages: Vec<Vec<(u32, NodeId)>>,
    mean_at_10: f64,
}

async fn ask_all(
    store: Arc<dyn Store>,
    dialogues: &[Dialogue],
    scope: Option<SearchScope>,
) -> Answers {
    let mut answers = Answers {
        pages: Vec::new(),
        mean_at_10: 0.0,
    };
    for dialogue in dialogues {
        let chat = Chat::start_as(Arc::clone(&store), "recall", &dialogue.name).await;
        let items: Vec<NewItem> = dialogue.items().collect();
        chat.append_to_tip("main", items).await.unwrap();
    }
    for dialogue in dialogues {
        let id = dialogue.name.parse().unwrap();
        let scope = scope.clone().unwrap_or(SearchScope::Conversation(id));
        for question in &dialogue.questions {
            let request = SearchRequest::new(question.text.clone(), scope.clone());
            let owner = "recall".parse().unwrap();
            let page = store
                .search()
                .unwrap()
                .search_nodes(&owner, request)
                .await
                .unwrap();
            let hits: Vec<(u32, NodeId)> =
                page.hits.iter().map(|hit| (hit.score, hit.node)).collect();
            let first: Vec<NodeId> = hits.iter().take(10).map(|hit| hit.1).collect();
            let found = question
                .evidence
                .iter()
                .filter(|node| first.contains(node))
                .count();
            answers.mean_at_10 += found as f64 / question.evidence.len() as f64;
            answers.pages.push(hits);
        }
    }
    answers.mean_at_10 /= answers.pages.len() as f64;
    answers
}

#[tokio::test(flavor = "multi_thread")]
async fn generated_questions_find_their_evidence() {
    let dialogues = generate_dialogues(2);
    let directory = tempfile::tempdir().unwrap();
    for (scope, least) in [(None, 0.95), (Some(SearchScope::Owner), 0.9)] {
        let database = Database::migrated().await;
        let postgres = PostgresStore::open(&database.address).await.unwrap();
        let file = directory.path().join(format!("{least}.db"));
        let sqlite = SqliteStore::open(&file).unwrap();
        let memory = ask_all(Arc::new(MemoryStore::default()), &dialogues, scope.clone()).await;
        let sqlite = ask_all(Arc::new(sqlite), &dialogues, scope.clone()).await;
        let postgres = ask_all(Arc::new(postgres), &dialogues, scope.clone()).await;
        assert!(
            memory.mean_at_10 >= least,
            "{scope:?}: {}",
            memory.mean_at_10
        );
        assert_eq!(memory.pages, sqlite.pages, "SQLite, {scope:?}");
        assert_eq!(memory.pages, postgres.pages, "PostgreSQL, {scope:?}");
        database.drop().await;
    }
}

/// The form of the benchmark's data is read.
#[test]
fn dialogues_are_read_from_json() {
    let json = r#"[{"sample_id": "s", "qa": [
        {"question": "Who?", "evidence": ["D2:1"]}, {"question": "What?", "evidence": []}],
        "conversation": {"session_2_date_time": "1:56 pm on 8 May, 2023",
            "session_2": [{"speaker": "A", "dia_id": "D2:1", "text": "Hi", "blip_caption": "a dog"}]}}]"#;
    let dialogues = parse_dialogues(json);
    let items: Vec<NewItem> = dialogues[0].items().collect();
    assert_eq!(items[0].created_ms, 1_683_504_000_000);
    assert!(items[0].json.contains("A: Hi a dog"));
    assert_eq!(dialogues[0].questions.len(), 1);
    assert_eq!(dialogues[0].questions[0].evidence, [items[0].id]);
    assert!((dialogues[0].session_share(&[items[0].id], &[]) - 0.0).abs() < 1e-9);
}
