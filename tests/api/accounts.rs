//! Accounts: creation, access, unique names.

mod updates;

use boxoffice::features::identity::accounts::is_usual_name;
use serde_json::{Value, json};

use crate::support::{DAY, PASSWORD, Response, TestApp, entries_of, rejection, test_on};

impl TestApp {
    /// Creates an account with the public key.
    async fn create_account(&self, body: &Value) -> Response {
        self.request("POST", "/accounts").json(body).send().await
    }
}

fn new_account(username: &str, email: &str) -> Value {
    json!({ "username": username, "email": email, "password": PASSWORD })
}

#[test_on(sqlite, postgres)]
async fn creates_account_with_all_properties(app: TestApp) {
    let particulars = json!({
        "firstName": "Ama", "lastName": "Mensah", "title": "Ms", "dateOfBirth": "18-04-1992", "phone": "+233 24 555 0134",
        "country": "Ghana", "firstAddressLine": "12 Oxford Street", "secondAddressLine": "", "city": "Accra",
        "state": "Greater Accra", "role": "customer",
    });
    let mut body = new_account("Ama.Mensah", "Ama.Mensah@example.com");
    body.as_object_mut().unwrap().extend(particulars.as_object().unwrap().clone());

    let response = app.create_account(&body).await;

    assert_eq!(response.status, 201, "{}", response.body);
    let number = response.body["number"].as_str().unwrap();
    let uri = format!("/accounts/{number}");
    assert_eq!(response.header("location"), uri);
    let expected = json!({
        "self": uri, "number": number, "username": "Ama.Mensah", "email": "Ama.Mensah@example.com", "role": "customer",
        "verified": false, "activated": true, "firstName": "Ama", "lastName": "Mensah", "title": "Ms",
        "dateOfBirth": "1992-04-18", "phone": "+233 24 555 0134", "country": "Ghana",
        "firstAddressLine": "12 Oxford Street", "secondAddressLine": "", "city": "Accra", "state": "Greater Accra",
        "language": "", "preferences": format!("{uri}/preferences"),
    });
    assert_eq!(response.body, expected);
    assert_eq!(app.get(&app.staff.key, &uri).await.body, expected);
}

#[test_on(sqlite, postgres)]
async fn creates_account_with_required_properties_only(app: TestApp) {
    let mut body = new_account("kofi", "kofi@example.com");
    body["firstName"] = Value::Null;

    let account = app.create_account(&body).await.body;

    assert_eq!(
        (&account["role"], &account["verified"], &account["activated"]),
        (&json!("customer"), &json!(false), &json!(true))
    );
    for empty in [
        "firstName",
        "lastName",
        "title",
        "dateOfBirth",
        "phone",
        "country",
        "firstAddressLine",
        "secondAddressLine",
        "city",
        "state",
    ] {
        assert_eq!(account[empty], "", "{empty}");
    }
}

#[test_on(sqlite, postgres)]
async fn only_staff_create_staff_accounts(app: TestApp) {
    let ama = app.sign_up("ama").await;
    let mut body = new_account("esi", "esi@example.com");
    body["role"] = json!("administrator");
    let sign_up = |key| app.request("POST", "/accounts").key(key).json(&body).send();

    for key in [&app.public_key, &ama.key] {
        assert_eq!(rejection(&sign_up(key).await), (403, "resource.not-yours"));
    }
    let mut public = body.clone();
    public["role"] = json!("public");
    assert_eq!(app.post(&app.staff.key, "/accounts", &public).await.invalid_arguments(), ["role"]);
    let created = sign_up(&app.staff.key).await;

    assert_eq!((created.status, &created.body["role"]), (201, &json!("administrator")));
    let esi = app.sign_in("esi", PASSWORD).await.unwrap();
    assert_eq!(app.client(&esi.key).account_list().send().await.unwrap().total, 3);
}

#[test_on(sqlite, postgres)]
async fn username_and_email_are_unique(app: TestApp) {
    app.sign_up("ama").await;

    for (username, email, text) in [
        ("AMA", "other@example.com", "Another account has this username."),
        (
            "other",
            "Ama@Example.com",
            "Another account has this email. If the address is yours, reset the password of its account.",
        ),
        (
            "ama",
            "ama@example.com",
            "Another account has this username and this email. If the address is yours, reset the password of its account.",
        ),
    ] {
        let rejected = app.create_account(&new_account(username, email)).await;

        assert_eq!(rejection(&rejected), (409, "account.taken"), "{username} {email}");
        assert_eq!(rejected.body["error"], text);
    }
}

