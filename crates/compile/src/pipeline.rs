//! The passes in their order.
//!
//! `select` (what models may read) · `host` (passes of the host's, here and before repair) · `cover` (compactions in the place of what they stand for) ·
//! `clear` (old content as placeholders) · `repair` (what providers accept) · `lower` (blocks in the
//! target's format, weighed) · `budget` (who gets how much) · `place` (bands in order) · `verify` (the
//! post-condition).
//!
//! `repair` and `lower` come before `budget`, so that what is budgeted is what is sent, and an item's
//! bytes do not depend on where the history is cut. What is cleared is the plan's; only where the
//! history has grown too large is the frontier moved, and then the passes begin again, once.

use contexture_ir::ContentHash;
use contexture_wire::{Format, Renames};

use crate::assemble::{assemble, head};
use crate::cache::marks::Kept;
use crate::cache::worth::Worth;
use crate::cancel::Cancel;
use crate::clearing::{Clearing, decide};
use crate::contribution::{Band, Contribution};
use crate::count::Tokens;
use crate::cut::Cut;
use crate::digest::gathered;
use crate::frame::Frame;
use crate::front::Front;
use crate::marking::mark;
use crate::memo::Memo;
use crate::passes::budget::{Claim, HistoryClaim, grants, required_history};
use crate::passes::clear::Size;
use crate::passes::lower::{Piece, Press};
use crate::passes::place::{Placed, Slot, arrange, bridges, fit, place, units};
use crate::passes::verify::{Sealed, is_sound, verify};
use crate::payload::Payload;
use crate::plan::{Advice, ClearFrontier, Latched, Plan, Prefix};
use crate::policy::Window;
use crate::previewing::{Previews, change};
use crate::reading::{offers, read_tool};
use crate::refusal::Refusal;
use crate::report::account::{report, required};
use crate::report::document::Report;
use crate::report::ledger::Ledger;
use crate::request::{CompileInput, CompileRequest};
use crate::scratch::Scratch;
use crate::stakes::{Around, Before, Stakes};
use crate::treatment::Treatment;

/// What a compile gives.
#[derive(Clone, Debug)]
pub struct Compiled {
    /// The provider's request.
    pub payload: Payload,
    /// What was sent, what was not, and why.
    pub report: Report,
    /// The plan for the next compile on this path.
    pub plan: Plan,
    /// What the host may want to do before the next call.
    pub advice: Advice,
    /// The tools whose names the target refuses: its answer calls them by other names.
    pub renames: Renames,
}

/// Compiles a request. Performs nothing; the same input gives the same bytes with any scratch.
///
/// # Errors
/// A [`Refusal`] where no payload can satisfy the post-condition.
pub fn compile(input: &CompileInput<'_>, scratch: &mut Scratch) -> Result<Compiled, Refusal> {
    let request = input.request;
    let limit = limit(request)?;
    let press = Press::new(request, input.counter, &mut scratch.memo);
    let target = format!("{}/{}/{limit}", request.dialect.format, request.model);
    let mut treatment = Treatment::latched(input, &target);
    let mut step = Step::First;
    let mut begun = None;
    loop {
        Cancel::check(input.cancel)?;
        // What a pass of the host's makes of a longer path cannot be told from a shorter one's.
        let own = input.passes.is_empty();
        let kept = scratch.take_front(|front| own && front.fits(&press, &treatment, input.path));
        let kept = kept.and_then(|front| front.extended(input.path, &press, &mut scratch.memo));
        let front = match kept {
            Some(front) => front,
            None => Front::build(input, &treatment, &press, &mut scratch.memo)?,
        };
        let call = Call {
            input,
            limit,
            target: &target,
            front: &front,
            treatment: &treatment,
            step,
            begun,
            press: &press,
        };
        let outcome = back(&call, &mut scratch.memo);
        if own {
            scratch.keep_front(front);
        }
        match outcome {
            Ok(Outcome::Compiled(compiled)) => return Ok(*compiled),
            Ok(Outcome::Preview(previews)) => {
                treatment.begin_previews();
                begun = Some(previews);
            }
            Ok(Outcome::Clear(clearing)) => {
                let before = treatment.frontier;
                treatment.frontier = clearing.frontier.unwrap_or(before);
                step = Step::Cleared(clearing, before);
            }
            // Less can need more: without an old thought two rounds may be one.
            Err(refusal) => match (refusal, step) {
                (Refusal::DoesNotFit { .. }, Step::Cleared(_, before)) => {
                    treatment.frontier = before;
                    step = Step::AsBefore;
                }
                // The newest output may fit as a preview.
                (Refusal::DoesNotFit { .. }, Step::First) if treatment.pending().is_some() => {
                    treatment.begin_previews();
                }
                (refusal, _) => return Err(refusal),
            },
        }
    }
}

