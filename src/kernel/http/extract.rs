//! The arguments of endpoints: the caller, and the parsed parameters and body.

use std::net::IpAddr;
use std::ops::Deref;

use anyhow::anyhow;
use boxoffice_http::IncomingRequest;
use boxoffice_http::error::{Error, Result};
use dropshot::{
    ApiEndpointBodyContentType, ApiEndpointParameter, ExclusiveExtractor, ExtractorMetadata, SharedExtractor, TypedBody,
};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::handler::api_key;
use crate::kernel::auth;
use crate::kernel::context::Context;
use crate::kernel::types::language::Language;

/// A request that is valid by the contract.
pub struct EndpointRequest<A> {
    /// The application's state and the unit of work.
    pub ctx: Context<A>,
    /// The caller; `None` for an endpoint without authentication.
    pub caller: Option<auth::Caller>,
    /// The request.
    pub incoming: Box<IncomingRequest>,
}

/// An argument of an endpoint's function.
pub trait Extract<A>: Sized + Send + 'static {
    /// Takes the argument out of the request.
    ///
    /// # Errors
    /// Returns an error with the argument's name if a value conforms to the contract but not to its Rust type.
    fn extract(request: &mut EndpointRequest<A>) -> Result<Self>;

    /// Returns the parameters or the body, for the document that dropshot emits.
    fn parameters() -> Vec<ApiEndpointParameter> {
        Vec::new()
    }
}

/// The path's variables.
#[derive(Debug)]
pub struct Path<T>(pub T);

/// The query's parameters.
#[derive(Debug)]
pub struct Query<T>(pub T);

/// The JSON body.
#[derive(Debug)]
pub struct Json<T>(pub T);

/// The address of the client, which a trusted proxy may have forwarded.
#[derive(Debug)]
pub struct ClientAddress(pub IpAddr);

/// The language that the client's `Accept-Language` prefers, if it accepts one of the platform's.
#[derive(Debug)]
pub struct AcceptedLanguage(pub Option<Language>);

/// The API key as the client has sent it. Never logged.
pub struct ApiKey(pub String);

macro_rules! implement_deref {
    ($($type:ident),*) => {
        $(impl<T> Deref for $type<T> {
            type Target = T;

            fn deref(&self) -> &T {
                &self.0
            }
        })*
    };
}

// Endpoints read `path.event` and pass `&body`. To move a value out, they use the field: `body.0`, `path.0.number`.
implement_deref!(Path, Query, Json);

impl<A: 'static> Extract<A> for auth::Caller {
    fn extract(request: &mut EndpointRequest<A>) -> Result<Self> {
        let caller = request.caller.take();
        caller.ok_or_else(|| Error::Internal(anyhow!("an endpoint without authentication has no caller")))
    }
}

impl<A: 'static> Extract<A> for ClientAddress {
    fn extract(request: &mut EndpointRequest<A>) -> Result<Self> {
        Ok(Self(request.incoming.client_address))
    }
}

impl<A: 'static> Extract<A> for AcceptedLanguage {
    fn extract(request: &mut EndpointRequest<A>) -> Result<Self> {
        let header = request.incoming.head.headers.get(http::header::ACCEPT_LANGUAGE);
        Ok(Self(header.and_then(|header| header.to_str().ok()).and_then(Language::preferred)))
    }
}

impl<A: 'static> Extract<A> for ApiKey {
    fn extract(request: &mut EndpointRequest<A>) -> Result<Self> {
        Ok(Self(api_key(&request.incoming.head.headers).unwrap_or_default().to_owned()))
    }
}

impl<A: 'static, T: DeserializeOwned + JsonSchema + Send + Sync + 'static> Extract<A> for Path<T> {
    fn extract(request: &mut EndpointRequest<A>) -> Result<Self> {
        let variables = Value::Object(std::mem::take(&mut request.incoming.arguments.path));
        serde_json::from_value(variables).map(Self).map_err(|_| Error::NOT_FOUND)
    }

    fn parameters() -> Vec<ApiEndpointParameter> {
        parameters(<dropshot::Path<T> as SharedExtractor>::metadata)
    }
}

impl<A: 'static, T: DeserializeOwned + JsonSchema + Send + Sync + 'static> Extract<A> for Query<T> {
    fn extract(request: &mut EndpointRequest<A>) -> Result<Self> {
        deserialize(Value::Object(std::mem::take(&mut request.incoming.arguments.query))).map(Self)
    }

    fn parameters() -> Vec<ApiEndpointParameter> {
        parameters(<dropshot::Query<T> as SharedExtractor>::metadata)
    }
}

impl<A: 'static, T: DeserializeOwned + JsonSchema + Send + Sync + 'static> Extract<A> for Json<T> {
    fn extract(request: &mut EndpointRequest<A>) -> Result<Self> {
        deserialize(request.incoming.arguments.body.take()).map(Self)
    }

    fn parameters() -> Vec<ApiEndpointParameter> {
        parameters(<TypedBody<T> as ExclusiveExtractor>::metadata)
    }
}

impl<A: 'static> Extract<A> for () {
    fn extract(_: &mut EndpointRequest<A>) -> Result<Self> {
        Ok(())
    }
}

macro_rules! implement_extract_for_tuple {
    ($($type:ident),*) => {
        impl<A: 'static, $($type: Extract<A>),*> Extract<A> for ($($type,)*) {
            fn extract(request: &mut EndpointRequest<A>) -> Result<Self> {
                Ok(($($type::extract(request)?,)*))
            }

            fn parameters() -> Vec<ApiEndpointParameter> {
                [$($type::parameters()),*].into_iter().flatten().collect()
            }
        }
    };
}

implement_extract_for_tuple!(T1);
implement_extract_for_tuple!(T1, T2);
implement_extract_for_tuple!(T1, T2, T3);
implement_extract_for_tuple!(T1, T2, T3, T4);

fn parameters(metadata: fn(ApiEndpointBodyContentType) -> ExtractorMetadata) -> Vec<ApiEndpointParameter> {
    metadata(ApiEndpointBodyContentType::Json).parameters
}

/// Deserializes a value that the contract has accepted.
fn deserialize<T: DeserializeOwned>(value: Value) -> Result<T> {
    serde_path_to_error::deserialize(value).map_err(|error| {
        let path = error.path().to_string();
        let name = path.split(['.', '[']).next().unwrap_or_default();
        Error::invalid(name, error.into_inner().to_string())
    })
}
