//! People with accounts, each with a client that acts for them.

use boxoffice_client::Error;

use super::{Client, World, types};

/// The password of everyone in these tests.
pub const PASSWORD: &str = "correct horse battery";

/// Somebody who has signed up and logged in.
pub struct Person {
    /// Acts for this person.
    pub client: Client,
    /// Their account's number.
    pub number: String,
    /// Their username.
    pub username: String,
    /// The key of their session.
    pub key: String,
}

impl World {
    /// Somebody new, signed up and logged in.
    pub async fn person(&self, name: &str) -> Person {
        let sign_up = self.anyone.account_create().body_map(|body| {
            body.username(name).email(format!("{name}@example.com")).password(PASSWORD).first_name(name.to_owned())
        });
        let account = sign_up.send().await.unwrap();
        let log_in = self.anyone.session_create().body_map(|body| body.identification(name).password(PASSWORD));
        let session = log_in.send().await.unwrap();
        Person {
            client: self.client(&session.key),
            number: account.number.clone(),
            username: name.to_owned(),
            key: session.key.clone(),
        }
    }

    /// A client that acts with this key.
    pub fn client(&self, key: &str) -> Client {
        Client::connect(&self.address, key).unwrap()
    }
}

impl Person {
    /// Orders that many tickets of a section, named by any of its URIs.
    pub async fn order(&self, section: &str, quantity: i64) -> Result<types::Order, Error<types::Error>> {
        self.order_all([(section, quantity)]).await
    }

    /// Orders tickets of several sections at once.
    pub async fn order_all<'a>(
        &self,
        items: impl IntoIterator<Item = (&'a str, i64)>,
    ) -> Result<types::Order, Error<types::Error>> {
        let items = items.into_iter().map(|(section, quantity)| (section.to_owned(), quantity));
        let items = items.collect::<std::collections::HashMap<_, _>>();
        let order = self.client.order_create().body_map(|body| body.items(items)).send().await?;
        Ok(order.into_inner())
    }

    /// Pays all that is outstanding by card.
    pub async fn pay(&self, order: &types::Order) -> Result<types::Payment, Error<types::Error>> {
        let payment = self.client.order_payment_create().order(order.number.clone());
        let payment = payment.body_map(|body| body.method(types::PaymentMethod::Card).token("tok_approve".to_owned()));
        Ok(payment.send().await?.into_inner())
    }
}