/// One way through the back half.
struct Call<'a> {
    input: &'a CompileInput<'a>,
    limit: u64,
    target: &'a str,
    front: &'a Front,
    treatment: &'a Treatment,
    step: Step,
    /// Previews, if they begin with this compile.
    begun: Option<Previews>,
    press: &'a Press<'a>,
}

impl Call<'_> {
    /// What is at stake with the history as the plan shows it.
    fn stakes<'s>(
        &'s self,
        frame: &Frame,
        slots: &[Slot<'_>],
        placed: &[Placed],
        latched: &'s Cut,
    ) -> Stakes<'s> {
        let around = Around::of(frame, slots, placed);
        let before = self.input.plan.prefix.as_ref();
        let same_prefix = before
            .is_some_and(|prefix| prefix.target == self.target && prefix.tools == frame.tools_hash);
        let before = Before {
            same_prefix,
            owes: self.owes(),
        };
        Stakes::of(
            self.input,
            around,
            latched.pieces(&self.front.history),
            before,
        )
    }

    /// Whether previews begin now; `None` if there is nothing to preview, or all of it is already.
    fn previews(
        &self,
        frame: &Frame,
        slots: &[Slot<'_>],
        latched: &Cut,
        size: Size,
        stakes: &Stakes<'_>,
        memo: &mut Memo,
    ) -> Option<Previews> {
        let policy = self.treatment.pending()?;
        let mut change = change(policy, &self.front.history, latched, self.press, memo)?;
        let request = self.input.request;
        if !offers(&request.tools) {
            let mut request = request.clone();
            request.tools.push(read_tool());
            let with = Frame::weigh(&request, slots, self.press, memo);
            change.tools = Some(with.tools + with.framing - frame.tools - frame.framing);
        }
        Some(Previews::decide(policy, size, stakes, change))
    }

    /// For how many calls the last rewriting for money's sake has not paid back yet.
    fn owes(&self) -> u64 {
        let before = match &self.input.plan.prefix {
            Some(prefix) if prefix.target == self.target => self.input.plan.owes,
            _ => 0,
        };
        self.begun
            .and_then(|previews| previews.owes)
            .unwrap_or(before)
    }

    /// The same, after this call.
    fn owes_then(&self) -> u64 {
        let cleared = match self.step {
            Step::Cleared(clearing, _) => clearing.owes,
            Step::First | Step::AsBefore => None,
        };
        cleared.unwrap_or(self.owes()).saturating_sub(1)
    }
}

/// What the back half comes to.
enum Outcome {
    Compiled(Box<Compiled>),
    /// Long outputs are to be previewed from now on.
    Preview(Previews),
    /// The history is too large, and old content can be cleared up to here.
    Clear(Clearing),
}

/// Whether this compile has moved the frontier of what is cleared.
#[derive(Clone, Copy, Debug)]
enum Step {
    First,
    /// It has, from here.
    Cleared(Clearing, ClearFrontier),
    /// It had, and that did not fit.
    AsBefore,
}

