//! Names of countries.

use celes::Country;

/// Common English names by ISO 3166 alpha-2 code, for countries that the crate lists with an inverted official name (`Islamic
/// Republic Of Iran`) or without punctuation (`Coted Ivoire`).
pub const COMMON: [(&str, &str); 30] = [
    ("BN", "Brunei"),
    ("BQ", "Bonaire, Sint Eustatius and Saba"),
    ("CC", "Cocos (Keeling) Islands"),
    ("CI", "Ivory Coast"),
    ("FK", "Falkland Islands"),
    ("FM", "Micronesia"),
    ("GB", "United Kingdom"),
    ("GW", "Guinea-Bissau"),
    ("HM", "Heard Island and McDonald Islands"),
    ("IR", "Iran"),
    ("KP", "North Korea"),
    ("KR", "South Korea"),
    ("LA", "Laos"),
    ("MD", "Moldova"),
    ("MF", "Saint Martin"),
    ("MK", "North Macedonia"),
    ("PS", "Palestine"),
    ("RU", "Russia"),
    ("SH", "Saint Helena, Ascension and Tristan da Cunha"),
    ("ST", "Sao Tome and Principe"),
    ("SX", "Sint Maarten"),
    ("SY", "Syria"),
    ("TL", "Timor-Leste"),
    ("TR", "Turkey"),
    ("TW", "Taiwan"),
    ("TZ", "Tanzania"),
    ("US", "United States"),
    ("VA", "Vatican City"),
    ("VE", "Venezuela"),
    ("VI", "United States Virgin Islands"),
];

/// Returns the names of all countries in alphabetical order.
pub fn names() -> Vec<String> {
    let mut names: Vec<String> = Country::get_countries().iter().map(name).collect();
    names.sort_unstable();
    names
}

/// Returns the common name, or else the crate's name without its leading article and with lower-case small words.
fn name(country: &Country) -> String {
    if let Some((_, name)) = COMMON.iter().find(|(letters, _)| *letters == country.alpha2) {
        return (*name).to_owned();
    }
    let name = country.long_name.strip_prefix("The ").unwrap_or(country.long_name);
    [" And ", " Of ", " The "].iter().fold(name.to_owned(), |name, word| name.replace(word, &word.to_lowercase()))
}
