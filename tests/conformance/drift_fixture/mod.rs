//! A small contract and its endpoints. Together they use every keyword that drift compares.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use dropshot::{
    ApiDescription, ErrorStatusCode, FreeformBody, Header, HttpError, HttpResponseCreated, HttpResponseDeleted,
    HttpResponseError, HttpResponseHeaders, HttpResponseOk, Path, Query, RequestContext, TypedBody, endpoint,
};
use schemars::JsonSchema;
use schemars::r#gen::SchemaGenerator;
use schemars::schema::Schema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

pub fn document() -> Value {
    serde_yaml_ng::from_str(include_str!("contract.yaml")).expect("the sample contract is YAML")
}

/// Returns the server's document: dropshot's output, with the security, headers and statuses that dropshot can't describe.
pub fn server() -> Value {
    let mut api = ApiDescription::new();
    api.register(order_list).expect("order_list");
    api.register(order_create).expect("order_create");
    api.register(order_get).expect("order_get");
    api.register(order_update).expect("order_update");
    api.register(order_delete).expect("order_delete");
    api.register(media_get).expect("media_get");
    api.register(tree_get).expect("tree_get");
    let mut openapi = api.openapi("sample", semver::Version::new(3, 0, 0)).json().expect("dropshot emits JSON");
    for (path, method, statuses) in [
        ("/orders", "get", ["400", "500"].as_slice()),
        ("/orders", "post", &["400", "409", "500"]),
        ("/orders/{order}", "get", &["404", "500"]),
        ("/orders/{order}", "put", &["400", "500"]),
        ("/orders/{order}", "delete", &["404", "500"]),
        ("/media/{kind}/{image}", "get", &["404", "500"]),
        ("/tree", "get", &["500"]),
    ] {
        let operation = &mut openapi["paths"][path][method];
        operation["security"] = if path.starts_with("/media") { json!([]) } else { json!([{"SessionKey": []}]) };
        let responses = operation["responses"].as_object_mut().expect("responses");
        let error = responses.remove("4XX").and_then(|_| responses.remove("5XX")).expect("a response to errors");
        responses.extend(statuses.iter().map(|status| ((*status).to_owned(), error.clone())));
    }
    let etag = json!({"required": true, "schema": {"type": "string"}});
    let version =
        json!({"name": "X-Client-Version", "in": "header", "required": true, "schema": {"type": "string", "pattern": r"^\d+$"}});
    let sold_out = json!({
        "headers": {"retry-after": {"required": true, "schema": {"type": "integer", "minimum": 1}}},
        "content": openapi["components"]["responses"]["Error"]["content"],
    });
    let create = &mut openapi["paths"]["/orders"]["post"];
    create["parameters"] = json!([version]);
    create["responses"]["409"] = sold_out;
    openapi["paths"]["/media/{kind}/{image}"]["get"]["responses"]["200"]["headers"]["etag"] = etag;
    openapi
}

/// Declares a newtype whose schema no attribute can express, or that has a default as a parameter.
macro_rules! value_type {
    ($name:ident($inner:ty), $schema:tt) => {
        #[derive(Serialize, Deserialize)]
        struct $name($inner);

        impl JsonSchema for $name {
            fn schema_name() -> String {
                stringify!($name).to_owned()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                serde_json::from_value(json!($schema)).expect("a schema")
            }
        }
    };
}

value_type!(Records(i64), {"type": "integer", "format": "int64", "minimum": 1, "maximum": 100, "default": 25});
value_type!(SortOrder(String), {"type": "string", "enum": ["asc", "desc"], "default": "asc"});
value_type!(EventTime(String), {"type": "string", "format": "event-time", "pattern": "^\\d{4}", "maxLength": 40});
value_type!(Money(f32), {"type": "number", "format": "float", "minimum": 0, "maximum": 1_000_000, "multipleOf": 0.01});
value_type!(Share(f64), {"type": "number", "format": "double", "exclusiveMinimum": 0, "exclusiveMaximum": 1});
value_type!(Password(String), {"type": "string", "format": "password", "minLength": 8, "maxLength": 128});
value_type!(Image(String), {"type": "string", "format": "byte", "maxLength": 7_340_032});
value_type!(Lots(i64), {"type": "integer", "multipleOf": 5});
value_type!(Weight(f64), {"type": "number"});
value_type!(Uri(String), {"type": "string", "format": "uri-reference"});
value_type!(Date(String), {"type": "string", "format": "date"});

