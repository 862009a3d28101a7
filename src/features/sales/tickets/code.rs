//! Codes of tickets: signed texts that a device at the entrance can check without a connection, shown as QR codes.
//!
//! A code is base32 without padding (RFC 4648), so that a QR code needs only its alphanumeric mode. The bytes are:
//!
//! | bytes | content |
//! |---|---|
//! | 1 | version, 1 |
//! | 4 | identifier of the key |
//! | 6 | event |
//! | 6 | section |
//! | 12 | serial number without its hyphen, as a number of base 36 |
//! | 64 | Ed25519 signature of `boxoffice ticket` and the bytes before |
//!
//! Numbers are big-endian. The code has the serial number, so it changes when the ticket changes hands, and a list of serial
//! numbers decides if it still admits. The signature keeps a device without a current list from admitting invented tickets.

use anyhow::anyhow;
use boxoffice_http::error::Result;
use data_encoding::{BASE32_NOPAD, BASE64URL_NOPAD};
use schemars::JsonSchema;
use serde::Serialize;

use super::model::{TicketRow, TicketStatus, uri};
use super::{qr_code, service};
use crate::features::catalog::media::StoredImage;
use crate::features::codes;
use crate::kernel::auth::Caller;
use crate::kernel::signing::{self, KeyId, PublicKey, SigningKey};
use crate::kernel::types::api_types::Uri;
use crate::kernel::types::id::Id;
use crate::kernel::types::secret;
use crate::state::Ctx;

const VERSION: u8 = 1;
/// Length of the signed bytes.
const CONTENT_LENGTH: usize = 29;
/// Length of a code in characters.
const CODE_LENGTH: usize = 149;
/// Precedes the signed bytes, so that a signature of another kind is not a ticket's.
const DOMAIN: &[u8] = b"boxoffice ticket";

/// A ticket's code in a response.
#[derive(Debug, Serialize, JsonSchema)]
pub struct TicketCode {
    /// The URI.
    #[serde(rename = "self")]
    pub uri: Uri,
    /// The ticket.
    pub ticket: Uri,
    /// The signed text.
    #[schemars(regex(pattern = r"^[A-Z2-7]{149}$"))]
    pub code: String,
    /// The code as a PNG image.
    pub png: Uri,
    /// The code as an SVG image.
    pub svg: Uri,
}

/// Returns the code of a ticket.
///
/// # Errors
/// [`codes::TICKET_NOT_ISSUED`] for a ticket that doesn't admit.
pub async fn get(ctx: &Ctx, caller: &Caller, ticket: Id) -> Result<TicketCode> {
    let code = load(ctx, caller, ticket).await?;
    let ticket = uri(ticket);
    let of_ticket = |path: &str| Uri(format!("{}/{path}", ticket.0));
    Ok(TicketCode { uri: of_ticket("code"), code, png: of_ticket("code/png"), svg: of_ticket("code/svg"), ticket })
}

/// Returns the code of a ticket as an image of `size` pixels.
///
/// # Errors
/// Like [`get`] and [`AccountWorkerPool::run`](crate::kernel::worker_pool::AccountWorkerPool::run).
pub async fn get_image(ctx: &Ctx, caller: &Caller, ticket: Id, format: qr_code::QrCodeFormat, size: u32) -> Result<StoredImage> {
    let code = load(ctx, caller, ticket).await?;
    ctx.app.ticket_workers.codes.run(caller.account, move || qr_code::draw(&code, format, size)).await?
}

async fn load(ctx: &Ctx, caller: &Caller, ticket: Id) -> Result<String> {
    let row = service::load_authorized(&mut ctx.unit.read().await?, caller, ticket).await?;
    if row.status != TicketStatus::Issued {
        return Err(codes::TICKET_NOT_ISSUED.with_message("Only a ticket that is Issued has a code."));
    }
    sign(&ctx.app.ticket_keys.own, &row)
}

