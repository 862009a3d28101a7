//! Deactivation, reactivation and deletion requests of accounts.

use boxoffice::provisioning;
use boxoffice_openapi::Scope;
use futures::future::join_all;
use serde_json::json;

use crate::support::{PASSWORD, Rejection, Response, TestApp, User, entries_of, rejection, test_on};

impl TestApp {
    /// Deactivates an active account, and activates an inactive one.
    pub async fn toggle(&self, number: &str) -> Response {
        self.post_empty(&self.staff.key, &format!("/accounts/{number}/toggles")).await
    }

    /// Requests the deletion of an account.
    async fn request_deletion(&self, key: &str, number: &str) -> Response {
        self.post_empty(key, &format!("/accounts/{number}/deletions")).await
    }

    /// Creates an administrator's key without an account.
    async fn create_key_without_account(&self) -> String {
        provisioning::create_key(&self.state, "a program", Scope::Administrator, None, None).await.unwrap()
    }

    /// Creates another administrator, and returns the account number.
    pub async fn administrator(&self, name: &str) -> String {
        let body =
            json!({ "username": name, "email": format!("{name}@example.com"), "password": PASSWORD, "role": "administrator" });
        let created = self.post(&self.staff.key, "/accounts", &body).await;
        created.body["number"].as_str().unwrap().to_owned()
    }

    /// Returns whether a key is accepted.
    async fn accepts(&self, key: &str) -> bool {
        let response = self.get(key, "/time").await;
        assert!(response.status == 200 || rejection(&response) == (403, "key.refused"), "{response:?}");
        response.status == 200
    }
}

#[test_on(sqlite, postgres)]
async fn staff_deactivate_and_reactivate_account(app: TestApp) {
    let ama = app.sign_up("ama").await;
    let integration = app.create_integration_key(&ama).await;
    let mut account = app.read(&format!("/accounts/{}", ama.number)).await;

    let deactivated = app.toggle(&ama.number).await;

    account["activated"] = json!(false);
    assert_eq!((deactivated.status, &deactivated.body), (200, &account));
    assert_eq!(app.read(&format!("/accounts/{}", ama.number)).await, account);
    assert!(!app.accepts(&ama.key).await && !app.accepts(&integration).await);
    assert_eq!(app.sign_in("ama", PASSWORD).await.rejection(), (403, "account.deactivated".to_owned()));

    let activated = app.toggle(&ama.number).await;

    account["activated"] = json!(true);
    assert_eq!((activated.status, &activated.body), (200, &account));
    assert!(app.accepts(&ama.key).await && app.accepts(&integration).await);
    assert!(app.sign_in("ama", PASSWORD).await.is_ok());
}

#[test_on(sqlite, postgres)]
async fn user_requests_deletion(app: TestApp) {
    let ama = app.sign_up("ama").await;
    let other = app.sign_in("ama", PASSWORD).await.unwrap();
    let integration = app.create_integration_key(&ama).await;
    let mut account = app.read(&format!("/accounts/{}", ama.number)).await;

    let requested = app.request_deletion(&ama.key, &ama.number).await;

    account["activated"] = json!(false);
    assert_eq!((requested.status, &requested.body), (200, &account));
    assert_eq!(app.sign_in("ama", PASSWORD).await.rejection(), (403, "account.deactivated".to_owned()));
    for key in [&ama.key, &other.key, &integration] {
        assert!(!app.accepts(key).await);
    }
    let sessions = app.read(&format!("/accounts/{}/sessions", ama.number)).await;
    let open: Vec<_> = entries_of(&sessions).iter().map(|session| session["open"].clone()).collect();
    assert_eq!(open, [json!(false), json!(false)]);

    // After the reactivation the user must log in again.
    app.toggle(&ama.number).await;
    assert!(!app.accepts(&ama.key).await && !app.accepts(&other.key).await);
    assert!(app.accepts(&integration).await, "only sessions have ended");
    assert!(app.sign_in("ama", PASSWORD).await.is_ok());
}

