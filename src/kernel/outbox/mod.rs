//! The outbox: mail that is stored in the transaction that causes it, and sent later.
//!
//! [`push`] stores a mail. [`deliver_due`], a job step, passes it to the [`MailTransport`]: a mail server, or a folder if no
//! mail server is configured. Delivery is at least once; a duplicate is possible only if the server crashes or loses its
//! connection between the delivery and the database update, and has the same `Message-ID`. Failed deliveries are retried with
//! growing delays, and finally given up. Mail to a deleted account is deleted.
//!
//! The text of a mail is encrypted ([`MailCipher`]) and deleted as soon as it is delivered or given up. A mail with a code
//! ([`push_until`]) is given up when the code expires.
//!
//! ```ignore
//! transaction!(kernel.db, |tx| {
//!     store::insert(tx, &code).await?;
//!     outbox::push(kernel, tx, [Mail { recipient: &account.email, subject: "Your code", body: text.clone() }]).await
//! })
//! ```

mod cipher;
mod file_transport;
mod model;
mod service;
mod smtp;
mod store;
mod transport;

pub use cipher::MailCipher;
pub use model::{Mail, QueuedMail};
pub use service::{WaitingMails, correct_future, delete_old, deliver_due, discard, make_due, push, push_until, waiting};
pub use smtp::check_mail_server;
pub use store::{find, forget, list};
pub use transport::{DeliveryError, MailTransport, OutgoingMail, from_settings};
