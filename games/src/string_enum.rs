//! Enums with a word for each variant, for the command line, files and the database.

/// Declares an enum with a word for each variant: `ALL` in the order of declaration, `as_str`, and
/// a `Display` that respects width and alignment. `FromStr, Err = E` after the enum adds a
/// `FromStr` with the error `E`, which holds the unknown text.
///
/// ```
/// arbiter_games::string_enum! {
///     /// A colour of stones.
///     #[derive(Clone, Copy, Debug, PartialEq)]
///     pub enum Colour {
///         /// Begins.
///         Black = "black",
///         /// Replies.
///         White = "white",
///     }
///     FromStr, Err = UnknownColour
/// }
///
/// #[derive(Debug, PartialEq)]
/// pub struct UnknownColour(String);
///
/// assert_eq!(Colour::ALL.map(Colour::as_str), ["black", "white"]);
/// assert_eq!("white".parse(), Ok(Colour::White));
/// assert_eq!("red".parse::<Colour>(), Err(UnknownColour("red".to_owned())));
/// assert_eq!(format!("{:>6}", Colour::Black), " black");
/// ```
#[macro_export]
macro_rules! string_enum {
    (
        $(#[$meta:meta])*
        $visibility:vis enum $name:ident {
            $($(#[$variant_meta:meta])* $variant:ident = $word:literal,)+
        }
        $(FromStr, Err = $error:ident)?
    ) => {
        $(#[$meta])*
        $visibility enum $name {
            $($(#[$variant_meta])* $variant,)+
        }

        impl $name {
            /// All variants in the order of declaration.
            $visibility const ALL: [Self; [$($word),+].len()] = [$(Self::$variant),+];

            /// The word of the variant.
            $visibility const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)+
                }
            }
        }

        impl ::core::fmt::Display for $name {
            fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                f.pad(self.as_str())
            }
        }

        $(
            impl ::core::str::FromStr for $name {
                type Err = $error;

                fn from_str(text: &str) -> ::core::result::Result<Self, $error> {
                    let variant = Self::ALL.into_iter().find(|variant| variant.as_str() == text);
                    variant.ok_or_else(|| $error(text.into()))
                }
            }
        )?
    };
}