/// The back half: from weighed rounds to the payload.
fn back(call: &Call<'_>, memo: &mut Memo) -> Result<Outcome, Refusal> {
    let Call {
        input,
        limit,
        front,
        press,
        ..
    } = *call;
    let request = input.request;
    let mut slots = arrange(input.contributions);
    let mut whole: Vec<Placed> = slots
        .iter()
        .map(|slot| place(slot, units(&slot.contribution.content), press, memo))
        .collect::<Result<_, _>>()?;
    let bridges = bridges(&front.history, request, &slots, &whole);
    for slot in bridges.iter().map(Slot::in_its_band) {
        let at = match slot.band {
            Band::Anchor => slots.partition_point(|other| other.band < Band::Anchor),
            _ => slots.len(),
        };
        whole.insert(at, place(&slot, 1, press, memo)?);
        slots.insert(at, slot);
    }
    let frame = Frame::weigh(request, &slots, press, memo);
    Cancel::check(input.cancel)?;

    let latched = Cut::latched(input, call.target, &front.history, press, memo);
    let natural: Vec<u64> = whole.iter().map(|placed| placed.text.high).collect();
    let (placed, cut, worth) = match budget(call, &slots, &frame, whole, latched, memo)? {
        Budgeted::Cut(placed, cut, worth) => (placed, cut, worth),
        Budgeted::Preview(previews) => return Ok(Outcome::Preview(previews)),
        Budgeted::Clear(clearing) => return Ok(Outcome::Clear(clearing)),
    };
    Cancel::check(input.cancel)?;

    let (before, mut owners) = band_pieces(&slots, &placed, |band| band <= Band::Anchor);
    let middle = cut.pieces(&front.history);
    let (after, theirs) = band_pieces(&slots, &placed, |band| band > Band::Anchor);
    owners.extend(std::iter::repeat_n(None, middle.len()));
    owners.extend(theirs);
    let envelope = frame.envelope(request, &slots, &placed)?;
    let pieces: Vec<&Piece> = [before.as_slice(), &middle, &after].concat();
    let head = head(request, &frame, &slots, &placed);
    let history = &front.history;
    let mut payload = assemble(head, &envelope, &before, (&cut, history), &after);
    let mut marked = mark(&mut payload, input, call.target);
    marked.cache.rewriting = worth;

    let prefix = Prefix {
        target: call.target.to_owned(),
        tools: frame.tools_hash,
        system: Frame::system_hash(&placed),
        anchor: ContentHash::of(&gathered(before.iter().map(|piece| &piece.key))),
    };
    let view = decided(call, &cut, marked.kept);
    Cancel::check(input.cancel)?;
    let (plan, epoch) = input
        .plan
        .next(prefix, middle.iter().map(|piece| &piece.key), view);
    let counted = counted(call, &slots, &placed, &middle, memo)?;
    let ledger = Ledger {
        input,
        limit,
        front,
        slots: &slots,
        placed: &placed,
        natural: &natural,
        trimmed: cut.trimmed(history),
        cut: &cut,
        sent: &middle,
        frame: &frame,
        envelope: &envelope,
        counted,
    };
    let report = report(&ledger, epoch, marked.cache, &payload);
    let omitted: usize = report.omitted.iter().map(|omitted| omitted.items).sum();
    if report.totals.items <= omitted && !says_more(&slots, &placed, &bridges) {
        let format = request.dialect.format;
        return Err(Refusal::NothingToSay { format });
    }
    verify(&Sealed {
        request,
        limit,
        tokens: report.totals.tokens,
        envelope: &envelope,
        pieces: &pieces,
        owners: &owners,
        sound: front.sound && cut.kept.iter().all(|kept| is_sound(&kept.pieces)),
        pinned: &ledger.pinned(),
    })?;
    Ok(Outcome::Compiled(Box::new(Compiled {
        payload,
        advice: Advice {
            compact: ledger.compact_advice(),
            cache: marked.advice,
        },
        report,
        plan,
        renames: Renames::of(request.dialect.format, &request.tools),
    })))
}

/// What this compile decided, for the plan.
fn decided(call: &Call<'_>, cut: &Cut, kept: Vec<Kept>) -> Latched {
    Latched {
        kept,
        covers: call.treatment.covers_hash(),
        clear: call.treatment.latched_frontier(),
        cleared: matches!(call.step, Step::Cleared(..)),
        trim: cut.frontier(&call.front.history, call.input),
        trimmed: cut.moved,
        previews: call.treatment.previews(),
        owes: call.owes_then(),
        narrowing: call.input.request.narrowing,
        tools: call
            .input
            .request
            .offer
            .as_ref()
            .map(|offer| offer.latched.clone()),
    }
}

