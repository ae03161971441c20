//! The OpenAPI 3.1 document, generated from the endpoints.

use schemars::SchemaGenerator;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use super::endpoint::Endpoint;
use super::problem::{self, Problem};
use super::response::ResponseBody as _;
use crate::access::Role;

/// The introduction of the API.
const DESCRIPTION: &str = "Read-only access to all data of an Arbiter coordinator. Times are RFC \
    3339 in UTC. Durations have their unit in their name (`_ms`, `_us`). Hashes are hexadecimal. \
    Lists are paginated: `next` is the URL of the next page. Responses have an `ETag`: a request with \
    `If-None-Match` returns 304 if nothing has changed. Ignore unknown fields, because fields may be \
    added.";
/// The error responses.
const ERRORS: [(&str, &str); 7] = [
    ("400", "The request is invalid."),
    ("401", "A token is required, or the token is invalid."),
    ("403", "The token does not have access, or the leaderboard is frozen."),
    ("404", "The object does not exist."),
    ("409", "The data is not available yet."),
    ("429", "There are too many requests at the moment."),
    ("503", "The database is not available at the moment."),
];

/// A builder of the document.
pub(super) struct OpenApiDocument {
    paths: Map<String, Value>,
    /// Generates the schemas of parameters.
    parameters: SchemaGenerator,
    /// Generates the schemas of responses.
    responses: SchemaGenerator,
}

impl OpenApiDocument {
    pub(super) fn new() -> Self {
        let settings = SchemaSettings::draft2020_12().with(|settings| {
            settings.definitions_path = "/components/schemas".into();
            settings.meta_schema = None;
        });
        let inline = settings.clone().with(|settings| settings.inline_subschemas = true);
        Self {
            paths: Map::new(),
            parameters: inline.for_deserialize().into_generator(),
            responses: settings.for_serialize().into_generator(),
        }
    }

    /// Adds an endpoint.
    pub(super) fn add<E: Endpoint>(&mut self) {
        let endpoint_schema = E::json_schema(&mut self.parameters).to_value();
        let (media_type, response_schema) = E::Response::content(&mut self.responses);
        let description = paragraphs(endpoint_schema["description"].as_str().unwrap_or_default());
        let summary = description.lines().next().unwrap_or_default();
        let role = E::ROLE.map(|role| format!("\n\nRequires a token with the role {role}."));
        let success = json!({
            "description": "Success.",
            "headers": {"ETag": {
                "description": "Changes when the response changes.", "schema": {"type": "string"},
            }},
            "content": {media_type: {"schema": response_schema}},
        });
        let mut responses = Map::from_iter([
            ("200".to_owned(), success),
            (
                "304".to_owned(),
                json!({"description": "The version in `If-None-Match` is still current."}),
            ),
        ]);
        responses.extend(ERRORS.map(|(status, _)| {
            (status.to_owned(), json!({"$ref": format!("#/components/responses/{status}")}))
        }));
        let operation = json!({
            "operationId": E::schema_name(),
            "summary": summary.trim_end_matches('.'),
            "description": format!("{description}{}", role.unwrap_or_default()),
            "tags": [E::TAG],
            "parameters": parameters::<E>(&endpoint_schema),
            "security": security(E::ROLE),
            "responses": responses,
        });
        self.paths.insert(E::PATH.to_owned(), json!({"get": operation}));
    }

    /// Returns the document.
    pub(super) fn finish(mut self) -> Value {
        let problem = self.responses.subschema_for::<Problem>().to_value();
        let error_response = |(status, description): (&str, &str)| {
            let mut response = json!({
                "description": description,
                "content": {problem::MEDIA_TYPE: {"schema": problem}},
            });
            let header = match status {
                "401" => Some(("WWW-Authenticate", "How to send a token.", "string")),
                "429" | "503" => {
                    Some(("Retry-After", "Seconds to wait before the next request.", "integer"))
                }
                _ => None,
            };
            if let Some((name, description, kind)) = header {
                let schema = json!({"type": kind});
                response["headers"] = json!({name: {"description": description, "schema": schema}});
            }
            (status.to_owned(), response)
        };
        let responses: Map<_, _> = ERRORS.into_iter().map(error_response).collect();
        let mut schemas = Value::Object(self.responses.take_definitions(true));
        add_bounds(&mut schemas);
        json!({
            "openapi": "3.1.0",
            "info": {
                "title": "Arbiter",
                "version": env!("CARGO_PKG_VERSION"),
                "summary": "Tournaments of game-playing programs",
                "description": DESCRIPTION,
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
                        "description": "A token created by `arbiter token create`.",
                    },
                    "cookie": {
                        "type": "apiKey",
                        "in": "cookie",
                        "name": "arbiter",
                        "description": "The cookie set by /login.",
                    },
                },
            },
        })
    }
}

/// The security requirement. Public endpoints also accept a token, which can give access to more
/// data.
fn security(role: Option<Role>) -> Value {
    match role {
        Some(_) => json!([{"token": []}, {"cookie": []}]),
        None => json!([{}, {"token": []}, {"cookie": []}]),
    }
}

/// The parameters of an endpoint: its fields.
fn parameters<E: Endpoint>(endpoint_schema: &Value) -> Vec<Value> {
    let required = endpoint_schema["required"].as_array().map(Vec::as_slice).unwrap_or_default();
    let fields = endpoint_schema["properties"].as_object().into_iter().flatten();
    let parameter = |(name, schema): (&String, &Value)| {
        let in_path = E::PATH.contains(&format!("{{{name}}}"));
        let mut schema = schema.clone();
        add_bounds(&mut schema);
        let description = match schema.as_object_mut() {
            Some(schema) => {
                // Optional parameters are omitted; a query string cannot express null.
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
        let description = description.as_ref().and_then(Value::as_str).unwrap_or_default();
        json!({
            "name": name,
            "in": if in_path { "path" } else { "query" },
            "required": in_path || required.iter().any(|required| required == name),
            "description": paragraphs(description),
            "schema": schema,
        })
    };
    fields.map(parameter).collect()
}

/// Joins the lines of each paragraph of a doc comment.
fn paragraphs(comment: &str) -> String {
    let paragraphs = comment.split("\n\n").map(|paragraph| paragraph.replace('\n', " "));
    paragraphs.collect::<Vec<_>>().join("\n\n")
}

/// Adds the bounds of integers to a schema, and joins the lines of descriptions.
fn add_bounds(schema: &mut Value) {
    match schema {
        Value::Array(values) => values.iter_mut().for_each(add_bounds),
        Value::Object(keys) => {
            let bounds = match keys.get("format").and_then(Value::as_str) {
                Some("int32") => Some((json!(i32::MIN), json!(i32::MAX))),
                Some("uint32") => Some((json!(0), json!(u32::MAX))),
                Some("int64") => Some((json!(i64::MIN), json!(i64::MAX))),
                _ => None,
            };
            if let Some((min, max)) = bounds {
                keys.entry("minimum").or_insert(min);
                keys.entry("maximum").or_insert(max);
            }
            if let Some(Value::String(text)) = keys.get_mut("description") {
                *text = paragraphs(text);
            }
            keys.values_mut().for_each(add_bounds);
        }
        _ => {}
    }
}
