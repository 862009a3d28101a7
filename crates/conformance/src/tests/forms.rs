//! A server of forms, which is correct apart from one fault.

use serde_json::{Value, json};

use super::{compare_stateful, findings, is_valid, json_answer, json_response, rejection, unrouted};

fn document(media_type: &str) -> Value {
    let form = json!({ "type": "object", "required": ["user", "age"], "properties": {
        "user": { "type": "string", "pattern": "^[a-z]{2,8}$" },
        "age": { "type": "integer", "minimum": 18, "maximum": 120 },
        "tags": { "type": "array", "items": { "type": "string", "enum": ["de", "en"] } },
        "address": { "type": "object", "required": ["city"], "properties": { "city": { "type": "string", "minLength": 1 } } },
    } });
    document_of(media_type, &form)
}

fn document_of(media_type: &str, form: &Value) -> Value {
    let encoding = json!({ "address": { "contentType": "application/json" } });
    let body = json!({ "required": true, "content": { media_type: { "schema": form, "encoding": encoding } } });
    let any = json_answer(&json!({ "type": "object" }));
    let responses = json!({ "200": any, "400": any });
    let paths = json!({ "/forms": { "post": { "operationId": "send", "requestBody": body, "responses": responses } } });
    super::document("forms", paths)
}

/// Compares a server that accepts each form which contains a text. Returns the findings about arguments and valid requests.
async fn found(media_type: &str, accepted: &'static str) -> Vec<String> {
    found_with(document(media_type), accepted).await
}

async fn found_with(document: Value, accepted: &'static str) -> Vec<String> {
    let report = compare_stateful(document, (), move |contract, (), request| {
        let rejection = rejection(contract, request);
        let is_accepted = String::from_utf8_lossy(request.body()).contains(accepted);
        rejection.filter(|response| response.status() != 400 || !is_accepted).unwrap_or_else(|| json_response(200, &json!({})))
    });
    findings(&report.await)
}

#[tokio::test]
async fn invalid_properties_of_forms_are_sent() {
    for (media_type, property) in
        [("application/x-www-form-urlencoded", "%s="), ("multipart/form-data", "form-data; name=\"%s\"")]
    {
        assert_eq!(found(media_type, "no such text").await, [""; 0], "{media_type}");
        for (name, expected) in [
            ("age", "send argument.missing: user that is missing is answered with 200"),
            ("age", "send argument.bounds: age that is out of bounds is answered with 200"),
            ("user", "send argument.form: user that has an invalid format is answered with 200"),
            ("tags", "send argument.enum: tags that has an unknown value is answered with 200"),
            ("address", "send argument.form: address that has an invalid format is answered with 200"),
        ] {
            let found = found(media_type, property.replace("%s", name).leak()).await;
            assert!(found.iter().any(|finding| finding == expected), "{media_type} {expected}: {found:?}");
        }
    }
}

#[tokio::test]
async fn form_must_be_valid_as_a_whole() {
    let text = json!({ "type": "string", "minLength": 1 });
    let form = json!({ "type": "object", "minProperties": 2, "properties": { "first": text, "second": text } });
    for media_type in ["application/x-www-form-urlencoded", "multipart/form-data"] {
        assert_eq!(found_with(document_of(media_type, &form), "no such text").await, [""; 0], "{media_type}");
    }
}

#[tokio::test]
async fn ignored_media_type_of_a_form_is_found() {
    let form = json!({ "type": "object", "properties": { "name": { "type": "string" } } });
    let mut document = document_of("application/x-www-form-urlencoded", &form);
    // Without 415, the server may ignore the media type.
    assert_eq!(found_with(document.clone(), "{}").await, [""; 0]);
    let responses = &mut document["paths"]["/forms"]["post"]["responses"];
    responses["415"] = responses["400"].clone();
    let expected = ["send body.form: a body of another media type is answered with 200"];
    assert_eq!(found_with(document, "{}").await, expected);
}

