//! The dependency order of the features: each may use those before it only.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// The features, lowest first. Those on one line may use each other.
const LAYERS: &[&[&str]] = &[
    &["outbox"],
    &["accounts"],
    &["sessions", "integrations", "defaults", "lookups", "codes"],
    &["hosts", "categories", "media", "zones"],
    &["regions"],
    &["preferences"],
    &["venues", "events", "sections", "tokens", "advertisements", "review"],
    &["modifiers"],
    &["tickets"],
    &["transfers"],
    &["orders", "payments", "ledger"],
    &["admissions"],
    &["erasure"],
    &["reports", "audit"],
    &["jobs", "setup", "demo", "mock", "qa"],
];

/// Modules that may not use any feature.
const FOUNDATIONS: [&str; 6] = ["base", "db", "http", "auth", "contract", "journal"];

#[test]
fn features_depend_on_lower_layers_only() {
    let mut wrong = Vec::new();
    for (height, layer) in LAYERS.iter().enumerate() {
        let above: BTreeSet<&str> = LAYERS[height + 1..].iter().copied().flatten().copied().collect();
        for feature in *layer {
            wrong.extend(known_by(feature).into_iter().filter(|(_, known)| above.contains(known.as_str())));
        }
    }
    let features: BTreeSet<&str> = LAYERS.iter().copied().flatten().copied().collect();
    for foundation in FOUNDATIONS {
        wrong.extend(known_by(foundation).into_iter().filter(|(_, known)| features.contains(known.as_str())));
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn every_feature_has_a_layer() {
    let placed: BTreeSet<&str> = LAYERS.iter().copied().flatten().chain(&FOUNDATIONS).copied().collect();
    for folder in fs::read_dir("src").unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_dir()) {
        let name = folder.file_name().unwrap().to_str().unwrap().to_owned();
        assert!(placed.contains(name.as_str()), "{name} is in no layer");
    }
}

/// Returns the modules that each file of a module uses, as `(file, module)`.
fn known_by(module: &str) -> Vec<(PathBuf, String)> {
    let folder = Path::new("src").join(module);
    let mut files = Vec::new();
    if folder.is_dir() {
        collect(&folder, &mut files)
    } else {
        files.push(folder.with_extension("rs"))
    }
    let path = regex::Regex::new(r"crate::(?:\{([^}]*)\}|(\w+))").unwrap();
    let mut known = Vec::new();
    for file in files {
        let text = fs::read_to_string(&file).unwrap();
        for names in path.captures_iter(&text) {
            let names = names.get(1).or_else(|| names.get(2)).unwrap().as_str();
            let first = |name: &str| name.trim().split("::").next().unwrap().to_owned();
            known.extend(names.split(',').map(|name| (file.clone(), first(name))));
        }
    }
    known
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    for path in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        if path.is_dir() { collect(&path, files) } else { files.push(path) }
    }
}
