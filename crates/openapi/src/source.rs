//! Reading of a document from its files: YAML or JSON, and the files that it refers to.
//!
//! A `$ref` may point into another file. Such a file is copied into the document below [`EXTERNAL_FILES`], and the reference then
//! points there. A reference to the `$id` or an anchor of a schema becomes a pointer to it. So the rest of the crate has a single
//! document.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::{Component, Path, PathBuf};

use anyhow::{Context, anyhow, bail};
use percent_encoding::percent_decode_str;
use serde_json::{Map, Value};

use crate::METHODS;
use crate::resolver::{escape, has_names, is_data, reference, unescape};
use crate::yaml;

/// The key of the document that contains the other files, by their paths relative to the document's folder.
pub const EXTERNAL_FILES: &str = "externalFiles";

/// The files that represent a folder, the first that exists.
const FILES_OF_FOLDER: [&str; 6] = ["openapi.yaml", "openapi.yml", "openapi.json", "index.yaml", "index.yml", "index.json"];

/// Maximum number of references that are inlined one after the other at the same place. More are circular, and each can enlarge the
/// document.
const MAX_INLINED_CHAIN: usize = 16;

/// A document that was read from files.
#[derive(Debug)]
pub struct Source {
    /// The document, with all other files in it.
    pub document: Value,
    /// Files that could not be read, and repeated keys, one sentence each.
    pub warnings: Vec<String>,
    /// All files, the document itself first.
    pub files: Vec<PathBuf>,
}

/// Reads a document, and all files that it refers to. A folder stands for the document in it.
///
/// # Errors
/// If the file can't be read or parsed. Other files only cause warnings.
pub fn read(path: &Path) -> anyhow::Result<Source> {
    let file = file_of(path)?;
    let mut warnings = Vec::new();
    let document = parse_file(&file, &mut warnings)?;
    let folder = file.parent().unwrap_or(Path::new("")).to_owned();
    let mut bundler = Bundler {
        root: normalize(&file),
        folder,
        pending: Vec::new(),
        files: BTreeMap::new(),
        identifiers: HashMap::new(),
        warnings: Vec::new(),
    };
    let mut document = document;
    bundler.collect_identifiers(&document, false, "", &mut String::new());
    bundler.rewrite(&mut document, &file, None, false);
    let mut external = Map::new();
    while let Some((file, key)) = bundler.pending.pop() {
        match parse_file(&file, &mut warnings) {
            Ok(mut content) => {
                let pointer = pointer_of(Some(&key));
                bundler.collect_identifiers(&content, false, &pointer, &mut pointer.clone());
                bundler.rewrite(&mut content, &file, Some(&key), false);
                external.insert(key, content);
            }
            Err(error) => bundler.warnings.push(format!("{key} is left out: {error:#}")),
        }
    }
    if let Some(document) = document.as_object_mut().filter(|_| !external.is_empty()) {
        document.insert(EXTERNAL_FILES.to_owned(), external.into());
    }
    if !bundler.identifiers.is_empty() {
        resolve_identifiers(&mut document, false, &bundler.identifiers, &mut String::new());
    }
    inline_maps(&mut document);
    let mut files = vec![file];
    files.extend(bundler.files.into_keys());
    warnings.extend(bundler.warnings);
    Ok(Source { document, warnings, files })
}

/// Returns the file of a path: the path itself, or the document in a folder.
fn file_of(path: &Path) -> anyhow::Result<PathBuf> {
    if !path.is_dir() {
        return Ok(path.to_owned());
    }
    let file = FILES_OF_FOLDER.iter().map(|name| path.join(name)).find(|file| file.is_file());
    file.with_context(|| format!("the folder {} has none of {}", path.display(), FILES_OF_FOLDER.join(", ")))
}

