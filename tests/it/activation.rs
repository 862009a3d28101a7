//! Accounts that are deactivated, activated again, and asked to be deleted.

use boxoffice::auth::Scope;
use boxoffice::setup;
use futures::future::join_all;
use serde_json::json;

use crate::support::{Answer, PASSWORD, Person, Refusal, World};
use crate::{on_both_databases, race_tests};

on_both_databases![
    staff_deactivate_an_account_and_activate_it_again,
    staff_alone_toggle_accounts,
    a_person_asks_for_their_deletion,
    the_staff_are_mailed_of_a_deletion_that_is_asked_for,
    staff_ask_for_a_deletion_once,
    a_deletion_is_asked_for_by_the_account_or_the_staff,
    the_last_active_administrator_stays,
    every_step_from_every_state_of_an_account,
];

race_tests![of_administrators_deactivated_at_once_one_stays];

impl World {
    /// Deactivates an account that is active, and activates any other.
    pub async fn toggle(&self, number: &str) -> Answer {
        self.request("POST", &format!("/accounts/{number}/toggles")).key(&self.staff.key).send().await
    }

    /// Asks for the deletion of an account.
    async fn ask_for_deletion(&self, key: &str, number: &str) -> Answer {
        self.request("POST", &format!("/accounts/{number}/deletions")).key(key).send().await
    }

    /// A key of the platform's staff behind which there is no account.
    async fn nobodys_key(&self) -> String {
        setup::create_key(&self.app, "a program", Scope::Administrator, None).await.unwrap()
    }

    /// Another administrator's number.
    async fn administrator(&self, name: &str) -> String {
        let body =
            json!({ "username": name, "email": format!("{name}@example.com"), "password": PASSWORD, "role": "administrator" });
        let made = self.request("POST", "/accounts").key(&self.staff.key).json(&body).send().await;
        made.body["number"].as_str().unwrap().to_owned()
    }

    /// Whether a key is accepted.
    async fn accepts(&self, key: &str) -> bool {
        let answer = self.request("GET", "/time").key(key).send().await;
        assert!(answer.status == 200 || (answer.status, answer.code()) == (403, "key.refused"), "{answer:?}");
        answer.status == 200
    }
}

async fn staff_deactivate_an_account_and_activate_it_again(world: World) {
    let ama = world.person("ama").await;
    let till = world.integration_of(&ama).await;
    let mut account = world.read(&format!("/accounts/{}", ama.number)).await;

    let deactivated = world.toggle(&ama.number).await;

    account["activated"] = json!(false);
    assert_eq!((deactivated.status, &deactivated.body), (200, &account));
    assert_eq!(world.read(&format!("/accounts/{}", ama.number)).await, account);
    assert!(!world.accepts(&ama.key).await && !world.accepts(&till).await);
    assert_eq!(world.sign_in("ama", PASSWORD).await.refusal(), (403, "account.deactivated".to_owned()));

    let activated = world.toggle(&ama.number).await;

    account["activated"] = json!(true);
    assert_eq!((activated.status, &activated.body), (200, &account));
    assert!(world.accepts(&ama.key).await && world.accepts(&till).await);
    assert!(world.sign_in("ama", PASSWORD).await.is_ok());
}

async fn staff_alone_toggle_accounts(world: World) {
    let ama = world.person("ama").await;
    let path = format!("/accounts/{}/toggles", ama.number);

    for key in [&ama.key, &world.public_key] {
        let refused = world.request("POST", &path).key(key).send().await;
        assert_eq!((refused.status, refused.code()), (403, "key.refused"));
    }
    let unknown = world.toggle("ZZ-00000000").await;
    assert_eq!((unknown.status, unknown.code()), (404, "resource.not-found"));
    assert!(world.accepts(&ama.key).await);
}