#[test_on(sqlite, postgres)]
async fn rejects_invalid_new_account(app: TestApp) {
    for (argument, value) in [
        ("username", json!("am")),
        ("username", json!("ama mensah")),
        ("username", json!("a".repeat(33))),
        ("dateOfBirth", json!("2999-01-01")),
    ] {
        let mut body = new_account("ama", "ama@example.com");
        body[argument] = value;

        let rejected = app.create_account(&body).await;

        assert_eq!(rejected.invalid_arguments(), [argument], "{body}");
    }
}

#[test_on(sqlite, postgres)]
async fn staff_list_and_filter_accounts(app: TestApp) {
    app.sign_up("ama").await;
    let kofi = app.sign_up("kofi").await;
    let list = async |query: &str| app.list(&app.staff.key, &format!("/accounts{query}"), "username").await;

    assert_eq!(list("").await, ["administrator", "ama", "kofi"]);
    assert_eq!(list("?username=AMA").await, ["ama"]);
    assert_eq!(list("?email=Kofi@EXAMPLE.com").await, ["kofi"]);
    assert_eq!(list(&format!("?number={}", kofi.number)).await, ["kofi"]);
    assert_eq!(list(&format!("?number={}&username=ama", kofi.number)).await, [""; 0]);
    assert_eq!(list("?username=am.").await, [""; 0], "a filter is no pattern");
}

#[test_on(sqlite, postgres)]
async fn lists_accounts_in_pages(app: TestApp) {
    for name in ["ama", "kofi", "esi"] {
        app.sign_up(name).await;
    }
    let page = async |page| app.get(&app.staff.key, &format!("/accounts?records=3&page={page}")).await;

    let (first, second, third) = (page(1).await, page(2).await, page(3).await);

    let envelope = |response: &Response| ["total", "page", "records"].map(|name| response.body[name].as_i64().unwrap());
    assert_eq!((envelope(&first), entries_of(&first.body).len()), ([4, 1, 3], 3));
    assert_eq!((envelope(&second), entries_of(&second.body).len()), ([4, 2, 3], 1));
    assert_eq!(second.body["entries"][0]["username"], "esi");
    assert_eq!(rejection(&third), (404, "page.past-end"));
}

#[test_on(sqlite, postgres)]
async fn date_of_birth_is_from_1900_to_today_of_server(app: TestApp) {
    let ama = app.sign_up("ama").await;
    let path = format!("/accounts/{}", ama.number);
    let put = async |date: &str| app.put(&ama.key, &path, json!({ "dateOfBirth": date })).await;
    let today = app.state.clock.now();
    let tomorrow = today.plus(DAY).format_date();

    for (date, expected) in
        [("1900-01-01", "1900-01-01"), ("01-01-1900", "1900-01-01"), (&today.format_date(), &today.format_date())]
    {
        let changed = put(date).await;
        assert_eq!((changed.status, &changed.body["dateOfBirth"]), (200, &json!(expected)));
    }
    for date in ["1899-12-31", "31-12-1899", "0001-01-01", "9999-12-31", &tomorrow] {
        let rejected = put(date).await;
        assert_eq!(rejected.invalid_arguments(), ["dateOfBirth"], "{date}");
        let detail = "must be a date from 1900-01-01 to today, such as 1990-02-28 or 28-02-1990";
        assert_eq!(rejected.body["fields"][0]["detail"], detail, "{date}");
    }
    app.state.clock.advance(DAY);
    assert_eq!(put(&tomorrow).await.status, 200);
}

#[test_on(sqlite, postgres)]
async fn concurrent_sign_ups_with_same_username_create_one_account(app: TestApp) {
    let ama = app.sign_up("ama").await;
    app.execute("update accounts set verified = true where number = $1", ama.number.clone()).await;
    let path = format!("/accounts/{}", ama.number);
    let verified = async |change: Value| app.put(&ama.key, &path, &change).await.body["verified"].clone();

    assert_eq!(verified(json!({ "city": "Accra" })).await, true);
    assert_eq!(verified(json!({ "email": "AMA@example.com" })).await, true);
    assert_eq!(verified(json!({ "email": "mensah@example.com" })).await, false);
}

#[test]
fn greetings_are_names() {
    for name in ["Ama", "Ama Serwaa", "Kofi Jr.", "Émile-Zoé", "O'Neill"] {
        assert!(is_usual_name(name), "{name}");
    }
    let long = "You have won a prize, and all you have to do is to call";
    for message in ["", "win at evil.example", "http:evil", "evil/x", "a@b", long] {
        assert!(!is_usual_name(message), "{message}");
    }
}
