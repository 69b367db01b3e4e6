//! How much of what a session held is still in reach: when its older half is dropped, the first message
//! apart, and when it is compiled call by call for a small window. In view, in the manifest that stands for what
//! was dropped, or found by the built-in tool. The measure looks for facts in its own way, not in the manifest's.

use std::collections::BTreeSet;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use contexture_compile::compaction::{CoveredItem, Manifest, TextBudget};
use contexture_compile::{
    CompileInput, Compiled, PathItem, Plan, PreviewPolicy, Rewriting, Rewritten, Scratch, compile,
};
use contexture_ir::{BranchName, ConversationId, Item, NodeId, Owner, Role};
use contexture_store::rules::typed_request;
use contexture_store::{
    AppendPoint, AppendRequest, HiddenContent, MemoryStore, NewConversation, NewItem, Search,
    SearchRequest, SearchScope, Store,
};
use contexture_tokens::{Encoding, counter_for};
use contexture_wire::{Format, lift};
use serde_json::Value;

use crate::fixtures::{Session, calls, request, sessions};

/// The kinds of facts that are measured.
const KINDS: [&str; 4] = ["identifiers", "numbers", "paths", "error lines"];

/// What of the dropped half stands in a text, as `(found, all)` of each kind.
type Score = [(usize, usize); 4];

#[test]
fn facts_of_the_older_half_stay_in_reach() {
    let counter = counter_for(Encoding::O200kBase);
    let mut window = Score::default();
    let mut manifest = Score::default();
    let (mut dropped_tokens, mut manifest_tokens, mut largest) = (0, 0, 0.0_f64);
    let all = sessions();
    assert_eq!(all.len(), 205);
    for session in &all {
        let (dropped, kept) = halves(session);
        let tokens = counter.count(&dropped).count;
        let told = manifest_of(session).render(TextBudget::Tokens(tokens * 15 / 100, counter));
        let told_tokens = counter.count(&told.text).count;
        dropped_tokens += tokens;
        manifest_tokens += told_tokens;
        if tokens > 1_000 {
            largest = largest.max(told_tokens as f64 / tokens as f64);
        }
        let mut facts = facts(&dropped);
        facts[3] = error_lines(&outputs(session));
        add(&mut window, &facts, &kept);
        add(&mut manifest, &facts, &format!("{kept}\n{}", told.text));
    }
    println!("of the facts of the older half, {} sessions:", all.len());
    println!(
        "  {:<12} {:>7} {:>12} {:>14}",
        "", "facts", "window alone", "with manifest"
    );
    for (at, kind) in KINDS.iter().enumerate() {
        println!(
            "  {kind:<12} {:>7} {:>11.1}% {:>13.1}%",
            window[at].1,
            share(&window[at..=at]),
            share(&manifest[at..=at])
        );
    }
    println!(
        "  {:<12} {:>7} {:>11.1}% {:>13.1}%",
        "all",
        window.iter().map(|kind| kind.1).sum::<usize>(),
        share(&window),
        share(&manifest)
    );
    println!(
        "  {dropped_tokens} tokens dropped, manifests of {manifest_tokens} ({:.1} %), the largest {:.1} % of its half",
        100.0 * manifest_tokens as f64 / dropped_tokens as f64,
        100.0 * largest
    );
    // What people said and what was done come first; of the facts of outputs two thirds stay in reach beside them.
    assert!(share(&manifest) >= 65.0);
    assert!(share(&manifest[0..=0]) >= 75.0, "identifiers");
    assert!(manifest_tokens * 100 <= dropped_tokens * 15);
}

/// What became of the facts that one session dropped, by kind.
#[derive(Default)]
struct Kept {
    dropped: [usize; 4],
    in_view: [usize; 4],
    told: [usize; 4],
    /// Neither, and asked for: found among the first five.
    found: [usize; 4],
    /// Neither, and not found.
    lost: Vec<String>,
    plain_view: [usize; 4],
    /// In what another project's compiler shows: with its defaults, and with the whole window used.
    peer: [[usize; 4]; 2],
}

