//! Random operations on a store, compared with a simple reference model.
//!
//! The model stores each branch as a list of all its nodes and each node with its whole state,
//! regardless of cost. It shares no code with the stores, not even the naming of branches.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;

use contexture_ir::{BranchName, CheckpointName, ConversationId, NodeId, Owner, ProcessId};
use contexture_store::{
    Activation, AppendPoint, AppendRequest, Appended, BranchLabel, ClaimOver, Error,
    ExpectedVersion, Fence, KeyScope, NewBranch, NewConversation, OnMoved, PutEntry, RedactRequest,
    RefChange, StateChange, StateKey, StatePatch, Store,
};
use proptest::collection::vec;
use proptest::test_runner::{Config, RngSeed, TestCaseError, TestRunner};

use crate::chat::{Chat, NOW, item, raw_item};
use crate::test_seed;

mod compare;
mod ops;

use ops::{AppendOp, ClaimOverOp, EntryWrite, Op, any_op};

/// Numbers of operation sequences to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dose {
    /// Number in a normal run. Default 40.
    pub usual: u32,
    /// Number with `CONTEXTURE_SOAK=1`. Default 10,000.
    pub soak: u32,
}

impl Default for Dose {
    fn default() -> Self {
        Self {
            usual: 40,
            soak: 10_000,
        }
    }
}

/// Runs [`check_store_with`] with the default numbers.
pub fn check_store<Opened>(open: impl Fn(usize) -> Opened)
where
    Opened: Future<Output = Arc<dyn Store>>,
{
    check_store_with(Dose::default(), open);
}

/// Runs random operations, others in every run ([`test_seed`]), on stores from `open`. `open(case)` is called
/// again with the same number to reopen a store; each case has a conversation of its own, so one
/// store may serve them all.
///
/// Panics, with the shortest sequence found, if a store differs from the model.
pub fn check_store_with<Opened>(dose: Dose, open: impl Fn(usize) -> Opened)
where
    Opened: Future<Output = Arc<dyn Store>>,
{
    let soak = std::env::var_os("CONTEXTURE_SOAK").is_some();
    let config = Config {
        cases: if soak { dose.soak } else { dose.usual },
        // Printed, so that a failure can be repeated, also on another store.
        rng_seed: RngSeed::Fixed(test_seed()),
        // No file of failed cases: the seed repeats them.
        failure_persistence: None,
        ..Config::default()
    };
    // One thread: the operations of a case run one after another, in the generated order.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let case = std::cell::Cell::new(0);
    let ran = TestRunner::new(config).run(&vec(any_op(), 1..60), |ops| {
        case.set(case.get() + 1);
        runtime
            .block_on(run_ops(case.get(), || open(case.get()), &ops))
            .map_err(TestCaseError::fail)
    });
    if let Err(failure) = ran {
        panic!("{failure}");
    }
}

/// JSON of a redacted user message.
const TOMBSTONE: &str = r#"{"type":"message","role":"user","content":[{"type":"input_text","text":"[redacted]"}],"ctx:redacted":true}"#;

/// Expected state of the store.
#[derive(Default)]
struct Model {
    nodes: Vec<ModelNode>,
    /// Branches, in order of creation.
    branches: Vec<ModelBranch>,
    active: String,
    checkpoints: BTreeMap<String, usize>,
    /// Appends that succeeded, with their results.
    done: Vec<(AppendRequest, Appended)>,
    events: u64,
    /// Values outside the tree, with their versions.
    entries: BTreeMap<u8, (Option<u8>, u64)>,
}

struct ModelNode {
    id: NodeId,
    json: Arc<str>,
    /// All nodes of the path up to and including the head.
    path: Vec<usize>,
    state: BTreeMap<u8, u8>,
}

struct ModelBranch {
    name: String,
    path: Vec<usize>,
    fence: u64,
    /// The process that holds the newest claim.
    holder: Option<u8>,
}

/// Returns the id of a process by its number.
fn process_id(number: u8) -> ProcessId {
    ProcessId::from_bytes([number; 16])
}

