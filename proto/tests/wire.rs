//! Released messages stay compatible: during an upgrade, coordinators, workers and clients of two
//! versions talk to each other, so no field may change its number or its type, and none may be
//! removed.
//!
//! `proto/released/v1.txt` has a line for every field, value and method of a released version. New
//! ones are added at the release:
//!
//! ```text
//! ARBITER_RELEASE=1 cargo test --workspace --test wire
//! ```

#![expect(clippy::unwrap_used, reason = "a test that fails is what unwrap is for")]

use std::collections::BTreeSet;
use std::{env, fs};

use prost::Message as _;
use prost_types::field_descriptor_proto::{Label, Type};
use prost_types::{
    DescriptorProto, EnumDescriptorProto, FieldDescriptorProto, FileDescriptorSet,
    ServiceDescriptorProto,
};

const RELEASED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/released/v1.txt");

/// The line of a field. The number comes first, because the wire format contains it.
fn field(message: &str, field: &FieldDescriptorProto, oneofs: &[String]) -> String {
    let kind = field.r#type().as_str_name().trim_start_matches("TYPE_").to_lowercase();
    let kind = match field.r#type() {
        Type::Message | Type::Enum => field.type_name().trim_start_matches('.').to_owned(),
        _ => kind,
    };
    let repeated = if field.label() == Label::Repeated { "repeated " } else { "" };
    let optional = if field.proto3_optional() { "optional " } else { "" };
    let one_of = match field.oneof_index.filter(|_| !field.proto3_optional()) {
        Some(index) => format!(" of {}", oneofs[usize::try_from(index).unwrap()]),
        None => String::new(),
    };
    format!("{message} {} {optional}{repeated}{kind} {}{one_of}", field.number(), field.name())
}

fn message(parent: &str, descriptor: &DescriptorProto, lines: &mut BTreeSet<String>) {
    let name = format!("{parent}.{}", descriptor.name());
    let oneofs: Vec<_> =
        descriptor.oneof_decl.iter().map(|one_of| one_of.name().to_owned()).collect();
    lines.extend(descriptor.field.iter().map(|member| field(&name, member, &oneofs)));
    descriptor.nested_type.iter().for_each(|nested| message(&name, nested, lines));
    descriptor.enum_type.iter().for_each(|nested| enumeration(&name, nested, lines));
}

fn enumeration(parent: &str, descriptor: &EnumDescriptorProto, lines: &mut BTreeSet<String>) {
    let name = format!("{parent}.{}", descriptor.name());
    let values = descriptor.value.iter();
    lines.extend(values.map(|value| format!("{name} {} {}", value.number(), value.name())));
}

fn service(parent: &str, descriptor: &ServiceDescriptorProto, lines: &mut BTreeSet<String>) {
    let name = format!("{parent}.{}", descriptor.name());
    for method in &descriptor.method {
        let stream = |flag: bool| if flag { "stream " } else { "" };
        lines.insert(format!(
            "{name}/{} {}{} -> {}{}",
            method.name(),
            stream(method.client_streaming()),
            method.input_type().trim_start_matches('.'),
            stream(method.server_streaming()),
            method.output_type().trim_start_matches('.'),
        ));
    }
}

/// All fields, values and methods of the present protocol.
fn current() -> BTreeSet<String> {
    let set = FileDescriptorSet::decode(arbiter_proto::DESCRIPTION).unwrap();
    let mut lines = BTreeSet::new();
    for file in set.file.iter().filter(|file| file.package().starts_with("arbiter.")) {
        let package = file.package();
        file.message_type.iter().for_each(|item| message(package, item, &mut lines));
        file.enum_type.iter().for_each(|item| enumeration(package, item, &mut lines));
        file.service.iter().for_each(|item| service(package, item, &mut lines));
    }
    lines
}

#[test]
fn released_messages_keep_their_meaning() {
    let current = current();
    let released_text = fs::read_to_string(RELEASED).unwrap_or_default();
    if env::var_os("ARBITER_RELEASE").is_some() {
        let lines: BTreeSet<_> =
            released_text.lines().map(str::to_owned).chain(current.clone()).collect();
        fs::write(RELEASED, lines.into_iter().collect::<Vec<_>>().join("\n") + "\n").unwrap();
    }
    let released: BTreeSet<_> = released_text.lines().map(str::to_owned).collect();
    assert!(released.len() > 100, "{RELEASED} has a line for each field, value and method");
    let changed: Vec<_> = released.difference(&current).collect();
    assert!(
        changed.is_empty(),
        "older versions would misunderstand this: {changed:#?}\n\
         give a new field a new number, and keep the old field until no version sends it"
    );
}
