//! Passwords: which ones nobody may have, how they are kept, and how many are checked at once.

use std::sync::Arc;
use std::time::Duration;

use argon2::password_hash::PasswordHasher;
use argon2::{Algorithm, Argon2, Params, Version};
use boxoffice::app::{App, Platform};
use boxoffice::auth::{Passwords, Scope};
use boxoffice::{log, setup};
use futures::future::join_all;
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::on_both_databases;
use crate::support::{ANYWHERE, Answer, PASSWORD, Person, World, refusal};

on_both_databases![
    a_password_that_many_have_is_refused_wherever_one_is_set,
    nobody_has_their_own_name_for_a_password,
    a_refused_password_uses_up_no_reset_but_a_try,
    a_hash_of_other_costs_is_made_anew_at_the_next_log_in,
    log_ins_at_once_get_in_while_the_hash_is_made_anew,
    who_cannot_wait_for_a_password_is_told_to_come_back,
];

impl World {
    async fn sign_up_with(&self, password: &str) -> Answer {
        let body = json!({ "username": "kwame", "email": "kwame@example.com", "password": password });
        self.request("POST", "/accounts").json(&body).send().await
    }

    async fn change(&self, person: &Person, change: Value) -> Answer {
        self.request("PUT", &format!("/accounts/{}", person.number)).key(&person.key).json(&change).send().await
    }

    async fn hash_of(&self, person: &Person) -> String {
        let mut tx = self.app.db.read().await.unwrap();
        let find = tx.query("select password_hash from accounts where number = $1");
        find.bind(person.number.clone()).scalar().await.unwrap()
    }

    /// Keeps this person's password as an earlier version of the platform may have.
    async fn keep_weakly(&self, person: &Person) -> String {
        let argon2 = Argon2::new(Algorithm::Argon2id, Version::V0x13, Params::new(8, 1, 1, None).unwrap());
        let hash = argon2.hash_password(PASSWORD.as_bytes()).unwrap().to_string();
        let mut tx = self.app.db.begin().await.unwrap();
        let update = tx.query("update accounts set password_hash = $1 where number = $2");
        assert_eq!(update.bind(hash.clone()).bind(person.number.clone()).execute().await.unwrap(), 1);
        tx.commit().await.unwrap();
        hash
    }
}

fn assert_refused(answer: &Answer, detail: &str) {
    assert_eq!((answer.status, answer.complaints()), (400, vec!["password".to_owned()]), "{}", answer.body);
    assert_eq!(answer.body["fields"][0]["detail"], detail);
}

async fn a_password_that_many_have_is_refused_wherever_one_is_set(world: World) {
    let ama = world.person("ama").await;
    let (reset, code) = world.code_for("/resets", "ama@example.com", 1).await;

    for common in ["password1", "PassWord1", "123456789", "Qwertyuiop", "ILOVEYOU"] {
        let refusals = [
            world.sign_up_with(common).await,
            world.change(&ama, json!({ "password": common })).await,
            world.answer(&reset, json!({ "code": code, "password": common })).await,
        ];
        for refused in &refusals {
            assert_refused(refused, "is among the most common passwords: choose another one");
        }
        let by_command = setup::create_account(&world.app, "esi", "esi@example.com", common, Scope::Customer).await;
        assert!(by_command.unwrap_err().to_string().contains("most common"));
    }

    assert!(world.sign_in("ama", PASSWORD).await.is_ok(), "nothing was changed");
    assert_eq!(world.sign_up_with("password1 and more").await.status, 201);
}

async fn nobody_has_their_own_name_for_a_password(world: World) {
    let ama = world.person("ama.mensah").await;
    let own = "must not be the account's own username or e-mail address: choose another one";

    assert_refused(&world.sign_up_with("Kwame@Example.com").await, own);
    for password in ["AMA.mensah", "ama.mensah@example.com"] {
        assert_refused(&world.change(&ama, json!({ "password": password })).await, own);
    }
    let both = json!({ "username": "Ama.Owusu", "password": "ama.OWUSU" });
    assert_refused(&world.change(&ama, both).await, own);
    let renamed = json!({ "username": "ama.owusu", "password": "ama.mensah" });
    assert_eq!(world.change(&ama, renamed).await.status, 200, "it is her name no more");
}

