//! Converts the contract to JSON at build time, so that the server doesn't parse YAML at its start.

use std::path::Path;
use std::{env, fs};

fn main() {
    let source = "spec/openapi.yaml";
    println!("cargo::rerun-if-changed={source}");
    println!("cargo::rerun-if-changed=migrations");
    let text = fs::read_to_string(source).expect("spec/openapi.yaml can be read");
    let document: serde_json::Value = serde_yaml_ng::from_str(&text).expect("spec/openapi.yaml is YAML");
    let folder = env::var("OUT_DIR").expect("cargo names a folder for what is built");
    fs::write(Path::new(&folder).join("contract.json"), document.to_string()).expect("the build folder can be written");
}
