//! A gate that admits tickets without a connection: it loads the signed list of an event's tickets, checks the QR codes of tickets by
//! itself, and uploads its scans later.
//!
//! ```sh
//! cargo run -p boxoffice-client --example offline_gate -- http://127.0.0.1:8080 PUBLIC_KEY TOKEN_CODE "Gate A"
//! ```
//!
//! It reads a scanned code or a serial number from each line of its input, and prints whether the ticket is admitted. The commands
//! `sync` and `quit` load changes and upload scans; between them, it needs no connection.

#![expect(clippy::print_stdout, reason = "the example prints each decision")]

use std::collections::{HashMap, HashSet};
use std::io::BufRead;

use anyhow::{Context, bail, ensure};
use aws_lc_rs::signature::{ED25519, UnparsedPublicKey};
use boxoffice_client::{Client, List, types};
use chrono::{DateTime, SecondsFormat, Utc};
use data_encoding::{BASE32_NOPAD, BASE64URL_NOPAD};
use futures::TryStreamExt;
use serde::Deserialize;
use sha2::{Digest, Sha256};

/// Most scans in one upload.
const UPLOAD_SCANS: usize = 10_000;
/// Length of the signed bytes of a code.
const CODE_CONTENT: usize = 29;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    const USAGE: &str = "usage: offline_gate ADDRESS PUBLIC_KEY TOKEN_CODE DEVICE";
    let mut arguments = std::env::args().skip(1);
    let [address, key, code, device] = [(); 4].map(|()| arguments.next());
    let application = Client::connect(address.as_deref().context(USAGE)?, &key.context(USAGE)?)?;
    let token = application.token_authentication_get().code(code.context(USAGE)?).send().await?;
    let client = Client::connect(&address.context(USAGE)?, &token.key)?;
    let event = token.event.rsplit('/').next().context("the token has no event")?;
    let mut gate = Gate::new(client, event, &device.context(USAGE)?);
    gate.sync().await?;
    println!("{} tickets.", gate.tickets.len());
    for line in std::io::stdin().lock().lines() {
        match line?.trim() {
            "" => {}
            "sync" => report(gate.sync().await),
            "quit" => break,
            scanned => println!("{:?}", gate.scan(scanned, Utc::now())),
        }
    }
    report(gate.sync().await);
    Ok(())
}

/// Prints the result of an exchange with the server. Without a connection, the scans stay in the queue.
fn report(result: anyhow::Result<Vec<types::AdmissionConflict>>) {
    match result {
        Ok(conflicts) => {
            for conflict in conflicts {
                println!(
                    "Two gates have admitted {}: {} and {}.",
                    conflict.ticket, conflict.admission.device, conflict.scan.device
                );
            }
        }
        Err(error) => println!("No connection: {error:#}."),
    }
}

/// The decision about a scanned ticket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// The ticket is admitted.
    Admitted,
    /// This gate has admitted the ticket before.
    AdmittedBefore,
    /// The text is neither a serial number nor a code that the server has signed for this event.
    Invalid,
    /// The list has no such ticket: it is of another section, or was sold after the last load.
    NotInList,
    /// The ticket is not Issued, or its event is Cancelled.
    NotIssued,
    /// The event admits tickets later.
    TooEarly,
}

/// A gate, with everything that it needs to admit without a connection. A real gate keeps this in a file.
pub struct Gate {
    client: Client,
    event: String,
    device: String,
    /// Public keys by identifier.
    keys: HashMap<String, Vec<u8>>,
    /// The status of each ticket, by the digest of its serial number.
    tickets: HashMap<String, String>,
    sections: Vec<String>,
    is_cancelled: bool,
    admission_from: Option<DateTime<Utc>>,
    /// The start of the next load of changes.
    modified_since: Option<String>,
    /// The digests of the tickets that this gate has admitted.
    admitted: HashSet<String>,
    /// Scans to be uploaded.
    queue: Vec<(String, DateTime<Utc>)>,
    /// The conflicts that were reported already.
    reported: HashSet<String>,
}

/// The signed content of a page of the list.
#[derive(Deserialize)]
struct ListContent {
    event: String,
    status: String,
    #[serde(rename = "admissionFrom")]
    admission_from: Option<DateTime<Utc>>,
    sections: Vec<String>,
    tickets: Vec<ListTickets>,
}

#[derive(Deserialize)]
struct ListTickets {
    status: String,
    digests: Vec<String>,
}

