//! Integrations: API keys for programs.

use std::time::Duration;

use boxoffice::provisioning;
use boxoffice_openapi::Scope;
use serde_json::{Value, json};

use crate::support::{PASSWORD, Response, TestApp, User, entries_of, id_of, rejection, test_on, types};

impl TestApp {
    /// Creates an integration with the administrator's key.
    async fn integrate(&self, body: &Value) -> Response {
        self.post(&self.staff.key, "/integrations", body).await
    }

    /// Creates an integration for this user's account, and returns its key.
    pub async fn create_integration_key(&self, user: &User) -> String {
        let created = self.integrate(&json!({ "name": "Kiosk", "role": "customer", "account": user.number })).await;
        created.body["key"].as_str().unwrap().to_owned()
    }
}

#[test_on(sqlite, postgres)]
async fn key_acts_as_its_account(app: TestApp) {
    let (ama, kofi) = (app.sign_up("ama").await, app.sign_up("kofi").await);

    let integration = app.create_integration_key(&ama).await;

    let status = async |number| app.get(&integration, &format!("/accounts/{number}")).await.status;
    assert_eq!(status(&ama.number).await, 200);
    assert_eq!(status(&kofi.number).await, 403);
}

#[test_on(sqlite, postgres)]
async fn key_is_shown_once(app: TestApp) {
    let ama = app.sign_up("ama").await;
    let expires = "2999-11-21T01:00:00+01:00";
    let body = json!({ "name": "Kiosk", "role": "customer", "account": ama.number, "expires": expires });

    let created = app.integrate(&body).await;

    let uri = created.uri();
    let key = created.body["key"].as_str().unwrap();
    assert_eq!((created.status, created.header("location")), (201, uri));
    assert!(key.len() == 32 && key.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit()), "{key}");
    let mut expected = json!({
        "self": uri, "name": "Kiosk", "role": "customer", "account": ama.number, "expires": "2999-11-21T00:00:00+00:00",
        "created": created.body["created"], "lastUsed": null, "key": key,
    });
    assert_eq!(created.body, expected);
    expected.as_object_mut().unwrap().remove("key");
    assert_eq!(app.get(&app.staff.key, uri).await.body, expected);
}

#[test_on(sqlite, postgres)]
async fn integration_acts_as_creator_by_default(app: TestApp) {
    let created = app.integrate(&json!({ "name": "Reports", "role": "administrator", "account": null, "expires": null })).await;

    assert_eq!((&created.body["account"], &created.body["expires"]), (&json!(app.staff.number), &Value::Null));
    let reports = app.client(created.body["key"].as_str().unwrap());
    assert_eq!(reports.account_list().send().await.unwrap().total, 1);
}

#[test_on(sqlite, postgres)]
async fn role_limits_scope_of_key(app: TestApp) {
    let own = format!("/accounts/{}", app.staff.number);
    for (role, statuses) in [("public", [200, 403, 403]), ("customer", [200, 200, 403]), ("administrator", [200, 200, 200])] {
        let created = app.integrate(&json!({ "name": role, "role": role })).await;
        let key = created.body["key"].as_str().unwrap();

        let get = |path| app.request("GET", path).key(key).send();
        let responses = [get("/time").await, get(&own).await, get("/accounts").await];

        assert_eq!(responses.map(|response| response.status), statuses, "{role}");
    }
}

#[test_on(sqlite, postgres)]
async fn public_key_outlives_its_account(app: TestApp) {
    let esi = app.administrator("esi").await;
    let session = app.sign_in("esi", PASSWORD).await.unwrap();
    let create = async |role: types::Role| {
        let client = app.client(&session.key);
        let creation = client.integration_create();
        creation.body_map(|body| body.name("App").role(role)).send().await.unwrap().into_inner()
    };
    let (public, customer) = (create(types::Role::Public).await, create(types::Role::Customer).await);
    let check = async |state: &str| {
        let events = app.client(&public.key).published_event_list().send().await;
        assert!(events.is_ok(), "{state}: {events:?}");
        let body = json!({ "username": state, "email": format!("{state}@example.com"), "password": PASSWORD });
        assert_eq!(app.post(&public.key, "/accounts", body).await.status, 201, "{state}");
        assert_eq!(rejection(&app.get(&customer.key, "/time").await), (403, "key.refused"), "{state}");
        let shown = app.staff.client.integration_get().integration(id_of(&public.self_)).send().await.unwrap();
        assert_eq!((shown.account.as_str(), &shown.role), (esi.as_str(), &types::Role::Public), "{state}");
    };

    assert_eq!(app.toggle(&esi).await.status, 200);
    check("deactivated").await;
    assert_eq!(app.delete(&app.staff.key, &format!("/accounts/{esi}")).await.status, 204);
    check("deleted").await;

    let list = app.staff.client.integration_list().send().await.unwrap();
    assert!(list.entries.iter().any(|integration| integration.self_ == public.self_));
    assert!(!list.entries.iter().any(|integration| integration.self_ == customer.self_));
    assert_eq!(app.delete(&app.staff.key, &public.self_).await.status, 204);
    assert_eq!(rejection(&app.get(&public.key, "/time").await), (403, "key.refused"));
}

