//! Tests of requests to other APIs.

use boxoffice_openapi::{Contract, ParameterLocation, RequestError};
use http::HeaderMap;
use serde_json::{Value, json};

use super::{body_errors, contract, errors_of, operation, recursive_schemas, ref_to};

#[test]
fn parses_parameters_in_every_location() {
    let parameter =
        |name: &str, location: &str, schema: Value| json!({ "name": name, "in": location, "required": true, "schema": schema });
    let parameters = json!([
        parameter("thing", "path", json!({ "type": "integer" })),
        parameter("page", "query", json!({ "type": "integer", "minimum": 1, "maximum": 9 })),
        parameter("X-Trace", "header", json!({ "type": "string", "maxLength": 3 })),
        parameter("theme", "cookie", json!({ "enum": ["dark", "light", ""] })),
        parameter("Accept", "header", json!({ "type": "integer" })),
    ]);
    let contract = operation(parameters, json!(null));
    let cookie = ("cookie", "a=b; theme=dark");
    assert_eq!(errors_of(&contract, "/things/1?page=2", &[("x-trace", "abc"), cookie], ""), [""; 0]);
    assert_eq!(errors_of(&contract, "/things/1", &[], ""), ["-page", "-X-Trace", "-theme"]);
    assert_eq!(
        errors_of(&contract, "/things/x?page=1&page=2", &[("x-trace", "abcd"), ("cookie", "theme=red")], ""),
        [
            "thing must be an integer",
            "page is given more than once",
            "X-Trace must have at most 3 characters",
            "theme must be one of: dark, light, \"\"",
        ]
    );
    let beyond = ["10", "1e2", "99999999999999999999", "1e400"];
    for page in beyond {
        let errors = errors_of(&contract, &format!("/things/1?page={page}"), &[("x-trace", "abc"), cookie], "");
        assert_eq!(errors, ["page must be at most 9"], "{page}");
    }
    let errors = errors_of(&contract, "/things/99999999999999999999?page=2", &[("x-trace", "abc"), cookie], "");
    assert_eq!(errors, ["thing has too many digits"]);
    for spelling in ["01", "+1", "%2B1", "%201", "1.0", "1e0"] {
        let errors = errors_of(&contract, &format!("/things/{spelling}?page=2"), &[("x-trace", "abc"), cookie], "");
        assert_eq!(errors, ["thing must be written as 1"], "{spelling}");
    }
    let places: Vec<_> =
        contract.find("POST", "/things/1").unwrap().parameters.iter().map(|parameter| parameter.location).collect();
    assert_eq!(places, [ParameterLocation::Path, ParameterLocation::Query, ParameterLocation::Header, ParameterLocation::Cookie]);
}

#[test]
fn parses_parameters_of_every_style() {
    let numbers = json!({ "type": "array", "items": { "type": "integer" }, "maxItems": 2 });
    let point =
        json!({ "type": "object", "required": ["x"], "properties": { "x": { "type": "integer" }, "y": { "type": "integer" } } });
    let either = json!({ "oneOf": [{ "type": "integer", "maximum": 9 }, { "type": "string", "pattern": "^a" }, numbers] });
    for (location, style, explode, schema, valid, invalid, message) in [
        ("query", "form", true, &numbers, "?p=1&p=2", "?p=1&p=b", "p must be an integer"),
        ("query", "form", false, &numbers, "?p=1,2", "?p=1%2C2,3", "p must have at most 2 items"),
        ("query", "spaceDelimited", false, &numbers, "?p=1%202", "?p=1+b", "p must be an integer"),
        ("query", "pipeDelimited", false, &numbers, "?p=1|2", "?p=1|b", "p must be an integer"),
        ("query", "deepObject", true, &point, "?p[x]=1&p[y]=2", "?p[y]=2", "p lacks x"),
        ("query", "form", true, &point, "?x=1&y=2", "?y=2", "p lacks x"),
        ("query", "form", false, &point, "?p=x,1,y,2", "?p=x,a", "p must be an integer (at x)"),
        ("query", "form", true, &either, "?p=abc", "?p=b", "p must be an integer"),
        ("path", "simple", false, &numbers, "1,2", "1,b", "p must be an integer"),
        ("path", "simple", true, &point, "x=1,y=2", "y=2", "p lacks x"),
        ("path", "label", true, &numbers, ".1.2", ".1.b", "p must be an integer"),
        ("path", "label", false, &json!({ "type": "integer" }), ".1", ".b", "p must be an integer"),
        ("path", "matrix", false, &numbers, ";p=1,2", ";p=1,b", "p must be an integer"),
        ("path", "matrix", true, &numbers, ";p=1;p=2", ";p=1;p=b", "p must be an integer"),
        ("path", "matrix", false, &json!({ "type": "integer" }), ";p=1", ";p=b", "p must be an integer"),
        ("path", "label", false, &json!({ "type": "integer" }), ".1", "1", "p must begin with ."),
        ("path", "label", false, &json!({ "type": "string", "minLength": 2 }), "..a", ".a", "p must have at least 2 characters"),
        ("path", "matrix", false, &json!({ "type": "integer" }), ";p=1", "1", "p must begin with ;p"),
        ("path", "matrix", true, &point, ";x=1;y=2", "x=1;y=2", "p must begin with ;"),
    ] {
        let parameter =
            json!({ "name": "p", "in": location, "required": true, "style": style, "explode": explode, "schema": schema });
        let path = if location == "path" { "/things/{p}" } else { "/things/1" };
        let operation = json!({ "post": { "parameters": [parameter], "responses": { "204": {} } } });
        let contract = contract(json!({ path: operation }), json!({}));
        let target = |text: &str| if location == "path" { format!("/things/{text}") } else { format!("/things/1{text}") };
        assert_eq!(errors_of(&contract, &target(valid), &[], ""), [""; 0], "{style} {valid}");
        assert_eq!(errors_of(&contract, &target(invalid), &[], ""), [message], "{style} {invalid}");
    }
}

