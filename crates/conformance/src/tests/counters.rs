//! A server of notes that counts the reads of each note, and leaves the number out of its entity tag.

use std::hash::{DefaultHasher, Hash, Hasher};

use bytes::Bytes;
use http::{Request, Response};
use serde_json::{Value, json};

use super::{compare_stateful, crud_document, error, findings, json_response, response};

fn document() -> Value {
    let note = json!({ "type": "object", "required": ["text"], "properties": {
        "id": { "type": "integer", "readOnly": true },
        "text": { "type": "string", "minLength": 1 },
        "reads": { "type": "integer", "readOnly": true },
    } });
    let mut document = crud_document("/notes", &["create", "read", "replace", "remove"], &note, json!({ "text": "Hello" }));
    let paths = &mut document["paths"];
    for (path, method) in [("/notes", "post"), ("/notes/{id}", "get"), ("/notes/{id}", "put"), ("/notes/{id}", "delete")] {
        ["404", "412"].into_iter().for_each(|status| paths[path][method]["responses"][status] = error());
    }
    paths["/notes/{id}"]["put"]["parameters"] = json!([{ "name": "If-Match", "in": "header", "schema": { "type": "string" } }]);
    document
}

/// Compares the server, which is correct apart from one fault. Returns the findings about resources and tags.
async fn found(fault: &'static str) -> Vec<String> {
    let answer = move |_: &_, notes: &mut _, request: &_| answer(notes, request, fault);
    let report = compare_stateful(document(), Vec::new(), answer).await;
    let checks = ["resource.", "update.", "tag.", "response.", "sent.", "method.head"];
    findings(&report).into_iter().filter(|finding| checks.iter().any(|check| finding.contains(check))).collect()
}

fn answer(notes: &mut Vec<Option<Value>>, request: &Request<Bytes>, fault: &str) -> Response<String> {
    let tagged = |status: u16, note: &Value, tag: &str| {
        let mut response = json_response(status, note);
        response.headers_mut().insert("etag", tag.parse().unwrap());
        response
    };
    let tag = |note: &Value| format!("\"{}\"", note["text"].as_str().unwrap_or_default().len());
    let id = request.uri().path().strip_prefix("/notes/").map(|id| id.parse::<usize>().unwrap_or_default().wrapping_sub(1));
    let sent = serde_json::from_slice::<Value>(request.body()).ok();
    let sent = sent.filter(|body| body["text"].as_str().is_some_and(|text| !text.is_empty()));
    if id.is_none() && request.method() == "POST" {
        let Some(mut note) = sent else { return json_response(400, &json!({})) };
        note = json!({ "id": notes.len() + 1, "text": note["text"].take(), "reads": 0 });
        notes.push(Some(note.clone()));
        return tagged(201, &note, &tag(&note));
    }
    let Some(place) = id.and_then(|id| notes.get_mut(id)) else { return json_response(404, &json!({})) };
    let Some(note) = place else {
        return if request.method() == "DELETE" { response(204, String::new()) } else { json_response(404, &json!({})) };
    };
    let is_old = request.headers().get("if-match").is_some_and(|sent| sent.to_str().unwrap() != tag(note));
    match (request.method().as_str(), sent) {
        ("GET", _) | ("HEAD", _) => {
            note["reads"] = json!(note["reads"].as_u64().unwrap() + 1);
            tagged(200, note, &tag(note))
        }
        ("PUT", None) => json_response(400, &json!({})),
        ("PUT", Some(_)) if is_old && fault != "changes with an old tag" => json_response(412, &json!({})),
        ("PUT", Some(sent)) => {
            note["text"] = sent["text"].clone();
            if is_old {
                return json_response(412, &json!({}));
            }
            let own = tag(note);
            tagged(200, note, if fault == "another tag" { "\"other\"" } else { &own })
        }
        ("DELETE", _) => {
            if fault != "removes nothing" {
                *place = None;
            }
            response(204, String::new())
        }
        _ => json_response(405, &json!({})),
    }
}

#[tokio::test]
async fn counter_of_reads_is_no_finding() {
    assert_eq!(found("").await, [""; 0]);
}

#[tokio::test]
async fn faults_beside_a_counter_are_found() {
    for (fault, expected) in [
        ("another tag", "replace tag.changes: the tag of the update differs from the tag of a read with the same body"),
        ("changes with an old tag", "replace tag.if-match: an update with an old tag in If-Match is refused and carried out"),
        ("removes nothing", "remove resource.removed: the removed resource can still be read"),
    ] {
        let found = found(fault).await;
        assert!(found.iter().any(|finding| finding == expected), "{expected}: {found:?}");
    }
}

#[tokio::test]
async fn tag_that_never_changes_is_found_without_if_match() {
    let mut document = document();
    let update = &mut document["paths"]["/notes/{id}"]["put"];
    update.as_object_mut().unwrap().shift_remove("parameters");
    update["responses"].as_object_mut().unwrap().shift_remove("412");
    for (tags, expected) in [
        ("strong", None),
        // A hash of the body, which has a counter of reads.
        ("of body", None),
        // It may be the time in seconds.
        ("weak", None),
        ("one", Some("replace tag.changes: the tag is the same after an update")),
        ("ignored", Some("replace response.not-modified: a changed resource is 304 for its old tag")),
    ] {
        let report = compare_stateful(document.clone(), Vec::new(), move |_, notes, request| {
            let mut response = answer(notes, request, "");
            if request.method() == "GET" && tags == "ignored" && request.headers().contains_key("if-none-match") {
                return super::response(304, String::new());
            }
            if tags == "of body" && response.headers().contains_key("etag") {
                let mut hasher = DefaultHasher::new();
                response.body().hash(&mut hasher);
                response.headers_mut().insert("etag", format!("\"{:x}\"", hasher.finish()).parse().unwrap());
            }
            if let (Some(tag), true) = (response.headers_mut().get_mut("etag"), ["weak", "one"].contains(&tags)) {
                *tag = if tags == "weak" { "W/\"1\"" } else { "\"1\"" }.parse().unwrap();
            }
            response
        });
        let found = findings(&report.await)
            .into_iter()
            .filter(|finding| finding.contains(" tag.") || finding.contains("response.not-modified"));
        assert_eq!(found.collect::<Vec<_>>(), Vec::from_iter(expected), "{tags}");
    }
}
