//! Amounts of money: an integer of hundredths in the server, a number with two decimals in requests and responses.

use std::iter::Sum;
use std::ops::{Add, AddAssign, Mul, Sub};

use boxoffice_http::{inline_schema, schema_from_json};
use schemars::schema::Schema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Value, json};
use sqlx::postgres::{PgHasArrayType, PgTypeInfo};

/// An amount in hundredths (cents, pesewas) of the platform's currency. Currencies without decimals, such as UGX, and with three, such
/// as TND, have other minor units.
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

impl AddAssign for Money {
    fn add_assign(&mut self, other: Money) {
        self.0 += other.0;
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

inline_schema!(Money, "Money", schema_from_json(json!({ "type": "number", "format": "double" })));

/// An amount in a request. The contract limits it to two decimals and, except for payments, to one million.
#[derive(Debug, Clone, Copy)]
pub struct AmountInput(pub Money);

impl<'de> Deserialize<'de> for AmountInput {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        f64::deserialize(deserializer).map(|number| Self(to_money(number)))
    }
}

inline_schema!(AmountInput, "Amount", amount_schema(json!(0.0), json!(1_000_000.0)));

/// A change of an amount in a request: a positive or negative amount.
#[derive(Debug, Clone, Copy)]
pub struct PriceDelta(pub Money);

impl<'de> Deserialize<'de> for PriceDelta {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        f64::deserialize(deserializer).map(|number| Self(to_money(number)))
    }
}

inline_schema!(PriceDelta, "Delta", amount_schema(json!(-1_000_000.0), json!(1_000_000.0)));

#[expect(clippy::cast_possible_truncation, reason = "a number beyond the largest amount becomes that amount")]
fn to_money(number: f64) -> Money {
    Money((number * 100.0).round() as i64)
}

/// Returns the schema of an amount with two decimals; a bound may be null.
pub fn amount_schema(minimum: Value, maximum: Value) -> Schema {
    let bounds = json!({ "type": "number", "format": "double", "minimum": minimum, "maximum": maximum, "multipleOf": 0.01 });
    schema_from_json(bounds)
}