#[derive(Serialize, Deserialize, JsonSchema)]
struct AccountNumber(#[schemars(regex(pattern = r"^[A-Z]{2}-[A-Z0-9]{8}$"))] String);

#[derive(Serialize, Deserialize, JsonSchema)]
enum OrderStatus {
    /// Not paid yet.
    Placed,
    /// Paid.
    Paid,
    Cancelled,
}

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Channel {
    Web,
    Desk,
}

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
enum Reference {
    Text(String),
    Number(i64),
}

#[derive(Deserialize, JsonSchema)]
struct ListQuery {
    records: Option<Records>,
    /// Only those with this status.
    status: Option<OrderStatus>,
    since: Option<EventTime>,
    #[schemars(with = "Option<Money>")]
    most: Option<f32>,
    active: Option<bool>,
    mine: bool,
    order: Option<SortOrder>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
struct ListHeaders {
    #[schemars(length(max = 40))]
    accept_language: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
struct OrderPath {
    #[schemars(regex(pattern = r"^\d{14}$"))]
    order: String,
}

#[derive(Deserialize, JsonSchema)]
struct ImagePath {
    kind: ImageKind,
    #[schemars(regex(pattern = "^[a-z0-9]+$"), length(max = 64))]
    image: String,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum ImageKind {
    Banner,
    Thumbnail,
}

#[derive(Serialize, JsonSchema)]
struct OrderPage {
    #[schemars(range(min = 0))]
    total: i64,
    entries: Vec<Order>,
}

#[derive(Serialize, JsonSchema)]
struct Order {
    #[serde(rename = "self")]
    uri: Uri,
    status: OrderStatus,
    total: f32,
    items: Vec<OrderItem>,
    /// The customer.
    customer: Account,
    payer: Option<Account>,
    born: Option<Date>,
}

#[derive(Serialize, JsonSchema)]
struct OrderItem {
    section: Uri,
    quantity: i64,
}

#[derive(Serialize, JsonSchema)]
struct Account {
    number: AccountNumber,
    active: bool,
}

#[derive(Deserialize, JsonSchema)]
struct OrderCreate {
    #[schemars(schema_with = "items_schema")]
    items: BTreeMap<String, i64>,
    #[schemars(email, length(max = 254))]
    email: String,
    password: Password,
    #[schemars(url, length(max = 2000))]
    website: Option<String>,
    /// The buyer.
    customer: Option<AccountNumber>,
    start: Option<EventTime>,
    price: Option<Money>,
    share: Option<Share>,
    #[schemars(range(min = -180, max = 180))]
    longitude: Option<f64>,
    #[schemars(length(min = 1, max = 20), inner(length(min = 1, max = 50)))]
    tags: BTreeSet<String>,
    points: [f64; 2],
    lots: Option<Lots>,
    weight: Option<Weight>,
    banner: Option<Image>,
    #[serde(default = "web")]
    channel: Channel,
    #[serde(default = "none")]
    note: Option<String>,
    labels: Option<BTreeMap<String, String>>,
    #[serde(default)]
    #[schemars(skip_serializing_if = "Option::is_none")]
    reference: Option<Reference>,
}

fn items_schema(_: &mut SchemaGenerator) -> Schema {
    serde_json::from_value(json!({
        "type": "object",
        "minProperties": 1,
        "maxProperties": 50,
        "additionalProperties": {"type": "integer", "format": "int64", "minimum": 1, "maximum": 50},
    }))
    .expect("a schema")
}

fn web() -> Channel {
    Channel::Web
}

#[expect(clippy::unnecessary_wraps, reason = "it is the default of an optional property")]
fn none() -> Option<String> {
    Some("none".to_owned())
}

#[derive(Deserialize, JsonSchema)]
struct OrderUpdate {
    #[schemars(email, length(max = 254))]
    email: Option<String>,
    #[schemars(range(min = 1, max = 50))]
    quantity: Option<i64>,
    status: Option<OrderStatus>,
}

#[derive(Serialize, JsonSchema)]
struct Node {
    name: String,
    children: Vec<Node>,
    parent: Option<Box<Node>>,
}

#[derive(Serialize, JsonSchema)]
struct Location {
    location: Uri,
}

#[derive(Serialize, JsonSchema)]
enum ErrorCode {
    #[serde(rename = "arguments.invalid")]
    Arguments,
    #[serde(rename = "section.sold-out")]
    SoldOut,
    #[serde(rename = "server.error")]
    Server,
}

#[derive(Serialize, JsonSchema)]
struct Error {
    error: Option<String>,
    code: ErrorCode,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.error.as_deref().unwrap_or_default())
    }
}

impl From<HttpError> for Error {
    fn from(error: HttpError) -> Self {
        Error { error: Some(error.external_message), code: ErrorCode::Server }
    }
}

impl HttpResponseError for Error {
    fn status_code(&self) -> ErrorStatusCode {
        ErrorStatusCode::INTERNAL_SERVER_ERROR
    }
}

type Created<T> = HttpResponseHeaders<HttpResponseCreated<T>, Location>;

#[endpoint { method = GET, path = "/orders", tags = ["Orders"] }]
async fn order_list(
    _request: RequestContext<()>,
    _headers: Header<ListHeaders>,
    _query: Query<ListQuery>,
) -> Result<HttpResponseOk<OrderPage>, Error> {
    unreachable!("only described")
}

#[endpoint { method = POST, path = "/orders", tags = ["Orders"] }]
async fn order_create(_request: RequestContext<()>, _body: TypedBody<OrderCreate>) -> Result<Created<Order>, Error> {
    unreachable!("only described")
}

#[endpoint { method = GET, path = "/orders/{order}", tags = ["Orders"] }]
async fn order_get(_request: RequestContext<()>, _path: Path<OrderPath>) -> Result<HttpResponseOk<Order>, Error> {
    unreachable!("only described")
}

#[endpoint { method = PUT, path = "/orders/{order}", tags = ["Orders"] }]
async fn order_update(
    _request: RequestContext<()>,
    _path: Path<OrderPath>,
    _body: TypedBody<OrderUpdate>,
) -> Result<HttpResponseOk<Order>, Error> {
    unreachable!("only described")
}

#[endpoint { method = DELETE, path = "/orders/{order}", tags = ["Orders"], deprecated = true }]
async fn order_delete(_request: RequestContext<()>, _path: Path<OrderPath>) -> Result<HttpResponseDeleted, Error> {
    unreachable!("only described")
}

#[endpoint { method = GET, path = "/media/{kind}/{image}", tags = ["Media"] }]
async fn media_get(_request: RequestContext<()>, _path: Path<ImagePath>) -> Result<HttpResponseOk<FreeformBody>, Error> {
    unreachable!("only described")
}

#[endpoint { method = GET, path = "/tree", tags = ["Tree"] }]
async fn tree_get(_request: RequestContext<()>) -> Result<HttpResponseOk<Vec<Node>>, Error> {
    unreachable!("only described")
}