/// Runs the operations; returns the first difference.
async fn run_ops<Opened: Future<Output = Arc<dyn Store>>>(
    case: usize,
    open: impl Fn() -> Opened,
    ops: &[Op],
) -> Result<(), String> {
    let mut chat = Chat {
        store: open().await,
        owner: Owner::local(),
        id: ConversationId::new(format!("model-{case}")).map_err(|error| error.to_string())?,
    };
    let new = NewConversation::new(chat.id.clone(), NOW);
    let made = chat.store.create_conversation(&chat.owner, new).await;
    made.map_err(|error| error.to_string())?;
    let mut model = Model::new();
    for (n, op) in ops.iter().enumerate() {
        if matches!(op, Op::Reopen) {
            let (owner, id) = (chat.owner.clone(), chat.id.clone());
            // Closed before it is opened again: a store on files may allow one opening at a time.
            drop(chat);
            let store = open().await;
            chat = Chat { store, owner, id };
        } else {
            let outcome = model.apply_op(&chat, op).await;
            outcome.map_err(|why| format!("operation {n}, {op:?}: {why}"))?;
        }
        let after = |why| format!("after operation {n}, {op:?}: {why}");
        model.compare_names(&chat).await.map_err(after)?;
        // Nodes are immutable, so a wrong one is still wrong at the next comparison.
        if n % 12 == 11 || n + 1 == ops.len() {
            model.compare_contents(&chat).await.map_err(after)?;
        }
    }
    Ok(())
}

/// Appends other bytes under the id of a node.
async fn apply_conflict(chat: &Chat, n: usize) -> Result<(), String> {
    let items = vec![raw_item(&format!("node {n}"), "other")];
    expect_outcome(&chat.append_to_tip("main", items).await, "id_conflict")
}

/// Returns a word for the result of a call.
fn outcome_name<T>(result: &Result<T, Error>) -> &'static str {
    match result {
        Ok(_) => "ok",
        Err(error) => error.kind(),
    }
}

fn expect_outcome<T>(result: &Result<T, Error>, wanted: &str) -> Result<(), String> {
    let got = outcome_name(result);
    if got == wanted {
        return Ok(());
    }
    let error = result.as_ref().err().map(Error::to_string);
    Err(format!("expected {wanted}, got {got} ({error:?})"))
}

fn parse_branch_name(text: &str) -> BranchName {
    BranchName::new(text).unwrap()
}

fn checkpoint_name(number: usize) -> CheckpointName {
    CheckpointName::new(format!("checkpoint {number}")).unwrap()
}

impl Model {
    /// Returns the model of a conversation that was just created.
    fn new() -> Self {
        Self {
            branches: vec![ModelBranch {
                name: "main".to_owned(),
                path: Vec::new(),
                fence: 0,
                holder: None,
            }],
            active: "main".to_owned(),
            // The creation of the conversation is an event itself.
            events: 1,
            ..Self::default()
        }
    }

    /// Returns the automatic name of a branch.
    fn next_name(&self, from: &str) -> String {
        let taken = |name: &str| self.branches.iter().any(|branch| branch.name == name);
        // Whatever numbers are behind the name already, the line is that of its beginning.
        let mut base = from.to_owned();
        while let Some(at) = base.rfind("-v")
            && at > 0
            && base.len() > at + 2
            && base.chars().skip(at + 2).all(|c| c.is_ascii_digit())
        {
            base.truncate(at);
        }
        let nested = format!("{base}-v");
        let mut number = 1;
        for branch in &self.branches {
            if branch.name == base || branch.name.starts_with(&nested) {
                number += 1;
            }
        }
        // The counted number may be taken by a name that was given by hand.
        while taken(&format!("{base}-v{number}")) {
            number += 1;
        }
        format!("{base}-v{number}")
    }

    fn next_node_names(&self, count: usize) -> Vec<String> {
        (self.nodes.len()..self.nodes.len() + count)
            .map(|n| format!("node {n}"))
            .collect()
    }

    /// Appends nodes to `path`.
    fn add_nodes(
        &mut self,
        words: &[String],
        path: &[usize],
        append: Option<&AppendOp>,
    ) -> Vec<usize> {
        let mut path = path.to_vec();
        let before = path.last().map(|last| self.nodes[*last].state.clone());
        let before = before.unwrap_or_default();
        let mut after = before.clone();
        // Each node keeps a copy of the whole state: sharing state between nodes is what is being
        // tested.
        for (key, value) in append.iter().flat_map(|append| &append.patch) {
            match value {
                Some(value) => after.insert(*key, *value),
                None => after.remove(key),
            };
        }
        let from = append.map_or(0, |append| append.from);
        for (n, word) in words.iter().enumerate() {
            path.push(self.nodes.len());
            let item = item(word);
            self.nodes.push(ModelNode {
                id: item.id,
                json: item.json,
                path: path.clone(),
                // Items before `from` keep the old state, as the request says.
                state: if n < from { &before } else { &after }.clone(),
            });
        }
        path
    }

    fn append_request(&self, at: AppendPoint, words: &[String]) -> AppendRequest {
        let items = words.iter().map(|word| item(word)).collect();
        AppendRequest::new(at, items, NOW)
    }