/// Returns the signed text of a ticket.
///
/// # Errors
/// Returns an error if the ticket has no valid serial number, which the database must not contain.
pub fn sign(key: &SigningKey, ticket: &TicketRow) -> Result<String> {
    let content = content(key.id, ticket).ok_or_else(|| anyhow!("the ticket {} can't have a code", ticket.id))?;
    let signature = key.sign(&[DOMAIN, &content].concat());
    Ok(BASE32_NOPAD.encode(&[content.as_slice(), &signature].concat()))
}

fn content(key: KeyId, ticket: &TicketRow) -> Option<[u8; CONTENT_LENGTH]> {
    let mut content = [0; CONTENT_LENGTH];
    content[0] = VERSION;
    content[1..5].copy_from_slice(&key.0);
    content[5..11].copy_from_slice(&bytes_of_id(ticket.event_id)?);
    content[11..17].copy_from_slice(&bytes_of_id(ticket.section_id)?);
    let serial = u128::from_str_radix(&ticket.serial.replace('-', ""), 36).ok()?;
    content[17..].copy_from_slice(serial.to_be_bytes().strip_prefix(&[0; 4])?);
    Some(content)
}

/// Returns the last 6 bytes of an identifier, which has 14 digits.
fn bytes_of_id(id: Id) -> Option<[u8; 6]> {
    id.0.to_be_bytes().strip_prefix(&[0; 2])?.try_into().ok()
}

/// Replaces the codes among scanned texts, in upper or lower case, by their serial numbers. A code that no server has signed stays, and no
/// ticket has it.
pub async fn replace_codes(ctx: &Ctx, texts: &mut [String]) -> Result<()> {
    let codes: Vec<(&mut String, SignedCode)> =
        texts.iter_mut().filter_map(|text| SignedCode::decode(text).map(|code| (text, code))).collect();
    if codes.is_empty() {
        return Ok(());
    }
    let keys = ctx.app.ticket_keys.public_keys(ctx, codes.iter().map(|(_, code)| code.key).collect()).await?;
    for (text, code) in codes {
        if let Some(serial) = keys.get(&code.key).and_then(|key| code.verify(key)) {
            *text = serial;
        }
    }
    Ok(())
}

/// A code with the form of one that a server has signed.
struct SignedCode {
    bytes: Vec<u8>,
    key: KeyId,
}

impl SignedCode {
    /// Decodes a scanned text. A serial number is shorter than a code.
    fn decode(text: &str) -> Option<Self> {
        if text.len() != CODE_LENGTH {
            return None;
        }
        let bytes = BASE32_NOPAD.decode(text.to_ascii_uppercase().as_bytes()).ok()?;
        let [VERSION, a, b, c, d, ..] = *bytes else { return None };
        Some(Self { key: KeyId([a, b, c, d]), bytes })
    }

    /// Returns the serial number if the key has signed the code.
    fn verify(&self, key: &PublicKey) -> Option<String> {
        let (content, signature) = self.bytes.split_at_checked(CONTENT_LENGTH)?;
        let is_signed = signing::is_signed_by(key, &[DOMAIN, content].concat(), signature);
        content.get(17..).and_then(serial_of_bytes).filter(|_| is_signed)
    }
}

/// Returns the digest of a serial number, by which a list for a gate has it: the first 16 bytes of its SHA-256 hash in base64url.
pub fn digest(serial: &str) -> String {
    BASE64URL_NOPAD.encode(&secret::digest(serial)[..16])
}

/// Returns the serial number of these 12 bytes.
pub fn serial_of_bytes(bytes: &[u8]) -> Option<String> {
    const DIGITS: &[u8; 36] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
    let mut number = bytes.iter().fold(0, |number: u128, byte| number << 8 | u128::from(*byte));
    let mut digits = [b'0'; 18];
    for digit in digits.iter_mut().rev() {
        *digit = DIGITS[usize::try_from(number % 36).ok()?];
        number /= 36;
    }
    let digits = std::str::from_utf8(&digits).ok().filter(|_| number == 0)?;
    Some(format!("{}-{}", &digits[..6], &digits[6..]))
}
