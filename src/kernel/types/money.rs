//! Amounts of money: an integer of minor units in the server, a number with two decimals in requests and responses.

use std::iter::Sum;
use std::ops::{Add, Mul, Sub};

use schemars::JsonSchema;
use schemars::r#gen::SchemaGenerator;
use schemars::schema::{InstanceType, NumberValidation, Schema, SchemaObject};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sqlx::postgres::{PgHasArrayType, PgTypeInfo};

/// An amount in minor units (cents, pesewas) of the platform's currency.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, sqlx_macros::Type)]
#[sqlx(transparent)]
pub struct Money(pub i64);

impl PgHasArrayType for Money {
    fn array_type_info() -> PgTypeInfo {
        i64::array_type_info()
    }
}

impl Money {
    /// The amount zero.
    pub const ZERO: Money = Money(0);
}

impl Add for Money {
    type Output = Money;
    fn add(self, other: Money) -> Money {
        Money(self.0 + other.0)
    }
}

impl Sub for Money {
    type Output = Money;
    fn sub(self, other: Money) -> Money {
        Money(self.0 - other.0)
    }
}

impl Mul<i64> for Money {
    type Output = Money;
    fn mul(self, times: i64) -> Money {
        Money(self.0 * times)
    }
}

impl Sum for Money {
    fn sum<I: Iterator<Item = Money>>(amounts: I) -> Money {
        amounts.fold(Money::ZERO, Add::add)
    }
}

/// Serializes the nearest floating-point number. It is exact to the cent for amounts below 10 trillion.
impl Serialize for Money {
    #[expect(clippy::cast_precision_loss, reason = "amounts are far below 2^53 minor units")]
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(self.0 as f64 / 100.0)
    }
}

impl JsonSchema for Money {
    fn is_referenceable() -> bool {
        false
    }

    fn schema_name() -> String {
        "Money".to_owned()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        amount_schema(NumberValidation::default())
    }
}

/// An amount in a request. The contract limits it to two decimals and, except for payments, to one million.
#[derive(Debug, Clone, Copy)]
pub struct AmountInput(pub Money);

impl<'de> Deserialize<'de> for AmountInput {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        f64::deserialize(deserializer).map(|number| Self(to_money(number)))
    }
}

impl JsonSchema for AmountInput {
    fn is_referenceable() -> bool {
        false
    }

    fn schema_name() -> String {
        "Amount".to_owned()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        amount_schema(NumberValidation {
            minimum: Some(0.0),
            maximum: Some(1_000_000.0),
            multiple_of: Some(0.01),
            ..NumberValidation::default()
        })
    }
}

/// A change of an amount in a request: a positive or negative amount.
#[derive(Debug, Clone, Copy)]
pub struct PriceDelta(pub Money);

impl<'de> Deserialize<'de> for PriceDelta {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        f64::deserialize(deserializer).map(|number| Self(to_money(number)))
    }
}

impl JsonSchema for PriceDelta {
    fn is_referenceable() -> bool {
        false
    }

    fn schema_name() -> String {
        "Delta".to_owned()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        amount_schema(NumberValidation {
            minimum: Some(-1_000_000.0),
            maximum: Some(1_000_000.0),
            multiple_of: Some(0.01),
            ..NumberValidation::default()
        })
    }
}

#[expect(clippy::cast_possible_truncation, reason = "a number beyond the largest amount becomes that amount")]
fn to_money(number: f64) -> Money {
    Money((number * 100.0).round() as i64)
}

fn amount_schema(bounds: NumberValidation) -> Schema {
    let bounded = bounds != NumberValidation::default();
    SchemaObject {
        instance_type: Some(InstanceType::Number.into()),
        format: Some("double".to_owned()),
        number: bounded.then(|| Box::new(bounds)),
        ..SchemaObject::default()
    }
    .into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_round_trip_to_the_cent() -> serde_json::Result<()> {
        for cents in [0, 1, 99, 199, 12_000, 12_345_678, 99_999_999] {
            let text = serde_json::to_string(&Money(cents))?;
            let parsed: AmountInput = serde_json::from_str(&text)?;
            assert_eq!(parsed.0, Money(cents), "{text}");
            let text = serde_json::to_string(&Money(-cents))?;
            let parsed: PriceDelta = serde_json::from_str(&text)?;
            assert_eq!(parsed.0, Money(-cents), "{text}");
        }
        Ok(())
    }
}