    async fn apply_op(&mut self, chat: &Chat, op: &Op) -> Result<(), String> {
        match op {
            Op::Append(append) => self.apply_append(chat, append).await,
            Op::Open { .. } => self.apply_open(chat, op).await,
            Op::Repeat(n) => self.apply_repeat(chat, *n).await,
            Op::Activate(n) => self.apply_activate(chat, n % self.branches.len()).await,
            Op::Delete(n) => self.apply_delete(chat, n % self.branches.len()).await,
            Op::Rename { branch, to } => {
                let n = branch % self.branches.len();
                self.apply_rename(chat, n, format!("other-v{to}")).await
            }
            Op::Move { branch, back, to } => {
                let n = branch % self.branches.len();
                let to = (to % (self.nodes.len() + 1)).checked_sub(1);
                self.apply_move(chat, n, *back, to).await
            }
            Op::Claim {
                branch,
                over,
                holder,
            } => {
                let n = branch % self.branches.len();
                self.apply_claim(chat, n, *over, *holder).await
            }
            Op::Unset(c) => self.apply_unset(chat, checkpoint_name(*c)).await,
            // Operations that name a node do nothing while there is none.
            Op::Conflict(_) | Op::Set { .. } | Op::Redact(_) if self.nodes.is_empty() => Ok(()),
            Op::Conflict(n) => apply_conflict(chat, n % self.nodes.len()).await,
            Op::Redact(n) => self.apply_redact(chat, n % self.nodes.len()).await,
            Op::Set { checkpoint, node } => {
                let node = node % self.nodes.len();
                self.apply_set(chat, checkpoint_name(*checkpoint), node)
                    .await
            }
            Op::Reopen => Ok(()),
        }
    }

    async fn apply_activate(&mut self, chat: &Chat, n: usize) -> Result<(), String> {
        let branch = self.branches[n].name.clone();
        let activate = RefChange::Activate(parse_branch_name(&branch));
        let changed = chat.change_ref(activate).await;
        self.active = branch;
        self.events += 1;
        expect_outcome(&changed, "ok")
    }

    async fn apply_delete(&mut self, chat: &Chat, n: usize) -> Result<(), String> {
        let branch = self.branches[n].name.clone();
        let delete = RefChange::DeleteBranch(parse_branch_name(&branch));
        let changed = chat.change_ref(delete).await;
        if branch == self.active {
            return expect_outcome(&changed, "invalid");
        }
        self.branches.remove(n);
        self.events += 1;
        expect_outcome(&changed, "ok")
    }

    async fn apply_rename(&mut self, chat: &Chat, n: usize, to: String) -> Result<(), String> {
        let from = self.branches[n].name.clone();
        let taken = self.branches.iter().any(|branch| branch.name == to);
        let change = RefChange::RenameBranch {
            from: parse_branch_name(&from),
            to: parse_branch_name(&to),
        };
        let changed = chat.change_ref(change).await;
        if taken {
            return expect_outcome(&changed, "already_exists");
        }
        self.branches[n].name = to.clone();
        if self.active == from {
            self.active = to;
        }
        self.events += 1;
        expect_outcome(&changed, "ok")
    }

    async fn apply_move(
        &mut self,
        chat: &Chat,
        n: usize,
        back: usize,
        to: Option<usize>,
    ) -> Result<(), String> {
        let path = &self.branches[n].path;
        let expected = path.len().saturating_sub(back);
        let moved = expected != path.len();
        let expect = path[..expected].last().map(|node| self.nodes[*node].id);
        let change = RefChange::Move {
            branch: parse_branch_name(&self.branches[n].name),
            expect,
            to: to.map(|node| self.nodes[node].id),
        };
        let changed = chat.change_ref(change).await;
        if moved {
            return expect_outcome(&changed, "head_moved");
        }
        self.branches[n].path = to.map_or_else(Vec::new, |node| self.nodes[node].path.clone());
        self.events += 1;
        expect_outcome(&changed, "ok")
    }