/// Parses a file. Adds a warning for each repeated key.
fn parse_file(file: &Path, warnings: &mut Vec<String>) -> anyhow::Result<Value> {
    let bytes = fs::read(file).with_context(|| format!("cannot read {}", file.display()))?;
    let text = String::from_utf8(bytes).map_err(|error| {
        let line = 1 + error.as_bytes()[..error.utf8_error().valid_up_to()].iter().filter(|byte| **byte == b'\n').count();
        anyhow!("{} is not UTF-8 at line {line}: save it in this encoding", file.display())
    })?;
    if text.trim().is_empty() {
        bail!("{} is empty", file.display());
    }
    let (value, repeated) = yaml::parse(&text).with_context(|| format!("{} can't be parsed as YAML or JSON", file.display()))?;
    let warning = |pointer| format!("{pointer} is in {} more than once: only the last one is used", file.display());
    warnings.extend(repeated.into_iter().map(warning));
    Ok(value)
}

/// Collector of the files that a document refers to.
struct Bundler {
    /// The document's file.
    root: PathBuf,
    /// The document's folder.
    folder: PathBuf,
    /// Files to read, with their keys.
    pending: Vec<(PathBuf, String)>,
    /// The key of each file that was found.
    files: BTreeMap<PathBuf, String>,
    identifiers: Identifiers,
    warnings: Vec<String>,
}

/// The pointers of the schemas with each `$id`, `$anchor` and `$dynamicAnchor`. An anchor has the form of a rewritten reference to it.
type Identifiers = HashMap<String, Vec<String>>;

impl Bundler {
    /// Collects the identifiers of the schemas in the value at `pointer`. `file` is the pointer of the value's file.
    fn collect_identifiers(&mut self, value: &Value, is_map: bool, file: &str, pointer: &mut String) {
        if let (Value::Object(object), false) = (value, is_map) {
            let text = |keyword: &str| object.get(keyword).and_then(Value::as_str);
            let id = text("$id").map(|id| id.trim_end_matches('#').to_owned());
            let anchors = ["$anchor", "$dynamicAnchor"].into_iter().filter_map(text).map(|name| reference_to(file, name));
            for identifier in anchors.chain(id) {
                self.identifiers.entry(identifier).or_default().push(pointer.clone());
            }
        }
        match value {
            Value::Object(object) => {
                for (name, value) in object.iter().filter(|(name, _)| !is_data(name, is_map)) {
                    let names = has_names(name, is_map);
                    within(pointer, &escape(name), |pointer| self.collect_identifiers(value, names, file, pointer));
                }
            }
            Value::Array(items) => {
                for (index, item) in items.iter().enumerate() {
                    within(pointer, &index.to_string(), |pointer| self.collect_identifiers(item, false, file, pointer));
                }
            }
            _ => {}
        }
    }

    /// Rewrites the references in a file to pointers in the document. `key` is the file's key, or `None` for the document itself.
    /// `is_map` is true if the keys of the value are names.
    fn rewrite(&mut self, value: &mut Value, file: &Path, key: Option<&str>, is_map: bool) {
        match value {
            Value::Object(object) => {
                if !is_map && let Some(reference) = object.shift_remove("$dynamicRef") {
                    object.entry("$ref").or_insert(reference);
                }
                // Also instead of a map: `schemas: { $ref: schemas.yaml }`.
                if let Some(Value::String(reference)) = object.get_mut("$ref") {
                    *reference = self.pointer(reference, file, key);
                }
                if let Some(Value::Object(mapping)) = object.get_mut("mapping").filter(|_| !is_map) {
                    // A mapping has names of schemas or references.
                    let targets = mapping.values_mut().filter_map(|target| match target {
                        Value::String(target) if target.contains(['#', '/', '.']) => Some(target),
                        _ => None,
                    });
                    targets.for_each(|target| *target = self.pointer(target, file, key));
                }
                for (name, value) in object.iter_mut().filter(|(name, _)| !is_data(name, is_map)) {
                    self.rewrite(value, file, key, has_names(name, is_map));
                }
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.rewrite(item, file, key, false)),
            _ => {}
        }
    }

