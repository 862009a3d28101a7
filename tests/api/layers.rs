//! The dependency rules of `src/`, checked on the text of every module:
//!
//! - The kernel names no feature, and neither the state nor the command line of the application.
//! - The database layer names no other module of the kernel, except for the types and private files.
//! - A feature depends on the kernel and on the groups of features before its own.
//! - Features inside a group form no new dependency cycle.
//! - Services use the database through the unit of work of their context.
//! - Statements name their columns.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use regex::Regex;

/// The groups of features, lowest first.
const GROUPS: [&str; 5] = ["identity", "catalog", "sales", "gate", "insight"];

/// The modules beside `kernel` and `features`, which join both.
const APPLICATION: [&str; 18] = [
    "admin_listener",
    "backup",
    "bootstrap",
    "cli",
    "clock_watch",
    "config",
    "contract",
    "demo",
    "error_catalogue",
    "invariants",
    "open_page",
    "provisioning",
    "readiness",
    "retention",
    "routes",
    "server",
    "state",
    "window_limits",
];

/// The modules of the kernel that the database layer names.
const DATABASE_DEPENDENCIES: [&str; 3] = ["db", "private_files", "types"];

/// Features that depend on each other because their rules change the same rows. Every other cycle is an error.
const CYCLES: [&[&str]; 2] =
    [&["advertisements", "events", "review", "sections", "tokens", "venues"], &["ledger", "orders", "payments"]];

/// The files whose queries are shared by several requests and so belong to none of them.
const SHARED_QUERIES: [&str; 6] = [
    "features/catalog/events/cached_reads.rs",
    "features/catalog/events/lists.rs",
    "features/catalog/events/published_search.rs",
    "features/identity/accounts/lists.rs",
    "features/sales/orders/order_reads.rs",
    "features/sales/tickets/event_lists.rs",
];

/// A dependency of a file: the path after `crate::`, for example `["features", "sales", "orders"]`.
type Dependency = Vec<String>;

#[test]
fn modules_keep_the_dependency_rules() {
    let violations = violations(&sources());

    assert!(violations.is_empty(), "{violations:#?}");
}

/// A statement with `*` or without the names of its columns fails on running servers when a newer version adds a column.
#[test]
fn statements_name_their_columns() {
    let unnamed = Regex::new(
        r#"(?i)(\bselect|\breturning|,) +([a-z_]+\.)?\*[ ,"]|"([a-z_]+\.)?\*(,| from\b|")|\binsert into [a-z_]+ +(values|select)\b"#,
    );
    let unnamed = unnamed.unwrap();
    let is_sql = |file: &str| file.starts_with("features") || file.starts_with("kernel") || !file.contains('/');

    for bad in
        ["select * from events", "returning *\"", "\"e.*\"", "\"* from events\"", "insert into events values (1)", "a, t.* from"]
    {
        assert!(unnamed.is_match(bad), "{bad}");
    }
    for good in ["select count(*) from events", "a * b", "returning id", "insert into events (id) values ($1)"] {
        assert!(!unnamed.is_match(good), "{good}");
    }
    for (file, text) in sources().iter().filter(|(file, _)| is_sql(file)) {
        let code = text.lines().filter(|line| !line.trim_start().starts_with("//")).filter(|line| unnamed.is_match(line));
        let found: Vec<&str> = code.filter(|line| !["\"*\"", "\"* a"].iter().any(|other| line.contains(other))).collect();
        assert!(found.is_empty(), "{file}: {found:?}");
    }
}

#[test]
fn every_module_is_checked() {
    let sources = sources();
    let top: BTreeSet<&str> = sources.keys().map(|file| file.split(['/', '.']).next().unwrap()).collect();
    let known = APPLICATION.into_iter().chain(["features", "kernel", "lib", "main"]);
    assert_eq!(top, known.collect());
    let groups = sources.keys().filter_map(|file| file.strip_prefix("features/")?.split_once('/')).map(|(group, _)| group);
    assert_eq!(groups.collect::<BTreeSet<_>>(), BTreeSet::from(GROUPS));
}

