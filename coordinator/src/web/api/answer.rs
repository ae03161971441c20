//! Declares the JSON form of what a use case answers, and how it is made, in one place: a line for
//! each field, which says where its value comes from if not from the field of the same name.

macro_rules! answer {
    (
        $(#[$meta:meta])*
        $name:ident($found:ident: $message:ty) {
            $($(#[$field_meta:meta])* $field:ident: $type:ty $(= $value:expr)?;)+
        }
    ) => {
        $(#[$meta])*
        #[derive(Debug, serde::Serialize, schemars::JsonSchema)]
        pub(super) struct $name {
            $($(#[$field_meta])* $field: $type,)+
        }

        impl From<$message> for $name {
            fn from($found: $message) -> Self {
                Self { $($field: answer!(@value $found $field $(, $value)?),)+ }
            }
        }
    };
    (@value $found:ident $field:ident) => { $found.$field };
    (@value $found:ident $field:ident, $value:expr) => { $value };
}

/// The JSON forms of a list.
pub(super) fn all<T, J: From<T>>(found: impl IntoIterator<Item = T>) -> Vec<J> {
    found.into_iter().map(J::from).collect()
}

/// Answers questions that need no more than the use case of a name: what a question holds, and the
/// call. Behind `pages` are lists, of which a part of what was found is given.
macro_rules! forward {
    ($($question:ident { $($field:ident),* } => $call:ident($request:expr);)+) => {$(
        impl Answer for $question {
            async fn answer(self, asker: &Asker) -> Result<Self::Reply, Problem> {
                let Self { $($field),* } = self;
                Ok(asker.service.$call(asker.caller(), $request).await?.into())
            }
        }
    )+};
    (pages $($question:ident { $($field:ident),* } => $call:ident($request:expr).$list:ident;)+) => {$(
        impl Answer for $question {
            async fn answer(self, asker: &Asker) -> Result<Self::Reply, Problem> {
                let Self { $($field,)* offset, limit } = self;
                let found = asker.service.$call(asker.caller(), $request).await?;
                Ok(asker.page(found.$list, offset, limit))
            }
        }
    )+};
}
