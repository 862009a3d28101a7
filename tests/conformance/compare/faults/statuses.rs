//! Faults of statuses and of error bodies.

use serde_json::{Value, json};

use super::proxy::{Fault, fault};

/// Rejections with one status get another status and body.
fn instead(name: &'static str, operation: &'static str, status: u16, (other, body): (u16, fn() -> Value)) -> Fault {
    fault("statuses", name).response(operation, move |_, answer, _| {
        if answer.status == status {
            answer.replace(other, &body());
        }
    })
}

fn invalid() -> Value {
    json!({"error": "Invalid: name (is taken).", "code": "arguments.invalid", "fields": [{"name": "name", "problem": "invalid", "detail": "is taken"}]})
}

fn not_yours() -> Value {
    json!({"error": "You do not have access.", "message": "You do not have access.", "code": "resource.not-yours"})
}

fn region() -> Value {
    json!({"self": "/regions/17637000000011", "name": "Greater Accra", "country": "Ghana", "district": "", "city": "Accra", "icon": "http://127.0.0.1/media/ghana.png"})
}

fn status_faults() -> Vec<Fault> {
    vec![
        instead("region: unknown one is 400", "region_get", 404, (400, invalid)),
        instead("region: unknown one is 403", "region_get", 404, (403, not_yours)),
        instead("region: unknown one is 200", "region_get", 404, (200, region)),
        instead("region: update of an unknown one is 403", "region_update", 404, (403, not_yours)),
        instead("order: unknown one is 403", "order_get", 404, (403, not_yours)),
        instead("event: sections of an unknown one are created", "section_create", 404, (403, not_yours)),
        instead("region: taken name is 400", "region_create", 409, (400, invalid)),
        instead("host: taken name is 400", "host_create", 409, (400, invalid)),
        instead("venue: taken name is 403", "venue_create", 409, (403, not_yours)),
        instead("region: region in use is 400", "region_delete", 409, (400, invalid)),
        fault("statuses", "category: taken name is accepted")
            .sent_json("category_create", |body| {
                if let Some(name) = body["name"].as_str() {
                    let unique = chrono::Utc::now().timestamp_nanos_opt().unwrap();
                    body["name"] = json!(format!("{name}{unique}"));
                }
            })
            .json("category_create category_get", |body, _| {
                let name = body["name"].as_str().unwrap_or_default();
                if let Some(end) = name.len().checked_sub(19).filter(|end| *end > 0) {
                    body["name"] = json!(&name[..end]);
                }
            }),
        instead("region: body that is too large is 400", "region_create", 413, (400, invalid)),
        fault("statuses", "zone: body that is too large is accepted").response_with("zone_create", 413, |answer| {
            answer.replace(201, &json!({"self": "/zones/17637000000001"}));
        }),
        instead("region: another media type is 400", "region_create", 415, (400, invalid)),
        instead("region: PUT of another media type is 400", "region_update", 415, (400, invalid)),
        fault("statuses", "session: wrong password is 404").response_with("session_create", 401, |answer| {
            answer.replace(404, &json!({"error": "There is no such account.", "code": "resource.not-found"}));
        }),
    ]
}

/// Changes the text of errors with one status.
fn text(name: &'static str, operation: &'static str, status: u16, text: &'static str) -> Fault {
    fault("errors", name).response(operation, move |_, answer, _| {
        if answer.status == status
            && let Some(mut body) = answer.json()
        {
            for member in ["error", "message"] {
                if body[member].is_string() {
                    body[member] = json!(text);
                }
            }
            answer.set_json(&body);
        }
    })
}

/// Changes the code of errors with one status.
fn code(name: &'static str, operation: &'static str, status: u16, code: &'static str) -> Fault {
    fault("errors", name).response(operation, move |_, answer, _| {
        if answer.status == status
            && let Some(mut body) = answer.json()
        {
            body["code"] = json!(code);
            answer.set_json(&body);
        }
    })
}

fn error_faults() -> Vec<Fault> {
    vec![
        text(
            "404 has a stack trace",
            "region_get",
            404,
            "Traceback (most recent call last):\n  File \"/srv/app.py\", line 7, in get",
        ),
        text("400 has a Rust panic", "region_create", 400, "called `Option::unwrap()` on a `None` value, src/regions.rs:10:5"),
        text(
            "400 has a Java stack trace",
            "zone_create",
            400,
            "java.lang.NullPointerException\n\tat com.example.Zones.create(Zones.java:42)",
        ),
        text(
            "409 has an SQL statement",
            "region_create",
            409,
            "UNIQUE constraint failed: regions.name (SELECT id FROM regions WHERE name = ?)",
        ),
        text("404 has a path of the server's files", "venue_get", 404, "No such file: /home/boxoffice/data/venues.db"),
        text("403 has the caller's key", "region_get", 403, "The key k7w2k9d4m1x8c5v0b3n6z7l2j9h4g1f8 is unknown."),
        text("404 has no text", "region_get", 404, ""),
        text(
            "400 has a password hash",
            "account_create",
            400,
            "Invalid: password $argon2id$v=19$m=19456,t=2,p=1$c29tZXNhbHQ$9sTbSlTio3Biev89thdrlKKiCaYsjjYVJxGAL3swxpQ",
        ),
        code("409 has the code of another resource", "region_create", 409, "venue.taken"),
        code("409 has the code of another conflict", "region_delete", 409, "category.in-use"),
        code("404 of a list has the code of a resource", "region_list", 404, "resource.not-found"),
        code("404 has the code of an endpoint", "region_get", 404, "endpoint.unknown"),
        code("412 has the code of the version", "region_update", 412, "resource.changed"),
        fault("errors", "errors of venues are those of regions").response_with("venue_create", 409, |answer| {
            answer.replace(409, &json!({"error": "Another region has this name.", "code": "region.taken"}));
        }),
        fault("errors", "400 names an argument that is valid, too").response("region_create", |_, answer, _| {
            if answer.status == 400
                && let Some(mut body) = answer.json().filter(|body| body["fields"].is_array())
            {
                let extra = json!({"name": "city", "problem": "invalid", "detail": "is wrong"});
                body["fields"].as_array_mut().unwrap().push(extra);
                answer.set_json(&body);
            }
        }),
        fault("errors", "missing is called invalid").response_with("region_create", 400, |answer| {
            answer.replace_text("\"missing\"", "\"invalid\"");
        }),
        fault("errors", "success has a password hash").affects(&["account_get", "account_list"]).json(
            "account_get",
            |body, _| {
                body["state"] = json!("$2b$12$KIXQ0yXQG1vTn5K2c8e5ue0cT8y1H1o8nJ0mQJ1y3l5wXH6i4bU3K");
            },
        ),
    ]
}

pub fn table() -> Vec<Fault> {
    [status_faults(), error_faults()].into_iter().flatten().collect()
}
