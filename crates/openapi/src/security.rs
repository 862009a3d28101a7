//! What a request has to prove itself with.

use anyhow::{Context, bail};
use http::{HeaderMap, header};
use serde_json::Value;

use super::parameter::ParameterLocation;
use super::resolver::References;

/// One way for a request to prove itself (OpenAPI 3.0, Security Scheme Object).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SecurityScheme {
    /// A key in a header, in the query or in a cookie of this name.
    Key(ParameterLocation, String),
    /// The header `Authorization` of this scheme (RFC 9110): `Basic`, `Bearer` …; OAuth 2 and OpenID Connect have `Bearer`.
    Authorization(String),
}

impl SecurityScheme {
    fn new(node: &Value) -> anyhow::Result<Self> {
        let text = |key: &str| node[key].as_str().with_context(|| format!("it has no {key}"));
        Ok(match text("type")? {
            "apiKey" => Self::Key(ParameterLocation::new(&node["in"])?, text("name")?.to_owned()),
            "http" => Self::Authorization(text("scheme")?.to_owned()),
            "oauth2" | "openIdConnect" => Self::Authorization("Bearer".to_owned()),
            kind => bail!("OpenAPI 3.0 has no security scheme of type `{kind}`"),
        })
    }

    /// What a request proves itself with in this way; `None` when it doesn't, or it is blank.
    pub fn credential(&self, headers: &HeaderMap, query: Option<&str>) -> Option<String> {
        let header = |name: &str| headers.get(name).map(|value| value.to_str().unwrap_or("unreadable").to_owned());
        let credential = match self {
            Self::Key(ParameterLocation::Query, name) => {
                let mut pairs = form_urlencoded::parse(query?.as_bytes());
                pairs.find(|(given, _)| given == name).map(|(_, key)| key.into_owned())
            }
            Self::Key(ParameterLocation::Cookie, name) => {
                let cookies = header(header::COOKIE.as_str())?;
                let mut pairs = cookies.split(';').filter_map(|cookie| cookie.trim().split_once('='));
                pairs.find(|(given, _)| given == name).map(|(_, key)| key.to_owned())
            }
            Self::Key(_, name) => header(name),
            Self::Authorization(scheme) => {
                let given = header(header::AUTHORIZATION.as_str())?;
                let (given, credential) = given.trim().split_once(' ')?;
                given.eq_ignore_ascii_case(scheme).then(|| credential.to_owned())
            }
        };
        credential.map(|credential| credential.trim().to_owned()).filter(|credential| !credential.is_empty())
    }
}

/// The alternatives of an operation, each of which is everything that it asks for together.
///
/// # Errors
/// When the document has no scheme of a name, or one that OpenAPI doesn't have.
pub fn alternatives<'a>(
    references: &References<'a>,
    document: &'a Value,
    operation: &Value,
) -> anyhow::Result<Vec<Vec<SecurityScheme>>> {
    let declared = operation.get("security").or_else(|| document.get("security"));
    let scheme = |name: &String| {
        let node = document["components"]["securitySchemes"].get(name).context("the document has none of this name");
        node.and_then(|node| SecurityScheme::new(references.follow(node))).with_context(|| format!("security scheme {name}"))
    };
    let alternatives = declared.and_then(Value::as_array).into_iter().flatten();
    alternatives.map(|all| all.as_object().into_iter().flatten().map(|(name, _)| scheme(name)).collect()).collect()
}
