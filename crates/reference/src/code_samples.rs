//! Code samples for each operation: the request of the document's examples with curl and in Rust, TypeScript and Python.

use std::fmt::Write as _;

use boxoffice_openapi::response::{essence, is_text};
use boxoffice_openapi::{
    Contract, Direction, ExampleUse, Operation, Parameter, ParameterLocation, Sampler, Schema, SecurityScheme, to_plain_string,
};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Map, Value, json};

/// The extension that renderers show samples of.
const CODE_SAMPLES: &str = "x-code-samples";
/// The text in place of a credential.
const YOUR_KEY: &str = "YOUR_KEY";
/// Everything but the unreserved characters (RFC 3986, section 2.3).
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// Adds samples to the operations that have none. An operation whose body must not be JSON gets none.
pub fn add(document: &mut Value, contract: &Contract, address: &str) {
    for operation in contract.operations() {
        let Some(node) = document.pointer_mut(&operation.pointer).and_then(Value::as_object_mut) else { continue };
        let is_written = [CODE_SAMPLES, "x-codeSamples"].iter().any(|name| node.contains_key(*name));
        if let Some(request) = SampleRequest::new(contract, operation, address).filter(|_| !is_written) {
            node.insert(CODE_SAMPLES.to_owned(), request.samples());
        }
    }
}

/// The request of an operation with its required arguments.
struct SampleRequest {
    /// In lower case.
    method: String,
    url: String,
    headers: Vec<(String, String)>,
    body: Option<Value>,
    /// The file that the response is stored in, if it is not a text.
    file: Option<String>,
}

impl SampleRequest {
    fn new(contract: &Contract, operation: &Operation, address: &str) -> Option<Self> {
        let mut headers = Vec::new();
        let mut query = Vec::new();
        let mut cookies = Vec::new();
        for scheme in operation.security.first().into_iter().flatten() {
            match scheme {
                SecurityScheme::Authorization(scheme) => {
                    headers.push(("Authorization".to_owned(), format!("{scheme} {YOUR_KEY}")))
                }
                SecurityScheme::Key(ParameterLocation::Query, name) => query.push((name.clone(), YOUR_KEY.to_owned())),
                SecurityScheme::Key(ParameterLocation::Cookie, name) => cookies.push(format!("{name}={YOUR_KEY}")),
                SecurityScheme::Key(_, name) => headers.push((name.clone(), YOUR_KEY.to_owned())),
            }
        }
        if operation.needs_version {
            let version = contract.document["info"]["version"].as_str().unwrap_or_default();
            headers.push(("X-Client-Version".to_owned(), version.to_owned()));
        }
        let mut path = operation.path.clone();
        for parameter in operation.parameters.iter().filter(|parameter| parameter.required) {
            let text = plain_text(&example_of(contract, parameter));
            match parameter.location {
                ParameterLocation::Path => path = path.replace(&format!("{{{}}}", parameter.name), &escape(&text)),
                ParameterLocation::Query => query.push((parameter.name.clone(), text)),
                ParameterLocation::Header => headers.push((parameter.name.clone(), text)),
                ParameterLocation::Cookie => cookies.push(format!("{}={text}", parameter.name)),
            }
        }
        if !cookies.is_empty() {
            headers.push(("Cookie".to_owned(), cookies.join("; ")));
        }
        let body = match &operation.body {
            None => None,
            Some(body) => {
                let content = body.contents.iter().find(|content| content.is_json())?;
                headers.push(("Content-Type".to_owned(), content.media_type.clone()));
                let schema = content.schema.as_deref();
                let example = content.examples.values().next().cloned();
                Some(example.unwrap_or_else(|| schema.map(|schema| sample(contract, schema)).unwrap_or_default()))
            }
        };
        let query: Vec<_> = query.iter().map(|(name, text)| format!("{}={}", escape(name), escape(text))).collect();
        let separator = if query.is_empty() { "" } else { "?" };
        let url = format!("{address}{path}{separator}{}", query.join("&"));
        Some(Self { method: operation.method.to_lowercase(), url, headers, body, file: file_of_response(operation) })
    }

    fn samples(&self) -> Value {
        let sample = |lang: &str, label: &str, source: String| json!({ "lang": lang, "label": label, "source": source });
        json!([
            sample("shell", "curl", self.curl()),
            sample("rust", "Rust", self.rust()),
            sample("typescript", "TypeScript", self.typescript()),
            sample("python", "Python", self.python()),
        ])
    }

    fn curl(&self) -> String {
        let mut command = format!("curl {}", shell_text(&self.url));
        let implied = if self.body.is_some() { "post" } else { "get" };
        if self.method != implied {
            let _ = write!(command, " \\\n  --request {}", self.method.to_uppercase());
        }
        for (name, text) in &self.headers {
            let _ = write!(command, " \\\n  --header {}", shell_text(&format!("{name}: {text}")));
        }
        if let Some(body) = &self.body {
            let _ = write!(command, " \\\n  --data {}", shell_text(&pretty(body, 0)));
        }
        if let Some(file) = &self.file {
            let _ = write!(command, " \\\n  --fail \\\n  --output {}", shell_text(file));
        }
        command
    }

    /// With reqwest and its feature `json`.
    fn rust(&self) -> String {
        let mut code = format!("let response = reqwest::Client::new()\n    .{}({})\n", self.method, quoted(&self.url));
        for (name, text) in self.headers_beside_body() {
            let _ = writeln!(code, "    .header({}, {})", quoted(name), quoted(text));
        }
        if let Some(body) = &self.body {
            let _ = writeln!(code, "    .json(&serde_json::json!({}))", pretty(body, 4));
        }
        code += "    .send()\n    .await?;\n";
        match &self.file {
            None => code + "println!(\"{} {}\", response.status(), response.text().await?);",
            Some(file) => format!("{code}std::fs::write({}, response.error_for_status()?.bytes().await?)?;", quoted(file)),
        }
    }

