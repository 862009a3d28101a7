//! Sample data, created through the API by the accounts that would create it in production.

use std::collections::HashMap;
use std::fmt;
use std::io::Cursor;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use anyhow::{Context, bail};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use boxoffice_client::{Client, Error, types};
use chrono::{TimeDelta, Utc};
use image::{ImageFormat, Rgb, RgbImage};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::bootstrap::{self, InitialCredentials};
use crate::server::RunningApp;
use crate::state::App;

/// Password of all sample accounts except the administrator.
const PASSWORD: &str = "a demo password";

/// Width and height of the advertisement, in pixels.
const BANNER: (u32, u32) = (728, 90);

/// A summary of the sample data.
pub struct DemoSummary {
    credentials: InitialCredentials,
    lines: Vec<String>,
}

impl fmt::Display for DemoSummary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for line in &self.lines {
            writeln!(f, "{line}")?;
        }
        writeln!(f, "Password of all accounts except the administrator: {PASSWORD}")?;
        self.credentials.fmt(f)
    }
}

/// Fills an empty database with sample data.
///
/// # Errors
/// Returns an error if the database is not empty, or a request fails.
pub async fn seed(app: &Arc<App>) -> anyhow::Result<DemoSummary> {
    let Some(credentials) = bootstrap::first_start(app).await? else {
        bail!("the database is not empty: it already has accounts. Select another one with --database or --data-dir");
    };
    bootstrap::store_fixed_settings(app).await?;
    let loopback = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let platform = RunningApp::start(Arc::clone(app), loopback)?;
    let address = format!("http://{}", platform.address());
    let mut data = DemoData {
        administrator: Client::connect(&address, &credentials.administrator_key)?,
        public: Client::connect(&address, &credentials.public_key)?,
        address,
        decimals: app.settings.currency.decimals,
        lines: Vec::new(),
    };
    let result = data.fill().await;
    platform.stop().await?;
    result.context("the database is only partly filled: delete it and try again")?;
    Ok(DemoSummary { credentials, lines: data.lines })
}

struct DemoData {
    address: String,
    administrator: Client,
    public: Client,
    /// The decimals of amounts.
    decimals: usize,
    lines: Vec<String>,
}

impl DemoData {
    async fn fill(&mut self) -> anyhow::Result<()> {
        let accra = self.create_region("Greater Accra", "Ghana", "Accra").await?;
        let ashanti = self.create_region("Ashanti", "Ghana", "Kumasi").await?;
        let theatre = self.create_venue("National Theatre", &accra, "Liberia Road, Accra", -0.2009, 5.5527).await?;
        let garden = self.create_venue("Botanical Garden Stage", &accra, "Legon, Accra", -0.1870, 5.6600).await?;
        let hall = self.create_venue("Great Hall", &ashanti, "KNUST Campus, Kumasi", -1.5716, 6.6745).await?;
        let music = self.create_category("Music", &["Jazz", "Highlife", "Gospel"]).await?;
        let stage = self.create_category("Stage", &["Drama", "Comedy"]).await?;

        let kofi = self.create_customer("kofi", "Kofi", "Boateng").await?;
        let esi = self.create_customer("esi", "Esi", "Owusu").await?;
        let ama = self.create_customer("ama", "Ama", "Mensah").await?;
        let live = self.create_host(&kofi, "Accra Live").await?;
        let players = self.create_host(&esi, "The Legon Players").await?;

        let jazz = event_body(&live, "Harmattan Jazz Night", &music, "Jazz", &garden, 30);
        let jazz = self.create_event(&kofi, jazz, &[("General Admission", 0.0, 500), ("VIP", 120.0, 60)]).await?;
        let highlife = event_body(&live, "Highlife on the Lawn", &music, "Highlife", &garden, 60);
        self.create_event(&kofi, highlife, &[("Lawn", 45.0, 800)]).await?;
        let play = event_body(&players, "The Marriage of Anansewa", &stage, "Drama", &theatre, 45);
        let play = self.create_event(&esi, play, &[("Stalls", 80.0, 300), ("Balcony", 40.0, 200)]).await?;
        let gospel = event_body(&live, "Gospel in the Great Hall", &music, "Gospel", &hall, 90);
        kofi.event_create().body(read::<types::EventCreate>(gospel)?).send().await.map_err(response_text)?;
        self.lines.push("Draft: Gospel in the Great Hall".to_owned());

        self.create_modifier(&kofi, &jazz[1], json!({ "name": "Table of four", "priceDelta": -20, "minOrder": 4 })).await?;
        let early = json!({ "name": "Early bird", "priceDelta": -15, "availableTo": in_days(14) });
        self.create_modifier(&esi, &play[0], early).await?;
        self.create_advertisement(&kofi, "Harmattan Jazz", &jazz[0]).await?;

        self.create_order(&ama, &[(&jazz[0], 2), (&jazz[1], 4)], true).await?;
        self.create_order(&ama, &[(&play[0], 2)], true).await?;
        self.create_order(&esi, &[(&jazz[1], 1)], false).await?;
        self.create_transfer(&ama, &esi).await
    }

