//! Macros that declare resources and forward endpoints to use cases.

/// Declares a JSON resource and its conversion from a message of the service. A field without a
/// value is copied from the field of the same name.
macro_rules! resource {
    (
        $(#[$meta:meta])*
        $name:ident($source:ident: $message:ty) {
            $($(#[$field_meta:meta])* $field:ident: $type:ty $(= $value:expr)?;)+
        }
    ) => {
        $(#[$meta])*
        #[derive(Debug, serde::Serialize, schemars::JsonSchema)]
        pub(super) struct $name {
            $($(#[$field_meta])* $field: $type,)+
        }

        impl From<$message> for $name {
            fn from($source: $message) -> Self {
                Self { $($field: resource!(@value $source $field $(, $value)?),)+ }
            }
        }
    };
    (@value $source:ident $field:ident) => { $source.$field };
    (@value $source:ident $field:ident, $value:expr) => { $value };
}

/// Converts a list.
pub(super) fn all<T, J: From<T>>(items: impl IntoIterator<Item = T>) -> Vec<J> {
    items.into_iter().map(J::from).collect()
}

/// Implements endpoints that only call a use case. After `pages`, the endpoints return a page of a
/// list.
macro_rules! forward {
    ($($endpoint:ident { $($field:ident),* } => $call:ident($request:expr);)+) => {$(
        impl Handler for $endpoint {
            async fn handle(self, context: &RequestContext) -> Result<Self::Response, Problem> {
                let Self { $($field),* } = self;
                Ok(context.service.$call(context.caller(), $request).await?.into())
            }
        }
    )+};
    (pages $($endpoint:ident { $($field:ident),* } => $call:ident($request:expr).$list:ident;)+) => {$(
        impl Handler for $endpoint {
            async fn handle(self, context: &RequestContext) -> Result<Self::Response, Problem> {
                let Self { $($field,)* offset, limit } = self;
                let response = context.service.$call(context.caller(), $request).await?;
                Ok(context.page(response.$list, offset, limit))
            }
        }
    )+};
}