/// What another project's compiler shows at the last call of each session, by session and window; made by
/// `cargo xtask bench compile --peers`.
struct PeerViews(Value);

impl PeerViews {
    fn given() -> Option<Self> {
        let file = std::env::var_os("CONTEXTURE_PEER_VIEWS")?;
        let views = std::fs::read(file).unwrap();
        Some(Self(serde_json::from_slice(&views).unwrap()))
    }

    fn of(&self, session: &Session, limit: u64) -> [Held; 2] {
        let views = &self.0[&session.name][limit.to_string()];
        ["documented", "full"].map(|way| Held::of(views[way].as_str().unwrap()))
    }
}

/// Small windows: what is trimmed, cleared or previewed is in view, in the manifest of the rounds that were trimmed, or
/// found by asking for it.
#[test]
fn what_is_dropped_is_told_or_found() {
    let soak = std::env::var_os("CONTEXTURE_SOAK").is_some();
    let all = sessions();
    let (short, long) = all.split_at(200);
    let step = if soak { 1 } else { 10 };
    let mut kept = Kept::default();
    let peer = PeerViews::given();
    let (mut squeezed, mut limits) = (0, Vec::new());
    for limit in [4_000, 6_000, 12_000] {
        let mut count = 0;
        for session in short.iter().step_by(step).chain(long) {
            count += usize::from(squeeze(session, limit, peer.as_ref(), &mut kept));
        }
        limits.push(format!("{count} in {limit}"));
        squeezed += count;
    }
    println!(
        "of the facts that were dropped, {squeezed} sessions ({}):",
        limits.join(", ")
    );
    println!(
        "  {:<12} {:>7} {:>13} {:>8} {:>14} {:>12}{}",
        "",
        "facts",
        "plain window",
        "in view",
        "with manifest",
        "and by tool",
        peer.as_ref()
            .map_or("", |_| "  peer's view  and in all of the window")
    );
    let share = |part: usize, of: usize| 100.0 * part as f64 / of.max(1) as f64;
    let row = |name: &str, at: std::ops::Range<usize>| {
        let sum = |of: &[usize; 4]| of[at.clone()].iter().sum::<usize>();
        let (dropped, view) = (sum(&kept.dropped), sum(&kept.in_view));
        let told = view + sum(&kept.told);
        let found = told + sum(&kept.found);
        println!(
            "  {name:<12} {dropped:>7} {:>12.1}% {:>7.1}% {:>13.1}% {:>11.1}%{}",
            share(sum(&kept.plain_view), dropped),
            share(view, dropped),
            share(told, dropped),
            share(found, dropped),
            peer.as_ref().map_or_else(String::new, |_| {
                let [documented, full] = kept.peer.map(|kept| share(sum(&kept), dropped));
                format!(" {documented:>12.1}% {full:>24.1}%")
            })
        );
        (told, dropped)
    };
    for (at, kind) in KINDS.iter().enumerate() {
        row(kind, at..at + 1);
    }
    let (told, dropped) = row("all", 0..4);
    assert!(
        kept.lost.is_empty(),
        "{} not found: {:?}",
        kept.lost.len(),
        &kept.lost[..kept.lost.len().min(10)]
    );
    // The subset is mostly of sessions whose long outputs are previewed, which no manifest tells again; numbers come last.
    let least = 58;
    assert!(told * 100 >= dropped * least, "{told} of {dropped}");
}