    async fn apply_claim(
        &mut self,
        chat: &Chat,
        n: usize,
        over: ClaimOverOp,
        holder: Option<u8>,
    ) -> Result<(), String> {
        let branch = &mut self.branches[n];
        let (over, wanted) = match over {
            ClaimOverOp::Anybody => (ClaimOver::Anybody, "ok"),
            ClaimOverOp::Nobody if branch.holder.is_some() => (ClaimOver::Nobody, "branch_held"),
            ClaimOverOp::Nobody => (ClaimOver::Nobody, "ok"),
            ClaimOverOp::Age(age) => {
                let fence = branch.fence.saturating_sub(age);
                let wanted = if fence == branch.fence {
                    "ok"
                } else {
                    "stale_fence"
                };
                (ClaimOver::Fence(Fence(fence)), wanted)
            }
        };
        let claim = RefChange::Claim {
            branch: parse_branch_name(&branch.name),
            over,
            holder: holder.map(process_id),
        };
        if wanted == "ok" {
            branch.fence += 1;
            branch.holder = holder;
            self.events += 1;
        }
        expect_outcome(&chat.change_ref(claim).await, wanted)
    }

    async fn apply_redact(&mut self, chat: &Chat, n: usize) -> Result<(), String> {
        let node = &mut self.nodes[n];
        let fresh = *node.json != *TOMBSTONE;
        node.json = TOMBSTONE.into();
        self.events += u64::from(fresh);
        let request = RedactRequest {
            nodes: vec![node.id],
            ..RedactRequest::default()
        };
        let redacted = chat
            .store
            .redact_content(&chat.owner, &chat.id, request)
            .await;
        let count = redacted.as_ref().map_or(0, |done| done.nodes);
        expect_equal("redacted", &count, &u64::from(fresh))
    }

    async fn apply_set(
        &mut self,
        chat: &Chat,
        name: CheckpointName,
        node: usize,
    ) -> Result<(), String> {
        self.checkpoints.insert(name.to_string(), node);
        self.events += 1;
        let node = self.nodes[node].id;
        let set = RefChange::SetCheckpoint { name, node };
        expect_outcome(&chat.change_ref(set).await, "ok")
    }

    async fn apply_unset(&mut self, chat: &Chat, name: CheckpointName) -> Result<(), String> {
        let known = self.checkpoints.remove(name.as_str()).is_some();
        self.events += u64::from(known);
        let changed = chat.change_ref(RefChange::DeleteCheckpoint(name)).await;
        expect_outcome(&changed, if known { "ok" } else { "not_found" })
    }

    fn entry_writes(&self, chat: &Chat, append: &AppendOp) -> Vec<(KeyScope, PutEntry)> {
        let put = |entry: &EntryWrite| {
            let (value, version) = self.entries.get(&entry.key).copied().unwrap_or_default();
            let expect = match (value, entry.stale) {
                // The next version, which nobody can have read yet.
                (_, true) => ExpectedVersion::Version(version + 1),
                // A deleted value is absent, though its version is counted on.
                (None, false) => ExpectedVersion::Absent,
                (Some(_), false) => ExpectedVersion::Version(version),
            };
            PutEntry {
                key: entry.key.to_string(),
                value: entry.value.map(|value| Arc::from([value])),
                expect,
                at_ms: NOW,
            }
        };
        let scope = || KeyScope::Conversation(chat.id.clone());
        let put = append.entry.iter().map(put);
        put.map(|put| (scope(), put)).collect()
    }

    /// Returns the tip of a branch, or an expected head on it.
    fn append_point(&self, branch: &BranchName, expected: Option<&[usize]>) -> AppendPoint {
        let branch = branch.clone();
        match expected {
            None => AppendPoint::Tip { branch },
            Some(path) => AppendPoint::Head {
                branch,
                head: path.last().map(|last| self.nodes[*last].id),
            },
        }
    }

    async fn apply_append(&mut self, chat: &Chat, append: &AppendOp) -> Result<(), String> {
        let n = append.branch % self.branches.len();
        let (branch, path) = (&self.branches[n], self.branches[n].path.clone());
        let words = self.next_node_names(append.count);
        let mut append = append.clone();
        // The generator knows nothing of the number of items; beyond the last one the request would
        // be invalid.
        append.from = append.from.min(append.count - 1);
        let expected = append
            .back
            .map(|back| path[..path.len().saturating_sub(back)].to_vec());
        // Going back zero nodes is the head itself, and so is going back on an empty path.
        let moved = expected.as_ref().is_some_and(|expected| *expected != path);
        let stale = append.fence.is_some_and(|age| age > 0 && branch.fence > 0);
        let fence = append
            .fence
            .map(|age| Fence(branch.fence.saturating_sub(age)));
        let branch_name = parse_branch_name(&branch.name);
        let at = self.append_point(&branch_name, expected.as_deref());
        let request = AppendRequest {
            on_moved: append.on_moved,
            fence,
            patch: state_patch(&append),
            entries: self.entry_writes(chat, &append),
            ..self.append_request(at, &words)
        };
        let result = chat.append_request(request.clone()).await;
        let wanted = expected_append_outcome(&append, stale, moved);
        expect_outcome(&result, wanted)?;
        if wanted != "ok" {
            return Ok(());
        }
        if let Some(entry) = &append.entry {
            let (value, version) = self.entries.entry(entry.key).or_default();
            *value = entry.value;
            *version += 1;
        }
        // One for the append, and below one more if it opened a branch.
        self.events += 1;
        if moved {
            let sibling = self.next_name(branch_name.as_str());
            let path = self.add_nodes(&words, &expected.unwrap_or_default(), Some(&append));
            self.events += 1;
            self.branches.push(ModelBranch {
                name: sibling,
                path,
                fence: 0,
                holder: None,
            });
        } else {
            self.branches[n].path = self.add_nodes(&words, &path, Some(&append));
        }
        self.done.extend(result.ok().map(|done| (request, done)));
        Ok(())
    }