#[test_on(sqlite, postgres)]
async fn deletion_request_notifies_staff_by_mail(app: TestApp) {
    let ama = app.sign_up("ama").await;
    let colleague = json!({ "username": "yaa", "email": "yaa@example.com", "password": PASSWORD, "role": "administrator" });
    assert_eq!(app.post(&app.staff.key, "/accounts", colleague).await.status, 201);
    let staff = app.read(&format!("/accounts/{}", app.staff.number)).await;

    app.request_deletion(&ama.key, &ama.number).await;
    app.request_deletion(&app.staff.key, &ama.number).await;

    for address in [staff["email"].as_str().unwrap(), "yaa@example.com"] {
        let letter = app.mail_to(address, 1).await;
        assert!(letter.contains(&ama.number) && !letter.contains("ama@example.com"), "{letter}");
    }
    assert!(app.mailbox.files_to("ama@example.com").is_empty());
}

#[test_on(sqlite, postgres)]
async fn staff_request_deletion_once(app: TestApp) {
    let ama = app.sign_up("ama").await;

    let first = app.request_deletion(&app.staff.key, &ama.number).await;
    let second = app.request_deletion(&app.staff.key, &ama.number).await;

    assert_eq!((first.status, &first.body["activated"]), (200, &json!(false)));
    assert_eq!(rejection(&second), (409, "account.inactive"));
    assert_eq!(app.read(&format!("/accounts/{}", ama.number)).await, first.body);
}

#[test_on(sqlite, postgres)]
async fn last_active_administrator_cannot_be_deactivated(app: TestApp) {
    let (staff, key) = (app.staff.number.clone(), app.create_key_without_account().await);
    let ways = async |number: &str| {
        let send = |method, below: &str| app.request(method, &format!("/accounts/{number}{below}")).key(&key).send();
        [send("POST", "/toggles").await, send("POST", "/deletions").await, send("DELETE", "").await]
    };
    app.sign_up("ama").await;

    for rejected in ways(&staff).await {
        assert_eq!(rejection(&rejected), (409, "account.last-administrator"));
    }
    let session = app.accepts(&app.staff.key).await;
    assert!(session, "nothing was changed");

    // With a second administrator the first one may be deactivated; then the second is the last.
    let efua = app.administrator("efua").await;
    let own = app.toggle(&staff).await;
    assert_eq!((own.status, &own.body["activated"]), (200, &json!(false)));
    for rejected in ways(&efua).await {
        assert_eq!(rejection(&rejected), (409, "account.last-administrator"));
    }
    // An inactive administrator does not count.
    assert_eq!(app.delete(&key, &format!("/accounts/{staff}")).await.status, 204);
}

#[test_on(sqlite, postgres, two_servers)]
async fn concurrent_deactivations_leave_one_administrator(app: TestApp) {
    let key = app.create_key_without_account().await;
    for _ in 0..3 {
        let mut numbers = vec![app.staff.number.clone()];
        for name in ["efua", "esi", "yaa"] {
            numbers.push(app.administrator(&format!("{name}-{}", app.state.clock.next_id())).await);
        }

        let ways = numbers.iter().enumerate().map(|(index, number)| match index % 3 {
            0 => app.request("POST", &format!("/accounts/{number}/toggles")).key(&key).send(),
            1 => app.request("POST", &format!("/accounts/{number}/deletions")).key(&key).send(),
            _ => app.request("DELETE", &format!("/accounts/{number}")).key(&key).send(),
        });
        let responses = join_all(ways).await;

        let rejected: Vec<_> = responses.iter().filter(|response| response.status == 409).collect();
        assert_eq!(rejected.len(), 1, "{responses:?}");
        assert_eq!(rejected[0].code(), "account.last-administrator");
        let accounts = app.get(&key, "/accounts?records=100").await;
        let entries = entries_of(&accounts.body);
        let left: Vec<_> = entries.iter().filter(|account| account["activated"] == true).collect();
        assert_eq!(left.len(), 1);

        // Reactivates the first administrator only, for the next round.
        let staff = format!("/accounts/{}/toggles", app.staff.number);
        if left[0]["number"] != app.staff.number.as_str() {
            assert_eq!(app.post_empty(&key, &staff).await.status, 200);
            let other = format!("/accounts/{}/toggles", left[0]["number"].as_str().unwrap());
            assert_eq!(app.post_empty(&key, &other).await.status, 200);
        }
    }
}

