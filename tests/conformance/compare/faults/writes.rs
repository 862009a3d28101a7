//! Faults of writing: what was sent is not stored, or not as it was sent.

use serde_json::{Value, json};

use super::proxy::{Answer, Fault, fault};

/// The update succeeds without an effect, and its response contains the sent values.
fn undone(name: &'static str, update: &'static str) -> Fault {
    fault("updates", name)
        .valid_request(update, |call, memory| {
            memory.insert(call.path.clone(), call.json());
            // Absent properties keep their values.
            call.body = "{}".into();
            None
        })
        .response(update, |call, answer, memory| {
            let Some(mut body) = answer.json().filter(|_| answer.is_success()) else { return };
            for (name, value) in memory.remove(&call.path).iter().filter_map(Value::as_object).flatten() {
                if body.get(name).is_some() {
                    body[name] = value.clone();
                }
            }
            answer.set_json(&body);
        })
}

/// The update ignores a property.
fn ignored(name: &'static str, update: &'static str, property: &'static str) -> Fault {
    fault("updates", name).sent_json(update, move |body| {
        if let Some(body) = body.as_object_mut() {
            body.remove(property);
        }
    })
}

/// The server stores another text than the sent one.
fn altered(name: &'static str, write: &'static str, property: &'static str, alter: fn(&str) -> String) -> Fault {
    fault("stored values", name).sent_json(write, move |body| {
        if let Some(text) = body[property].as_str() {
            let altered = alter(text);
            body[property] = json!(altered);
        }
    })
}

fn update_faults() -> Vec<Fault> {
    vec![
        undone("region: update is undone", "region_update"),
        undone("venue: update is undone", "venue_update"),
        undone("zone: update is undone", "zone_update"),
        undone("category: update is undone", "category_update"),
        undone("host: update is undone", "host_update"),
        undone("account: update is undone", "account_update"),
        undone("section: update is undone", "section_update"),
        undone("modifier: update is undone", "section_modifier_update"),
        ignored("region: district is not updated", "region_update", "district"),
        ignored("venue: longitude is not updated", "venue_update", "longitude"),
        ignored("zone: width is not updated", "zone_update", "width"),
        ignored("host: website is not updated", "host_update", "website"),
        ignored("event: description is not updated", "event_update", "description"),
        ignored("event: tags are not updated", "event_update", "tags"),
        ignored("event: public is not updated", "event_update", "public"),
        ignored("section: capacity is not updated", "section_update", "capacity"),
        ignored("section: base price is not updated", "section_update", "basePrice"),
        ignored("modifier: price delta is not updated", "section_modifier_update", "priceDelta"),
        ignored("account: state is not updated", "account_update", "state"),
        ignored("category: subcategories are not updated", "category_update", "subcategories"),
        ignored("category: name is not updated", "category_update", "name"),
        fault("updates", "region: response to update has the old values").response("region_update", |_, answer, _| {
            if let Some(mut body) = answer.json().filter(|_| answer.is_success()) {
                body["city"] = json!("Old City");
                answer.set_json(&body);
            }
        }),
        fault("updates", "region: update clears absent properties").sent_json("region_update", |body| {
            for name in ["district", "city"] {
                if body.is_object() && body.get(name).is_none() {
                    body[name] = json!("");
                }
            }
        }),
    ]
}

