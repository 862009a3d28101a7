//! The HTML of the pages, and the files that they load.

use maud::{DOCTYPE, Markup, PreEscaped, html};
use serde_json::Value;

/// Path of the reference.
pub const REFERENCE: &str = "/docs";
/// Path of the reference with a slash, which leads to it.
pub const REFERENCE_FOLDER: &str = "/docs/";
/// Path of the script that renders the reference.
pub const EXPLORER: &str = "/docs/explorer.js";
/// Path of the script that loads the document into the reference.
pub const LOADER: &str = "/docs/loader.js";
/// Path of the style sheet.
pub const STYLE_SHEET: &str = "/docs/page.css";
/// Path of the icon.
pub const ICON: &str = "/docs/ticket.svg";

/// OpenAPI Explorer (`assets/README.md`).
pub const EXPLORER_SCRIPT: &str = include_str!("../assets/openapi-explorer.min.js");
/// Loads the document, and fills in required headers. It must run before OpenAPI Explorer.
pub const LOADER_SCRIPT: &str = include_str!("../assets/loader.js");
/// The style sheet of both pages.
pub const STYLES: &str = include_str!("../assets/page.css");
/// The icon of both pages.
pub const ICON_IMAGE: &str = include_str!("../assets/ticket.svg");

/// Returns the start page: the purpose of the server, and links to the rest.
pub fn start_page(document: &Value) -> String {
    let info = &document["info"];
    let content = html! {
        main {
            h1 { (title(document)) }
            p { (first_paragraph(info["description"].as_str().unwrap_or_default())) }
            ul.links {
                li { a href="docs" { "API reference" } span { "every operation with examples, code samples and a form to try it" } }
                li { a href="openapi.yaml" { "openapi.yaml" } span { "the OpenAPI document, for generators and tools" } }
                li { a href="openapi.json" { "openapi.json" } span { "the same document in JSON" } }
            }
            p.small { "Version " (info["version"].as_str().unwrap_or_default()) }
        }
    };
    page(title(document), &content)
}

/// Returns the reference. The text inside the component is shown until its script is loaded.
pub fn reference_page(document: &Value) -> String {
    let title = format!("{}: API reference", title(document));
    let content = html! {
        openapi-explorer server-url="." hide-server-selection="true" hide-components="true"
            table="false" default-schema-tab="body" {
            p.loading { "The reference is loading. Without JavaScript, read the " a href="openapi.yaml" { "OpenAPI document" } "." }
        }
        script type="module" src="docs/loader.js" {}
        script type="module" src="docs/explorer.js" {}
    };
    page(&title, &content)
}

fn page(title: &str, content: &Markup) -> String {
    let html = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { (title) }
                link rel="icon" type="image/svg+xml" href="docs/ticket.svg";
                link rel="stylesheet" href="docs/page.css";
            }
            body { (content) }
        }
    };
    PreEscaped::into_string(html)
}

fn title(document: &Value) -> &str {
    document["info"]["title"].as_str().unwrap_or("API")
}

/// Returns the first paragraph of a description in Markdown, without the marks of code and emphasis.
fn first_paragraph(description: &str) -> String {
    let paragraph = description.split("\n\n").find(|paragraph| !paragraph.trim_start().starts_with('#')).unwrap_or_default();
    paragraph.replace(['`', '*'], "")
}
