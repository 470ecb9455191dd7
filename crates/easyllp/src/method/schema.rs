//! What can be known of a method before it is chosen: a summary, and its parameters with ranges and defaults.

use super::MethodConfig;
use crate::session::{Method, Supports};
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::fmt::Write;

/// A built-in method: its parameters, which are the method itself.
pub(crate) trait BuiltIn: Method + Default + Serialize + DeserializeOwned + JsonSchema {
    const ABOUT: About;
}

/// A summary of a method.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct About {
    /// Its name.
    pub name: &'static str,
    /// Other names for it.
    pub aliases: &'static [&'static str],
    /// What it does, in a few words.
    pub summary: &'static str,
    /// How bags must have been made.
    pub bags: Assumes,
    /// How it treats more than two classes.
    pub classes: &'static str,
    /// The time per row and epoch beyond the model's own, with k rows in a bag and C classes.
    pub cost: &'static str,
    /// Where it comes from.
    pub reference: &'static str,
}

/// How bags must have been made for a method to be unbiased.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Assumes {
    /// Rows were grouped regardless of their labels.
    RandomBags,
    /// Random bags, or bags made by features that the model sees.
    RandomBagsOrFeatures,
    /// Random bags, or bags that are similar where their features are.
    RandomBagsOrSimilar,
    /// Every bag is a single row.
    RowLabels,
    /// Nothing.
    Nothing,
    /// Nothing makes it unbiased.
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
    /// Its name.
    pub name: String,
    /// What it does.
    pub about: String,
    /// What it must be, such as `a number above 0`.
    pub expected: String,
    /// Its default; `None` if it is unset by default.
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

/// A value as words have it.
pub(super) fn shown(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn text(of: &Value, key: &str) -> String {
    of.get(key).and_then(Value::as_str).unwrap_or_default().to_owned()
}

/// What a value must be by its schema; `None` for null.
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

/// The parameters of all built-in methods that have some, as a Markdown table each.
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
