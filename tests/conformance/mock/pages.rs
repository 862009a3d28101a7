//! The pages of the mock.

use boxoffice_mock::MockSettings;
use serde_json::{Value, json};

use crate::support::{MockServer, fetch_url};

async fn get(mock: &MockServer, path: &str) -> reqwest::Response {
    fetch_url(&format!("http://{}{path}", mock.address())).await
}

#[tokio::test]
async fn pages_show_the_served_document() {
    let mock = MockServer::of(
        json!({
            "openapi": "3.0.3",
            "info": { "title": "Trees & <shrubs>", "version": "7", "description": "A *short* text.\n\nAnother one." },
            "servers": [{ "url": "https://trees.example/v1" }],
            "paths": { "/trees/{tree}": { "put": {
                "security": [{ "token": [] }],
                "parameters": [
                    { "name": "tree", "in": "path", "required": true, "schema": { "type": "string" }, "example": "an oak/1" },
                    { "name": "kinds", "in": "query", "required": true, "schema": { "type": "array" }, "example": ["a", "b"] },
                    { "name": "depth", "in": "query", "schema": { "type": "integer" } },
                ],
                "requestBody": { "content": { "application/json": { "schema": {}, "example": { "it's": [true, null, {}, 1.5] } } } },
                "responses": { "204": { "description": "" } },
            } } },
            "components": { "securitySchemes": { "token": { "type": "http", "scheme": "bearer" } } },
        }),
        MockSettings::default(),
    );

    let start = get(&mock, "/").await.text().await.unwrap();
    let document: Value = get(&mock, "/openapi.json").await.json().await.unwrap();

    assert!(start.contains("<h1>Trees &amp; &lt;shrubs&gt;</h1><p>A short text.</p>"), "{start}");
    assert!(get(&mock, "/docs").await.text().await.unwrap().contains("<title>Trees &amp; &lt;shrubs&gt;: API reference</title>"));
    let samples = &document["paths"]["/trees/{tree}"]["put"]["x-code-samples"];
    let samples: Vec<_> = samples.as_array().unwrap().iter().map(|sample| sample["source"].as_str().unwrap()).collect();
    // The port is known only after the start.
    let url = "http://127.0.0.1:0/trees/an%20oak%2F1?kinds=a%2Cb";
    let expected = [
        r#"curl 'URL' \
  --request PUT \
  --header 'Authorization: bearer YOUR_KEY' \
  --header 'Content-Type: application/json' \
  --data '{
  "it'\''s": [
    true,
    null,
    {},
    1.5
  ]
}'"#,
        r#"let response = reqwest::Client::new()
    .put("URL")
    .header("Authorization", "bearer YOUR_KEY")
    .json(&serde_json::json!({
      "it's": [
        true,
        null,
        {},
        1.5
      ]
    }))
    .send()
    .await?;
println!("{} {}", response.status(), response.text().await?);"#,
        r#"const response = await fetch("URL", {
  method: "PUT",
  headers: {
    "Authorization": "bearer YOUR_KEY",
    "Content-Type": "application/json"
  },
  body: JSON.stringify({
    "it's": [
      true,
      null,
      {},
      1.5
    ]
  }),
});
console.log(response.status, await response.text());"#,
        r#"import requests

response = requests.put(
    "URL",
    headers={
        "Authorization": "bearer YOUR_KEY",
    },
    json={
        "it's": [
            True,
            None,
            {},
            1.5,
        ],
    },
    timeout=30,
)
print(response.status_code, response.text)"#,
    ];
    assert_eq!(samples, expected.map(|sample| sample.replace("URL", url)));
}

#[tokio::test]
async fn path_of_the_document_takes_precedence() {
    let answer =
        json!({ "responses": { "200": { "description": "", "content": { "application/json": { "example": "theirs" } } } } });
    let document = json!({ "openapi": "3.0.3", "info": {}, "paths": { "/docs": { "get": answer } } });
    let mock = MockServer::of(document, MockSettings::default());

    assert_eq!(get(&mock, "/docs").await.text().await.unwrap(), "\"theirs\"");
    assert!(get(&mock, "/").await.text().await.unwrap().contains("<h1>API</h1>"));
}