fn stored_faults() -> Vec<Fault> {
    vec![
        altered("region: city is truncated", "region_create region_update", "city", |text| text.chars().take(3).collect()),
        altered("region: district is in lower case", "region_create region_update", "district", str::to_lowercase),
        altered("zone: non-ASCII characters are lost", "zone_create zone_update", "description", |text| {
            text.chars().map(|c| if c.is_ascii() { c } else { '?' }).collect()
        }),
        altered("region: astral characters are lost", "region_create region_update", "city", |text| {
            text.chars().filter(|c| u32::from(*c) < 0x1_0000).collect()
        }),
        altered("zone: text is HTML-escaped", "zone_create zone_update", "description", |text| {
            text.replace('\'', "&#39;").replace('&', "&amp;").replace('<', "&lt;")
        }),
        altered("host: quotes are doubled", "host_create host_update", "description", |text| text.replace('\'', "''")),
        fault("stored values", "zone: number is capped").sent_json("zone_create zone_update", |body| {
            if body["width"].as_u64().is_some_and(|width| width > 500) {
                body["width"] = json!(500);
            }
        }),
        fault("stored values", "venue: coordinates are rounded").sent_json("venue_create venue_update", |body| {
            if let Some(longitude) = body["longitude"].as_f64() {
                body["longitude"] = json!(longitude.round());
            }
        }),
        fault("stored values", "modifier: sign of price delta is lost").sent_json(
            "section_modifier_create section_modifier_update",
            |body| {
                if let Some(delta) = body["priceDelta"].as_f64() {
                    body["priceDelta"] = json!(delta.abs());
                }
            },
        ),
        fault("stored values", "section: false is stored as true").sent_json("section_create section_update", |body| {
            if body["active"] == false {
                body["active"] = json!(true);
            }
        }),
        fault("stored values", "host: description is dropped at creation").sent_json("host_create", |body| {
            if let Some(body) = body.as_object_mut() {
                body.remove("description");
            }
        }),
        fault("stored values", "event: tags are reversed").sent_json("event_create event_update", |body| {
            if let Some(tags) = body["tags"].as_array_mut() {
                tags.reverse();
            }
        }),
    ]
}

fn life_faults() -> Vec<Fault> {
    vec![
        fault("lives", "region: created one is not in the list")
            .affects(&["region_create", "region_list"])
            .json("region_list", |body, _| drop_entry(body, -1)),
        fault("lives", "zone: created one is not in the list")
            .affects(&["zone_create", "zone_list"])
            .json("zone_list", |body, _| drop_entry(body, -1)),
        fault("lives", "zone: DELETE is not carried out")
            .valid_request("zone_delete", |call, _| {
                call.become_read();
                None
            })
            .response_with("zone_delete", 200, |answer| {
                answer.empty(204);
            }),
        fault("lives", "region: second DELETE is 204").response("region_delete", |_, answer, memory| {
            delete_again(answer, memory, 204);
        }),
        fault("lives", "host: second DELETE is 403").response("host_delete", |_, answer, memory| {
            if answer.status == 404 && !memory.is_empty() {
                answer.replace(403, &json!({"error": "No.", "message": "No.", "code": "resource.not-yours"}));
            }
            if answer.status == 204 {
                memory.insert("deleted".to_owned(), json!(true));
            }
        }),
        fault("lives", "any: DELETE of an unknown one is 204").response_with("venue_delete", 404, |answer| {
            answer.empty(204);
        }),
        fault("lives", "category: deleted one can still be read")
            .affects(&["category_delete"])
            .response("category_get", keep_read),
        fault("lives", "integration: deleted one can still be read")
            .affects(&["integration_delete"])
            .response("integration_get", keep_read),
        fault("lives", "region: deleted one is still in the list").affects(&["region_delete", "region_list"]).response(
            "*",
            |call, answer, memory| {
                let path = call.path.clone();
                // The responses to DELETE and HEAD have no body.
                match (call.operation, answer.json()) {
                    ("region_get", Some(body)) if answer.status == 200 => {
                        memory.insert(path, body);
                    }
                    ("region_create", Some(body)) if answer.status == 201 => {
                        memory.insert(body["self"].as_str().unwrap().to_owned(), body);
                    }
                    ("region_delete", _) if answer.status == 204 => {
                        let region = memory.remove(&path).unwrap_or_default();
                        memory.insert("gone".to_owned(), region);
                    }
                    ("region_list", Some(mut body)) if answer.status == 200 => {
                        let Some(gone) = memory.get("gone").filter(|gone| gone.is_object()) else { return };
                        let total = body["total"].as_u64().unwrap() + 1;
                        let records = body["records"].as_u64().unwrap();
                        let page = body["page"].as_u64().unwrap();
                        body["total"] = json!(total);
                        let entries = body["entries"].as_array_mut().unwrap();
                        if page == 1 {
                            entries.insert(0, gone.clone());
                            entries.truncate(records.try_into().unwrap());
                        }
                        answer.set_json(&body);
                    }
                    _ => {}
                }
            },
        ),
        fault("lives", "zone: created one is 404").affects(&["zone_create"]).response("zone_get", |_, answer, _| {
            answer.replace(404, &json!({"error": "There is no such resource.", "code": "resource.not-found"}));
        }),
        fault("lives", "region: list contains an entry twice").json("region_list", |body, _| {
            if let Some(last) = body["entries"].as_array().and_then(|entries| entries.last()).cloned() {
                let entries = body["entries"].as_array_mut().unwrap();
                if entries.len() > 1 {
                    entries[0] = last;
                }
            }
        }),
        fault("lives", "venue: list shows another name than the venue")
            .affects(&["venue_create", "venue_list", "venue_get"])
            .json("venue_list", |body, _| {
                for entry in body["entries"].as_array_mut().into_iter().flatten() {
                    entry["name"] = json!("Another Name");
                }
            }),
        fault("lives", "host: creation returns an existing one").response("host_create", |_, answer, memory| {
            if answer.status != 201 {
                return;
            }
            match memory.get("first") {
                Some(first) => {
                    let first = first.clone();
                    answer.set_header("location", first["self"].as_str().unwrap());
                    answer.set_json(&first);
                }
                None => drop(memory.insert("first".to_owned(), answer.json().unwrap())),
            }
        }),
        fault("lives", "region: all identifiers lead to one region").affects(&["region_get", "region_list"]).response(
            "region_get",
            |_, answer, memory| {
                if answer.status != 200 {
                    return;
                }
                let body = memory.entry("first".to_owned()).or_insert_with(|| answer.json().unwrap()).clone();
                answer.set_json(&body);
            },
        ),
        fault("lives", "event: owner of the created one is another host").affects(&["event_create"]).json(
            "event_create event_get",
            |body, _| {
                body["host"] = json!("/hosts/17637000000001");
            },
        ),
    ]
}

