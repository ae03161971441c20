//! Macros that declare the metrics of a program as a table. The crates that use them depend on
//! `prometheus_client` themselves.

/// Declares a struct of metrics with a method `register`, which registers them in the order of
/// declaration.
///
/// A line has a field, its type, its initial value (if not `Default`), and after `=>` the name of
/// the metric, its unit (a variant of `prometheus_client::registry::Unit`) and its help text.
/// Fields after `with` are not metrics.
///
/// ```text
/// metrics! {
///     struct Metrics {
///         leases: Family<Of, Counter> => "leases", "Created leases";
///         report: Histogram = latencies() => "report" in Seconds, "From arrival to response";
///     }
///     with { calls: Calls }
/// }
/// ```
#[macro_export]
macro_rules! metrics {
    (
        $(#[$meta:meta])*
        $visibility:vis struct $name:ident {
            $(
                $(#[$field_meta:meta])*
                $field_visibility:vis $field:ident: $type:ty $(= $initial:expr)?
                    => $metric:literal $(in $unit:ident)?, $help:literal;
            )+
        }
        $(with { $($(#[$rest_meta:meta])* $rest_visibility:vis $rest:ident: $rest_type:ty,)+ })?
    ) => {
        $(#[$meta])*
        #[derive(Debug)]
        $visibility struct $name {
            $($(#[$field_meta])* $field_visibility $field: $type,)+
            $($($(#[$rest_meta])* $rest_visibility $rest: $rest_type,)+)?
        }

        impl Default for $name {
            fn default() -> Self {
                Self {
                    $($field: $crate::metrics!(@initial $($initial)?),)+
                    $($($rest: Default::default(),)+)?
                }
            }
        }

        impl $name {
            pub(crate) fn register(&self, registry: &mut prometheus_client::registry::Registry) {
                $($crate::metrics!(@register registry, $metric, $help, self.$field $(, $unit)?);)+
            }
        }
    };
    (@initial) => { Default::default() };
    (@initial $initial:expr) => { $initial };
    (@register $registry:ident, $metric:literal, $help:literal, $value:expr) => {
        $registry.register($metric, $help, $value.clone());
    };
    (@register $registry:ident, $metric:literal, $help:literal, $value:expr, $unit:ident) => {
        let unit = prometheus_client::registry::Unit::$unit;
        $registry.register_with_unit($metric, $help, unit, $value.clone());
    };
}

/// Declares label sets: structs whose fields are the labels.
///
/// ```text
/// labels! {
///     OfGame { game: &'static str }
/// }
/// ```
#[macro_export]
macro_rules! labels {
    ($($(#[$meta:meta])* $name:ident { $($label:ident: $type:ty),+ })+) => {
        $(
            $(#[$meta])*
            #[derive(
                Clone, Debug, PartialEq, Eq, Hash, prometheus_client::encoding::EncodeLabelSet,
            )]
            struct $name {
                $($label: $type,)+
            }
        )+
    };
}