/// The last view of a session in a window; nothing if all of it fits.
fn squeeze(session: &Session, limit: u64, peer: Option<&PeerViews>, kept: &mut Kept) -> bool {
    let Some((length, compiled)) = last_view(session, limit) else {
        return false;
    };
    let path = &session.path[..length];
    let report = &compiled.report;
    let omitted: BTreeSet<usize> = report
        .omitted
        .iter()
        .flat_map(|one| one.first..=one.last)
        .collect();
    let changed: BTreeSet<usize> = report.rewritten.iter().map(|one| one.index).collect();
    let dropped: Vec<&PathItem> = omitted.union(&changed).map(|at| &path[*at]).collect();
    if dropped.is_empty() {
        return false;
    }
    let texts: Vec<String> = dropped.iter().map(|one| one.item.text()).collect();
    let wanted = facts(&texts.join("\n"));
    let view = shown(&compiled);
    let whole = |one: &&Rewritten| one.rewriting != Rewriting::Previewed;
    let cleared = report.rewritten.iter().filter(whole).map(|one| one.index);
    let manifest = manifest_beside(path, &omitted.iter().copied().chain(cleared).collect());
    let history = report.segments.iter().filter(|one| one.band == "history");
    let instructed = report.totals.tokens - history.map(|one| one.tokens).sum::<u64>();
    let plain = plain_window(path, limit - instructed);
    let (shown, told, plain) = (Held::of(&view), Held::of(&manifest), Held::of(&plain));
    let peer = peer.map(|views| views.of(session, limit));
    let searchable = Searchable::new(path);
    for (kind, wanted) in wanted.iter().enumerate() {
        for fact in wanted {
            for (way, view) in peer.iter().flatten().enumerate() {
                kept.peer[way][kind] += usize::from(view.has(kind, fact));
            }
            kept.dropped[kind] += 1;
            kept.plain_view[kind] += usize::from(plain.has(kind, fact));
            if shown.has(kind, fact) {
                kept.in_view[kind] += 1;
            } else if told.has(kind, fact) {
                kept.told[kind] += 1;
            } else if searchable.finds(kind, fact) {
                kept.found[kind] += 1;
            } else {
                kept.lost
                    .push(format!("{} {}: {fact}", session.name, KINDS[kind]));
            }
        }
    }
    true
}

/// A session call by call with previews and clearing; the last of its calls that was no refusal.
fn last_view(session: &Session, limit: u64) -> Option<(usize, Compiled)> {
    let mut request = request(Format::OpenAiChat, limit);
    request.history.preview = Some(PreviewPolicy::default());
    let (mut plan, mut scratch) = (Plan::default(), Scratch::new());
    let mut last = None;
    for length in calls(&session.path) {
        let input = CompileInput {
            path: (&session.path[..length]).into(),
            covers: &[],
            dropped_rules: &[],
            passes: &[],
            contributions: &session.system,
            plan: &plan,
            request: &request,
            counter: counter_for(Encoding::O200kBase),
            cancel: None,
        };
        if let Ok(compiled) = compile(&input, &mut scratch) {
            plan = compiled.plan.clone();
            last = Some((length, compiled));
        }
    }
    last
}

/// What the model reads of the conversation, its instructions apart.
fn shown(compiled: &Compiled) -> String {
    let lifted = lift(Format::OpenAiChat, &compiled.payload.to_json()).unwrap();
    let texts: Vec<String> = lifted.transcript.items.iter().map(Item::text).collect();
    texts.join("\n")
}

/// The manifest of what was left out, beside what was not.
fn manifest_beside(path: &[PathItem], omitted: &BTreeSet<usize>) -> String {
    let counter = counter_for(Encoding::O200kBase);
    let all = path.iter().enumerate().map(|(index, one)| CoveredItem {
        index,
        item: &one.item,
        hash: Some(one.hash),
        origin: None,
    });
    let (gone, there): (Vec<CoveredItem<'_>>, Vec<CoveredItem<'_>>) =
        all.partition(|one| omitted.contains(&one.index));
    if gone.is_empty() {
        return String::new();
    }
    let tokens: u64 = gone
        .iter()
        .map(|one| counter.count(&one.item.text()).count)
        .sum();
    let most = (tokens * 15 / 100).max(256);
    Manifest::from_items(&gone)
        .without_identifiers(&there)
        .render(TextBudget::Tokens(most, counter))
        .text
}

