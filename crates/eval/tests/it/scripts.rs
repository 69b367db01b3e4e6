//! How each task is played rightly: of each turn the rounds, of each round the calls. A value in `{{braces}}` is one that the model has
//! to recall from what was said or found before.

/// Calls of one answer: tool, and arguments in JSON.
pub(crate) type Round = &'static [(&'static str, &'static str)];

pub(crate) fn script_of(task: &str) -> &'static [&'static [Round]] {
    match task {
        "desk-approval-code" => APPROVAL,
        "desk-claim-number" => CLAIM,
        "desk-corrected-address" => ADDRESS,
        "desk-separate-requests" => SEPARATE_REQUESTS,
        "code-rename" => RENAME,
        "code-distant-cause" => LIMIT,
        "code-conventions" => CONVENTIONS,
        "code-separate-changes" => SEPARATE_CHANGES,
        other => panic!("{other} has no script"),
    }
}

const APPROVAL: &[&[Round]] = &[
    &[&[("list_orders", r#"{"customer": "Ottoline Baptiste"}"#)]],
    &[],
    &[
        &[("get_order", r#"{"order": 1004}"#)],
        &[(
            "add_note",
            r#"{"order": 1004, "text": "customer called back. {{RKM}}"}"#,
        )],
    ],
    &[&[("list_orders", r#"{"customer": "Imre Halloran"}"#)]],
    &[
        &[("get_order", r#"{"order": 1011}"#)],
        &[("refund", r#"{"order": 1011, "amount": 35}"#)],
    ],
    &[&[("get_order", r#"{"order": 1019}"#)]],
    &[&[("get_order", r#"{"order": 1023}"#)]],
    &[&[
        ("get_order", r#"{"order": 1027}"#),
        ("get_order", r#"{"order": 1031}"#),
    ]],
    &[&[("list_orders", r#"{"customer": "Teun Vermaas"}"#)]],
    &[
        &[("get_order", r#"{"order": 1042}"#)],
        &[(
            "refund",
            r#"{"order": 1042, "amount": "164.50", "code": "{{AP-7741-Q}}"}"#,
        )],
    ],
    &[&[(
        "add_note",
        r#"{"order": 1042, "text": "refunded. {{RKM}}"}"#,
    )]],
];

const CLAIM: &[&[Round]] = &[
    &[&[("file_claim", r#"{"order": 1009}"#)]],
    &[&[("list_orders", r#"{"customer": "Ottoline Baptiste"}"#)]],
    &[&[("get_order", r#"{"order": 1017}"#)]],
    &[&[("get_order", r#"{"order": 1021}"#)]],
    &[&[
        ("get_order", r#"{"order": 1036}"#),
        ("get_order", r#"{"order": 1037}"#),
    ]],
    &[
        &[("get_order", r#"{"order": 1044}"#)],
        &[("refund", r#"{"order": 1044, "amount": 12.0}"#)],
    ],
    &[&[("list_orders", r#"{"customer": "Silvio Anker"}"#)]],
    &[&[("get_order", r#"{"order": 1050}"#)]],
    &[&[("get_order", r#"{"order": 1055}"#)]],
    &[&[(
        "update_claim",
        r#"{"claim": "{{CL-8063-V}}", "text": "carrier pays 42 dollars"}"#,
    )]],
];

const ADDRESS: &[&[Round]] = &[
    &[&[(
        "set_address",
        r#"{"order": 1013, "address": "12 Elm Street, Aalst"}"#,
    )]],
    &[&[(
        "set_address",
        r#"{"order": 1013, "address": "7 Quay Road, box 12, Temse"}"#,
    )]],
    &[&[("get_order", r#"{"order": 1016}"#)]],
    &[&[("get_order", r#"{"order": 1020}"#)]],
    &[&[("list_orders", r#"{"customer": "Imre Halloran"}"#)]],
    &[&[
        ("get_order", r#"{"order": 1024}"#),
        ("get_order", r#"{"order": 1025}"#),
    ]],
    &[&[("get_order", r#"{"order": 1029}"#)]],
    &[&[("get_order", r#"{"order": 1032}"#)]],
    &[&[
        (
            "set_address",
            r#"{"order": 1028, "address": "{{7 Quay Road, box 12, Temse}}"}"#,
        ),
        (
            "set_address",
            r#"{"order": 1048, "address": "{{7 Quay Road, box 12, Temse}}"}"#,
        ),
    ]],
];

const SEPARATE_REQUESTS: &[&[Round]] = &[
    &[
        &[("get_order", r#"{"order": 1002}"#)],
        &[("refund", r#"{"order": 1002, "amount": 10}"#)],
    ],
    &[&[("list_orders", r#"{"customer": "Silvio Anker"}"#)]],
    &[
        &[("get_order", r#"{"order": 1006}"#)],
        &[(
            "add_note",
            r#"{"order": 1006, "text": "{{left with the neighbour}}"}"#,
        )],
    ],
    &[&[("get_order", r#"{"order": 1010}"#)]],
    &[&[(
        "set_address",
        r#"{"order": 1014, "address": "{{3 Mill Street, Boom}}"}"#,
    )]],
    &[
        &[("get_order", r#"{"order": 1018}"#)],
        &[("refund", r#"{"order": 1018, "amount": 25.5}"#)],
    ],
    &[&[("list_orders", r#"{"customer": "Teun Vermaas"}"#)]],
    &[&[("get_order", r#"{"order": 1022}"#)]],
    &[
        &[("get_order", r#"{"order": 1026}"#)],
        &[("refund", r#"{"order": 1026, "amount": 5}"#)],
    ],
];

const RENAME: &[&[Round]] = &[
    &[&[("read_file", r#"{"path": "service/mod_18.py"}"#)]],
    &[
        &[
            ("read_file", r#"{"path": "service/mod_01.py"}"#),
            ("read_file", r#"{"path": "service/mod_02.py"}"#),
        ],
        &[
            (
                "replace",
                r#"{"path": "service/mod_01.py", "old": "fetch_rows", "new": "{{load_ledger_rows}}"}"#,
            ),
            (
                "replace",
                r#"{"path": "service/mod_02.py", "old": "fetch_rows", "new": "{{load_ledger_rows}}"}"#,
            ),
        ],
    ],
    &[&[("read_file", r#"{"path": "service/mod_16.py"}"#)]],
    &[&[("read_file", r#"{"path": "service/mod_17.py"}"#)]],
    &[&[("read_file", r#"{"path": "service/mod_18.py"}"#)]],
    &[&[("read_file", r#"{"path": "service/mod_19.py"}"#)]],
    &[&[("read_file", r#"{"path": "service/mod_20.py"}"#)]],
    &[&[("read_file", r#"{"path": "service/mod_16.py"}"#)]],
    &[
        &[("search", r#"{"text": "fetch_rows"}"#)],
        &[
            (
                "replace",
                r#"{"path": "service/ledger.py", "old": "fetch_rows", "new": "{{load_ledger_rows}}"}"#,
            ),
            (
                "replace",
                r#"{"path": "service/mod_03.py", "old": "fetch_rows", "new": "{{load_ledger_rows}}"}"#,
            ),
            (
                "replace",
                r#"{"path": "service/mod_04.py", "old": "fetch_rows", "new": "{{load_ledger_rows}}"}"#,
            ),
            (
                "replace",
                r#"{"path": "service/mod_05.py", "old": "fetch_rows", "new": "{{load_ledger_rows}}"}"#,
            ),
            (
                "replace",
                r#"{"path": "service/mod_06.py", "old": "fetch_rows", "new": "{{load_ledger_rows}}"}"#,
            ),
            (
                "replace",
                r#"{"path": "service/mod_07.py", "old": "fetch_rows", "new": "{{load_ledger_rows}}"}"#,
            ),
            (
                "replace",
                r#"{"path": "service/mod_08.py", "old": "fetch_rows", "new": "{{load_ledger_rows}}"}"#,
            ),
            (
                "replace",
                r#"{"path": "service/mod_09.py", "old": "fetch_rows", "new": "{{load_ledger_rows}}"}"#,
            ),
            (
                "replace",
                r#"{"path": "service/mod_10.py", "old": "fetch_rows", "new": "{{load_ledger_rows}}"}"#,
            ),
            (
                "replace",
                r#"{"path": "service/mod_11.py", "old": "fetch_rows", "new": "{{load_ledger_rows}}"}"#,
            ),
            (
                "replace",
                r#"{"path": "service/mod_12.py", "old": "fetch_rows", "new": "{{load_ledger_rows}}"}"#,
            ),
            (
                "replace",
                r#"{"path": "service/mod_13.py", "old": "fetch_rows", "new": "{{load_ledger_rows}}"}"#,
            ),
            (
                "replace",
                r#"{"path": "service/mod_14.py", "old": "fetch_rows", "new": "{{load_ledger_rows}}"}"#,
            ),
            (
                "replace",
                r#"{"path": "service/mod_15.py", "old": "fetch_rows", "new": "{{load_ledger_rows}}"}"#,
            ),
        ],
    ],
];

const LIMIT: &[&[Round]] = &[
    &[&[("read_file", r#"{"path": "service/mod_10.py"}"#)]],
    &[&[("read_file", r#"{"path": "service/mod_01.py"}"#)]],
    &[&[("read_file", r#"{"path": "service/mod_02.py"}"#)]],
    &[&[("read_file", r#"{"path": "service/mod_03.py"}"#)]],
    &[&[("read_file", r#"{"path": "service/mod_04.py"}"#)]],
    &[&[("read_file", r#"{"path": "service/mod_05.py"}"#)]],
    &[&[("read_file", r#"{"path": "service/mod_06.py"}"#)]],
    &[&[("read_file", r#"{"path": "service/mod_07.py"}"#)]],
    &[&[("read_file", r#"{"path": "service/mod_08.py"}"#)]],
    &[&[("read_file", r#"{"path": "service/mod_09.py"}"#)]],
    &[&[(
        "replace",
        r#"{"path": "service/upload.py", "old": "BATCH_ROWS = 25000", "new": "BATCH_ROWS = {{23917}}"}"#,
    )]],
];

const CONVENTIONS: &[&[Round]] = &[
    &[&[("read_file", r#"{"path": "service/mod_17.py"}"#)]],
    &[&[(
        "write_file",
        r#"{"path": "service/open_books.py", "content": "{{# owner: ledger-core}}\n\n\ndef open_books(day):\n    {{audit.note(}}day)\n    return day\n"}"#,
    )]],
    &[&[("read_file", r#"{"path": "service/mod_01.py"}"#)]],
    &[&[("read_file", r#"{"path": "service/mod_03.py"}"#)]],
    &[&[("read_file", r#"{"path": "service/mod_05.py"}"#)]],
    &[&[("read_file", r#"{"path": "service/mod_07.py"}"#)]],
    &[&[("read_file", r#"{"path": "service/mod_09.py"}"#)]],
    &[&[("read_file", r#"{"path": "service/mod_11.py"}"#)]],
    &[&[("read_file", r#"{"path": "service/mod_13.py"}"#)]],
    &[&[("read_file", r#"{"path": "service/mod_15.py"}"#)]],
    &[&[("read_file", r#"{"path": "service/mod_18.py"}"#)]],
    &[&[(
        "write_file",
        r#"{"path": "service/close_books.py", "content": "{{# owner: ledger-core}}\n\n\ndef close_books(day):\n    {{audit.note(}}day)\n    return day\n"}"#,
    )]],
];

const SEPARATE_CHANGES: &[&[Round]] = &[
    &[&[(
        "replace",
        r#"{"path": "service/upload.py", "old": "RETRIES = 3", "new": "RETRIES = 5"}"#,
    )]],
    &[&[("read_file", r#"{"path": "service/mod_02.py"}"#)]],
    &[&[("read_file", r#"{"path": "service/mod_04.py"}"#)]],
    &[&[(
        "write_file",
        r#"{"path": "service/version.py", "content": "{{VERSION = 4}}\n"}"#,
    )]],
    &[&[("read_file", r#"{"path": "service/mod_06.py"}"#)]],
    &[&[("read_file", r#"{"path": "service/mod_08.py"}"#)]],
    &[&[("read_file", r#"{"path": "service/mod_10.py"}"#)]],
    &[&[("read_file", r#"{"path": "service/mod_14.py"}"#)]],
    &[&[("read_file", r#"{"path": "service/mod_16.py"}"#)]],
    &[&[("read_file", r#"{"path": "service/mod_17.py"}"#)]],
    &[&[("read_file", r#"{"path": "service/mod_18.py"}"#)]],
    &[&[("read_file", r#"{"path": "service/mod_20.py"}"#)]],
    &[&[(
        "replace",
        r#"{"path": "service/mod_12.py", "old": "{{step_12_10}}", "new": "{{last_step}}"}"#,
    )]],
];
