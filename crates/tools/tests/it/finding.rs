//! How well selection finds the tools that a task needs, measured against the rule of other systems: a tool is kept
//! if the task contains its name or one of its tags.
//!
//! Two sets. The thousand tools with tasks as people put them, each with the tool it needs; and the tools of tau-bench's
//! airline among the thousand, with its fifty tasks and the tools that solve them.

use std::collections::{BTreeMap, BTreeSet};

use contexture_tools::{IndexedUnit, Registry, Tool};

use crate::fixtures::with_parameters;
use crate::large_registry;

/// What people ask for, and the tool that does it.
const TASKS: &[(&str, &str)] = &[
    (
        "File a bug in Jira: the login page crashes on Safari",
        "jira_create_issue",
    ),
    (
        "what's left in the current sprint on our jira?",
        "jira_list_sprint",
    ),
    (
        "log four hours of work on the migration story in jira",
        "jira_create_worklog",
    ),
    (
        "Open a PR on GitHub for the fix/timeouts branch",
        "github_create_pull_request",
    ),
    (
        "which workflow runs failed on github today?",
        "github_list_workflow_run",
    ),
    ("cut a new GitHub release 2.4.0", "github_create_release"),
    (
        "get rid of the old deploy key on github",
        "github_delete_deploy_key",
    ),
    (
        "Remind me in slack tomorrow at nine to call the bank",
        "slack_create_reminder",
    ),
    (
        "post a message to the #general channel on Slack",
        "slack_create_message",
    ),
    (
        "write a draft email to Anna about the offsite",
        "gmail_create_draft",
    ),
    (
        "turn on a vacation reply in gmail while I'm away",
        "gmail_create_vacation_reply",
    ),
    (
        "Show me my calendar events for next week",
        "calendar_list_event",
    ),
    (
        "book a meeting room for Thursday in the calendar",
        "calendar_create_meeting_room",
    ),
    (
        "Move my recurring standup event in the calendar to 10 am",
        "calendar_update_recurring_event",
    ),
    (
        "add Jane Doe from Acme as a new lead in Salesforce",
        "salesforce_create_lead",
    ),
    (
        "change the amount of the Globex opportunity in salesforce",
        "salesforce_update_opportunity",
    ),
    (
        "refund the customer's payment in Stripe",
        "stripe_create_refund",
    ),
    ("list the unpaid invoices in stripe", "stripe_list_invoice"),
    (
        "cancel and remove the Stripe subscription of Bob",
        "stripe_delete_subscription",
    ),
    (
        "create a discount code SUMMER for our Shopify store",
        "shopify_create_discount_code",
    ),
    (
        "where is my order? look it up in shopify",
        "shopify_get_order",
    ),
    (
        "set the inventory level of the blue shirt to 40 in Shopify",
        "shopify_update_inventory_level",
    ),
    ("spin up a new AWS instance", "aws_create_instance"),
    ("which S3 buckets do we have on AWS?", "aws_list_bucket"),
    (
        "delete the unused load balancer in aws",
        "aws_delete_load_balancer",
    ),
    (
        "list the pods in kubernetes that keep crashing",
        "kubernetes_list_pod",
    ),
    (
        "scale the web deployment in kubernetes to five replicas",
        "kubernetes_update_deployment",
    ),
    (
        "rotate the database secret in Kubernetes",
        "kubernetes_update_secret",
    ),
    (
        "add an index on orders.customer_id in postgres",
        "postgres_create_index",
    ),
    (
        "show me the query plan in postgres",
        "postgres_get_query_plan",
    ),
    (
        "take a postgres backup before we go on",
        "postgres_create_backup",
    ),
    (
        "make a Notion page with the meeting notes",
        "notion_create_page",
    ),
    (
        "share the folder in drive with the team",
        "drive_list_folder",
    ),
    (
        "who has permission to see this drive file?",
        "drive_list_permission",
    ),
    (
        "restore an earlier revision of the document on drive",
        "drive_get_revision",
    ),
    (
        "how do I get from the station to the museum? find a route on the map",
        "maps_get_route",
    ),
    (
        "is there a lot of traffic on the A7? maps",
        "maps_get_traffic_report",
    ),
    (
        "Will it rain in Oslo tomorrow? weather forecast please",
        "weather_get_forecast",
    ),
    (
        "How is the air quality in Delhi right now?",
        "weather_get_air_quality",
    ),
    ("any storm alerts for Florida?", "weather_list_storm_alert"),
    (
        "I want to request two weeks of leave in July",
        "hr_create_leave_request",
    ),
    ("show me my last payslip", "hr_get_payslip"),
    (
        "schedule an interview with the candidate on Monday",
        "hr_create_interview",
    ),
    (
        "create a zendesk ticket for the angry customer",
        "zendesk_create_ticket",
    ),
    (
        "update the help article on password resets",
        "zendesk_update_help_article",
    ),
    (
        "silence the disk alerts in Grafana for two hours",
        "grafana_create_silence",
    ),
    (
        "build a dashboard in grafana for the latency numbers",
        "grafana_create_dashboard",
    ),
    (
        "add this song to my spotify playlist",
        "spotify_create_playlist_track",
    ),
    ("what are the lyrics of this song?", "spotify_get_lyrics"),
    (
        "Turn off the light in the kitchen",
        "smart_home_update_light",
    ),
    (
        "set the thermostat to 21 degrees",
        "smart_home_update_thermostat",
    ),
    ("lock the front door", "smart_home_update_door_lock"),
    (
        "did the smoke detector go off?",
        "smart_home_get_smoke_detector",
    ),
];