/// Also of schemas that are composed, which declare the types of items and properties in their parts.
#[test]
fn serializes_what_it_parses() {
    let integer = json!({ "type": "integer" });
    let numbers = json!({ "anyOf": [{ "type": "array", "items": integer }, { "type": "boolean" }] });
    let point = json!({ "allOf": [
        { "type": "object", "required": ["x"], "properties": { "x": integer } },
        { "properties": { "y": { "oneOf": [integer, { "type": "string" }] } } },
    ] });
    let (numbers_value, point_value) = (json!([1, 2]), json!({ "x": 1, "y": "a b" }));
    for (location, style, explode, schema, value, expected) in [
        ("query", "form", true, &numbers, &numbers_value, "p=1 p=2"),
        ("query", "form", false, &numbers, &numbers_value, "p=1,2"),
        ("query", "spaceDelimited", false, &numbers, &numbers_value, "p=1 2"),
        ("query", "pipeDelimited", false, &numbers, &numbers_value, "p=1|2"),
        ("query", "form", true, &numbers, &json!(true), "p=true"),
        ("query", "deepObject", true, &point, &point_value, "p[x]=1 p[y]=a b"),
        ("query", "form", true, &point, &point_value, "x=1 y=a b"),
        ("query", "form", false, &point, &point_value, "p=x,1,y,a b"),
        ("path", "simple", false, &numbers, &numbers_value, "p=1,2"),
        ("path", "simple", true, &point, &point_value, "p=x=1,y=a b"),
        ("path", "label", true, &numbers, &numbers_value, "p=.1.2"),
        ("path", "label", true, &point, &point_value, "p=.x=1.y=a b"),
        ("path", "matrix", false, &numbers, &numbers_value, "p=;p=1,2"),
        ("path", "matrix", true, &numbers, &numbers_value, "p=;p=1;p=2"),
        ("path", "matrix", true, &point, &point_value, "p=;x=1;y=a b"),
        ("path", "matrix", false, &integer, &json!(7), "p=;p=7"),
        ("header", "simple", true, &point, &point_value, "p=x=1,y=a b"),
        ("cookie", "form", false, &numbers, &numbers_value, "p=1,2"),
    ] {
        let parameter = json!({ "name": "p", "in": location, "style": style, "explode": explode, "schema": schema });
        let post = json!({ "post": { "parameters": [parameter], "responses": { "204": {} } } });
        let path = if location == "path" { "/things/{p}" } else { "/things/1" };
        let contract = contract(json!({ path: post }), json!({}));
        let parameter = &contract.find("POST", "/things/1").unwrap().parameters[0];

        let texts = parameter.serialize(value);
        let raw = texts.iter().map(|(name, text)| (name.as_str().into(), text.as_str().into())).collect();
        let parsed = parameter.parse(&raw, &mut Vec::new()).unwrap();

        let sent: Vec<String> = texts.iter().map(|(name, text)| format!("{name}={text}")).collect();
        assert_eq!(sent.join(" "), expected, "{style}");
        assert_eq!(parsed.as_ref(), Some(value), "{style} {expected}");
        assert!(texts.iter().all(|(name, _)| parameter.is_sent_as(name)), "{style} {expected}");
    }
}

#[test]
fn parses_forms_of_composed_schemas() {
    let form = json!({ "allOf": [
        { "required": ["name"], "properties": { "name": { "type": "string" } } },
        { "required": ["pages"], "properties": { "pages": { "type": "integer" } } },
    ] });
    let contract = operation(json!([]), json!({ "application/x-www-form-urlencoded": { "schema": form } }));
    let errors = |body: &str| errors_of(&contract, "/things/1", &[("content-type", "application/x-www-form-urlencoded")], body);

    assert_eq!(errors("name=a&pages=7"), [""; 0]);
    assert_eq!(errors("pages=x"), ["-name", "pages must be an integer"]);
}

