//! Generates the commands from the contract, with progenitor's support for command lines.

use std::path::Path;
use std::{env, fs};

use progenitor_impl::{GenerationSettings, Generator, InterfaceStyle, TagStyle};
use quote::{ToTokens, quote};
use serde_json::Value;
use syn::visit_mut::{self, VisitMut};
use syn::{Block, Expr, ImplItem, ImplItemFn, Item, PathArguments, PathSegment, Stmt, parse_quote};

fn main() {
    // The client's build script has simplified the contract for progenitor.
    let source = env::var("DEP_BOXOFFICE_CLIENT_DOCUMENT").expect("the client's build script names the document");
    println!("cargo::rerun-if-changed={source}");
    println!("cargo::rerun-if-changed=build.rs");
    let text = fs::read_to_string(source).expect("the document can be read");
    let document: Value = serde_json::from_str(&text).expect("the document is JSON");
    let operations: Vec<_> = operations(&document).collect();

    // The same settings as the client's.
    let mut settings = GenerationSettings::default();
    settings.with_interface(InterfaceStyle::Builder).with_tag(TagStyle::Merged);
    let openapi = serde_json::from_value(document.clone()).expect("the document is OpenAPI 3.0");
    let tokens = Generator::new(&settings).cli(&openapi, "boxoffice_client").expect("commands can be generated");
    let mut file: syn::File = syn::parse2(tokens).expect("what is generated is Rust");
    for item in &mut file.items {
        let Item::Impl(implementation) = item else { continue };
        for item in &mut implementation.items {
            let ImplItem::Fn(function) = item else { continue };
            let name = function.sig.ident.to_string();
            for operation in &operations {
                if name == format!("cli_{}", operation.id) {
                    Corrections.visit_block_mut(&mut function.block);
                    add_lists(function, &operation.lists);
                }
                if name == format!("execute_{}", operation.id) {
                    Corrections.visit_block_mut(&mut function.block);
                    merge_body(&mut function.block, operation);
                }
            }
        }
    }
    let code = prettyplease::unparse(&file);
    let table = operations.iter().map(|Operation { id, tag, path_arguments, images, example, .. }| {
        let example = example.as_ref().map_or_else(|| quote!(None), |example| quote!(Some(#example)));
        quote!(Operation { id: #id, tag: #tag, path_arguments: &[#(#path_arguments),*], images: &[#(#images),*], example: #example })
    });
    let table = quote!(&[#(#table),*]);
    let folder = env::var("OUT_DIR").expect("cargo names a folder for what is built");
    fs::write(Path::new(&folder).join("generated.rs"), code).expect("the build folder can be written");
    fs::write(Path::new(&folder).join("operations.rs"), table.to_string()).expect("the build folder can be written");
}

/// An operation of the contract.
struct Operation {
    id: String,
    tag: String,
    /// The path's variables, in their order.
    path_arguments: Vec<String>,
    /// The options of the body's images.
    images: Vec<String>,
    /// An example of its body.
    example: Option<String>,
    /// The names of the body's properties.
    properties: Vec<String>,
    /// The properties that it may leave out but not clear.
    not_blank: Vec<String>,
    lists: Vec<List>,
}

/// A property of a body for which progenitor generates no argument.
struct List {
    name: String,
    description: String,
    is_required: bool,
    kind: ListKind,
}

#[derive(PartialEq)]
enum ListKind {
    /// A list of texts.
    Texts,
    /// An object that maps texts to whole numbers.
    Numbers,
    /// Anything else. It can only be in the JSON body.
    Other,
}

fn operations(document: &Value) -> impl Iterator<Item = Operation> {
    let paths = document["paths"].as_object().into_iter().flatten();
    let operations = paths.flat_map(|(path, item)| item.as_object().into_iter().flatten().map(move |(_, node)| (path, node)));
    operations.filter(|(_, node)| node.get("operationId").is_some()).map(|(path, node)| {
        let body = &node["requestBody"]["content"]["application/json"];
        let examples = body["examples"].as_object().and_then(|examples| examples.values().next());
        let schema = resolve(document, &body["schema"]);
        let not_blank = schema["x-not-blank"].as_array().into_iter().flatten();
        let example = examples.map(|example| serde_json::to_string(&resolve(document, example)["value"]).expect("it is JSON"));
        Operation {
            id: node["operationId"].as_str().expect("an operationId is a text").to_owned(),
            tag: node["tags"][0].as_str().unwrap_or_default().to_owned(),
            path_arguments: path
                .split('/')
                .filter_map(|part| Some(part.strip_prefix('{')?.strip_suffix('}')?.to_owned()))
                .collect(),
            images: properties(schema)
                .filter(|(_, property)| property["format"] == "image")
                .map(|(name, _)| option_name(name))
                .collect(),
            example: example.filter(|example| example.len() < 1000),
            properties: properties(schema).map(|(name, _)| name.clone()).collect(),
            not_blank: not_blank.filter_map(Value::as_str).map(str::to_owned).collect(),
            lists: lists(schema),
        }
    })
}

fn properties(schema: &Value) -> impl Iterator<Item = (&String, &Value)> {
    schema["properties"].as_object().into_iter().flatten()
}

fn lists(schema: &Value) -> Vec<List> {
    let list = |(name, property): (&String, &Value)| {
        let kind = match property["type"].as_str()? {
            "array" if property["items"]["type"] == "string" => ListKind::Texts,
            "object" if property["additionalProperties"]["type"] == "integer" => ListKind::Numbers,
            "array" | "object" => ListKind::Other,
            _ => return None,
        };
        let is_required = schema["required"].as_array().is_some_and(|required| required.iter().any(|required| required == name));
        let description = property["description"].as_str().unwrap_or_default().to_owned();
        Some(List { name: name.clone(), description, is_required, kind })
    };
    properties(schema).filter_map(list).collect()
}

fn resolve<'a>(document: &'a Value, node: &'a Value) -> &'a Value {
    let target = node["$ref"].as_str().and_then(|reference| reference.strip_prefix('#'));
    target.map_or(node, |target| document.pointer(target).expect("references lead to something"))
}

/// Corrects what progenitor leaves unfinished.
struct Corrections;

impl VisitMut for Corrections {
    fn visit_expr_mut(&mut self, expression: &mut Expr) {
        // Arguments without an effect: a template of the body, and a condition whose result (304) the client returns as an error.
        if let Expr::MethodCall(call) = expression
            && call.method == "arg"
            && call.args.iter().any(|argument| is_about(argument, "json-body-template") || is_about(argument, "if-none-match"))
        {
            *expression = (*call.receiver).clone();
            self.visit_expr_mut(expression);
            return;
        }
        // The value `""` of a list, to which the client gives another name than progenitor.
        if let Expr::MethodCall(call) = expression
            && call.method == "to_string"
            && let Expr::Path(value) = &*call.receiver
            && value.path.segments.last().is_some_and(|segment| segment.ident == "X")
        {
            *expression = parse_quote!(::std::string::String::new());
            return;
        }
        // Responses that are not JSON.
        if let Expr::Macro(invocation) = expression
            && invocation.mac.path.is_ident("todo")
        {
            *expression = parse_quote!(crate::output::write_bytes(r).await);
        }
        visit_mut::visit_expr_mut(self, expression);
    }

    fn visit_block_mut(&mut self, block: &mut Block) {
        block.stmts.retain(|statement| !matches!(statement, Stmt::Expr(Expr::If(_), _)) || !is_about(statement, "if-none-match"));
        for statement in &mut block.stmts {
            // A macro at the end of a block is a statement.
            if let Stmt::Macro(invocation) = statement
                && invocation.mac.path.is_ident("todo")
            {
                *statement = Stmt::Expr(parse_quote!(crate::output::write_bytes(r).await), None);
            }
        }
        visit_mut::visit_block_mut(self, block);
    }
}

/// Returns whether code contains this text as a literal.
fn is_about(code: &impl ToTokens, name: &str) -> bool {
    code.to_token_stream().to_string().contains(&format!("\"{name}\""))
}

/// Adds an argument for each list of the body.
fn add_lists(function: &mut ImplItemFn, lists: &[List]) {
    let Some(Stmt::Expr(command, None)) = function.block.stmts.last_mut() else { return };
    for List { name, description, is_required, kind } in lists {
        let (parser, value_name) = match kind {
            ListKind::Texts => (quote!(::clap::value_parser!(String)), "TEXT"),
            ListKind::Numbers => (quote!(crate::arguments::parse_pair), "KEY=NUMBER"),
            ListKind::Other => continue,
        };
        let help = format!("{description} Repeat the option for several.");
        let required = is_required.then(|| quote!(.required_unless_present("json-body")));
        *command = parse_quote!(#command.arg(
            ::clap::Arg::new(#name).long(#name).action(::clap::ArgAction::Append)
                .value_name(#value_name).value_parser(#parser).help(#help) #required
        ));
    }
    if !lists.is_empty() && !lists.iter().any(|list| list.is_required && list.kind == ListKind::Other) {
        *command = parse_quote!(#command.mut_arg("json-body", |argument| argument.required(false)));
    }
}

/// Puts the options into the JSON body before it is parsed: a property that the body must have may be an option instead.
fn merge_body(block: &mut Block, operation: &Operation) {
    let reads_body = |statement: &Stmt| matches!(statement, Stmt::Expr(Expr::If(_), _)) && is_about(statement, "json-body");
    let Some(position) = block.stmts.iter().position(reads_body) else { return };
    let mut body_type = BodyType(PathArguments::None);
    body_type.visit_stmt_mut(&mut block.stmts.remove(position));
    let BodyType(body_type) = body_type;
    for statement in &mut block.stmts {
        if let Stmt::Expr(Expr::If(option), _) = statement
            && option.then_branch.to_token_stream().to_string().contains("body_map")
        {
            let property = operation.properties.iter().find(|property| is_about(&option.cond, &option_name(property)));
            let property = property.expect("each option of the body is one of its properties");
            option.then_branch = parse_quote!({ options.insert(#property.to_owned(), ::serde_json::to_value(value)?); });
        }
    }
    let lists = operation.lists.iter().filter_map(|List { name, kind, .. }| {
        let (item, collection) = match kind {
            ListKind::Texts => (quote!(String), quote!(Vec<String>)),
            ListKind::Numbers => (quote!((String, i64)), quote!(::std::collections::HashMap<String, i64>)),
            ListKind::Other => return None,
        };
        let statement: Stmt = parse_quote! {
            if let Some(values) = matches.get_many::<#item>(#name) {
                let values: #collection = values.cloned().collect();
                options.insert(#name.to_owned(), ::serde_json::to_value(values)?);
            }
        };
        Some(statement)
    });
    let lists: Vec<Stmt> = lists.collect();
    let not_blank = &operation.not_blank;
    let request = block.stmts.remove(0);
    let options = std::mem::take(&mut block.stmts);
    let (options, send): (Vec<_>, Vec<_>) =
        options.into_iter().partition(|statement| matches!(statement, Stmt::Expr(Expr::If(_), _)));
    *block = parse_quote!({
        #request
        let mut options = ::serde_json::Map::new();
        #(#options)*
        #(#lists)*
        let source = matches.get_one::<std::path::PathBuf>("json-body");
        request = request.body(crate::arguments::parse_body #body_type (source, options, &[#(#not_blank),*])?);
        #(#send)*
    });
}

/// Returns the name that progenitor gives the option of a property.
fn option_name(property: &str) -> String {
    let words = property.chars().map(|c| if c.is_uppercase() { format!("-{}", c.to_lowercase()) } else { c.to_string() });
    words.collect()
}

/// Finds the type as which a body is parsed.
struct BodyType(PathArguments);

impl VisitMut for BodyType {
    fn visit_path_segment_mut(&mut self, segment: &mut PathSegment) {
        if segment.ident == "from_str" {
            self.0 = segment.arguments.clone();
        }
    }
}
