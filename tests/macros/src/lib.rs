//! The attribute `test_on`, with which each test of a server names the databases that it runs on.

use proc_macro::{TokenStream, TokenTree};

/// Makes a `#[tokio::test]` of an `async fn(TestApp)` for each given name, such as `sqlite`. The test calls `support::run_on_sqlite`,
/// and its own name is `FUNCTION::sqlite`.
#[proc_macro_attribute]
pub fn test_on(names: TokenStream, function: TokenStream) -> TokenStream {
    let names: Vec<_> = names.into_iter().filter(|token| matches!(token, TokenTree::Ident(_))).collect();
    let function_name = function.clone().into_iter().skip_while(|token| token.to_string() != "fn").nth(1);
    let (Some(function_name), false) = (function_name, names.is_empty()) else {
        return parse("compile_error!(\"write `#[test_on(sqlite, postgres)]` above an `async fn(TestApp)`\");");
    };
    let tests = names.iter().map(|name| {
        format!(
            "#[tokio::test(flavor = \"multi_thread\", worker_threads = 2)]
            async fn {name}() {{ crate::support::run_on_{name}(super::{function_name}).await; }}"
        )
    });
    let module = format!("mod {function_name} {{ {} }}", tests.collect::<String>());
    function.into_iter().chain(parse(&module)).collect()
}

fn parse(code: &str) -> TokenStream {
    code.parse().expect("the code above is Rust")
}
