//! `boxoffice diff`: planted changes of the contract are classified by their effect on clients.

use std::process::Command;

use boxoffice_openapi::diff::Impact::{Breaking, NonBreaking, Prose};
use boxoffice_openapi::diff::{Change, Impact, diff, to_markdown};
use serde_json::{Value, json};

use crate::support::CONTRACT;

/// A change of the node at a JSON pointer.
enum Edit {
    /// Sets a member.
    Set(&'static str, Value),
    /// Removes a member.
    Remove(&'static str),
    /// Renames a member.
    Rename(&'static str, &'static str),
    /// Appends to a list.
    Push(Value),
    /// Removes the last item of a list.
    Pop,
}

use Edit::{Pop, Push, Remove, Rename, Set};

/// Applies an edit, and panics if it changes nothing.
fn edited(pointer: &str, edit: &Edit) -> Value {
    let mut document = CONTRACT.document.clone();
    let node = document.pointer_mut(pointer).unwrap_or_else(|| panic!("{pointer}"));
    match edit {
        Set(name, value) => node[*name] = value.clone(),
        Remove(name) => drop(node.as_object_mut().unwrap().remove(*name).unwrap()),
        Rename(old, new) => {
            let value = node.as_object_mut().unwrap().remove(*old).unwrap();
            node[*new] = value;
        }
        Push(value) => node.as_array_mut().unwrap().push(value.clone()),
        Pop => drop(node.as_array_mut().unwrap().pop().unwrap()),
    }
    assert_ne!(document, CONTRACT.document, "{pointer}");
    document
}

const TIME: &str = "/paths/~1time/get";
const HOSTS: &str = "/paths/~1hosts/post";
const SCHEMAS: &str = "/components/schemas";

/// The planted changes: the node, the edit, the impact, and the expected place of the change.
fn planted() -> Vec<(String, Edit, Impact, &'static str)> {
    let schema = |rest: &str| format!("{SCHEMAS}{rest}");
    let parameter = |name: &str| json!({ "name": name, "in": "query", "schema": { "type": "string" } });
    let required = json!({ "name": "area", "in": "query", "required": true, "schema": { "type": "string" } });
    let text = || json!({ "type": "string" });
    vec![
        // Operations.
        ("/paths".to_owned(), Remove("/time"), Breaking, "GET /time"),
        ("/paths".to_owned(), Set("/ping", CONTRACT.document["paths"]["/time"].clone()), NonBreaking, "GET /ping"),
        ("/paths".to_owned(), Rename("/regions/{region}", "/regions/{area}"), Breaking, "/regions/{area}"),
        (TIME.to_owned(), Set("operationId", json!("clock_get")), Breaking, "GET /time"),
        (TIME.to_owned(), Set("summary", json!("Other")), Prose, "/paths/~1time/get/summary"),
        (TIME.to_owned(), Set("deprecated", json!(true)), NonBreaking, "GET /time"),
        (TIME.to_owned(), Set("x-sunset", json!("2027-01-01")), NonBreaking, "GET /time"),
        (TIME.to_owned(), Set("tags", json!(["Time"])), NonBreaking, "GET /time"),
        (TIME.to_owned(), Set("security", json!([])), NonBreaking, "GET /time"),
        (format!("{TIME}/x-scopes"), Pop, Breaking, "GET /time"),
        ("/paths/~1accounts/get/x-scopes".to_owned(), Push(json!("customer")), NonBreaking, "GET /accounts"),
        (
            "/paths/~1media~1{image}/get".to_owned(),
            Set("security", json!([{ "SessionKey": [] }])),
            Breaking,
            "GET /media/{image}",
        ),
        // Parameters.
        (format!("{TIME}/parameters"), Push(parameter("zone")), NonBreaking, "GET /time"),
        (format!("{TIME}/parameters"), Push(required), Breaking, "GET /time"),
        ("/paths/~1accounts/get/parameters".to_owned(), Pop, Breaking, "GET /accounts"),
        ("/components/parameters/EventSort".to_owned(), Set("required", json!(true)), Breaking, "query.sort"),
        (
            "/components/parameters/ClientVersion".to_owned(),
            Set("required", json!(false)),
            NonBreaking,
            "header.x-client-version",
        ),
        ("/components/parameters/Records/schema".to_owned(), Set("maximum", json!(50)), Breaking, "query.records"),
        ("/components/parameters/Records/schema".to_owned(), Set("maximum", json!(200)), NonBreaking, "query.records"),
        ("/components/parameters/Records/schema".to_owned(), Set("default", json!(10)), Breaking, "query.records"),
        ("/components/parameters/Records".to_owned(), Set("description", json!("Other.")), Prose, "/Records/description"),
        ("/components/parameters/Records".to_owned(), Set("example", json!(7)), Prose, "/Records/example"),
        ("/components/parameters/AccountIdentifier/schema".to_owned(), Set("pattern", json!("^[0-9]+$")), Breaking, "number"),
        // Bodies of requests.
        (HOSTS.to_owned(), Remove("requestBody"), Breaking, "POST /hosts"),
        (TIME.to_owned(), Set("requestBody", json!({ "required": true, "content": {} })), Breaking, "GET /time"),
        (format!("{HOSTS}/requestBody/content"), Set("application/xml", json!({ "schema": text() })), NonBreaking, "POST /hosts"),
        (format!("{HOSTS}/requestBody/content"), Rename("application/json", "application/xml"), Breaking, "POST /hosts"),
        (schema("/HostCreate/properties"), Set("colour", text()), NonBreaking, "HostCreate.colour"),
        (schema("/HostCreate/properties"), Remove("phone"), Breaking, "HostCreate.phone"),
        (schema("/HostCreate/required"), Push(json!("phone")), Breaking, "HostCreate.phone"),
        (schema("/HostCreate/required"), Pop, NonBreaking, "HostCreate."),
        (schema("/HostCreate/properties/phone"), Remove("nullable"), Breaking, "HostCreate.phone"),
        (schema("/HostCreate/properties/name"), Set("maxLength", json!(10)), Breaking, "HostCreate.name"),
        (schema("/HostCreate/properties/name"), Set("maxLength", json!(100_000)), NonBreaking, "HostCreate.name"),
        (schema("/HostCreate/properties/name"), Set("type", json!("integer")), Breaking, "HostCreate.name"),
        (schema("/HostUpdate/x-not-blank"), Pop, NonBreaking, "HostUpdate."),
        (schema("/OrderStatusInput/enum"), Push(json!("Paid")), NonBreaking, "OrderStatusInput"),
        (schema("/OrderStatusInput/enum"), Pop, Breaking, "OrderStatusInput"),
        // Responses.
        (format!("{TIME}/responses"), Rename("200", "202"), Breaking, "GET /time"),
        (format!("{TIME}/responses"), Set("418", json!({ "description": "Teapot." })), NonBreaking, "GET /time"),
        (format!("{TIME}/responses"), Remove("500"), NonBreaking, "GET /time"),
        (format!("{TIME}/responses/200/headers"), Remove("ETag"), Breaking, "GET /time 200"),
        (format!("{TIME}/responses/200/headers"), Remove("RateLimit"), NonBreaking, "GET /time 200"),
        (format!("{TIME}/responses/200/headers"), Set("X-New", json!({ "schema": text() })), NonBreaking, "GET /time 200"),
        (format!("{TIME}/responses/200/content"), Rename("application/json", "text/plain"), Breaking, "GET /time 200"),
        (schema("/Host/properties"), Set("colour", text()), NonBreaking, "Host.colour"),
        (schema("/Host/properties"), Remove("phone"), Breaking, "Host.phone"),
        (schema("/Host/required"), Pop, Breaking, "Host."),
        (schema("/Host/properties/phone"), Set("nullable", json!(true)), Breaking, "Host.phone"),
        (schema("/Host/properties/phone"), Set("maxLength", json!(10)), NonBreaking, "Host.phone"),
        (schema("/Host/properties/phone"), Set("description", json!("Other.")), Prose, "Host/properties/phone/description"),
        (schema("/Order/properties/total"), Set("format", json!("float")), Breaking, "Order.total"),
        (schema("/ServerTime/properties/utc"), Set("type", json!("number")), Breaking, "ServerTime.utc"),
        (schema("/OrderStatus/x-extensible-enum"), Push(json!("Paid")), NonBreaking, "OrderStatus"),
        (schema("/OrderStatus"), Rename("x-extensible-enum", "enum"), NonBreaking, "OrderStatus"),
        (schema("/Event/properties/tags/items"), Set("type", json!("integer")), Breaking, "Event.tags[]"),
        // A property that is named like a keyword for prose.
        (schema("/Event/properties/title"), Set("type", json!("integer")), Breaking, "Event.title"),
        (schema("/Event/properties"), Remove("description"), Breaking, "Event.description"),
        // Prose of the whole document.
        ("/info".to_owned(), Set("version", json!("3.1.0")), Prose, "/info"),
        ("/components/examples/Region/value".to_owned(), Set("name", json!("Kumasi")), Prose, "/components/examples"),
    ]
}

#[test]
fn planted_changes_are_classified() {
    let planted = planted();
    assert!(planted.len() >= 50, "only {}", planted.len());
    for (pointer, edit, impact, place) in planted {
        let changes = diff(&CONTRACT.document, &edited(&pointer, &edit));
        assert_eq!(changes.first().map(|change| change.impact), Some(impact), "{pointer} {place}: {changes:#?}");
        assert!(changes.iter().any(|change| change.place.contains(place)), "{pointer} {place}: {changes:#?}");
    }
}

#[test]
fn same_document_has_no_changes() {
    assert_eq!(diff(&CONTRACT.document, &CONTRACT.document), []);
}

#[test]
fn name_of_security_scheme_has_no_meaning() {
    let text = CONTRACT.document.to_string().replace("SessionKey", "OtherKey");
    let changes = diff(&CONTRACT.document, &serde_json::from_str(&text).unwrap());
    assert_eq!(changes.iter().filter(|change| change.impact != Prose).collect::<Vec<_>>(), Vec::<&Change>::new());
}

#[test]
fn new_value_of_closed_list_is_breaking_in_responses_only() {
    let mut old = CONTRACT.document.clone();
    old["components"]["schemas"]["OrderStatus"] = json!({ "type": "string", "enum": ["Placed"] });
    let mut new = old.clone();
    new["components"]["schemas"]["OrderStatus"]["enum"] = json!(["Placed", "Paid"]);

    let change = Change { impact: Breaking, place: "OrderStatus".to_owned(), text: "the value Paid was added".to_owned() };
    assert_eq!(diff(&old, &new), [change]);
}

#[test]
fn shared_schema_is_reported_once_for_each_direction() {
    let new = edited("/components/schemas/Error/properties", &Set("hint", json!({ "type": "string" })));

    let change = Change { impact: NonBreaking, place: "Error.hint".to_owned(), text: "the property was added".to_owned() };
    assert_eq!(diff(&CONTRACT.document, &new), [change]);
}

#[test]
fn change_log_lists_breaking_changes_first_and_counts_prose() {
    let changes = [
        Change { impact: Breaking, place: "GET /time".to_owned(), text: "the operation was removed".to_owned() },
        Change { impact: NonBreaking, place: "Host.colour".to_owned(), text: "the property was added".to_owned() },
        Change { impact: NonBreaking, place: "Zone.colour".to_owned(), text: "the property was added".to_owned() },
        Change { impact: Prose, place: "/info".to_owned(), text: "changed".to_owned() },
    ];
    let expected = "### Breaking\n\n- `GET /time`: the operation was removed\n\n### Compatible\n\n\
                    - `Host.colour`, `Zone.colour`: the property was added\n\n1 change of descriptions or examples.\n";
    assert_eq!(to_markdown(&changes), expected);
}

#[test]
fn exit_status_reports_breaking_changes() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, document: &Value| {
        let file = folder.path().join(name);
        std::fs::write(&file, document.to_string()).unwrap();
        file
    };
    let old = write("old.json", &CONTRACT.document);
    let compatible = write("compatible.json", &edited(TIME, &Set("summary", json!("Other"))));
    let breaking = write("breaking.json", &edited("/paths", &Remove("/time")));
    let run = |new: &std::path::Path| {
        let output = Command::new(env!("CARGO_BIN_EXE_boxoffice")).arg("diff").args([&old, new]).output().unwrap();
        (output.status.code(), String::from_utf8(output.stdout).unwrap().lines().last().unwrap_or_default().to_owned())
    };

    assert_eq!(run(&compatible), (Some(0), "0 breaking, 0 non-breaking, 1 prose".to_owned()));
    assert_eq!(run(&breaking), (Some(1), "1 breaking, 0 non-breaking, 0 prose".to_owned()));
    assert_eq!(run(&folder.path().join("missing.json")), (Some(2), String::new()));
}
