//! API types and database rows of accounts.

use std::fmt;

use boxoffice_http::{inline_schema, schema_from_json, string_newtype, text_schema};
use boxoffice_openapi::Scope;
use clap::ValueEnum;
use schemars::JsonSchema;
use schemars::r#gen::SchemaGenerator;
use schemars::schema::Schema;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::json;

use crate::kernel::http::has_location;
use crate::kernel::outbox::Recipient;
use crate::kernel::types::api_types::{BirthDate, Uri};
use crate::kernel::types::id::Id;
use crate::kernel::types::language::Language;
use crate::kernel::types::paging::PageRequest;
use crate::kernel::types::stored_text::stored_as_text;

string_newtype!(
    /// Account number, such as `GH-4K7QW2MZ`.
    AccountNumber, None, Some("^[A-Z]{2}-[A-Z0-9]{8}$"), None, None;
    /// A date, `YYYY-MM-DD`, or an empty text for none.
    OptionalDate, None, Some(r"^(\d{4}-\d{2}-\d{2})?$"), None, None
);

impl AsRef<str> for AccountNumber {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

/// A plain-text password of at least `MIN` characters, before it is hashed or verified. `Debug` omits its text, so that it is
/// never logged.
#[derive(Clone, Deserialize)]
#[serde(transparent)]
pub struct Password<const MIN: u32>(pub String);

impl<const MIN: u32> fmt::Debug for Password<MIN> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Password")
    }
}

impl<const MIN: u32> JsonSchema for Password<MIN> {
    fn is_referenceable() -> bool {
        false
    }

    fn schema_name() -> String {
        format!("PasswordFrom{MIN}")
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        text_schema(Some("password"), None, Some(MIN), Some(128))
    }
}

/// Permission level of a key or an account, as named in the API and on the command line. An account is never `public`.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ValueEnum, strum::EnumString, strum::IntoStaticStr,
)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
#[expect(missing_docs, reason = "the variants of Scope, which says what each is")]
pub enum Role {
    Public,
    Customer,
    Administrator,
}

stored_as_text!(Role);

impl From<Role> for Scope {
    fn from(role: Role) -> Self {
        match role {
            Role::Public => Self::Public,
            Role::Customer => Self::Customer,
            Role::Administrator => Self::Administrator,
        }
    }
}

/// Roles that a new account may have.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ValueEnum)]
#[serde(rename_all = "lowercase")]
#[expect(missing_docs, reason = "the variants of Scope, which says what each is")]
pub enum AccountRole {
    #[default]
    Customer,
    Administrator,
}

impl From<AccountRole> for Role {
    fn from(role: AccountRole) -> Self {
        match role {
            AccountRole::Customer => Self::Customer,
            AccountRole::Administrator => Self::Administrator,
        }
    }
}

/// Title of a person, without a full stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, strum::IntoStaticStr)]
#[expect(missing_docs, reason = "the names say it")]
pub enum AccountTitle {
    Mr,
    Mrs,
    Miss,
    Ms,
    Dr,
    Prof,
    Rev,
}

impl AccountTitle {
    /// All titles, in the contract's order.
    pub const ALL: [Self; 7] = [Self::Mr, Self::Mrs, Self::Miss, Self::Ms, Self::Dr, Self::Prof, Self::Rev];
}

/// A title in a request: `""` for none.
#[derive(Debug, Clone, Deserialize)]
#[serde(transparent)]
pub struct TitleInput(pub String);

inline_schema!(TitleInput, "TitleInput", optional_choice(AccountTitle::ALL.map(<&str>::from)));

/// Returns the schema of a text that is one of these or empty.
fn optional_choice<const N: usize>(choices: [&str; N]) -> Schema {
    let choices: Vec<_> = choices.into_iter().chain([""]).collect();
    schema_from_json(json!({ "type": "string", "enum": choices }))
}

/// A language in a request: `""` for the platform's default.
#[derive(Debug, Clone)]
pub struct LanguageInput(pub Option<Language>);

impl<'de> Deserialize<'de> for LanguageInput {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let code = String::deserialize(deserializer)?;
        Ok(Self(if code.is_empty() { None } else { Some(code.parse().map_err(serde::de::Error::custom)?) }))
    }
}

inline_schema!(LanguageInput, "LanguageInput", optional_choice(Language::ALL.map(Language::code)));