#[test]
fn validates_forms_as_a_whole() {
    let errors = |schema: Value, body: &str| {
        let contract = operation(json!([]), json!({ "application/x-www-form-urlencoded": { "schema": schema } }));
        errors_of(&contract, "/things/1", &[("content-type", "application/x-www-form-urlencoded")], body).join(" ")
    };
    let properties = json!({ "a": { "type": "integer" }, "b": { "type": "string" } });
    let closed = json!({ "properties": properties, "additionalProperties": false });
    let pair = json!({ "properties": properties, "minProperties": 2 });
    let free = json!({ "type": "object", "additionalProperties": { "type": "integer" } });
    let nested = json!({ "required": ["m"], "properties": { "m": { "type": "object" } }, "additionalProperties": false });
    for (schema, body, expected) in [
        (closed.clone(), "a=1&b=x", ""),
        (closed.clone(), "a=1&zz=x", "zz is not among the properties of the body"),
        (closed, "a=x&zz=x", "a must be an integer"),
        (pair.clone(), "a=1&b=x", ""),
        (pair, "a=1", "body must have at least 2 entries"),
        (free.clone(), "x=1", ""),
        (free, "x=abc", "x must be an integer"),
        (nested.clone(), "x=1", ""),
        (nested, "", "-m"),
    ] {
        assert_eq!(errors(schema.clone(), body), expected, "{schema} {body}");
    }
}

#[test]
fn object_in_a_form_may_be_json_or_its_members() {
    let address =
        json!({ "type": "object", "required": ["city"], "properties": { "city": { "type": "string", "minLength": 2 } } });
    let form =
        json!({ "type": "object", "required": ["address"], "properties": { "name": { "type": "string" }, "address": address } });
    let errors = |encoding: Value, body: &str| {
        let content = json!({ "application/x-www-form-urlencoded": { "schema": form, "encoding": encoding } });
        let contract = operation(json!([]), content);
        errors_of(&contract, "/things/1", &[("content-type", "application/x-www-form-urlencoded")], body).join(" ")
    };
    for (body, expected) in [
        ("name=x&city=Accra", ""),
        ("name=x&address={\"city\":\"Accra\"}", ""),
        ("name=x&city=A", "address must have at least 2 characters (at city)"),
        ("name=x&address={\"city\":\"A\"}", "address must have at least 2 characters (at city)"),
        ("name=x&address={}", "address lacks city"),
        ("name=x", "-address"),
    ] {
        assert_eq!(errors(json!({}), body), expected, "{body}");
    }
    let style = json!({ "address": { "style": "form", "explode": true } });
    assert_ne!(errors(style, "address={\"city\":\"Accra\"}"), "");
}

/// Sends a form in both media types. `values` are its names and texts.
fn form_errors(schema: &Value, values: &[(&str, &str)]) -> [Vec<String>; 2] {
    let content = json!({ "schema": schema });
    let form = json!({ "application/x-www-form-urlencoded": content, "multipart/form-data": content });
    let contract = operation(json!([]), form);
    let text: Vec<String> = values.iter().map(|(name, value)| format!("{name}={value}")).collect();
    let part =
        |(name, value): &(&str, &str)| format!("--X\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n");
    let parts: String = values.iter().map(part).collect();
    let errors = |media_type: &str, body: &str| errors_of(&contract, "/things/1", &[("content-type", media_type)], body);
    [
        errors("application/x-www-form-urlencoded", &text.join("&")),
        errors("multipart/form-data; boundary=X", &format!("{parts}--X--\r\n")),
    ]
}

#[test]
fn forms_have_the_values_of_any_branch() {
    let grant = |kind: &str, other: &str| {
        let properties = json!({ "grant_type": { "enum": [kind] }, other: { "type": "string" } });
        json!({ "type": "object", "required": ["grant_type", other], "properties": properties })
    };
    let other = json!({ "allOf": [{ "properties": { "scope": { "type": "string" } } }, { "properties": { "scope": { "maxLength": 3 } } }] });
    let form = json!({ "allOf": [{ "oneOf": [grant("password", "username"), grant("refresh_token", "token")] }, other] });

    for valid in [[("grant_type", "password"), ("username", "a")], [("grant_type", "refresh_token"), ("token", "a")]] {
        assert_eq!(form_errors(&form, &valid), [vec![""; 0], vec![]], "{valid:?}");
    }
    for invalid in [[("grant_type", "other"), ("token", "a")], [("grant_type", "password"), ("scope", "long")]] {
        let [urlencoded, multipart] = form_errors(&form, &invalid);
        assert!(!urlencoded.is_empty() && !multipart.is_empty(), "{invalid:?}");
    }
    let [urlencoded, multipart] = form_errors(&form, &[("grant_type", "password"), ("token", "a")]);
    assert!(!urlencoded.is_empty() && !multipart.is_empty(), "the form is also validated as a whole");
}

