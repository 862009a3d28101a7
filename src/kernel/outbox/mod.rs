//! The outbox: mail that is stored in the transaction that causes it, and sent later.
//!
//! [`push`] stores a mail: a template and its values, or identifiers by which [`MailContents`] loads them at the time of the
//! delivery. [`deliver_due`], a job step, renders it and passes it to the [`MailTransport`]: a mail server, or a folder if no
//! mail server is configured. Delivery is at least once; a duplicate is possible only if the server crashes or loses its
//! connection between the delivery and the database update, and has the same `Message-ID`. Failed deliveries are retried with
//! growing delays, and finally given up. Mail to a deleted account is deleted.
//!
//! The values of a mail are encrypted ([`MailCipher`]) and deleted as soon as it is delivered or given up. A mail with a code
//! ([`push_until`]) is given up when the code expires.
//!
//! ```ignore
//! transaction!(kernel.db, |tx| {
//!     store::insert(tx, &order).await?;
//!     let (recipient, values) = (Recipient::Account(order.account_id), json!({ "order": order.id }));
//!     outbox::push(kernel, tx, [Mail { recipient, template: MailTemplate::OrderConfirmation, values }]).await
//! })
//! ```

mod cipher;
mod content;
mod counts;
mod file_transport;
mod model;
mod samples;
mod service;
mod smtp;
mod store;
mod template;
mod transport;

pub use cipher::MailCipher;
pub use content::{Attachment, DueMail, DueRecipient, MailContent, MailContents};
pub use counts::MailCounts;
pub use model::{Mail, MailRow, QueuedMail, Recipient};
pub use service::{
    DELIVER_MAIL, WaitingMails, correct_future, delete_old, deliver_due, discard, make_all_due, make_due, push, push_until,
    waiting, warn_of_other_keys, write,
};
pub use smtp::check_mail_server;
pub use store::{delete_of_account, find, list};
pub use template::{MailTemplate, MailTemplates, OPEN_PAGE, RenderedMail, format_money, format_time, page_link, write_embedded};
pub use transport::{DeliveryError, MailTransport, OutgoingMail, from_settings};
