//! Users with accounts, each with a client that holds their session's key.

use boxoffice_client::{ClientBuilder, Error};

use super::{Client, TestApp, types};

/// The password of every user.
pub const PASSWORD: &str = "correct horse battery";

/// A user who has signed up and logged in.
#[derive(Clone)]
pub struct User {
    /// A client with this user's key.
    pub client: Client,
    /// The number of their account.
    pub number: String,
    /// Their username.
    pub username: String,
    /// The key of their session.
    pub key: String,
}

impl TestApp {
    /// Signs a new user up and logs them in.
    pub async fn sign_up(&self, name: &str) -> User {
        let sign_up = self.public_client.account_create().body_map(|body| {
            body.username(name).email(format!("{name}@example.com")).password(PASSWORD).first_name(name.to_owned())
        });
        let account = sign_up.send().await.unwrap();
        let log_in = self.public_client.session_create().body_map(|body| body.identification(name).password(PASSWORD));
        let session = log_in.send().await.unwrap();
        User {
            client: self.client(&session.key),
            number: account.number.clone(),
            username: name.to_owned(),
            key: session.key.clone(),
        }
    }

    /// Creates a client with this key.
    pub fn client(&self, key: &str) -> Client {
        client(&self.address, key)
    }
}

/// Creates a client of the server at `address` with this key.
pub fn client(address: &str, key: &str) -> Client {
    ClientBuilder::new(address, key).build_on(plain_http()).unwrap()
}

/// Returns a builder of HTTP clients without TLS. Each test has several clients, and reading the certificates of the system would
/// take longer than most requests.
pub fn plain_http() -> reqwest::ClientBuilder {
    reqwest::Client::builder().tls_certs_only([])
}

impl User {
    /// Orders tickets of a section, given by any of its URIs.
    pub async fn order(&self, section: &str, quantity: i64) -> Result<types::Order, Error<types::Error>> {
        self.order_items([(section, quantity)]).await
    }

    /// Orders tickets of several sections.
    pub async fn order_items<'a>(
        &self,
        items: impl IntoIterator<Item = (&'a str, i64)>,
    ) -> Result<types::Order, Error<types::Error>> {
        let items = items.into_iter().map(|(section, quantity)| (section.to_owned(), quantity));
        let items = items.collect::<std::collections::HashMap<_, _>>();
        let order = self.client.order_create().body_map(|body| body.items(items)).send().await?;
        Ok(order.into_inner())
    }

    /// Orders tickets of several sections, and pays for them by card unless they are free. Returns the order as placed.
    pub async fn buy(&self, items: &[(&str, i64)]) -> types::Order {
        let order = self.order_items(items.iter().copied()).await.unwrap();
        if order.total > 0.0 {
            self.pay(&order).await.unwrap();
        }
        order
    }

    /// Pays the outstanding amount by card.
    pub async fn pay(&self, order: &types::Order) -> Result<types::Payment, Error<types::Error>> {
        let payment = self.client.order_payment_create().order(order.number.clone());
        let payment = payment.body_map(|body| body.method(types::PaymentMethod::Card).token("tok_approve".to_owned()));
        Ok(payment.send().await?.into_inner())
    }

    /// Orders free tickets of a section, and returns their serials.
    pub async fn order_free_tickets(&self, section: &str, quantity: usize) -> Vec<String> {
        self.order(section, quantity.try_into().unwrap()).await.unwrap();
        let wallet = self.client.account_ticket_list().number(self.number.as_str()).records(100).send().await.unwrap();
        let newest = wallet.entries.iter().skip(wallet.entries.len() - quantity);
        newest.map(|ticket| ticket.serial.to_string()).collect()
    }
}
