//! A thousand tools of twenty services, as a host with many MCP servers has them; for tests and benches.

use contexture_ir::Raw;
use contexture_tools::{Registry, Tool};

/// A service, what it is for, and the things it keeps.
const SERVICES: [(&str, &str, [&str; 10]); 20] = [
    (
        "jira",
        "issue tracking",
        [
            "issue",
            "sprint",
            "board",
            "epic",
            "comment",
            "worklog",
            "version",
            "component",
            "filter",
            "attachment",
        ],
    ),
    (
        "github",
        "source code hosting",
        [
            "repository",
            "pull_request",
            "branch",
            "release",
            "gist",
            "workflow_run",
            "label",
            "milestone",
            "webhook",
            "deploy_key",
        ],
    ),
    (
        "slack",
        "team chat",
        [
            "message",
            "channel",
            "reaction",
            "reminder",
            "user_group",
            "bookmark",
            "canvas",
            "file_upload",
            "scheduled_message",
            "huddle",
        ],
    ),
    (
        "gmail",
        "e-mail",
        [
            "email",
            "draft",
            "thread",
            "mail_label",
            "signature",
            "mail_filter",
            "vacation_reply",
            "forwarding_address",
            "alias",
            "mailbox_delegate",
        ],
    ),
    (
        "calendar",
        "appointments",
        [
            "event",
            "calendar",
            "invitation",
            "availability",
            "meeting_room",
            "recurring_event",
            "notification",
            "time_zone",
            "holiday",
            "working_hours",
        ],
    ),
    (
        "salesforce",
        "customer relations",
        [
            "lead",
            "opportunity",
            "account",
            "contact",
            "campaign",
            "quote",
            "contract",
            "price_book",
            "sales_case",
            "forecast",
        ],
    ),
    (
        "stripe",
        "payments",
        [
            "payment",
            "refund",
            "invoice",
            "subscription",
            "customer",
            "coupon",
            "payout",
            "dispute",
            "tax_rate",
            "checkout_session",
        ],
    ),
    (
        "shopify",
        "online shop",
        [
            "product",
            "order",
            "cart",
            "inventory_level",
            "discount_code",
            "collection",
            "fulfillment",
            "gift_card",
            "shipping_zone",
            "product_review",
        ],
    ),
    (
        "aws",
        "cloud computing",
        [
            "instance",
            "bucket",
            "queue",
            "lambda_function",
            "security_group",
            "load_balancer",
            "snapshot",
            "hosted_zone",
            "iam_role",
            "alarm",
        ],
    ),
    (
        "kubernetes",
        "container orchestration",
        [
            "pod",
            "deployment",
            "service",
            "config_map",
            "secret",
            "ingress",
            "namespace",
            "cron_job",
            "persistent_volume",
            "node_pool",
        ],
    ),
    (
        "postgres",
        "relational database",
        [
            "table",
            "index",
            "view",
            "role",
            "migration",
            "backup",
            "query_plan",
            "trigger",
            "replication_slot",
            "extension",
        ],
    ),
    (
        "notion",
        "notes and wikis",
        [
            "page",
            "database",
            "block",
            "workspace",
            "page_comment",
            "template",
            "property",
            "page_share",
            "synced_block",
            "favorite",
        ],
    ),
    (
        "drive",
        "file storage",
        [
            "file",
            "folder",
            "permission",
            "shared_drive",
            "revision",
            "shortcut",
            "file_comment",
            "export_job",
            "trash_item",
            "storage_quota",
        ],
    ),
    (
        "maps",
        "places and routes",
        [
            "route",
            "place",
            "geocode",
            "distance_matrix",
            "traffic_report",
            "elevation",
            "street_view",
            "saved_place",
            "transit_schedule",
            "place_photo",
        ],
    ),
    (
        "weather",
        "meteorology",
        [
            "forecast",
            "current_conditions",
            "storm_alert",
            "air_quality",
            "pollen_count",
            "tide_table",
            "uv_index",
            "radar_image",
            "weather_station",
            "climate_normal",
        ],
    ),
    (
        "hr",
        "people and payroll",
        [
            "employee",
            "leave_request",
            "payslip",
            "job_posting",
            "candidate",
            "interview",
            "performance_review",
            "timesheet",
            "benefit_plan",
            "onboarding_task",
        ],
    ),
    (
        "zendesk",
        "customer support",
        [
            "ticket",
            "macro",
            "help_article",
            "support_agent",
            "satisfaction_rating",
            "sla_policy",
            "ticket_form",
            "organization",
            "call_recording",
            "chat_transcript",
        ],
    ),
    (
        "grafana",
        "monitoring",
        [
            "dashboard",
            "panel",
            "alert_rule",
            "data_source",
            "annotation",
            "silence",
            "contact_point",
            "playlist",
            "incident",
            "log_query",
        ],
    ),
    (
        "spotify",
        "music",
        [
            "playlist_track",
            "album",
            "artist",
            "song",
            "podcast_episode",
            "audiobook",
            "listening_history",
            "device_playback",
            "concert",
            "lyrics",
        ],
    ),
    (
        "smart_home",
        "home automation",
        [
            "light",
            "thermostat",
            "door_lock",
            "camera",
            "scene",
            "speaker",
            "vacuum_robot",
            "garage_door",
            "energy_meter",
            "smoke_detector",
        ],
    ),
];

/// What can be done with each thing.
const VERBS: [(&str, &str, &str); 5] = [
    ("create", "Creates a new", "name"),
    ("get", "Returns the details of one", "id"),
    ("list", "Lists, newest first and filtered, every", "filter"),
    ("update", "Changes the fields of an existing", "id"),
    ("delete", "Removes for good a", "id"),
];

/// The thousand tools.
pub(crate) fn tools() -> impl Iterator<Item = Tool> {
    SERVICES.iter().flat_map(|(service, about, things)| {
        things.iter().flat_map(move |thing| {
            VERBS.iter().map(move |(verb, does, parameter)| {
                let name = format!("{service}_{verb}_{thing}");
                let spaced = thing.replace('_', " ");
                let text = format!("{does} {spaced} in {service} ({about}).");
                let schema = format!(
                    "{{\"type\":\"object\",\"properties\":{{\"{parameter}\":{{\"type\":\"string\",\
                     \"description\":\"The {spaced} to work on\"}},\"dry_run\":{{\"type\":\"boolean\"}}}}}}"
                );
                let schema = Raw::parse(schema).unwrap_or_else(|_| Raw::null());
                Tool::function(&name, &text, schema).with_tags([*service])
            })
        })
    })
}

/// A registry of the thousand.
pub(crate) fn registry() -> Registry {
    let mut registry = Registry::new();
    for tool in tools() {
        let added = registry.register(tool);
        debug_assert!(added.is_ok(), "{added:?}");
    }
    registry
}
