//! Delays and faults of responses, so that a client can be tested against a slow or unreliable server.

use std::ops::RangeInclusive;
use std::str::FromStr;
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use boxoffice_openapi::{Contract, Operation};
use http::StatusCode;
use parking_lot::Mutex;
use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};

use crate::MockSettings;
use crate::prefer_header::MAX_DELAY;

/// The delay of every response, in milliseconds: a number, or a range such as `20..200` from which each delay is drawn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DelayRange(RangeInclusive<u64>);

impl FromStr for DelayRange {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> anyhow::Result<Self> {
        let parse = |number: &str| number.trim().parse::<u64>().ok().filter(|delay| u128::from(*delay) <= MAX_DELAY.as_millis());
        let (from, to) = text.split_once("..").unwrap_or((text, text));
        let longest = MAX_DELAY.as_millis();
        let range = parse(from).zip(parse(to)).filter(|(from, to)| from <= to);
        let (from, to) =
            range.with_context(|| format!("must be milliseconds from 0 to {longest}, such as 100 or 20..200, and not {text}"))?;
        Ok(Self(from..=to))
    }
}

/// A rule for failing requests: `5% 503`, or for one operation `50% 409 POST /orders`.
#[derive(Debug, Clone, PartialEq)]
pub struct FaultRule {
    probability: f64,
    status: StatusCode,
    /// Method and path of the operation, as in the document; `None` for all operations.
    operation: Option<(String, String)>,
}

impl FromStr for FaultRule {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> anyhow::Result<Self> {
        let mut words = text.split_whitespace();
        let percentage = words.next().and_then(|word| word.strip_suffix('%')?.parse::<f64>().ok());
        let percentage = percentage.filter(|percentage| (0.0..=100.0).contains(percentage));
        let status = words.next().and_then(|word| word.parse::<u16>().ok()).filter(|status| (400..600).contains(status));
        let (Some(percentage), Some(status)) = (percentage, status) else {
            bail!(
                "must be a percentage and a status from 400 to 599, such as \"5% 503\" or \"50% 409 POST /orders\", and not {text}"
            );
        };
        let operation = match (words.next(), words.next(), words.next()) {
            (None, ..) => None,
            (Some(method), Some(path), None) if path.starts_with('/') => Some((method.to_uppercase(), path.to_owned())),
            _ => bail!("must name an operation by method and path, such as \"5% 503 GET /orders/{{order}}\", and not {text}"),
        };
        let status = StatusCode::from_u16(status).with_context(|| format!("{status} is not a status"))?;
        Ok(Self { probability: percentage / 100.0, status, operation })
    }
}

/// The delays and faults of a mock. The same seed gives the same sequence of them.
pub struct Impairment {
    delay: Option<DelayRange>,
    faults: Vec<FaultRule>,
    rng: Mutex<Xoshiro256PlusPlus>,
}

impl Impairment {
    /// Creates the delays and faults of a mock.
    ///
    /// # Errors
    /// Returns an error if a rule names an operation that the document doesn't have.
    pub fn new(settings: &MockSettings, contract: &Contract) -> anyhow::Result<Self> {
        for (method, path) in settings.faults.iter().filter_map(|rule| rule.operation.as_ref()) {
            let is_declared = contract.operations().any(|operation| operation.method == *method && operation.path == *path);
            ensure!(is_declared, "the document has no operation {method} {path}, which a fault names");
        }
        let rng = Mutex::new(Xoshiro256PlusPlus::seed_from_u64(settings.seed));
        Ok(Self { delay: settings.delay.clone(), faults: settings.faults.clone(), rng })
    }

    /// Returns the delay of the next response.
    pub fn next_delay(&self) -> Option<Duration> {
        let DelayRange(range) = self.delay.as_ref()?;
        let delay = self.rng.lock().random_range(range.clone());
        Some(Duration::from_millis(delay))
    }

    /// Returns the status with which the next request to an operation fails, if it does. The first rule that applies decides.
    pub fn next_fault(&self, operation: &Operation) -> Option<StatusCode> {
        let is_named = |rule: &&FaultRule| {
            let named = rule.operation.as_ref();
            named.is_none_or(|(method, path)| operation.method == *method && operation.path == *path)
        };
        let mut rules = self.faults.iter().filter(is_named).peekable();
        rules.peek()?;
        let rng = &mut *self.rng.lock();
        rules.find(|rule| rng.random_bool(rule.probability)).map(|rule| rule.status)
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn parses_delays() {
        for (text, expected) in [("100", 100..=100), ("20..200", 20..=200), ("0 .. 60000", 0..=60_000)] {
            assert_eq!(text.parse::<DelayRange>().unwrap(), DelayRange(expected), "{text}");
        }
        for text in ["", "a", "200..20", "-1", "60001", "1..2..3", "20..", "1.5"] {
            assert!(text.parse::<DelayRange>().unwrap_err().to_string().contains("such as 100 or 20..200"), "{text}");
        }
    }

    #[test]
    fn rejects_fault_of_undeclared_operation() {
        let settings = MockSettings { faults: vec!["50% 409 POST /orders".parse().unwrap()], ..MockSettings::default() };
        let contract = |path: &str| {
            let document = json!({ "openapi": "3.0.3", "info": {}, "paths": { path: { "post": { "responses": {} } } } });
            Contract::new(document).unwrap()
        };
        assert!(settings.validate(&contract("/orders")).is_ok());
        let error = settings.validate(&contract("/purchases")).unwrap_err().to_string();
        assert!(error.contains("no operation POST /orders"), "{error}");
    }

    #[test]
    fn parses_faults() {
        let rule: FaultRule = " 12.5%  409  post /orders/{order} ".parse().unwrap();
        assert_eq!((rule.probability, rule.status), (0.125, StatusCode::CONFLICT));
        assert_eq!(rule.operation, Some(("POST".to_owned(), "/orders/{order}".to_owned())));
        assert_eq!("100% 503".parse::<FaultRule>().unwrap().operation, None);
        for text in ["", "5", "5 503", "101% 503", "-1% 503", "5% 200", "5% 503 GET", "5% 503 GET orders", "5% 503 GET /a b"] {
            assert!(text.parse::<FaultRule>().is_err(), "{text}");
        }
    }
}
