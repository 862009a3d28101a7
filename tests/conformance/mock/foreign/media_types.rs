//! Media types of requests and responses.

use boxoffice_conformance::http_client::Request;
use serde_json::{Value, json};

use super::{answered, mock, small};
use crate::mock::header;
use crate::support::fetch_url;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reads_body_by_parameters_of_media_type() {
    let asking = |name: &str| json!({ "schema": { "type": "object", "required": [name] } });
    let post = json!({ "post": {
        "requestBody": { "content": { "application/vnd.a+json;version=1": asking("one"), "application/vnd.a+json;version=2": asking("two") } },
        "responses": { "200": { "description": "" } },
    } });
    let mock = small(json!({ "/versions": post }), json!({}));
    for (media_type, body, status) in [
        ("application/vnd.a+json;version=1", json!({ "one": 1 }), 200),
        ("application/vnd.a+json; Version=\"2\"", json!({ "two": 2 }), 200),
        ("application/vnd.a+json;version=2", json!({ "one": 1 }), 400),
        ("application/vnd.a+json", json!({ "one": 1 }), 200),
        ("application/json", json!({ "one": 1 }), 415),
        ("application/vnd.b+json", json!({}), 415),
    ] {
        let request = Request::new("POST", "/versions").with_json(&body).with_header("Content-Type", media_type);
        assert_eq!(mock.server.send(&request).await.unwrap().status, status, "{media_type} {body}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn xml_response_contains_text_only() {
    let schema = json!({ "type": "object", "properties": { "a": { "type": "integer" } } });
    let both = |xml: Value| json!({ "application/xml": xml, "application/json": { "schema": schema } });
    let alone = json!({ "application/xml": { "schema": schema } });
    for (content, status, media_type) in [
        (both(json!({ "schema": schema, "example": "<a/>" })), 200, "application/xml"),
        (both(json!({ "schema": schema, "example": { "a": 1 } })), 501, "application/json"),
        (both(json!({ "schema": schema })), 501, "application/json"),
        (alone.clone(), 501, "application/json"),
    ] {
        let request = Request::new("GET", "/xml").with_header("Accept", "application/xml");
        let reply = small(json!({ "/xml": answered(content) }), json!({})).server.send(&request).await.unwrap();
        assert_eq!((reply.status, header(&reply, "content-type")), (status, media_type));
    }
    for (content, accept, status) in [
        (both(json!({ "schema": schema })), "application/xml, */*;q=0.1", 200),
        (both(json!({ "schema": schema })), "*/*", 200),
        (alone, "*/*", 501),
    ] {
        let request = Request::new("GET", "/xml").with_header("Accept", accept);
        let reply = small(json!({ "/xml": answered(content) }), json!({})).server.send(&request).await.unwrap();
        assert_eq!(reply.status, status, "{accept}");
        assert!(status == 200 || reply.json()["message"].as_str().unwrap().starts_with("The mock generates no XML."));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn validates_form_parts() {
    let form = json!({ "schema": { "type": "object", "required": ["file", "name"], "properties": {} } });
    let post = json!({ "post": {
        "requestBody": { "content": { "multipart/form-data": form } }, "responses": { "200": { "description": "" } },
    } });
    let mock = small(json!({ "/files": post }), json!({}));
    let send = async |names: &[&str]| {
        let part = |name: &&str| format!("--x\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\nfile\r\n");
        let form: String = names.iter().map(part).collect();
        let request = Request::new("POST", "/files").with_header("Content-Type", "multipart/form-data; boundary=x");
        let request = Request { body: Some(format!("{form}--x--\r\n").into_bytes()), ..request };
        mock.server.send(&request).await.unwrap()
    };
    assert_eq!(send(&["name", "file", "other"]).await.status, 200);
    let lacking = send(&["name"]).await;
    assert_eq!((lacking.status, &lacking.json()["fields"][0]["name"]), (400, &json!("file")));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn accept_header_selects_media_type() {
    let mock = mock();
    for (accept, media_type) in [
        ("*/*", "application/json"),
        ("text/html, text/*;q=0.5", "text/plain"),
        ("application/json;q=0.1, image/png", "image/png"),
        ("image/*", "image/png"),
        ("application/json;q=0, */*;q=0.1", "text/plain"),
    ] {
        let reply = mock.send(&Request::new("GET", "/pictures").with_header("Accept", accept)).await;
        assert_eq!((reply.status, header(&reply, "content-type")), (200, media_type), "{accept}");
        assert_eq!(header(&reply, "vary"), "Accept, Prefer");
    }
    let mut two_lines = Request::new("GET", "/pictures").with_header("Accept", "text/html");
    two_lines.headers.push(("Accept".to_owned(), "image/png".to_owned()));
    let reply = mock.send(&two_lines).await;
    assert_eq!((reply.status, header(&reply, "content-type")), (200, "image/png"), "the second line counts too");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unacceptable_media_type_is_rejected() {
    let problem = json!({ "description": "", "content": { "application/problem+json": {
        "schema": { "type": "object", "required": ["title"], "properties": { "title": {}, "status": {}, "detail": {} } },
        "example": { "title": "Error", "status": 400, "detail": "Why" },
    } } });
    let mut declared = answered(json!({ "text/csv": { "example": "a,b" } }));
    let paths = json!({ "/plain": declared.clone(), "/any": answered(json!({ "*/*": { "schema": { "type": "object" } } })) });
    declared["get"]["responses"]["default"] = problem;
    let mock = small(json!({ "/declared": declared, "/plain": paths["/plain"], "/any": paths["/any"] }), json!({}));
    let send = async |path: &str, accept: &str| {
        mock.server.send(&Request::new("GET", path).with_header("Accept", accept)).await.unwrap()
    };
    let reason = "The response has none of the accepted media types. Accept one of: text/csv.";

    let plain = send("/plain", "application/json").await;
    assert_eq!((plain.status, plain.json()["message"].as_str()), (406, Some(reason)));
    let declared = send("/declared", "text/csv;q=0, image/*").await;
    assert_eq!((declared.status, declared.json()), (406, json!({ "title": "Error", "status": 406, "detail": reason })));
    for accept in ["text/csv", "text/*", "*/*"] {
        assert_eq!(send("/declared", accept).await.status, 200, "{accept}");
    }
    assert_eq!(send("/any", "image/png").await.status, 200);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn declared_range_includes_accepted_media_types() {
    let of = |media_type: &str| answered(json!({ media_type: { "schema": { "type": "object" } } }));
    let mock = small(json!({ "/image": of("image/*"), "/json": of("application/*+json") }), json!({}));
    for (path, accept, status, media_type) in [
        ("/image", "image/jpeg", 200, "image/png"),
        ("/image", "text/html", 406, "application/json"),
        ("/json", "application/problem+json", 200, "application/json"),
        ("/json", "*/*", 200, "application/json"),
    ] {
        let reply = mock.server.send(&Request::new("GET", path).with_header("Accept", accept)).await.unwrap();
        assert_eq!((reply.status, header(&reply, "content-type")), (status, media_type), "{path} {accept}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn response_without_content_has_no_media_type() {
    let gone = json!({ "delete": { "responses": { "204": { "description": "", "content": { "application/json": { "schema": {} } } } } } });
    let mock = small(json!({ "/a": gone }), json!({}));
    let reply = mock.send(&Request::new("DELETE", "/a").with_header("Accept", "text/plain")).await;
    assert_eq!((reply.status, header(&reply, "content-type"), reply.body.len()), (204, "", 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stream_of_events_has_events() {
    let fields = json!({ "type": "object", "properties": { "event": {}, "data": {} } });
    for (content, expected) in [
        (json!({ "schema": { "type": "string", "enum": ["word"] } }), "data: word\n\n"),
        (json!({ "schema": { "type": "object" }, "example": { "a": 1 } }), "data: {\"a\":1}\n\n"),
        (
            json!({ "schema": fields, "example": { "event": "sold", "data": "one\ntwo" } }),
            "event: sold\ndata: one\ndata: two\n\n",
        ),
        (json!({ "example": [1, 2] }), "data: 1\n\ndata: 2\n\n"),
        (json!({ "example": "event: sold\ndata: 1" }), "event: sold\ndata: 1\n\n"),
    ] {
        let mock = small(json!({ "/events": answered(json!({ "text/event-stream": content })) }), json!({}));
        let reply = fetch_url(&format!("http://{}/events", mock.address())).await;
        assert_eq!((reply.status().as_u16(), reply.text().await.unwrap().as_str()), (200, expected));
    }
}
