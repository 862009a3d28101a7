//! Fixtures that events need before tickets can be sold: a host, a category, a venue, sections, and the staff's approval.

use serde_json::json;

use super::{Response, TestApp, User, types};

/// A host and its administrator.
#[derive(Clone)]
pub struct Host {
    /// Its URI.
    pub uri: String,
    /// Its administrator.
    pub owner: User,
}

/// An event with its sections.
pub struct Event {
    /// Its host.
    pub host: Host,
    /// Its URI.
    pub uri: String,
    /// Its identifier.
    pub id: String,
    /// The long URIs of its sections, in order of creation.
    pub sections: Vec<String>,
}

impl Event {
    /// An event of this host without sections.
    pub fn new(host: &Host, uri: &str) -> Self {
        Self { host: host.clone(), uri: uri.to_owned(), id: id_of(uri).to_owned(), sections: Vec::new() }
    }
}

/// Builds a section with this name, price and capacity, on sale from 2020 to 2999.
pub fn section(name: &str, price: f64, capacity: i64) -> types::SectionCreate {
    let section = json!({
        "name": name, "basePrice": price, "capacity": capacity,
        "salesStart": "2020-01-01T00:00", "salesEnd": "2999-01-01T00:00",
    });
    serde_json::from_value(section).unwrap()
}

/// Returns the last segment of a URI.
pub fn id_of(uri: &str) -> &str {
    uri.rsplit('/').next().unwrap()
}

impl TestApp {
    /// Creates a host that this user administers.
    pub async fn create_host(&self, owner: &User) -> Host {
        let name = format!("{} Presents {}", owner.username, self.state.clock.next_id());
        let host =
            owner.client.host_create().body_map(|body| body.name(name).contact("Front office").email("office@example.com"));
        Host { uri: host.send().await.unwrap().self_.clone(), owner: owner.clone() }
    }

    /// Signs up a user who creates a host.
    pub async fn sign_up_with_host(&self, name: &str) -> (User, Host) {
        let owner = self.sign_up(name).await;
        let host = self.create_host(&owner).await;
        (owner, host)
    }

    /// Creates a category with the subcategories Jazz and Rock, and returns its URI.
    pub async fn create_category(&self) -> String {
        let name = format!("Music {}", self.state.clock.next_id());
        let subcategories =
            serde_json::from_value::<types::CategoryCreate>(json!({ "name": name, "subcategories": ["Jazz", "Rock"] }));
        let category = self.staff.client.category_create().body(subcategories.unwrap()).send().await.unwrap();
        category.self_.clone()
    }

    /// Creates a region, and returns its URI.
    pub async fn create_region(&self) -> String {
        let name = format!("Greater Accra {}", self.state.clock.next_id());
        let region = self.staff.client.region_create().body_map(|body| body.name(name).country("Ghana"));
        region.send().await.unwrap().self_.clone()
    }

    /// Creates an approved venue in a new region, and returns its URI.
    pub async fn create_venue(&self) -> String {
        let region = self.create_region().await;
        let name = format!("National Theatre {}", self.state.clock.next_id());
        let venue = json!({ "name": name, "region": region, "address": "Liberia Road", "longitude": -0.2, "latitude": 5.55 });
        let venue: types::VenueCreate = serde_json::from_value(venue).unwrap();
        self.staff.client.venue_create().body(venue).send().await.unwrap().self_.clone()
    }

    /// Creates an advertising zone for artwork of this size in pixels, and returns its URI.
    pub async fn create_zone(&self, width: i64, height: i64) -> String {
        let zone = self.staff.client.zone_create().body_map(|body| body.name("Sidebar").width(width).height(height));
        zone.send().await.unwrap().self_.clone()
    }

    /// Fetches the image of an event or advertisement at the URL that the staff see in it; without an image, at the URL that it
    /// would have.
    pub async fn fetch_image(&self, kind: &str, content: &str) -> Response {
        let resource = self.read(content).await;
        let default = format!("/media/{kind}/{}", id_of(content));
        let path = resource[kind].as_str().and_then(|url| url.strip_prefix("https://boxoffice.example")).unwrap_or(&default);
        self.request("GET", path).anonymous().send().await
    }

    /// Creates a draft of an event in the year 2998, without sections.
    pub async fn create_draft(&self, host: &Host) -> Event {
        let title = format!("Jazz Night {}", self.state.clock.next_id());
        let event = json!({
            "host": host.uri, "title": title, "description": "Jazz, outdoors.", "type": "Standard", "public": true,
            "category": self.create_category().await, "subcategory": "Jazz", "venue": self.create_venue().await,
            "start": "2998-12-20T19:00", "end": "2998-12-20T23:00",
        });
        let event: types::EventCreate = serde_json::from_value(event).unwrap();
        let uri = host.owner.client.event_create().body(event).send().await.unwrap().self_.clone();
        Event::new(host, &uri)
    }

    /// Creates an event with these sections, and has the staff approve it.
    pub async fn create_listed_event(&self, host: &Host, sections: &[types::SectionCreate]) -> Event {
        let mut event = self.create_draft(host).await;
        for section in sections {
            event.sections.push(self.add_section(&event, section).await);
        }
        self.list_event(&event).await;
        event
    }

    /// Signs up a user who creates a host and lists an event with these sections.
    pub async fn sign_up_host(&self, name: &str, sections: &[types::SectionCreate]) -> (User, Event) {
        let (owner, host) = self.sign_up_with_host(name).await;
        (owner, self.create_listed_event(&host, sections).await)
    }

    /// Signs up a user who creates a host and a draft of an event.
    pub async fn sign_up_host_with_draft(&self, name: &str) -> (User, Event) {
        let (owner, host) = self.sign_up_with_host(name).await;
        (owner, self.create_draft(&host).await)
    }

    /// Signs up Kofi, who lists an event with these sections, and the customer Ama.
    pub async fn create_sale(&self, sections: &[types::SectionCreate]) -> (User, User, Event) {
        let (kofi, ama) = (self.sign_up("kofi").await, self.sign_up("ama").await);
        let event = self.create_listed_event(&self.create_host(&kofi).await, sections).await;
        (kofi, ama, event)
    }

    /// Adds a section to an event, and returns its long URI.
    pub async fn add_section(&self, event: &Event, section: &types::SectionCreate) -> String {
        let created = event.host.owner.client.section_create().event(&event.id).body(section.clone()).send().await.unwrap();
        format!("{}{}", event.uri, created.self_)
    }

    /// Moves an event into the past.
    pub async fn end_event(&self, event: &Event) {
        let past = json!({ "start": "2020-01-01T19:00", "end": "2020-01-01T23:00" });
        let ended = self.put(&event.host.owner.key, &event.uri, past).await;
        assert_eq!(ended.status, 200, "{}", ended.body);
    }

    /// Submits an event, and has the staff approve it.
    pub async fn list_event(&self, event: &Event) {
        let submission = event.host.owner.client.event_submission_create().event(&event.id).send().await.unwrap();
        let decision = self.staff.client.submission_delete().submission(id_of(&submission.self_)).approved(true);
        decision.send().await.unwrap();
    }
}