/// The newest messages that fit, whatever they are.
fn plain_window(path: &[PathItem], limit: u64) -> String {
    let counter = counter_for(Encoding::O200kBase);
    let mut left = limit;
    let fits = |text: &String| {
        let tokens = counter.count(text).count + 4;
        left.checked_sub(tokens)
            .inspect(|rest| left = *rest)
            .is_some()
    };
    let newest: Vec<String> = path
        .iter()
        .rev()
        .map(|one| one.item.text())
        .take_while(fits)
        .collect();
    newest.join("\n")
}

/// A path in a store, which the built-in tool searches.
struct Searchable<'p> {
    store: MemoryStore,
    path: &'p [PathItem],
}

impl<'p> Searchable<'p> {
    fn new(path: &'p [PathItem]) -> Self {
        let store = MemoryStore::new();
        let (owner, id) = (Owner::local(), Self::id());
        ready(store.create_conversation(&owner, NewConversation::new(id.clone(), 0))).unwrap();
        let items = path.iter().enumerate();
        let items = items.map(|(place, one)| {
            NewItem::new(
                Self::node(place),
                &one.item,
                one.item.to_json(),
                place as i64,
            )
        });
        let at = AppendPoint::Tip {
            branch: BranchName::main(),
        };
        ready(store.append_items(&owner, &id, AppendRequest::new(at, items.collect(), 0))).unwrap();
        Self { store, path }
    }

    fn id() -> ConversationId {
        ConversationId::new("session").unwrap()
    }

    fn node(place: usize) -> NodeId {
        NodeId::derive("path", &[&place.to_be_bytes()])
    }

    /// Whether the built-in tool, asked for a fact, gives among its first five, which it shows by default, an item that holds it.
    fn finds(&self, kind: usize, fact: &String) -> bool {
        let request = SearchRequest {
            hidden: HiddenContent::Include,
            limit: 5,
            ..typed_request(fact, SearchScope::Conversation(Self::id()))
        };
        let page = ready(self.store.search_nodes(&Owner::local(), request)).unwrap();
        let is_hit = |place: &usize| page.hits.iter().any(|hit| hit.node == Self::node(*place));
        let places = (0..self.path.len()).filter(is_hit);
        places
            .map(|place| self.path[place].item.text())
            .any(|text| Held::of(&text).has(kind, fact))
    }
}

/// The result of a call of a store that never waits.
fn ready<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(result) => result,
        Poll::Pending => panic!("a store in memory waits for nothing"),
    }
}

/// What a text holds.
struct Held {
    facts: [BTreeSet<String>; 4],
    /// With white space made one.
    text: String,
}

impl Held {
    fn of(text: &str) -> Self {
        let words: Vec<&str> = text.split_whitespace().collect();
        Self {
            facts: facts(text),
            text: words.join(" "),
        }
    }

    fn has(&self, kind: usize, fact: &String) -> bool {
        match kind {
            // A line may stand in another.
            3 => self.text.contains(fact.as_str()),
            _ => self.facts[kind].contains(fact),
        }
    }
}

/// The first message, which every window keeps, the older half behind it, and the newer half.
fn cut<T>(path: &[T]) -> (&[T], &[T], &[T]) {
    let (older, newer) = path.split_at(path.len() / 2);
    let (opening, dropped) = older.split_at(older.len().min(1));
    (opening, dropped, newer)
}

fn halves(session: &Session) -> (String, String) {
    let text = |items: &[PathItem]| {
        let texts: Vec<String> = items.iter().map(|one| one.item.text()).collect();
        texts.join("\n")
    };
    let (opening, dropped, kept) = cut(&session.path);
    (text(dropped), format!("{}\n{}", text(opening), text(kept)))
}