    /// Returns the pointer in the document for a reference in a file.
    fn pointer(&mut self, reference: &str, file: &Path, key: Option<&str>) -> String {
        let (target, fragment) = reference.split_once('#').unwrap_or((reference, ""));
        if target.contains("://") {
            return reference.to_owned();
        }
        let key = if target.is_empty() {
            key.map(str::to_owned)
        } else {
            let decoded = percent_decode_str(target).decode_utf8_lossy().into_owned();
            let path = file.parent().unwrap_or(Path::new("")).join(decoded);
            if self.identifiers.contains_key(target) && !path.exists() {
                return reference.to_owned();
            }
            self.key_of(&path)
        };
        reference_to(&pointer_of(key.as_deref()), fragment)
    }

    /// Returns the key of a file, `None` for the document itself. A file that is new is read later.
    fn key_of(&mut self, path: &Path) -> Option<String> {
        let file = normalize(&file_of(path).unwrap_or_else(|_| path.to_owned()));
        if file == self.root {
            return None;
        }
        if let Some(key) = self.files.get(&file) {
            return Some(key.clone());
        }
        let relative = file.strip_prefix(normalize(&self.folder)).unwrap_or(&file);
        let key = relative.display().to_string();
        self.files.insert(file.clone(), key.clone());
        self.pending.push((file, key.clone()));
        Some(key)
    }
}

/// Returns the pointer of the file with a key, which is empty for the document itself.
fn pointer_of(key: Option<&str>) -> String {
    key.map_or_else(String::new, |key| format!("/{EXTERNAL_FILES}/{}", escape(key).replace('%', "%25")))
}

/// Returns a pointer in the document as the author knows it: one in another file as `schemas/pet.yaml#/Pet`.
pub fn readable(pointer: &str) -> String {
    let external = pointer.strip_prefix('/').and_then(|pointer| pointer.strip_prefix(EXTERNAL_FILES)?.strip_prefix('/'));
    let Some(external) = external else { return pointer.to_owned() };
    let (key, pointer) = external.split_at(external.find(['/', '#']).unwrap_or(external.len()));
    let separator = if pointer.starts_with('/') { "#" } else { "" };
    format!("{}{separator}{pointer}", unescape(key).replace("%25", "%"))
}

/// Returns the reference to a fragment, which is a pointer or an anchor, of the file at a pointer.
fn reference_to(file: &str, fragment: &str) -> String {
    let is_pointer = fragment.is_empty() || fragment.starts_with('/');
    let separator = if is_pointer || file.is_empty() { "" } else { "#" };
    format!("#{file}{separator}{fragment}")
}

/// Calls a function with the pointer of a part of the value at `pointer`. References are percent-encoded.
fn within(pointer: &mut String, step: &str, visit: impl FnOnce(&mut String)) {
    let length = pointer.len();
    pointer.push('/');
    pointer.push_str(&step.replace('%', "%25"));
    visit(pointer);
    pointer.truncate(length);
}

/// Replaces the references to identifiers in the value at `pointer` by references to pointers.
fn resolve_identifiers(value: &mut Value, is_map: bool, identifiers: &Identifiers, pointer: &mut String) {
    match value {
        Value::Object(object) => {
            if let Some(Value::String(reference)) = object.get_mut("$ref")
                && let Some(target) = identified(reference, identifiers, pointer)
            {
                *reference = format!("#{target}");
            }
            for (name, value) in object.iter_mut().filter(|(name, _)| !is_data(name, is_map)) {
                let names = has_names(name, is_map);
                within(pointer, &escape(name), |pointer| resolve_identifiers(value, names, identifiers, pointer));
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter_mut().enumerate() {
                within(pointer, &index.to_string(), |pointer| resolve_identifiers(item, false, identifiers, pointer));
            }
        }
        _ => {}
    }
}

/// Returns the pointer that a reference to an identifier means. Of several schemas with the same identifier, it is the innermost
/// around `pointer`, or else the first.
fn identified(reference: &str, identifiers: &Identifiers, pointer: &str) -> Option<String> {
    let is_within =
        |inner: &str, outer: &str| inner.strip_prefix(outer).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    let find = |identifier: &str| {
        let pointers = identifiers.get(identifier)?;
        pointers.iter().filter(|outer| is_within(pointer, outer)).max_by_key(|outer| outer.len()).or(pointers.first())
    };
    if let Some(found) = find(reference) {
        return Some(found.clone());
    }
    let (id, fragment) = reference.split_once('#')?;
    let schema = find(id)?;
    if fragment.is_empty() || fragment.starts_with('/') {
        return Some(format!("{schema}{fragment}"));
    }
    let anchors = identifiers.iter().filter(|(name, _)| name.rsplit_once('#').is_some_and(|(_, anchor)| anchor == fragment));
    anchors.flat_map(|(_, pointers)| pointers).find(|anchor| is_within(anchor, schema)).cloned()
}

/// Removes `.` and `..` from a path, so that each file has one path.
fn normalize(path: &Path) -> PathBuf {
    let mut normalized = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir if normalized.file_name().is_some() => drop(normalized.pop()),
            other => normalized.push(other),
        }
    }
    normalized
}

