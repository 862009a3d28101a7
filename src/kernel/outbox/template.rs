//! Templates of mails: HTML files, one for each mail and language, embedded in the program and replaceable by the operator.
//!
//! The text alternative of a mail is derived from its HTML, and its subject is the block `subject` of its template. Values are
//! escaped. An unknown variable is an error. A server with templates of the operator finds it at its start, because it renders every
//! template with sample values; the tests do so with the embedded ones.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, anyhow, bail, ensure};
use chrono::{DateTime, Datelike, Utc};
use chrono_tz::Tz;
use minijinja::value::Serde;
use minijinja::{AutoEscape, Environment, ErrorKind, State, UndefinedBehavior};
use serde::Serialize;
use serde_json::Value;

use super::samples;
use crate::kernel::settings::Settings;
use crate::kernel::types::clock::Timestamp;
use crate::kernel::types::currency::Currency;
use crate::kernel::types::language::Language;
use crate::kernel::types::money::Money;

/// Largest size of a template file, in bytes.
const MAX_FILE_BYTES: u64 = 256 * 1024;
/// Largest number of characters of a subject.
const MAX_SUBJECT: usize = 200;
/// The page to which links lead without a website of the operator.
pub const OPEN_PAGE: &str = "/open";
/// Width of the text alternative, in characters.
const TEXT_WIDTH: usize = 76;
/// The ending of a template's name by which its values are not escaped, for subjects.
const PLAIN: &str = ".txt";

