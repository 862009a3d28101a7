//! Tickets as PDF documents.

use std::sync::mpsc;
use std::thread::available_parallelism;

use boxoffice::kernel::types::id::Id;
use boxoffice::kernel::worker_pool::AccountWorkerPool;
use boxoffice_http::error::Result;
use futures::FutureExt;
use futures::future::{BoxFuture, join, join_all};
use serde_json::json;

use crate::support::{TestApp, User, pdf, rejection, section, test_on};

#[test_on(sqlite, postgres)]
async fn tickets_are_read_as_pdf(app: TestApp) {
    let (_, ama, event) = app.create_sale(&[section("Floor", 10.0, 60)]).await;
    let order = ama.order(&event.sections[0], 50).await.unwrap();
    let path = format!("{}/tickets.pdf", order.self_);
    let unpaid = app.get(&ama.key, &path).await;
    ama.pay(&order).await.unwrap();

    let response = app.request("GET", &path).key(&ama.key).send_raw().await;

    assert_eq!(rejection(&unpaid), (409, "ticket.not-issued"));
    assert_eq!(response.status().as_u16(), 200);
    assert_eq!(response.headers()["content-type"], "application/pdf");
    assert_eq!(response.headers()["cache-control"], "no-store");
    let document = response.bytes().await.unwrap();
    assert_eq!(pdf::pages(&document), 50);
    assert!(document.len() < 500_000, "{} bytes", document.len());
}

#[test_on(sqlite, postgres)]
async fn tickets_show_the_letters_of_every_title(app: TestApp) {
    let (kofi, ama, event) = app.create_sale(&[section("Floor", 0.0, 10)]).await;
    let order = ama.order(&event.sections[0], 1).await.unwrap();
    let mut shown = Vec::new();
    for title in ["Ɔdɔ ne ɛdɛ: ɖe ƒe ɣi ʋa, ₵10", "Ẹ̀kọ́ ₦500 ŋ ɓ ɗ ƙ", "Việt Nữ Đặng 5₫", "東京\u{FE0F}\u{200D}"]
    {
        app.put(&kofi.key, &event.uri, json!({ "title": title })).await;
        let document = app.request("GET", &format!("{}/tickets.pdf", order.self_)).key(&ama.key).send_raw().await;
        shown.push(pdf::letters(&document.bytes().await.unwrap()));
    }

    for (shown, expected) in shown.iter().zip(["Ɔɔɛɖƒɣʋ₵", "Ẹọ́₦ŋɓɗƙ", "ệữĐặ₫", "□"]) {
        for letter in expected.chars() {
            assert!(shown.contains(letter), "{letter} in {shown}");
        }
        assert_eq!(shown.contains('□'), expected == "□", "{shown}");
    }
    assert!(!shown[3].contains(['\u{FE0F}', '\u{200D}']), "{shown:?}");
}

#[test_on(sqlite, postgres)]
async fn tickets_show_hebrew_and_arabic_from_right_to_left(app: TestApp) {
    let (kofi, ama, event) = app.create_sale(&[section("Floor", 0.0, 10)]).await;
    let order = ama.order(&event.sections[0], 1).await.unwrap();

    // The letters of the lines are written here from left to right, those of Arabic in the form that joins them to their neighbours.
    for (title, expected) in [
        ("שלום (2027)", ["(2027) ", "\u{5DD}\u{5D5}\u{5DC}\u{5E9}"].concat()),
        ("Jazz: שלום", ["Jazz: ", "\u{5DD}\u{5D5}\u{5DC}\u{5E9}"].concat()),
        ("عبدالله", "\u{FEEA}\u{FEE0}\u{FEDF}\u{FE8D}\u{FEAA}\u{FE92}\u{FECB}".to_owned()),
        ("سلام", "\u{FEE1}\u{FEFC}\u{FEB3}".to_owned()),
        ("ليلة 7 Jazz", "Jazz 7 \u{FE94}\u{FEE0}\u{FEF4}\u{FEDF}".to_owned()),
        ("ل\u{200D}لا\u{64B}", "\u{FEFC}\u{FEDF}".to_owned()),
    ] {
        app.put(&kofi.key, &event.uri, json!({ "title": title })).await;
        let document = app.request("GET", &format!("{}/tickets.pdf", order.self_)).key(&ama.key).send_raw().await;
        let lines = pdf::lines(&document.bytes().await.unwrap());
        assert!(lines.contains(&expected), "{title}: {expected:?} in {lines:?}");
    }
}