#[test_on(sqlite, postgres)]
async fn key_works_until_it_expires(app: TestApp) {
    let soon = app.state.clock.now().plus(Duration::from_secs(3600)).format_rfc3339();
    let created = app.integrate(&json!({ "name": "Kiosk", "role": "public", "expires": soon })).await;
    let status = async || app.get(created.body["key"].as_str().unwrap(), "/time").await.status;

    app.advance_clock(Duration::from_secs(3590));
    assert_eq!(status().await, 200);
    app.advance_clock(Duration::from_secs(11));
    assert_eq!(status().await, 403);
    let read = app.get(&app.staff.key, created.uri()).await;
    assert_eq!((read.status, &read.body["expires"]), (200, &json!(soon)), "the integration is still visible");
}

#[test_on(sqlite, postgres)]
async fn rejects_expiry_in_the_past(app: TestApp) {
    let moment = |seconds| app.state.clock.now().minus(Duration::from_secs(seconds)).format_rfc3339();

    for expires in [moment(1), "1970-01-01T00:00:00Z".to_owned()] {
        let body = json!({ "name": "Kiosk", "role": "public", "account": "ZZ-00000000", "expires": expires });
        let rejected = app.integrate(&body).await;

        assert_eq!(rejected.invalid_arguments(), ["account", "expires"]);
        assert_eq!(rejected.body["fields"][1]["detail"], "must be in the future");
    }
    assert_eq!(app.staff.client.integration_list().send().await.unwrap().total, 1);
}

#[test_on(sqlite, postgres)]
async fn rejects_unknown_account(app: TestApp) {
    let unknown = app.integrate(&json!({ "name": "Kiosk", "role": "customer", "account": "ZZ-00000000" })).await;
    assert_eq!(unknown.invalid_arguments(), ["account"]);

    let nobodys = provisioning::create_key(&app.state, "nobody's", Scope::Administrator, None, None).await.unwrap();
    let nobody = app.post(&nobodys, "/integrations", json!({ "name": "Kiosk", "role": "customer" })).await;
    assert_eq!(nobody.invalid_arguments(), ["-account"]);
}

#[test_on(sqlite, postgres)]
async fn unknown_integration_is_not_found(app: TestApp) {
    app.sign_up("ama").await;
    let session = app.sign_in("ama", crate::support::PASSWORD).await.unwrap();

    for id in ["17637000000001".to_owned(), "till".to_owned(), session.id.to_string()] {
        for method in ["GET", "DELETE"] {
            let response = app.request(method, &format!("/integrations/{id}")).key(&app.staff.key).send().await;

            assert_eq!(rejection(&response), (404, "resource.not-found"), "{method} {id}");
        }
    }
    assert!(app.client(&session.key).session_active_get().send().await.is_ok(), "a session is none");
}

#[test_on(sqlite, postgres)]
async fn lists_integrations_without_keys(app: TestApp) {
    let ama = app.sign_up("ama").await;
    let soon = app.state.clock.now().plus(Duration::from_secs(60)).format_rfc3339();
    let integration = json!({ "name": "Kiosk", "role": "customer", "account": ama.number, "expires": soon });
    let mut integration = app.integrate(&integration).await.body;
    let mut reports = app.integrate(&json!({ "name": "Reports", "role": "administrator" })).await.body;
    for integration in [&mut integration, &mut reports] {
        integration.as_object_mut().unwrap().remove("key");
    }
    let list = |query: &str| app.request("GET", &format!("/integrations?{query}")).key(&app.staff.key).send();

    let page = list("").await;

    // The administrator's key is an integration. The public key has no account, and Ama's session is no integration.
    assert_eq!((page.status, &page.body["total"]), (200, &json!(3)));
    assert_eq!(page.body["entries"][0]["name"], "first start");
    assert_eq!(entries_of(&page.body)[1..], [integration.clone(), reports.clone()]);
    assert_eq!(list("records=2&page=2").await.body["entries"], json!([reports]));
    app.advance_clock(Duration::from_secs(61));
    assert_eq!(list("").await.body, page.body, "an expired one is still visible");
}

#[test_on(sqlite, postgres)]
async fn revoked_integration_is_not_found(app: TestApp) {
    let ama = app.sign_up("ama").await;
    let integration = app.integrate(&json!({ "name": "Kiosk", "role": "customer", "account": ama.number })).await.body;
    let other = app.create_integration_key(&ama).await;
    let uri = integration["self"].as_str().unwrap();

    let ended = app.delete(&app.staff.key, uri).await;

    assert_eq!((ended.status, ended.body), (204, Value::Null));
    assert_eq!(rejection(&app.get(integration["key"].as_str().unwrap(), "/time").await), (403, "key.refused"));
    assert_eq!(app.get(&other, "/time").await.status, 200);
    for method in ["GET", "DELETE"] {
        let gone = app.request(method, uri).key(&app.staff.key).send().await;
        assert_eq!(rejection(&gone), (404, "resource.not-found"), "{method}");
    }
    assert_eq!(app.staff.client.integration_list().send().await.unwrap().total, 2);
}
