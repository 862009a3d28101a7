//! Who may read and end a transfer, and what each side sees.

use serde_json::{Value, json};

use super::{claim, create_fixture, offer, read, reject, serials_of};
use crate::support::{TestApp, entries_of, rejection, test_on};

#[test_on(sqlite, postgres)]
async fn transfer_hides_addresses_of_both_sides(app: TestApp) {
    let fixture = create_fixture(&app, 1).await;
    let private = json!({ "phone": "+233 24 555 0134", "dateOfBirth": "1992-04-18", "firstAddressLine": "12 Oxford Street", "city": "Accra" });
    for user in [&fixture.ama, &fixture.esi] {
        let changed = app.put(&user.key, &format!("/accounts/{}", user.number), &private).await;
        assert_eq!(changed.status, 200);
    }
    let transfer = fixture.offer(&app, &fixture.serials).await;
    let event = app.get(&fixture.gate_key(&app).await, &format!("{}/tickets", fixture.event.uri)).await;
    let host = app.create_host(&fixture.kofi).await;
    let body = json!({ "account": fixture.ama.number });
    let added = app.post(&fixture.kofi.key, &format!("{}/administrators", host.uri), &body).await;

    let (sent, received) = (read(&app, &fixture.ama, &transfer).await, read(&app, &fixture.esi, &transfer).await);
    for strange in [
        &sent["recipient"],
        &received["sender"],
        &received["tickets"][0]["owner"],
        &event.body["entries"][0]["owner"],
        &added.body,
    ] {
        let seen = ["phone", "dateOfBirth", "firstAddressLine", "city"].map(|name| strange[name].clone());
        assert_eq!(seen, [json!(""), json!(""), json!(""), json!("")], "{strange}");
        assert_eq!(strange["firstName"], strange["username"], "only the name");
    }
    let staff = app.read(&transfer).await;
    for own in [&sent["sender"], &received["recipient"], &staff["sender"], &staff["recipient"]] {
        assert_eq!(own["phone"], "+233 24 555 0134");
    }
}

#[test_on(sqlite, postgres)]
async fn recipient_reads_serials_after_claim(app: TestApp) {
    let fixture = create_fixture(&app, 2).await;
    let serials = |transfer: &Value| {
        let tickets = transfer["tickets"].as_array().unwrap().iter();
        tickets.map(|ticket| ticket["serial"].clone()).collect::<Vec<_>>()
    };
    let (known, hidden) = (vec![json!(fixture.serials[0]), json!(fixture.serials[1])], vec![json!(""); 2]);

    for (method, below) in [("POST", "/rejections"), ("DELETE", ""), ("POST", "/claims")] {
        let uri = fixture.offer(&app, &fixture.serials).await;
        assert_eq!(serials(&read(&app, &fixture.esi, &uri).await), hidden);
        let ended = app.request(method, &format!("{uri}{below}")).key(&fixture.esi.key).send().await;

        // After the claim, the new serials are hidden from the sender.
        let received: Vec<Value> = serials_of(&app, &fixture.esi).await.into_iter().map(Value::from).collect();
        let (to_recipient, to_sender, to_staff) =
            if below == "/claims" { (&received, &hidden, &received) } else { (&hidden, &known, &known) };
        if ended.status == 200 {
            assert_eq!(&serials(&ended.body), to_recipient, "{method} {below}");
        }
        let now = read(&app, &fixture.esi, &uri).await;
        assert_eq!(&serials(&now), to_recipient, "{method} {below}");
        assert_eq!(&serials(&read(&app, &fixture.ama, &uri).await), to_sender, "{method} {below}");
        let history = format!("/accounts/{}/transfers", fixture.esi.number);
        let hers = app.get(&fixture.esi.key, &history).await.body;
        assert_eq!(entries_of(&hers).last(), Some(&now), "the history ends there");
        let staffs = app.read(&history).await;
        assert_eq!(&serials(entries_of(&staffs).last().unwrap()), to_staff, "{method} {below}");
    }
}

#[test_on(sqlite, postgres)]
async fn transfer_does_not_reveal_later_changes(app: TestApp) {
    let fixture = create_fixture(&app, 2).await;
    let yaw = app.sign_up("yaw").await;
    let claimed = fixture.offer(&app, &fixture.serials).await;
    claim(&app, &fixture.esi, &claimed).await;
    let read_by_all = async || {
        let [ama, esi, staff] = [&fixture.ama, &fixture.esi, &app.staff].map(|user| read(&app, user, &claimed));
        [ama.await, esi.await, staff.await]
    };
    let before = read_by_all().await;
    let received = serials_of(&app, &fixture.esi).await;

    let onward = offer(&app, &fixture.esi.key, &yaw, &received[..1]).await;
    let meanwhile = read_by_all().await;
    claim(&app, &yaw, onward.uri()).await;
    assert_eq!(fixture.admit(&app, &serials_of(&app, &yaw).await).await.status, 201);

    assert_eq!(meanwhile, before, "offered on");
    assert_eq!(read_by_all().await, before, "claimed by somebody else, and redeemed");
    assert_eq!(before[0]["tickets"][0]["owner"]["number"], fixture.esi.number.as_str());
}

#[test_on(sqlite, postgres)]
async fn only_recipient_claims_or_rejects(app: TestApp) {
    let fixture = create_fixture(&app, 1).await;
    let yaw = app.sign_up("yaw").await;
    let uri = fixture.offer(&app, &fixture.serials).await;

    assert_eq!(claim(&app, &fixture.esi, &uri).await.status, 200);
    for response in [claim(&app, &fixture.ama, &uri).await, reject(&app, &yaw, &uri).await] {
        assert_eq!(rejection(&response), (403, "resource.not-yours"), "whatever its state");
    }
}
