//! Faults of HTTP and JSON.

use serde_json::json;

use super::proxy::{Answer, Fault, fault};

const REGION: &[&str] = &["region_get", "region_list"];

fn method_faults() -> Vec<Fault> {
    vec![
        fault("methods", "HEAD is 405")
            .affects(REGION)
            .request("region_get", |call, _| (call.method == "HEAD").then(|| Answer::new(405, &json!({})))),
        fault("methods", "HEAD is 404")
            .affects(REGION)
            .request("region_get", |call, _| (call.method == "HEAD").then(|| Answer::new(404, &json!({})))),
        fault("methods", "HEAD is 204").affects(REGION).request("region_get", |call, _| {
            let mut answer = Answer::new(204, &json!({}));
            answer.empty(204);
            (call.method == "HEAD").then_some(answer)
        }),
        fault("methods", "HEAD lacks the tag").affects(REGION).response("region_get", |call, answer, _| {
            if call.method == "HEAD" {
                answer.headers.remove("etag");
            }
        }),
        fault("methods", "HEAD has another media type").affects(REGION).response("region_get", |call, answer, _| {
            if call.method == "HEAD" {
                answer.set_header("content-type", "text/plain");
            }
        }),
        fault("methods", "HEAD has another length").affects(REGION).response("region_get", |call, answer, _| {
            if call.method == "HEAD" {
                answer.set_header("content-length", "3");
            }
        }),
        fault("methods", "HEAD needs no key").affects(REGION).response("region_get", |call, answer, _| {
            if call.method == "HEAD" && answer.status == 401 {
                answer.status = 200;
            }
        }),
        fault("methods", "OPTIONS is 500")
            .affects(REGION)
            .request("", |call, _| (call.method == "OPTIONS").then(|| Answer::new(500, &json!({})))),
        fault("methods", "OPTIONS allows DELETE").affects(REGION).request("", |call, _| {
            (call.method == "OPTIONS" && call.path.ends_with("/regions")).then(|| {
                let mut answer = Answer::new(200, &json!({}));
                answer.set_header("allow", "GET, HEAD, POST, DELETE, OPTIONS");
                answer
            })
        }),
        fault("methods", "OPTIONS lacks GET").affects(REGION).request("", |call, _| {
            (call.method == "OPTIONS").then(|| {
                let mut answer = Answer::new(204, &json!({}));
                answer.empty(204);
                answer.set_header("allow", "OPTIONS");
                answer
            })
        }),
    ]
}

fn body_faults() -> Vec<Fault> {
    vec![
        fault("bodies", "a key is repeated").affects(REGION).response_with("region_get", 200, |answer| {
            answer.replace_text("{\"self\"", "{\"name\":\"Another\",\"self\"");
        }),
        fault("bodies", "a key of an error is repeated").affects(REGION).response_with("region_get", 404, |answer| {
            answer.replace_text("{\"error\"", "{\"error\":\"Another\",\"error\"");
        }),
        fault("bodies", "a byte order mark comes first").affects(REGION).response("region_list", |_, answer, _| {
            answer.body = [b"\xef\xbb\xbf", &*answer.body].concat().into();
        }),
        fault("bodies", "UTF-8 is broken").affects(REGION).response_with("region_get", 200, |answer| {
            answer.body = answer
                .body
                .iter()
                .flat_map(|byte| if *byte == b'A' { vec![0xff] } else { vec![*byte] })
                .collect::<Vec<_>>()
                .into();
        }),
        fault("bodies", "the text is in ISO-8859-1").affects(&["zone_create", "zone_update"]).response(
            "zone_get zone_create zone_update",
            |_, answer, _| {
                let text = String::from_utf8_lossy(&answer.body).into_owned();
                answer.body = text.chars().map(|c| u8::try_from(u32::from(c)).unwrap_or(b'?')).collect::<Vec<_>>().into();
            },
        ),
        fault("bodies", "a surrogate is alone").affects(REGION).response_with("region_get", 200, |answer| {
            answer.replace_text("\"city\":\"", "\"city\":\"\\ud800");
        }),
        fault("bodies", "a repeated key in a request is accepted").request("region_create", |call, _| {
            if let Ok(body) = serde_json::from_slice::<serde_json::Value>(&call.body) {
                call.body = body.to_string().into();
            }
            None
        }),
        fault("bodies", "broken UTF-8 in a request is accepted").request("region_create", |call, _| {
            call.body = String::from_utf8_lossy(&call.body).into_owned().into();
            None
        }),
        fault("bodies", "the connection ends before the response").affects(REGION).response("region_get", |call, answer, _| {
            if answer.status == 200 && call.method == "GET" {
                answer.status = 0;
            }
        }),
        fault("bodies", "204 has a media type").response_with("region_delete", 204, |answer| {
            answer.set_header("content-type", "application/json");
        }),
    ]
}

fn header_faults() -> Vec<Fault> {
    vec![
        fault("headers", "x-request-id is missing").affects(REGION).response("*", |_, answer, _| {
            answer.headers.remove("x-request-id");
        }),
        fault("headers", "x-request-id is missing from errors").affects(REGION).response("*", |_, answer, _| {
            if answer.status >= 400 {
                answer.headers.remove("x-request-id");
            }
        }),
        fault("headers", "x-request-id is always the same").affects(REGION).response("*", |_, answer, _| {
            answer.set_header("x-request-id", "8e03978e-40d5-43dd-bc93-6894a57f9324");
        }),
        fault("headers", "private response may be cached by all").response("account_get", |_, answer, _| {
            answer.set_header("cache-control", "public, max-age=3600");
        }),
        fault("headers", "secret may be stored").response("session_create integration_create", |_, answer, _| {
            answer.headers.remove("cache-control");
        }),
        fault("headers", "private response is fresh for an hour").response("order_get", |_, answer, _| {
            answer.set_header("cache-control", "max-age=3600");
        }),
        fault("headers", "any site may read with credentials").affects(REGION).response("*", |call, answer, _| {
            let origin = call.header("origin").unwrap_or("*").to_owned();
            answer.set_header("access-control-allow-origin", &origin);
            answer.set_header("access-control-allow-credentials", "true");
        }),
        fault("headers", "Location is of another resource").response_with("region_create", 201, |answer| {
            answer.set_header("location", "/regions/17637000000001");
        }),
        fault("headers", "Location is absolute at another server").response_with("zone_create", 201, |answer| {
            answer.set_header("location", "http://internal.example:9000/zones/17637000000001");
        }),
        fault("headers", "Allow is missing").affects(REGION).response("", |_, answer, _| {
            answer.headers.remove("allow");
        }),
        fault("headers", "unknown parameters are not named").affects(REGION).response("*", |_, answer, _| {
            answer.headers.remove("x-ignored-parameters");
        }),
    ]
}

pub fn table() -> Vec<Fault> {
    [method_faults(), body_faults(), header_faults()].into_iter().flatten().collect()
}