/// Fills this many places of an account, or without an account those of all, until the returned senders are dropped.
fn fill(pool: &AccountWorkerPool, account: Option<Id>, places: usize) -> (Vec<mpsc::Sender<()>>, BoxFuture<'_, Vec<Result<()>>>) {
    let (release, released): (Vec<_>, Vec<_>) = (0..places).map(|_| mpsc::channel()).unzip();
    let mut filled = join_all(released.into_iter().map(|released| pool.run(account, move || _ = released.recv()))).boxed();
    assert!((&mut filled).now_or_never().is_none());
    (release, filled)
}

impl TestApp {
    /// Orders a free ticket, and returns the paths of its document and of its QR code.
    async fn order_drawn_ticket(&self, user: &User, section: &str) -> [String; 2] {
        let order = user.order(section, 1).await.unwrap();
        let tickets = self.get(&user.key, &format!("/accounts/{}/tickets", user.number)).await;
        let ticket = tickets.body["entries"][0]["self"].as_str().unwrap();
        [format!("{}/tickets.pdf", order.self_), format!("{ticket}/code/png")]
    }

    async fn status_of(&self, user: &User, path: &str) -> u16 {
        self.request("GET", path).key(&user.key).send_raw().await.status().as_u16()
    }
}

#[test_on(sqlite, postgres)]
async fn one_customer_cannot_keep_others_from_their_documents(app: TestApp) {
    let (_, ama, event) = app.create_sale(&[section("Floor", 0.0, 10)]).await;
    let esi = app.sign_up("esi").await;
    let [of_ama, code_of_ama] = app.order_drawn_ticket(&ama, &event.sections[0]).await;
    let [of_esi, code_of_esi] = app.order_drawn_ticket(&esi, &event.sections[0]).await;
    let mut reader = app.state.db.read().await.unwrap();
    let id = reader.query("select id from accounts where number = $1").bind(ama.number.clone()).scalar().await.unwrap();
    drop(reader);
    let workers = &app.state.ticket_workers;
    let (release, filled) = fill(&workers.documents, Some(id), 8);
    // Other accounts still get a place, and so do this one's QR codes.
    drop(fill(&workers.documents, Some(Id::NONE), 1));
    drop(fill(&workers.codes, Some(id), 1));

    let rejected = app.get(&ama.key, &of_ama).await;
    let waiting =
        [(&ama, &code_of_ama), (&esi, &of_esi), (&esi, &code_of_esi)].map(|(user, path)| app.status_of(user, path).boxed());
    let meanwhile = async {
        assert_eq!(app.get(&ama.key, &event.uri).await.status, 200);
        drop(release);
        filled.await
    };
    let (waited, _) = join(join_all(waiting), meanwhile).await;

    assert_eq!((rejection(&rejected), rejected.header("retry-after")), ((429, "requests.too-many"), "1"));
    assert!(rejected.header("ratelimit-policy").contains("\"documents\""), "{rejected:?}");
    assert_eq!(waited, [200, 200, 200]);
    assert_eq!(app.status_of(&ama, &of_ama).await, 200);
}

#[test_on(sqlite, postgres)]
async fn documents_beyond_the_queue_are_rejected(app: TestApp) {
    let (_, ama, event) = app.create_sale(&[section("Floor", 0.0, 10)]).await;
    let paths = app.order_drawn_ticket(&ama, &event.sections[0]).await;
    let running = (available_parallelism().unwrap().get() / 2).max(1);
    let (release, filled) = fill(&app.state.ticket_workers.documents, None, running * 101);

    for path in &paths {
        let rejected = app.get(&ama.key, path).await;
        assert_eq!((rejection(&rejected), rejected.header("retry-after")), ((503, "server.unavailable"), "1"), "{path}");
    }
    assert_eq!(app.get(&ama.key, &event.uri).await.status, 200);
    drop(release);
    filled.await;
    for path in &paths {
        assert_eq!(app.status_of(&ama, path).await, 200, "{path}");
    }
}
