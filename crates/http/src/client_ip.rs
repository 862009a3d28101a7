//! IP address of a request's client: the connection's peer, or the address that a trusted proxy forwards.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::str::FromStr;

use anyhow::Context;
use http::HeaderMap;
use http::header::{FORWARDED, HeaderName};
use ipnet::IpNet;

const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");

/// Networks of the proxies whose forwarding headers are trusted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TrustedProxies(Vec<IpNet>);

impl TrustedProxies {
    /// Returns the address of the client. If the peer is trusted, that is the rightmost address in `Forwarded` (RFC 7239) or
    /// `X-Forwarded-For` that isn't a trusted proxy itself: the client can forge everything left of it.
    ///
    /// Returns the peer if the headers are malformed or disagree. A proxy writes only one of the two headers and passes on the
    /// other as the client sent it.
    pub fn client(&self, peer: IpAddr, headers: &HeaderMap) -> IpAddr {
        let peer = peer.to_canonical();
        if !self.trusts(peer) {
            return peer;
        }
        let forwarded = join_lines(headers, &FORWARDED).map(|text| self.client_hop(forwarded_for(&text)?));
        let x_forwarded_for =
            join_lines(headers, &X_FORWARDED_FOR).map(|text| self.client_hop(text.split(',').map(parse_node).collect()));
        match (forwarded, x_forwarded_for) {
            (Some(Some(client)), None) | (None, Some(Some(client))) => client,
            (Some(Some(client)), Some(Some(other))) if client == other => client,
            _ => peer,
        }
    }

    /// Returns whether this is the address of a trusted proxy.
    pub(crate) fn trusts(&self, address: IpAddr) -> bool {
        self.0.iter().any(|network| network.contains(&address))
    }

    /// Returns the rightmost address that isn't trusted, or the leftmost if all are. A malformed one is not skipped.
    fn client_hop(&self, hops: Vec<Option<IpAddr>>) -> Option<IpAddr> {
        let is_trusted = |hop: &Option<IpAddr>| hop.is_some_and(|address| self.trusts(address));
        let untrusted = hops.iter().rev().find(|hop| !is_trusted(hop));
        *untrusted.or_else(|| hops.first())?
    }
}

impl FromStr for TrustedProxies {
    type Err = anyhow::Error;

    /// Parses addresses and networks, separated by commas.
    fn from_str(text: &str) -> anyhow::Result<Self> {
        let parse = |part: &str| {
            let network = part.parse().or_else(|_| part.parse::<IpAddr>().map(IpNet::from));
            network.with_context(|| format!("neither an address nor a network such as 10.0.0.0/8: {part}"))
        };
        let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
        parts.map(parse).collect::<anyhow::Result<_>>().map(Self)
    }
}

/// Returns the address under which requests are counted. For IPv6 that is the /64 network, which usually belongs to one customer.
pub fn rate_limit_key(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(address) => IpAddr::V4(address),
        IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() & !u128::from(u64::MAX))),
    }
}

/// Returns all lines of a header as one list; `None` if there is none. A value that isn't text becomes an invalid address.
fn join_lines(headers: &HeaderMap, name: &HeaderName) -> Option<String> {
    let values: Vec<_> = headers.get_all(name).iter().map(|value| value.to_str().unwrap_or("?")).collect();
    (!values.is_empty()).then(|| values.join(","))
}

/// Returns the `for` address of every element of a `Forwarded` header; `None` if a quotation mark isn't closed.
fn forwarded_for(text: &str) -> Option<Vec<Option<IpAddr>>> {
    let element = |element: &str| {
        let pairs = split(element, ';')?;
        let mut values = pairs.into_iter().filter_map(|pair| {
            let (name, value) = pair.split_once('=')?;
            name.trim().eq_ignore_ascii_case("for").then_some(value.trim())
        });
        let value = values.next().filter(|_| values.next().is_none())?;
        parse_node(value.strip_prefix('"').and_then(|value| value.strip_suffix('"')).unwrap_or(value))
    };
    Some(split(text, ',')?.into_iter().map(element).collect())
}

