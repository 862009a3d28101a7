//! What events need before tickets can be sold: a host, a category, a venue, sections, and the staff's approval.

use serde_json::json;

use super::{Answer, Person, World, types};

/// A host and the person who administers it.
pub struct Host<'a> {
    /// Its URI.
    pub uri: String,
    /// Its administrator.
    pub owner: &'a Person,
}

/// An event with its sections.
pub struct Event {
    /// Its URI.
    pub uri: String,
    /// Its identifier.
    pub id: String,
    /// The long URIs of its sections, in the order of their making.
    pub sections: Vec<String>,
}

/// A section on sale from long ago until far ahead: its name, price and places.
pub fn section(name: &str, price: f64, capacity: i64) -> types::SectionCreate {
    let section = json!({
        "name": name, "basePrice": price, "capacity": capacity,
        "salesStart": "2020-01-01T00:00", "salesEnd": "2999-01-01T00:00",
    });
    serde_json::from_value(section).unwrap()
}

/// The last segment of a URI.
pub fn id_of(uri: &str) -> &str {
    uri.rsplit('/').next().unwrap()
}

impl World {
    /// A host of this person's, named after them.
    pub async fn host_of<'a>(&self, owner: &'a Person) -> Host<'a> {
        let name = format!("{} Presents {}", owner.username, self.app.clock.next_id());
        let host =
            owner.client.host_create().body_map(|body| body.name(name).contact("Front office").email("office@example.com"));
        Host { uri: host.send().await.unwrap().self_.clone(), owner }
    }

    /// A category with the subcategories Jazz and Rock; its URI.
    pub async fn category(&self) -> String {
        let name = format!("Music {}", self.app.clock.next_id());
        let subcategories =
            serde_json::from_value::<types::CategoryCreate>(json!({ "name": name, "subcategories": ["Jazz", "Rock"] }));
        let category = self.staff.client.category_create().body(subcategories.unwrap()).send().await.unwrap();
        category.self_.clone()
    }

    /// A region; its URI.
    pub async fn region(&self) -> String {
        let name = format!("Greater Accra {}", self.app.clock.next_id());
        let region = self.staff.client.region_create().body_map(|body| body.name(name).country("Ghana"));
        region.send().await.unwrap().self_.clone()
    }

    /// An approved venue in a region of its own; its URI.
    pub async fn venue(&self) -> String {
        let region = self.region().await;
        let name = format!("National Theatre {}", self.app.clock.next_id());
        let venue = json!({ "name": name, "region": region, "address": "Liberia Road", "longitude": -0.2, "latitude": 5.55 });
        let venue: types::VenueCreate = serde_json::from_value(venue).unwrap();
        self.staff.client.venue_create().body(venue).send().await.unwrap().self_.clone()
    }

    /// An advertising zone for artwork of these dimensions in pixels; its URI.
    pub async fn zone(&self, width: i64, height: i64) -> String {
        let zone = self.staff.client.zone_create().body_map(|body| body.name("Sidebar").width(width).height(height));
        zone.send().await.unwrap().self_.clone()
    }

    /// What browsers get at the address of an image that an event or advertisement shows to the staff; where it shows none, at the
    /// one that it would have.
    pub async fn image(&self, kind: &str, content: &str) -> Answer {
        let shown = self.read(content).await;
        let bare = format!("/media/{kind}/{}", id_of(content));
        let address = shown[kind].as_str().and_then(|address| address.strip_prefix("https://boxoffice.example")).unwrap_or(&bare);
        self.request("GET", address).no_key().version(None).send().await
    }

    /// A draft of an event that begins far ahead, without sections.
    pub async fn draft(&self, host: &Host<'_>) -> Event {
        let title = format!("Jazz Night {}", self.app.clock.next_id());
        let event = json!({
            "host": host.uri, "title": title, "description": "Jazz, outdoors.", "type": "Standard", "public": true,
            "category": self.category().await, "subcategory": "Jazz", "venue": self.venue().await,
            "start": "2998-12-20T19:00", "end": "2998-12-20T23:00",
        });
        let event: types::EventCreate = serde_json::from_value(event).unwrap();
        let uri = host.owner.client.event_create().body(event).send().await.unwrap().self_.clone();
        Event { id: id_of(&uri).to_owned(), uri, sections: Vec::new() }
    }

    /// An event with these sections that the staff have approved.
    pub async fn listed_event(&self, host: &Host<'_>, sections: &[types::SectionCreate]) -> Event {
        let mut event = self.draft(host).await;
        for section in sections {
            event.sections.push(self.add_section(host, &event, section).await);
        }
        self.list(host, &event).await;
        event
    }

    /// Adds a section to an event; its long URI.
    pub async fn add_section(&self, host: &Host<'_>, event: &Event, section: &types::SectionCreate) -> String {
        let made = host.owner.client.section_create().event(&event.id).body(section.clone()).send().await.unwrap();
        format!("{}{}", event.uri, made.self_)
    }

    /// Submits an event and approves it.
    pub async fn list(&self, host: &Host<'_>, event: &Event) {
        let submission = host.owner.client.event_submission_create().event(&event.id).send().await.unwrap();
        let decision = self.staff.client.submission_delete().submission(id_of(&submission.self_)).approved(true);
        decision.send().await.unwrap();
    }
}