async fn a_person_asks_for_their_deletion(world: World) {
    let ama = world.person("ama").await;
    let other = world.sign_in("ama", PASSWORD).await.unwrap();
    let till = world.integration_of(&ama).await;
    let mut account = world.read(&format!("/accounts/{}", ama.number)).await;

    let asked = world.ask_for_deletion(&ama.key, &ama.number).await;

    account["activated"] = json!(false);
    assert_eq!((asked.status, &asked.body), (200, &account));
    assert_eq!(world.sign_in("ama", PASSWORD).await.refusal(), (403, "account.deactivated".to_owned()));
    for key in [&ama.key, &other.key, &till] {
        assert!(!world.accepts(key).await);
    }
    let sessions = world.read(&format!("/accounts/{}/sessions", ama.number)).await;
    let open: Vec<_> = sessions["entries"].as_array().unwrap().iter().map(|session| session["open"].clone()).collect();
    assert_eq!(open, [json!(false), json!(false)]);

    // Whoever changes their mind has to sign in again.
    world.toggle(&ama.number).await;
    assert!(!world.accepts(&ama.key).await && !world.accepts(&other.key).await);
    assert!(world.accepts(&till).await, "only sessions have ended");
    assert!(world.sign_in("ama", PASSWORD).await.is_ok());
}

async fn the_staff_are_mailed_of_a_deletion_that_is_asked_for(world: World) {
    let ama = world.person("ama").await;
    let colleague = json!({ "username": "yaa", "email": "yaa@example.com", "password": PASSWORD, "role": "administrator" });
    assert_eq!(world.request("POST", "/accounts").key(&world.staff.key).json(&colleague).send().await.status, 201);
    let staff = world.read(&format!("/accounts/{}", world.staff.number)).await;

    world.ask_for_deletion(&ama.key, &ama.number).await;
    world.ask_for_deletion(&world.staff.key, &ama.number).await;

    for address in [staff["email"].as_str().unwrap(), "yaa@example.com"] {
        let letter = world.letter_to(address, 1).await;
        assert!(letter.contains(&ama.number) && !letter.contains("ama@example.com"), "{letter}");
    }
    assert!(world.post.files_to("ama@example.com").is_empty());
}

async fn staff_ask_for_a_deletion_once(world: World) {
    let ama = world.person("ama").await;

    let first = world.ask_for_deletion(&world.staff.key, &ama.number).await;
    let second = world.ask_for_deletion(&world.staff.key, &ama.number).await;

    assert_eq!((first.status, &first.body["activated"]), (200, &json!(false)));
    assert_eq!((second.status, second.code()), (409, "account.inactive"));
    assert_eq!(world.read(&format!("/accounts/{}", ama.number)).await, first.body);
}

async fn a_deletion_is_asked_for_by_the_account_or_the_staff(world: World) {
    let (ama, kofi) = (world.person("ama").await, world.person("kofi").await);

    for (key, number, expected) in [
        (&kofi.key, ama.number.as_str(), (403, "resource.not-yours")),
        (&world.public_key, &ama.number, (403, "key.refused")),
        (&ama.key, "ZZ-00000000", (404, "resource.not-found")),
    ] {
        let refused = world.ask_for_deletion(key, number).await;
        assert_eq!((refused.status, refused.code()), expected, "{number}");
    }
    assert!(world.accepts(&ama.key).await);
}

async fn the_last_active_administrator_stays(world: World) {
    let (staff, key) = (world.staff.number.clone(), world.nobodys_key().await);
    let ways = async |number: &str| {
        let send = |method, below: &str| world.request(method, &format!("/accounts/{number}{below}")).key(&key).send();
        [send("POST", "/toggles").await, send("POST", "/deletions").await, send("DELETE", "").await]
    };
    world.person("ama").await;

    for refused in ways(&staff).await {
        assert_eq!((refused.status, refused.code()), (409, "account.last-administrator"));
    }
    let session = world.accepts(&world.staff.key).await;
    assert!(session, "nothing was changed");

    // With another one beside it, it may go; then that one is the last.
    let efua = world.administrator("efua").await;
    let own = world.toggle(&staff).await;
    assert_eq!((own.status, &own.body["activated"]), (200, &json!(false)));
    for refused in ways(&efua).await {
        assert_eq!((refused.status, refused.code()), (409, "account.last-administrator"));
    }
    // One that is not active is not needed.
    let removed = world.request("DELETE", &format!("/accounts/{staff}")).key(&key).send().await;
    assert_eq!(removed.status, 204);
}