#[test]
fn property_of_one_branch_is_free_in_the_others() {
    let branch = |name: &str| json!({ "required": [name], "properties": { name: { "type": "integer" } } });
    let form = json!({ "type": "object", "anyOf": [branch("a"), branch("b")] });
    for valid in [[("a", "1"), ("b", "x")], [("a", "x"), ("b", "1")]] {
        assert_eq!(form_errors(&form, &valid), [vec![""; 0], vec![]], "{valid:?}");
    }
    let [urlencoded, multipart] = form_errors(&form, &[("a", "x"), ("b", "y")]);
    assert!(!urlencoded.is_empty() && !multipart.is_empty());
    let closed = |name: &str| {
        let mut branch = branch(name);
        branch["additionalProperties"] = json!(false);
        branch
    };
    let form = json!({ "type": "object", "anyOf": [closed("a"), closed("b")] });
    assert_eq!(form_errors(&form, &[("a", "x")]), [["a must be an integer"]; 2]);
}

#[test]
fn validates_multipart_forms_as_a_whole() {
    let properties = json!({
        "file": { "type": "string", "format": "binary", "maxLength": 3 },
        "name": { "type": "string" },
        "size": { "type": "integer" },
        "tags": { "type": "object", "required": ["a"], "properties": { "a": {} } },
        "id": { "type": "integer", "readOnly": true },
    });
    let either = json!([{ "required": ["file"] }, { "required": ["name"] }]);
    let kinds = json!([
        { "properties": { "name": { "enum": ["a"] }, "file": { "maxLength": 1 } }, "required": ["file"] },
        { "properties": { "name": { "enum": ["b"] } }, "required": ["size"] },
    ]);
    for (keyword, value, parts, expected) in [
        ("required", json!(["id", "name"]), vec!["name"], ""),
        ("allOf", json!([{ "required": ["id"] }]), vec!["name"], ""),
        ("dependentRequired", json!({ "name": ["size"] }), vec!["name", "size"], ""),
        ("dependentRequired", json!({ "name": ["size"] }), vec!["name"], "-size"),
        ("dependentRequired", json!({ "file": ["size"] }), vec!["file"], "-size"),
        ("minProperties", json!(2), vec!["file", "tags"], ""),
        ("minProperties", json!(2), vec!["file"], "body must have at least 2 entries"),
        ("additionalProperties", json!(false), vec!["name", "other"], "other is not among the properties of the body"),
        ("additionalProperties", json!(false), vec!["file", "other"], "other is not among the properties of the body"),
        ("additionalProperties", json!({ "type": "integer" }), vec!["file", "other"], ""),
        ("oneOf", either.clone(), vec!["file"], ""),
        ("oneOf", either.clone(), vec!["name", "tags"], ""),
        ("oneOf", either.clone(), vec!["size"], "body must match one of several schemas"),
        ("oneOf", either, vec!["file", "name"], "body must match only one of several schemas"),
        ("oneOf", kinds, vec!["file", "tags"], ""),
    ] {
        let mut schema = json!({ "type": "object", "properties": properties });
        schema[keyword] = value;
        let contract = operation(json!([]), json!({ "multipart/form-data": { "schema": schema } }));
        let part = |name: &&str| {
            let file = if *name == "file" { "; filename=\"a\"" } else { "" };
            let value = match *name {
                "size" => "7",
                "tags" => "{\"a\": 1}",
                _ => "long text",
            };
            format!("--X\r\nContent-Disposition: form-data; name=\"{name}\"{file}\r\n\r\n{value}\r\n")
        };
        let body = format!("{}--X--\r\n", parts.iter().map(part).collect::<String>());
        let errors = errors_of(&contract, "/things/1", &[("content-type", "multipart/form-data; boundary=X")], &body);
        assert_eq!(errors.join(" "), expected, "{schema} {parts:?}");
    }
}

#[test]
fn requests_need_no_properties_of_responses() {
    let schema = json!({
        "type": "object",
        "required": ["id", "name"],
        "properties": { "id": { "type": "integer", "readOnly": true }, "name": { "type": "string" } },
    });

    assert_eq!(form_errors(&schema, &[("name", "a")]), [vec![""; 0], vec![]]);
    assert_eq!(form_errors(&schema, &[("name", "a"), ("id", "x")]), [vec![""; 0], vec![]], "the value is ignored");
    assert_eq!(form_errors(&schema, &[("other", "a")]), [["-name"]; 2]);
    let contract = operation(json!([]), json!({ "application/json": { "schema": schema } }));
    assert_eq!(errors_of(&contract, "/things/1", &[("content-type", "application/json")], ""), ["-name"]);
}

