//! Security schemes: finding the credential of a request.

use anyhow::{Context, bail};
use http::{HeaderMap, header};
use serde_json::Value;

use crate::parameter::ParameterLocation;
use crate::resolver::References;

/// A way to authenticate a request (OpenAPI 3.0, Security Scheme Object).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SecurityScheme {
    /// A key in a header, query parameter or cookie of this name.
    Key(ParameterLocation, String),
    /// The header `Authorization` with this scheme (RFC 9110), for example `Basic`. OAuth 2 and OpenID Connect use `Bearer`.
    Authorization(String),
}

impl SecurityScheme {
    fn new(node: &Value) -> anyhow::Result<Self> {
        let text = |key: &str| node[key].as_str().with_context(|| format!("it has no {key}"));
        Ok(match text("type")? {
            "apiKey" => Self::Key(ParameterLocation::new(&node["in"])?, text("name")?.to_owned()),
            "http" => Self::Authorization(text("scheme")?.to_owned()),
            "oauth2" | "openIdConnect" => Self::Authorization("Bearer".to_owned()),
            kind => bail!("its type is `{kind}`"),
        })
    }

    /// Returns the credential that a request sends for this scheme, or `None` if it is absent or blank.
    pub fn credential(&self, headers: &HeaderMap, query: Option<&str>) -> Option<String> {
        let header = |name: &str| headers.get(name).map(|value| value.to_str().unwrap_or("unreadable").to_owned());
        let credential = match self {
            Self::Key(ParameterLocation::Query, name) => {
                let mut pairs = form_urlencoded::parse(query?.as_bytes());
                pairs.find(|(key_name, _)| key_name == name).map(|(_, key)| key.into_owned())
            }
            Self::Key(ParameterLocation::Cookie, name) => {
                let cookies = header(header::COOKIE.as_str())?;
                let mut pairs = cookies.split(';').filter_map(|cookie| cookie.trim().split_once('='));
                pairs.find(|(key_name, _)| key_name == name).map(|(_, key)| key.to_owned())
            }
            Self::Key(_, name) => header(name),
            Self::Authorization(scheme) => {
                let authorization = header(header::AUTHORIZATION.as_str())?;
                let (sent_scheme, credential) = authorization.trim().split_once(' ')?;
                sent_scheme.eq_ignore_ascii_case(scheme).then(|| credential.to_owned())
            }
        };
        credential.map(|credential| credential.trim().to_owned()).filter(|credential| !credential.is_empty())
    }
}

/// Returns the alternative security requirements of an operation. A request must satisfy all schemes of one of them. A scheme that is
/// undeclared or of an unknown type is not checked.
pub fn alternatives<'a>(
    references: &References<'a>,
    document: &'a Value,
    operation: &Value,
    warn: &mut impl FnMut(String),
) -> Vec<Vec<SecurityScheme>> {
    let declared = operation.get("security").or_else(|| document.get("security"));
    let mut scheme = |name: &String| {
        let node = document["components"]["securitySchemes"].get(name).context("the document has none of this name");
        let scheme = node.and_then(|node| SecurityScheme::new(references.follow(node)));
        scheme.map_err(|error| warn(format!("the security scheme {name} is not checked: {error:#}"))).ok()
    };
    let alternatives = declared.and_then(Value::as_array).into_iter().flatten();
    alternatives.map(|all| all.as_object().into_iter().flatten().filter_map(|(name, _)| scheme(name)).collect()).collect()
}
