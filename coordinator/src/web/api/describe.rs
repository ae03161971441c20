//! The description of the interface, as OpenAPI 3.1, made from the questions themselves.

use schemars::SchemaGenerator;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use super::problem::{self, Problem};
use super::question::Question;
use super::reply::Reply as _;
use crate::access::Role;

/// What the interface is, for whoever begins here.
const ABOUT: &str = "Everything that an Arbiter coordinator tells, for programs. Times are RFC \
    3339 in UTC; durations say their unit in their name (`_ms`, `_us`); hashes are hexadecimal. \
    Lists come in pages, and `next` is the address of the one that follows. Answers have an \
    `ETag`: ask again with `If-None-Match` and be told 304 while nothing has changed. Programs \
    should pass over fields that they do not know: more may be added.";
/// What answers may be, besides what was asked for: when.
const REFUSALS: [(&str, &str); 7] = [
    ("400", "The address means nothing."),
    ("401", "It takes a token, or this one is not good."),
    ("403", "The token does not allow it, or it is frozen."),
    ("404", "There is no such thing."),
    ("409", "There is nothing to tell yet."),
    ("429", "Too many ask for much at this moment."),
    ("503", "The database does not answer at this moment."),
];

/// The description as it is made.
pub(super) struct Interface {
    paths: Map<String, Value>,
    /// Of what is asked: what a question is read from.
    asked: SchemaGenerator,
    /// Of what is answered: what an answer is written as.
    answered: SchemaGenerator,
}

impl Interface {
    pub(super) fn new() -> Self {
        let settings = SchemaSettings::draft2020_12().with(|settings| {
            settings.definitions_path = "/components/schemas".into();
            settings.meta_schema = None;
        });
        let inline = settings.clone().with(|settings| settings.inline_subschemas = true);
        Self {
            paths: Map::new(),
            asked: inline.for_deserialize().into_generator(),
            answered: settings.for_serialize().into_generator(),
        }
    }

    /// Describes a question.
    pub(super) fn add<Q: Question>(&mut self) {
        let asked = Q::json_schema(&mut self.asked).to_value();
        let (kind, schema) = Q::Reply::content(&mut self.answered);
        let told = paragraphs(asked["description"].as_str().unwrap_or_default());
        let summary = told.lines().next().unwrap_or_default();
        let role = Q::ROLE.map(|role| format!("\n\nIt takes a token of role {role}."));
        let answer = json!({
            "description": "What was asked for.",
            "headers": {"ETag": {
                "description": "Changes when the answer does.", "schema": {"type": "string"},
            }},
            "content": {kind: {"schema": schema}},
        });
        let mut responses = Map::from_iter([
            ("200".to_owned(), answer),
            ("304".to_owned(), json!({"description": "What `If-None-Match` names is still so."})),
        ]);
        responses.extend(REFUSALS.map(|(status, _)| {
            (status.to_owned(), json!({"$ref": format!("#/components/responses/{status}")}))
        }));
        let operation = json!({
            "operationId": Q::schema_name(),
            "summary": summary.trim_end_matches('.'),
            "description": format!("{told}{}", role.unwrap_or_default()),
            "tags": [Q::ABOUT],
            "parameters": parameters::<Q>(&asked),
            "security": security(Q::ROLE),
            "responses": responses,
        });
        self.paths.insert(Q::PATH.to_owned(), json!({"get": operation}));
    }

