//! Summaries of methods, and their parameters with ranges and defaults.

use super::MethodConfig;
use crate::session::{Method, Supports};
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::fmt::Write;

/// A built-in method; the type is also its parameters.
pub(crate) trait BuiltIn: Method + Default + Serialize + DeserializeOwned + JsonSchema {
    const ABOUT: About;
}

/// A summary of a method.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct About {
    /// The name.
    pub name: &'static str,
    /// Aliases.
    pub aliases: &'static [&'static str],
    /// A short description.
    pub summary: &'static str,
    /// The assumption on how bags were made.
    pub bags: Assumes,
    /// How it supports more than two classes.
    pub classes: &'static str,
    /// The time per row and epoch in addition to the model, with k rows per bag and C classes.
    pub cost: &'static str,
    /// The reference.
    pub reference: &'static str,
}

/// The assumption on bags under which a method is unbiased.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Assumes {
    /// Rows were grouped regardless of their labels.
    RandomBags,
    /// Random bags, or bags made by features that the model sees.
    RandomBagsOrFeatures,
    /// Random bags, or bags with similar class means where features are similar.
    RandomBagsOrSimilar,
    /// Row labels: every bag is a single row.
    RowLabels,
    /// No assumption.
    Nothing,
    /// Biased in any case.
    AlwaysBiased,
}

impl Assumes {
    /// In words.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::RandomBags => "random bags",
            Self::RandomBagsOrFeatures => "random bags, or bags made by features that the model sees",
            Self::RandomBagsOrSimilar => "random bags, or bags that are similar where their features are",
            Self::RowLabels => "row labels",
            Self::Nothing => "nothing about how bags were made",
            Self::AlwaysBiased => "nothing, and is always biased",
        }
    }
}

impl Supports {
    /// In words.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Any => "any model, any loss",
            Self::LogOdds => "any model; logistic or softmax loss",
            Self::LinearLogOdds => "linear models; logistic or softmax loss",
            Self::LinearConvex => "linear models; a loss that stays convex",
        }
    }
}

/// A parameter of a method.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Parameter {
    /// The name.
    pub name: String,
    /// The description.
    pub about: String,
    /// The valid values, such as `a number above 0`.
    pub expected: String,
    /// The default; `None` if it is unset by default.
    pub default: Option<String>,
}

/// The JSON schema of some parameters, without references.
pub(super) fn schema_of<P: JsonSchema>() -> Schema {
    let settings = SchemaSettings::draft2020_12().with(|settings| settings.inline_subschemas = true);
    settings.into_generator().into_root_schema_for::<P>()
}

/// The parameters that a schema describes, by name.
pub(super) fn parameters_of(schema: &Schema) -> Vec<Parameter> {
    let properties = schema.get("properties").and_then(Value::as_object);
    let parameter = |(name, property): (&String, &Value)| Parameter {
        name: name.clone(),
        about: text(property, "description").replace('\n', " "),
        expected: expected(property).unwrap_or_default(),
        default: property.get("default").filter(|default| !default.is_null()).map(shown),
    };
    properties.into_iter().flatten().map(parameter).collect()
}

/// A value as text.
pub(super) fn shown(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn text(of: &Value, key: &str) -> String {
    of.get(key).and_then(Value::as_str).unwrap_or_default().to_owned()
}

/// The valid values by the schema; `None` for null.
fn expected(schema: &Value) -> Option<String> {
    if let Some(title) = schema.get("x-expected").and_then(Value::as_str) {
        return Some(title.to_owned());
    }
    let alternatives = schema.get("oneOf").or(schema.get("anyOf")).and_then(Value::as_array);
    let words: Vec<String> = match (alternatives, schema.get("const"), schema.get("enum")) {
        (Some(alternatives), ..) => alternatives.iter().filter_map(expected).collect(),
        (_, Some(word), _) => vec![shown(word)],
        (_, _, Some(Value::Array(words))) => words.iter().filter(|word| !word.is_null()).map(shown).collect(),
        _ => Vec::new(),
    };
    if let Some((last, others)) = words.split_last() {
        return Some(if others.is_empty() {
            last.clone()
        } else {
            format!("{} or {last}", others.join(", "))
        });
    }
    let is = |name: &str| match schema.get("type") {
        Some(Value::String(only)) => only == name,
        Some(Value::Array(several)) => several.iter().any(|one| one == name),
        _ => false,
    };
    let number = if is("integer") {
        "a whole number"
    } else if is("number") {
        "a number"
    } else if is("null") {
        return None;
    } else {
        return Some("text".into());
    };
    let bound = |key: &str, words: &str| Some(format!("{number} {words} {}", schema.get(key)?));
    Some(bound("minimum", "of at least").or(bound("exclusiveMinimum", "above")).unwrap_or(number.into()))
}

/// The table of the built-in methods, as Markdown.
pub fn methods_table() -> String {
    let mut table = String::from(
        "| method | what it does | assumes | supports | classes | cost | reference |\n|---|---|---|---|---|---|---|\n",
    );
    for method in MethodConfig::all() {
        let About { name, summary, bags, classes, cost, reference, .. } = *method.about();
        let (bags, supports) = (bags.as_str(), method.supports().as_str());
        let _ = writeln!(
            table,
            "| `{name}` | {summary} | {bags} | {supports} | {classes} | {cost} | {reference} |"
        );
    }
    table
}

/// The parameters of all built-in methods that have any, as one Markdown table each.
pub fn parameters_tables() -> String {
    let mut text = String::new();
    for method in MethodConfig::all() {
        let parameters = method.parameters();
        if parameters.is_empty() {
            continue;
        }
        let _ = write!(text, "\n### `{}`\n\n", method.about().name);
        text.push_str("| parameter | what it does | expected | default |\n|---|---|---|---|\n");
        for Parameter { name, about, expected, default } in parameters {
            let default = default.map_or("unset".to_owned(), |default| format!("`{default}`"));
            let _ = writeln!(text, "| `{name}` | {about} | {expected} | {default} |");
        }
    }
    text
}