/// Replaces the references instead of a map, such as `schemas: { $ref: schemas.yaml }` or `properties: { $ref: '#/x-common' }`, by
/// their targets, and so operations: `get: { $ref: list.yaml }`. Pointers to `#/components/schemas` then lead somewhere.
fn inline_maps(document: &mut Value) {
    let members = |document: &Value, pointer: &str| {
        let names = document.pointer(pointer).and_then(Value::as_object).into_iter().flat_map(Map::keys);
        names.map(|name| format!("{pointer}/{}", escape(name))).collect::<Vec<_>>()
    };
    inline(document, "/components");
    // The target of a reference may contain others.
    for _ in 0..MAX_INLINED_CHAIN {
        let mut found = Vec::new();
        find_references_to_maps(document, false, "", &mut found);
        found.iter().for_each(|pointer| inline(document, pointer));
        if found.is_empty() {
            break;
        }
    }
    // A path may be a file.
    let paths = members(document, "/paths").into_iter().chain(members(document, &format!("/{EXTERNAL_FILES}")));
    for path in paths.collect::<Vec<_>>() {
        METHODS.iter().for_each(|method| inline(document, &format!("{path}/{method}")));
    }
}

/// Collects the pointers of the references instead of a map in the value at `pointer`.
fn find_references_to_maps(value: &Value, is_map: bool, pointer: &str, found: &mut Vec<String>) {
    match value {
        Value::Object(_) if is_map && reference(value).is_some() => found.push(pointer.to_owned()),
        Value::Object(object) => {
            for (name, value) in object.iter().filter(|(name, _)| !is_data(name, is_map)) {
                find_references_to_maps(value, has_names(name, is_map), &format!("{pointer}/{}", escape(name)), found);
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                find_references_to_maps(item, false, &format!("{pointer}/{index}"), found);
            }
        }
        _ => {}
    }
}

/// Replaces the value at a pointer by its target as long as it is a reference.
fn inline(document: &mut Value, pointer: &str) {
    for _ in 0..MAX_INLINED_CHAIN {
        let target = document.pointer(pointer).and_then(reference).and_then(|target| target.strip_prefix('#'));
        let Some(target) = target.map(|target| percent_decode_str(target).decode_utf8_lossy().into_owned()) else { return };
        let (Some(target), Some(section)) = (document.pointer(&target).cloned(), document.pointer_mut(pointer)) else {
            return;
        };
        *section = target;
    }
}

/// Returns the version of a document's format, such as `3.0.3`. An unquoted version is a number in YAML. A document without a version
/// is OpenAPI 3.0.
///
/// # Errors
/// If the document is no OpenAPI 3 document. The text contains the command that converts it, if there is one.
pub fn version(document: &Value) -> anyhow::Result<String> {
    let text = |version: &Value| version.as_str().map_or_else(|| version.to_string(), str::to_owned);
    if let Some(version) = document.get("swagger") {
        bail!(
            "it is Swagger {}, not OpenAPI 3; convert it first: npx --yes swagger2openapi --patch FILE --outfile openapi.yaml",
            text(version)
        );
    }
    match document.get("openapi").map(text) {
        Some(version) if version.split('.').next() != Some("3") => bail!("it is OpenAPI {version}, not OpenAPI 3"),
        version => Ok(version.unwrap_or_else(|| "3.0".to_owned())),
    }
}
