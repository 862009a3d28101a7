//! Generates the client from the contract.

#![expect(clippy::print_stdout, reason = "cargo reads the output of a build script")]

use std::path::PathBuf;
use std::{env, fs};

use progenitor_impl::{GenerationSettings, Generator, InterfaceStyle, TagStyle};
use serde_json::Value;

mod code;
mod document;

fn main() {
    let source = "openapi.yaml";
    println!("cargo::rerun-if-changed={source}");
    let text = fs::read_to_string(source).expect("openapi.yaml can be read");
    let mut document: Value = serde_yaml_ng::from_str(&text).expect("openapi.yaml is YAML");
    document::simplify(&mut document);
    let folder = PathBuf::from(env::var("OUT_DIR").expect("cargo names a folder for what is built"));
    let simplified = folder.join("document.json");
    fs::write(&simplified, document.to_string()).expect("the build folder can be written");
    println!("cargo::metadata=document={}", simplified.display());
    let mut settings = GenerationSettings::default();
    settings.with_interface(InterfaceStyle::Builder).with_tag(TagStyle::Merged).with_derive("PartialEq");
    // Every client contains a retry policy.
    settings.with_inner_type(syn::parse_quote!(crate::RetryPolicy));
    let openapi = serde_json::from_value(document.clone()).expect("openapi.yaml is OpenAPI 3.0");
    let tokens = Generator::new(&settings).generate_tokens(&openapi).expect("the contract can be generated from");
    let mut file: syn::File = syn::parse2(tokens).expect("what is generated is Rust");
    code::complete(&mut file, &document);
    fs::write(folder.join("generated.rs"), prettyplease::unparse(&file)).expect("the build folder can be written");
}
