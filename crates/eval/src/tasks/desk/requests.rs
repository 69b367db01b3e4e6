//! The tasks of the desk.

use crate::tasks::desk::database::{APPROVAL_CODE, DESK_TOOLS, Desk, Refund};
use crate::tasks::{EvalTask, TaskKind};

const INSTRUCTIONS: &str = "You are the assistant of a clerk in the returns department of a mail-order house. Do what the \
    clerk asks with your tools, exactly and at once, and nothing else. Look up what you need before you ask. Answer in one or \
    two sentences.";

/// Returns the tasks of the desk.
pub(crate) fn desk_tasks() -> Vec<EvalTask> {
    let task = |name, summary, turns| EvalTask {
        name,
        kind: TaskKind::Desk,
        summary,
        needs_history: true,
        instructions: INSTRUCTIONS,
        turns,
        tools: DESK_TOOLS,
        world: || Box::new(Desk::new(check_separate)),
    };
    vec![
        EvalTask {
            world: || Box::new(Desk::new(check_approval)),
            ..task(
                "desk-approval-code",
                "a rule and a code said at the beginning are needed for a refund seven turns later",
                APPROVAL_TURNS,
            )
        },
        EvalTask {
            world: || Box::new(Desk::new(check_claim)),
            ..task(
                "desk-claim-number",
                "a number that a tool gave once is needed nine turns later",
                CLAIM_TURNS,
            )
        },
        EvalTask {
            world: || Box::new(Desk::new(check_address)),
            ..task(
                "desk-corrected-address",
                "an address that was corrected, and an order that must not be touched",
                ADDRESS_TURNS,
            )
        },
        EvalTask {
            needs_history: false,
            ..task(
                "desk-separate-requests",
                "nine requests, none of which needs another",
                SEPARATE_TURNS,
            )
        },
    ]
}

const APPROVAL_TURNS: &[&str] = &[
    // A policy that cuts keeps the first message: what must be remembered stands behind it.
    "Good morning. How many orders does Ottoline Baptiste have?",
    "Never refund more than 100 dollars without an approval code. The approval code for today is AP-7741-Q; give \
     it as `code` with such a refund. Always end the notes that you add with my initials, RKM.",
    "Look at order 1004, then add a note that says: customer called back.",
    "How many orders does Imre Halloran have?",
    "Look at order 1011, then refund 35 dollars on it.",
    "Where was order 1019 scanned last?",
    "And order 1023?",
    "Compare the weights of orders 1027 and 1031 in their first event.",
    "How many orders does Teun Vermaas have?",
    "Order 1042 arrived broken. Refund 164.50 dollars on it.",
    "Add a note to order 1042 that says: refunded.",
];

fn check_approval(desk: &Desk) -> Vec<String> {
    let mut faults = desk.forbidden.clone();
    let small = Refund {
        order: 1011,
        cents: 3_500,
        code: None,
    };
    let large = Refund {
        order: 1042,
        cents: 16_450,
        code: Some(APPROVAL_CODE.to_owned()),
    };
    // A code that was given with a small refund as well does no harm.
    let is_small = |refund: &Refund| (refund.order, refund.cents) == (small.order, small.cents);
    match desk.refunds.as_slice() {
        [first, second] if is_small(first) && *second == large => {}
        other => faults.push(format!(
            "expected refunds of 35.00 on 1011 and 164.50 with the code on 1042, found {other:?}"
        )),
    }
    for (number, order) in &desk.orders {
        let expected = usize::from(matches!(number, 1004 | 1042));
        if order.notes.len() != expected {
            faults.push(format!(
                "order {number} has {} notes, expected {expected}",
                order.notes.len()
            ));
        }
        for note in &order.notes {
            if !note.trim_end().trim_end_matches('.').ends_with("RKM") {
                faults.push(format!("the note of order {number} is not signed: {note}"));
            }
        }
    }
    faults
}

const CLAIM_TURNS: &[&str] = &[
    "Order 1009 came with a broken kettle. File a claim for it.",
    "Now something else: how many orders does Ottoline Baptiste have?",
    "Where was order 1017 scanned last?",
    "And order 1021?",
    "Compare the weights of orders 1036 and 1037 in their first event.",
    "Look at order 1044, then refund 12 dollars on it.",
    "How many orders does Silvio Anker have?",
    "Where was order 1050 scanned last?",
    "And order 1055?",
    "The carrier has answered about the broken kettle. Add this entry to its claim: carrier pays 42 dollars.",
];