    /// The whole description.
    pub(super) fn finish(mut self) -> Value {
        let problem = self.answered.subschema_for::<Problem>().to_value();
        let refusal = |(status, when): (&str, &str)| {
            let mut refusal = json!({
                "description": when,
                "content": {problem::KIND: {"schema": problem}},
            });
            let header = match status {
                "401" => Some(("WWW-Authenticate", "How to show a token.", "string")),
                "429" | "503" => Some(("Retry-After", "Seconds to wait.", "integer")),
                _ => None,
            };
            if let Some((name, told, kind)) = header {
                refusal["headers"] = json!({name: {"description": told, "schema": {"type": kind}}});
            }
            (status.to_owned(), refusal)
        };
        let responses: Map<_, _> = REFUSALS.into_iter().map(refusal).collect();
        let mut schemas = Value::Object(self.answered.take_definitions(true));
        mend(&mut schemas);
        json!({
            "openapi": "3.1.0",
            "info": {
                "title": "Arbiter",
                "version": env!("CARGO_PKG_VERSION"),
                "summary": "Tournaments of game-playing programs",
                "description": ABOUT,
                "license": {"name": "MIT", "identifier": "MIT"},
            },
            "servers": [{"url": "/"}],
            "paths": self.paths,
            "components": {
                "schemas": schemas,
                "responses": responses,
                "securitySchemes": {
                    "token": {
                        "type": "http",
                        "scheme": "bearer",
                        "description": "A token, as `arbiter token create` makes them.",
                    },
                    "cookie": {
                        "type": "apiKey",
                        "in": "cookie",
                        "name": "arbiter",
                        "description": "What /login gives a browser.",
                    },
                },
            },
        })
    }
}

/// Who may ask: with a token what takes one; anybody the rest, although a token may show more.
fn security(role: Option<Role>) -> Value {
    match role {
        Some(_) => json!([{"token": []}, {"cookie": []}]),
        None => json!([{}, {"token": []}, {"cookie": []}]),
    }
}

/// The parameters of a question: its fields.
fn parameters<Q: Question>(asked: &Value) -> Vec<Value> {
    let required = asked["required"].as_array().map(Vec::as_slice).unwrap_or_default();
    let fields = asked["properties"].as_object().into_iter().flatten();
    let parameter = |(name, schema): (&String, &Value)| {
        let in_path = Q::PATH.contains(&format!("{{{name}}}"));
        let mut schema = schema.clone();
        mend(&mut schema);
        let told = match schema.as_object_mut() {
            Some(schema) => {
                // What is not there is left out; an address has no word for null.
                if let Some(Value::Array(kinds)) = schema.get("type") {
                    let kind = kinds.iter().find(|kind| *kind != "null").cloned();
                    schema.insert("type".to_owned(), kind.unwrap_or_default());
                }
                if [Some(&Value::Null), Some(&json!(""))].contains(&schema.get("default")) {
                    schema.remove("default");
                }
                schema.remove("description")
            }
            None => None,
        };
        let told = told.as_ref().and_then(Value::as_str).unwrap_or_default();
        json!({
            "name": name,
            "in": if in_path { "path" } else { "query" },
            "required": in_path || required.iter().any(|one| one == name),
            "description": paragraphs(told),
            "schema": schema,
        })
    };
    fields.map(parameter).collect()
}

/// The text of a comment: the lines of a paragraph are one.
fn paragraphs(comment: &str) -> String {
    let paragraphs = comment.split("\n\n").map(|paragraph| paragraph.replace('\n', " "));
    paragraphs.collect::<Vec<_>>().join("\n\n")
}

/// Says of numbers how great they may be, and joins the lines of comments.
fn mend(schema: &mut Value) {
    match schema {
        Value::Array(all) => all.iter_mut().for_each(mend),
        Value::Object(keys) => {
            let bounds = match keys.get("format").and_then(Value::as_str) {
                Some("int32") => Some((json!(i32::MIN), json!(i32::MAX))),
                Some("uint32") => Some((json!(0), json!(u32::MAX))),
                Some("int64") => Some((json!(i64::MIN), json!(i64::MAX))),
                _ => None,
            };
            if let Some((least, most)) = bounds {
                keys.entry("minimum").or_insert(least);
                keys.entry("maximum").or_insert(most);
            }
            if let Some(Value::String(told)) = keys.get_mut("description") {
                *told = paragraphs(told);
            }
            keys.values_mut().for_each(mend);
        }
        _ => {}
    }
}
