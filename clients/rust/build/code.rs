//! Completes the generated code with what progenitor doesn't generate.

use std::collections::{BTreeMap, BTreeSet};

use quote::{ToTokens, quote};
use serde_json::Value;
use syn::punctuated::Punctuated;
use syn::visit_mut::{self, VisitMut};
use syn::{
    Arm, Attribute, Expr, Field, Fields, GenericArgument, Ident, ImplItem, Item, ItemImpl, Macro, Path, PathArguments,
    PathSegment, ReturnType, Stmt, Token, Type, parse_quote,
};

use crate::document::{blank_values, clearable_properties, secrets};

/// Completes the code that was generated from this document.
pub fn complete(file: &mut syn::File, document: &Value) {
    accept_unknown_values(file);
    name_blank_values(file, &blank_values(document));
    describe_error_codes(file, &document["components"]["schemas"]["ErrorCode"]["x-error-catalogue"]);
    allow_additions(file);
    clear_by_null(file, &clearable_properties(document));
    check_error_responses(file);
    implement_lists(file);
    hide_secrets(file, &secrets(document));
    CheckIdentifiers.visit_file_mut(file);
    hide_constructors(file);
}

/// Adds a variant for other values to every enumeration of texts: later versions of the server may send values that the contract
/// doesn't list yet. progenitor only generates enumerations that reject them.
fn accept_unknown_values(file: &mut syn::File) {
    let items = module(file, "types");
    let mut enumerations = BTreeMap::new();
    for item in items.iter_mut() {
        if let Item::Enum(enumeration) = item
            && enumeration.variants.iter().all(|variant| variant.fields.is_empty())
        {
            let other = "A value that this version of the contract doesn't list.";
            // The contract may list a value `unknown` itself.
            let lists_unknown = enumeration.variants.iter().any(|variant| variant.ident == "Unknown");
            let name: Ident = if lists_unknown { parse_quote!(Other) } else { parse_quote!(Unknown) };
            enumeration.variants.push(parse_quote!(#[doc = #other] #[serde(untagged)] #name(::std::string::String)));
            // A text can't be copied, and the order is only the contract's.
            remove_traits(&mut enumeration.attrs, &["Copy", "Ord", "PartialOrd"]);
            enumerations.insert(enumeration.ident.clone(), name);
        }
    }
    for item in items {
        let Item::Impl(implementation) = item else { continue };
        let is_of = |path: &Path, name: &str| path.segments.last().is_some_and(|segment| segment.ident == name);
        let is_display = implementation.trait_.as_ref().is_some_and(|(_, path, _)| is_of(path, "Display"));
        let Type::Path(of) = &*implementation.self_ty else { continue };
        let Some(other) = of.path.get_ident().and_then(|name| enumerations.get(name)) else { continue };
        if let [ImplItem::Fn(fmt)] = implementation.items.as_mut_slice()
            && let [Stmt::Expr(Expr::Match(variants), None)] = fmt.block.stmts.as_mut_slice()
            && is_display
        {
            variants.expr = parse_quote!(self);
            variants.arms.push(parse_quote!(Self::#other(value) => f.write_str(value),));
        }
    }
}

/// Renames the variants of the value `""`, which progenitor names `X`.
fn name_blank_values(file: &mut syn::File, names: &BTreeMap<String, String>) {
    for item in module(file, "types") {
        let of = match item {
            Item::Enum(enumeration) => enumeration.ident.to_string(),
            Item::Impl(ItemImpl { self_ty, .. }) => self_ty.to_token_stream().to_string(),
            _ => continue,
        };
        let Some(name) = names.get(&of) else { continue };
        let name: Ident = syn::parse_str(name).expect("the name of a value is one of Rust");
        if let Item::Enum(enumeration) = item {
            let blank = enumeration.variants.iter_mut().find(|variant| variant.ident == "X");
            let blank = blank.expect("progenitor names the value \"\" X");
            blank.ident = name;
            blank.attrs.push(parse_quote!(#[doc = "The value `\"\"`."]));
        } else {
            RenameVariant(name).visit_item_mut(item);
        }
    }
}

/// Replaces the variant `X` by that of this name.
struct RenameVariant(Ident);

impl VisitMut for RenameVariant {
    fn visit_path_segment_mut(&mut self, segment: &mut PathSegment) {
        if segment.ident == "X" {
            segment.ident = self.0.clone();
        }
    }
}

/// Describes each error code by its cause and its remedy. The description of the list refers to a file that the package doesn't have.
fn describe_error_codes(file: &mut syn::File, catalogue: &Value) {
    let codes = module(file, "types").iter_mut().find_map(|item| match item {
        Item::Enum(enumeration) if enumeration.ident == "ErrorCode" => Some(enumeration),
        _ => None,
    });
    let codes = codes.expect("the contract lists the error codes");
    codes.attrs.retain(|attribute| !attribute.path().is_ident("doc"));
    let description = "Stable code of an error. Error texts can change; codes do not. Each has its cause and its remedy.";
    codes.attrs.push(parse_quote!(#[doc = #description]));
    for (code, entry) in catalogue.as_object().expect("the contract has an error catalogue") {
        let text = format!("{} {}", entry["cause"].as_str().unwrap_or_default(), entry["remedy"].as_str().unwrap_or_default());
        let variant = codes.variants.iter_mut().find(|variant| is_renamed(&variant.attrs, code));
        variant.expect("each error code is a variant").attrs.push(parse_quote!(#[doc = #text]));
    }
}

/// Marks the types to which later versions of the contract may add properties and values, so that these additions break no caller of
/// the package. Callers make values with the builders.
fn allow_additions(file: &mut syn::File) {
    for item in module(file, "types") {
        match item {
            Item::Struct(object) if matches!(object.fields, Fields::Named(_)) => {
                object.attrs.push(parse_quote!(#[non_exhaustive]))
            }
            Item::Enum(enumeration) => enumeration.attrs.push(parse_quote!(#[non_exhaustive])),
            _ => {}
        }
    }
}

/// Changes the types of properties that a null clears from `Option<T>`, which can't be a null in a request, to `Change<T>`.
fn clear_by_null(file: &mut syn::File, clearable: &BTreeMap<String, Vec<String>>) {
    let types = module(file, "types");
    let mut changed = BTreeMap::<Ident, Vec<Ident>>::new();
    for item in types.iter_mut() {
        let Item::Struct(object) = item else { continue };
        let Some(properties) = clearable.get(&object.ident.to_string()) else { continue };
        for field in &mut object.fields {
            let Some(property) = properties.iter().find(|property| is_property(field, property)) else { continue };
            field.attrs.retain(|attribute| !attribute.path().is_ident("serde"));
            field.attrs.push(parse_quote!(
                #[serde(rename = #property, default, skip_serializing_if = "crate::Change::is_unchanged")]
            ));
            OptionToChange.visit_field_mut(field);
            changed.entry(object.ident.clone()).or_default().extend(field.ident.clone());
        }
    }
    for item in items_of(types, "builder") {
        match item {
            Item::Struct(builder) => {
                let names = changed.get(&builder.ident).into_iter().flatten();
                for name in names {
                    let fields = builder.fields.iter_mut().filter(|field| field.ident.as_ref() == Some(name));
                    fields.for_each(|field| OptionToChange.visit_field_mut(field));
                }
            }
            Item::Impl(ItemImpl { trait_: None, self_ty, items, .. }) => {
                let Type::Path(of) = &**self_ty else { continue };
                let Some(names) = of.path.get_ident().and_then(|builder| changed.get(builder)) else { continue };
                for item in items {
                    if let ImplItem::Fn(setter) = item
                        && names.contains(&setter.sig.ident)
                    {
                        OptionToChange.visit_signature_mut(&mut setter.sig);
                    }
                }
            }
            _ => {}
        }
    }
    let (found, all) = (changed.into_values().flatten().count(), clearable.values().flatten().count());
    assert_eq!(found, all, "each property that a null clears has a field");
}

/// Returns whether a field is this property of the JSON.
fn is_property(field: &Field, property: &str) -> bool {
    field.ident.as_ref().is_some_and(|ident| ident == property) || is_renamed(&field.attrs, property)
}

/// Returns whether a field or a variant has this name in the JSON.
fn is_renamed(attributes: &[Attribute], name: &str) -> bool {
    let rename = format!("rename = \"{name}\"");
    attributes.iter().any(|attribute| attribute.to_token_stream().to_string().contains(&rename))
}

/// Replaces `Option<T>` by `Change<T>`.
struct OptionToChange;

impl VisitMut for OptionToChange {
    fn visit_type_mut(&mut self, of: &mut Type) {
        let is_option = matches!(&*of, Type::Path(of) if of.path.segments.last().is_some_and(|last| last.ident == "Option"));
        match first_argument(of).cloned() {
            Some(value) if is_option => *of = parse_quote!(crate::Change<#value>),
            _ => visit_mut::visit_type_mut(self, of),
        }
    }
}

/// Distinguishes the errors of the API from those of load balancers, of which progenitor would lose the status.
fn check_error_responses(file: &mut syn::File) {
    for item in module(file, "builder") {
        let Item::Impl(operation) = item else { continue };
        for item in &mut operation.items {
            if let ImplItem::Fn(send) = item
                && let Some(Stmt::Expr(Expr::Match(statuses), None)) = send.block.stmts.last_mut()
            {
                let is_error = |arm: &&mut Arm| arm.body.to_token_stream().to_string().contains("ErrorResponse");
                for arm in statuses.arms.iter_mut().filter(is_error) {
                    *arm.body = parse_quote!(Err(crate::errors::read_error(response).await));
                }
            }
        }
    }
}

/// Implements the traits that read lists page by page, for each page and for each operation that returns one.
fn implement_lists(file: &mut syn::File) {
    let mut pages = BTreeSet::new();
    let types = module(file, "types");
    for item in types.clone() {
        let Item::Struct(page) = item else { continue };
        let field = |name: &str| page.fields.iter().find(|field| field.ident.as_ref().is_some_and(|ident| ident == name));
        let (Some(entries), Some(_), Some(_)) = (field("entries"), field("page"), field("total")) else { continue };
        let (name, entries) = (&page.ident, &entries.ty);
        types.push(parse_quote! {
            impl crate::lists::Page for #name {
                type Entry = <#entries as ::std::iter::IntoIterator>::Item;
                fn into_parts(self) -> (::std::vec::Vec<Self::Entry>, i64) {
                    (self.entries, self.total)
                }
            }
        });
        pages.insert(name.clone());
    }
    let operations = module(file, "builder");
    for item in operations.clone() {
        let Item::Impl(operation) = item else { continue };
        let method = |name: &str| {
            operation.items.iter().find_map(|item| match item {
                ImplItem::Fn(method) if method.sig.ident == name => Some(method),
                _ => None,
            })
        };
        let (Some(send), Some(_)) = (method("send"), method("page")) else { continue };
        let Some(page) = success_type(&send.sig.output).filter(|page| pages.contains(page)) else { continue };
        let name = &operation.self_ty;
        operations.push(parse_quote! {
            impl<'a> crate::lists::List for #name {
                type Page = types::#page;
                async fn load(self, page: i64) -> Result<types::#page, Error<types::Error>> {
                    Ok(self.page(page).send().await?.into_inner())
                }
            }
        });
    }
}

/// Replaces the derived `Debug` of types with secrets, and of the builders for them, by one that doesn't show them.
fn hide_secrets(file: &mut syn::File, secrets: &BTreeSet<(String, String)>) {
    let mut hidden = BTreeSet::new();
    let types = module(file, "types");
    hide_secrets_of(types, secrets, &mut hidden);
    hide_secrets_of(items_of(types, "builder"), secrets, &mut hidden);
    hide_secrets_of(module(file, "builder"), secrets, &mut hidden);
    assert_eq!(&hidden, secrets, "each secret is a field of a type");
}

/// Replaces it for these items, and adds the secrets that they have.
fn hide_secrets_of(items: &mut Vec<Item>, secrets: &BTreeSet<(String, String)>, hidden: &mut BTreeSet<(String, String)>) {
    let mut implementations = Vec::new();
    for item in items.iter_mut() {
        let Item::Struct(object) = item else { continue };
        let fields = object.fields.iter().filter_map(|field| field.ident.as_ref());
        let (hides, shown): (Vec<_>, Vec<_>) = fields
            .map(|field| {
                let secret = (object.ident.to_string(), field.to_string());
                let is_secret = secrets.contains(&secret);
                let value = if is_secret { quote!(&::std::format_args!("[hidden]")) } else { quote!(&self.#field) };
                (is_secret.then_some(secret), quote!(.field(::std::stringify!(#field), #value)))
            })
            .unzip();
        if hides.iter().any(Option::is_some) {
            remove_traits(&mut object.attrs, &["Debug"]);
            hidden.extend(hides.into_iter().flatten());
            let (name, generics) = (&object.ident, &object.generics);
            implementations.push(parse_quote! {
                impl #generics ::std::fmt::Debug for #name #generics {
                    fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                        f.debug_struct(::std::stringify!(#name)) #(#shown)* .finish()
                    }
                }
            });
        }
    }
    items.extend(implementations);
}

/// Makes each operation return an error for an identifier that would lead to another resource, such as `..`. progenitor's
/// `encode_path` leaves it as it is.
struct CheckIdentifiers;

impl VisitMut for CheckIdentifiers {
    fn visit_macro_mut(&mut self, call: &mut Macro) {
        if !call.path.is_ident("format") {
            return;
        }
        let arguments = call.parse_body_with(Punctuated::<Expr, Token![,]>::parse_terminated);
        let mut arguments = arguments.expect("the arguments of a format are expressions");
        for argument in &mut arguments {
            if let Expr::Call(encode) = argument
                && encode.func.to_token_stream().to_string() == "encode_path"
            {
                let identifier = &encode.args;
                *argument = parse_quote!(crate::identifiers::encode_identifier(#identifier).map_err(Error::InvalidRequest)?);
            }
        }
        call.tokens = arguments.to_token_stream();
    }
}

/// Removes the generated constructors from the public API: without the version header, the server rejects all requests.
fn hide_constructors(file: &mut syn::File) {
    for item in &mut file.items {
        let Item::Impl(ItemImpl { trait_: None, items, .. }) = item else { continue };
        items.retain(|item| !matches!(item, ImplItem::Fn(constructor) if constructor.sig.ident == "new"));
        for item in items {
            if let ImplItem::Fn(constructor) = item
                && constructor.sig.ident == "new_with_client"
            {
                constructor.vis = parse_quote!(pub(crate));
            }
        }
    }
}

/// Returns the items of a generated module.
fn module<'a>(file: &'a mut syn::File, name: &str) -> &'a mut Vec<Item> {
    items_of(&mut file.items, name)
}

/// Returns the items of a module that is one of these items.
fn items_of<'a>(items: &'a mut [Item], name: &str) -> &'a mut Vec<Item> {
    let module = items.iter_mut().find_map(|item| match item {
        Item::Mod(module) if module.ident == name => module.content.as_mut(),
        _ => None,
    });
    &mut module.expect("progenitor generates the modules").1
}

/// Returns `X` of `Result<ResponseValue<types::X>, …>`.
fn success_type(output: &ReturnType) -> Option<Ident> {
    let ReturnType::Type(_, result) = output else { return None };
    let Type::Path(body) = first_argument(first_argument(result)?)? else { return None };
    Some(body.path.segments.last()?.ident.clone())
}

/// Returns the first type argument of a type.
fn first_argument(of: &Type) -> Option<&Type> {
    let Type::Path(of) = of else { return None };
    let PathArguments::AngleBracketed(arguments) = &of.path.segments.last()?.arguments else { return None };
    arguments.args.iter().find_map(|argument| match argument {
        GenericArgument::Type(argument) => Some(argument),
        _ => None,
    })
}

/// Removes traits from the `derive` attribute.
fn remove_traits(attributes: &mut [Attribute], names: &[&str]) {
    for derive in attributes.iter_mut().filter(|attribute| attribute.path().is_ident("derive")) {
        let traits = derive.parse_args_with(Punctuated::<Path, Token![,]>::parse_terminated).expect("an attribute lists traits");
        let traits = traits.iter().filter(|path| !names.iter().any(|name| path.is_ident(name)));
        *derive = parse_quote!(#[derive(#(#traits),*)]);
    }
}
