//! The start page, the API reference and the OpenAPI document.

use std::collections::{BTreeSet, HashMap};

use reqwest::redirect::Policy;
use reqwest::{Method, StatusCode};
use serde_json::Value;

use crate::support::{TestApp, fetch_url, operations, test_on};

#[test_on(sqlite, postgres)]
async fn pages_need_neither_key_nor_version(app: TestApp) {
    for (path, media_type) in [
        ("/", "text/html; charset=utf-8"),
        ("/docs", "text/html; charset=utf-8"),
        ("/docs/explorer.js", "text/javascript; charset=utf-8"),
        ("/docs/loader.js", "text/javascript; charset=utf-8"),
        ("/docs/page.css", "text/css; charset=utf-8"),
        ("/docs/ticket.svg", "image/svg+xml"),
        ("/open?to=/orders/17630000000004", "text/html; charset=utf-8"),
        ("/openapi.json", "application/json"),
        ("/openapi.yaml", "application/yaml"),
    ] {
        let response = app.fetch(path).await;

        assert_eq!(
            (response.status(), &response.headers()["content-type"]),
            (StatusCode::OK, &media_type.parse().unwrap()),
            "{path}"
        );
        let length = response.headers()["content-length"].clone();
        assert_eq!(length.to_str().unwrap(), response.bytes().await.unwrap().len().to_string(), "{path}");
        let head = app.request("HEAD", path).anonymous().send_raw().await;
        assert_eq!((head.status(), &head.headers()["content-length"]), (StatusCode::OK, &length), "{path}");
        let post = app.request("POST", path).anonymous().send_raw().await;
        assert_eq!((post.status().as_u16(), &post.headers()["allow"]), (405, &"GET, HEAD, OPTIONS".parse().unwrap()), "{path}");
    }
}

#[test_on(sqlite, postgres)]
async fn slash_after_reference_leads_to_it(app: TestApp) {
    let url = format!("{}/docs/", app.address);
    let client = reqwest::Client::builder().redirect(Policy::none()).build().unwrap();

    for method in [Method::GET, Method::HEAD] {
        let response = client.request(method, &url).send().await.unwrap();

        // Relative, because a proxy may have added a prefix.
        let location = response.headers()["location"].to_str().unwrap();
        assert_eq!((response.status(), location), (StatusCode::PERMANENT_REDIRECT, "../docs"));
    }
    let followed = fetch_url(&url).await;
    assert_eq!((followed.status(), followed.url().path()), (StatusCode::OK, "/docs"));
}

/// The names and values of the style sheet's custom properties, on a light page and on a dark one.
async fn color_schemes(app: &TestApp) -> [HashMap<String, String>; 2] {
    let sheet = app.fetch("/docs/page.css").await.text().await.unwrap();
    let (light, rest) = sheet.split_once("@media (prefers-color-scheme: dark)").unwrap();
    let (dark, rest) = rest.split_once("\n}\n").unwrap();
    assert!(!rest.contains("@media"), "{rest}");
    let properties = |css: &str| {
        let lines = css.lines().filter_map(|line| line.trim().strip_suffix(';')?.split_once(": "));
        lines.map(|(name, value)| (name.to_owned(), value.to_owned())).collect::<HashMap<_, _>>()
    };
    let light = properties(light);
    [light.clone(), light.into_iter().chain(properties(dark)).collect()]
}

/// The relative luminance of a color such as `#14506b`, as WCAG 2.2 defines it.
fn luminance(color: &str) -> f64 {
    let channel = |start: usize| {
        let value = f64::from(u8::from_str_radix(&color[start..start + 2], 16).unwrap()) / 255.0;
        if value <= 0.04045 { value / 12.92 } else { ((value + 0.055) / 1.055).powf(2.4) }
    };
    0.2126 * channel(1) + 0.7152 * channel(3) + 0.0722 * channel(5)
}