/// What tools gave back in the dropped half; in a session without calls, what came as a message.
fn outputs(session: &Session) -> String {
    let (_, dropped, _) = cut(&session.path);
    let calls = session
        .path
        .iter()
        .any(|one| matches!(*one.item, Item::FunctionCall(_)));
    let is_output = |one: &&PathItem| match &*one.item {
        Item::FunctionCallOutput(_) => true,
        Item::Message(message) => !calls && message.role == Role::User,
        _ => false,
    };
    let texts: Vec<String> = dropped
        .iter()
        .filter(is_output)
        .map(|one| one.item.text())
        .collect();
    texts.join("\n")
}

fn manifest_of(session: &Session) -> Manifest {
    let all = session.path.iter().enumerate();
    let covered: Vec<CoveredItem<'_>> = all
        .map(|(index, one)| CoveredItem {
            index,
            item: &one.item,
            hash: Some(one.hash),
            origin: None,
        })
        .collect();
    let (opening, dropped, kept) = cut(&covered);
    Manifest::from_items(dropped).without_identifiers(&[opening, kept].concat())
}

fn add(score: &mut Score, wanted: &[BTreeSet<String>; 4], text: &str) {
    let found = facts(text);
    for (at, wanted) in wanted.iter().enumerate() {
        score[at].1 += wanted.len();
        score[at].0 += match at {
            // A line may stand in another.
            3 => wanted
                .iter()
                .filter(|line| text.contains(line.as_str()))
                .count(),
            _ => wanted.intersection(&found[at]).count(),
        };
    }
}

fn share(score: &[(usize, usize)]) -> f64 {
    let (found, all) = score
        .iter()
        .fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
    100.0 * found as f64 / all as f64
}

/// Identifiers: words of letters and digits. Numbers: of two digits or more, dates and times whole.
/// Paths: words with an ending or with slashes. Error lines: their beginnings, white space made one.
pub(crate) fn facts(text: &str) -> [BTreeSet<String>; 4] {
    let digits = |word: &str| word.bytes().filter(u8::is_ascii_digit).count();
    let letters = |word: &str| word.bytes().any(|byte| byte.is_ascii_alphabetic());
    let identifiers = text
        .split(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == '-'))
        .filter(|word| word.len() > 2 && word.len() < 100 && digits(word) > 0 && letters(word));
    let numbers = text
        .split(|c: char| !(c.is_ascii_alphanumeric() || "_.,:/-".contains(c)))
        .map(|word| word.trim_matches(|c: char| !c.is_ascii_digit()))
        .filter(|word| {
            digits(word) > 1 && !letters(word) && word.len() < 40 && !word.contains('_')
        });
    let paths = text
        .split(|c: char| c.is_whitespace() || "\"'`()[]{}<>,;:=|".contains(c))
        .map(|word| word.trim_matches('.'))
        .filter(|word| word.len() < 160 && letters(word) && is_path(word));
    let set = |words: &mut dyn Iterator<Item = &str>| words.map(str::to_owned).collect();
    [
        set(&mut identifiers.into_iter()),
        set(&mut numbers.into_iter()),
        set(&mut paths.into_iter()),
        error_lines(text),
    ]
}

fn error_lines(text: &str) -> BTreeSet<String> {
    let lines = text
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "));
    let tells = |line: &String| {
        let lower = line.to_lowercase();
        ["error", "failed", "exception", "traceback"]
            .iter()
            .any(|word| lower.contains(word))
    };
    let shown = |line: String| line.chars().take(150).collect::<String>().trim().to_owned();
    lines.filter(tells).map(shown).collect()
}

fn is_path(word: &str) -> bool {
    let name = word.rsplit('/').next().unwrap_or_default();
    let ending = [
        ".py", ".rs", ".md", ".rst", ".txt", ".toml", ".cfg", ".json", ".js", ".ts", ".c", ".h",
        ".sh", ".yml", ".ini",
    ]
    .iter()
    .any(|ending| name.len() > ending.len() && name.ends_with(ending));
    ending || word.starts_with('/') && word.matches('/').count() > 1
}