#[test]
fn planted_imports_are_found() {
    let planted = [
        ("kernel/db/pool.rs", "use crate::features::sales::orders;", "kernel/db/pool.rs names features::sales::orders"),
        ("kernel/jobs/mod.rs", "use crate::{state::App, config};", "kernel/jobs/mod.rs names state::App"),
        ("kernel/db/pool.rs", "use crate::kernel::{audit, types};", "kernel/db/pool.rs names kernel::audit"),
        ("features/catalog/zones/service.rs", "crate::features::sales::tickets::find()", "catalog depends on sales"),
        ("features/sales/tickets/service.rs", "use crate::features::sales::orders;", "cycle: "),
        ("features/sales/tickets/service.rs", "app.db.read()", "features/sales/tickets/service.rs uses the database"),
    ];
    for (file, line, expected) in planted {
        let mut sources = sources();
        sources.get_mut(file).unwrap().push_str(line);

        let found = violations(&sources).join("\n");

        assert!(found.contains(expected), "{file}: {line} was not found, but: {found}");
    }
}

/// Returns the text of every file below `src`, by its path.
fn sources() -> BTreeMap<String, String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let (mut folders, mut sources) = (vec![root.clone()], BTreeMap::new());
    while let Some(folder) = folders.pop() {
        for path in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let name = path.strip_prefix(&root).unwrap().to_str().unwrap().to_owned();
                sources.insert(name, fs::read_to_string(path).unwrap());
            }
        }
    }
    sources
}

/// Returns every violation of the rules, in words.
fn violations(sources: &BTreeMap<String, String>) -> Vec<String> {
    let mut violations = Vec::new();
    let is_database_dependency =
        |dependency: &Dependency| dependency.get(1).is_some_and(|name| DATABASE_DEPENDENCIES.contains(&name.as_str()));
    let mut graph: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (file, text) in sources {
        let own: Vec<&str> = file.split('/').collect();
        if own[0] == "features" && !SHARED_QUERIES.contains(&file.as_str()) && text.contains(".db.") {
            violations.push(format!("{file} uses the database without a unit of work"));
        }
        let code: String =
            text.lines().filter(|line| !line.trim_start().starts_with("//")).flat_map(|line| [line, "\n"]).collect();
        for dependency in dependencies(&code) {
            let (first, path) = (dependency[0].as_str(), dependency.join("::"));
            if own[0] == "kernel" && (first == "features" || APPLICATION.contains(&first)) {
                violations.push(format!("{file} names {path}"));
            }
            if file.starts_with("kernel/db/") && first == "kernel" && !is_database_dependency(&dependency) {
                violations.push(format!("{file} names {path}"));
            }
            if own[0] == "features" && own.len() > 2 && first == "features" && dependency.len() > 2 {
                let height = |group: &str| GROUPS.iter().position(|known| *known == group);
                if height(own[1]) < height(&dependency[1]) {
                    violations.push(format!("{file}: {} depends on {}", own[1], dependency[1]));
                }
                graph.entry(own[2].to_owned()).or_default().insert(dependency[2].clone());
            }
        }
    }
    violations.extend(cycles(&graph));
    violations
}

/// Returns each pair of features that reach one another and are in no known cycle.
fn cycles(graph: &BTreeMap<String, BTreeSet<String>>) -> Vec<String> {
    let reach = |start: &str| {
        let (mut reached, mut open) = (BTreeSet::new(), vec![start.to_owned()]);
        while let Some(feature) = open.pop() {
            for next in graph.get(&feature).into_iter().flatten() {
                if reached.insert(next.clone()) {
                    open.push(next.clone());
                }
            }
        }
        reached
    };
    let is_known = |one: &str, other: &str| CYCLES.iter().any(|cycle| cycle.contains(&one) && cycle.contains(&other));
    let mut cycles = Vec::new();
    for one in graph.keys() {
        let others = reach(one).into_iter().filter(|other| one < other && reach(other).contains(one) && !is_known(one, other));
        cycles.extend(others.map(|other| format!("cycle: {one} and {other}")));
    }
    cycles
}

/// Returns the paths after `crate::` in a text, one for each name in braces.
fn dependencies(text: &str) -> Vec<Dependency> {
    let path = regex::Regex::new(r"\bcrate::((?:\w+::)*)(\w+|\{[^}]*\})").unwrap();
    let mut dependencies = Vec::new();
    for found in path.captures_iter(text) {
        let prefix: Vec<String> = found[1].split("::").filter(|name| !name.is_empty()).map(str::to_owned).collect();
        for name in found[2].trim_matches(['{', '}']).split(',').map(str::trim).filter(|name| !name.is_empty()) {
            let names = name.split("::").map(|name| name.split(' ').next().unwrap_or_default().to_owned());
            dependencies.push(prefix.iter().cloned().chain(names).collect());
        }
    }
    dependencies
}