/// Declares the mails with their templates' file names.
macro_rules! mail_templates {
    ($($(#[$doc:meta])* $variant:ident = $name:literal,)*) => {
        /// A mail that the platform sends.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum MailTemplate {
            $($(#[$doc])* $variant,)*
        }

        impl MailTemplate {
            /// All mails.
            pub const ALL: &[Self] = &[$(Self::$variant),*];

            /// Returns the name, which is that of the template's file without `.html`.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }
        }

        /// The embedded template files by their paths.
        const FILES: &[(&str, &str)] = &[
            ("base.html", include_str!("../../../templates/mail/base.html")),
            ("events.html", include_str!("../../../templates/mail/events.html")),
            ("reason.html", include_str!("../../../templates/mail/reason.html")),
            ("en/footer.html", include_str!("../../../templates/mail/en/footer.html")),
            ("fr/footer.html", include_str!("../../../templates/mail/fr/footer.html")),
            $(
                (concat!("en/", $name, ".html"), include_str!(concat!("../../../templates/mail/en/", $name, ".html"))),
                (concat!("fr/", $name, ".html"), include_str!(concat!("../../../templates/mail/fr/", $name, ".html"))),
            )*
        ];
    };
}

mail_templates! {
    /// A code that verifies an e-mail address.
    VerificationCode = "verification-code",
    /// A code with which a user sets a new password.
    PasswordReset = "password-reset",
    /// The password or the e-mail address was changed.
    CredentialsChanged = "credentials-changed",
    /// To administrators: an account is to be deleted.
    DeletionRequested = "deletion-requested",
    /// The decision on a submission.
    ReviewDecision = "review-decision",
    /// An order is fulfilled. The tickets are attached.
    OrderConfirmation = "order-confirmation",
    /// An open order was cancelled.
    OrderCancelled = "order-cancelled",
    /// Tickets of an order were returned.
    TicketsReturned = "tickets-returned",
    /// An order was voided.
    OrderVoided = "order-voided",
    /// To the holder of transferred tickets: the tickets are void, because their order was returned or voided.
    TicketsVoided = "tickets-voided",
    /// A payment of an order that ended unpaid was refunded.
    Refund = "refund",
    /// The time or the venue of an event was changed.
    EventChanged = "event-changed",
    /// An event was cancelled.
    EventCancelled = "event-cancelled",
    /// Places are reserved for an account that has waited for them.
    PlacesOffered = "places-offered",
    /// An account is offered tickets.
    TransferReceived = "transfer-received",
    /// An account has accepted tickets, which are attached.
    TransferClaimed = "transfer-claimed",
}

impl MailTemplate {
    /// Returns the mail with this name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|template| template.name() == name)
    }
}

/// A mail with its values filled in.
#[derive(Debug, PartialEq, Eq)]
pub struct RenderedMail {
    /// The subject, in one line.
    pub subject: String,
    /// The text alternative.
    pub text: String,
    /// The HTML; mails of earlier versions have none.
    pub html: Option<String>,
}

/// The values that all mails have.
#[derive(Serialize)]
struct CommonValues<'a> {
    language: &'static str,
    platform: &'a str,
    site: &'a str,
    time_zone: &'a str,
    #[serde(flatten)]
    values: &'a Value,
}

/// All templates.
pub struct MailTemplates {
    environment: Environment<'static>,
    platform: String,
    site: String,
    time_zone: String,
}

impl MailTemplates {
    /// Reads the templates of the operator's folder, and renders each mail with sample values. Without a folder, the mails have the
    /// embedded templates.
    ///
    /// # Errors
    /// Returns an error that names the file and the line of a broken template, or a file that replaces no template.
    pub fn open(settings: &Settings) -> anyhow::Result<Self> {
        let folder = settings.mail.templates.as_deref();
        let mut environment = Environment::new();
        environment.set_undefined_behavior(UndefinedBehavior::Strict);
        environment.set_auto_escape_callback(|name| if name.ends_with(PLAIN) { AutoEscape::None } else { AutoEscape::Html });
        add_functions(&mut environment, settings);
        let mut sources = HashMap::new();
        for (name, embedded) in FILES {
            let replacement = folder.map(|folder| read_replacement(folder, name)).transpose()?.flatten();
            sources.insert(*name, replacement.map_or(Cow::Borrowed(*embedded), Cow::Owned));
        }
        // Each is parsed when it is first needed.
        environment.set_loader(move |name| Ok(sources.get(name.trim_end_matches(PLAIN)).map(|source| source.to_string())));
        let platform = settings.mail.from.name.clone().unwrap_or_else(|| host_of(&settings.public_url).to_owned());
        let site = settings.site_url.clone().unwrap_or_else(|| settings.public_url.clone());
        let templates = Self { environment, platform, site, time_zone: settings.mail.time_zone.name().to_owned() };
        if let Some(folder) = folder {
            reject_unknown_files(folder)?;
            templates.check(folder)?;
        }
        Ok(templates)
    }

    /// Renders every mail in every language with sample values.
    fn check(&self, folder: &Path) -> anyhow::Result<()> {
        for template in MailTemplate::ALL {
            for language in Language::ALL {
                for sample in samples::values(*template) {
                    self.try_render(*template, language, &sample).map_err(|error| located(Some(folder), &error))?;
                }
            }
        }
        Ok(())
    }

    /// Returns the platform's name: that of the sender, or else the host of the public address.
    pub fn platform(&self) -> &str {
        &self.platform
    }

    /// Fills the values of a mail in.
    ///
    /// # Errors
    /// Returns an error if a value is missing.
    pub fn render(&self, template: MailTemplate, language: Language, values: &Value) -> anyhow::Result<RenderedMail> {
        self.try_render(template, language, values).map_err(|error| located(None, &error))
    }

    fn try_render(&self, template: MailTemplate, language: Language, values: &Value) -> Result<RenderedMail, minijinja::Error> {
        let (platform, site, time_zone) = (self.platform.as_str(), self.site.as_str(), self.time_zone.as_str());
        let values = CommonValues { language: language.code(), platform, site, time_zone, values };
        let values = minijinja::Value::from(Serde(&values));
        let name = format!("{}/{}.html", language.code(), template.name());
        let mut plain = self.environment.get_template(&format!("{name}{PLAIN}"))?.render_captured(values.clone())?;
        let subject = one_line(&plain.with_state_mut(|state| state.render_block("subject"))?);
        let mut html = self.environment.get_template(&name)?.render_captured(values)?;
        let mut block = |name: &str| html.with_state_mut(|state| state.render_block(name));
        let (content, footer) = (block("content")?, block("footer")?);
        let text = format!("{}\n-- \n{}", plain_text(&content)?, plain_text(&footer)?);
        Ok(RenderedMail { subject, text, html: Some(html.into_output()) })
    }
}

/// Returns the address of a resource's page for browsers: on the operator's site, or else the server's page that shows what to do.
pub fn page_link(settings: &Settings, path: &str) -> String {
    match &settings.site_url {
        Some(site) => format!("{site}{path}"),
        None => format!("{}{OPEN_PAGE}?to={path}", settings.public_url),
    }
}

/// Adds the filters `datetime` and `money` and the function `link`.
fn add_functions(environment: &mut Environment<'static>, settings: &Settings) {
    let zone = settings.mail.time_zone;
    environment.add_filter("datetime", move |state: &State<'_, '_>, micros: i64| {
        Ok::<_, minijinja::Error>(format_time(Timestamp(micros), zone, language_of(state)?))
    });
    let currency = settings.currency;
    environment.add_filter("money", move |state: &State<'_, '_>, minor: i64| {
        Ok::<_, minijinja::Error>(format_money(Money(minor), currency, language_of(state)?))
    });
    let base: Arc<str> = page_link(settings, "").into();
    // The template engine would escape slashes too, which spam filters take for an attempt to hide the link.
    let escape = |url: String| url.replace('&', "&amp;").replace('<', "&lt;").replace('"', "&quot;");
    environment.add_function("link", move |path: String| minijinja::Value::from_safe_string(escape(format!("{base}{path}"))));
}

fn language_of(state: &State<'_, '_>) -> Result<Language, minijinja::Error> {
    let code = state.lookup("language").map(|code| code.to_string()).unwrap_or_default();
    code.parse().map_err(|error: anyhow::Error| minijinja::Error::new(ErrorKind::InvalidOperation, error.to_string()))
}

/// Formats a time with its day and the abbreviation of its time zone, as `Saturday, 20 December 2025, 19:00 GMT`.
pub fn format_time(time: Timestamp, zone: Tz, language: Language) -> String {
    let time: DateTime<Utc> = DateTime::from_timestamp_micros(time.0).unwrap_or_default();
    let time = time.with_timezone(&zone);
    let format = match language {
        Language::En => "%A, %-d %B %Y, %H:%M %Z",
        Language::Fr if time.day() == 1 => "%A 1er %B %Y à %H:%M %Z",
        Language::Fr => "%A %-d %B %Y à %H:%M %Z",
    };
    time.format_localized(format, language.locale()).to_string()
}

/// Formats an amount, as `GHS 1,234.50` or `1 234,50 GHS`, or `UGX 1,234` without decimals, with spaces at which no line is broken.
pub fn format_money(amount: Money, currency: Currency, language: Language) -> String {
    let (separator, point) = match language {
        Language::En => (',', '.'),
        Language::Fr => ('\u{202f}', ','),
    };
    let digits = (amount.0 / 100).unsigned_abs().to_string();
    let mut whole = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            whole.push(separator);
        }
        whole.push(digit);
    }
    let sign = if amount.0 < 0 { "-" } else { "" };
    let amount = format!("{sign}{whole}{}", currency.fraction(amount, point));
    match language {
        Language::En => format!("{currency}\u{a0}{amount}"),
        Language::Fr => format!("{amount}\u{a0}{currency}"),
    }
}