#[test]
fn validates_json_of_a_declared_range() {
    let schema = json!({ "type": "object", "required": ["a"], "properties": { "a": { "type": "integer" } } });
    for range in ["*/*", "application/*"] {
        let contract = operation(json!([]), json!({ range: { "schema": schema } }));
        let errors = |media_type: &str, body: &str| errors_of(&contract, "/things/1", &[("content-type", media_type)], body);
        for json in ["application/json", "application/vnd.thing+json; charset=utf-8"] {
            assert_eq!(errors(json, r#"{"a": 1}"#), [""; 0]);
            assert_eq!(errors(json, r#"{"a": "x"}"#), ["a must be an integer"]);
        }
        assert_eq!(errors("application/xml", "<a/>"), [""; 0]);
        assert_eq!(errors_of(&contract, "/things/1", &[], r#"{"a": "x"}"#), ["a must be an integer"], "without a media type");
        let contract = operation(json!([]), json!({ "image/*": {}, range: { "schema": schema } }));
        assert_eq!(errors_of(&contract, "/things/1", &[], r#"{"a": "x"}"#), ["a must be an integer"]);
    }
}

#[test]
fn keeps_the_order_of_deep_object_items() {
    let parameter = json!({ "name": "p", "in": "query", "style": "deepObject", "schema": { "type": "array", "items": {} } });
    let contract = operation(json!([parameter]), Value::Null);

    let found =
        contract.find("POST", "/things/1").unwrap().check("/things/1", Some("p[9]=a&p[10]=b&p[1]=c"), &HeaderMap::new(), b"");

    assert_eq!(found.unwrap().query["p"], json!(["a", "b", "c"]));
    let repeated = contract.find("POST", "/things/1").unwrap().check("/things/1", Some("p=a&p=b"), &HeaderMap::new(), b"");
    assert_eq!(repeated.unwrap().query["p"], json!(["a", "b"]));
}

#[test]
fn parses_json_and_empty_parameters() {
    let filter = json!({ "name": "filter", "in": "query", "content": { "application/json": { "schema": { "type": "array" } } } });
    let flag = json!({ "name": "flag", "in": "query", "allowEmptyValue": true, "schema": { "type": "boolean" } });
    let contract = operation(json!([filter, flag]), json!(null));
    assert_eq!(errors_of(&contract, "/things/1?filter=[1]&flag=", &[], ""), [""; 0]);
    assert_eq!(
        errors_of(&contract, "/things/1?filter=7&flag=x", &[], ""),
        ["filter must be an array", "flag must be true or false"]
    );
    assert!(errors_of(&contract, "/things/1?filter=[", &[], "")[0].starts_with("filter must be JSON"));
}

#[test]
fn reads_parameters_by_their_schema() {
    let query = |schema: Value| json!([{ "name": "p", "in": "query", "required": true, "schema": schema }]);
    let cookie = |schema: Value| json!([{ "name": "p", "in": "cookie", "schema": schema }]);
    let text =
        json!([{ "name": "p", "in": "query", "content": { "text/plain": { "schema": { "type": "string", "maxLength": 5 } } } }]);
    let free = json!({ "type": "object", "additionalProperties": { "type": "integer" }, "minProperties": 1 });
    for (parameters, target, sent, expected) in [
        (query(free.clone()), "?x=1&y=2", "", ""),
        (query(free.clone()), "?x=1&y=b", "", "p must be an integer (at y)"),
        (query(free), "", "", "-p"),
        (query(json!({ "type": "object" })), "?x=1", "", ""),
        (text.clone(), "?p=hello", "", ""),
        (text, "?p=hello!", "", "p must have at most 5 characters"),
        (query(json!({ "enum": [1, 2] })), "?p=2", "", ""),
        (query(json!({ "enum": [1, 2] })), "?p=3", "", "p must be one of: 1, 2"),
        (query(json!({ "const": true })), "?p=true", "", ""),
        (query(json!({ "anyOf": [{}, { "type": "integer" }] })), "?p=abc", "", ""),
        (query(json!({ "enum": [1.5, "a"] })), "?p=1.5", "", ""),
        (query(json!({ "type": "integer" })), "?p=18446744073709551615", "", ""),
        (query(json!({ "type": "number", "nullable": true })), "?p=nan", "", "p must be a number"),
        (query(json!({ "type": "number", "nullable": true })), "?p=1e999", "", "p must be a number"),
        (cookie(json!({ "type": "string", "maxLength": 3 })), "", "p=a%20b", ""),
        (cookie(json!({ "enum": [7] })), "", "p=7", ""),
    ] {
        let contract = operation(parameters.clone(), Value::Null);
        let found = errors_of(&contract, &format!("/things/1{target}"), &[("cookie", sent)], "");
        assert_eq!(found.join(" "), expected, "{parameters} {target}");
    }
    let free =
        json!({ "name": "all", "in": "query", "schema": { "type": "object", "additionalProperties": { "type": "integer" } } });
    let named = json!({ "name": "name", "in": "query", "schema": { "type": "string" } });
    let contract = operation(json!([free, named]), Value::Null);
    let found = contract.find("POST", "/things/1").unwrap().check("/things/1", Some("name=a&x=1"), &HeaderMap::new(), b"");
    assert_eq!(Value::Object(found.unwrap().query), json!({ "all": { "x": 1 }, "name": "a" }));
}

#[test]
fn parses_json_in_forms() {
    let part = json!({ "type": "object", "required": ["a"], "properties": { "a": { "type": "integer" } } });
    let form = json!({ "schema": { "properties": { "m": part } }, "encoding": { "m": { "contentType": "application/json" } } });
    let contract = operation(json!([]), json!({ "application/x-www-form-urlencoded": form }));
    let errors = |body: &str| errors_of(&contract, "/things/1", &[("content-type", "application/x-www-form-urlencoded")], body);
    assert_eq!(errors("m=%7B%22a%22%3A1%7D"), [""; 0]);
    assert_eq!(errors("m=%7B%22a%22%3A%22x%22%7D"), ["m must be an integer (at a)"]);
}

#[test]
fn operation_parameters_override_path_parameters() {
    let limit = |maximum: u32| json!({ "name": "limit", "in": "query", "schema": { "type": "integer", "maximum": maximum } });
    let item = json!({ "parameters": [limit(5)], "post": { "parameters": [limit(9)], "responses": { "204": {} } } });
    let contract = contract(json!({ "/things": item }), json!({}));
    assert_eq!(errors_of(&contract, "/things?limit=7", &[], ""), [""; 0]);
    assert_eq!(errors_of(&contract, "/things?limit=10", &[], ""), ["limit must be at most 9"]);
}

#[test]
fn validates_bodies_of_any_schema() {
    let names = json!({ "type": "array", "items": { "type": "string" } });
    assert_eq!(body_errors(names.clone(), json!({}), &json!(["a"])), [""; 0]);
    assert_eq!(body_errors(names.clone(), json!({}), &json!(["a", 7])), ["body must be a string (at 1)"]);
    assert_eq!(body_errors(names, json!({}), &json!({})), ["body must be an array"]);
    assert_eq!(body_errors(json!({ "type": "integer" }), json!({}), &json!(7)), [""; 0]);
    assert_eq!(
        body_errors(json!({ "type": "object", "additionalProperties": { "type": "integer" } }), json!({}), &json!({ "a": "b" })),
        ["a must be an integer"]
    );
    assert_eq!(body_errors(ref_to("Event"), recursive_schemas(), &json!({ "host": { "name": 7 } })).len(), 2);
    let known = json!({ "properties": { "a": { "type": "string" } }, "required": ["a"], "additionalProperties": false });
    assert_eq!(body_errors(known.clone(), json!({}), &json!({ "b": 1 })), ["-a", "b is not among the properties of the body"]);
    // Only the built-in document has rules for blank values.
    assert_eq!(body_errors(known, json!({}), &json!({ "a": "" })), [""; 0]);
}

#[test]
fn parses_bodies_of_the_declared_media_types() {
    let form = json!({
        "type": "object",
        "required": ["name"],
        "properties": {
            "name": { "type": "string" },
            "size": { "type": "integer" },
            "tags": { "type": "array", "items": { "type": "integer" } },
        },
    });
    let content = json!({
        "application/vnd.thing+json": { "schema": { "type": "object", "required": ["a"], "properties": { "a": {} } } },
        "application/x-www-form-urlencoded": { "schema": form, "encoding": { "tags": { "explode": false } } },
        "image/*": {},
    });
    let contract = operation(json!([]), content);
    let errors = |media_type: &str, body: &str| errors_of(&contract, "/things/1", &[("content-type", media_type)], body);
    let urlencoded = "application/x-www-form-urlencoded";
    assert_eq!(errors("application/vnd.thing+json; charset=utf-8", r#"{"a": 1}"#), [""; 0]);
    assert_eq!(errors("application/vnd.thing+json", "{}"), ["-a"]);
    assert_eq!(errors("application/vnd.thing+json", ""), ["-a"]);
    assert_eq!(errors("application/vnd.thing+json", "{"), ["The request's body is not valid JSON: line 1, column 1."]);
    assert_eq!(errors(urlencoded, "name=a&size=7&tags=1,2"), [""; 0]);
    assert_eq!(errors(urlencoded, "size=x&tags=1,b"), ["-name", "size must be an integer", "tags must be an integer"]);
    assert_eq!(errors("image/png", "?"), [""; 0]);
    let declared = "application/vnd.thing+json or application/x-www-form-urlencoded or image/*";
    assert_eq!(errors("text/plain", "?"), [format!("The request's body must be {declared}.")]);
}

#[test]
fn requires_only_required_bodies() {
    let text = json!({ "text/plain": {} });
    assert_eq!(errors_of(&operation(json!([]), text.clone()), "/things/1", &[], ""), ["-body"]);
    let optional = json!({ "/things": { "post": { "requestBody": { "content": text }, "responses": { "204": {} } } } });
    assert_eq!(errors_of(&contract(optional, json!({})), "/things", &[], ""), [""; 0]);
}

/// Headers with these names have a special meaning only in the built-in document.
#[test]
fn validates_platform_headers_of_other_documents() {
    let header = |name: &str, kind: &str| json!({ "name": name, "in": "header", "required": true, "schema": { "type": kind } });
    let contract = operation(json!([header("X-Client-Version", "integer"), header("X-Api-Key", "string")]), Value::Null);
    let errors = |headers: &[(&'static str, &str)]| errors_of(&contract, "/things/1", headers, "");
    assert_eq!(errors(&[]), ["-X-Client-Version", "-X-Api-Key"]);
    assert_eq!(errors(&[("x-client-version", "3.0.0"), ("x-api-key", "k")]), ["X-Client-Version must be an integer"]);
    assert_eq!(errors(&[("x-client-version", "1"), ("x-api-key", "k")]), [""; 0]);
    assert!(!contract.operations().next().unwrap().needs_version);
}

#[test]
fn finds_the_guessed_argument_in_path_and_body() {
    let operation = |path: &str, argument: &str| {
        let content = json!({ "application/json": { "schema": { "type": "object" } } });
        let operation = json!({ "x-guessing": argument, "requestBody": { "content": content }, "responses": { "204": {} } });
        contract(json!({ path: { "post": operation } }), json!({}))
    };
    let guessed = |path: &str, argument: &str, target: &str, body: &str| {
        operation(path, argument).find("POST", target).unwrap().guessing_target(target, body.as_bytes())
    };

    assert_eq!(guessed("/resets/{reset}", "reset", "/resets/a%20b", r#"{"reset": "x"}"#), "a b");
    assert_eq!(guessed("/sessions", "name", "/sessions", r#"{"password": 1, "name": "Ama"}"#), "Ama");
    assert_eq!(guessed("/sessions", "name", "/sessions", r#"{"other": 1e999, "name": "Ama"}"#), "Ama");
    for body in ["", "{", "[]", "7", r#"{"name": 7}"#, r#"{"names": "Ama"}"#] {
        assert_eq!(guessed("/sessions", "name", "/sessions", body), "", "{body}");
    }
}

#[test]
fn describes_patterns_by_example() {
    let schema = json!({ "type": "string", "pattern": "^[A-Z]{2}-[0-9]+$", "example": "GH-4" });
    let parameter = json!({ "name": "number", "in": "query", "schema": schema });
    let contract = operation(json!([parameter]), Value::Null);
    let message = "has the wrong form; a valid example is GH-4";
    assert_eq!(errors_of(&contract, "/things/1?number=x", &[], ""), [format!("number {message}")]);
    let body = |schema: &Value| json!({ "type": "object", "properties": { "number": schema } });
    assert_eq!(body_errors(body(&schema), json!({}), &json!({ "number": "x" })), [format!("number {message}")]);
    let list = json!({ "type": "array", "items": schema });
    assert_eq!(body_errors(body(&list), json!({}), &json!({ "number": ["x"] })), ["number has the wrong form (at 0)"]);
}

#[test]
fn describes_formats_in_words() {
    let error = |format: &str| {
        let schema = json!({ "type": "string", "format": format });
        body_errors(json!({ "properties": { "a": schema } }), json!({}), &json!({ "a": "?! no" }))
    };
    assert_eq!(error("event-time"), ["a must be a date and time, such as 2025-12-20T19:00"]);
    assert_eq!(error("email"), ["a must be an e-mail address, such as ama@example.com"]);
    assert_eq!(error("json-pointer"), ["a has the wrong form"]);
}

#[test]
fn invalid_path_variable_of_builtin_document_identifies_no_resource() {
    let parameters = json!([
        { "name": "id", "in": "path", "required": true, "schema": { "type": "string", "pattern": "^[0-9]+$" } },
        { "name": "limit", "in": "query", "schema": { "type": "integer" } },
    ]);
    let check = |operation: Value, path: &str, query: &str| {
        let document = json!({ "openapi": "3.0.3", "paths": { "/things/{id}": { "get": operation } } });
        let contract = Contract::new(document).unwrap();
        let operation = contract.find("GET", path).unwrap();
        operation.check(path, Some(query), &HeaderMap::new(), b"").map(|_| ()).map_err(|error| match error {
            RequestError::InvalidFields(fields) => fields.into_iter().map(|field| field.name).collect(),
            RequestError::UnknownResource => vec!["unknown".to_owned()],
            other => panic!("{other:?}"),
        })
    };
    let builtin = json!({ "x-scopes": [], "parameters": parameters, "responses": { "200": {} } });
    let foreign = json!({ "parameters": parameters, "responses": { "200": {} } });

    assert_eq!(check(builtin.clone(), "/things/x", ""), Err(vec!["unknown".to_owned()]));
    assert_eq!(check(builtin.clone(), "/things/x", "limit=y"), Err(vec!["limit".to_owned()]));
    assert_eq!(check(builtin.clone(), "/things/7", "limit=1e1"), Ok(()));
    assert_eq!(check(foreign, "/things/x", "limit=y"), Err(vec!["id".to_owned(), "limit".to_owned()]));
}

#[test]
fn describes_limits_with_correct_plurals() {
    let error =
        |schema: Value, value: Value| body_errors(json!({ "properties": { "a": schema } }), json!({}), &json!({ "a": value }));
    assert_eq!(error(json!({ "type": "array", "minItems": 1 }), json!([])), ["a must have at least 1 item"]);
    assert_eq!(error(json!({ "type": "array", "minItems": 2 }), json!([])), ["a must have at least 2 items"]);
    assert_eq!(error(json!({ "type": "object", "minProperties": 1 }), json!({})), ["a must have at least 1 entry"]);
    assert_eq!(error(json!({ "type": "string", "maxLength": 1 }), json!("xy")), ["a must have at most 1 character"]);
}

#[test]
fn validates_parts_of_multipart_forms() {
    let address = json!({ "type": "object", "required": ["zip"], "properties": { "zip": { "type": "integer" } } });
    let properties = json!({
        "age": { "type": "integer" },
        "photo": { "type": "string", "format": "binary" },
        "tags": { "type": "array", "items": { "type": "string" } },
        "years": { "type": "array", "items": { "type": "integer" } },
        "address": address,
        "addresses": { "type": "array", "maxItems": 2, "items": address },
    });
    let schema = json!({ "type": "object", "required": ["age"], "properties": properties });
    let form = json!({ "schema": schema, "encoding": { "photo": { "contentType": "image/png, image/gif" } } });
    let contract = operation(json!([]), json!({ "multipart/form-data": form }));
    let with = |boundary: &str, parts: &[&str]| {
        let parts: String = parts.iter().map(|part| format!("--X\r\nContent-Disposition: form-data; {part}\r\n")).collect();
        let media_type = format!("multipart/form-data{boundary}");
        errors_of(&contract, "/things/1", &[("content-type", &media_type)], &format!("{parts}--X--\r\n")).join(" ")
    };
    let photo = |media_type: &str| format!("name=photo; filename=\"a\"\r\nContent-Type: {media_type}\r\n\r\n?");
    let (tag, age, zip) = ("name=\"tags\"\r\n\r\na", "name=age\r\n\r\n5", "name=addresses\r\n\r\n{\"zip\": 1}");
    for (parts, expected) in [
        (vec!["filename=\"a;name=b\"; name=\"age\"\r\n\r\n5"], ""),
        (vec!["name=\"age\"\r\n\r\n5", tag, tag, &photo("image/png")], ""),
        (vec!["name=age\r\n\r\nabc"], "age must be an integer"),
        (vec!["name=age\r\nContent-Type: text/plain; charset=utf-8\r\n\r\n5.5"], "age must be an integer"),
        (vec!["name=age\r\n\r\n5", &photo("text/plain")], "photo must be image/png or image/gif"),
        (vec!["name=age\r\n\r\n5", &photo("application/octet-stream")], ""),
        (vec![tag], "-age"),
        (vec![age, "name=years\r\n\r\n1", "name=years\r\n\r\n2"], ""),
        (vec![age, "name=years\r\nContent-Type: application/json\r\n\r\n[1, 2]"], ""),
        (vec![age, "name=years\r\n\r\nb"], "years must be an integer"),
        (vec![age, "name=address\r\n\r\n{\"zip\": 1}"], ""),
        (vec![age, "name=address\r\nContent-Type: application/json\r\n\r\n{\"zip\": 1}"], ""),
        (vec![age, "name=address\r\nContent-Type: application/xml\r\n\r\n<zip/>"], ""),
        (vec![age, "name=address\r\n\r\n{}"], "address lacks zip"),
        (
            vec![age, "name=address\r\nContent-Type: application/json\r\n\r\n{\"zip\": \"s\"}"],
            "address must be an integer (at zip)",
        ),
        (vec![age, "name=address\r\n\r\nnone"], "address must be JSON (expected ident at line 1 column 2)"),
        (vec![age, zip, zip], ""),
        (vec![age, zip, zip, zip], "addresses must have at most 2 items"),
        (vec![age, zip, "name=addresses\r\n\r\n7"], "addresses must be an object"),
        (vec!["name=age\r\n\r\n5 --X\r\nContent-Disposition: form-data; name=tags"], "age must be an integer"),
    ] {
        assert_eq!(with("; boundary=\"X\"", &parts), expected, "{parts:?}");
    }
    let form = "--X\r\nContent-Disposition: form-data; name=age\r\n\r\n5\r\n--X--\r\n--X\r\nContent-Disposition: form-data; name=age\r\n\r\nb\r\n";
    let errors = errors_of(&contract, "/things/1", &[("content-type", "multipart/form-data; boundary=X")], form);
    assert_eq!(errors.join(" "), "", "the text after the last delimiter is ignored");
    let boundary = "The media type of the request's body must have a boundary, which separates the parts.";
    assert_eq!(with("", &["name=age\r\n\r\n5"]), boundary);
}

#[test]
fn validates_texts_by_their_schema() {
    let errors = |schema: Value, body: &str| {
        let contract = operation(json!([]), json!({ "text/plain": { "schema": schema } }));
        errors_of(&contract, "/things/1", &[("content-type", "text/plain; charset=utf-8")], body).join(" ")
    };
    assert_eq!(errors(json!({ "type": "string", "maxLength": 2 }), "ab"), "");
    assert_eq!(errors(json!({ "type": "string", "maxLength": 2 }), "abc"), "body must have at most 2 characters");
    assert_eq!(errors(json!({ "type": "integer" }), "a"), "body must be an integer");
    assert_eq!(errors(json!({ "type": "array", "items": {} }), "a,b"), "");
}