    async fn create_region(&self, name: &str, country: &str, city: &str) -> anyhow::Result<String> {
        let body = read::<types::RegionCreate>(json!({ "name": name, "country": country, "city": city }))?;
        Ok(self.administrator.region_create().body(body).send().await.map_err(response_text)?.into_inner().self_)
    }

    async fn create_venue(
        &self,
        name: &str,
        region: &str,
        address: &str,
        longitude: f64,
        latitude: f64,
    ) -> anyhow::Result<String> {
        let body = json!({ "name": name, "region": region, "address": address, "longitude": longitude, "latitude": latitude });
        let body = read::<types::VenueCreate>(body)?;
        Ok(self.administrator.venue_create().body(body).send().await.map_err(response_text)?.into_inner().self_)
    }

    async fn create_category(&self, name: &str, subcategories: &[&str]) -> anyhow::Result<String> {
        let body = read::<types::CategoryCreate>(json!({ "name": name, "subcategories": subcategories }))?;
        Ok(self.administrator.category_create().body(body).send().await.map_err(response_text)?.into_inner().self_)
    }

    async fn create_customer(&mut self, username: &str, first_name: &str, last_name: &str) -> anyhow::Result<Client> {
        let email = format!("{username}@example.com");
        let account = json!({
            "username": username, "password": PASSWORD, "email": email, "firstName": first_name, "lastName": last_name,
        });
        let account =
            self.public.account_create().body(read::<types::AccountCreate>(account)?).send().await.map_err(response_text)?;
        let session = json!({ "identification": username, "password": PASSWORD });
        let session =
            self.public.session_create().body(read::<types::SessionCreate>(session)?).send().await.map_err(response_text)?;
        self.lines.push(format!("Customer: {first_name} {last_name}, username {username}, account {}", account.number));
        Ok(Client::connect(&self.address, &session.key)?)
    }

    async fn create_host(&mut self, owner: &Client, name: &str) -> anyhow::Result<String> {
        let body = json!({ "name": name, "contact": "Front office", "email": "office@example.com" });
        let host = owner.host_create().body(read::<types::HostCreate>(body)?).send().await.map_err(response_text)?;
        self.lines.push(format!("Host: {name}, {}", host.self_));
        Ok(host.into_inner().self_)
    }

    /// Creates an event with its sections, and approves it. Returns the long URIs of its sections.
    async fn create_event(&mut self, owner: &Client, event: Value, sections: &[(&str, f64, i64)]) -> anyhow::Result<Vec<String>> {
        let event = owner.event_create().body(read::<types::EventCreate>(event)?).send().await.map_err(response_text)?;
        let id = event.self_.rsplit('/').next().unwrap_or_default();
        let mut uris = Vec::new();
        for (name, price, capacity) in sections {
            let section = json!({
                "name": name, "basePrice": price, "capacity": capacity, "salesStart": "2020-01-01T00:00", "salesEnd": event.end,
            });
            let section = owner.section_create().event(id).body(read::<types::SectionCreate>(section)?).send().await;
            uris.push(format!("{}{}", event.self_, section.map_err(response_text)?.self_));
        }
        let submission = owner.event_submission_create().event(id).send().await.map_err(response_text)?;
        let submission = submission.self_.rsplit('/').next().unwrap_or_default();
        self.administrator.submission_delete().submission(submission).approved(true).send().await.map_err(response_text)?;
        self.lines.push(format!("Event: {}, {}", event.title, event.self_));
        Ok(uris)
    }

    /// Adds a price modifier to the section with this long URI.
    async fn create_modifier(&mut self, owner: &Client, section: &str, modifier: Value) -> anyhow::Result<()> {
        let (event, id) = section.split_once("/sections/").context("a long URI")?;
        let event = event.rsplit('/').next().unwrap_or_default();
        let modifier = owner.section_modifier_create().event(event).section(id).body(read::<types::ModifierCreate>(modifier)?);
        let modifier = modifier.send().await.map_err(response_text)?;
        let types::Modifier { name, price_delta, self_, .. } = modifier.into_inner();
        self.lines.push(format!("Price modifier: {name} {price_delta:+.*}, {self_}", self.decimals));
        Ok(())
    }

