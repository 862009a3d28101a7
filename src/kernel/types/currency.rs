//! Currencies of ISO 4217, and amounts as text.

use std::fmt;
use std::str::FromStr;

use anyhow::Context;

use super::money::Money;

/// The currencies with at least two decimals, without those of funds, metals and tests.
const WITH_DECIMALS: &str = "AED AFN ALL AMD ANG AOA ARS AUD AWG AZN BAM BBD BDT BGN BHD BMD BND BOB BRL BSD BTN BWP BYN BZD \
    CAD CDF CHF CNY COP CRC CUP CVE CZK DKK DOP DZD EGP ERN ETB EUR FJD FKP GBP GEL GHS GIP GMD GTQ GYD HKD HNL HTG HUF IDR \
    ILS INR IQD IRR JMD JOD KES KGS KHR KPW KWD KYD KZT LAK LBP LKR LRD LSL LYD MAD MDL MGA MKD MMK MNT MOP MRU MUR MVR MWK \
    MXN MYR MZN NAD NGN NIO NOK NPR NZD OMR PAB PEN PGK PHP PKR PLN QAR RON RSD RUB SAR SBD SCR SDG SEK SGD SHP SLE SOS SRD \
    SSP STN SVC SYP SZL THB TJS TMT TND TOP TRY TTD TWD TZS UAH USD UYU UZS VED VES WST XCD XCG YER ZAR ZMW ZWG";
/// The currencies without decimals.
const WITHOUT_DECIMALS: &str = "BIF CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX VND VUV XAF XOF XPF";

/// The platform's currency.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Currency {
    /// The ISO 4217 code.
    pub code: &'static str,
    /// The number of decimals of an amount: 2, or 0 if all amounts are whole.
    pub decimals: usize,
}

impl Currency {
    /// Returns the codes of the currencies without decimals.
    pub fn without_decimals() -> impl Iterator<Item = &'static str> {
        WITHOUT_DECIMALS.split_whitespace()
    }

    /// Returns whether an amount can be charged in this currency.
    pub fn allows(self, amount: Money) -> bool {
        self.decimals > 0 || amount.0 % 100 == 0
    }

    /// Formats an amount with the decimals of the currency and without its code, as `1234.50` or `1234`.
    pub fn format(self, amount: Money) -> String {
        let sign = if amount.0 < 0 { "-" } else { "" };
        let whole = (amount.0 / 100).unsigned_abs();
        format!("{sign}{whole}{}", self.fraction(amount, '.'))
    }

    /// Returns the decimals of an amount after this decimal point; without decimals, nothing.
    pub fn fraction(self, amount: Money, point: char) -> String {
        if self.decimals == 0 { String::new() } else { format!("{point}{:02}", (amount.0 % 100).unsigned_abs()) }
    }
}

impl FromStr for Currency {
    type Err = anyhow::Error;

    fn from_str(code: &str) -> anyhow::Result<Self> {
        let find = |codes: &'static str, decimals| {
            let code = codes.split_whitespace().find(|known| *known == code)?;
            Some(Self { code, decimals })
        };
        let known = find(WITH_DECIMALS, 2).or_else(|| find(WITHOUT_DECIMALS, 0));
        known.with_context(|| format!("`{code}` is not a currency code of ISO 4217 in capitals, such as GHS or EUR"))
    }
}

/// The code.
impl fmt::Display for Currency {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.code)
    }
}