/// The list, or its changes, from all pages of a load.
struct LoadedList {
    tickets: HashMap<String, String>,
    sections: Vec<String>,
    is_cancelled: bool,
    admission_from: Option<DateTime<Utc>>,
    /// The start of the next load of changes.
    modified_since: String,
}

impl Gate {
    /// Creates a gate of an event. `client` has the key of an admission token, and no other gate has the name `device`.
    pub fn new(client: Client, event: &str, device: &str) -> Self {
        Self {
            client,
            event: event.to_owned(),
            device: device.to_owned(),
            keys: HashMap::new(),
            tickets: HashMap::new(),
            sections: Vec::new(),
            is_cancelled: false,
            admission_from: None,
            modified_since: None,
            admitted: HashSet::new(),
            queue: Vec::new(),
            reported: HashSet::new(),
        }
    }

    /// Returns the number of scans that are not uploaded yet.
    pub fn queued(&self) -> usize {
        self.queue.len()
    }

    /// Uploads scans, loads the changes of the list, and returns the conflicts that were not returned before.
    ///
    /// # Errors
    /// Returns an error if there is no connection. Nothing is lost: the next call does all of it.
    pub async fn sync(&mut self) -> anyhow::Result<Vec<types::AdmissionConflict>> {
        self.upload().await?;
        self.load().await?;
        self.new_conflicts().await
    }

    /// Decides about a scanned text, which is a ticket's code or its serial number. Needs no connection.
    pub fn scan(&mut self, text: &str, now: DateTime<Utc>) -> Decision {
        let text = text.trim().to_ascii_uppercase();
        let serial = if text.len() == 19 { Some(text) } else { self.serial_of_code(&text) };
        let Some(serial) = serial else { return Decision::Invalid };
        let digest = digest(&serial);
        if self.admitted.contains(&digest) {
            return Decision::AdmittedBefore;
        }
        match self.tickets.get(&digest).map(String::as_str) {
            None => Decision::NotInList,
            Some(_) if self.admission_from.is_some_and(|from| now < from) => Decision::TooEarly,
            Some("Issued") if !self.is_cancelled => {
                self.admitted.insert(digest);
                self.queue.push((serial, now));
                Decision::Admitted
            }
            Some(_) => Decision::NotIssued,
        }
    }

    /// Returns the serial number in a code that a server has signed for this event.
    fn serial_of_code(&self, code: &str) -> Option<String> {
        const DIGITS: &[u8; 36] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
        let bytes = BASE32_NOPAD.decode(code.as_bytes()).ok()?;
        let (content, signature) = bytes.split_at_checked(CODE_CONTENT)?;
        let number = |bytes: &[u8]| bytes.iter().fold(0_u128, |number, byte| number << 8 | u128::from(*byte));
        let kid = format!("{:08x}", number(&content[1..5]));
        let message = [b"boxoffice ticket", content].concat();
        UnparsedPublicKey::new(&ED25519, self.keys.get(&kid)?).verify(&message, signature).ok()?;
        if content[0] != 1 || number(&content[5..11]).to_string() != self.event {
            return None;
        }
        let serial = number(&content[17..]);
        let digit = |power: u32| char::from(DIGITS[usize::try_from(serial / 36_u128.pow(power) % 36).unwrap_or_default()]);
        let digits: String = (0..18).rev().map(digit).collect();
        Some(format!("{}-{}", &digits[..6], &digits[6..]))
    }

    /// Uploads the scans in the queue. They stay there until the response arrives: an upload can be repeated.
    async fn upload(&mut self) -> anyhow::Result<()> {
        while !self.queue.is_empty() {
            let count = self.queue.len().min(UPLOAD_SCANS);
            let scan = |(serial, time): &(String, DateTime<Utc>)| {
                let scan = types::UploadedScan::builder().serial(serial.as_str());
                scan.scanned(time.to_rfc3339_opts(SecondsFormat::Micros, true)).try_into()
            };
            let scans = self.queue[..count].iter().map(scan).collect::<Result<Vec<types::UploadedScan>, _>>()?;
            let request = self.client.event_offline_scan_create().event(&self.event);
            let result = request.body_map(|body| body.device(self.device.as_str()).scans(scans)).send().await?;
            for refused in &result.refused {
                println!("The server refused {}: {}.", refused.serial, refused.reason);
            }
            self.queue.drain(..count);
        }
        Ok(())
    }

