//! A [`FakeGateway`] for servers in other processes. It outlives them, so that a test can compare its balances after a kill.
//!
//! Each request is a connection of its own: a line of JSON, and a line of JSON as the response.

use std::net::SocketAddr;

use anyhow::{Context, bail};
use async_trait::async_trait;
use boxoffice::features::sales::payments::{CancelCharge, Charge, ChargeResult, Gateway, Refund, Sandbox};
use boxoffice::kernel::types::id::Id;
use boxoffice::kernel::types::money::Money;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};

use super::FakeGateway;

/// A client of the gateway at this address.
pub struct RemoteFakeGateway(pub SocketAddr);

impl RemoteFakeGateway {
    async fn send(&self, request: Value) -> anyhow::Result<Value> {
        let mut gateway = BufReader::new(TcpStream::connect(self.0).await?);
        gateway.write_all(format!("{request}\n").as_bytes()).await?;
        let mut response = String::new();
        gateway.read_line(&mut response).await?;
        let response: Value = serde_json::from_str(&response).context("the gateway closed the connection")?;
        match response["failed"].as_str() {
            Some(reason) => bail!("{reason}"),
            None => Ok(response),
        }
    }
}

#[async_trait]
impl Gateway for RemoteFakeGateway {
    fn accepts(&self, token: &str) -> bool {
        Sandbox.accepts(token)
    }

    async fn charge(&self, charge: &Charge) -> anyhow::Result<ChargeResult> {
        let Charge { payment, order, amount, currency, token } = charge;
        let request = json!({ "charge": payment.0, "order": order.0, "amount": amount.0, "currency": currency, "token": token });
        let response = self.send(request).await?;
        Ok(match response["approved"].as_str() {
            Some(reference) => ChargeResult::Approved { reference: reference.to_owned() },
            None => ChargeResult::Declined,
        })
    }

    async fn refund(&self, refund: &Refund) -> anyhow::Result<()> {
        let Refund { refund, payment, amount, reference } = refund;
        let request = json!({ "refund": refund.0, "payment": payment.0, "amount": amount.0, "reference": reference });
        self.send(request).await.map(drop)
    }

    async fn cancel_charge(&self, cancellation: &CancelCharge) -> anyhow::Result<()> {
        self.send(json!({ "cancel": cancellation.payment.0, "amount": cancellation.amount.0 })).await.map(drop)
    }
}

impl FakeGateway {
    /// Listens for servers in other processes, and returns the address. While the gateway is blocked, responses are delayed after
    /// the request was carried out.
    pub async fn listen(&self) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let gateway = self.clone();
        tokio::spawn(async move {
            while let Ok((server, _)) = listener.accept().await {
                let gateway = gateway.clone();
                // The server may be killed before it receives the response.
                tokio::spawn(async move { gateway.serve(server).await });
            }
        });
        address
    }

    async fn serve(&self, server: TcpStream) -> anyhow::Result<()> {
        let mut server = BufReader::new(server);
        let mut request = String::new();
        server.read_line(&mut request).await?;
        let response = match self.handle(&serde_json::from_str(&request)?).await {
            Ok(response) => response,
            Err(error) => json!({ "failed": error.to_string() }),
        };
        self.wait_while_blocked().await;
        Ok(server.write_all(format!("{response}\n").as_bytes()).await?)
    }

    async fn handle(&self, request: &Value) -> anyhow::Result<Value> {
        let number = |name: &str| request[name].as_i64().unwrap_or_default();
        let text = |name: &str| request[name].as_str().unwrap_or_default().to_owned();
        let (amount, payment) = (Money(number("amount")), Id(number("payment")));
        if request["charge"].is_number() {
            let (payment, order) = (Id(number("charge")), Id(number("order")));
            let charge = Charge { payment, order, amount, currency: text("currency"), token: text("token") };
            return Ok(match self.charge(&charge).await? {
                ChargeResult::Approved { reference } => json!({ "approved": reference }),
                ChargeResult::Declined => json!({ "declined": true }),
            });
        }
        if request["refund"].is_number() {
            self.refund(&Refund { refund: Id(number("refund")), payment, amount, reference: text("reference") }).await?;
        } else {
            self.cancel_charge(&CancelCharge { payment: Id(number("cancel")), amount }).await?;
        }
        Ok(json!({ "done": true }))
    }
}