#[test_on(sqlite, postgres)]
async fn texts_have_enough_contrast(app: TestApp) {
    // The colors of methods, and those of the heads of their operations.
    let methods = ["blue", "green", "orange", "yellow", "red", "purple", "gray"].map(|color| (color, format!("light-{color}")));
    let on_page = "fg fg2 fg3 light-fg placeholder-color primary-color secondary-color blue green orange yellow red purple gray pink \
        code-fg inline-code-fg code-property-color code-keyword-color code-operator-color";
    let on_page = on_page.split(' ').flat_map(|text| ["bg", "bg2", "bg3", "input-bg"].map(|background| (text, background, 4.5)));
    let on_heads = methods.iter().flat_map(|(color, head)| [*color, "fg", "light-fg"].map(|text| (text, head.as_str(), 4.5)));
    let others = [
        ("nav-text-color", "nav-bg-color", 4.5),
        ("nav-hover-text-color", "nav-hover-bg-color", 4.5),
        ("primary-btn-text-color", "primary-color", 4.5),
        ("selection-fg", "selection-bg", 4.5),
        // The edges of fields, and switches.
        ("border-color", "bg", 3.0),
        ("light-bg", "bg", 3.0),
    ];
    let pairs: Vec<_> = on_page.chain(on_heads).chain(others).collect();

    for (scheme, colors) in ["light", "dark"].into_iter().zip(color_schemes(&app).await) {
        for (text, background, needed) in &pairs {
            let [text_luminance, other] = [text, background].map(|name| luminance(&colors[&format!("--{name}")]));
            let contrast = (text_luminance.max(other) + 0.05) / (text_luminance.min(other) + 0.05);
            assert!(contrast >= *needed, "{scheme}: {text} on {background} has {contrast:.2}");
        }
    }
}

/// Otherwise a color of the reference's script would be shown, which does not know the color scheme.
#[test_on(sqlite, postgres)]
async fn style_sheet_has_each_color_of_the_reference(app: TestApp) {
    // Sizes, and the header, which the page does not have.
    let others =
        ["border-radius", "code-border-color", "dialog-z-index", "font", "header", "layout", "nav-path", "resp-area", "smal-"];
    let script = app.fetch("/docs/explorer.js").await.text().await.unwrap();
    let [light, dark] = color_schemes(&app).await;

    let used: BTreeSet<_> = script.split("var(--").skip(1).map(|rest| rest.split([')', ',']).next().unwrap()).collect();
    let colors = used.iter().filter(|name| !others.iter().any(|other| name.starts_with(other)));
    let missing: Vec<_> = colors.clone().filter(|name| !light.contains_key(&format!("--{name}"))).collect();

    assert!(missing.is_empty() && colors.count() > 30, "{missing:?}");
    assert_ne!(light["--bg"], dark["--bg"]);
}

#[test_on(sqlite, postgres)]
async fn pages_allow_scripts_of_this_server_only(app: TestApp) {
    for path in ["/", "/docs"] {
        let response = app.fetch(path).await;

        let policies: Vec<_> = response.headers().get_all("content-security-policy").iter().collect();
        let [policy] = policies.as_slice() else { panic!("{path}: {policies:?}") };
        let directives: Vec<&str> = policy.to_str().unwrap().split(';').map(str::trim).collect();
        for directive in ["default-src 'none'", "base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'"] {
            assert!(directives.contains(&directive), "{path}: {directive}");
        }
        let scripts = directives.iter().find(|directive| directive.starts_with("script-src"));
        assert_eq!(scripts.copied(), (path == "/docs").then_some("script-src 'self'"), "{path}");
        let html = response.text().await.unwrap();
        assert!(!html.contains("<style") && !html.contains(" style=") && !html.contains("://"), "{path}");
        assert_eq!(html.matches("<script").count(), html.matches("<script type=\"module\" src=").count(), "{path}");
    }
    // Responses of the API keep the policy that allows nothing.
    let response = app.request("GET", "/time").send().await;
    assert_eq!(response.header("content-security-policy"), "default-src 'none'; frame-ancestors 'none'");
}

