//! How much of what was said is found again: recorded sessions, kept by one owner, and questions to them.
//!
//! The benchmark `retrieval` measures with it, and the tests hold what it measured.
//!
//! Not here: how questions are made ([`contexture_testdata::questions`]).

use contexture_engine::{Conversation, Engine, ImportOptions};
use contexture_ir::{ConversationId, NodeId, Raw};
use contexture_layers::Layers;
use contexture_layers::builtin::Retrieval;
use contexture_sessions::{ReadOptions, SessionFormat, read_sessions};
use contexture_store::{NodeKind, PathEnd, ReadRequest, rules};
use contexture_testdata::{Question, SessionText, Speaker, recall_questions, tau_bench};
use futures_util::future::join_all;
use serde::Deserialize;

/// Sessions, and a conversation that knows nothing but where to look.
pub(crate) struct Library {
    pub(crate) now: Conversation,
    pub(crate) questions: Vec<Question>,
    /// The nodes of each session.
    nodes: Vec<Vec<NodeId>>,
}

/// How a question is asked.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Wording {
    /// As the person said it.
    AsSaid,
    /// Without the facts it is about.
    Without,
}

impl Wording {
    pub(crate) fn of(self, question: &Question) -> &str {
        match self {
            Self::AsSaid => &question.text,
            Self::Without => &question.without,
        }
    }
}

/// How often the evidence was among the first.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Recall {
    pub(crate) asked: usize,
    pub(crate) at_10: usize,
    pub(crate) at_20: usize,
}

/// A text that was found.
#[derive(Deserialize)]
struct Found {
    node: String,
}

impl Library {
    /// The first tau-bench sessions, and questions to them.
    pub(crate) async fn of(engine: Engine, count: usize) -> Self {
        let engine = engine.with_layers(Layers::new().with_layer(Retrieval::new()).unwrap());
        let kept = keep(&engine, &tau_bench(), "tau", count).await;
        let mut texts = Vec::new();
        let mut nodes = Vec::new();
        for id in kept {
            let chat = engine
                .conversation(id.as_str())
                .open_existing()
                .await
                .unwrap();
            let request = ReadRequest::whole_path(PathEnd::Branch(chat.branch()));
            let page = engine.store().read_path(chat.owner(), chat.id(), request);
            let page = page.await.unwrap().nodes;
            nodes.push(page.iter().map(|node| node.id).collect());
            let said = page.iter().map(|node| SessionText {
                by: match node.kind {
                    NodeKind::User => Speaker::Person,
                    _ => Speaker::Other,
                },
                text: rules::searchable_text(&node.json),
            });
            texts.push(said.collect::<Vec<_>>());
        }
        Self {
            now: engine.conversation("now").open().await.unwrap(),
            questions: recall_questions(&texts),
            nodes,
        }
    }

    /// Asks each question by the tool, as a model would. The message that asks is one of the texts: it
    /// does not count.
    pub(crate) async fn recall(&self, wording: Wording) -> Recall {
        let mut recall = Recall::default();
        for question in &self.questions {
            let node = |(session, text): (usize, usize)| self.nodes[session][text].to_string();
            let asked = node((question.session, question.text_index));
            let evidence: Vec<String> = question.evidence.iter().copied().map(node).collect();
            let found = self.ask(wording.of(question)).await;
            let mut others = found.iter().filter(|node| **node != asked);
            let rank = others.position(|node| evidence.contains(node));
            recall.asked += 1;
            recall.at_10 += usize::from(rank.is_some_and(|rank| rank < 10));
            recall.at_20 += usize::from(rank.is_some());
        }
        recall
    }

    /// The first 20 nodes that are found.
    pub(crate) async fn ask(&self, question: &str) -> Vec<String> {
        let question: String = question.chars().take(2_000).collect();
        let arguments = serde_json::json!({"query": question, "limit": 20});
        let arguments = Raw::parse(arguments.to_string()).unwrap();
        let found = self.now.call_function("search_history", &arguments).await;
        let found: Vec<Found> = found.unwrap().parse_as().unwrap();
        found.into_iter().map(|found| found.node).collect()
    }
}

/// Imports sessions, in their order.
pub(crate) async fn keep(
    engine: &Engine,
    sessions: &str,
    name: &str,
    count: usize,
) -> Vec<ConversationId> {
    let options = ReadOptions {
        source_name: name,
        ..ReadOptions::default()
    };
    let sessions = read_sessions(SessionFormat::TauBench, sessions, &options).unwrap();
    let all = ImportOptions::default();
    let done = sessions.iter().take(count);
    let done = join_all(done.map(|session| engine.import(session, &all))).await;
    let done = done.into_iter().map(|done| done.unwrap().conversation);
    done.collect()
}
