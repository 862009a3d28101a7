//! Results of the commands: tables and lists of properties for people, JSON for programs.

use serde_json::Value;

use crate::cli::{print, table};
use crate::kernel::types::currency::Currency;

/// The form of the results.
#[derive(Debug, Clone, Copy)]
pub struct Output {
    /// True for JSON.
    pub json: bool,
    /// The currency of the amounts, which are the only numbers that are not integers.
    pub currency: Currency,
}

/// A column or a property: its name, and the JSON pointer to its value.
pub type Field = (&'static str, &'static str);

impl Output {
    /// Prints a page of a list, with the number of all entries if there are more.
    pub fn page(self, page: &Value, columns: &[Field]) -> anyhow::Result<()> {
        if self.json {
            return print(format!("{page:#}"));
        }
        let entries = page["entries"].as_array().map(Vec::as_slice).unwrap_or_default();
        if entries.is_empty() {
            return print("(none)");
        }
        let header: Vec<&str> = columns.iter().map(|(name, _)| *name).collect();
        let row = |entry: &Value| columns.iter().map(|(_, pointer)| self.text(entry.pointer(pointer))).collect();
        print(table::render(&header, &entries.iter().map(row).collect::<Vec<_>>()))?;
        let total = page["total"].as_u64().unwrap_or_default();
        if total > entries.len() as u64 {
            print(format!("({} of {total}; --page and --records show the others)", entries.len()))?;
        }
        Ok(())
    }

    /// Prints the properties of a resource.
    pub fn resource(self, resource: &Value, properties: &[Field]) -> anyhow::Result<()> {
        if self.json {
            return print(format!("{resource:#}"));
        }
        let width = properties.iter().map(|(name, _)| name.len()).max().unwrap_or_default();
        for (name, pointer) in properties {
            let value = self.text(resource.pointer(pointer)).replace(char::is_control, " ");
            print(format!("{name:width$}  {value}").trim_end())?;
        }
        Ok(())
    }

    /// Prints what a change has done: a sentence, or the resource as JSON.
    pub fn done(self, resource: &Value, sentence: &str) -> anyhow::Result<()> {
        if self.json { print(format!("{resource:#}")) } else { print(sentence) }
    }

    fn text(self, value: Option<&Value>) -> String {
        match value {
            None | Some(Value::Null) => "-".to_owned(),
            Some(Value::String(text)) if text.is_empty() => "-".to_owned(),
            Some(Value::String(text)) => text.clone(),
            Some(Value::Bool(value)) => if *value { "yes" } else { "no" }.to_owned(),
            Some(Value::Number(amount)) if amount.is_f64() && self.currency.decimals == 0 => {
                format!("{:.0}", amount.as_f64().unwrap_or_default())
            }
            Some(value) => value.to_string(),
        }
    }
}