/// Whether contributions say something among the messages: placeholders alone are no request, however
/// legal.
fn says_more(slots: &[Slot<'_>], placed: &[Placed], bridges: &[Contribution]) -> bool {
    slots.iter().zip(placed).any(|(slot, placed)| {
        let mut bridges = bridges.iter();
        let bridge = bridges.any(|one| std::ptr::eq(one, slot.contribution));
        !bridge && placed.pieces.iter().any(|piece| piece.elements() > 0)
    })
}

/// What was counted of all that is sent, before it was narrowed; nothing where it was not.
fn counted(
    call: &Call<'_>,
    slots: &[Slot<'_>],
    placed: &[Placed],
    history: &[&Piece],
    memo: &mut Memo,
) -> Result<Option<Tokens>, Refusal> {
    if call.input.request.narrowing.is_none() {
        return Ok(None);
    }
    let press = call.press.plain();
    let frame = Frame::weigh(call.input.request, slots, &press, memo);
    let mut all = frame.tools + frame.framing;
    let sent = slots.iter().zip(placed);
    for (slot, placed) in sent.filter(|(_, placed)| placed.units > 0) {
        let plain = place(slot, placed.units, &press, memo)?;
        all += plain.text + plain.framing;
    }
    Ok(Some(all + history.iter().map(|piece| piece.counted).sum()))
}

/// What budgeting comes to.
enum Budgeted {
    Cut(Vec<Placed>, Cut, Option<Worth>),
    Preview(Previews),
    Clear(Clearing),
}

/// Fits the contributions into their grants and the history into what they leave.
fn budget(
    call: &Call<'_>,
    slots: &[Slot<'_>],
    frame: &Frame,
    whole: Vec<Placed>,
    latched: Cut,
    memo: &mut Memo,
) -> Result<Budgeted, Refusal> {
    let (request, history) = (call.input.request, &call.front.history);
    let rounds: Vec<u64> = history.rounds.iter().map(|round| round.weight).collect();
    let kept = history.kept().into_iter();
    let singles: Vec<(usize, u64)> = kept.map(|kept| (kept.round, kept.weight())).collect();
    let policy = &request.history;
    let mut claim = HistoryClaim {
        rounds: &rounds,
        last: history.last,
        singles: &singles,
        frontier: latched.round,
        latched: latched.kept_weight(),
        low_water: policy.trim.low_water,
        floor: 0,
        to_the_mark: false,
        window: None,
    };
    let claims: Vec<Claim> = slots.iter().zip(&whole).map(claim_of).collect();
    let granted = grants(
        call.limit,
        frame.weight(),
        &claims,
        required_history(&claim),
    )
    .map_err(|_| {
        let segments = required(history, slots, &whole, frame);
        Refusal::DoesNotFit {
            needed: segments.iter().map(|segment| segment.tokens).sum(),
            allowed: call.limit,
            window: request.window,
            reserve: request.reserve,
            segments,
        }
    })?;
    let mut placed: Vec<Placed> = Vec::with_capacity(whole.len());
    for ((slot, whole), grant) in slots.iter().zip(whole).zip(granted) {
        placed.push(fit(slot, whole, grant, call.press, memo)?);
    }
    let taken: u64 = placed.iter().map(Placed::weight).sum();
    let mut room = call
        .limit
        .saturating_sub(frame.weight())
        .saturating_sub(taken);
    match policy.window {
        Window::Whole => {}
        Window::Turns(turns) => {
            claim.window = latched.window(turns, history, claim.low_water);
        }
        Window::Tokens(tokens) => room = room.min(tokens.max(required_history(&claim))),
    }
    let stakes = call.stakes(frame, slots, &placed, &latched);
    claim.floor = stakes.floor(room);
    let size = Size {
        history: claim.weight_now(),
        room,
        floor: claim.floor,
    };
    let worth = match call.step {
        Step::First => {
            let previews = call.previews(frame, slots, &latched, size, &stakes, memo);
            if let Some(previews) = previews.filter(|previews| previews.begin) {
                return Ok(Budgeted::Preview(previews));
            }
            let current = &call.treatment.frontier;
            let clearing = decide(
                call.input, history, current, size, &stakes, call.press, memo,
            );
            if clearing.frontier.is_some() {
                return Ok(Budgeted::Clear(clearing));
            }
            let previews = call.begun.or(previews);
            clearing
                .worth
                .or(previews.and_then(|previews| previews.worth))
        }
        Step::Cleared(clearing, _) => clearing.worth,
        Step::AsBefore => None,
    };
    // Where clearing was needed and did not suffice, the history is cut in the same step, down to the
    // mark: else each of the next calls would clear a little more.
    claim.to_the_mark = matches!(call.step, Step::Cleared(clearing, _) if clearing.forced);
    let cut = latched.within(room, &claim, history);
    Ok(Budgeted::Cut(placed, cut, worth))
}

fn claim_of((slot, whole): (&Slot<'_>, &Placed)) -> Claim {
    let budget = &slot.contribution.budget;
    Claim {
        required: slot.contribution.is_required(),
        natural: whole.weight(),
        min: budget.min,
        max: budget.max.unwrap_or(u64::MAX),
        share: budget.share,
    }
}

fn limit(request: &CompileRequest) -> Result<u64, Refusal> {
    let format = request.dialect.format;
    if !Format::PROVIDERS.contains(&format) {
        return Err(Refusal::UnsupportedTarget { format });
    }
    let limit = request.window.saturating_sub(request.reserve);
    if limit == 0 {
        return Err(Refusal::WindowTooSmall {
            window: request.window,
            reserve: request.reserve,
        });
    }
    Ok(limit)
}

/// The pieces of the contributions to some bands, and whose they are.
fn band_pieces<'a>(
    slots: &[Slot<'a>],
    placed: &'a [Placed],
    keep: impl Fn(Band) -> bool,
) -> (Vec<&'a Piece>, Vec<Option<&'a str>>) {
    slots
        .iter()
        .zip(placed)
        .filter(|(slot, _)| keep(slot.band))
        .flat_map(|(slot, placed)| {
            let owner = Some(slot.contribution.source.as_str());
            placed.pieces.iter().map(move |piece| (piece, owner))
        })
        .unzip()
}