async fn a_refused_password_uses_up_no_reset_but_a_try(world: World) {
    let ama = world.person("ama.mensah").await;
    let (reset, code) = world.code_for("/resets", "ama.mensah@example.com", 1).await;

    for _ in 0..4 {
        let refused = world.answer(&reset, json!({ "code": code, "password": "ama.mensah" })).await;
        assert_eq!((refused.status, refused.complaints()), (400, vec!["password".to_owned()]));
    }

    let changed = world.answer(&reset, json!({ "code": code, "password": "a third horse" })).await;
    assert_eq!(changed.status, 200);
    assert!(world.sign_in(&ama.username, "a third horse").await.is_ok());
    // That the digits are right is told by the refusal, too.
    let (reset, code) = world.code_for("/resets", "ama.mensah@example.com", 2).await;
    for status in [400, 400, 400, 400, 400, 409] {
        let refused = world.answer(&reset, json!({ "code": code, "password": "ama.mensah" })).await;
        assert_eq!(refused.status, status);
    }
}

async fn a_hash_of_other_costs_is_made_anew_at_the_next_log_in(world: World) {
    let ama = world.person("ama").await;
    let weak = world.keep_weakly(&ama).await;

    assert!(world.sign_in("ama", "a wrong one").await.is_err());
    assert_eq!(world.hash_of(&ama).await, weak, "nobody knew the password");
    let session = world.sign_in("ama", PASSWORD).await.unwrap();

    let strong = world.hash_of(&ama).await;
    assert!(strong.starts_with("$argon2id$v=19$m=19456,t=2,p=1$"), "{strong}");
    assert!(world.client(&session.key).session_active_get().send().await.is_ok());
    assert!(world.client(&ama.key).session_active_get().send().await.is_ok(), "the password is the same");
    assert!(world.sign_in("ama", PASSWORD).await.is_ok());
    assert_eq!(world.hash_of(&ama).await, strong, "once is enough");
}

async fn log_ins_at_once_get_in_while_the_hash_is_made_anew(world: World) {
    let ama = world.person("ama").await;
    world.keep_weakly(&ama).await;

    let sessions = join_all((0..6).map(|_| world.sign_in("ama", PASSWORD))).await;

    assert!(sessions.iter().all(Result::is_ok), "{sessions:?}");
    assert!(world.hash_of(&ama).await.contains("m=19456"));
}

async fn who_cannot_wait_for_a_password_is_told_to_come_back(world: World) {
    world.person("ama").await;
    let mut app = App::open(&world.database_url, world.app.settings.clone(), log::silent()).await.unwrap();
    // No hash can run here, so nobody may wait for one.
    Arc::get_mut(&mut app).unwrap().passwords = Passwords::new(0);
    let platform = Platform::start(app, ANYWHERE).unwrap();
    let sign_in = async |name: &str| {
        let body = json!({ "identification": name, "password": PASSWORD });
        let answer = world.request("POST", "/sessions").at(platform.address()).json(&body).send();
        // Or whoever is let in waits for ever.
        timeout(Duration::from_secs(30), answer).await.expect("an answer")
    };

    let refused = sign_in("ama").await;
    let nobody = sign_in("nobody").await;
    let time = world.request("GET", "/time").at(platform.address()).send().await;

    assert_eq!((refused.status, refused.code()), (503, "server.unavailable"));
    assert!(refused.header("retry-after").parse::<u32>().is_ok(), "{:?}", refused.headers);
    assert_eq!(refusal(&nobody), (503, "server.unavailable"), "a name that nobody has costs the same work");
    assert_eq!(time.status, 200, "only who needs a hash has to wait for one");
    platform.stop().await.unwrap();
    assert!(world.sign_in("ama", PASSWORD).await.is_ok(), "and no other server has to");
}