fn drop_entry(body: &mut Value, index: isize) {
    let total = body["total"].as_u64().unwrap_or_default();
    let (page, records) = (body["page"].as_u64().unwrap_or(1), body["records"].as_u64().unwrap_or(1));
    // Only the last page loses its last entry; the total is one less.
    if total > 1 {
        body["total"] = json!(total - 1);
        if page * records >= total {
            let entries = body["entries"].as_array_mut().unwrap();
            if index < 0 {
                entries.pop();
            }
        }
    }
}

fn delete_again(answer: &mut Answer, memory: &mut super::proxy::Memory, status: u16) {
    if answer.status == 404 && !memory.is_empty() {
        answer.empty(status);
    } else if answer.status == 204 {
        memory.insert("deleted".to_owned(), json!(true));
    }
}

/// Returns a resource again after it was deleted.
fn keep_read(call: &super::proxy::Call, answer: &mut Answer, memory: &mut super::proxy::Memory) {
    let known = memory.get("last").cloned();
    if answer.status == 200 {
        memory.insert("last".to_owned(), answer.json().unwrap());
    } else if answer.status == 404 && call.path.ends_with(|c: char| c.is_ascii_digit()) {
        let mut body = known.unwrap_or_else(|| json!({"name": "Left", "subcategories": []}));
        body["self"] = json!(call.path);
        answer.replace(200, &body);
        answer.set_header("etag", "\"AAAAAAAAAAAAAAAAAAAAAA\"");
    }
}

pub fn table() -> Vec<Fault> {
    [update_faults(), stored_faults(), life_faults()].into_iter().flatten().collect()
}