    /// Creates an advertising zone and an approved advertisement in it for the event of this section.
    async fn create_advertisement(&mut self, owner: &Client, name: &str, section: &str) -> anyhow::Result<()> {
        let event = section.split('/').nth(2).context("a long URI")?;
        let zone = json!({ "name": "Leaderboard", "width": BANNER.0, "height": BANNER.1 });
        let zone = self.administrator.zone_create().body(read::<types::ZoneCreate>(zone)?).send().await.map_err(response_text)?;
        let advertisement = json!({
            "name": name, "description": "# Jazz under the stars\n\n- two stages\n- *food* and drinks", "event": event,
            "artwork": STANDARD.encode(banner()?), "zones": [zone.number],
            "schedule": [{ "start": in_days(-1), "end": in_days(28) }],
        });
        let advertisement = read::<types::AdvertisementCreate>(advertisement)?;
        let advertisement = owner.advertisement_create().body(advertisement).send().await.map_err(response_text)?;
        let number = advertisement.self_.rsplit('/').next().unwrap_or_default().parse::<i64>()?;
        let submission = owner.advertisement_submission_create().advertisement(number).send().await.map_err(response_text)?;
        let submission = submission.self_.rsplit('/').next().unwrap_or_default();
        self.administrator.submission_delete().submission(submission).approved(true).send().await.map_err(response_text)?;
        self.lines.push(format!("Advertisement: {name}, {}, in {}", advertisement.self_, zone.self_));
        Ok(())
    }

    /// Offers the first ticket of one account to another.
    async fn create_transfer(&mut self, sender: &Client, recipient: &Client) -> anyhow::Result<()> {
        let sender_number = sender.session_active_get().send().await.map_err(response_text)?.account.number.clone();
        let recipient = recipient.session_active_get().send().await.map_err(response_text)?.account.number.clone();
        let wallet =
            sender.account_ticket_list().number(sender_number.as_str()).records(1).send().await.map_err(response_text)?;
        let serial = wallet.entries.first().map(|ticket| ticket.serial.clone()).context("the account has no ticket")?;
        let transfer = read::<types::TransferCreate>(json!({ "recipient": recipient, "tickets": [serial] }))?;
        let transfer = sender.transfer_create().body(transfer).send().await.map_err(response_text)?;
        self.lines.push(format!("Transfer: open, {}", transfer.self_));
        Ok(())
    }

    async fn create_order(&mut self, buyer: &Client, items: &[(&String, i64)], paid: bool) -> anyhow::Result<()> {
        let items: HashMap<_, _> = items.iter().map(|(section, quantity)| ((*section).clone(), *quantity)).collect();
        let order = buyer.order_create().body(read::<types::OrderCreate>(json!({ "items": items }))?).send().await;
        let order = order.map_err(response_text)?.into_inner();
        let number = order.number.to_string();
        if paid && order.total > 0.0 {
            let payment = read::<types::PaymentCreate>(json!({ "method": "card", "token": "tok_approve" }))?;
            buyer.order_payment_create().order(number.as_str()).body(payment).send().await.map_err(response_text)?;
        }
        let status = if paid { "paid" } else { "open" };
        self.lines.push(format!("Order: {number}, {:.*} in all, {status}", self.decimals, order.total));
        Ok(())
    }
}

/// Returns a PNG banner in one colour.
fn banner() -> anyhow::Result<Vec<u8>> {
    let (width, height) = BANNER;
    let mut file = Cursor::new(Vec::new());
    RgbImage::from_pixel(width, height, Rgb([0x8a, 0x3b, 0x12])).write_to(&mut file, ImageFormat::Png)?;
    Ok(file.into_inner())
}

/// Returns the time in `days` days, to the minute.
fn in_days(days: i64) -> String {
    (Utc::now() + TimeDelta::days(days)).format("%Y-%m-%d %H:%M").to_string()
}

/// Returns the request body of an event that begins in `days` days.
fn event_body(host: &str, title: &str, category: &str, subcategory: &str, venue: &str, days: i64) -> Value {
    let start = Utc::now() + TimeDelta::days(days);
    json!({
        "host": host, "title": title, "description": format!("{title}, with friends."), "type": "Standard", "public": true,
        "category": category, "subcategory": subcategory, "venue": venue, "tags": [subcategory.to_lowercase()],
        "start": start.format("%Y-%m-%dT19:00").to_string(), "end": start.format("%Y-%m-%dT23:00").to_string(),
    })
}

fn read<T: DeserializeOwned>(value: Value) -> anyhow::Result<T> {
    serde_json::from_value(value).context("the sample data doesn't match the contract")
}

/// Returns the error of a rejected request as text.
fn response_text(error: Error<types::Error>) -> anyhow::Error {
    match error {
        Error::ErrorResponse(response) => {
            let status = response.status();
            let error = response.into_inner();
            anyhow::anyhow!("{status}: {}", error.error.or(error.message).unwrap_or_default())
        }
        other => anyhow::anyhow!("{other}"),
    }
}