/// Splits at separators outside quotation marks; `None` if a quotation mark isn't closed.
fn split(text: &str, separator: char) -> Option<Vec<&str>> {
    let (mut parts, mut start, mut is_quoted, mut is_escaped) = (Vec::new(), 0, false, false);
    for (index, character) in text.char_indices() {
        match character {
            _ if is_escaped => is_escaped = false,
            '\\' if is_quoted => is_escaped = true,
            '"' => is_quoted = !is_quoted,
            _ if character == separator && !is_quoted => {
                parts.push(&text[start..index]);
                start = index + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[start..]);
    (!is_quoted).then_some(parts)
}

/// Parses an address as a proxy writes it: `192.0.2.43`, `192.0.2.43:4711`, `2001:db8::1`, `[2001:db8::1]`, `[2001:db8::1]:4711`.
fn parse_node(text: &str) -> Option<IpAddr> {
    let text = text.trim();
    let bracketed = text.strip_prefix('[').and_then(|text| text.strip_suffix(']'));
    let address = match bracketed {
        Some(address) => address.parse::<Ipv6Addr>().ok().map(IpAddr::V6),
        None => text.parse().or_else(|_| text.parse::<SocketAddr>().map(|address| address.ip())).ok(),
    };
    address.map(|address| address.to_canonical())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const PROXY: &str = "10.1.2.3";

    fn headers(lines: &[(&'static str, &str)]) -> HeaderMap {
        lines.iter().map(|(name, value)| (HeaderName::from_static(name), value.parse().expect("a header value"))).collect()
    }

    fn client(peer: &str, lines: &[(&'static str, &str)]) -> String {
        let trusted: TrustedProxies = "10.0.0.0/8, 2001:db8:ffff::/48,192.0.2.1".parse().expect("networks");
        trusted.client(peer.parse().expect("an address"), &headers(lines)).to_string()
    }

    #[test]
    fn ignores_headers_of_untrusted_peers() {
        assert_eq!(client("203.0.113.9", &[("x-forwarded-for", "198.51.100.7")]), "203.0.113.9");
        assert_eq!(client("203.0.113.9", &[("forwarded", "for=198.51.100.7")]), "203.0.113.9");
        assert_eq!(client("192.0.2.2", &[("x-forwarded-for", "198.51.100.7")]), "192.0.2.2");
    }

    #[test]
    fn returns_rightmost_untrusted_address_of_trusted_proxy() {
        for (name, value, expected) in [
            ("x-forwarded-for", "198.51.100.7", "198.51.100.7"),
            ("x-forwarded-for", "6.6.6.6, 198.51.100.7, 10.9.9.9,192.0.2.1", "198.51.100.7"),
            ("x-forwarded-for", "nonsense, 198.51.100.7:4711", "198.51.100.7"),
            ("x-forwarded-for", "[2001:db8::1]:4711", "2001:db8::1"),
            ("x-forwarded-for", "2001:db8::1, 2001:db8:ffff::5", "2001:db8::1"),
            ("x-forwarded-for", "::ffff:198.51.100.7", "198.51.100.7"),
            ("x-forwarded-for", "10.7.7.7, 10.9.9.9", "10.7.7.7"),
            ("forwarded", "for=198.51.100.7", "198.51.100.7"),
            ("forwarded", "for=6.6.6.6;proto=http, proto=https; FOR=198.51.100.7;by=10.0.0.1 , for=10.9.9.9", "198.51.100.7"),
            ("forwarded", "for=\"[2001:db8:cafe::17]:4711\"", "2001:db8:cafe::17"),
            ("forwarded", "for=\"x,for=1.1.1.1;\\\"\", for=\"198.51.100.7:80\"", "198.51.100.7"),
        ] {
            assert_eq!(client(PROXY, &[(name, value)]), expected, "{name}: {value}");
        }
    }

    #[test]
    fn returns_peer_if_headers_are_malformed_or_disagree() {
        for lines in [
            [("x-forwarded-for", "unknown")].as_slice(),
            &[("x-forwarded-for", "198.51.100.7, ")],
            &[("x-forwarded-for", "198.51.100.7, 10.0.0.0.1")],
            &[("forwarded", "for=unknown")],
            &[("forwarded", "proto=https")],
            &[("forwarded", "for=198.51.100.7;for=6.6.6.6")],
            &[("forwarded", "for=\"198.51.100.7")],
            &[("forwarded", "for=6.6.6.6"), ("x-forwarded-for", "198.51.100.7")],
            &[("forwarded", "for=unknown"), ("x-forwarded-for", "198.51.100.7")],
            &[],
        ] {
            assert_eq!(client(PROXY, lines), PROXY, "{lines:?}");
        }
        let agreed = [("forwarded", "for=198.51.100.7"), ("x-forwarded-for", "6.6.6.6, 198.51.100.7")];
        assert_eq!(client(PROXY, &agreed), "198.51.100.7");
    }

    #[test]
    fn reads_all_lines_of_a_header_as_one_list() {
        let mut lines = headers(&[("x-forwarded-for", "6.6.6.6")]);
        lines.append(X_FORWARDED_FOR, "198.51.100.7".parse().expect("a header value"));
        let trusted: TrustedProxies = PROXY.parse().expect("an address");

        assert_eq!(trusted.client(PROXY.parse().expect("an address"), &lines).to_string(), "198.51.100.7");
    }

    #[test]
    fn parses_networks_and_rejects_other_text() {
        assert_eq!("".parse::<TrustedProxies>().ok(), Some(TrustedProxies::default()));
        let error = "10.0.0.0/8,proxy.example".parse::<TrustedProxies>().expect_err("no address").to_string();
        assert!(error.contains("proxy.example"), "{error}");
        assert!("10.0.0.0/33".parse::<TrustedProxies>().is_err());
    }

    #[test]
    fn rate_limit_key_of_ipv6_is_its_network() {
        let key = |text: &str| rate_limit_key(text.parse().expect("an address")).to_string();
        assert_eq!(key("2001:db8:1:2:3:4:5:6"), "2001:db8:1:2::");
        assert_eq!(key("::ffff:198.51.100.7"), "198.51.100.7");
        assert_eq!(key("198.51.100.7"), "198.51.100.7");
    }

    proptest! {
        #[test]
        fn any_header_yields_an_address(forwarded in "[ -~]{0,60}", x_forwarded_for in "[0-9a-f:.,\\[\\] ]{0,60}") {
            let peer = client(PROXY, &[("forwarded", forwarded.as_str()), ("x-forwarded-for", x_forwarded_for.as_str())]);
            prop_assert!(peer.parse::<IpAddr>().is_ok());
        }

        #[test]
        fn forged_addresses_left_of_the_client_are_ignored(forged in "[!#-+\\--~ ]{0,40}", real: [u8; 4]) {
            let real = IpAddr::from(real);
            prop_assume!(!client(PROXY, &[("x-forwarded-for", &real.to_string())]).starts_with("10."));
            let (list, element) = (format!("{forged}, {real}"), format!("{forged}, for={real}"));

            prop_assert_eq!(client(PROXY, &[("x-forwarded-for", &list)]), real.to_string());
            prop_assert_eq!(client(PROXY, &[("forwarded", &element)]), real.to_string());
        }

        #[test]
        fn parses_addresses_with_and_without_port(bits: u128, port: u16, four: [u8; 4]) {
            let (six, four) = (IpAddr::from(bits.to_be_bytes()), IpAddr::from(four));
            for address in [six, four] {
                prop_assert_eq!(parse_node(&address.to_string()), Some(address.to_canonical()));
                prop_assert_eq!(parse_node(&SocketAddr::new(address, port).to_string()), Some(address.to_canonical()));
            }
        }
    }
}