/// The tools of tau-bench's airline, by the names and parameters of its recorded calls; the descriptions are ours.
const AIRLINE: &[(&str, &str, &[&str])] = &[
    (
        "book_reservation",
        "Books flights for a user and charges the payment methods.",
        &[
            "user_id",
            "origin",
            "destination",
            "flight_type",
            "cabin",
            "flights",
            "passengers",
            "payment_methods",
            "total_baggages",
            "nonfree_baggages",
            "insurance",
        ],
    ),
    (
        "calculate",
        "Computes an arithmetic expression.",
        &["expression"],
    ),
    (
        "cancel_reservation",
        "Cancels a whole reservation and refunds it.",
        &["reservation_id"],
    ),
    (
        "get_reservation_details",
        "Returns a reservation: flights, passengers, payments.",
        &["reservation_id"],
    ),
    (
        "get_user_details",
        "Returns a user's profile: address, payment methods, reservations.",
        &["user_id"],
    ),
    (
        "list_all_airports",
        "Lists all airports and their cities.",
        &[],
    ),
    (
        "search_direct_flight",
        "Finds direct flights between two cities on a date.",
        &["origin", "destination", "date"],
    ),
    (
        "search_onestop_flight",
        "Finds flights with one stop between two cities on a date.",
        &["origin", "destination", "date"],
    ),
    (
        "send_certificate",
        "Sends a user a travel certificate as compensation.",
        &["user_id", "amount"],
    ),
    ("think", "Notes a thought; changes nothing.", &["thought"]),
    (
        "transfer_to_human_agents",
        "Hands the user over to a human agent.",
        &["summary"],
    ),
    (
        "update_reservation_baggages",
        "Changes the number of checked bags of a reservation.",
        &[
            "reservation_id",
            "total_baggages",
            "nonfree_baggages",
            "payment_id",
        ],
    ),
    (
        "update_reservation_flights",
        "Changes the flights or the cabin of a reservation.",
        &["reservation_id", "cabin", "flights", "payment_id"],
    ),
    (
        "update_reservation_passengers",
        "Changes the passengers of a reservation.",
        &["reservation_id", "passengers"],
    ),
];

/// How many of a task's tools are among the `limit` best, of how many.
fn found(registry: &Registry, task: &str, needed: &BTreeSet<String>, limit: usize) -> usize {
    let best = registry.index().rank_units(task, limit);
    best.iter()
        .filter(|ranked| matches!(ranked.unit, IndexedUnit::Tool(id) if needed.contains(id.name.as_str())))
        .count()
}

/// The other systems' rule: what the task contains is kept.
fn contained(registry: &Registry, task: &str) -> BTreeSet<String> {
    let task = task.to_lowercase();
    let keeps = |tool: &&Tool| {
        let tags = &tool.tags;
        task.contains(&tool.definition.name().to_lowercase())
            || tags.iter().any(|tag| task.contains(&tag.to_lowercase()))
    };
    let kept = registry.tools().filter(keeps);
    kept.map(|tool| tool.definition.name().to_owned()).collect()
}

#[derive(Debug, Default, PartialEq)]
struct Score {
    needed: usize,
    /// Found among the best 1, 5, 10 and 20.
    among: [usize; 4],
    contained: usize,
    /// How many tools the other rule keeps, over all tasks.
    kept: usize,
}

fn score(registry: &Registry, tasks: &[(String, BTreeSet<String>)]) -> Score {
    let mut score = Score::default();
    for (task, needed) in tasks {
        score.needed += needed.len();
        for (slot, limit) in score.among.iter_mut().zip([1, 5, 10, 20]) {
            *slot += found(registry, task, needed, limit);
        }
        let kept = contained(registry, task);
        score.kept += kept.len();
        score.contained += kept.intersection(needed).count();
    }
    score
}

#[test]
fn people_are_understood() {
    let registry = large_registry::registry();
    let tasks: Vec<(String, BTreeSet<String>)> = TASKS
        .iter()
        .map(|(task, tool)| ((*task).to_owned(), BTreeSet::from([(*tool).to_owned()])))
        .collect();
    for (_, tool) in TASKS {
        let id = contexture_tools::ToolId::flat(tool);
        assert!(registry.get(&id).is_some(), "{tool}");
    }
    // The figures stand in docs/design/0007-choosing-tools.md.
    let expected = Score {
        needed: 53,
        among: [19, 47, 50, 50],
        contained: 40,
        kept: 2_000,
    };
    assert_eq!(score(&registry, &tasks), expected);
}

#[test]
fn an_airline_is_found_among_a_thousand() {
    let mut registry = large_registry::registry();
    for (name, text, parameters) in AIRLINE {
        let tool = with_parameters(name, text, parameters).with_tags(["airline"]);
        registry.register(tool).unwrap();
    }
    let sessions: serde_json::Value =
        serde_json::from_str(&contexture_testdata::tau_bench()).unwrap();
    let mut tasks: BTreeMap<u64, (String, BTreeSet<String>)> = BTreeMap::new();
    for session in sessions.as_array().unwrap() {
        let task = &session["info"]["task"];
        let actions = task["actions"].as_array().unwrap();
        let needed = actions
            .iter()
            .map(|action| action["name"].as_str().unwrap().to_owned());
        let text = task["instruction"].as_str().unwrap().to_owned();
        tasks.insert(
            session["task_id"].as_u64().unwrap(),
            (text, needed.collect()),
        );
    }
    let tasks: Vec<_> = tasks.into_values().collect();
    assert_eq!(tasks.len(), 50);
    // The figures stand in docs/design/0007-choosing-tools.md.
    let expected = Score {
        needed: 99,
        among: [13, 43, 63, 73],
        contained: 11,
        kept: 294,
    };
    assert_eq!(score(&registry, &tasks), expected);
}
