//! Sessions call by call, with state, memory and reminders that change every time: what of a request's bytes the next one has in the same place,
//! and that what was marked for the cache never moves but in an epoch that the report names.

use std::collections::BTreeMap;

use contexture_catalogue::Catalogue;
use contexture_compile::{
    Band, CompileInput, CompileRequest, Compiled, Content, Contribution, EpochReason, Outline,
    Payload, Plan, Scratch, SegmentStability, Target, compile,
};
use contexture_ir::ContentHash;
use contexture_wire::Format;

use crate::fixtures::{Quarter, Session, calls, sessions};

const TARGETS: [(Format, &str); 4] = [
    (Format::Anthropic, "claude-sonnet-4-5"),
    (Format::OpenAiResponses, "gpt-5.6"),
    (Format::OpenAiChat, "gpt-4.1"),
    (Format::Gemini, "gemini-3.1-pro-preview"),
];

/// Bytes sent, and those of them that stood in the same place in the request before.
#[derive(Clone, Copy, Debug, Default)]
struct Bytes {
    sent: usize,
    reused: usize,
}

impl Bytes {
    fn add(&mut self, json: &str, before: Option<&str>) {
        self.sent += json.len();
        self.reused += before.map_or(0, |before| common(before, json));
    }

    fn share(&self) -> f64 {
        self.reused as f64 / self.sent as f64
    }
}

fn common(before: &str, now: &str) -> usize {
    let pairs = before.bytes().zip(now.bytes());
    pairs.take_while(|(before, now)| before == now).count()
}

/// What a request leaves to be compared with the next one.
struct Before {
    json: String,
    /// Where its tail begins.
    settled: usize,
    /// The last segment that is marked, or that an unmarked cache could return, and the hash up to it.
    marked: Option<(usize, ContentHash)>,
}

#[derive(Default)]
struct Tally {
    calls: usize,
    ours: Bytes,
    epochs: BTreeMap<&'static str, usize>,
}

#[test]
fn what_was_sent_is_sent_again_in_the_same_place() {
    let soak = std::env::var_os("CONTEXTURE_SOAK").is_some();
    let all = sessions();
    let step = if soak { 1 } else { 16 };
    let chosen: Vec<&Session> = all.iter().step_by(step).collect();
    println!(
        "bytes of a request that stood in the same place in the one before, {} sessions:",
        chosen.len()
    );
    println!(
        "  {:<17} {:>6} {:>12} {:>9} {:>6} {:>22}",
        "", "calls", "append-only", "ours", "ratio", "in 4,000 tokens"
    );
    for (format, model) in TARGETS {
        let wide = target(format, model);
        let mut narrow = wide.clone();
        (narrow.window, narrow.reserve) = (4_500, 500);
        let (mut append, mut ours, mut small) =
            (Bytes::default(), Tally::default(), Tally::default());
        for session in &chosen {
            append_only(session, &wide, &mut append);
            run(session, &wide, &mut ours);
            run(session, &narrow, &mut small);
        }
        let ratio = ours.ours.share() / append.share();
        let epochs: usize = small.epochs.values().sum();
        println!(
            "  {:<17} {:>6} {:>11.1}% {:>8.1}% {ratio:>6.3} {:>7.1}%, {epochs:>4} epochs {:?}",
            format.as_str(),
            ours.calls,
            100.0 * append.share(),
            100.0 * ours.ours.share(),
            100.0 * small.ours.share(),
            small.epochs
        );
        assert!(ours.epochs.is_empty(), "everything fits: {:?}", ours.epochs);
        assert!(ratio >= 0.98, "{format}: {ratio}");
        assert!(
            epochs > 0,
            "{format}: some sessions are larger than the window"
        );
    }
}

fn target(format: Format, model: &str) -> CompileRequest {
    let target = Target::new(format, model);
    target.build_request(Catalogue::builtin()).unwrap()
}