/// Actions on an account.
#[derive(Debug, Clone, Copy)]
enum Step {
    Toggle,
    AskForDeletion,
    Remove,
    LogIn,
    UseKey,
    Update,
}

async fn take(app: &TestApp, user: &User, step: Step) -> Response {
    let path = format!("/accounts/{}", user.number);
    let staff = &app.staff.key;
    match step {
        Step::Toggle => app.toggle(&user.number).await,
        Step::AskForDeletion => app.request_deletion(staff, &user.number).await,
        Step::Remove => app.delete(staff, &path).await,
        Step::LogIn => {
            let body = json!({ "identification": user.username, "password": PASSWORD });
            app.request("POST", "/sessions").json(&body).send().await
        }
        Step::UseKey => app.get(&user.key, &path).await,
        Step::Update => app.put(staff, &path, json!({ "city": "Ho" })).await,
    }
}

/// Returns the state of an account: active, inactive or deleted.
async fn state(app: &TestApp, user: &User) -> &'static str {
    let response = app.get(&app.staff.key, &format!("/accounts/{}", user.number)).await;
    match (response.status, response.body["activated"].as_bool()) {
        (200, Some(true)) => "active",
        (200, Some(false)) => "deactivated",
        (404, _) => "removed",
        other => panic!("{other:?}"),
    }
}

#[test_on(sqlite, postgres)]
async fn every_transition_from_every_account_state(app: TestApp) {
    let active = ("active", None);
    let deactivated = ("deactivated", Some(Step::Toggle));
    let removed = ("removed", Some(Step::Remove));
    for (number, ((before, way), step, status, code, after)) in [
        (active, Step::Toggle, 200, "", "deactivated"),
        (active, Step::AskForDeletion, 200, "", "deactivated"),
        (active, Step::Remove, 204, "", "removed"),
        (active, Step::LogIn, 201, "", "active"),
        (active, Step::UseKey, 200, "", "active"),
        (active, Step::Update, 200, "", "active"),
        (deactivated, Step::Toggle, 200, "", "active"),
        (deactivated, Step::AskForDeletion, 409, "account.inactive", "deactivated"),
        (deactivated, Step::Remove, 204, "", "removed"),
        (deactivated, Step::LogIn, 403, "account.deactivated", "deactivated"),
        (deactivated, Step::UseKey, 403, "key.refused", "deactivated"),
        (deactivated, Step::Update, 200, "", "deactivated"),
        (removed, Step::Toggle, 404, "resource.not-found", "removed"),
        (removed, Step::AskForDeletion, 404, "resource.not-found", "removed"),
        (removed, Step::Remove, 404, "resource.not-found", "removed"),
        (removed, Step::LogIn, 404, "account.unknown", "removed"),
        (removed, Step::UseKey, 403, "key.refused", "removed"),
        (removed, Step::Update, 404, "resource.not-found", "removed"),
    ]
    .into_iter()
    .enumerate()
    {
        let user = app.sign_up(&format!("person-{number}")).await;
        if let Some(way) = way {
            take(&app, &user, way).await;
        }
        assert_eq!(state(&app, &user).await, before);

        let response = take(&app, &user, step).await;

        assert_eq!(rejection(&response), (status, code), "{step:?} when {before}");
        assert_eq!(state(&app, &user).await, after, "after {step:?} when {before}");
    }
}
