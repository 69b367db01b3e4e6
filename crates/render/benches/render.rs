//! How fast fragments become text: MB of output a second, per format and size.
//!
//! Run with `cargo bench -p contexture-render [-- xml]`. Seven kinds of fragments, nested, as a
//! prompt has them; best of several runs. The goal is 300 MB/s for XML.

#![expect(clippy::print_stdout, reason = "the figures are the result")]

use std::hint::black_box;
use std::time::{Duration, Instant};

use contexture_ir::{
    Fragment, Guardrail, Policy, Principle, Workflow, fragment, glossary, guardrail, hint, policy,
    principle, role, term, workflow,
};
use contexture_render::{Format, Grouping, RenderError};

/// One unit of about 2.4 KB of XML, numbered so that no two are alike.
fn unit(number: usize) -> Fragment {
    let rule = |rule: &str| {
        policy(Policy {
            rule: rule.to_owned(),
            ..Policy::default()
        })
        .into()
    };
    fragment(
        format!("domain_{number}"),
        (
            role("You are the booking assistant of a regional airline and speak to its customers."),
            hint(format!(
                "Reservation {number} was made with a voucher; vouchers are not refunded in money,\n\
                 only as a new voucher of the same amount,\nvalid for one year from the day of issue."
            )),
            term(
                "no-show",
                "a passenger who neither cancels nor boards, & whose fare is forfeit",
            ),
            guardrail(Guardrail {
                rule: "Never change a booking before the customer has confirmed the change."
                    .to_owned(),
                reason: "A change cannot be taken back, and fares rise <quickly>.".to_owned(),
                action: "Read the new flights, dates and the difference in price, then ask."
                    .to_owned(),
            }),
            workflow(Workflow {
                task: "Cancel a reservation".to_owned(),
                steps: vec![
                    "Find the reservation by its number or by the customer's profile".to_owned(),
                    "Check when it was made: within 24 hours everything is refunded".to_owned(),
                    "Check the cabin: business may always be cancelled, economy only insured"
                        .to_owned(),
                    "Say what will be refunded, to which card, and how long that takes".to_owned(),
                    "Cancel, and send the confirmation".to_owned(),
                ],
                triggers: vec![
                    "the customer wants to cancel".to_owned(),
                    "a flight was cancelled".to_owned(),
                ],
                notes: "Compensation is offered only to those who ask for it.".to_owned(),
            }),
            glossary([
                ("PNR", "passenger name record"),
                ("OW", "one way"),
                ("RT", "round trip"),
            ]),
            principle(Principle {
                title: "The policy is the policy".to_owned(),
                description:
                    "What it does not allow is declined, kindly, with what is possible instead."
                        .to_owned(),
                policies: vec![
                    rule("Do not book for others than the customer."),
                    rule("Do not give advice on other airlines' fares."),
                    "Transfer to a person only when nothing here can help.".into(),
                ],
            }),
        ),
    )
}

/// The best time of a call, over half a second of calls at least.
fn best(mut call: impl FnMut() -> Result<usize, RenderError>) -> Result<Duration, RenderError> {
    let begin = Instant::now();
    let mut best = Duration::MAX;
    while begin.elapsed() < Duration::from_millis(500) {
        let start = Instant::now();
        black_box(call()?);
        best = best.min(start.elapsed());
    }
    Ok(best)
}

fn main() -> Result<(), RenderError> {
    let wanted = std::env::args()
        .skip(1)
        .find(|argument| !argument.starts_with('-'));
    println!(
        "{:<10}{:>12}{:>12}{:>12}",
        "format", "bytes", "time", "MB/s"
    );
    for format in Format::ALL {
        if wanted
            .as_deref()
            .is_some_and(|wanted| wanted != format.as_str())
        {
            continue;
        }
        let renderer = format.renderer(Grouping::Off);
        for units in [1, 35, 1200] {
            let fragments: Vec<Fragment> = (0..units).map(unit).collect();
            let bytes = renderer.render(&fragments)?.len();
            let time = best(|| {
                renderer
                    .render(black_box(&fragments))
                    .map(|text| text.len())
            })?;
            let rate = bytes as f64 / time.as_secs_f64() / 1e6;
            println!(
                "{:<10}{bytes:>12}{:>12}{rate:>12.0}",
                format.as_str(),
                format!("{time:.1?}")
            );
        }
    }
    Ok(())
}