/// What a host says with every call, never the same.
fn changing(session: &Session, call: usize) -> Vec<Contribution> {
    let said = |source, band, text| Contribution::new(source, band, Content::Text(text));
    let mut all = session.system.clone();
    all.extend([
        said("memory", Band::Live, format!("Seen {} times.", call * 7)),
        said(
            "state",
            Band::Tail,
            format!(r#"{{"step":{call},"open":{}}}"#, call % 5),
        ),
        said(
            "reminder",
            Band::Tail,
            format!("It is 12:{:02}.", call % 60),
        ),
    ]);
    all
}

fn with(
    session: &Session,
    length: usize,
    contributions: &[Contribution],
    request: &CompileRequest,
    plan: &Plan,
    scratch: &mut Scratch,
) -> Option<Compiled> {
    let input = CompileInput {
        path: (&session.path[..length]).into(),
        covers: &[],
        dropped_rules: &[],
        passes: &[],
        contributions,
        plan,
        request,
        counter: &Quarter,
        cancel: None,
    };
    compile(&input, scratch).ok()
}

/// A host that only ever appends, and says nothing else.
fn append_only(session: &Session, request: &CompileRequest, bytes: &mut Bytes) {
    let request = CompileRequest {
        window: 10_000_000,
        ..unmarked(request)
    };
    let mut before: Option<String> = None;
    let mut scratch = Scratch::new();
    for length in calls(&session.path) {
        let compiled = with(
            session,
            length,
            &session.system,
            &request,
            &Plan::default(),
            &mut scratch,
        );
        let json = compiled.unwrap().payload.to_json();
        bytes.add(&json, before.as_deref());
        before = Some(json);
    }
}

fn unmarked(request: &CompileRequest) -> CompileRequest {
    let mut request = request.clone();
    request.cache.marker_policy = None;
    request
}

fn run(session: &Session, request: &CompileRequest, tally: &mut Tally) {
    let bare = unmarked(request);
    let (mut plan, mut scratch) = (Plan::default(), Scratch::new());
    let mut before: Option<Before> = None;
    for length in calls(&session.path) {
        let contributions = changing(session, length);
        let mut compile = |request| {
            with(
                session,
                length,
                &contributions,
                request,
                &plan,
                &mut scratch,
            )
        };
        let (Some(compiled), Some(bare)) = (compile(request), compile(&bare)) else {
            continue;
        };
        let place = format!("{} to {} at {length}", session.name, request.dialect.format);
        let outline = compiled.payload.outline();
        assert_eq!(
            hashes(&outline),
            hashes(&bare.payload.outline()),
            "{place}: marks are no content"
        );
        let json = bare.payload.to_json();
        let epoch = &compiled.report.epoch;
        match &before {
            Some(before) if !epoch.opened => before.check(&json, &outline, &place),
            Some(_) => {
                assert!(
                    matches!(
                        epoch.reason,
                        EpochReason::HistoryTrimmed | EpochReason::HistoryCleared
                    ),
                    "{place}: {:?}",
                    epoch.reason
                );
                *tally.epochs.entry(epoch.reason.as_str()).or_default() += 1;
            }
            None => assert_eq!(epoch.reason, EpochReason::First, "{place}"),
        }
        tally.calls += 1;
        tally
            .ours
            .add(&json, before.as_ref().map(|before| before.json.as_str()));
        before = Some(Before::of(
            json,
            &bare.payload,
            &outline,
            &compiled,
            request,
        ));
        plan = compiled.plan;
    }
}

impl Before {
    fn of(
        json: String,
        payload: &Payload,
        outline: &Outline,
        compiled: &Compiled,
        request: &CompileRequest,
    ) -> Self {
        let passing = outline
            .segments
            .iter()
            .filter(|one| one.stability == SegmentStability::Call)
            .count();
        let pieces: Vec<&str> = payload.json_chunks().collect();
        // Each passing element has a comma before it, and the end of the document behind it.
        let settled = pieces[..pieces.len() - 1 - 2 * passing]
            .iter()
            .map(|piece| piece.len())
            .sum();
        assert!(passing > 0 && settled > 0);
        let marked = if request.cache.rules.is_marker_based() {
            let last = compiled.plan.cached_prefixes.last();
            last.map(|kept| kept.segment)
        } else {
            outline
                .segments
                .iter()
                .rposition(|one| one.stability < SegmentStability::Call)
        };
        assert!(
            !request.cache.rules.is_marker_based()
                || outline.tokens() < 2 * request.cache.rules.minimum
                || marked.is_some()
        );
        Self {
            json,
            settled,
            marked: marked.map(|at| (at, outline.prefix_hash(at))),
        }
    }

    /// Within an epoch everything before the tail stands where it stood, and so does what was marked.
    fn check(&self, json: &str, outline: &Outline, place: &str) {
        assert!(
            common(&self.json, json) >= self.settled,
            "{place}\n{}\n{json}",
            self.json
        );
        if let Some((segment, prefix)) = self.marked {
            assert_eq!(
                outline.prefix_hash(segment),
                prefix,
                "{place}: segment {segment}"
            );
        }
    }
}

fn hashes(outline: &Outline) -> Vec<ContentHash> {
    outline
        .segments
        .iter()
        .map(|segment| segment.hash)
        .collect()
}