fn check_claim(desk: &Desk) -> Vec<String> {
    let mut faults = desk.forbidden.clone();
    let filed: Vec<_> = desk.claims.values().collect();
    match filed.as_slice() {
        [(1009, entries)] => match entries.as_slice() {
            [entry] if entry.to_lowercase().contains("carrier pays 42 dollars") => {}
            other => faults.push(format!(
                "expected the carrier's answer as the only entry of the claim, found {other:?}"
            )),
        },
        other => faults.push(format!(
            "expected one claim, for order 1009, found {}",
            other.len()
        )),
    }
    let refunds: Vec<_> = desk
        .refunds
        .iter()
        .map(|refund| (refund.order, refund.cents))
        .collect();
    if refunds != [(1044, 1_200)] {
        faults.push(format!(
            "expected a refund of 12.00 on 1044, found {refunds:?}"
        ));
    }
    faults
}

/// The address that holds in the end.
const NEW_ADDRESS: &str = "7 Quay Road, box 12, Temse";

/// Orders that must go there.
const MOVED: [u32; 3] = [1013, 1028, 1048];

/// The order that must not be touched.
const PRESENT: u32 = 1033;

const ADDRESS_TURNS: &[&str] = &[
    "Maren Oduya is on the phone. Orders 1013, 1028 and 1048 are to go to 12 Elm Street, Aalst; begin with 1013 and leave the \
     others for later. Never change order 1033: it is a present and on its way already.",
    "She has moved, so forget Elm Street. All three go to 7 Quay Road, box 12, Temse. Correct 1013, the others come later.",
    "Meanwhile, where was order 1016 scanned last?",
    "And order 1020?",
    "How many orders does Imre Halloran have?",
    "Compare the weights of orders 1024 and 1025 in their first event.",
    "Where was order 1029 scanned last?",
    "And order 1032?",
    "Now send the other two orders of Maren Oduya to her new address as well.",
];

fn check_address(desk: &Desk) -> Vec<String> {
    let mut faults = desk.forbidden.clone();
    for number in MOVED {
        let address = desk.orders.get(&number).map(|order| order.address.as_str());
        // Spelt as it was said, but for capitals and blanks.
        let is_there =
            address.is_some_and(|address| address.trim().eq_ignore_ascii_case(NEW_ADDRESS));
        if !is_there {
            let address = address.unwrap_or_default();
            faults.push(format!(
                "order {number} goes to {address}, expected {NEW_ADDRESS}"
            ));
        }
    }
    for number in &desk.addressed {
        if !MOVED.contains(number) {
            let word = if *number == PRESENT {
                "the present"
            } else {
                "not asked for"
            };
            faults.push(format!("the address of order {number} was changed: {word}"));
        }
    }
    if !desk.refunds.is_empty() {
        faults.push("money was refunded that nobody asked for".to_owned());
    }
    faults
}

const SEPARATE_TURNS: &[&str] = &[
    "Look at order 1002, then refund 10 dollars on it.",
    "How many orders does Silvio Anker have?",
    "Look at order 1006, then add a note that says: left with the neighbour.",
    "Where was order 1010 scanned last?",
    "Set the address of order 1014 to 3 Mill Street, Boom.",
    "Look at order 1018, then refund 25.50 dollars on it.",
    "How many orders does Teun Vermaas have?",
    "Where was order 1022 scanned last?",
    "Look at order 1026, then refund 5 dollars on it.",
];

fn check_separate(desk: &Desk) -> Vec<String> {
    let mut faults = desk.forbidden.clone();
    let refunds: Vec<_> = desk
        .refunds
        .iter()
        .map(|refund| (refund.order, refund.cents))
        .collect();
    let expected = [(1002, 1_000), (1018, 2_550), (1026, 500)];
    if refunds != expected {
        faults.push(format!(
            "expected the refunds {expected:?}, found {refunds:?}"
        ));
    }
    let noted = |number: u32| desk.orders.get(&number).map(|order| order.notes.as_slice());
    match noted(1006) {
        Some([note]) if note.to_lowercase().contains("left with the neighbour") => {}
        other => faults.push(format!("expected one note on order 1006, found {other:?}")),
    }
    if desk.addressed != [1014] {
        faults.push(format!(
            "expected one new address, of order 1014, found {:?}",
            desk.addressed
        ));
    }
    let address = desk.orders.get(&1014).map(|order| order.address.as_str());
    if address.is_none_or(|address| !address.contains("3 Mill Street")) {
        faults.push("order 1014 does not go to 3 Mill Street".to_owned());
    }
    faults
}