    async fn apply_open(&mut self, chat: &Chat, op: &Op) -> Result<(), String> {
        let Op::Open {
            base,
            from,
            count,
            activate,
        } = op
        else {
            return Ok(());
        };
        // Zero stands for no base.
        let base = (base % (self.nodes.len() + 1)).checked_sub(1);
        let from = self.branches[from % self.branches.len()].name.clone();
        let words = self.next_node_names(*count);
        let new = NewBranch {
            base: base.map(|base| self.nodes[base].id),
            label: BranchLabel::After(parse_branch_name(&from)),
            activate: *activate,
        };
        let request = self.append_request(AppendPoint::New(new), &words);
        let result = chat.append_request(request.clone()).await;
        expect_outcome(&result, "ok")?;
        let opened = self.next_name(&from);
        let path = base.map_or_else(Vec::new, |base| self.nodes[base].path.clone());
        let path = self.add_nodes(&words, &path, None);
        self.branches.push(ModelBranch {
            name: opened.clone(),
            path,
            fence: 0,
            holder: None,
        });
        // A branch without items is one event, with items it is two.
        self.events += 1 + u64::from(*count > 0);
        if *activate == Activation::Activate {
            self.active = opened;
            self.events += 1;
        }
        if *count > 0 {
            // Without items there are no ids by which a repetition could be known.
            self.done.extend(result.ok().map(|done| (request, done)));
        }
        Ok(())
    }

    async fn apply_repeat(&mut self, chat: &Chat, n: usize) -> Result<(), String> {
        if self.done.is_empty() {
            return Ok(());
        }
        let (request, first) = &self.done[n % self.done.len()];
        let result = chat.append_request(request.clone()).await;
        let redacted = self.nodes.iter().filter(|node| *node.json == *TOMBSTONE);
        let redacted: Vec<NodeId> = redacted.map(|node| node.id).collect();
        if request.items.iter().any(|item| redacted.contains(&item.id)) {
            // A redacted item cannot be compared with what is sent, so it is no repetition.
            return expect_outcome(&result, "id_conflict");
        }
        expect_outcome(&result, "ok")?;
        let again = result.map_err(|error| error.to_string())?;
        let same = (again.head, again.first, again.depth, &again.nodes)
            == (first.head, first.first, first.depth, &first.nodes);
        if same && again.replayed {
            return Ok(());
        }
        Err(format!("first {first:?}, again {again:?}"))
    }
}

/// Returns the error for an append whose fence is stale, or whose head has moved.
fn expected_append_outcome(append: &AppendOp, stale: bool, moved: bool) -> &'static str {
    // In the store's order: fence, head, versions. The first check that fails is the answer.
    if stale {
        "stale_fence"
    } else if moved && append.on_moved == OnMoved::Refuse {
        "head_moved"
    } else if append.entry.as_ref().is_some_and(|entry| entry.stale) {
        "version_conflict"
    } else {
        "ok"
    }
}

fn state_patch(append: &AppendOp) -> StatePatch {
    let changes = append.patch.iter().map(|(key, value)| {
        let key = StateKey::new(format!("layer {key}")).unwrap();
        match value {
            Some(value) => StateChange::put_entry(key, 1, value.to_string().into_bytes()),
            None => StateChange::remove_entry(key),
        }
    });
    StatePatch {
        changes: changes.collect(),
        from: append.from,
    }
}

fn expect_equal<T: PartialEq + std::fmt::Debug + ?Sized>(
    what: &str,
    got: &T,
    wanted: &T,
) -> Result<(), String> {
    if got == wanted {
        return Ok(());
    }
    Err(format!("{what}: got {got:?}, wanted {wanted:?}"))
}