/// Returns the text in one line without control characters, so that it can't add a header to the mail.
fn one_line(text: &str) -> String {
    let words: Vec<&str> =
        text.split(|letter: char| letter.is_whitespace() || letter.is_control()).filter(|word| !word.is_empty()).collect();
    let line = words.join(" ");
    match line.char_indices().nth(MAX_SUBJECT) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

fn plain_text(html: &str) -> Result<String, minijinja::Error> {
    // Each cell of a table is a line: columns would be wrapped.
    let config = html2text::config::plain().raw_mode(true).allow_width_overflow().no_link_wrapping();
    let text = config.string_from_read(html.as_bytes(), TEXT_WIDTH);
    text.map_err(|error| minijinja::Error::new(ErrorKind::BadSerialization, error.to_string()))
}

/// Returns the operator's file in place of a template, if there is one.
fn read_replacement(folder: &Path, name: &str) -> anyhow::Result<Option<String>> {
    let file = folder.join(name);
    if !file.exists() {
        return Ok(None);
    }
    let size = fs::metadata(&file).with_context(|| format!("cannot read {}", file.display()))?.len();
    ensure!(size <= MAX_FILE_BYTES, "{} is larger than {} KiB", file.display(), MAX_FILE_BYTES / 1024);
    fs::read_to_string(&file).map(Some).with_context(|| format!("cannot read {}", file.display()))
}

/// Rejects a file whose name is that of no template: it has no effect, so its name is probably misspelled.
fn reject_unknown_files(folder: &Path) -> anyhow::Result<()> {
    let read = |folder: &Path| fs::read_dir(folder).with_context(|| format!("cannot read the folder {}", folder.display()));
    let mut entries: Vec<_> = read(folder)?.collect::<Result<_, _>>()?;
    for language in Language::ALL.map(|language| folder.join(language.code())).iter().filter(|folder| folder.is_dir()) {
        entries.extend(read(language)?.collect::<Result<Vec<_>, _>>()?);
    }
    for path in entries.iter().map(fs::DirEntry::path).filter(|path| path.extension().is_some_and(|end| end == "html")) {
        let name = path.strip_prefix(folder).unwrap_or(&path).to_string_lossy().replace('\\', "/");
        if !FILES.iter().any(|(known, _)| *known == name) {
            bail!("{} replaces no mail template", path.display());
        }
    }
    Ok(())
}

/// Returns an error with the file and the line at which a template failed.
fn located(folder: Option<&Path>, error: &minijinja::Error) -> anyhow::Error {
    let name = error.name().unwrap_or_default();
    let name = name.strip_suffix(PLAIN).unwrap_or(name);
    let file = match folder.map(|folder| folder.join(name)).filter(|file| file.is_file()) {
        Some(file) => file.display().to_string(),
        None => format!("the mail template {name}"),
    };
    let line = error.line().map(|line| format!(", line {line}")).unwrap_or_default();
    let detail = error.detail().map(|detail| format!(": {detail}")).unwrap_or_default();
    anyhow!("{file}{line}: {}{detail}", error.kind())
}

fn host_of(url: &str) -> &str {
    let host = url.split_once("://").map_or(url, |(_, rest)| rest);
    host.split(['/', ':']).next().unwrap_or(host)
}

/// Writes the embedded templates into a folder, for an operator to change.
///
/// # Errors
/// Returns an error if a file exists or can't be written.
pub fn write_embedded(folder: &Path) -> anyhow::Result<()> {
    for (name, source) in FILES {
        let file = folder.join(name);
        ensure!(!file.exists(), "{} exists already", file.display());
        if let Some(parent) = file.parent() {
            fs::create_dir_all(parent).with_context(|| format!("cannot create {}", parent.display()))?;
        }
        fs::write(&file, source).with_context(|| format!("cannot write {}", file.display()))?;
    }
    Ok(())
}
