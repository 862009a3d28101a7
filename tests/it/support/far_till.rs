//! The [`Till`] for servers in other processes: it outlives them, so that what they took can be counted when they are killed.
//!
//! A connection for each question: a line of JSON, and a line in answer.

use std::net::SocketAddr;

use anyhow::{Context, bail};
use async_trait::async_trait;
use boxoffice::base::id::Id;
use boxoffice::base::money::Money;
use boxoffice::payments::{CancelCharge, Charge, Gateway, Outcome, Refund, Sandbox};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};

use super::Till;

/// The till at this address, as a gateway.
pub struct FarTill(pub SocketAddr);

impl FarTill {
    async fn ask(&self, question: Value) -> anyhow::Result<Value> {
        let mut till = BufReader::new(TcpStream::connect(self.0).await?);
        till.write_all(format!("{question}\n").as_bytes()).await?;
        let mut answer = String::new();
        till.read_line(&mut answer).await?;
        let answer: Value = serde_json::from_str(&answer).context("the till has hung up")?;
        match answer["failed"].as_str() {
            Some(reason) => bail!("{reason}"),
            None => Ok(answer),
        }
    }
}

#[async_trait]
impl Gateway for FarTill {
    fn accepts(&self, token: &str) -> bool {
        Sandbox.accepts(token)
    }

    async fn charge(&self, charge: &Charge) -> anyhow::Result<Outcome> {
        let Charge { payment, order, amount, currency, token } = charge;
        let question = json!({ "charge": payment.0, "order": order.0, "amount": amount.0, "currency": currency, "token": token });
        let answer = self.ask(question).await?;
        Ok(match answer["approved"].as_str() {
            Some(reference) => Outcome::Approved { reference: reference.to_owned() },
            None => Outcome::Declined,
        })
    }

    async fn refund(&self, refund: &Refund) -> anyhow::Result<()> {
        let Refund { refund, payment, amount, reference } = refund;
        let question = json!({ "refund": refund.0, "payment": payment.0, "amount": amount.0, "reference": reference });
        self.ask(question).await.map(drop)
    }

    async fn undo(&self, undo: &CancelCharge) -> anyhow::Result<()> {
        self.ask(json!({ "undo": undo.payment.0, "amount": undo.amount.0 })).await.map(drop)
    }
}

impl Till {
    /// Lets servers in other processes ask it; where. While it is held, they are kept waiting once it has done what they asked.
    pub async fn open(&self) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let till = self.clone();
        tokio::spawn(async move {
            while let Ok((server, _)) = listener.accept().await {
                let till = till.clone();
                // Whoever asked may be dead before it is answered.
                tokio::spawn(async move { till.serve(server).await });
            }
        });
        address
    }

    async fn serve(&self, server: TcpStream) -> anyhow::Result<()> {
        let mut server = BufReader::new(server);
        let mut question = String::new();
        server.read_line(&mut question).await?;
        let answer = match self.answer(&serde_json::from_str(&question)?).await {
            Ok(answer) => answer,
            Err(error) => json!({ "failed": error.to_string() }),
        };
        self.until_released().await;
        Ok(server.write_all(format!("{answer}\n").as_bytes()).await?)
    }

    async fn answer(&self, question: &Value) -> anyhow::Result<Value> {
        let number = |name: &str| question[name].as_i64().unwrap_or_default();
        let text = |name: &str| question[name].as_str().unwrap_or_default().to_owned();
        let (amount, payment) = (Money(number("amount")), Id(number("payment")));
        if question["charge"].is_number() {
            let (payment, order) = (Id(number("charge")), Id(number("order")));
            let charge = Charge { payment, order, amount, currency: text("currency"), token: text("token") };
            return Ok(match self.charge(&charge).await? {
                Outcome::Approved { reference } => json!({ "approved": reference }),
                Outcome::Declined => json!({ "declined": true }),
            });
        }
        if question["refund"].is_number() {
            self.refund(&Refund { refund: Id(number("refund")), payment, amount, reference: text("reference") }).await?;
        } else {
            self.undo(&CancelCharge { payment: Id(number("undo")), amount }).await?;
        }
        Ok(json!({ "done": true }))
    }
}
