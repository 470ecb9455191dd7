//! `easyllp methods`: list the methods, or describe one.

use crate::output::{misuse, print, print_json};
use anyhow::Result;
use clap::Args;
use easyllp::method::{About, Parameter};
use easyllp::{Method, MethodConfig};
use serde_json::{Map, Value, json};
use std::fmt::Write;

/// List the methods that learn from bags, or describe one with its parameters.
#[derive(Debug, Args)]
pub(crate) struct MethodsArgs {
    /// Method to describe
    #[arg(value_name = "NAME")]
    name: Option<String>,

    /// Print JSON, for one method with the JSON schema of its parameters
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &MethodsArgs) -> Result<()> {
    let Some(name) = &args.name else {
        let methods = MethodConfig::all();
        if args.json {
            return print_json(&methods.iter().map(summary).collect::<Vec<_>>());
        }
        return print(&list(&methods));
    };
    let method = MethodConfig::with_parameters(name, Map::new()).map_err(|error| misuse(&error.in_full()))?;
    if args.json {
        let mut value = summary(&method);
        value["parameters"] = json!(method.parameters());
        value["schema"] = json!(method.schema());
        return print_json(&value);
    }
    print(&description(&method))
}

/// The description of a method, for JSON.
fn summary(method: &MethodConfig) -> Value {
    let About { name, aliases, summary, bags, classes, cost, reference } = method.about();
    json!({
        "name": name,
        "aliases": aliases,
        "summary": summary,
        "assumes": bags.as_str(),
        "supports": method.supports().as_str(),
        "classes": classes,
        "cost": cost,
        "reference": reference,
    })
}

/// The description, one item per line.
fn lines(method: &MethodConfig) -> String {
    let About { summary, bags, classes, cost, reference, .. } = method.about();
    format!(
        "  {summary}\n  assumes: {}\n  supports: {}\n  classes: {classes}\n  cost: {cost}\n  reference: {reference}\n",
        bags.as_str(),
        method.supports().as_str()
    )
}

fn list(methods: &[MethodConfig]) -> String {
    let mut text = String::new();
    for method in methods {
        let _ = writeln!(text, "{}\n{}", method.about().name, lines(method));
    }
    text.push_str(
        "Cost: time per row and epoch beyond the model's own. k: rows in a bag, C: classes.\n`easyllp methods NAME` describes the \
         parameters of a method.\n",
    );
    text
}

fn description(method: &MethodConfig) -> String {
    let About { name, aliases, .. } = method.about();
    let also = if aliases.is_empty() { String::new() } else { format!(" (also {})", aliases.join(", ")) };
    let mut text = format!("{name}{also}\n{}\nparameters\n", lines(method));
    let parameters = method.parameters();
    if parameters.is_empty() {
        text.push_str("  none\n");
    }
    for Parameter { name, about, expected, default } in &parameters {
        let default = default.as_deref().unwrap_or("unset");
        let _ = writeln!(text, "  {name}\n    {about}\n    expected: {expected}\n    default: {default}");
    }
    if let Some(Parameter { name: parameter, default, .. }) = parameters.first() {
        let value = default.as_deref().unwrap_or("VALUE");
        let _ = writeln!(text, "\nSet parameters by name: --method {name}:{parameter}={value}");
    }
    text
}