/// An account in API responses.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[expect(missing_docs, reason = "the contract describes the fields")]
pub struct Account {
    #[serde(rename = "self")]
    pub uri: Uri,
    pub number: AccountNumber,
    pub username: String,
    #[schemars(email)]
    pub email: String,
    pub role: Role,
    pub verified: bool,
    pub activated: bool,
    pub first_name: String,
    pub last_name: String,
    pub title: String,
    pub date_of_birth: OptionalDate,
    pub phone: String,
    pub country: String,
    pub first_address_line: String,
    pub second_address_line: String,
    pub city: String,
    pub state: String,
    pub language: String,
    pub preferences: Uri,
}

// The client that created the account may have to log in before it can read it.
has_location!(Account, SAME_REPRESENTATION = false);

/// Path parameters of an account.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct AccountPath {
    /// Account number.
    pub number: AccountNumber,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub struct AccountFilter {
    #[serde(flatten)]
    pub paging: PageRequest,
    pub number: Option<AccountNumber>,
    #[schemars(email, length(max = 254))]
    pub email: Option<String>,
    #[schemars(regex(pattern = r"^[A-Za-z0-9._-]{3,32}$"))]
    pub username: Option<String>,
}

/// Request body for a new account, already validated against the contract's `AccountCreate`.
#[derive(Debug, Deserialize, JsonSchema)]
#[expect(missing_docs, reason = "the contract describes the fields")]
pub struct AccountCreate {
    #[schemars(regex(pattern = r"^[A-Za-z0-9._-]{3,32}$"))]
    pub username: String,
    pub password: Password<8>,
    #[schemars(email, length(max = 254))]
    pub email: String,
    #[serde(flatten)]
    pub profile: Profile,
    pub role: Option<AccountRole>,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub struct AccountUpdate {
    #[schemars(regex(pattern = r"^[A-Za-z0-9._-]{3,32}$"))]
    pub username: Option<String>,
    pub password: Option<Password<8>>,
    #[schemars(email, length(max = 254))]
    pub email: Option<String>,
    #[serde(flatten)]
    pub profile: Profile,
}

/// The properties of a person in a request. All are optional.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Profile {
    #[schemars(length(max = 200))]
    pub first_name: Option<String>,
    #[schemars(length(max = 200))]
    pub last_name: Option<String>,
    pub title: Option<TitleInput>,
    pub date_of_birth: Option<BirthDate>,
    #[schemars(length(max = 40))]
    pub phone: Option<String>,
    #[schemars(length(max = 200))]
    pub country: Option<String>,
    #[schemars(length(max = 200))]
    pub first_address_line: Option<String>,
    #[schemars(length(max = 200))]
    pub second_address_line: Option<String>,
    #[schemars(length(max = 200))]
    pub city: Option<String>,
    #[schemars(length(max = 200))]
    pub state: Option<String>,
    pub language: Option<LanguageInput>,
}

/// Database row of an account, without the password hash. Only `sessions` reads that hash.
#[derive(Debug, Clone, sqlx_macros::FromRow)]
#[expect(missing_docs, reason = "the columns of the table")]
pub struct AccountRow {
    pub id: Id,
    pub number: String,
    pub username: String,
    pub email: String,
    pub role: Role,
    pub verified: bool,
    pub activated: bool,
    pub first_name: String,
    pub last_name: String,
    pub title: String,
    pub date_of_birth: Option<String>,
    pub phone: String,
    pub country: String,
    pub first_address_line: String,
    pub second_address_line: String,
    pub city: String,
    pub state: String,
    pub language: Option<Language>,
    /// Created for an e-mail address to which tickets were given. Its owner has not set a password yet.
    pub guest: bool,
    pub removed: bool,
}

/// Returns whether a text is a name, and has no address of a web page.
pub fn is_usual_name(text: &str) -> bool {
    let has_domain = text.split('.').skip(1).any(|rest| rest.starts_with(char::is_alphanumeric));
    !text.is_empty() && text.chars().count() <= MAX_GREETING && !text.contains(['/', ':', '@']) && !has_domain
}

/// Largest number of characters of a first name with which a mail begins.
const MAX_GREETING: usize = 40;

impl AccountRow {
    /// Returns the name by which mails address the person: the first name or else the username, unless it may be a message to the
    /// owner of an address that the account has entered, and else the number. A guest has only an e-mail address.
    pub fn greeting(&self) -> &str {
        if self.guest {
            return &self.email;
        }
        let names = [&self.first_name, &self.username].into_iter();
        names.map(String::as_str).find(|name| is_usual_name(name)).unwrap_or(&self.number)
    }

    /// Returns the recipient of a mail to the account's present address, whatever address the account has when the mail is sent.
    pub fn mail_address(&self) -> Recipient<'_> {
        Recipient::Address { account: self.id, email: &self.email, language: self.language }
    }
}