    fn typescript(&self) -> String {
        let mut code = format!("const response = await fetch({}, {{\n", quoted(&self.url));
        let _ = writeln!(code, "  method: {},", quoted(&self.method.to_uppercase()));
        let headers: Map<String, Value> =
            self.headers.iter().map(|(name, text)| (name.clone(), Value::from(text.as_str()))).collect();
        if !headers.is_empty() {
            let _ = writeln!(code, "  headers: {},", pretty(&headers.into(), 2));
        }
        if let Some(body) = &self.body {
            let _ = writeln!(code, "  body: JSON.stringify({}),", pretty(body, 2));
        }
        code += "});\n";
        match &self.file {
            None => code + "console.log(response.status, await response.text());",
            Some(file) => {
                code += "if (!response.ok) throw new Error(`status ${response.status}`);\n";
                let write = format!("await writeFile({}, Buffer.from(await response.arrayBuffer()));", quoted(file));
                format!("import {{ writeFile }} from \"node:fs/promises\";\n\n{code}{write}")
            }
        }
    }

    /// With the package requests.
    fn python(&self) -> String {
        let mut code = format!("import requests\n\nresponse = requests.{}(\n    {},\n", self.method, quoted(&self.url));
        let headers: Map<String, Value> =
            self.headers_beside_body().map(|(name, text)| (name.to_owned(), Value::from(text))).collect();
        if !headers.is_empty() {
            let _ = writeln!(code, "    headers={},", python_literal(&headers.into(), 4));
        }
        if let Some(body) = &self.body {
            let _ = writeln!(code, "    json={},", python_literal(body, 4));
        }
        code += "    timeout=30,\n)\n";
        match &self.file {
            None => code + "print(response.status_code, response.text)",
            Some(file) => {
                format!(
                    "{code}response.raise_for_status()\nwith open({}, \"wb\") as file:\n    file.write(response.content)",
                    quoted(file)
                )
            }
        }
    }

    /// Returns the headers, without the media type of JSON, which libraries add with the body.
    fn headers_beside_body(&self) -> impl Iterator<Item = (&str, &str)> {
        let is_implied = |name: &str, text: &str| name == "Content-Type" && text == "application/json";
        let headers = self.headers.iter().map(|(name, text)| (name.as_str(), text.as_str()));
        headers.filter(move |(name, text)| !is_implied(name, text))
    }
}

/// Returns the name of a file for the successful response of an operation, such as `response.pdf`, unless it is a text or empty.
fn file_of_response(operation: &Operation) -> Option<String> {
    let success = operation.responses.iter().find(|response| (200..300).contains(response.statuses.start()))?;
    let content = success.contents.first()?;
    let media_type = essence(&content.media_type).to_lowercase();
    let (kind, subtype) = media_type.split_once('/')?;
    let is_text = content.is_json() || is_text(&media_type) || kind == "multipart";
    let extension = if subtype.chars().all(|letter| letter.is_ascii_alphanumeric()) { subtype } else { "bin" };
    (!is_text).then(|| format!("response.{extension}"))
}

/// Returns the first example of a parameter, or else a valid value.
fn example_of(contract: &Contract, parameter: &Parameter) -> Value {
    parameter.examples.values().next().cloned().unwrap_or_else(|| sample(contract, &parameter.schema))
}

/// Returns a valid value, with the examples of the schema; null if none was found.
fn sample(contract: &Contract, schema: &Schema) -> Value {
    let sampler = Sampler::new(&contract.document, &schema.raw, Direction::Request);
    sampler.and_then(|sampler| sampler.sample_with(0, ExampleUse::Always)).unwrap_or_default()
}

/// Returns the text of a parameter's value. The items of an array are separated by commas.
fn plain_text(value: &Value) -> String {
    match value {
        Value::Array(items) => items.iter().map(to_plain_string).collect::<Vec<_>>().join(","),
        value => to_plain_string(value),
    }
}

fn escape(text: &str) -> String {
    utf8_percent_encode(text, ESCAPED).to_string()
}

fn shell_text(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// Returns a string literal, which all four languages read alike.
fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

/// Returns JSON on several lines, the first of them without indentation.
fn pretty(value: &Value, indentation: usize) -> String {
    format!("{value:#}").replace('\n', &format!("\n{}", " ".repeat(indentation)))
}

fn python_literal(value: &Value, indentation: usize) -> String {
    let (inner, outer) = (" ".repeat(indentation + 4), " ".repeat(indentation));
    let lines = |open: char, lines: Vec<String>, close: char| match lines.as_slice() {
        [] => format!("{open}{close}"),
        lines => {
            let lines: String = lines.iter().map(|line| format!("{inner}{line},\n")).collect();
            format!("{open}\n{lines}{outer}{close}")
        }
    };
    match value {
        Value::Null => "None".to_owned(),
        Value::Bool(true) => "True".to_owned(),
        Value::Bool(false) => "False".to_owned(),
        Value::Array(items) => lines('[', items.iter().map(|item| python_literal(item, indentation + 4)).collect(), ']'),
        Value::Object(properties) => {
            let line = |(name, value): (&String, &Value)| format!("{}: {}", quoted(name), python_literal(value, indentation + 4));
            lines('{', properties.iter().map(line).collect(), '}')
        }
        scalar => scalar.to_string(),
    }
}
