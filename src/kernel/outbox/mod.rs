//! The outbox: mail that is to leave, written in the transaction of what it tells of.
//!
//! [`push`] writes a mail down, and [`deliver_due`], a job's step, hands it to the [`Carrier`]: a mail server, or a folder where
//! none is set. A mail is handed over at least once, and but once unless a server ends or loses its connection between the
//! carrier's taking it and the note that it did; its `Message-ID` then is the same. What cannot be handed over is tried again
//! with growing pauses, and given up in the end. What is on the way to an account that is erased is forgotten.
//!
//! ```ignore
//! transaction!(app.db, |tx| {
//!     store::insert(tx, &code).await?;
//!     outbox::push(app, tx, [Mail { recipient: &account.email, subject: "Your code", body: text.clone() }]).await
//! })
//! ```

mod transport;
mod file_transport;
mod model;
mod service;
mod smtp;
mod store;

pub use transport::{DeliveryError, MailTransport, OutgoingMail, from_settings};
pub use model::Mail;
pub use service::{deliver_due, push};
pub use store::forget;