    /// Loads the complete list, or its changes since the last load. Without a connection to the end, the gate keeps its list.
    async fn load(&mut self) -> anyhow::Result<()> {
        let keys = self.client.ticket_key_list().send().await?;
        for key in &keys.keys {
            self.keys.insert(key.kid.to_string(), BASE64URL_NOPAD.decode(key.x.as_bytes())?);
        }
        let mut since = self.modified_since.clone();
        let list = loop {
            match self.load_pages(since.as_deref()).await? {
                Some(list) if since.is_none() || list.sections == self.sections => break list,
                // The sections have changed, and the pages lack the earlier tickets of a section that was added.
                _ => since = None,
            }
        };
        if since.is_none() {
            self.tickets.clear();
        }
        self.tickets.extend(list.tickets);
        self.sections = list.sections;
        self.is_cancelled = list.is_cancelled;
        self.admission_from = list.admission_from;
        self.modified_since = Some(list.modified_since);
        Ok(())
    }

    /// Loads all pages of the list, or of its changes since a time. Returns `None` if the sections have changed between two pages.
    async fn load_pages(&self, since: Option<&str>) -> anyhow::Result<Option<LoadedList>> {
        let mut list: Option<LoadedList> = None;
        let mut after: Option<String> = None;
        loop {
            let mut request = self.client.event_gate_list_get().event(&self.event);
            if let Some(since) = since {
                request = request.modified_since(since);
            }
            if let Some(after) = &after {
                request = request.after(after.as_str());
            }
            let page = request.send().await?.into_inner();
            let content = self.verify(&page.list)?;
            let list = list.get_or_insert_with(|| LoadedList {
                tickets: HashMap::new(),
                sections: content.sections.clone(),
                is_cancelled: false,
                admission_from: None,
                modified_since: page.modified_since.to_string(),
            });
            if content.sections != list.sections {
                return Ok(None);
            }
            list.is_cancelled = content.status == "Cancelled";
            list.admission_from = content.admission_from;
            for group in content.tickets {
                list.tickets.extend(group.digests.into_iter().map(|digest| (digest, group.status.clone())));
            }
            match page.next {
                None => break,
                Some(next) => after = Some(parameter(&next, "after").context("the next page has no position")?.to_owned()),
            }
        }
        Ok(list)
    }

    /// Checks the signature of a page, and returns its content.
    fn verify(&self, list: &str) -> anyhow::Result<ListContent> {
        #[derive(Deserialize)]
        struct Header {
            kid: String,
        }
        let (signed, signature) = list.rsplit_once('.').context("the list has no signature")?;
        let (header, content) = signed.split_once('.').context("the list has no header")?;
        let header: Header = serde_json::from_slice(&BASE64URL_NOPAD.decode(header.as_bytes())?)?;
        let key = self.keys.get(&header.kid).context("the list has an unknown key")?;
        let signature = BASE64URL_NOPAD.decode(signature.as_bytes())?;
        if UnparsedPublicKey::new(&ED25519, key).verify(signed.as_bytes(), &signature).is_err() {
            bail!("the list has an invalid signature");
        }
        let content: ListContent = serde_json::from_slice(&BASE64URL_NOPAD.decode(content.as_bytes())?)?;
        ensure!(content.event.ends_with(&format!("/{}", self.event)), "the list is of another event");
        Ok(content)
    }

    /// Returns the conflicts of this gate that were not returned before.
    async fn new_conflicts(&mut self) -> anyhow::Result<Vec<types::AdmissionConflict>> {
        let request = self.client.event_admission_conflict_list().event(&self.event).device(self.device.as_str());
        let conflicts: Vec<_> = request.records(100).stream().try_collect().await?;
        let id = |conflict: &types::AdmissionConflict| format!("{} {}", conflict.ticket, conflict.scan.device);
        Ok(conflicts.into_iter().filter(|conflict| self.reported.insert(id(conflict))).collect())
    }
}

/// Returns the digest by which the list has a ticket.
fn digest(serial: &str) -> String {
    BASE64URL_NOPAD.encode(&Sha256::digest(serial)[..16])
}

/// Returns a parameter in the query of a URI.
fn parameter<'a>(uri: &'a str, name: &str) -> Option<&'a str> {
    let query = uri.split_once('?')?.1;
    query.split('&').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='))
}