/// Compares a server of a form that is either a link or a file. It also accepts each form with one of these texts. Returns the findings.
async fn found_of_alternatives(media_type: &str, accepted: &'static str) -> Vec<String> {
    let alternative = |kind: &str, name: &str, property: Value| {
        let kind = json!({ "type": "string", "enum": [kind] });
        json!({ "type": "object", "required": ["kind", name], "properties": { "kind": kind, name: property } })
    };
    let link = alternative("link", "url", json!({ "type": "string", "format": "uri", "maxLength": 60 }));
    let upload = alternative("upload", "file", json!({ "type": "string", "format": "binary" }));
    let size = alternative("size", "bytes", json!({ "type": "integer", "minimum": 1, "maximum": 9 }));
    let form = json!({ "oneOf": [link, upload, size] });
    let document = document_of(media_type, &form);
    let report = compare_stateful(document, (), move |contract, (), request| {
        let operation = match contract.find(request.method().as_str(), request.uri().path()) {
            Ok(operation) => operation,
            Err(error) => return unrouted(error),
        };
        let body = String::from_utf8_lossy(request.body());
        let is_multipart = request.headers()["content-type"].to_str().unwrap().starts_with("multipart/");
        // A file is sent as one.
        let is_file = !is_multipart || body.contains("name=\"file\"") == body.contains("filename=");
        json_response(if is_valid(operation, request) && is_file || body.contains(accepted) { 200 } else { 400 }, &json!({}))
    });
    findings(&report.await)
}

#[tokio::test]
async fn alternatives_of_forms_are_checked() {
    for (media_type, name) in [("application/x-www-form-urlencoded", "%s="), ("multipart/form-data", "name=\"%s\"")] {
        assert_eq!(found_of_alternatives(media_type, "no such text").await, [""; 0], "{media_type}");
        for (property, expected) in [
            ("url", "send argument.bounds: url that is out of bounds is answered with 200"),
            ("bytes", "send argument.type: bytes that has a wrong type is answered with 200"),
        ] {
            let found = found_of_alternatives(media_type, name.replace("%s", property).leak()).await;
            assert!(found.iter().any(|finding| finding == expected), "{media_type} {expected}: {found:?}");
        }
    }
}

/// Compares a server of a profile that forms change. Returns the findings about lost properties.
async fn lost(is_stored: bool) -> Vec<String> {
    let profile = json!({ "type": "object", "properties": {
        "name": { "type": "string", "minLength": 1 },
        "age": { "type": "integer", "minimum": 18, "maximum": 120 },
    } });
    let mut document = document_of("application/x-www-form-urlencoded", &profile);
    let patch = document["paths"]["/forms"]["post"].take();
    let mut read = json!({ "operationId": "read", "responses": patch["responses"] });
    read["responses"]["200"]["content"]["application/json"]["schema"] = profile;
    document["paths"] = json!({ "/profile": { "get": read, "patch": patch } });
    let profile = json!({ "name": "Ama", "age": 30 });
    let report = compare_stateful(document, profile, move |contract, profile, request| {
        let Ok(operation) = contract.find(request.method().as_str(), "/profile") else { return json_response(405, &json!({})) };
        let Ok(parsed) = operation.check("/profile", None, request.headers(), request.body()) else {
            return json_response(400, &json!({}));
        };
        for (name, value) in parsed.body.as_object().into_iter().flatten().filter(|(name, _)| is_stored || *name != "age") {
            profile[name] = value.clone();
        }
        json_response(200, profile)
    });
    findings(&report.await).into_iter().filter(|finding| finding.contains("sent.kept")).collect()
}

#[tokio::test]
async fn lost_property_of_a_form_is_found() {
    assert_eq!(lost(true).await, [""; 0]);
    assert_eq!(lost(false).await, ["send sent.kept: a changed age is not read back"]);
}
