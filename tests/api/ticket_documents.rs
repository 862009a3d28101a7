//! Tickets as PDF documents.

use serde_json::json;

use crate::support::{TestApp, pdf, rejection, section, test_on};

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