#[test_on(sqlite, postgres)]
async fn known_page_is_not_sent_again(app: TestApp) {
    for path in ["/", "/docs", "/docs/explorer.js", "/openapi.json", "/openapi.yaml"] {
        let first = app.fetch(path).await;
        let tag = first.headers()["etag"].clone();
        assert_eq!(first.headers()["cache-control"], "public, no-cache", "{path}");

        let request = |tag: &str| app.request("GET", path).anonymous().header("If-None-Match", tag).send_raw();
        let (known, other) = (request(tag.to_str().unwrap()).await, request("\"another\"").await);

        assert_eq!((known.status(), &known.headers()["etag"]), (StatusCode::NOT_MODIFIED, &tag), "{path}");
        assert!(!known.headers().contains_key("content-type") && known.text().await.unwrap().is_empty(), "{path}");
        assert_eq!(other.status(), StatusCode::OK, "{path}");
    }
}

#[test_on(sqlite, postgres)]
async fn document_is_the_contract_with_code_samples(app: TestApp) {
    let mut document: Value = app.fetch("/openapi.json").await.json().await.unwrap();
    assert_eq!(document["servers"][0]["url"], app.state.settings.public_url);
    document["servers"].as_array_mut().unwrap().remove(0);

    let mut count = 0;
    for operation in operations() {
        let path = document["paths"][&operation.path].as_object_mut().unwrap();
        let samples = path[&operation.method.to_lowercase()].as_object_mut().unwrap().remove("x-code-samples").unwrap();
        let samples = samples.as_array().unwrap();
        let labels: Vec<_> = samples.iter().map(|sample| sample["label"].as_str().unwrap()).collect();
        assert_eq!(labels, ["curl", "Rust", "TypeScript", "Python"], "{}", operation.id);
        for sample in samples {
            let source = sample["source"].as_str().unwrap();
            assert!(source.contains(&app.state.settings.public_url) && !source.contains("/{"), "{source}");
            assert_eq!(source.contains("X-API-Key"), !operation.scopes.is_empty(), "{source}");
            assert_eq!(source.contains("response.pdf"), operation.path.ends_with("tickets.pdf"), "{source}");
        }
        count += 1;
    }
    assert!(count > 160, "only {count}");
    assert_eq!(document, boxoffice::contract::load().unwrap().document);
}

#[test_on(sqlite, postgres)]
async fn document_is_the_same_in_yaml(app: TestApp) {
    let json: Value = app.fetch("/openapi.json").await.json().await.unwrap();
    let yaml: Value = serde_yaml_ng::from_str(&app.fetch("/openapi.yaml").await.text().await.unwrap()).unwrap();

    assert_eq!(yaml, json);
}

#[test_on(sqlite, postgres)]
async fn reference_loads_files_that_exist(app: TestApp) {
    for page in ["/", "/docs"] {
        let html = app.fetch(page).await.text().await.unwrap();
        let references: Vec<_> = ["src=\"", "href=\"", "spec-url=\""]
            .into_iter()
            .flat_map(|attribute| html.split(attribute).skip(1))
            .map(|rest| rest.split('"').next().unwrap())
            .collect();
        assert!(references.len() >= 3, "{references:?}");
        for reference in references {
            let address = reqwest::Url::parse(&app.address).unwrap().join(page).unwrap().join(reference).unwrap();
            assert_eq!(fetch_url(address.as_str()).await.status(), StatusCode::OK, "{page}: {reference}");
        }
    }
}

#[test_on(sqlite, postgres)]
async fn page_of_mail_links_is_the_same_for_all(app: TestApp) {
    let response = app.fetch("/open?to=/orders/17630000000004").await;

    let policy = response.headers()["content-security-policy"].to_str().unwrap().to_owned();
    assert!(policy.starts_with("default-src 'none'; style-src 'sha256-") && !policy.contains("unsafe"), "{policy}");
    assert_eq!(response.headers()["referrer-policy"], "no-referrer");
    let html = response.text().await.unwrap();
    assert!(html.contains("Box office") && html.contains("lang=\"fr\"") && !html.contains("<script"), "{html}");
    assert_eq!(app.fetch("/open?to=%3Cscript%3E").await.text().await.unwrap(), html);
}
