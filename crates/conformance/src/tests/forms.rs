//! A server of forms, which is correct apart from one fault.

use boxoffice_openapi::Contract;
use bytes::Bytes;
use http::Request;
use serde_json::{Value, json};

use super::{comparison, findings, json_response, start};

fn document(media_type: &str) -> Value {
    let form = json!({ "type": "object", "required": ["user", "age"], "properties": {
        "user": { "type": "string", "pattern": "^[a-z]{2,8}$" },
        "age": { "type": "integer", "minimum": 18, "maximum": 120 },
        "tags": { "type": "array", "items": { "type": "string", "enum": ["de", "en"] } },
        "address": { "type": "object", "required": ["city"], "properties": { "city": { "type": "string", "minLength": 1 } } },
    } });
    let answer = json!({ "description": "", "content": { "application/json": { "schema": { "type": "object" } } } });
    let encoding = json!({ "address": { "contentType": "application/json" } });
    let body = json!({ "required": true, "content": { media_type: { "schema": form, "encoding": encoding } } });
    json!({
        "openapi": "3.0.3",
        "info": { "title": "forms", "version": "1" },
        "paths": { "/forms": { "post": {
            "operationId": "send", "requestBody": body, "responses": { "200": answer, "400": answer },
        } } },
    })
}

/// Compares a server that accepts each form which contains a text. Returns the findings about arguments and valid requests.
async fn found(media_type: &str, accepted: &'static str) -> Vec<String> {
    let contract = Contract::new(document(media_type)).unwrap();
    let address = start(move |request: &Request<Bytes>| {
        let path = request.uri().path();
        let Ok(operation) = contract.find(request.method().as_str(), path) else { return json_response(404, &json!({})) };
        let is_valid = operation.check(path, None, request.headers(), request.body()).is_ok();
        let is_accepted = is_valid || String::from_utf8_lossy(request.body()).contains(accepted);
        json_response(if is_accepted { 200 } else { 400 }, &json!({}))
    });
    let report = comparison(document(media_type), None, &address.await).await.run(|_| ()).await;
    findings(&report).into_iter().filter(|finding| !finding.contains("method.other")).collect()
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
