//! The interface of payment gateways, and the built-in sandbox gateway.

use std::time::Duration;

use async_trait::async_trait;

use crate::kernel::types::id::Id;
use crate::kernel::types::money::Money;

/// Timeout of one call of the gateway.
pub const GATEWAY_TIMEOUT: Duration = Duration::from_secs(30);

/// A charge to be made.
pub struct Charge {
    /// The payment. The gateway must store it with the charge, because [`CancelCharge`] has no other identifier.
    pub payment: Id,
    /// The order.
    pub order: Id,
    /// The amount, in hundredths of the currency. A gateway that wants minor units must convert that of a currency without
    /// decimals or with three.
    pub amount: Money,
    /// The platform's currency, as an ISO 4217 code.
    pub currency: String,
    /// The gateway's token for the card. Never logged.
    pub token: String,
}

/// A refund of a charge, in whole or in part.
#[derive(Debug)]
pub struct Refund {
    /// The refund, which is its idempotency key: a charge may have several refunds, even of the same amount.
    pub refund: Id,
    /// The payment whose charge is refunded.
    pub payment: Id,
    /// The amount. The refunds of a charge never exceed the charge.
    pub amount: Money,
    /// The gateway's reference for the charge.
    pub reference: String,
}

/// A cancellation of a charge whose result is unknown.
#[derive(Debug)]
pub struct CancelCharge {
    /// The payment of the charge.
    pub payment: Id,
    /// The amount of the charge.
    pub amount: Money,
}

/// The result of a charge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChargeResult {
    /// The charge was made.
    Approved {
        /// The gateway's reference for the charge.
        reference: String,
    },
    /// The charge was not made.
    Declined,
}

/// A payment gateway.
#[async_trait]
pub trait Gateway: Send + Sync {
    /// Returns whether `token` has the form of the gateway's tokens. It is called before the payment begins. A well-formed token
    /// without a card leads to [`ChargeResult::Declined`].
    fn accepts(&self, token: &str) -> bool;

    /// Makes a charge.
    ///
    /// # Errors
    /// Returns an error if the gateway fails. The result of the charge is then unknown, and the charge will be cancelled.
    async fn charge(&self, charge: &Charge) -> anyhow::Result<ChargeResult>;

    /// Refunds a charge, in whole or in part.
    ///
    /// It must be idempotent, because it is retried until it succeeds, perhaps by several servers: if the refund was made
    /// before or the charge was cancelled, it succeeds and moves no money.
    ///
    /// # Errors
    /// Returns an error if the gateway fails.
    async fn refund(&self, refund: &Refund) -> anyhow::Result<()>;

    /// Cancels the charge of a payment: returns all its money, and declines the charge if it arrives later.
    ///
    /// It must be idempotent, because it is retried until it succeeds: if nothing was charged or the charge was cancelled
    /// before, it succeeds and moves no money.
    ///
    /// # Errors
    /// Returns an error if the gateway fails.
    async fn cancel_charge(&self, cancellation: &CancelCharge) -> anyhow::Result<()>;
}

/// The built-in gateway for tests and demos. It moves no money; the token determines the result.
#[derive(Debug, Clone, Copy)]
pub struct Sandbox;

impl Sandbox {
    const APPROVE: &str = "tok_approve";
    const DECLINE: &str = "tok_decline";
    const ERROR: &str = "tok_error";
}

#[async_trait]
impl Gateway for Sandbox {
    fn accepts(&self, token: &str) -> bool {
        [Self::APPROVE, Self::DECLINE, Self::ERROR].contains(&token)
    }

    async fn charge(&self, charge: &Charge) -> anyhow::Result<ChargeResult> {
        match charge.token.as_str() {
            Self::APPROVE => Ok(ChargeResult::Approved { reference: format!("SBX-{:08}", charge.payment.0 % 100_000_000) }),
            Self::DECLINE => Ok(ChargeResult::Declined),
            _ => anyhow::bail!("the sandbox gateway failed, as the token requested"),
        }
    }

    async fn refund(&self, _: &Refund) -> anyhow::Result<()> {
        Ok(())
    }

    async fn cancel_charge(&self, _: &CancelCharge) -> anyhow::Result<()> {
        Ok(())
    }
}