async fn of_administrators_deactivated_at_once_one_stays(world: World) {
    let key = world.nobodys_key().await;
    for _ in 0..3 {
        let mut numbers = vec![world.staff.number.clone()];
        for name in ["efua", "esi", "yaa"] {
            numbers.push(world.administrator(&format!("{name}-{}", world.app.clock.next_id())).await);
        }

        let ways = numbers.iter().enumerate().map(|(index, number)| match index % 3 {
            0 => world.request("POST", &format!("/accounts/{number}/toggles")).key(&key).send(),
            1 => world.request("POST", &format!("/accounts/{number}/deletions")).key(&key).send(),
            _ => world.request("DELETE", &format!("/accounts/{number}")).key(&key).send(),
        });
        let answers = join_all(ways).await;

        let refused: Vec<_> = answers.iter().filter(|answer| answer.status == 409).collect();
        assert_eq!(refused.len(), 1, "{answers:?}");
        assert_eq!(refused[0].code(), "account.last-administrator");
        let accounts = world.request("GET", "/accounts?records=100").key(&key).send().await;
        let entries = accounts.body["entries"].as_array().unwrap();
        let left: Vec<_> = entries.iter().filter(|account| account["activated"] == true).collect();
        assert_eq!(left.len(), 1);

        // The first administrator is active again, and nobody else, for the next round.
        let staff = format!("/accounts/{}/toggles", world.staff.number);
        if left[0]["number"] != world.staff.number.as_str() {
            assert_eq!(world.request("POST", &staff).key(&key).send().await.status, 200);
            let other = format!("/accounts/{}/toggles", left[0]["number"].as_str().unwrap());
            assert_eq!(world.request("POST", &other).key(&key).send().await.status, 200);
        }
    }
}

/// What can be done to an account, and with it.
#[derive(Debug, Clone, Copy)]
enum Step {
    Toggle,
    AskForDeletion,
    Remove,
    LogIn,
    UseKey,
    Update,
}

async fn take(world: &World, person: &Person, step: Step) -> Answer {
    let path = format!("/accounts/{}", person.number);
    let staff = &world.staff.key;
    match step {
        Step::Toggle => world.toggle(&person.number).await,
        Step::AskForDeletion => world.ask_for_deletion(staff, &person.number).await,
        Step::Remove => world.request("DELETE", &path).key(staff).send().await,
        Step::LogIn => {
            let body = json!({ "identification": person.username, "password": PASSWORD });
            world.request("POST", "/sessions").json(&body).send().await
        }
        Step::UseKey => world.request("GET", &path).key(&person.key).send().await,
        Step::Update => world.request("PUT", &path).key(staff).json(&json!({ "city": "Ho" })).send().await,
    }
}

/// What the staff read of an account: whether it is active, or that it is gone.
async fn state(world: &World, person: &Person) -> &'static str {
    let answer = world.request("GET", &format!("/accounts/{}", person.number)).key(&world.staff.key).send().await;
    match (answer.status, answer.body["activated"].as_bool()) {
        (200, Some(true)) => "active",
        (200, Some(false)) => "deactivated",
        (404, _) => "removed",
        other => panic!("{other:?}"),
    }
}

async fn every_step_from_every_state_of_an_account(world: World) {
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
        let person = world.person(&format!("person-{number}")).await;
        if let Some(way) = way {
            take(&world, &person, way).await;
        }
        assert_eq!(state(&world, &person).await, before);

        let answer = take(&world, &person, step).await;

        assert_eq!((answer.status, answer.code()), (status, code), "{step:?} when {before}");
        assert_eq!(state(&world, &person).await, after, "after {step:?} when {before}");
    }
}
